"""What `mt.vmap` refuses."""

import numpy as np
import pytest
from vmap_checks import SIZE, randn

import minitensor as mt


def test_elements_are_not_known():
    def f(x):
        return x if x.sum() > 0 else -x

    place = r"test_vmap_errors.py, line \d+"
    with pytest.raises(RuntimeError, match=rf"reads the elements of a tensor \(.*{place}.*mt.where"):
        mt.vmap(f)(randn(SIZE, 2))
    for read in (lambda x: x * x[0].item(), lambda x: x * float(x.sum()), lambda x: mt.Tensor(x.numpy())):
        with pytest.raises(RuntimeError, match="reads the elements of a tensor"):
            mt.vmap(read)(randn(SIZE, 2))


def test_elements_of_shared_tensors_are_known():
    w = mt.Tensor([2.0])
    assert mt.vmap(lambda x: x * w.item() if w.sum() > 0 else x)(mt.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="reads the elements"):
        mt.jit(mt.vmap(lambda x: x * w.item()))(mt.ones(2))


def test_changes_of_arguments_and_captured_tensors():
    def f(x):
        x += 1
        return x

    x, total = randn(SIZE, 2), mt.zeros(2, dtype="float64")
    before = x.numpy().copy()
    with pytest.raises(RuntimeError, match="in place"):
        mt.vmap(f)(x)
    with pytest.raises(RuntimeError, match="in place"):
        mt.vmap(lambda x: total.add_(x))(x)
    assert (x.numpy() == before).all()
    assert total.tolist() == [0.0, 0.0]


def test_a_stored_gradient():
    w = mt.ones(2, dtype="float64", requires_grad=True)
    w.grad = mt.ones(2, dtype="float64")

    def f(x):
        (x * w).sum().backward()
        return x

    with pytest.raises(RuntimeError, match="stores a gradient.*mt.grad"):
        mt.vmap(f)(randn(SIZE, 2))
    assert w.grad.tolist() == [1.0, 1.0]


def test_an_optimizer():
    w = mt.ones(2, requires_grad=True)
    optimizer = mt.optim.SGD([w], lr=0.1)

    def f(x):
        (x * w).sum().backward()
        optimizer.step()
        return x

    with pytest.raises(RuntimeError, match="in place"):
        mt.vmap(f)(mt.ones(SIZE, 2))
    assert w.tolist() == [1.0, 1.0]
    assert w.grad is None


def test_sizes_that_depend_on_elements():
    with pytest.raises(RuntimeError, match="sizes must not depend on elements"):
        mt.vmap(mt.ops.nonzero)(mt.Tensor([[1.0, 0.0], [1.0, 1.0]]))


def test_axes():
    x = randn(SIZE, 2)
    cases = [
        (ValueError, "same size, but argument 0 has 3 and argument 1 2", {}, (x, x.T)),
        (ValueError, "no axis 2", {"in_axes": 2}, (x,)),
        (ValueError, "no axis 0", {}, (mt.Tensor(1.0),)),
        (ValueError, "no argument has an axis", {"in_axes": None}, (x,)),
        (ValueError, "no argument has an axis", {}, ()),
        (ValueError, "1 entries, but the function got 2", {"in_axes": (0,)}, (x, x)),
        (ValueError, "does not fit this Tensor", {"in_axes": ((0,),)}, (x,)),
        (TypeError, "argument 1 is of type float", {}, (x, 2.0)),
        (TypeError, "of type ndarray.*asarray", {}, (x.numpy(),)),
        (TypeError, "contains a str", {"in_axes": "0"}, (x,)),
        (ValueError, "out_axes must be integers", {"out_axes": None}, (x,)),
        (ValueError, "does not fit", {"out_axes": (0, 1)}, (x,)),
        (ValueError, "mt.vmap: the result has no axis 2, its shape is", {"out_axes": 2}, (x,)),
        (ValueError, "on the device 'meta'", {}, (mt.zeros(2, device="meta"),)),
    ]
    for kind, message, options, args in cases:
        with pytest.raises(kind, match=message):
            mt.vmap(lambda x, *rest: x, **options)(*args)
    with pytest.raises(TypeError, match="takes a function"):
        mt.vmap(2)
    with pytest.raises(ValueError, match="randomness must be"):
        mt.vmap(abs, randomness="none")
    with pytest.raises(TypeError, match="the function returned a ndarray|reads the elements"):
        mt.vmap(lambda x: np.ones(2))(x)


def test_an_error_in_the_function_ends_the_recording():
    def f(x):
        raise KeyError("own")

    for _ in range(2):
        with pytest.raises(KeyError, match="own"):
            mt.vmap(mt.vmap(f))(randn(2, 2))
    assert mt.vmap(lambda x: x.sum())(mt.ones(2, 2)).tolist() == [2.0, 2.0]
    jitted = mt.jit(lambda x: mt.vmap(f)(x))
    with pytest.raises(KeyError, match="own"):
        jitted(randn(2))
    assert float(mt.ones(1).sum()) == 1.0
