"""The life of graphs with control flow, and random programs."""

import gc
import random
import threading

import numpy as np
import pytest
from control_flow_checks import NEGATIVE, POSITIVE, arrays

import minitensor as mt


def test_nothing_remains():
    def f(x):
        h = x * 2
        return mt.scan(lambda c, x: (mt.cond(x.sum() > 0, lambda: c * h, lambda: c - x), c), x, mt.ones((5, 1000)))

    # The first graph with control flow adds the namespace of its ops.
    mt.jit(f)(mt.ones(1000, requires_grad=True))
    before = mt.list_custom_ops_py()
    names = dir(mt.ops)
    gc.collect()
    allocated = mt.memory_stats()["allocated"]

    jitted = mt.jit(f)
    x = mt.ones(1000, requires_grad=True)
    for _ in range(3):
        sum(t.sum() for t in jitted(x)).backward()
    assert mt.list_custom_ops_py() == before and dir(mt.ops) == names
    del jitted, x, f
    gc.collect()
    assert mt.memory_stats()["allocated"] <= allocated


def test_threads():
    def f(x):
        return mt.cond(x.sum() > 0, lambda x: mt.scan(lambda c, _: (c * 1.1, None), x, length=3)[0], lambda x: -x, x)

    wrong = []

    def work(k):
        jitted = mt.jit(f)
        for i in range(10):
            x = mt.full((3,), float(k + i - 5))
            if not np.allclose(jitted(x).numpy(), f(x).numpy()):
                wrong.append((k, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def test_memory_that_outlives_the_recording():
    class Cell:
        def __init__(self):
            self.h = mt.zeros(3)

        def __call__(self, x):
            self.h = mt.cond(x.sum() > 0, lambda h: h + x, lambda h: h - x, self.h)
            return self.h * 1

    eager, cell = Cell(), Cell()
    jitted = mt.jit(cell)
    for i in range(5):
        x = POSITIVE if i % 2 else NEGATIVE
        assert jitted(x).tolist() == eager(x).tolist()


def random_program(seed, w):
    """A function of two tensors of shape (3,), with nested control flow that uses values around it."""
    rng = random.Random(seed)

    def body(depth, size):
        steps = []
        for _ in range(size):
            kind = rng.choice(["unary", "binary", "w", "cond", "scan"] if depth else ["unary", "binary", "w"])
            inner = [body(depth - 1, 3) for _ in range(2)] if kind in ("cond", "scan") else []
            steps.append((kind, rng.choice(["tanh", "sin", "sigmoid"]), [rng.random() for _ in range(4)], inner))

        def f(*values):
            values = list(values)
            for kind, unary, where, inner in steps:
                # The functions below refer to these, and to the list.
                a, b, c, d = (values[int(k * len(values))] for k in where)
                match kind:
                    case "unary":
                        y = getattr(mt.ops, unary)(a)
                    case "binary":
                        y = a * b - c
                    case "w":
                        y = w * a + b
                    case "cond":
                        first, second = inner
                        known = values[-2:]
                        y = mt.cond(
                            a.sum() > b.sum(),
                            lambda d, first=first, b=b, c=c: first(b, c, d),
                            lambda d, second=second, a=a, known=known: second(a, *known, d),
                            d,
                        )
                    case _:
                        step, last = inner

                        def g(carry, x, a=a, step=step, last=last):
                            carry = step(carry, a) * x
                            return carry, last(carry, a)

                        carry, ys = mt.scan(g, b, mt.ops.stack([c, d])[:, :1], reverse=where[0] > 0.5)
                        y = carry + ys.sum(axis=0)
                values.append(mt.ops.clamp(y, -2, 2))
            return values[-1] + values[-2]

        return f

    return body(2, 6)


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_agree(seed):
    w = mt.Tensor([0.5, -1.0, 2.0], requires_grad=True)
    f = random_program(seed, w)
    x, y = POSITIVE * 0.3, NEGATIVE * 0.2

    def through(f, *args):
        w.grad = None
        leaves = [t.detach().requires_grad_() for t in args]
        z = f(*leaves)
        found = mt.grad((z * z).sum(), [*leaves, w], allow_unused=True)
        return [z, *(mt.zeros(3) if g is None else g for g in found)]

    jitted = mt.jit(f)
    inside = mt.jit(lambda *args: through(f, *args))
    for args in ((x, y), (y, x), (x * y, y), (x, y), (x * 3, y * -2), (y, x)):
        expected = arrays(through(f, *args))
        for got in (through(jitted, *args), inside(*args)):
            for a, b in zip(arrays(got), expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)
    assert len(jitted.graphs) == len(inside.graphs) == 1
