"""Row ops written in Python, used in other frameworks."""

import numpy as np
import pytest

import minitensor as mt

X = np.random.default_rng(3).standard_normal((4, 5))


@pytest.fixture
def rms_norm():
    @mt.row_op(name="bridged::rms_norm", where="eps >= 0", shape="(x: [.., n], weight: [n]) -> [.., n]")
    def rms_norm(x, weight, eps: float = 0.5):
        return x / ((x * x).mean() + eps).sqrt() * weight

    yield rms_norm
    mt.unregister_custom_op_py("bridged::rms_norm")


@pytest.mark.parametrize("framework", ["torch", "jax", "numpy"])
def test_opcheck_passes(rms_norm, framework):
    if framework != "numpy":
        pytest.importorskip(framework)
    args = mt.Tensor(X), mt.Tensor(X[0])
    assert mt.testing.opcheck("bridged::rms_norm", *args, raises=False, backends=(framework,)).findings == []


def test_it_compiles_and_has_gradients_in_pytorch(rms_norm):
    torch = pytest.importorskip("torch")
    import minitensor.torch

    x, w = (torch.tensor(a, requires_grad=True) for a in (X, X[0]))
    compiled = torch.compile(lambda x, w: minitensor.torch.bridged.rms_norm(x, w, eps=1.0), fullgraph=True)
    expected = x / ((x * x).mean(-1, keepdim=True) + 1).sqrt() * w
    torch.testing.assert_close(compiled(x, w), expected)
    ours, theirs = (torch.autograd.grad((y * y).sum(), (x, w)) for y in (compiled(x, w), expected))
    torch.testing.assert_close(ours, theirs)


def test_it_is_jitted_and_has_gradients_in_jax(rms_norm):
    jax = pytest.importorskip("jax")
    import minitensor.jax

    x, w = X.astype("float32"), X[0].astype("float32")

    def twin(x, w):
        return x / jax.numpy.sqrt((x * x).mean(-1, keepdims=True) + 0.5) * w

    def loss(f):
        return jax.jit(jax.vmap(jax.grad(lambda x, w: (f(x, w) ** 2).sum(), argnums=(0, 1)), in_axes=(0, None)))

    for ours, theirs in zip(loss(minitensor.jax.bridged.rms_norm)(x, w), loss(twin)(x, w), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
