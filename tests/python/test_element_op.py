"""`mt.element_op`: results, gradients, dtypes and errors, compared with NumPy and with ops written in Rust."""

from __future__ import annotations

import math

import numpy as np
import pytest

import minitensor as mt

pytestmark = pytest.mark.usefixtures("registered")

X = np.linspace(-3.0, 3.0, 101)


def squareplus(x, b: float = 4.0):
    """A smooth `max(x, 0)`."""
    return (x + (x * x + b).sqrt()) / 2


def test_an_op_is_like_one_written_in_rust():
    op = mt.element_op(where="b >= 0")(squareplus)
    assert op is mt.ops.squareplus and "A smooth `max(x, 0)`." in op.__doc__
    np.testing.assert_allclose(op(X), (X + np.sqrt(X * X + 4)) / 2, rtol=1e-15)
    np.testing.assert_allclose(op(mt.Tensor(X), b=0), np.maximum(X, 0), atol=1e-15)
    described = mt.ops.describe("squareplus")
    assert described["program"] == "out = (x + sqrt(x * x + b)) / 2"
    assert described["location"].startswith(__file__)
    with pytest.raises(ValueError, match=r"op 'squareplus' needs b >= 0, got b = -1"):
        op(mt.Tensor(X), b=-1.0)
    mt.testing.opcheck("squareplus")


def test_derivatives_of_any_order():
    op = mt.element_op(name="docs::gaussian")(lambda x: (-(x**2) / 2).exp())
    x = mt.Tensor(X, requires_grad=True)
    y, hermite = op(x), [1.0, -X, X**2 - 1, -(X**3) + 3 * X]
    for polynomial in hermite:
        np.testing.assert_allclose(y.detach(), polynomial * np.exp(-(X**2) / 2), rtol=1e-12, atol=1e-13)
        (y,) = mt.grad(y.sum(), x, create_graph=True)


