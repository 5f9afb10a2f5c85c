"""Ops on Dask arrays."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

da = pytest.importorskip("dask.array")

import minitensor as mt  # noqa: E402


@pytest.fixture
def a(rng):
    return rng.normal(size=(6, 5, 4))


def check(lazy, expected):
    """Compares a Dask array with an array, before and after it is computed."""
    expected = np.asarray(expected)
    assert isinstance(lazy, da.Array)
    assert (lazy.dtype, lazy.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(lazy.compute(), expected, rtol=1e-6)


def never(*_):
    raise AssertionError("a block was computed")


def test_element_ops_compute_each_block_and_broadcast(a):
    x = da.from_array(a, chunks=(2, 5, 2))
    check(mt.map_blocks("swish", x), mt.ops.swish(a))
    check(mt.map_blocks(mt.ops.clamp, x, lo=0.0, hi=1.0), a.clip(0, 1))
    check(mt.map_blocks("less", x, 0.5), a < 0.5)
    check(mt.map_blocks("add", 2.0, x), a + 2)
    check(mt.map_blocks("add", x, np.arange(4.0)), a + np.arange(4.0))
    for other in (da.ones((5, 1), chunks=1), da.ones((6, 5, 4), chunks=(3, 2, 1)), da.ones((), chunks=())):
        check(mt.map_blocks("add", x, other), a + 1)


def test_ops_with_core_dimensions(a, rng):
    x, w = da.from_array(a, chunks=(2, 3, 4)), rng.normal(size=4)
    check(mt.map_blocks("layer_norm", x), mt.ops.layer_norm(a))
    check(mt.map_blocks("layer_norm", x, w, da.zeros(4)), mt.ops.layer_norm(a, w))
    check(mt.map_blocks("layer_norm", x, bias=w), mt.ops.layer_norm(a, bias=w))
    check(mt.map_blocks("linalg::matrix_product", x.rechunk((2, -1, -1)), w.reshape(4, 1)), a @ w.reshape(4, 1))
    check(
        mt.map_blocks("embedding", w.reshape(2, 2), da.ones((3, 2), dtype=int, chunks=1)),
        np.broadcast_to(w[2:], (3, 2, 2)),
    )
    check(mt.map_blocks("one_hot", da.ones((3, 2), dtype=int, chunks=1), num_classes=3), [[[0, 1, 0]] * 2] * 3)


@pytest.mark.parametrize("axis", [0, 1, -1, (1, 2), [2, 0], None])
@pytest.mark.parametrize("keepdims", [False, True])
def test_axes_are_those_of_the_op(a, axis, keepdims):
    core = range(3) if axis is None else [k % 3 for k in np.atleast_1d(axis)]
    x = da.from_array(a, chunks=tuple(-1 if k in core else 2 for k in range(3)))
    expected = a.sum(axis=tuple(core), keepdims=keepdims)
    check(mt.map_blocks("sum", x, axis=axis, keepdims=keepdims), expected)
    check(mt.map_blocks("standardize", x, axis=axis), mt.ops.standardize(a, axis=axis))
    if isinstance(axis, int):
        check(mt.map_blocks("softmax", x, axis=axis), mt.ops.softmax(a, axis=axis))


def test_several_outputs_are_a_tuple(a):
    x = da.from_array(a, chunks=(2, 5, 2))
    for name, attrs in (("sort", {"descending": True}), ("topk", {"k": 3})):
        expected = getattr(mt.ops, name)(a, axis=1, **attrs)
        made = mt.map_blocks(name, x, axis=1, **attrs)
        assert isinstance(made, tuple)
        for lazy, result in zip(made, expected, strict=True):
            check(lazy, result)


def test_functions_of_ops_and_ufuncs_dispatch_on_dask_arrays(a):
    x = da.from_array(a, chunks=(2, 5, 4))
    check(mt.ops.swish(x), mt.ops.swish(a))
    check(mt.ops.layer_norm(x, weight=np.ones(4)), mt.ops.layer_norm(a))
    check(mt.as_ufunc("swish")(x), mt.ops.swish(a))
    check(mt.as_ufunc("hypot")(x, 2.0), np.hypot(a, 2.0))


def test_dtypes_follow_the_rules_of_the_op(a):
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    for dtype in ("float16", bfloat16, "float32", "int32", "bool"):
        made = a.astype(dtype)
        check(mt.map_blocks("sigmoid", da.from_array(made, chunks=2)), mt.ops.sigmoid(made))
    check(mt.map_blocks("add", da.ones(3, dtype="f4"), da.ones(3, dtype="f8")), np.full(3, 2.0))
    check(mt.map_blocks("add", da.ones(3, dtype="f4"), 1.5), np.full(3, 2.5, "f4"))


def test_nothing_is_computed_before_the_result_is_requested(a):
    lazy = da.from_array(a, chunks=2).map_blocks(never, dtype="f8")
    made = mt.map_blocks("softmax", lazy.rechunk((2, -1, 2)), axis=1)
    with pytest.raises(AssertionError, match="a block was computed"):
        made.compute()


def test_unknown_sizes_stay_unknown(a):
    x = da.from_array(a, chunks=(2, 5, 4))
    part = x[x[:, 0, 0] > 0]
    made = mt.map_blocks("softmax", part, axis=-1)
    assert np.isnan(made.shape[0])
    np.testing.assert_allclose(made.compute(), mt.ops.softmax(a[a[:, 0, 0] > 0], axis=-1))


def test_equal_calls_have_equal_names(a):
    x = da.from_array(a, chunks=(2, 5, 4))
    one, two, other = (mt.map_blocks("softmax", x, axis=k).name for k in (1, 1, 2))
    assert one == two != other


@pytest.mark.parametrize(
    "call, error, match",
    [
        (
            lambda x: mt.map_blocks("softmax", x, axis=0),
            ValueError,
            r"op 'softmax' needs whole rows along axis 0 of input 'x', which is divided into 3 chunks; rechunk the "
            r"array first: "
            r"x.rechunk\(\{0: -1\}\)",
        ),
        (
            lambda x: mt.map_blocks("softmax", x, axis=3),
            ValueError,
            "op 'softmax': axis 3 is out of bounds for array of dimension 3",
        ),
        (lambda x: mt.map_blocks("sum", x, axis=(1, 1)), ValueError, "contains an axis twice"),
        (lambda x: mt.map_blocks("layer_norm", x, np.ones(3)), ValueError, "expected size 4 for dimension n, got 3"),
        (lambda x: mt.map_blocks("add", x, da.ones(3)), ValueError, "broadcast"),
        (
            lambda x: mt.map_blocks("bitwise_and", x, x),
            TypeError,
            "op 'bitwise_and': 'x' takes integer dtypes, got float64",
        ),
        (
            lambda x: mt.map_blocks("swish", x.astype("M8[s]")),
            TypeError,
            "op 'swish': input 'x': unknown dtype 'datetime64",
        ),
        (lambda x: mt.map_blocks("topk", x, k=9), ValueError, "op 'topk' needs k <= n"),
        (lambda x: mt.map_blocks("clamp", x, lo="a"), TypeError, "op 'clamp': attribute 'lo'"),
        (
            lambda x: mt.map_blocks("clamp", x, low=1),
            TypeError,
            r"op 'clamp' has no argument 'low'; it has \['x', 'lo', 'hi'\]",
        ),
        (lambda x: mt.map_blocks("swish", x, x), TypeError, "takes the inputs .* got 2 arrays"),
        (lambda x: mt.map_blocks("add", x, x=x), TypeError, "input 'x' is passed twice"),
        (lambda x: mt.map_blocks("matmul", x, x), TypeError, "computes the shape of its result by a function"),
        (lambda x: mt.map_blocks("concat", [x, x]), TypeError, "concat"),
        (lambda x: mt.map_blocks("add_", x, x), TypeError, "changes its input 'x' in place"),
        (
            lambda x: mt.map_blocks("add", x, mt.ones(4)),
            TypeError,
            "input 'y' must be a Dask array, an array of NumPy or a number, got Tensor",
        ),
        (lambda x: mt.map_blocks("nope", x), ValueError, "there is no op 'nope'"),
        (lambda x: mt.map_blocks(np.add, x, x), TypeError, "map_blocks takes an op"),
    ],
)
def test_wrong_calls_raise_when_they_are_made(a, call, error, match):
    x = da.from_array(a, chunks=(2, 5, 4)).map_blocks(never, dtype="f8")
    with pytest.raises(error, match=match):
        call(x)


def test_ops_refuse_objects_of_dask_that_are_no_arrays():
    delayed = pytest.importorskip("dask").delayed(np.ones)(3)
    with pytest.raises(TypeError, match="input 'x' must be a Dask array, .* got Delayed"):
        mt.ops.swish(delayed)
    with pytest.raises(TypeError, match="takes a list of tensors as 'tensors'"):
        mt.ops.concat([da.ones(2), np.ones(2)])


def test_errors_of_blocks_are_raised(a):
    labels = da.from_array(np.array([0, 5]), chunks=1)
    with pytest.raises((IndexError, ValueError), match="op 'one_hot'|op 'embedding'|5"):
        mt.map_blocks("embedding", a[0], labels).compute()


def test_the_example_normalizes_an_array_block_by_block():
    example = Path(__file__).parents[2] / "examples" / "large_array.py"
    done = subprocess.run([sys.executable, example, "--gigabytes", "0.3"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "mean -0.0000, variance 1.0000" in done.stdout.replace("mean 0", "mean -0")
