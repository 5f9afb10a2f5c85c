"""Ops written in Python with static attributes and optional inputs, used in other frameworks."""

import enum
from typing import Literal

import numpy as np
import pytest

import minitensor as mt

X = np.random.default_rng(3).standard_normal((4, 5))


def twin(x, weight, power, norm, eps):
    size = (abs(x) ** power).mean(-1) if norm == "mean" else (abs(x) ** power).sum(-1)
    y = x / (size[..., None] + eps)
    return y if weight is None else y * weight


@pytest.fixture
def normalize():
    @mt.row_op(name="bridged::normalize", shape="(x: [.., n], weight: [n]) -> [.., n]", where="power > 0")
    def normalize(x, weight=None, power: int = 2, norm: Literal["mean", "sum"] = "mean", eps: float = 0.5):
        size = abs(x) ** power
        y = x / ((size.mean() if norm == "mean" else size.sum()) + eps)
        return y if weight is None else y * weight

    yield normalize
    mt.unregister_custom_op_py("bridged::normalize")


@pytest.fixture
def affine():
    @mt.element_op(name="bridged::affine")
    def affine(x, scale=None, shift=None, power: int = 1, is_smooth: bool = False):
        y = (x.sigmoid() if is_smooth else x) ** power
        y = y if scale is None else y * scale
        return y if shift is None else y + shift

    yield affine
    mt.unregister_custom_op_py("bridged::affine")


#: The weight, and the static attributes of calls.
CALLS = [(None, 2, "mean"), (X[0], 2, "mean"), (None, 3, "sum"), (X[1], 4, "sum")]


@pytest.mark.parametrize("framework", ["torch", "jax", "numpy"])
def test_opcheck_passes(normalize, affine, framework):
    if framework != "numpy":
        pytest.importorskip(framework)
    for weight, power, norm in CALLS:
        given = {} if weight is None else {"weight": mt.Tensor(weight)}
        report = mt.testing.opcheck(
            normalize, mt.Tensor(X), **given, power=power, norm=norm, raises=False, backends=(framework,)
        )
        assert report.findings == []
    for given in ({}, {"shift": mt.Tensor(X[0])}, {"scale": mt.Tensor(X), "power": 2, "is_smooth": True}):
        report = mt.testing.opcheck(affine, mt.Tensor(X), **given, raises=False, backends=(framework,))
        assert report.findings == []


@pytest.mark.parametrize(("weight", "power", "norm"), CALLS)
def test_it_compiles_and_has_gradients_in_pytorch(normalize, weight, power, norm):
    torch = pytest.importorskip("torch")
    import minitensor.torch

    leaves = [torch.tensor(a, requires_grad=True) for a in (X, weight) if a is not None]

    def ours(x, w=None):
        return minitensor.torch.bridged.normalize(x, w, power=power, norm=norm, eps=0.25)

    def theirs(x, w=None):
        return twin(x, w, power, norm, 0.25)

    expected = theirs(*leaves)
    for f in (ours, torch.compile(ours, fullgraph=True)):
        torch.testing.assert_close(f(*leaves), expected)
        grads = [torch.autograd.grad((y * y).sum(), leaves) for y in (f(*leaves), theirs(*leaves))]
        torch.testing.assert_close(*grads)


@pytest.mark.parametrize(("weight", "power", "norm"), CALLS)
def test_it_is_jitted_and_has_gradients_in_jax(normalize, weight, power, norm):
    jax = pytest.importorskip("jax")
    import minitensor.jax

    leaves = [a.astype("float32") for a in (X, weight) if a is not None]

    def ours(x, w=None):
        return minitensor.jax.bridged.normalize(x, w, power=power, norm=norm, eps=0.25)

    def theirs(x, w=None):
        return twin(x, w, power, norm, 0.25)

    results = []
    for f in (ours, theirs):
        axes = (0, None)[: len(leaves)]
        loss = jax.grad(lambda *leaves, f=f: (f(*leaves) ** 2).sum(), argnums=tuple(range(len(leaves))))
        results.append(jax.jit(jax.vmap(loss, in_axes=axes))(*leaves))
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


class Norm(enum.Enum):
    MEAN = "mean"
    MAX = "max"


def test_members_of_enums_are_attributes():
    @mt.row_op(name="bridged::sized")
    def sized(x, norm: Norm = Norm.MEAN):
        return x.mean() if norm is Norm.MEAN else x.max()

    try:
        torch = pytest.importorskip("torch")
        import minitensor.torch

        x = torch.tensor(X, requires_grad=True)
        for f in (minitensor.torch.bridged.sized, torch.compile(minitensor.torch.bridged.sized), sized):
            torch.testing.assert_close(f(x, norm=Norm.MAX), x.amax(-1))
        jax = pytest.importorskip("jax")
        import minitensor.jax

        for f in (
            minitensor.jax.bridged.sized,
            jax.jit(lambda x, norm: sized(x, norm=Norm.MAX), static_argnames="norm"),
        ):
            np.testing.assert_allclose(f(X.astype("float32"), norm=Norm.MAX), X.max(-1), rtol=1e-6)
    finally:
        mt.unregister_custom_op_py("bridged::sized")


def test_an_exception_reaches_jax_and_pytorch():
    @mt.element_op(name="bridged::fails")
    def fails(x, n: int = 1):
        if n > 1:
            raise ArithmeticError("too many")
        return x

    try:
        torch = pytest.importorskip("torch")
        import minitensor.torch

        with pytest.raises(ArithmeticError, match="too many"):
            minitensor.torch.bridged.fails(torch.ones(3), n=2)
        jax = pytest.importorskip("jax")
        import minitensor.jax

        with pytest.raises(Exception, match="too many"):
            jax.jit(lambda x: minitensor.jax.bridged.fails(x, n=2))(jax.numpy.ones(3))
    finally:
        mt.unregister_custom_op_py("bridged::fails")
