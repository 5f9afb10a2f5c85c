"""Tests of gradients from Python."""

import gc
import threading

import numpy as np
import pytest

import minitensor as mt


def leaf(*values):
    return mt.Tensor(list(values), dtype="float64", requires_grad=True)


def test_backward_accumulates_in_leaves():
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [5.0, 7.0]
    x.zero_grad()
    assert x.grad is None


def test_one_tensor_given_twice_gets_both_gradients():
    x = leaf(2.0)
    mt.ops.power(x, x).backward()
    assert x.grad.item() == pytest.approx(4 * (np.log(2) + 1))


def test_a_cotangent_is_needed_and_checked():
    y = leaf(1.0, 2.0) * 2
    with pytest.raises(RuntimeError, match="pass gradient="):
        y.backward()
    with pytest.raises(ValueError, match="pass a gradient of the same shape"):
        y.backward(mt.ones(3))
    with pytest.raises(TypeError, match="gradient must be a Tensor"):
        y.backward([1.0, 1.0])
    y.backward(mt.ones(2))


def test_backward_without_a_graph_raises():
    with pytest.raises(RuntimeError, match="requires_grad=True"):
        mt.Tensor([1.0]).backward()
    with pytest.raises(RuntimeError, match="only floating"):
        mt.Tensor([1], requires_grad=True)


