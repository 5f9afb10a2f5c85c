"""Properties of ops, such as linearity: their effects, and the errors for false statements."""

import json

import numpy as np
import pytest
from c_plugin import alone, library, loaded, refuses

import minitensor as mt
from minitensor import _minitensor

pytestmark = pytest.mark.usefixtures("registered", "no_plugins_stay")

MATRIX = np.array([[1.0, 2.0, 0.0], [0.0, -1.0, 0.5], [3.0, 0.0, 0.0]])


def transform():
    """An op that multiplies by a matrix with NumPy, and so does its gradient."""

    def gradient(ctx, d):
        return mt.asarray(d.detach().numpy() @ MATRIX)

    @mt.custom_op(name="stated::transform", backward=gradient, properties="linear = x")
    def transform(x):
        return mt.asarray(x.detach().numpy() @ MATRIX.T) if x.device == "cpu" else mt.empty(x.shape, dtype=x.dtype)

    return transform


def test_a_linear_op_with_a_gradient_in_numpy_has_forward_mode():
    op = transform()
    x, t = np.array([1.0, 2.0, -1.0]), np.array([0.5, 0.0, 2.0])
    y, dy = mt.jvp(lambda x: op(x) ** 3, (mt.asarray(x),), (mt.asarray(t),))
    np.testing.assert_allclose(y.numpy(), (MATRIX @ x) ** 3)
    np.testing.assert_allclose(dy.numpy(), 3 * (MATRIX @ x) ** 2 * (MATRIX @ t))


def test_a_linear_op_with_a_gradient_in_numpy_has_higher_derivatives():
    op = transform()
    x = mt.asarray(np.array([1.0, 2.0, -1.0])).requires_grad_()
    y = MATRIX @ x.detach().numpy()
    (dx,) = mt.grad((op(x) ** 4).sum(), [x], create_graph=True)
    np.testing.assert_allclose(dx.detach().numpy(), MATRIX.T @ (4 * y**3))
    (second,) = mt.grad(dx.sum(), [x], create_graph=True)
    hessian = MATRIX.T @ np.diag(12 * y**2) @ MATRIX
    np.testing.assert_allclose(second.detach().numpy(), hessian @ np.ones(3))
    (third,) = mt.grad(second.sum(), [x])
    # The derivative of Σᵢⱼ Hᵢⱼ = Σₖ 12 yₖ² (Σᵢ Aₖᵢ)².
    np.testing.assert_allclose(third.numpy(), MATRIX.T @ (24 * y * MATRIX.sum(1) ** 2))


def test_without_the_property_the_gradient_has_no_derivative():
    def gradient(ctx, d):
        return mt.asarray(d.detach().numpy() @ MATRIX)

    @mt.custom_op(name="stated::plain", backward=gradient)
    def plain(x):
        return mt.asarray(x.detach().numpy() @ MATRIX.T) if x.device == "cpu" else mt.empty(x.shape, dtype=x.dtype)

    with pytest.raises(RuntimeError, match="does not depend on the cotangent"):
        mt.jvp(plain, (mt.asarray(np.ones(3)),), (mt.asarray(np.ones(3)),))


def ops(function, *args):
    """The results of a function, and the ops of its graph."""
    jitted = mt.jit(function)
    jitted(*args)
    results = jitted(*args)
    return results, jitted.graphs[0].ops


def test_exchanged_arguments_of_a_symmetric_op_are_one_call():
    x, y = mt.randn(3, 4), mt.randn(4, 3)
    both = lambda x, y: mt.matmul(x, y).sum() + mt.matmul(y, x).sum()  # noqa: E731
    assert ops(both, x, y)[1].count("linalg::matrix_product") == 2

    @mt.row_op(name="stated::distance", properties="symmetric")
    def distance(x, y):
        return (x - y).abs().max()

    @mt.row_op(name="stated::excess")
    def excess(x, y):
        return (x - y).max()

    def twice(op):
        # The products keep the calls apart from each other.
        return lambda x, y: (mt.matmul(op(x, y), x), mt.matmul(op(y, x), y))

    x, y = mt.randn(3, 3), mt.randn(3, 3)
    assert ops(twice(distance), x, y)[1].count("stated::distance") == 1
    assert ops(twice(excess), x, y)[1].count("stated::excess") == 2


@pytest.fixture
def fused():
    """An op that replaces an expression, and counts its calls in eager mode."""

    @mt.row_op(name="stated::fused", axis=-1, properties="replaces = log(softmax(x * scale, axis = axis))")
    def fused(x, scale: float):
        z = x * scale
        return z - z.logsumexp()

    return fused


