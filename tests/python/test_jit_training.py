"""Jitted steps of training."""

import warnings

import pytest
from jit_checks import bits, randn

import minitensor as mt


def mlp():
    mt.manual_seed(1)
    return mt.nn.Sequential(mt.nn.Linear(4, 8), mt.nn.Function(mt.ops.gelu), mt.nn.Linear(8, 2))


@pytest.mark.parametrize("make", [
    lambda p: mt.optim.SGD(p, lr=0.1),
    lambda p: mt.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    lambda p: mt.optim.Adam(p, lr=0.01),
    lambda p: mt.optim.AdamW(p, lr=0.01),
])  # fmt: skip
def test_a_step_with_an_optimizer(make):
    def run(wrap):
        model = mlp()
        optimizer = make(model.parameters())

        def step(x, y):
            optimizer.zero_grad()
            loss = ((model(mt.ops.dropout(x, p=0.1)) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        step = wrap(step)
        losses = []
        for i in range(8):
            if i == 5:
                optimizer.lr *= 0.5
            losses.append(step(randn(6, 4) + i, randn(6, 2)).item())
        grads = [p.grad.tolist() for p in model.parameters()]
        return losses, {name: t.tolist() for name, t in model.state_dict().items()}, grads, optimizer.steps, step

    *eager, _ = run(lambda f: f)
    *jitted, step = run(mt.jit)
    assert jitted == eager
    assert sum(kind.recordings for kind in step._kinds.values()) <= 3


def test_accumulated_gradients():
    def run(wrap):
        w = randn(4).requires_grad_()
        f = wrap(lambda x: ((x * w) ** 2).sum().backward())
        for i in range(5):
            f(randn(4) + i)
        return w.grad.tolist()

    assert run(mt.jit) == run(lambda f: f)


def test_a_module_as_argument_and_its_mode():
    model = mt.nn.Sequential(mt.nn.Linear(4, 4), mt.nn.Function(mt.ops.tanh))
    jitted = mt.jit(lambda model, x: model(x) * (2 if model.training else 3))
    for mode in (True, False, True, False):
        model.train(mode)
        for _ in range(2):
            assert bits(jitted(model, randn(2, 4))) == bits(model(randn(2, 4)) * (2 if mode else 3))


def test_replaced_parameters_are_used():
    model = mt.nn.Linear(4, 4)
    jitted = mt.jit(model)
    for i in range(3):
        model.weight = randn(4, 4).requires_grad_() if i else model.weight
        for _ in range(2):
            assert bits(jitted(randn(2, 4))) == bits(model(randn(2, 4)))
    model.load_state_dict({"weight": randn(4, 4) + 1, "bias": randn(4)})
    assert bits(jitted(randn(2, 4))) == bits(model(randn(2, 4)))


def test_hidden_state_of_an_object():
    class Cell:
        def __init__(self):
            self.h = mt.zeros(3)

        def __call__(self, x):
            self.h = (self.h + x).tanh()
            return self.h * 1

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        eager, cell = Cell(), Cell()
        jitted = mt.jit(cell)
        for i in range(20):
            assert bits(jitted(randn(3) + i)) == bits(eager(randn(3) + i))


def test_a_new_optimizer_and_a_restored_one():
    def run(wrap):
        p = mt.Tensor([1.0], requires_grad=True)
        optimizer = mt.optim.Adam([p], lr=0.1)
        values = []

        def step(x):
            optimizer.zero_grad()
            ((p * x) ** 2).sum().backward()
            optimizer.step()

        step = wrap(step)
        initial = optimizer.state_dict()
        for i in range(24):
            if i == 5:
                optimizer = mt.optim.Adam([p], lr=0.05)
            if i == 10:
                kept = [dict(state) for state in optimizer.state]
                saved = optimizer.state_dict()
            if i == 15:
                optimizer.load_state_dict(saved)
            if i == 20:
                optimizer.load_state_dict(initial)
            step(mt.ones(1))
            values.append(p.item())
        return values, [len(state) for state in kept]

    assert run(mt.jit) == run(lambda f: f)


@pytest.mark.filterwarnings("ignore:mt.jit")
def test_code_that_uses_the_state_of_an_optimizer():
    class Half(mt.optim.Adam):
        def _update(self, param, grad, state, numbers):
            super()._update(param, grad, state, {**numbers, "lr": numbers["lr"] / 2})

    def run(wrap, make, body):
        p = mt.Tensor([1.0], requires_grad=True)
        optimizer = make([p])
        step = wrap(lambda x: body(optimizer, p, x))
        results = []
        for i in range(20):
            if i == 10:
                optimizer.lr = 0.01
            results.append(step(mt.ones(1)).item())
        return results, p.item()

    def plain(optimizer, p, x):
        optimizer.zero_grad()
        loss = ((p * x) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss

    def decaying(optimizer, p, x):
        optimizer.lr *= 0.9
        return plain(optimizer, p, x) * optimizer.steps

    for make, body in ((Half, plain), (mt.optim.SGD, decaying), (mt.optim.Adam, decaying)):
        assert run(mt.jit, make, body) == run(lambda f: f, make, body)


def test_hooks_of_modules():
    model = mt.nn.Linear(2, 2)
    jitted = mt.jit(model)
    for _ in range(2):
        assert bits(jitted(randn(1, 2))) == bits(model(randn(1, 2)))
    with model.register_forward_hook(lambda module, args, output: output * 2):
        for _ in range(2):
            assert bits(jitted(randn(1, 2))) == bits(model(randn(1, 2)))
    assert bits(jitted(randn(1, 2))) == bits(model(randn(1, 2)))