def test_a_released_graph_raises_and_can_be_retained():
    x = leaf(3.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [12.0]
    with pytest.raises(RuntimeError, match="retain_graph=True"):
        y.backward()
    assert x.grad.tolist() == [12.0]


def test_gradients_of_gradients():
    x = leaf(2.0)
    (first,) = mt.grad((x * x * x).sum(), x, create_graph=True)
    (second,) = mt.grad(first.sum(), x)
    assert (first.item(), second.item()) == (12.0, 12.0)
    assert x.grad is None


def test_derivatives_of_any_order():
    x = leaf(-1.0, 0.0, 0.5, 3.0)
    y, orders = mt.ops.gelu(x), []
    for _ in range(4):
        (y,) = mt.grad(y.sum(), x, create_graph=True)
        orders.append(y.detach().numpy())
    at = x.detach().numpy()
    phi = np.exp(-(at**2) / 2) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(orders[1], phi * (2 - at**2), rtol=1e-12)
    np.testing.assert_allclose(orders[2], phi * (at**3 - 4 * at), rtol=1e-12)
    np.testing.assert_allclose(orders[3], phi * (7 * at**2 - at**4 - 4), rtol=1e-12)
    assert mt.testing.gradcheck(lambda x, y: mt.ops.logaddexp(x * y, y), [x.detach() + 1, leaf(0.3)], orders=3)


def test_grad_takes_lists_and_rejects_unused_inputs():
    x, y = leaf(2.0), leaf(3.0)
    assert [g.item() for g in mt.grad([x * y, x + y], [x, y], [mt.ones(1), None][:1] + [mt.ones(1)])] == [4.0, 3.0]
    with pytest.raises(RuntimeError, match="do not depend on inputs.1."):
        mt.grad(x * 2, [x, y])
    assert mt.grad(x * 2, [x, y], allow_unused=True)[1] is None
    with pytest.raises(RuntimeError, match="does not require a gradient"):
        mt.grad(x * 2, mt.zeros(1))


def test_nothing_is_recorded_under_no_grad():
    x = leaf(1.0)
    with mt.no_grad():
        assert not mt.is_grad_enabled()
        y = x * 2
        with mt.enable_grad():
            assert (x * 2).requires_grad
    assert mt.is_grad_enabled()
    assert not y.requires_grad

    @mt.no_grad()
    def f(t):
        return t * 2

    assert not f(x).requires_grad
    with pytest.raises(KeyError), mt.no_grad():
        raise KeyError
    assert mt.is_grad_enabled()


def test_the_recording_mode_is_per_thread():
    seen = []
    with mt.no_grad():
        thread = threading.Thread(target=lambda: seen.append(mt.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_detach_cuts_and_retain_grad_keeps():
    x = leaf(2.0)
    y = x * x
    y.retain_grad()
    (y * y.detach()).sum().backward()
    assert x.grad.item() == 16.0
    assert y.grad.item() == 4.0
    assert y.grad_fn == "multiply"
    assert x.is_leaf and not y.is_leaf


def test_hooks_see_and_replace_gradients():
    x = leaf(1.0, 2.0)
    seen = []
    with x.register_hook(lambda g: seen.append(g.tolist())):
        (x * 2).sum().backward()
    handle = x.register_hook(lambda g: g * 10)
    x.grad = None
    (x * 2).sum().backward()
    assert (seen, x.grad.tolist()) == ([[2.0, 2.0]], [20.0, 20.0])
    handle.remove()
    x.grad = None
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_an_exception_in_a_hook_propagates_unchanged():
    class Own(Exception):
        pass

    def hook(grad):
        raise Own("from the hook")

    x = leaf(1.0)
    y = x * 2
    y.register_hook(hook)
    with pytest.raises(Own, match="from the hook") as caught:
        y.backward()
    assert caught.traceback[-1].name == "hook"
    assert x.grad is None


def test_grad_can_be_set_and_deleted():
    x = leaf(1.0)
    x.grad = mt.ones(1, dtype="float64")
    assert x.grad.tolist() == [1.0]
    del x.grad
    assert x.grad is None
    with pytest.raises(ValueError, match="shape and dtype"):
        x.grad = mt.ones(2)
    with pytest.raises(TypeError, match="grad must be a Tensor"):
        x.grad = 1.0


def test_a_stale_saved_tensor_raises():
    x = leaf(1.0, 2.0)
    y = x * 2
    z = y * y
    y += 1
    with pytest.raises(RuntimeError, match="changed in place"):
        z.sum().backward()


OF_OUTPUT = {
    "exp": lambda y: y,
    "exp2": lambda y: y * np.log(2),
    "sqrt": lambda y: 0.5 / y,
    "cbrt": lambda y: 1 / (3 * y * y),
    "reciprocal": lambda y: -y * y,
    "rsqrt": lambda y: -0.5 * y**3,
    "relu": lambda y: (y > 0) * 1.0,
}


@pytest.mark.parametrize("name", OF_OUTPUT)
def test_a_gradient_that_the_output_determines_does_not_need_the_input(name):
    x = leaf(0.25, 1.5, 3.0)
    h = x * 1
    y = getattr(mt.ops, name)(h)
    h += 1
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), OF_OUTPUT[name](y.detach().numpy()), rtol=1e-14)


def test_requires_grad_can_be_set_and_cleared():
    x = mt.zeros(1)
    assert x.requires_grad_().requires_grad
    x.requires_grad = False
    assert not x.requires_grad
    with pytest.raises(RuntimeError, match="only a leaf"):
        (leaf(1.0) * 2).requires_grad = False


def test_backward_runs_on_any_thread():
    x = leaf(3.0)
    y = (x * x).sum()
    thread = threading.Thread(target=y.backward)
    thread.start()
    thread.join()
    assert x.grad.tolist() == [6.0]


def test_a_long_chain_does_not_overflow():
    x = leaf(1.0)
    y = x
    for _ in range(100_000):
        y = y + 1
    y.backward()
    assert x.grad.tolist() == [1.0]


def test_dropped_results_leave_no_memory():
    x = mt.zeros(100, requires_grad=True)
    gc.collect()
    before = mt.memory_stats()["allocated"]
    for _ in range(20_000):
        mt.ops.swish(x) * 2
    assert mt.memory_stats()["allocated"] == before


def test_a_missing_gradient_raises_and_names_the_op():
    x = leaf(1.0, 3.0)
    with pytest.raises(RuntimeError, match="argmax|requires_grad"):
        mt.ops.argmax(x).backward()


@pytest.mark.parametrize(
    "name", ["swish", "gelu", "sigmoid", "tanh", "softplus", "exp", "sin", "log_softmax", "softmax"]
)
def test_gradients_agree_with_differences(name):
    assert mt.testing.gradcheck(getattr(mt.ops, name), leaf(-1.5, 0.3, 2.0))


@pytest.mark.parametrize("rows", [1, 5, 300])
@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("run", [lambda f: f, mt.jit])
def test_the_gradient_of_a_standard_deviation_of_equal_elements_is_zero(rows, axis, run):
    shape = (4, rows) if axis == 0 else (rows, 4)
    x = mt.full(shape, 2.5, requires_grad=True)
    run(lambda x: mt.ops.std(x, axis))(x).sum().backward()
    assert x.grad.tolist() == mt.zeros(shape).tolist()


@pytest.mark.parametrize("op", [lambda x: mt.ops.sort(x)[0], lambda x: mt.ops.topk(x, 2)[0], mt.ops.max])
def test_positions_that_a_gradient_uses_have_no_history(op):
    x = mt.Tensor([1.0, 3.0, 2.0], dtype="float64", requires_grad=True)
    (first,) = mt.grad((op(x) ** 3).sum(), x, create_graph=True)
    (second,) = mt.grad(first.sum(), x)
    # Each element is cubed where it is kept.
    kept = np.asarray(first.detach()) != 0
    np.testing.assert_allclose(second, np.where(kept, 6 * np.asarray(x.detach()), 0))


@pytest.mark.parametrize("order", [0, 1])
def test_passes_at_the_same_time_add_up(order):
    # The hook runs a pass between the two leaves of the outer pass. In one of the orders, the outer pass has computed
    # the sum for `x` by then, but not stored it.
    x, y = mt.ones(3, requires_grad=True), mt.ones(3, requires_grad=True)

    @mt.enable_grad()
    def hook(grad):
        (x * 10).sum().backward()

    y.register_hook(hook)
    first, second = [(x, y), (y, x)][order]
    (first * 1 + second * 1).sum().backward()
    assert x.grad.tolist() == [11.0] * 3


def test_threads_add_up_their_gradients():
    x = mt.ones(200_000, requires_grad=True)
    threads = [threading.Thread(target=lambda: [(x * 1).sum().backward() for _ in range(5)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.grad.min().item() == x.grad.max().item() == 20


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("is_view", [False, True])
def test_an_accumulated_gradient_is_not_the_memory_of_an_array(is_view):
    array = np.ones(6, np.float32)

    @mt.custom_op(name="test_autograd::kept", backward=lambda ctx, d: mt.asarray(array, copy=False))
    def kept(x):
        return x * 1

    w = mt.zeros((2, 3) if is_view else 6).requires_grad_()
    kept(w.reshape(6)).sum().backward()
    w.grad[...] = 0
    assert array.all()