def test_an_op_takes_the_place_of_the_expression_that_it_replaces(fused):
    x = mt.asarray(np.array([[0.0, 800.0, 1.0], [1.0, 2.0, 3.0]]))
    plain = lambda x: mt.log(mt.softmax(x * 2.0, axis=1))  # noqa: E731
    assert plain(x).tolist()[0][0] == -np.inf
    result, names = ops(plain, x)
    assert names == ["stated::fused"]
    np.testing.assert_array_equal(result.numpy(), fused(x, scale=2.0, axis=1).numpy())
    assert ops(lambda x: (x * 2.0).softmax(-1).log(), x)[1] == ["stated::fused"]


def test_an_expression_stays_if_its_parts_are_used_elsewhere_or_differ(fused):
    x = mt.randn(4, 3)

    def twice(x):
        y = mt.softmax(x * 2.0, axis=1)
        return y, mt.log(y)

    for function in (
        twice,
        lambda x: mt.log(mt.softmax(x + 2.0, axis=1)),
        lambda x: mt.log(mt.softmax(x * x, axis=1)),
        lambda x: mt.exp(mt.softmax(x * 2.0, axis=1)),
    ):
        assert "stated::fused" not in ops(function, x)[1]


def test_a_replaced_expression_has_its_gradient(fused):
    x = mt.asarray(np.linspace(-1.0, 2.0, 12).reshape(4, 3)).requires_grad_()
    plain = lambda x: mt.log(mt.softmax(x * 2.0, axis=1))  # noqa: E731
    jitted = mt.jit(lambda x: mt.grad((plain(x) ** 2).sum(), [x])[0])
    jitted(x)
    (expected,) = mt.grad((plain(x) ** 2).sum(), [x])
    np.testing.assert_allclose(jitted(x).numpy(), expected.numpy(), rtol=1e-12)


def test_properties_are_described_and_kept_in_files(fused):
    assert mt.ops.describe("stated::fused")["properties"] == "replaces = log(softmax(x * scale, axis = axis))"
    assert mt.ops.describe("add")["properties"] == "linear = (x, y), symmetric"
    assert mt.ops.describe("multiply")["properties"] == "linear = [x, y], symmetric"
    assert mt.ops.describe("exp")["properties"] == ""
    text = _minitensor._op_to_json("stated::fused", [({"scale": 2.0, "axis": -1}, [True])])
    assert json.loads(text)["properties"] == "replaces = log(softmax(x * scale, axis = axis))"
    again = _minitensor._op_from_json(text.replace("stated::fused", "stated::again"))
    again.register()
    assert mt.ops.describe("stated::again")["properties"] == "replaces = log(softmax(x * scale, axis = axis))"


def test_what_an_op_cannot_state_is_refused():
    def define(text):
        mt.element_op(name="stated::wrong", properties=text)(lambda x, y: x + y)

    for text, words in [
        ("linear = z", "op 'stated::wrong': properties clause: there is no input 'z'"),
        ("linear = x, symetric", "expected 'linear', 'symmetric' or 'replaces', found 'symetric'"),
        ("replaces = exp(x)", "the expression of 'replaces' does not mention 'y'"),
        ("replaces = x", "does not fit here: 'x'"),
    ]:
        with pytest.raises(ValueError, match=words):
            define(text)
    with pytest.raises(TypeError, match=r"properties must be a text such as 'linear = x', got list"):
        define(["symmetric"])
    with pytest.raises(ValueError, match="takes at least two tensors of the same dtype"):
        mt.element_op(name="stated::one", properties="symmetric")(lambda x: x)
    with pytest.raises(ValueError, match="the op cannot be linear in 'x'"):
        mt.element_op(name="stated::mask", properties="linear = x")(lambda x: x > 0)


def test_opcheck_verifies_them():
    @mt.element_op(name="stated::half", properties="linear = (x, y), symmetric")
    def half(x, y):
        return x / 2 - y

    with pytest.raises(RuntimeError, match=r"the clause `symmetric` does not hold"):
        mt.testing.opcheck(half)


def test_a_library_states_them():
    with loaded(library(op='.properties = MT_STR("linear = x"),')):
        assert mt.ops.describe("probe")["properties"] == "linear = x"


def test_the_table_of_an_older_library_has_none():
    old = '.struct_size = offsetof(MtOp, properties), .properties = {"x", (size_t)-1},'
    with loaded(library(code="#include <stddef.h>", op=old)):
        assert mt.ops.describe("probe")["properties"] == ""


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ('.properties = {"x", (size_t)-1},', alone(f"its properties: a string has {2**64 - 1} bytes")),
        ('.properties = MT_STR("linear = q"),', "there is no input 'q'"),
        ('.properties = MT_STR("replaces = sin("),', "expected"),
    ],
)
def test_wrong_properties_of_a_library_are_refused(fields, words):
    refuses(library(op=fields), ValueError, words)
