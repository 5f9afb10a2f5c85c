"""Optional inputs of element and row ops, compared with NumPy, ops written in Rust, and finite differences."""

from __future__ import annotations

import inspect
import itertools

import numpy as np
import pytest

import minitensor as mt

pytestmark = pytest.mark.usefixtures("registered")

RANDOM = np.random.default_rng(5)
X, WEIGHT, BIAS, SCALE = (RANDOM.standard_normal(shape) for shape in ((3, 4, 6), 6, 6, (3, 4)))
PATTERNS = list(itertools.product([False, True], repeat=2))


def affine(x, weight=None, bias=None, power: int = 1):
    """`x^power · weight + bias`; `weight` and `bias` are optional."""
    y = x**power if weight is None else x**power * weight
    return y if bias is None else y + bias


def layer_norm(x, weight=None, bias=None, scale=None, eps: float = 1e-5):
    """`x` with mean 0 and variance 1 along its rows."""
    y = (x - x.mean()) / (x.var(correction=0) + eps).sqrt()
    y = y if weight is None else y * weight
    y = y if bias is None else y + bias
    return y if scale is None else y * scale


CLAUSE = "(x: [.., n], weight: [n], bias: [n], scale: [..]) -> [.., n]"


def tensors(*given):
    return [None if a is None else mt.Tensor(a, requires_grad=True) for a in given]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_elements(pattern):
    op = mt.element_op(affine)
    weight, bias = (a if is_given else None for a, is_given in zip((WEIGHT, BIAS), pattern, strict=True))
    wanted = X * (1 if weight is None else weight) + (0 if bias is None else bias)
    x, w, b = tensors(X, weight, bias)
    np.testing.assert_allclose(op(x, w, b).detach(), wanted, rtol=1e-14)
    np.testing.assert_allclose(op(x, weight=w, bias=b, power=1).detach(), wanted, rtol=1e-14)
    np.testing.assert_allclose(op(X[0, 0], weight, bias), wanted[0, 0], rtol=1e-14)
    leaves = [t for t in (x, w, b) if t is not None]

    def call(*leaves):
        given = iter(leaves)
        return op(*[None if t is None else next(given) for t in (x, w, b)], power=2)

    mt.testing.gradcheck(call, leaves)
    for part in (leaves, leaves[:1], leaves[-1:]):
        grads = mt.grad((call(*leaves) ** 2).sum(), part)
        assert [g.shape for g in grads] == [t.shape for t in part]


@pytest.mark.parametrize("pattern", list(itertools.product([False, True], repeat=3)))
def test_rows(pattern):
    op = mt.row_op(name="docs::layer_norm", shape=CLAUSE)(layer_norm)
    weight, bias, scale = (a if is_given else None for a, is_given in zip((WEIGHT, BIAS, SCALE), pattern, strict=True))
    wanted = (X - X.mean(-1, keepdims=True)) / np.sqrt(X.var(-1, keepdims=True) + 1e-5)
    wanted = wanted * (1 if weight is None else weight) + (0 if bias is None else bias)
    wanted = wanted * (1 if scale is None else scale[..., None])
    given = tensors(X, weight, bias, scale)
    np.testing.assert_allclose(op(*given).detach(), wanted, rtol=1e-12, atol=1e-13)
    leaves = [t for t in given if t is not None]

    def call(*leaves):
        rest = iter(leaves)
        return op(*[None if t is None else next(rest) for t in given])

    mt.testing.gradcheck(call, leaves)
    (call(*leaves) * mt.Tensor(X)).sum().backward()
    for leaf in leaves:
        assert leaf.grad.shape == leaf.shape


def test_an_op_is_like_one_written_in_rust():
    op = mt.row_op(name="docs::layer_norm", shape=CLAUSE, where="eps >= 0")(layer_norm)
    assert str(inspect.signature(op)) == "(x, weight=None, bias=None, scale=None, eps=1e-05)"
    assert "weight: tensor of floating dtypes, or integers and bools, as float32, optional" in op.__doc__
    assert [i["optional"] for i in mt.ops.describe("docs::layer_norm")["inputs"]] == [False, True, True, True]
    mt.testing.opcheck("docs::layer_norm")


@pytest.mark.parametrize("pattern", PATTERNS)
def test_results_are_those_of_the_op_in_rust(pattern):
    op = mt.row_op(name="docs::layer_norm", shape=CLAUSE)(layer_norm)
    given = [a if is_given else None for a, is_given in zip((WEIGHT, BIAS), pattern, strict=True)]
    results = []
    for f in (op, mt.ops.layer_norm):
        leaves = tensors(X, *given)
        (f(*leaves) ** 3).sum().backward()
        results.append([f(*leaves).detach(), *(t.grad for t in leaves if t is not None)])
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


def test_opcheck_finds_nothing_in_elements():
    mt.element_op(affine)
    mt.testing.opcheck("affine")