#: Functions with their twins of NumPy.
TWINS = {
    "arithmetic": (lambda x, y: 2 - x * y / 4 + (1 / y) - (-x), lambda x, y: 2 - x * y / 4 + (1 / y) - (-x)),
    "powers": (lambda x, y: x**3 + y**-2 + abs(x) ** 0.5 + 2**y, lambda x, y: x**3 + y**-2 + abs(x) ** 0.5 + 2**y),
    "remainders": (lambda x, y: x // y + x % y + 7 % y, lambda x, y: x // y + x % y + 7 % y),
    "conditions": (
        lambda x, y: mt.where((x > y) & ~(x >= 2) | (x == 0) ^ (y != 1), x, mt.ops.where(x < 0, y, -x)),
        lambda x, y: np.where((x > y) & ~(x >= 2) | (x == 0) ^ (y != 1), x, np.where(x < 0, y, -x)),
    ),
    "functions": (
        lambda x, y: mt.exp(x).log1p() + mt.ops.hypot(x, y),
        lambda x, y: np.log1p(np.exp(x)) + np.hypot(x, y),
    ),
    "attributes": (lambda x, y: mt.ops.clamp(x, lo=-1.0, hi=0.5) * y, lambda x, y: np.clip(x, -1, 0.5) * y),
    "numbers": (
        lambda x, y: np.float64(2.0) * x + np.float32(0.5) * y + math.pi + np.int64(3),
        lambda x, y: 2.0 * x + 0.5 * y + math.pi + 3,
    ),
    "methods": (
        lambda x, y: x.mul_add(y, 1) + y.recip(),
        lambda x, y: x * y + 1 + 1 / y,
    ),
    "special": (lambda x, y: mt.where(x > y, math.inf, x), lambda x, y: np.where(x > y, np.inf, x)),
}


@pytest.mark.parametrize("name", TWINS)
def test_results_are_those_of_numpy(name):
    ours, theirs = TWINS[name]
    op = mt.element_op(name=f"docs::{name}")(ours)
    y = np.linspace(0.5, 4.0, 7)[:, None]
    np.testing.assert_allclose(op(X, y), theirs(X, y), rtol=1e-13, atol=1e-14)
    findings = mt.testing.opcheck(f"docs::{name}", raises=False).findings
    assert [f for f in findings if f.check not in ("gradient", "gradient at extremes")] == []


def test_several_outputs_and_other_element_ops():
    mt.element_op(squareplus)

    @mt.element_op(name="docs::both", outputs=["smooth", "is_large"])
    def both(x, b: float = 1.0):
        smooth = mt.ops.squareplus(x, b=b * 4)
        return smooth, smooth > 2

    out = both(X, b=0.25)
    np.testing.assert_allclose(out.smooth, (X + np.sqrt(X * X + 1)) / 2, rtol=1e-15)
    assert out.is_large.dtype == bool and out.is_large.tolist() == (out.smooth > 2).tolist()


@pytest.mark.parametrize("conj", [mt.ops.conj, lambda z: z.conj()])
def test_complex_conjugates(conj):
    op = mt.element_op(name="docs::distance")(lambda z, w: (z - w) * conj(z - w) + conj(z))
    z, w = X + 2j, 3 - X * 1j
    np.testing.assert_allclose(op(z, w), (z - w) * np.conj(z - w) + np.conj(z), rtol=1e-15)
    assert op(mt.Tensor([3]), mt.Tensor([1])).tolist() == [7]
    mt.testing.opcheck(op, mt.Tensor(z), mt.Tensor(w))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_halves_are_rounded_once(dtype):
    op = mt.element_op(name="docs::cancelled")(lambda x: (x + 1000.0) - 1000.0)
    x = mt.full(40_000, 0.25, dtype=dtype)
    assert op(x).dtype == getattr(mt, dtype) and op(x).tolist()[::9999] == [0.25] * 5


def test_integers_are_kept_or_promoted_but_never_truncated():
    doubled = mt.element_op(name="docs::doubled")(lambda x: x * 2 + 1)
    halved = mt.element_op(name="docs::halved")(lambda x: x * 0.5)
    scaled = mt.element_op(name="docs::scaled")(lambda x, b=0.5: x * b)
    x = mt.Tensor([1, 2, 3])
    assert doubled(x).dtype == mt.int64 and doubled(x).tolist() == [3, 5, 7]
    for dtype in ("int8", "uint8", "int16", "uint64"):
        wide = np.array([3, 100, 127], dtype=dtype)
        np.testing.assert_array_equal(doubled(mt.Tensor(wide)), 2 * wide + wide.dtype.type(1), strict=True)
    assert halved(x).dtype == mt.float32 and halved(x).tolist() == [0.5, 1.0, 1.5]
    assert scaled(x).dtype == mt.float32 and scaled(x).tolist() == [0.5, 1.0, 1.5]
    assert mt.element_op(name="docs::odd")(lambda x: (x & 1) == 1)(x).tolist() == [True, False, True]


def test_functions_that_are_not_ops():
    gelu = mt.element_op(name="docs::gelu")(lambda x: x * x.normal_cdf())
    np.testing.assert_array_equal(gelu(mt.Tensor(X)), mt.ops.gelu(mt.Tensor(X)))
    bell = mt.element_op(name="docs::bell")(lambda x: x.normal_pdf())
    np.testing.assert_allclose(bell(X), np.exp(-X * X / 2) / math.sqrt(2 * math.pi), rtol=1e-14)


def test_masks_are_outputs_without_a_gradient():
    op = mt.element_op(name="docs::is_inside")(lambda x: (x > -1) & (x < 1))
    assert op(mt.Tensor([-2.0, 0.0, 2.0])).tolist() == [False, True, False]


def test_large_layouts_agree_with_rust():
    op = mt.element_op(name="docs::swish")(lambda x: x * x.sigmoid())
    x = mt.randn(1000, 700)
    for view in (x, x.T, x[::3, ::-1], x[:, :1].expand(1000, 500)):
        np.testing.assert_allclose(op(view), mt.ops.swish(view), rtol=1e-6, atol=1e-7)


def branches(x):
    return x if x > 0 else -x


#: Functions that cannot be element ops, each with the error and a part of its message.
WRONG = [
    (branches, TypeError, "cannot depend on an element.*use mt.ops.where"),
    (
        lambda x: mt.cond(x > 0, lambda: x, lambda: -x),
        TypeError,
        "mt.cond: pred is a number or a truth value for each element; select by mt.ops.where instead",
    ),
    (lambda x: max(x, 0), TypeError, "cannot depend on an element"),
    (lambda x: math.exp(x), TypeError, "an element has no value while the op is defined; use methods, such as x.exp"),
    (lambda x: mt.ops.softmax(x), TypeError, "cannot call 'softmax', which works on rows"),
    (lambda x: x.sum(), TypeError, "cannot call 'sum', which works on rows; define a row op with mt.row_op"),
    (lambda x: mt.ops.rand_like(x), TypeError, "cannot call 'rand_like', which is not computed element by element"),
    (
        lambda x: (x > 0) + 1,
        TypeError,
        r"'add' takes numbers, got a condition; write mt.ops.where\(condition, 1.0, 0.0\)",
    ),
    (lambda x: None, TypeError, "the function returned nothing"),
    (lambda x: (), TypeError, "the function returned nothing"),
    (lambda x: "text", TypeError, "expected a real number, got str"),
    (lambda x: x == "text", TypeError, "expected a real number, got str"),
    (lambda x: x != None, TypeError, "expected a real number, got NoneType"),  # noqa: E711
    (lambda x: x * 1j, TypeError, "expected a real number, got complex"),
    (lambda x: x + np.ones(3), TypeError, "expected a real number, got ndarray"),
    (lambda x: mt.ops.multiply(x), TypeError, r"'multiply' lacks the argument 'y'; call it as multiply\(x, y\)"),
    (lambda x: x.maximum(), TypeError, "'maximum' lacks the argument 'y'"),
    (lambda x: mt.where(x > 0, x), TypeError, "'where' lacks the argument 'y'"),
    (lambda x: mt.ops.add_(x, 1), TypeError, "'add_' changes 'x' in place"),
    (lambda x: x.exp_(), TypeError, "'exp_' changes 'x' in place"),
    (lambda x: x @ x, TypeError, "'@' is not defined for an element; define a row op"),
    (lambda x: divmod(x, 2), TypeError, "write x // y and x % y"),
    (lambda x: divmod(2, x), TypeError, "write x // y and x % y"),
    (lambda x: x + None, TypeError, "got NoneType; an optional input that is not given is None"),
    (lambda x: x + [1.0], TypeError, "got list; make it a parameter"),
    (lambda x: x + 2**63, ValueError, "does not fit into int64; write a float"),
    (lambda x: sum((x + k for k in range(20_000)), 0), ValueError, "the function has more than 16384 steps"),
    (lambda x: x.mul_add(x), TypeError, "'mul_add' takes 2 arguments, got 1"),
    (lambda x: (x > 0).normal_cdf(), TypeError, "'normal_cdf' takes numbers, got a condition"),
    (lambda x: x.expp(), AttributeError, "there is no function 'expp' of elements.*did you mean 'exp'"),
    (lambda x: x.shape, AttributeError, "'shape' is an attribute of tensors, not of elements"),
    (lambda x: x.median(), AttributeError, r"there is no function 'median' of elements; see help\(mt.element_op\)"),
    (lambda x: np.tanh(x), TypeError, r"NumPy's 'tanh' cannot compute an element.*; write x.tanh\(\)"),
    (lambda x: np.fabs(x), TypeError, r"; write x.abs\(\)"),
    (lambda x: np.arctan2(1.0, x), TypeError, r"; write mt.ops.arctan2\(x, y\)"),
    (lambda x: np.spacing(x), TypeError, "NumPy's 'spacing' cannot compute an element.*use methods, such as x.exp"),
    (lambda x: np.add.reduce(x), TypeError, "NumPy's 'add' cannot compute an element"),
    (lambda x: math.tanh(x), TypeError, "an element has no value while the op is defined; use methods, such as x.exp"),
    (lambda x: math.floor(x), TypeError, r"; use x.floor\(\)"),
    (lambda x: round(x), TypeError, r"; use x.round\(\)"),
    (lambda x: x[0], TypeError, "define a row op with mt.row_op"),
    (lambda x: np.asarray(x), TypeError, "an element cannot become an array"),
    (lambda x: np.ones(3) + x, TypeError, "expected a real number, got ndarray"),
    (lambda x: x * mt.Tensor([1.0]), TypeError, "an element op cannot use a Tensor"),
    (lambda *xs: xs[0], TypeError, "the input 'xs' of an element op cannot be variadic"),
    (lambda x: x << 1.5, ValueError, "no dtype supports all functions of its program: they take only integer"),
    (lambda x: (x >> 8) * 2**-24, ValueError, "dtypes, which cannot hold all constants: out = "),
    (lambda x: (x >> 8) * x.exp(), ValueError, "some take only integers, others only floating dtypes: out = "),
    (lambda x: mt.ops.gelu(x, approximate="tan"), ValueError, "'none', 'tanh'"),
]


@pytest.mark.parametrize(("function", "error", "words"), WRONG)
def test_what_cannot_be_an_element_op_is_an_error(function, error, words):
    with pytest.raises(error, match=words):
        mt.element_op(name="docs::wrong")(function)
    assert "docs::wrong" not in mt.list_custom_ops_py()


def test_integers_that_do_not_fit_are_not_truncated():
    op = mt.element_op(name="docs::large")(lambda x: x + 2**40)
    out = op(mt.Tensor([-1, 5]))
    assert out.dtype == mt.int64 and out.tolist() == [2**40 - 1, 2**40 + 5]
    with pytest.raises(TypeError, match="got int32; convert it with astype"):
        op(mt.Tensor([-1, 5], dtype="int32"))


def test_conditions_and_numbers_combine_in_any_order():
    op = mt.element_op(name="docs::combined")(lambda x: ((x > 0) & x, x & (x > 0), (x > 0) ^ np.True_))
    for out in op(mt.Tensor([-1.0, 0.0, 2.0])):
        assert out.dtype == mt.bool
    assert [out.tolist() for out in op(mt.Tensor([-1.0, 0.0, 2.0]))][:2] == [[False, False, True]] * 2


def test_any_callable_can_be_an_element_op():
    import functools

    class Scaled:
        def __call__(self, x):
            return x * 3

    def positional(x, /, y):
        return x - y

    scaled = functools.partial(lambda factor, x: x * factor, 2)
    assert mt.element_op(name="docs::partial")(scaled)(mt.ones(1)).tolist() == [2.0]
    assert mt.element_op(name="docs::object")(Scaled())(mt.ones(1)).tolist() == [3.0]
    assert mt.element_op(name="docs::positional")(positional)(mt.ones(1), mt.ones(1)).tolist() == [0.0]
    with pytest.raises(TypeError, match="a partial has no name; pass name="):
        mt.element_op(scaled)
    with pytest.raises(TypeError, match="takes a function, got str; pass the name as name="):
        mt.element_op("docs::name")
    with pytest.raises(TypeError, match="where must be a text"):
        mt.element_op(name="docs::wrong", where=3)(Scaled())
    with pytest.raises(TypeError, match="outputs must be a list of names"):
        mt.element_op(name="docs::wrong", outputs="ab")(Scaled())


def test_an_error_in_a_condition_names_the_where_clause():
    with pytest.raises(ValueError, match="op 'docs::wrong': where clause: 'k' is neither a dimension nor an attribute"):
        mt.element_op(name="docs::wrong", where="k > 0")(lambda x: x)
    with pytest.raises(
        ValueError, match="where clause: expected a value, found the end; write the clause like 'k <= n,"
    ):
        mt.element_op(name="docs::wrong", where="b >")(squareplus)


def test_opcheck_takes_detached_values_as_constants():
    mt.element_op(name="docs::straight_through")(lambda x: x + (mt.ops.round(x) - x).detach())
    mt.testing.opcheck("docs::straight_through")


def test_elements_do_not_leave_their_op():
    kept = []
    mt.element_op(name="docs::leaks")(lambda x: kept.append(x) or x)
    with pytest.raises(TypeError, match="an element of op 'docs::leaks' was kept"):
        mt.element_op(name="docs::takes")(lambda x: x + kept[0])


def test_the_number_of_names_is_that_of_the_outputs():
    with pytest.raises(ValueError, match="the function returned 2 outputs, expected 1"):
        mt.element_op(name="docs::pair", outputs=["one"])(lambda x: (x, x))


def test_a_notebook_cell_can_be_run_again():
    def cell(factor):
        def scaled(x):
            return x * factor

        return scaled

    for factor in (2, 3):
        assert mt.element_op(name="docs::again")(cell(factor))(mt.ones(1)).tolist() == [factor]


def test_a_conflict_of_names_is_an_error():
    with pytest.raises(ValueError, match="'swish'"):
        mt.element_op(name="swish")(lambda x: x)


def test_a_detached_number_has_no_gradient():
    @mt.element_op
    def element_test_rounded(x):
        """Rounds, with the gradient of the identity."""
        return x + (mt.ops.round(x) - x).detach()

    x = mt.Tensor([0.25, 1.75, -2.5], requires_grad=True)
    y = element_test_rounded(x)
    assert y.tolist() == [0.0, 2.0, -2.0]
    assert mt.grad(y.sum(), x)[0].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("power", [-1, -2, -3, -5])
def test_a_negative_power_has_the_gradient_of_a_power_at_the_ends_of_the_range(power):
    op = mt.element_op(name="inverse_power")(lambda x: x**power)
    of_op, of_power = (mt.Tensor([1e-30, 0.0, math.inf, 1e30, 2.0, -0.5], requires_grad=True) for _ in range(2))
    op(of_op).sum().backward()
    (of_power**power).sum().backward()
    np.testing.assert_allclose(of_op.grad.numpy(), of_power.grad.numpy(), rtol=1e-6)


def test_an_op_has_an_input_and_different_outputs():
    with pytest.raises(TypeError, match="op 'nothing': expected at least one input, a parameter without a default"):
        mt.element_op(name="nothing")(lambda a=1.0: a)
    with pytest.raises(ValueError, match=r"op 'same': the names of outputs must differ, got \['a', 'a'\]"):
        mt.element_op(name="same", outputs=["a", "a"])(lambda x: (x, x))


def test_a_default_fulfils_the_conditions():
    with pytest.raises(ValueError, match="op 'scaled' needs k > 0, got k = -1.0 by default"):
        mt.element_op(name="scaled", where="k > 0")(lambda x, k=-1: x * k)


def test_an_integer_that_is_too_large_is_an_error_with_its_name():
    @mt.element_op(name="times")
    def times(x, k: int = 2):
        return x * k

    with pytest.raises(ValueError, match=rf"op 'times': attribute 'k': {2**70} does not fit into int64"):
        times(mt.ones(2), k=2**70)


def test_integers_are_stored_beside_floats():
    @mt.element_op(name="docs::steps", where="scale > 0", dtypes={"out": mt.int8, "offset": "int16"})
    def steps(x, offset, scale: float = 0.5):
        return (x / scale).round() + offset

    x = mt.Tensor([0.26, -0.74, 100.0, float("nan"), -200.0], requires_grad=True)
    offset = mt.Tensor([1, 2, 3, 4, 5], dtype=mt.int16)
    y = steps(x, offset)
    assert (y.dtype, y.tolist()) == (mt.int8, [2, 1, 127, 0, -128])
    assert not y.requires_grad
    assert steps(x.astype(mt.float64), offset, scale=2.0).tolist() == [1, 2, 53, 0, -95]
    with pytest.raises(TypeError, match="'offset'"):
        steps(x, x)
    mt.testing.opcheck(steps)


def test_a_stored_integer_is_a_constant_for_the_gradient():
    @mt.element_op(name="docs::scaled", dtypes={"code": "uint8"})
    def scaled(code, scale):
        return code * scale * scale

    code, scale = mt.Tensor([0, 3, 255], dtype=mt.uint8), mt.Tensor([2.0], requires_grad=True)
    y = scaled(code, scale)
    assert y.tolist() == [0.0, 12.0, 1020.0]
    y.sum().backward()
    assert scale.grad.tolist() == [4.0 * 258]
    mt.testing.opcheck(scaled)


def test_positions_of_rows_are_stored_as_integers():
    @mt.row_op(name="docs::top", outputs=["value", "at"], dtypes={"at": "int64"})
    def top(x):
        return x.max(), x.argmax()

    value, at = top(mt.Tensor([[1.0, 5.0, 2.0], [7.0, 0.0, 7.0]]))
    assert (value.tolist(), at.tolist(), at.dtype) == ([5.0, 7.0], [1, 0], mt.int64)
    mt.testing.opcheck(top)


@pytest.mark.parametrize(
    ("dtypes", "error", "words"),
    [
        (
            {"steps": "int8"},
            ValueError,
            "op 'docs::wrong': there is no tensor 'steps' whose dtype could be int8",
        ),
        ({"out": "float16"}, ValueError, "'out' cannot have the dtype float16 of its own; expected one of"),
        ({"x": "int8", "y": "int8"}, ValueError, "all inputs have dtypes of their own"),
        ({"out": "int7"}, ValueError, "op 'docs::wrong': the dtype of 'out': unknown dtype 'int7'"),
        ({"out": None}, TypeError, "op 'docs::wrong': the dtype of 'out': expected a dtype, .* got None"),
        (["out"], TypeError, r"dtypes must be a dict such as \{'steps': 'int8'\}, got \['out'\]"),
    ],
)
def test_wrong_dtypes_of_tensors_are_refused(dtypes, error, words):
    with pytest.raises(error, match=words):
        mt.element_op(name="docs::wrong", dtypes=dtypes)(lambda x, y: x + y)


def test_a_truth_value_is_not_stored_as_an_integer():
    with pytest.raises(ValueError, match="the output 'out' is a truth value, so its dtype is bool"):
        mt.element_op(name="docs::wrong", dtypes={"out": "int8"})(lambda x: x > 0)
