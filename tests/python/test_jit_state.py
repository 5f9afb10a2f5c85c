"""A graph is recorded again when something that its function reads has changed."""

import gc
import itertools
import random
import types
import warnings

import numpy as np
import pytest
from jit_checks import assert_same, bits, randn

import minitensor as mt

SCALE = 2.0


class Scaled(mt.nn.Module):
    bias = 1.0

    def forward(self, x):
        return self.helper(x) + self.bias

    def helper(self, x):
        return x * SCALE


def test_methods_and_classes_are_watched():
    global SCALE
    module = Scaled()
    jitted = mt.jit(module)
    for SCALE, Scaled.bias in ((2.0, 1.0), (3.0, 1.0), (3.0, 5.0), (2.0, 1.0)):
        for _ in range(2):
            assert jitted(mt.ones(1)).item() == SCALE + Scaled.bias


def test_attributes_of_classes_and_modules():
    class Config:
        scale = 2.0

    module = types.ModuleType("jit_test_config")
    module.bias = 1.0
    jitted = mt.jit(lambda x: x * Config.scale + module.bias)
    for Config.scale, module.bias in ((2.0, 1.0), (3.0, 1.0), (3.0, 4.0)):
        for _ in range(2):
            assert jitted(mt.ones(1)).item() == Config.scale + module.bias


def test_tensors_that_are_not_operands():
    d = {"m": mt.ones(2)}
    jitted = mt.jit(lambda x: x * 3 if d["m"] is None else x * d["m"].shape[0])
    for size in (2, None, 4, None, 5, 5):
        d["m"] = None if size is None else mt.ones(size)
        assert jitted(mt.ones(1)).item() == (3 if size is None else size)


def test_signs_of_zeros():
    assert_same(lambda x: ((1 / (x * 0.0)).exp(), (1 / (x * -0.0)).exp()), (mt.ones(2),))


def test_globals_closures_and_attributes_are_watched():
    factor = 2.0
    config = {"bias": 1.0}
    jitted = mt.jit(lambda x: x * factor + config["bias"])
    np.testing.assert_array_equal(jitted(mt.ones(2)).numpy(), [3, 3])
    factor = 3.0
    np.testing.assert_array_equal(jitted(mt.ones(2)).numpy(), [4, 4])
    config["bias"] = 5.0
    np.testing.assert_array_equal(jitted(mt.ones(2)).numpy(), [8, 8])


def test_captured_tensors_are_read_in_each_run():
    w = mt.ones(2)
    jitted = mt.jit(lambda x: x * w)
    jitted(mt.ones(2))
    w += 1
    assert jitted(mt.ones(2)).tolist() == [2, 2]
    w = mt.full((2,), 5.0)
    assert jitted(mt.ones(2)).tolist() == [5, 5]


def test_a_function_that_changes_its_own_state_runs_without_a_graph_in_the_end():
    count = [0]

    def f(x):
        count[0] += 1
        return x * count[0]

    jitted = mt.jit(f)
    with pytest.warns(RuntimeWarning, match=r"recorded 16 times .* count\[0\] changes"):
        assert [jitted(mt.ones(1)).item() for _ in range(20)] == list(range(1, 21))


def test_an_op_that_is_registered_again():
    def define(factor):
        @mt.element_op(name="jit_test_again")
        def jit_test_again(x):
            return x * factor

    jitted = mt.jit(lambda x: mt.ops.jit_test_again(x) + 1)
    try:
        define(2.0)
        assert [jitted(mt.ones(1)).item() for _ in range(2)] == [3, 3]
        mt.unregister_custom_op_py("jit_test_again")
        with pytest.raises(AttributeError, match="jit_test_again"):
            jitted(mt.ones(1))
        define(5.0)
        assert [jitted(mt.ones(1)).item() for _ in range(2)] == [6, 6]
    finally:
        mt.unregister_custom_op_py("jit_test_again")


def test_sizes_that_return_keep_their_graphs():
    calls = itertools.count()

    @mt.jit
    def total(x):
        next(calls)
        return (x * 2 + 1).sum()

    sizes = random.Random(5).choices(range(1, 200), k=2000)
    results = [total(mt.ones(n)).item() for n in sizes]
    assert results == [3 * n for n in sizes]
    assert next(calls) == len(total.graphs) == len(set(sizes))


def test_more_sizes_than_graphs_that_are_kept():
    f = mt.jit(lambda x: (x * 2 + 1).sum())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # A size is recorded again in each round, because the others drop its graph.
        for _ in range(20):
            assert all(f(mt.ones(n)).item() == 3 * n for n in range(300))
    assert len(f.graphs) == 256
    assert f.graphs[-1].ops


def test_graphs_do_not_keep_captured_tensors():
    w = [mt.ones(1000)]
    jitted = mt.jit(lambda x: x + w[0])
    jitted(mt.ones(1000))
    before = mt.memory_stats()["allocated"]
    w[0] = mt.full((1000,), 2.0)
    gc.collect()
    assert mt.memory_stats()["allocated"] <= before
    assert jitted(mt.ones(1000))[0].item() == 3


def scaled(k):
    return lambda x: x * k[0]


class WithDefault:
    scale = 1.0

    def __init__(self):
        self.own = 1.0

    def f(self, x):
        return x * self.own


class Layers(list):
    pass


def changes():
    """Functions with state, and changes of it that must be noticed: two parts of the state have the same name."""
    one, two, lacks = WithDefault(), WithDefault(), WithDefault()
    one.scale = 1.0
    yield "attribute and default", lambda x: x * one.scale, lambda: setattr(one, "scale", 5.0)
    yield "first time", lambda x: x * two.scale, lambda: setattr(two, "scale", 5.0)
    yield "getattr", lambda x: x * getattr(lacks, "k", 1.0), lambda: setattr(lacks, "k", 5.0)
    for i in range(2):
        cells = [1.0], [1.0]
        a, b = map(scaled, cells)
        yield f"closure {i}", lambda x, a=a, b=b: a(x) + b(x), lambda c=cells[i]: c.__setitem__(0, 5.0)
        owners = WithDefault(), WithDefault()
        f, g = (owner.f for owner in owners)
        yield f"method {i}", lambda x, f=f, g=g: f(x) + g(x), lambda o=owners[i]: setattr(o, "own", 5.0)
        pair = [scaled([1.0]), scaled([1.0])]
        yield f"list {i}", lambda x, p=pair: p[0](x) + p[1](x), lambda p=pair, i=i: p.__setitem__(i, scaled([9.0]))
    values = {1}
    yield "set", lambda x: x * len(values), lambda: values.add(2)
    layers = Layers([2.0])
    yield "subclass of list", lambda x: x * layers[0], lambda: layers.__setitem__(0, 3.0)


@pytest.mark.parametrize(("f", "change"), [pytest.param(f, change, id=name) for name, f, change in changes()])
def test_changes_of_state_are_noticed(f, change):
    x, jitted = randn(3), mt.jit(f)
    for _ in range(3):
        assert bits(jitted(x)) == bits(f(x))
    assert len(jitted.graphs) == 1
    change()
    assert bits(jitted(x)) == bits(f(x))


def test_attributes_are_watched_to_the_documented_depth():
    class Node:
        pass

    o = Node()
    o.a = Node()
    o.a.b = Node()
    o.a.b.c = Node()
    o.a.b.c.d = 2.0
    f = mt.jit(lambda x: x * o.a.b.c.d)
    assert f(mt.ones(1)).item() == 2
    o.a.b.c.d = 3.0
    assert f(mt.ones(1)).item() == 3
