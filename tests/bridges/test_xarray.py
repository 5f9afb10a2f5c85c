"""Ops on labelled arrays of xarray, with and without Dask."""

import numpy as np
import pytest

xr = pytest.importorskip("xarray")
pytest.importorskip("dask.array")

import minitensor as mt  # noqa: E402

DIMS = ("time", "y", "x")


@pytest.fixture(params=["numpy", "dask"])
def x(request, rng):
    made = xr.DataArray(
        rng.normal(size=(6, 5, 4)), dims=DIMS, coords={"time": np.arange(6)}, name="T", attrs={"unit": "K"}
    )
    return made.chunk({"time": 2}) if request.param == "dask" else made


def check(made, expected, dims=DIMS):
    assert isinstance(made, xr.DataArray)
    assert (made.dims, made.dtype) == (dims, expected.dtype)
    np.testing.assert_allclose(made.values, expected)


def test_dimensions_coordinates_and_attributes_stay(x):
    a = x.values
    for made in (mt.map_blocks("swish", x), mt.ops.swish(x)):
        check(made, mt.ops.swish(a))
        assert (made.attrs, made.name, list(made.coords)) == ({"unit": "K"}, "T", ["time"])
    check(mt.map_blocks("add", x, 1.0), a + 1)
    check(mt.as_ufunc("hypot")(x, x), np.hypot(a, a))


def test_dimensions_are_matched_by_name(x):
    a, mean = x.values, x.mean("time")
    check(mt.map_blocks("subtract", x, mean), a - a.mean(0))
    check(mt.map_blocks("subtract", x, mean.T), a - a.mean(0))
    weight = xr.DataArray(np.arange(4.0), dims="x")
    check(mt.map_blocks("layer_norm", x, weight, np.ones(4)), mt.ops.layer_norm(a, weight.values, np.ones(4)))


def test_an_axis_is_the_name_of_a_dimension_or_a_number(x):
    a = x.values
    for axis in ("y", 1, -2):
        check(mt.map_blocks("softmax", x, axis=axis), mt.ops.softmax(a, axis=1))
        check(mt.map_blocks("sum", x, axis=axis, keepdims=True), a.sum(1, keepdims=True))
    check(mt.map_blocks("sum", x, axis=("x", "y")), a.sum((1, 2)), ("time",))


def test_sizes_change_and_new_dimensions_are_named(x):
    values, indices = mt.map_blocks("topk", x, k=2, axis="y")
    expected = mt.ops.topk(x.values, 2, axis=1)
    check(values, expected.values)
    check(indices, expected.indices)
    labels = (x * 0).astype(int)
    check(mt.map_blocks("one_hot", labels, num_classes=3), mt.ops.one_hot(labels.values, 3), (*DIMS, "num_classes"))


def test_wrong_calls_raise(x):
    with pytest.raises(ValueError, match="axis 'z' is not a dimension"):
        mt.map_blocks("softmax", x, axis="z")
    with pytest.raises(ValueError, match=r"dimension 'k' of input 'weight' must have the name 'x'"):
        mt.map_blocks("layer_norm", x, xr.DataArray(np.ones(4), dims="k"))
    with pytest.raises(TypeError, match="is a Dataset; apply the op to its variables"):
        mt.map_blocks("swish", x.to_dataset())
    if x.chunks is not None:
        with pytest.raises(
            ValueError, match=r"divided into 3 chunks; rechunk the array first: x.chunk\(\{'time': -1\}\)"
        ):
            mt.map_blocks("softmax", x, axis="time")