def test_the_function_runs_once_for_each_pattern():
    runs = []

    @mt.element_op(name="docs::counted")
    def counted(x, y=None, z=None, n: int = 1):
        runs.append((y is not None, z is not None, n))
        return x * n + (0 if y is None else y) + (0 if z is None else z * 2)

    a = mt.ones(3, requires_grad=True)
    for _ in range(3):
        counted(a).sum().backward()
        counted(a, z=a).sum().backward()
        counted(a, a, n=2).sum().backward()
        assert counted(1.0, a, a).tolist() == [4.0] * 3
    assert runs == [(False, False, 1), (False, True, 1), (True, False, 2), (True, True, 1)]


def test_derivatives_of_higher_order_have_only_given_inputs():
    op = mt.row_op(name="docs::layer_norm", shape=CLAUSE)(layer_norm)
    x, bias = tensors(X, BIAS)
    (g,) = mt.grad((op(x, bias=bias) ** 3).sum(), x, create_graph=True)
    second = mt.grad((g * g).sum(), (x, bias))

    def twin(x, bias):
        y = (x - x.mean(-1, keepdims=True)) / (x.var(-1, correction=0, keepdims=True) + 1e-5).sqrt() + bias
        return (y**3).sum()

    (g,) = mt.grad(twin(x, bias), x, create_graph=True)
    for a, b in zip(second, mt.grad((g * g).sum(), (x, bias)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)


def test_patterns_are_part_of_graphs():
    op = mt.row_op(name="docs::layer_norm", shape=CLAUSE)(layer_norm)
    add = mt.element_op(affine)
    x, w, b = tensors(X, WEIGHT, BIAS)

    for given in ((), (w,), (None, b), (w, b)):
        f = lambda x, given=given: (add(op(x, *given) * 2, *given)).sum()  # noqa: E731
        for _ in range(2):
            np.testing.assert_allclose(mt.jit(f)(x).detach(), f(x).detach(), rtol=1e-12)
            (g,) = mt.grad(mt.jit(f)(x), x)
            np.testing.assert_allclose(g, mt.grad(f(x), x)[0], rtol=1e-9, atol=1e-12)
        rows = mt.vmap(lambda x, given=given: op(x, *given))(x.detach())
        np.testing.assert_allclose(rows.detach(), op(x, *given).detach(), rtol=1e-12)


def test_with_an_axis():
    op = mt.row_op(name="docs::weighted", axis=-1, shape="(x: [.., n], weight: [.., n]) -> [..]")(
        lambda x, weight=None: x.sum() if weight is None else (x * weight).sum() / weight.sum()
    )
    w = np.abs(X) + 0.5
    np.testing.assert_allclose(op(X, axis=1), X.sum(1), rtol=1e-13)
    np.testing.assert_allclose(op(X, w, axis=1), (X * w).sum(1) / w.sum(1), rtol=1e-12)
    x, w = tensors(X, w)
    mt.testing.gradcheck(lambda x, w: op(x, w, axis=0), (x, w))
    mt.testing.gradcheck(lambda x: op(x, axis=0, keepdims=True), x)
    mt.testing.opcheck("docs::weighted")


def test_ops_with_optional_inputs_call_each_other():
    mt.element_op(affine)
    op = mt.element_op(name="docs::outer")(lambda x, y=None: mt.ops.affine(x, bias=y) * mt.ops.affine(x, 2.0))
    np.testing.assert_allclose(op(X), X * 2 * X, rtol=1e-14)
    np.testing.assert_allclose(op(X, BIAS), (X + BIAS) * 2 * X, rtol=1e-14)


def test_an_error_at_the_definition_names_what_is_not_given():
    with pytest.raises(TypeError, match="(?s)got NoneType.*op 'docs::wrong' was called with y=None"):
        mt.element_op(name="docs::wrong")(lambda x, y=None: x + y)
    with pytest.raises(ValueError, match="op 'docs::wrong': expected at least one input that is not optional"):
        mt.element_op(name="docs::wrong")(lambda x=None: 1.0)
    with pytest.raises(ValueError, match="expected at least one input that is a row"):
        mt.row_op(name="docs::wrong", shape="(t: [..], x: [.., n]) -> [..]")(lambda t, x=None: t)


def test_dtypes_and_devices_are_those_of_the_given_inputs():
    op = mt.element_op(name="docs::sum")(lambda x, y=None: x if y is None else x + y)
    assert op(mt.Tensor([1, 2])).dtype == mt.int64
    assert op(mt.Tensor([1, 2]), mt.Tensor([0.5])).dtype == mt.float32
    assert op(mt.ones(2, dtype="float16"), mt.ones(2, dtype="float64")).dtype == mt.float64
    assert op(mt.zeros(3, device="meta")).shape == (3,)
    with pytest.raises(ValueError, match="broadcast"):
        op(mt.ones(2), mt.ones(3))
