"""In-place ops and assignment: gradients, views, overlapping memory."""

import contextlib

import numpy as np
import pytest

import minitensor as mt


def leaf(*values, dtype="float64"):
    return mt.Tensor(list(values), dtype=dtype, requires_grad=True)


OPS = {name: mt.ops.describe(name) for name in mt.list_custom_ops_py()}
IN_PLACE = [name for name in OPS if name[:-1] in OPS and name.endswith("_") and OPS[name[:-1]]["differentiable"]]


@pytest.mark.parametrize("name", IN_PLACE)
def test_an_in_place_op_has_the_gradient_of_its_out_of_place_op(name):
    beside, in_place = getattr(mt.ops, name[:-1]), getattr(mt.ops, name)
    n = len(OPS[name]["inputs"])
    for alike in {False, n == 2}:
        gradients = []
        for call in (beside, in_place):
            leaves = [leaf(0.3, 0.7), leaf(0.6, 0.2)][:n]
            # A tensor to modify, and the tensor that it was computed from.
            inputs = [x * 1.0 for x in leaves]
            if alike:
                inputs[1] = inputs[0]
            (call(*inputs) * mt.Tensor([1.0, 3.0], dtype="float64")).sum().backward()
            gradients.append([None if x.grad is None else x.grad.tolist() for x in leaves])
        assert repr(gradients[0]) == repr(gradients[1])


def test_the_in_place_operators_are_covered():
    assert {"add_", "subtract_", "multiply_", "divide_", "power_", "remainder_"} <= set(IN_PLACE)
    a = leaf(3.0)
    x = a * 1
    x *= x
    x.sum().backward()
    assert a.grad.tolist() == [6.0]


def test_a_recorded_change_of_a_view_is_a_change_of_its_base():
    w = leaf(2.0)
    buffer = mt.zeros((2, 3), dtype="float64")
    first, second = buffer
    first += w
    assert buffer.requires_grad and not buffer.is_leaf and second.requires_grad
    second.add_(w * w)
    assert buffer.tolist() == [[2.0] * 3, [4.0] * 3]
    (buffer * buffer).sum().backward()
    # 3 w² + 3 w⁴
    assert w.grad.tolist() == [108.0]
    whole, w.grad = mt.zeros((2, 3), dtype="float64"), None
    part = whole[0:1]
    whole += w
    (part * 2).sum().backward()
    assert w.grad.tolist() == [6.0]


def test_a_change_through_a_detached_tensor_is_not_lost():
    w = leaf(2.0)
    x = mt.zeros(3, dtype="float64")
    apart = x.detach()
    apart += w
    with pytest.raises(RuntimeError, match="changed in place through another tensor that shares its memory"):
        x * 2
    assert x.detach().sum().item() == 6.0


def test_a_slice_may_be_changed_by_an_in_place_operator():
    w, u = leaf(2.0), leaf(1.0, 1.0, 1.0)
    x = mt.ones(3, dtype="float64")
    x[1] += w[0]
    (x * x).sum().backward()
    assert (x.tolist(), w.grad.tolist()) == ([1.0, 3.0, 1.0], [6.0])
    x, w.grad = u * 1, None
    for i in (0, 2):
        x[i] *= w[0]
    x[1:] += 1
    (x * mt.Tensor([1.0, 10.0, 100.0], dtype="float64")).sum().backward()
    assert x.tolist() == [2.0, 2.0, 3.0]
    assert (w.grad.tolist(), u.grad.tolist()) == ([101.0], [2.0, 10.0, 200.0])
    for place, value in ((2, lambda _: w[0]), (slice(2, 3), lambda part: part), ([2], lambda part: part)):
        x, w.grad = mt.zeros(3, dtype="float64"), None
        part = x[0:1]
        part += w
        x[place] = value(part)
        assert x.tolist() == [2.0, 0.0, 2.0]
        x.sum().backward()
        assert w.grad.tolist() == [2.0]


