"""`mt.testing.opcheck(op, backends=("torch",))`."""

import pytest
from minitensor._minitensor import _op_names
from sample_calls import samples

import minitensor as mt


@pytest.mark.parametrize("name", [name for name in _op_names() if samples(name)])
def test_ops_pass(name):
    inputs, attrs = samples(name)[0]
    report = mt.testing.opcheck(name, *inputs, raises=False, backends=("torch",), **attrs)
    assert report.findings == []


def test_a_fault_is_found():
    def tripled(ctx, grad):
        return grad * 3

    @mt.custom_op(name="bridged::wrong", backward=tripled)
    def wrong(x: mt.Tensor) -> mt.Tensor:
        return x * 2

    x = mt.Tensor([1.0, 2.0], dtype="float64")
    with pytest.raises(RuntimeError, match="torch: gradcheck"):
        mt.testing.opcheck("bridged::wrong", x, backends=("torch",))
    mt.unregister_custom_op_py("bridged::wrong")


#: Dimensions that are not independent, of the result and of the inputs.
DEPENDENT = {
    "softmax": ([(4, 4)], ([1], [1])),
    "layer_norm": ([(4, 4), (4,), (4,)], ([0], [1, 0, 0])),
    "linalg::matrix_product": ([(4, 4), (4, 4)], ([0], [None, 1])),
}


@pytest.mark.parametrize("op", DEPENDENT)
def test_a_dimension_that_is_not_independent_is_found(op, monkeypatch):
    shapes, places = DEPENDENT[op]
    monkeypatch.setattr("minitensor.torch.check.batch_places", lambda *_: [places])
    with pytest.raises(RuntimeError, match="torch: sharding"):
        mt.testing.opcheck(op, *[mt.randn(*shape, dtype=mt.float64) for shape in shapes], backends=("torch",))


def test_an_unknown_backend_is_an_error():
    with pytest.raises(ValueError, match="unknown backend 'tpu'; the backends are 'minitensor', "):
        mt.testing.opcheck(mt.ops.swish, backends=("tpu",))
