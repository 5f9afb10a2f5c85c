"""What `mt.jit` refuses."""

import numpy as np
import pytest
from jit_checks import bits, randn

import minitensor as mt


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x + 1 if x.sum() > 0 else x,
        lambda x: x * x.sum().item(),
        lambda x: x * float(x[0]),
        lambda x: x + mt.Tensor(x.tolist()),
        lambda x: x + mt.asarray(x.numpy()),
        lambda x: x + mt.Tensor(np.asarray(x) * 2),
        lambda x: (print(x), x)[1],
        lambda x: x + x.__dlpack__().__sizeof__(),
        lambda x: x + len(str(x)),
        lambda x: x + int(x.astype("int64").sum()),
    ],
    ids=lambda _: "",
)
def test_reading_elements_names_the_line(read):
    with pytest.raises(RuntimeError, match=r"test_jit_errors.py, line \d+.*mt.where"):
        mt.jit(read)(randn(3))
    # The recording has ended.
    assert mt.jit(lambda x: x + 1)(mt.ones(1)).item() == 2


def test_reading_a_captured_tensor():
    w = mt.ones(1)
    with pytest.raises(RuntimeError, match="reads the elements"):
        mt.jit(lambda x: x * w.item())(randn(3))


def test_errors_of_the_function_pass_through():
    def f(x):
        if x.shape == (3,):
            raise KeyError("mine")
        return x

    jitted = mt.jit(f)
    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            jitted(randn(3))
        assert jitted(randn(4)).shape == (4,)


def test_errors_of_ops_are_those_of_eager_mode():
    jitted = mt.jit(lambda x, i: mt.ops.take(x, i, axis=0) * 2)
    assert jitted(randn(3), mt.Tensor([0])).shape == (1,)
    with pytest.raises(IndexError, match="take"):
        jitted(randn(3), mt.Tensor([5]))
    with pytest.raises(ValueError, match="multiply"):
        mt.jit(lambda x, y: x * y)(randn(3), randn(4))


@pytest.mark.parametrize("f", [lambda x: x[x > 0], lambda x: mt.ops.nonzero(x > 0)[0] + 1])
def test_sizes_that_depend_on_elements(f):
    jitted = mt.jit(f)
    x = mt.Tensor([1.0, -1.0])
    assert bits(jitted(x)) == bits(f(x))
    assert bits(jitted(x * 2)) == bits(f(x * 2))
    with pytest.raises(RuntimeError, match=r"op 'nonzero' returned shape .*mt\.where"):
        jitted(x * x)


def test_an_array_inside():
    array = np.ones(3, "float32")
    for f in (lambda x: x + array, lambda x: x + mt.asarray(array), lambda x: x + mt.Tensor(array)):
        with pytest.raises(
            RuntimeError, match=r"reads an array of another library \(.*; convert the array with mt.asarray\(\)"
        ):
            mt.jit(f)(randn(3))


def test_seed_inside():
    with pytest.raises(
        RuntimeError, match=r"sets the seed .*, which its graph cannot repeat; do this outside of the function$"
    ):
        mt.jit(lambda x: (mt.manual_seed(0), x)[1])(randn(3))


def test_a_container_that_contains_itself():
    ring = [randn(3)]
    ring.append(ring)
    with pytest.raises(RecursionError, match="mt.jit: an argument is nested too deeply, or contains itself"):
        mt.jit(lambda r: r[0])(ring)
    with pytest.raises(
        RecursionError, match="mt.jit: the function: the result is nested too deeply, or contains itself"
    ):
        mt.jit(lambda x: ring)(randn(3))


def test_an_unknown_log_is_a_warning(monkeypatch):
    monkeypatch.setenv("MINITENSOR_LOG", "graph,grpah")
    with pytest.warns(
        RuntimeWarning, match="MINITENSOR_LOG is 'graph,grpah', but there is no log of grpah; it may be 'graph'"
    ):
        mt.jit(lambda x: x + 1)(randn(3))


def test_arrays_are_not_arguments_or_results():
    with pytest.raises(TypeError, match=r"mt\.asarray"):
        mt.jit(lambda x: x)(np.ones(3))
    with pytest.raises(TypeError, match="returned a ndarray"):
        mt.jit(lambda x: np.ones(3))(randn(3))


def test_a_recorded_change_of_an_argument():
    x = randn(3).requires_grad_()

    def f(x, y):
        y[0] = x[0]
        return y * 1

    with pytest.raises(RuntimeError, match="in place"):
        mt.jit(f)(x, randn(3))


def test_other_results_and_changed_arguments():
    from collections import OrderedDict

    for f in (lambda x: OrderedDict(y=x), lambda x: (t for t in [x]), lambda x: {x.shape}):
        with pytest.raises(TypeError, match="expected tensors, plain values, and lists"):
            mt.jit(f)(randn(3))
    with pytest.raises(RuntimeError, match="changes a list or dict that is an argument"):
        mt.jit(lambda d, x: d.update(k=x))({}, randn(3))


def test_not_a_function():
    with pytest.raises(TypeError, match=r"mt\.jit takes a function, got int"):
        mt.jit(3)


def test_threads_record_independently():
    import threading

    jitted = mt.jit(lambda x: (x * 2).exp().sum())
    expected = (randn(100) * 2).exp().sum().item()
    wrong = []

    def work():
        wrong.extend(value for _ in range(50) if (value := jitted(randn(100)).item()) != expected)

    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong
