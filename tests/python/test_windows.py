"""Tests of convolutions and pooling that are not in the table of references."""

import numpy as np
import pytest

import minitensor as mt


@pytest.fixture
def threads():
    before = mt.get_num_threads()
    yield mt.set_num_threads
    mt.set_num_threads(before)


@pytest.mark.parametrize(("weight", "groups"), [((40, 24, 3, 3), 1), ((24, 1, 5, 5), 24)])
@pytest.mark.parametrize("stride", [1, 2])
def test_results_are_the_same_for_any_number_of_threads(weight, groups, stride, rng, threads):
    x = mt.Tensor(rng.normal(size=(5, 24, 37, 41)).astype("float32"), requires_grad=True)
    w = mt.Tensor(rng.normal(size=weight).astype("float32"), requires_grad=True)

    def run(count):
        threads(count)
        y = mt.ops.conv2d(x, w, stride=stride, padding=1, groups=groups)
        return [y.detach().numpy(), *(g.numpy() for g in mt.grad(y.sum(), [x, w]))]

    for one, three in zip(run(1), run(3), strict=True):
        assert (one == three).all()


def test_one_number_applies_to_every_axis(rng):
    x, w = mt.Tensor(rng.normal(size=(2, 9, 8))), mt.Tensor(rng.normal(size=(3, 2, 3, 3)))
    all_of_them = mt.ops.conv2d(x, w, stride=[2, 2], padding=[1, 1], dilation=[2, 2])
    assert (mt.ops.conv2d(x, w, stride=2, padding=1, dilation=2).numpy() == all_of_them.numpy()).all()


def test_the_maximum_is_nan_if_there_is_one():
    x = mt.Tensor([[1.0, float("nan"), 3.0, 4.0, -float("inf"), -float("inf")]], requires_grad=True)
    y = mt.ops.max_pool1d(x, 2)
    assert np.isnan(y.detach().numpy()[0, 0])
    assert y.detach().numpy()[0, 1:].tolist() == [4.0, -float("inf")]
    (grad,) = mt.grad(y, [x], mt.ones((1, 3)))
    assert grad.tolist() == [[0.0, 1.0, 0.0, 1.0, 1.0, 0.0]]


def test_integers_have_a_largest_element():
    x = mt.arange(12).reshape(3, 4) - 20
    assert mt.ops.max_pool2d(x, 2, padding=1).tolist() == [[-20, -18, -17], [-12, -10, -9]]


def test_a_convolution_and_its_transpose_are_adjoint(rng):
    x, w = mt.Tensor(rng.normal(size=(2, 4, 9, 7))), mt.Tensor(rng.normal(size=(6, 2, 3, 2)))
    y = mt.ops.conv2d(x, w, stride=[2, 3], padding=[1, 0], groups=2)
    d = mt.Tensor(rng.normal(size=tuple(y.shape)))
    back = mt.ops.conv_transpose2d(d, w, stride=[2, 3], padding=[1, 0], output_padding=[0, 2], groups=2)
    np.testing.assert_allclose((y * d).sum().item(), (x * back).sum().item(), rtol=1e-12)


def test_shapes_are_known_without_values():
    x, w = mt.ones((2, 3, 32, 32), device="meta"), mt.ones((8, 3, 3, 3), device="meta")
    y = mt.ops.max_pool2d(mt.ops.conv2d(x, w, stride=2, padding=1), 2)
    assert (y.shape, str(y.device)) == ((2, 8, 8, 8), "meta")


@pytest.mark.parametrize(("x", "weight"), [((3, 4, 5), (0, 4, 3)), ((0, 4, 5), (2, 4, 3)), ((3, 0, 5), (2, 0, 3))])
def test_a_convolution_without_channels_or_samples(x, weight):
    tensors = [mt.zeros(*shape, requires_grad=True) for shape in (x, weight)]
    y = mt.ops.conv1d(*tensors)
    assert y.shape == (x[0], weight[0], 3) and not y.tolist() or not any(np.ravel(y.detach()))
    y.sum().backward()
    assert [t.grad.shape for t in tensors] == [x, weight]


@pytest.mark.parametrize("sizes", [(192,), (16, 16)])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("channels", [1, 2])
def test_output_padding_adds_zeros(sizes, stride, channels, rng):
    """With this padding, the result has twice as many elements as the windows of a kernel of one tap reach."""
    axes = len(sizes)
    x, weight = rng.standard_normal((1, channels, *sizes)), rng.standard_normal((channels, 3, *[1] * axes))
    added = [sizes[0] * stride] + [0] * (axes - 1)
    transposed = {1: mt.ops.conv_transpose1d, 2: mt.ops.conv_transpose2d}[axes]
    y = transposed(mt.Tensor(x), mt.Tensor(weight), stride=stride, output_padding=added, dilation=10**4).numpy()
    expected = np.zeros((1, 3, *[(size - 1) * stride + 1 + more for size, more in zip(sizes, added, strict=True)]))
    reached = tuple(slice(0, (size - 1) * stride + 1, stride) for size in sizes)
    expected[(..., *reached)] = np.einsum("nc...,co->no...", x, weight.reshape(channels, 3))
    np.testing.assert_allclose(y, expected, rtol=1e-12, atol=1e-12)


def test_a_kernel_of_many_taps_with_a_stride(rng):
    """Every tap of the transposed convolution writes other elements."""
    count = 300_000
    weight = rng.standard_normal((1, 1, count))
    y = mt.ops.conv_transpose1d(mt.ones(1, 1, 2, dtype="float64"), mt.Tensor(weight), stride=count, padding=count // 2)
    np.testing.assert_array_equal(y.numpy()[0, 0], np.tile(weight[0, 0], 2)[count // 2 : -(count // 2)])
