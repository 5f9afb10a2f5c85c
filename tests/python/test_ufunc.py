"""`mt.as_ufunc` and `mt.gufunc_signature`, compared with NumPy's ufuncs."""

import pickle

import numpy as np
import pytest

import minitensor as mt

UFUNC = mt.as_ufunc


def same(made, expected):
    assert type(made) is type(expected)
    if isinstance(expected, np.ndarray | np.generic):
        assert (made.dtype, made.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(made, expected, rtol=1e-6)


#: Ops with a ufunc of NumPy that has the same name and meaning.
PAIRS = [
    "add",
    "subtract",
    "multiply",
    "maximum",
    "minimum",
    "hypot",
    "logaddexp",
    "logical_and",
    "logical_or",
    "logical_xor",
]


@pytest.fixture(params=PAIRS)
def pair(request):
    return UFUNC(request.param), getattr(np, request.param)


@pytest.fixture
def a(rng):
    return rng.normal(size=(3, 4, 5))


def test_a_call_is_that_of_numpy(pair, a):
    ours, theirs = pair
    for x, y in (
        (a, a[0]),
        (a[:, :1], a[0, 0]),
        (a, 2.0),
        (1.5, a),
        (a.tolist(), a[0].tolist()),
        (2.0, 3.0),
        (a[0, 0, 0], 1.0),
    ):
        same(ours(x, y), theirs(x, y))
    same(ours.outer(a[0], a[1, 0]), theirs.outer(a[0], a[1, 0]))


def test_the_attributes_are_those_of_numpy(pair):
    ours, theirs = pair
    for name in ("__name__", "nin", "nout", "nargs", "signature", "identity"):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert ours.ntypes == len(ours.types) and "dd->" in "".join(ours.types)
    assert ours.__doc__ and repr(ours) == f"<ufunc of minitensor's op '{ours.__name__}'>"


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_reductions_of_one_axis_are_those_of_numpy(pair, a, axis):
    ours, theirs = pair
    mask = a > 0
    for keepdims in (False, True):
        same(ours.reduce(a, axis=axis, keepdims=keepdims), theirs.reduce(a, axis=axis, keepdims=keepdims))
        same(ours.reduce(a, axis, initial=1.0, where=mask), theirs.reduce(a, axis, initial=1.0, where=mask))
    same(ours.accumulate(a, axis=axis), theirs.accumulate(a, axis=axis))
    same(ours.reduceat(a, [0, 2, 1], axis=axis), theirs.reduceat(a, [0, 2, 1], axis=axis))


def test_reductions_of_several_axes_are_those_of_numpy(pair, a):
    ours, theirs = pair
    for axis in ((0, 2), (2, 1), None, ()):
        if theirs is np.subtract and axis != ():
            with pytest.raises(ValueError, match="the order of operands matters, so at most one axis"):
                ours.reduce(a, axis=axis)
            continue
        same(ours.reduce(a, axis=axis), theirs.reduce(a, axis=axis))
        same(ours.reduce(a, axis=axis, keepdims=True), theirs.reduce(a, axis=axis, keepdims=True))


def test_reductions_of_nothing_have_the_identity(pair):
    ours, theirs = pair
    for x in (np.ones((0, 2)), np.ones(0)):
        try:
            expected = theirs.reduce(x)
        except ValueError:
            with pytest.raises(ValueError, match="the axis has no elements, and the op has no identity; pass initial"):
                ours.reduce(x)
        else:
            same(ours.reduce(x), expected)
        same(ours.reduce(x, initial=1.0), theirs.reduce(x, initial=1.0))


def test_at_counts_every_occurrence_of_an_index(pair):
    ours, theirs = pair
    one, two = np.arange(12.0).reshape(3, 4), np.arange(12.0).reshape(3, 4)
    for indices, b in (([0, 2, 0], 2.0), (([0, 0, 1], [1, 1, 3]), [1.0, 2.0, 3.0]), (slice(0, 2), 1.0), ([], 1.0)):
        ours.at(one, indices, b)
        theirs.at(two, indices, b)
        np.testing.assert_allclose(one, two)
    x = np.zeros(3)
    UFUNC("exp").at(x, [0, 0, 2])
    np.testing.assert_allclose(x, [np.e, 0, 1])


def test_a_reduction_applies_an_op_from_the_left_if_the_order_matters():
    x = np.array([2.0, 3.0, 2.0])
    assert UFUNC("power").reduce(x) == 64
    assert (
        UFUNC("divide").reduce(np.array([8, 2, 2])) == 2 and UFUNC("divide").reduce(np.array([8, 2])).dtype == "float32"
    )
    assert UFUNC("lerp").nin == 3
    assert UFUNC("subtract").reduce(x, initial=10.0) == 3


def test_out_where_and_casting(a):
    add, out = UFUNC("add"), np.zeros(a.shape)
    for given in (out, (out,)):
        assert add(a, 1, out=given) is out
        np.testing.assert_array_equal(out, a + 1)
    assert add(a, 2, out) is out and out[0, 0, 0] == a[0, 0, 0] + 2
    mask = a[0] > 0
    expected = np.where(mask, a + 5, out)
    assert add(a, 5, out=out, where=mask) is out
    np.testing.assert_array_equal(out, expected)
    made = add(1.0, np.ones(2), where=[[True, False]])
    assert made.shape == (1, 2) and made[0, 0] == 2
    wide = np.zeros((2, 3))
    np.testing.assert_array_equal(add(np.ones(3), np.ones(3), out=wide), np.full((2, 3), 2.0))
    x = np.arange(6.0)
    add(x[:-1], 1, out=x[1:])
    np.testing.assert_array_equal(x, [0, 1, 2, 3, 4, 5])
    assert add(np.ones(2), 1, out=np.zeros(2, "f4")).dtype == "float32"
    assert add(np.ones(2), 1, out=np.zeros(2, "i4"), casting="unsafe").tolist() == [2, 2]
    assert isinstance(UFUNC("exp")(np.array(0.0), out=...), np.ndarray) and isinstance(UFUNC("exp")(0.0), np.float64)
    values, indices = UFUNC("sort")(np.array([3.0, 1.0]), out=(np.zeros(2), None))
    assert values.tolist() == [1.0, 3.0] and indices.tolist() == [1, 0]
    assert add(np.ones((2, 3)), 1, order="F").flags.f_contiguous


def test_dtype_and_signature_choose_a_loop():
    add = UFUNC("add")
    assert add(np.ones(2), 1, dtype="f4").dtype == "float32"
    assert add(np.ones(2, "i4"), 1, dtype=float).dtype == "float64"
    assert add(np.ones(2), 1, signature="ff->f").dtype == "float32"
    assert add(np.ones(2), 1, signature=(None, None, "f4")).dtype == "float32"
    assert UFUNC("less")(1.0, np.ones(2), dtype=bool).dtype == bool
    for keywords, match in (
        ({"dtype": "i4"}, "cannot cast input 'x' from float64 to int32 with casting rule 'same_kind'"),
        ({"dtype": "f4", "casting": "safe"}, "cannot cast input 'x' from float64 to float32 with casting rule 'safe'"),
        ({"dtype": "M8[s]"}, "has no loop for the dtype datetime64"),
        ({"dtype": "f4", "signature": "ff->f"}, "pass dtype or signature, not both"),
        ({"out": np.zeros(2, "i4")}, "cannot cast the result from float64 to int32"),
        ({"where": [1, 0]}, "where must be an array of bool, got int64"),
        ({"out": [0.0]}, "out must be an array, got list"),
    ):
        with pytest.raises(TypeError, match=match):
            add(np.ones(2), np.ones(2), **keywords)
    for option in ("casting", "order"):
        with pytest.raises(ValueError, match=f"{option} must be one of .*, got 'any'"):
            add(1.0, 2.0, **{option: "any"})
    with pytest.raises(ValueError, match="signature needs 3 dtypes, got 2"):
        add(1.0, 2.0, signature="f->f")
    with pytest.raises(ValueError, match=r"out has the shape \(1,\), but the result has \(2,\)"):
        add(np.ones(2), 1, out=np.zeros(1))


def test_attributes_are_keywords():
    clamp = UFUNC("clamp")
    assert clamp(np.array([-1.0, 2.0]), lo=0.0, hi=1.0).tolist() == [0.0, 1.0]
    with pytest.raises(
        TypeError, match=r"clamp\(\) has no argument 'low'; it has the attributes \['lo', 'hi'\] and \['out'"
    ):
        clamp(np.ones(1), low=1)
    with pytest.raises(TypeError, match="op 'clamp': attribute 'lo'"):
        clamp(np.ones(1), lo="a")


def test_core_dimensions_are_those_of_a_generalized_ufunc(rng):
    product = UFUNC("linalg::matrix_product")
    a, b = rng.normal(size=(2, 1, 3, 4)), rng.normal(size=(5, 4, 6))
    assert product.signature == "(m,k),(k,n)->(m,n)"
    np.testing.assert_allclose(product(a, b), a @ b)
    axes = [(-2, -1), (1, 0), (0, 1)]
    np.testing.assert_allclose(product(a, b.T, axes=axes), np.matmul(a, b.T, axes=axes))
    norm = UFUNC("layer_norm")
    x, w = rng.normal(size=(3, 2, 4)), rng.normal(size=(2, 4))
    for index in range(2):
        np.testing.assert_allclose(norm(x, w)[:, index], norm(x[:, index], w[index]))
    assert norm(x, np.ones((5, 1, 1, 4))).shape == (5, 3, 2, 4)
    assert norm(x[:1], np.ones((0, 1, 4))).shape == (0, 2, 4)
    np.testing.assert_allclose(norm(x.T, axis=0), norm(x).T)
    np.testing.assert_allclose(UFUNC("sum")(x, axis=(0, 1), keepdims=True), x.sum((0, 1), keepdims=True))
    np.testing.assert_allclose(
        UFUNC("row::cross_entropy")(x, np.zeros((3, 2), int)), mt.ops.row.cross_entropy(x, np.zeros((3, 2), int))
    )


@pytest.mark.parametrize(
    "call, match",
    [
        (
            lambda: UFUNC("softmax").reduce(np.ones(2)),
            r"softmax.reduce\(\) is not defined: the op has core dimensions \(n\)->\(n\)",
        ),
        (
            lambda: UFUNC("swish").reduce(np.ones(2)),
            r"swish.reduce\(\) needs an op with 2 inputs and 1 output, got 1 and 1",
        ),
        (lambda: UFUNC("lerp").accumulate(np.ones(2)), "needs an op with 2 inputs"),
        (lambda: UFUNC("swish").outer(1, 2), "needs an op with 2 inputs"),
        (lambda: UFUNC("lerp").at(np.ones(2), 0, 1.0), "needs an op with 1 or 2 inputs"),
        (lambda: UFUNC("add").at(np.ones(2), 0), r"add.at\(\) takes 3 operands"),
        (lambda: UFUNC("exp").at(np.ones(2), 0, 1.0), r"exp.at\(\) takes 2 operands"),
        (lambda: UFUNC("add").at([1.0], 0, 1.0), "the first operand must be an array, got list"),
        (lambda: UFUNC("exp").at(np.ones(2, int), 0), "cannot cast the result from float32 to int64"),
        (lambda: UFUNC("add").reduce(np.ones(2), alpha=1), "has no argument 'alpha'"),
        (lambda: UFUNC("swish")(np.ones(2), axis=0), "is an element op, which has no axes, axis and keepdims"),
        (lambda: UFUNC("softmax")(np.ones(2), where=[True, False]), "does not support where"),
        (lambda: UFUNC("softmax")(np.ones(2), axes=[0, 0]), "the op has the attribute axis; pass axis instead of axes"),
        (
            lambda: UFUNC("linalg::matrix_product")(np.ones((2, 2)), np.ones((2, 2)), axis=0),
            "axis needs exactly one core dimension",
        ),
        (lambda: UFUNC("layer_norm")(np.ones(2), keepdims=True), "does not support keepdims"),
        (lambda: UFUNC("add")(1.0), r"add\(\) takes 2 to 3 positional arguments, got 1"),
        (lambda: UFUNC("add")(1.0, 2.0, None, out=np.ones(1)), "out is passed by position and by keyword"),
        (lambda: UFUNC("reshape"), "as_ufunc: op 'reshape' computes the shape of its result by a function"),
        (lambda: UFUNC("concat"), "as_ufunc: op 'concat' takes a list of tensors as 'tensors'"),
        (lambda: UFUNC("add_"), "as_ufunc: op 'add_' changes its input 'x' in place"),
        (lambda: UFUNC(np.add), "as_ufunc takes an op such as mt.ops.swish, or its name"),
        (lambda: UFUNC("swish")(np.ma.ones(2)), "its mask would be lost"),
    ],
)
def test_what_makes_no_sense_raises_a_type_error(call, match):
    with pytest.raises(TypeError, match=match):
        call()


class Overriding:
    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        return ufunc.__name__, method, len(inputs), sorted(keywords)


class Refusing:
    __array_ufunc__ = None


class Ignoring:
    def __array_ufunc__(self, *_, **__):
        return NotImplemented


METHODS = {
    "reduce": lambda add, x: add.reduce(x, axis=1, dtype="float64", out=np.ones(2)),
    "reduce without options": lambda add, x: add.reduce(x),
    "accumulate": lambda add, x: add.accumulate(x, axis=1),
    "reduceat": lambda add, x: add.reduceat(x, [0, 1]),
    "outer": lambda add, x: add.outer(np.ones(2), x),
    "at": lambda add, x: add.at(x, [0], 1),
}


@pytest.mark.parametrize("name", METHODS)
def test_other_classes_override_the_methods_as_in_numpy(name):
    assert METHODS[name](UFUNC("add"), Overriding()) == METHODS[name](np.add, Overriding())
    with pytest.raises(TypeError):
        METHODS[name](np.add, Ignoring())
    with pytest.raises(TypeError, match="operand types do not support add"):
        METHODS[name](UFUNC("add"), Ignoring())


def test_an_axis_that_does_not_exist_is_the_error_of_numpy():
    for call in (UFUNC("add").reduce, UFUNC("add").accumulate):
        with pytest.raises(np.exceptions.AxisError, match="axis 5 is out of bounds for array of dimension 2"):
            call(np.ones((2, 3)), axis=5)


def test_other_classes_override_a_call_as_in_numpy():
    assert UFUNC("add")(np.ones(2), Overriding(), casting="safe") == ("add", "__call__", 2, ["casting"])
    assert UFUNC("clamp")(Overriding(), lo=0.0, out=np.ones(2)) == ("clamp", "__call__", 1, ["lo", "out"])
    assert UFUNC("add")(Ignoring(), Overriding())[0] == "add"
    for refused, match in ((Refusing(), "does not support ufuncs"), (Ignoring(), "operand types do not support add")):
        with pytest.raises(TypeError, match=match):
            UFUNC("add")(np.ones(2), refused)
    assert isinstance(UFUNC("swish")(mt.ones(2)), np.ndarray)
    assert (
        type(UFUNC("swish")(np.ones(2).view(Own))) is Own
        and type(UFUNC("swish")(np.ones(2).view(Own), subok=False)) is np.ndarray
    )


class Own(np.ndarray):
    pass


def test_ufuncs_are_pickled_by_the_name_of_their_op():
    again = pickle.loads(pickle.dumps(UFUNC("hypot")))
    assert again(3.0, 4.0) == 5 and again.reduce([3.0, 4.0]) == 5


def test_the_pickle_of_a_ufunc_of_another_version_says_so_when_it_is_called():
    data = pickle.dumps(UFUNC("hypot"))
    other = data.replace(mt.__version__.encode(), b"9.9.9")
    with pytest.raises(RuntimeError, match="op 'hypot' was pickled with minitensor 9.9.9, but this process has"):
        pickle.loads(other)(3.0, 4.0)


SIGNATURES = {
    "swish": "()->()",
    "hypot": "(),()->()",
    "layer_norm": "(n),(n),(n)->(n)",
    "sort": "(n)->(n),(n)",
    "sum": "(n)->()",
    "linalg::matrix_product": "(m,k),(k,n)->(m,n)",
    "embedding": "(v,e),()->(e)",
}


@pytest.mark.parametrize(("op", "signature"), SIGNATURES.items())
def test_the_signature_is_the_shape_clause(op, signature):
    assert mt.gufunc_signature(op) == signature


def test_sizes_that_are_attributes_are_numbers_in_a_signature():
    assert mt.gufunc_signature("one_hot", num_classes=3) == "()->(3)"
    assert mt.gufunc_signature(mt.ops.topk, k=2) == "(n)->(2),(2)"


@pytest.mark.parametrize(
    "op, attrs, match",
    [
        (
            "topk",
            {},
            "the size 'k' of 'values' is neither a name nor a number, which NumPy's notation requires; pass k=",
        ),
        ("window::unfold", {}, r"the size 'c \* taps' of 'out' is neither a name nor a number"),
        ("flip", {}, "op 'flip' computes the shape of its result by a function"),
        ("stack", {}, "op 'stack' takes a list of tensors as 'tensors'"),
        ("add_", {}, "op 'add_' changes its input 'x' in place"),
        ("topk", {"q": 1}, r"op 'topk' has no attribute 'q'; it has \['k', "),
        (3, {}, "gufunc_signature takes an op such as mt.ops.swish, or its name, got 3"),
    ],
)
def test_rules_that_the_notation_cannot_express_raise(op, attrs, match):
    with pytest.raises(TypeError, match=match):
        mt.gufunc_signature(op, **attrs)
