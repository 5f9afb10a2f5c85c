"""Compares `x[…]` and `x[…] = v` with NumPy."""

import numpy as np
import pytest

import minitensor as mt

I = np.array  # noqa: E741
INDICES = [
    0,
    -1,
    np.s_[1:],
    np.s_[::-1],
    np.s_[::-2],
    np.s_[3:0:-1],
    np.s_[:, 1],
    np.s_[..., 0],
    np.s_[1, ..., 2],
    None,
    np.s_[:, None],
    np.s_[None, 1, :, None],
    np.s_[1, 2, 3],
    np.s_[5:2],
    np.s_[-100:100],
    np.s_[...],
    (),
    np.s_[:, ::2, ::-1],
    [0, 2],
    [[0, 1], [2, 1]],
    np.s_[:, [0, 2]],
    np.s_[[0, 1], [1, 2]],
    np.s_[:, [0, 1], [1, 2]],
    np.s_[[0, 1], :, [1, 2]],
    np.s_[0, :, [1, 2]],
    np.s_[:, [0, 1], ..., [1, 2]],
    np.s_[0, ..., [0, 1], [1, 2]],
    np.s_[..., [0, 1], [1, 2]],
    np.s_[1, [0, 1]],
    np.s_[[-1], ::-1],
    np.s_[None, [0, 1]],
    np.s_[:, [0, 1], None, 1:],
    [],
    I([True, False, True]),
    np.s_[:, I([True, False, False, True])],
    np.s_[I([True, False, True]), 1:],
    True,
    False,
    np.arange(60).reshape(3, 4, 5) % 3 == 0,
    np.s_[np.arange(12).reshape(3, 4) % 2 == 0, 1],
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_indexing_equals_numpy(index):
    a = np.arange(60.0).reshape(3, 4, 5)
    expected = a[index]
    got = mt.from_numpy(a)[index]
    assert got.shape == expected.shape
    assert got.tolist() == expected.tolist()


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_assignment_equals_numpy(index):
    a = np.arange(60.0).reshape(3, 4, 5)
    t = mt.Tensor(a)
    value = -np.arange(a[index].size, dtype=float).reshape(a[index].shape)
    a[index] = value
    t[index] = value
    assert t.tolist() == a.tolist()
    a[index] = 7
    t[index] = 7
    assert t.tolist() == a.tolist()


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_the_gradient_flows_to_the_indexed_elements(index):
    x = mt.Tensor(np.arange(60.0).reshape(3, 4, 5), requires_grad=True)
    picked = x[index]
    picked.backward(mt.ones_like(picked))
    expected = np.zeros((3, 4, 5))
    np.add.at(expected, index, 1.0)
    assert x.grad.tolist() == expected.tolist()


def test_basic_indexing_is_a_view():
    x = mt.zeros((3, 3))
    x[1][2] = 5
    row = x[0]
    row += 1
    assert x.tolist() == [[1, 1, 1], [0, 0, 5], [0, 0, 0]]


def test_tensors_are_indices():
    x = mt.arange(10)
    assert x[mt.Tensor([1, 3])].tolist() == [1, 3]
    assert x[mt.Tensor(2)].item() == 2
    assert x[x > 6].tolist() == [7, 8, 9]


@pytest.mark.parametrize(
    ("index", "error", "words"),
    [
        (3, IndexError, "index 3 is out of range for axis 0 of size 3"),
        ((0, -5), IndexError, "index -5 is out of range for axis 1 of size 4"),
        ([0, 7], IndexError, "out of range"),
        ((0, 0, 0), IndexError, "got 3 for a tensor of 2 dimensions"),
        (np.s_[..., ...], IndexError, "only one"),
        (1.5, TypeError, "an index must be an integer"),
        ("a", TypeError, "an index must be an integer"),
        ([1.5], IndexError, "an integer or boolean dtype, got float32"),
        (np.s_[::0], ValueError, "step"),
        ([True, False], IndexError, "mask"),
    ],
    ids=str,
)
def test_bad_indices_raise(index, error, words):
    x = mt.zeros((3, 4))
    with pytest.raises(error, match=words):
        x[index]
    with pytest.raises(error, match=words):
        x[index] = 1
    assert x.sum().item() == 0


def test_values_that_do_not_fit_raise():
    x = mt.zeros((3, 4), dtype="int64")
    with pytest.raises(ValueError, match="cannot be broadcast"):
        x[0] = [1, 2]
    with pytest.raises(ValueError, match="does not fit"):
        x[0] = 1.5


def test_assignment_is_differentiable():
    x = mt.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    v = mt.Tensor([10.0, 20.0], requires_grad=True)
    y = x * 2
    y[1:] = v
    (y * mt.Tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 0.0]
    assert v.grad.tolist() == [2.0, 3.0]


def test_iteration_yields_rows_and_in_finds_values():
    assert [r.tolist() for r in mt.Tensor([[1, 2], [3, 4]])] == [[1, 2], [3, 4]]
    assert 3 in mt.Tensor([[1, 2], [3, 4]])
    assert 5 not in mt.Tensor([1])


@pytest.mark.parametrize("of", [lambda a: a, mt.asarray, mt.Tensor], ids=["array", "shared", "tensor"])
def test_an_index_may_change_after_it_was_used(of):
    places = np.array([2, 0, 1])
    index = of(places)
    x = mt.Tensor(np.arange(3.0), requires_grad=True)
    y = x[index] * mt.Tensor([1.0, 2.0, 3.0])
    index[...] = 0
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 3.0, 1.0]
    places[:] = [2, 0, 1]
    index = of(places)
    with mt.lazy():
        z = x.detach()[index]
        index[...] = 0
        assert z.tolist() == [2.0, 0.0, 1.0]
