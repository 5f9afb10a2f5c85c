"""Element ops written in Python, used in other frameworks."""

import numpy as np
import pytest

import minitensor as mt

X = np.linspace(-3, 3, 13)


@pytest.fixture
def squareplus():
    @mt.element_op(name="bridged::squareplus", where="b >= 0")
    def squareplus(x, b: float = 4.0):
        return (x + (x * x + b).sqrt()) / 2

    yield squareplus
    mt.unregister_custom_op_py("bridged::squareplus")


@pytest.mark.parametrize("framework", ["torch", "jax", "numpy"])
def test_opcheck_passes(squareplus, framework):
    if framework != "numpy":
        pytest.importorskip(framework)
    assert mt.testing.opcheck("bridged::squareplus", mt.Tensor(X), raises=False, backends=(framework,)).findings == []


def test_it_compiles_and_has_gradients_in_pytorch(squareplus):
    torch = pytest.importorskip("torch")
    import minitensor.torch

    x = torch.tensor(X, requires_grad=True)
    compiled = torch.compile(lambda x: minitensor.torch.bridged.squareplus(x, b=1.0), fullgraph=True)
    expected = (x + (x * x + 1).sqrt()) / 2
    torch.testing.assert_close(compiled(x), expected)
    (ours,), (theirs,) = (torch.autograd.grad(y.sum(), x) for y in (compiled(x), expected))
    torch.testing.assert_close(ours, theirs)


def test_it_is_jitted_and_has_gradients_in_jax(squareplus):
    jax = pytest.importorskip("jax")
    import minitensor.jax

    x = np.asarray(X, "float32")
    slope = jax.jit(jax.vmap(jax.grad(lambda x: minitensor.jax.bridged.squareplus(x))))(x)
    np.testing.assert_allclose(slope, (1 + x / np.sqrt(x * x + 4)) / 2, rtol=1e-5)
