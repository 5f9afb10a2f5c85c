"""Retained gradients, hooks, and the recording mode."""

import threading

import pytest

import minitensor as mt


def leaf(*values, dtype="float64"):
    return mt.Tensor(list(values), dtype=dtype, requires_grad=True)


def test_a_gradient_is_retained_once_and_has_separate_memory():
    y = leaf(1.0) * 1
    y.retain_grad()
    y.retain_grad()
    g = mt.ones(1, dtype="float64")
    y.backward(g)
    assert y.grad.tolist() == [1.0]
    y.grad.add_(5)
    assert g.tolist() == [1.0]


def test_a_retained_gradient_can_be_read_by_other_threads():
    y = mt.ones(1_000_000, requires_grad=True) * 1
    y.retain_grad()
    z, done = y * 2, threading.Event()

    def read():
        while not done.is_set():
            y.grad  # noqa: B018

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    passes = threading.Thread(
        target=lambda: [z.backward(mt.ones(1_000_000), retain_graph=True) for _ in range(20)], daemon=True
    )
    passes.start()
    passes.join(300)
    done.set()
    assert not passes.is_alive()


def test_a_hook_may_access_its_tensor_while_it_is_freed():
    class Hook:
        def __call__(self, grad):
            return None

        def __del__(self):
            x.grad  # noqa: B018

    x = leaf(1.0)
    handle = x.register_hook(Hook())
    remover = threading.Thread(target=handle.remove, daemon=True)
    remover.start()
    remover.join(300)
    assert not remover.is_alive()


def test_hooks_are_called_in_order_of_registration():
    x = leaf(1.0)
    x.register_hook(lambda g: g * 100).remove()
    kept = [x.register_hook(lambda g: g * 2), x.register_hook(lambda g: g + 1)]
    (x * 2).sum().backward()
    assert x.grad.tolist() == [5.0]
    kept[0].remove()
    x.grad = None
    (x * 2).sum().backward()
    assert x.grad.tolist() == [3.0]


def test_chains_of_gradients_are_freed_without_recursion():
    t = mt.zeros(1)
    for _ in range(200_000):
        n = mt.zeros(1)
        n.grad = t
        t = n
    del t, n
    with pytest.raises(ValueError, match="cannot be its own gradient"):
        x = mt.zeros(1)
        x.grad = x


def test_recording_is_turned_off_for_each_call_of_a_decorated_function():
    inside, leave = threading.Event(), threading.Event()

    @mt.no_grad()
    def slow():
        inside.set()
        leave.wait(10)

    states = []

    def other():
        with mt.no_grad():
            slow()
        states.append(mt.is_grad_enabled())

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(10)
    leave.set()
    slow()
    thread.join(300)
    assert mt.is_grad_enabled() and states == [True]
