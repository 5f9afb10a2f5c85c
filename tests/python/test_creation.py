"""Compares functions that create tensors with NumPy."""

import numpy as np
import pytest

import minitensor as mt


@pytest.mark.parametrize("args", [(5,), (2, 9), (2, 9, 3), (9, 2, -2), (0.0, 1.0, 0.25), (5, 2), (1, 2, 0.1)])
def test_arange_equals_numpy(args):
    ours, theirs = mt.arange(*args), np.arange(*args)
    assert np.allclose(ours.numpy(), theirs)
    assert ours.dtype == ("int64" if theirs.dtype == np.int64 else "float32")


def test_linspace_ends_exactly():
    assert np.allclose(mt.linspace(0, 1, 7).numpy(), np.linspace(0, 1, 7))
    assert mt.linspace(0, 1, 7, dtype="float64")[-1].item() == 1.0
    assert np.allclose(mt.linspace(0, 1, 4, endpoint=False).numpy(), [0, 0.25, 0.5, 0.75])
    assert mt.linspace(3, 4, 1).tolist() == [3.0]


def test_eye_puts_ones_on_a_diagonal():
    for k in (-2, 0, 1, 5):
        assert np.array_equal(mt.eye(3, 4, k=k).numpy(), np.eye(3, 4, k=k, dtype="float32"))


def test_shapes_are_given_as_tuples_or_numbers():
    assert mt.zeros(2, 3).shape == mt.zeros((2, 3)).shape == (2, 3)
    assert mt.ones(()).shape == ()
    assert mt.zeros(4).shape == (4,)
    with pytest.raises(TypeError, match="a shape"):
        mt.zeros("ab")
    with pytest.raises(ValueError, match="must not be negative"):
        mt.zeros(-1)


def test_full_takes_the_dtype_of_its_value():
    assert mt.full((2,), 3).dtype == mt.int64
    assert mt.full((2,), 1.5).tolist() == [1.5, 1.5]
    assert mt.full((2,), 1j).tolist() == [1j, 1j]
    assert mt.full_like(mt.zeros(2), 7).tolist() == [7.0, 7.0]
    with pytest.raises(ValueError, match="does not fit"):
        mt.full((2,), 300, dtype="int8")


@pytest.mark.parametrize("array", [mt.ones(2), np.ones(2)], ids=["tensor", "ndarray"])
def test_an_array_is_not_a_number(array):
    for name, call in {
        "fill_value": lambda: mt.full((2,), array),
        "start": lambda: mt.linspace(array, 3, 4),
        "stop": lambda: mt.linspace(3, array, 4),
    }.items():
        with pytest.raises(ValueError, match=rf"{name} must be a single number, got an array of shape \(2,\)"):
            call()
    assert mt.full((2,), array[:1]).tolist() == [1, 1]


@pytest.mark.parametrize("value", [2.0, 1j])
def test_full_takes_a_device(value):
    assert str(mt.full((3,), value, device="meta").device) == "meta"
    assert str(mt.full_like(mt.zeros(3), value, dtype="complex64", device="meta").device) == "meta"


def test_like_functions_keep_shape_and_dtype():
    x = mt.zeros((2, 3), dtype="float64")
    for f in (mt.zeros_like, mt.ones_like, mt.empty_like, mt.rand_like, mt.randn_like):
        assert (f(x).shape, f(x).dtype) == ((2, 3), mt.float64)


def test_a_seed_makes_random_numbers_repeat():
    mt.manual_seed(7)
    first = [mt.rand(5).tolist(), mt.randn(5).tolist(), mt.randint(0, 100, (5,)).tolist()]
    mt.manual_seed(7)
    assert [mt.rand(5).tolist(), mt.randn(5).tolist(), mt.randint(0, 100, (5,)).tolist()] == first
    assert mt.rand(5).tolist() != first[0]


def test_the_numbers_of_a_seed_never_change():
    mt.manual_seed(7)
    assert mt.rand(3).tolist() == [0.9545971155166626, 0.11417734622955322, 0.4069603681564331]
    assert mt.randn(2, dtype="float64").tolist() == pytest.approx([0.039122903655233104, -0.10323135953961703])
    mt.randn(1)
    assert mt.randint(-50, 50, (4,)).tolist() == [-22, -17, 30, -23]
    assert mt.rand(3, dtype="bfloat16").tolist() == [0.01171875, 0.26171875, 0.56640625]
    assert mt.ops.dropout(mt.ones(8)).tolist() == [2.0, 2.0, 2.0, 2.0, 0.0, 2.0, 0.0, 0.0]
    assert mt.ops.rand_like(mt.ones(2, dtype="float16")).tolist() == [0.21923828125, 0.962890625]


def test_random_numbers_are_functions_of_their_key():
    ops, x = mt.ops.random, mt.ones(100)
    draws = {
        "rand": (lambda key: ops.uniform(key, (100,)), lambda: mt.rand(100)),
        "randn": (lambda key: ops.normal(key, (100,), "float64"), lambda: mt.randn(100, dtype="float64")),
        "randint": (lambda key: ops.integers(key, -9, 9, (100,)), lambda: mt.randint(-9, 9, (100,))),
        "rand_like": (lambda key: ops.uniform(key, (100,)), lambda: mt.ops.rand_like(x)),
        "dropout": (lambda key: ops.dropout(x, key, 0.3), lambda: mt.ops.dropout(x, 0.3)),
    }
    for name, (of_key, of_generator) in draws.items():
        mt.manual_seed(5)
        drawn, after = of_generator().tolist(), mt.rand(4).tolist()
        mt.manual_seed(5)
        key = mt.Tensor([5, 0], dtype="uint64")
        assert of_key(key).tolist() == of_key(key).tolist() == drawn, name
        of_generator()
        assert mt.rand(4).tolist() == after, f"{name} of a key takes numbers from the generator"
        assert of_key(mt.Tensor([6, 0], dtype="uint64")).tolist() != drawn
    later = mt.Tensor([5, 2], dtype="uint64")
    assert ops.uniform(later, (6,)).tolist() == ops.uniform(key, (10,)).tolist()[4:]


def test_a_key_that_is_none_is_reported():
    with pytest.raises(TypeError, match="'key' takes uint64, got int64"):
        mt.ops.random.uniform(mt.Tensor([1, 2]), (3,))
    with pytest.raises(ValueError, match=r"a key has two elements, the seed and a counter; got shape \(3,\)"):
        mt.ops.random.normal(mt.Tensor([1, 2, 3], dtype="uint64"), (3,))


def test_random_numbers_on_meta_take_nothing_from_the_generator():
    mt.manual_seed(3)
    first = mt.rand(2).tolist()
    mt.manual_seed(3)
    for make in (mt.rand, mt.randn):
        assert (make(5, device="meta").device, make(5, device="meta").shape) == ("meta", (5,))
    mt.ops.dropout(mt.ones(9, device="meta"))
    assert mt.rand(2).tolist() == first


def test_random_numbers_have_their_distribution():
    mt.manual_seed(0)
    u, n, k = mt.rand(20000).numpy(), mt.randn(20000).numpy(), mt.randint(-3, 4, (20000,)).numpy()
    assert u.min() >= 0 and u.max() < 1 and abs(u.mean() - 0.5) < 0.01
    assert abs(n.mean()) < 0.03 and abs(n.std() - 1) < 0.03
    assert set(k.tolist()) == set(range(-3, 4))
    with pytest.raises(ValueError, match="less than high"):
        mt.randint(3, 3, (1,))


def test_sizes_beyond_memory_raise():
    with pytest.raises(MemoryError):
        mt.zeros(2**62)
    with pytest.raises(MemoryError):
        mt.empty((2**40, 2**40))
    with pytest.raises(MemoryError):
        mt.zeros(8).expand(2**60, 8).contiguous()


def test_asarray_keeps_the_gradient():
    x = mt.ones(2, requires_grad=True)
    for y in (mt.asarray(x), mt.asarray(x, dtype="float64"), mt.asarray(x, copy=True)):
        (g,) = mt.grad([(y * 3).sum()], [x])
        assert g.tolist() == [3.0, 3.0]
        assert g.dtype == mt.float32


