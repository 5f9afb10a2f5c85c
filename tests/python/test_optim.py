"""Compares optimizers with the formulas in NumPy."""

import numpy as np
import pytest

import minitensor as mt


def sgd(p, g, s, t, lr=0.1, momentum=0.9, nesterov=False, weight_decay=0.01):
    g = g + weight_decay * p
    s["v"] = momentum * s.get("v", 0) + g
    return p - lr * (g + momentum * s["v"] if nesterov else s["v"])


def adam(p, g, s, t, lr=0.1, b1=0.8, b2=0.99, eps=1e-8, weight_decay=0.1, decoupled=False):
    if not decoupled:
        g = g + weight_decay * p
    s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
    s["v"] = b2 * s.get("v", 0) + (1 - b2) * g * g
    step = (s["m"] / (1 - b1**t)) / (np.sqrt(s["v"] / (1 - b2**t)) + eps)
    return p - lr * (step + (weight_decay * p if decoupled else 0))


CASES = {
    "plain": (lambda p: mt.optim.SGD(p, lr=0.1), lambda *a: sgd(*a, momentum=0, weight_decay=0)),
    "momentum": (lambda p: mt.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01), sgd),
    "nesterov": (
        lambda p: mt.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
        lambda *a: sgd(*a, nesterov=True),
    ),
    "adam": (lambda p: mt.optim.Adam(p, lr=0.1, betas=(0.8, 0.99), weight_decay=0.1), adam),
    "adamw": (
        lambda p: mt.optim.AdamW(p, lr=0.1, betas=(0.8, 0.99), weight_decay=0.1),
        lambda *a: adam(*a, decoupled=True),
    ),
}


def run(optimizer, p, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        (p * p * p).sum().backward()
        optimizer.step()


@pytest.mark.parametrize("case", CASES)
def test_steps_are_the_formulas(case, rng):
    make, reference = CASES[case]
    start = rng.normal(size=5)
    p = mt.Tensor(start, requires_grad=True)
    run(make([p]), p, 5)
    expected, state = start, {}
    for t in range(1, 6):
        expected = reference(expected, 3 * expected**2, state, t)
    assert np.allclose(p.detach().numpy(), expected)
    assert p.is_leaf and p.requires_grad


@pytest.mark.parametrize("case", CASES)
def test_training_continues_from_a_saved_state(case):
    make, _ = CASES[case]
    p, q = (mt.Tensor([1.0, -0.5], requires_grad=True) for _ in range(2))
    first, second = make([p]), make([q])
    run(first, p, 3)
    run(second, q, 3)
    third = make([q])
    third.load_state_dict(second.state_dict())
    run(first, p, 2)
    run(third, q, 2)
    assert p.tolist() == q.tolist()


def test_parameters_without_a_gradient_stay():
    p, q = mt.Tensor([1.0], requires_grad=True), mt.Tensor([1.0], requires_grad=True)
    optimizer = mt.optim.SGD([p, q], lr=0.5)
    (p * 1).sum().backward()
    optimizer.step()
    assert (p.item(), q.item()) == (0.5, 1.0)
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.item() == 0.0


def test_wrong_parameters_and_options_raise():
    p = mt.Tensor([1.0], requires_grad=True)
    for params, error, words in [
        (p, TypeError, "list of Tensors"),
        ([], ValueError, "at least one"),
        ([1.0], TypeError, r"params\[0\] must be a Tensor"),
        ([p * 2], ValueError, "a leaf"),
        ([mt.zeros(1)], ValueError, "a leaf"),
        ([p, p], ValueError, "twice"),
    ]:
        with pytest.raises(error, match=words):
            mt.optim.SGD(params)
    for make, words in [
        (lambda: mt.optim.SGD([p], lr=-1), "lr must be at least 0"),
        (lambda: mt.optim.SGD([p], nesterov=True), "nesterov requires a momentum"),
        (lambda: mt.optim.Adam([p], betas=(1.0, 0.9)), r"betas\[0\] must be"),
        (lambda: mt.optim.Adam([p]).load_state_dict({}), "not a state of an optimizer"),
        (lambda: mt.optim.Adam([p]).load_state_dict(mt.optim.SGD([p]).state_dict()), "another optimizer"),
    ]:
        with pytest.raises(ValueError, match=words):
            make()


def test_a_line_is_fitted(rng):
    x = mt.Tensor(rng.normal(size=(64, 1)))
    y = x * 3 + 1
    w, b = (mt.zeros(1, dtype="float64", requires_grad=True) for _ in range(2))
    optimizer = mt.optim.Adam([w, b], lr=0.1)
    for _ in range(300):
        optimizer.zero_grad()
        ((x * w + b - y) ** 2).mean().backward()
        optimizer.step()
    assert w.item() == pytest.approx(3, abs=1e-2)
    assert b.item() == pytest.approx(1, abs=1e-2)
