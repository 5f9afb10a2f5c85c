"""Sizes and numbers at the limits of their dtypes."""

import pickle

import numpy as np
import pytest

import minitensor as mt


def leaf(*values, dtype="float64"):
    return mt.Tensor(list(values), dtype=dtype, requires_grad=True)


def test_what_does_not_fit_into_memory_raises():
    x = mt.ones(1, requires_grad=True).expand(10**13)
    with pytest.raises(RuntimeError, match="a leaf that requires a gradient"):
        x[0] = 1.0
    with pytest.raises(MemoryError):
        mt.ops.cumsum(mt.ones((1, 1)).expand(10**7, 10**7), axis=0)


@pytest.mark.parametrize(
    "make",
    [
        lambda n: mt.zeros(1).reshape([1] * n),
        lambda n: mt.zeros(1).expand([1] * n),
        lambda n: mt.zeros([1] * n),
        lambda n: mt.ops.unsqueeze(mt.zeros([1] * (n - 1)), 0),
    ],
)
def test_there_are_at_most_64_dimensions(make):
    assert make(64).tolist() and repr(make(64))
    with pytest.raises(ValueError, match="a tensor has at most 64 dimensions, got 65"):
        make(65)


def test_large_and_empty_tensors_have_a_short_repr():
    assert repr(mt.zeros((10**12, 0))) == "tensor([], dtype=float32, shape=(1000000000000, 0))"
    assert len(repr(mt.zeros(1).expand([6] * 20))) < 200
    assert mt.eye(10**12, 0).shape == (10**12, 0)
    assert mt.eye(3, 4, k=1).tolist() == np.eye(3, 4, k=1).tolist()
    assert mt.eye(3, 4, k=-2).tolist() == np.eye(3, 4, k=-2).tolist()
    assert mt.eye(2, k=2**63 - 1).tolist() == mt.eye(2, k=-(2**63)).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_integer_ranges_are_counted_exactly():
    for start, stop, step in (
        (2**53, 2**53 + 3, 1),
        (2**62, 2**62 + 5, 2),
        (5, -6, -2),
        (0, 5, 2),
        (3, 3, 1),
        (3, 1, 2),
    ):
        assert mt.arange(start, stop, step).tolist() == list(range(start, stop, step))
    for stop, shown in ((np.inf, "inf"), (np.nan, "nan"), (1 - 2j, r"\(1-2j\)"), (True, "True")):
        with pytest.raises(ValueError, match=f"arange: stop must be a finite real number, got {shown}$"):
            mt.arange(0, stop)
    with pytest.raises(ValueError, match="do not fit into int64"):
        mt.arange(2**63, 2**63 + 3)
    with pytest.raises(ValueError, match="arange: the values from 0 to 299 do not fit into int8"):
        mt.arange(300, dtype="int8")
    with pytest.raises(ValueError, match="randint: the values from 0 to 999 do not fit into uint8"):
        mt.randint(0, 1000, (5,), dtype="uint8")


def test_cumulative_sums_of_integers_are_wide():
    for dtype in ("int8", "uint8", "int32"):
        x = np.full((3, 2), 100, dtype)
        for axis in (0, 1):
            assert mt.cumsum(mt.from_numpy(x), axis).tolist() == np.cumsum(x, axis).tolist()
    assert mt.cumsum(mt.Tensor([True, True])).tolist() == [1, 2]


def test_half_floats_are_storage_formats():
    x = mt.ones(70_000, dtype="float16", requires_grad=True)
    x.mean().backward()
    assert abs(x.grad.tolist()[0] - 1 / 70_000) < 1e-7
    assert (mt.ones(1, dtype="float16") / 70_000).item() > 0
    x = mt.Tensor(np.linspace(-1, 1, 1000)[None], dtype="bfloat16", requires_grad=True)
    w = mt.ones(1, dtype="bfloat16", requires_grad=True)
    loss = mt.ops.cross_entropy(x, mt.Tensor([301])) * w
    (g,) = mt.grad([loss.sum()], [x], create_graph=True)
    v = np.zeros((1, 1000), "float32")
    v[0, 300] = 1
    (second,) = mt.grad([(g * mt.Tensor(v, dtype="bfloat16")).sum()], [w])
    assert 0 < second.item() < 2e-3


def test_dropout_of_half_floats_has_the_requested_probability():
    mt.manual_seed(0)
    dropped = mt.ops.dropout(mt.ones(10**6, dtype="float16"), p=0.001)
    assert 800 < (dropped.numpy() == 0).sum() < 1200


def test_dropout_of_integers_computes_in_floats():
    dropped = mt.ops.dropout(mt.arange(1, 1001), p=0.5)
    assert dropped.dtype == mt.float32
    kept = dropped.numpy() != 0
    np.testing.assert_array_equal(dropped.numpy()[kept], 2.0 * np.arange(1, 1001)[kept])
    assert 400 < kept.sum() < 600


def test_overwritten_elements_have_a_zero_gradient_rather_than_nan():
    a = leaf(1.0, 0.0)
    y = a * 1
    y[0] = 5.0
    mt.sqrt(y).sum().backward()
    assert a.grad.tolist() == [0.0, np.inf]


def test_cosines_of_long_vectors():
    x = mt.Tensor([1e10, 1.0])
    assert abs(mt.ops.cosine_similarity(x, x).item() - 1) < 1e-6


def test_adam_counts_the_updates_of_each_parameter():
    first, late = leaf(1.0), leaf(1.0)
    optimizer = mt.optim.Adam([first, late], lr=0.1)
    for step in range(50):
        first.grad = mt.ones(1, dtype="float64")
        late.grad = mt.ones(1, dtype="float64") if step == 49 else None
        optimizer.step()
    assert abs(late.item() - 0.9) < 1e-6
    other = mt.optim.Adam([leaf(1.0), leaf(1.0)], lr=0.1)
    other.load_state_dict(pickle.loads(pickle.dumps(optimizer.state_dict())))
    assert other.state_dict()["updates"] == [50, 1]


def test_bools_support_bitwise_operators():
    x = mt.Tensor([1.0, 2.0, 3.0])
    a, b = x > 1, x < 3
    assert (a & b).tolist() == [False, True, False]
    assert (a | b).tolist() == [True, True, True]
    assert (a ^ b).tolist() == [True, False, True]
    assert (True & a).tolist() == (a & True).tolist() == a.tolist()
    a &= b
    assert a.tolist() == [False, True, False]
    assert (mt.Tensor([6, 3]) & 3).tolist() == [2, 3]


def test_a_result_is_a_new_tensor():
    x = mt.ones(3)
    for same in (
        mt.ops.dropout(x, training=False),
        x.astype("float32"),
        mt.ops.real(x),
        mt.ops.flip(x, []),
        mt.ops.squeeze(x),
    ):
        same.requires_grad_()
        assert not x.requires_grad


def test_a_window_without_elements_raises():
    x = mt.Tensor([-2.0, -1.0, 0.0, 1.0, 2.0]).reshape(1, 1, 1, 5)
    with pytest.raises(
        ValueError, match="the window that begins at -1 of axis -2 contains no element: its taps are 2 apart"
    ):
        mt.ops.max_pool2d(x, [2, 4], stride=[2, 1], padding=[1, 2], dilation=[2, 2])
    with pytest.raises(TypeError, match="would lose its imaginary part"):
        int(mt.Tensor(1j))