def test_a_gradient_is_not_lost_where_a_number_is_expected():
    x = mt.ones(1, requires_grad=True)
    for make in (
        lambda: mt.full((2,), x),
        lambda: mt.full_like(x, x),
        lambda: mt.linspace(0, x, 3),
        lambda: mt.arange(x),
        lambda: mt.Tensor(x),
        lambda: mt.Tensor([x]),
    ):
        with pytest.raises(ValueError, match="gradient.* would be lost"):
            make()
    copy = mt.Tensor(x, requires_grad=True)
    assert copy.is_leaf and copy.data_ptr() != x.data_ptr()
    assert mt.full((2,), x.item()).tolist() == [1.0, 1.0]
    assert mt.linspace(False, True, 3).tolist() == [0.0, 0.5, 1.0]


@pytest.mark.parametrize("name", ["half", "short", "int", "long", "float", "double"])
def test_other_names_of_dtypes_are_those_of_numpy(name):
    assert mt.zeros(1, dtype=name).dtype == str(np.dtype(name))


def test_asarray_moves_a_tensor_to_a_device():
    x = mt.ones(2)
    assert mt.asarray(x, device="cpu") is x
    there = mt.asarray(x, device="meta", dtype="int8")
    assert (str(there.device), there.dtype, there.shape) == ("meta", mt.int8, (2,))
    assert mt.asarray(there) is there and str(mt.asarray(there, dtype="int16").device) == "meta"


def test_asarray_obeys_copy():
    a = np.zeros(2)
    assert mt.asarray(a, copy=True).data_ptr() != a.ctypes.data
    assert mt.asarray(a, copy=False).data_ptr() == a.ctypes.data
    with pytest.raises(ValueError, match="copy=False"):
        mt.asarray([1], copy=False)
    with pytest.raises(ValueError, match="copy=False"):
        mt.asarray(a, dtype="float32", copy=False)
    t = mt.zeros(2)
    assert mt.asarray(t) is t
    with pytest.raises(TypeError, match="from_numpy takes"):
        mt.from_numpy([1])


def test_memory_in_use_is_reported():
    before = mt.memory_stats()["allocated"]
    t = mt.zeros(1000)
    assert mt.memory_stats()["allocated"] - before >= 4000
    del t
    assert mt.memory_stats()["allocated"] == before
    mt.empty_cache()


def peak(work):
    """Returns the peak of additionally allocated bytes, and the result of the work."""
    before = mt.memory_stats()["allocated"]
    mt.reset_peak_memory_stats()
    result = work()
    return mt.memory_stats()["peak"] - before, result


def test_one_definition_needs_no_more_memory_than_its_result():
    x, y, z = (mt.ones(1 << 20) for _ in range(3))
    held, result = peak(lambda: mt.ops.example.chain(x, y, z))
    assert held == result.nbytes
    rows = mt.ones((1024, 1024), dtype=mt.bfloat16)
    held, result = peak(lambda: mt.ops.softmax(rows))
    assert held == result.nbytes
    x.requires_grad = True
    out = mt.ops.example.chain(x, y, z)
    held, _ = peak(lambda: out.backward(y))
    assert held == x.grad.nbytes


def test_a_backward_pass_frees_memory_for_gradients_as_it_runs():
    factors = [mt.ones(1 << 18, requires_grad=True) for _ in range(12)]
    product = factors[0]
    for factor in factors[1:]:
        product = product * factor
    held, _ = peak(lambda: product.backward(mt.ones(1 << 18)))
    assert held <= 4 * product.nbytes
    assert all(factor.grad is not None for factor in factors)


def test_the_gradient_of_a_matrix_product_needs_no_copies():
    x, y, d = (mt.ones((512, 512)) for _ in range(3))
    x.requires_grad = y.requires_grad = True
    product = x @ y
    held, _ = peak(lambda: product.backward(d))
    assert held == x.grad.nbytes + y.grad.nbytes


def test_threads_can_be_set():
    before = mt.get_num_threads()
    mt.set_num_threads(1)
    assert mt.get_num_threads() == 1
    mt.set_num_threads(before)
    with pytest.raises(ValueError, match="at least 1"):
        mt.set_num_threads(0)