def test_an_in_place_operator_on_a_slice_of_a_transposed_tensor_updates_it():
    for shape in ((1, 3), (3, 1), (1, 1, 4)):
        x = mt.zeros(shape).T
        x[...] += 1
        x[0] += 1
        x[:] *= 3
        expected = np.zeros(shape, np.float32).T
        expected[...] += 1
        expected[0] += 1
        expected[:] *= 3
        assert x.tolist() == expected.tolist()


def test_a_slice_is_assigned_from_an_overlapping_slice():
    for recorded in (False, True):
        x = mt.arange(5, dtype="float64")
        x = leaf(*x.tolist()) * 1 if recorded else x
        x[1:] = x[:-1]
        assert x.tolist() == [0.0, 0.0, 1.0, 2.0, 3.0]


def test_a_view_of_a_leaf_is_not_changed_in_place():
    p = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="a leaf that requires a gradient"):
        p[0:1].add_(5)
    with pytest.raises(RuntimeError, match="a leaf that requires a gradient"):
        p[0] *= 3
    assert p.tolist() == [1.0, 2.0]
    with mt.no_grad():
        p[0:1].add_(5)
    assert p.tolist() == [6.0, 2.0]


def test_a_change_that_is_not_recorded_leaves_histories_as_they_are():
    """The gradients are those of PyTorch: the derivatives of the recorded calls, at the present values."""

    def under_no_grad(h):
        with mt.no_grad():
            h += 1

    def of_a_view(h):
        with mt.no_grad():
            h[:2] += 1

    def through_a_detached_tensor(h):
        apart = h.detach()
        apart += 1

    for change in (under_no_grad, of_a_view, through_a_detached_tensor):
        w = leaf(1.0, 1.0, 1.0)
        h = w * 2
        view, later = h[:2], h * 3
        change(h)
        ((later + h).sum() + view.sum()).backward(retain_graph=True)
        assert w.grad.tolist() == [10.0, 10.0, 8.0]
        w.grad = None
        (h * h).sum().backward()
        assert w.grad.tolist() == (4 * h.detach()).tolist()
    w = leaf(1.0)
    h = w * 2
    y = h * h
    under_no_grad(h)
    with pytest.raises(RuntimeError, match="was changed in place after the forward pass"):
        y.sum().backward()


OVERLAPS = {
    "rows": lambda b: b[1:].__iadd__(b[:-1]),
    "a column by an element of it": lambda b: b[:, 1].__imul__(b[1, 1]),
    "its transpose": lambda b: b.__isub__(b.T),
    "a row by another": lambda b: b[0].__iadd__(b[2]),
    "itself": lambda b: b.__iadd__(b),
}


@pytest.mark.parametrize("name", OVERLAPS)
@pytest.mark.parametrize("mode", ["eager", "recorded", "jit", "lazy"])
def test_an_in_place_operator_reads_the_values_from_before_it(name, mode):
    change, start = OVERLAPS[name], np.arange(9.0).reshape(3, 3)
    expected = start.copy()
    change(expected)

    def changed(x):
        b = x.clone()
        change(b)
        return b

    x = mt.Tensor(start, dtype="float64", requires_grad=mode == "recorded")
    f = mt.jit(changed) if mode == "jit" else changed
    for _ in range(2):
        with mt.lazy() if mode == "lazy" else contextlib.nullcontext():
            out = f(x)
        assert out.tolist() == expected.tolist()
    if mode == "recorded":
        assert mt.testing.gradcheck(changed, [x])


def test_a_tensor_that_only_shares_memory_with_a_leaf_is_changed_in_place():
    a = leaf(1.0, 2.0)
    h = a * 1
    inner = h.detach().requires_grad_()
    mt.grad((inner * inner).sum(), inner)
    h += 1
    assert h.tolist() == inner.tolist() == [2.0, 3.0]
    b = a.detach()
    b += h
    assert a.tolist() == [3.0, 5.0]
