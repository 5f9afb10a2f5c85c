"""`mt.testing.opcheck(op, backends=("jax",))`."""

# ruff: noqa: E402

import pytest

pytest.importorskip("jax")

from minitensor._minitensor import _op_names
from sample_calls import samples

import minitensor as mt

#: Gradients that differ from finite differences where the op is not smooth, or whose call draws random numbers.
SKIPPED = {"dropout", "rand_like", "random::key"}
NAMES = [name for name in _op_names() if samples(name) and name not in SKIPPED]


@pytest.mark.parametrize("name", NAMES)
def test_ops_pass(name):
    inputs, attrs = samples(name)[-1]
    assert mt.testing.opcheck(name, *inputs, raises=False, backends=("jax",), **attrs).findings == []


def test_a_wrong_gradient_is_found():
    def tripled(ctx, grad):
        return grad * 3

    @mt.custom_op(name="bridged::wrong", backward=tripled)
    def wrong(x: mt.Tensor) -> mt.Tensor:
        return x * 2

    x = mt.Tensor([1.0, 2.0], dtype="float64")
    with pytest.raises(RuntimeError, match="jax: gradient"):
        mt.testing.opcheck("bridged::wrong", x, backends=("jax",))
    mt.unregister_custom_op_py("bridged::wrong")


def test_an_op_whose_results_differ_from_call_to_call_is_found():
    calls = []

    @mt.custom_op(name="bridged::counting")
    def counting(x: mt.Tensor) -> mt.Tensor:
        calls.append(x)
        return x * len(calls)

    report = mt.testing.opcheck("bridged::counting", mt.Tensor([1.0]), raises=False, backends=("jax",))
    assert [finding.check for finding in report.findings] == ["jax: results", "jax: jit", "jax: vmap"]
    mt.unregister_custom_op_py("bridged::counting")
