"""Tests of the ops of plugins: ownership, errors after unloading, and atomic registration."""

import contextlib
import gc
import os
import sys
import threading
from pathlib import Path

import pytest
from minitensor._minitensor import CustomOp
from minitensor.plugins import PluginRegistry
from python_plugin import built, plugin

import minitensor as mt

pytestmark = pytest.mark.usefixtures("registered", "no_plugins_stay")


def test_a_lookup_of_an_op_of_an_unloaded_plugin_names_the_plugin():
    registry = PluginRegistry()
    p = plugin(ops=["tripled", "told::tripled"])
    registry.register(p)
    registry.unregister("math")
    words = "came with plugin 'math', which was unloaded; load the plugin again to use it"
    x = mt.Tensor([1.0])
    for call in (mt.execute_custom_op, mt.execute_custom_op_py):
        with pytest.raises(ValueError, match="op 'tripled' " + words):
            call("tripled", [x])
        with pytest.raises(ValueError, match="op 'told::tripled' " + words):
            call("told::tripled", [x])
    with pytest.raises(ValueError, match="op 'tripled' " + words):
        mt.ops.describe("tripled")
    with pytest.raises(AttributeError, match="op 'tripled' " + words):
        mt.ops.tripled  # noqa: B018
    with pytest.raises(AttributeError, match="op 'told::tripled' " + words):
        mt.ops.told.tripled  # noqa: B018
    with pytest.raises(AttributeError, match="module 'minitensor.ops' has no attribute 'nonsense'"):
        mt.ops.nonsense  # noqa: B018
    registry.register(p)
    assert mt.ops.tripled(x).item() == mt.ops.told.tripled(x).item() == 2.0
    assert "__getattr__" not in vars(mt.ops.told)
    registry.unregister("math")


def test_tensors_and_graphs_outlive_the_plugin():
    registry = PluginRegistry()
    backward = lambda ctx, grad: grad * ctx.inputs[0] * 2  # noqa: E731
    op = mt.CustomOpBuilder("squared", 1).forward(lambda x: x * x).backward(backward).build()
    registry.register(plugin(ops=[op]))
    function, x = mt.ops.squared, mt.Tensor([3.0], requires_grad=True)
    y = function(x)
    registry.unregister("math")
    gc.collect()
    y.backward()
    assert (y.item(), x.grad.item()) == (9.0, 6.0)
    with pytest.raises(RuntimeError, match="op 'squared' came with plugin 'math', which was unloaded"):
        function(x)


def test_a_cleanup_that_raises_is_reported_and_the_plugin_is_removed(caplog):
    def fails(registry):
        raise OSError("disk")

    registry = PluginRegistry()
    registry.register(plugin(ops=["uncleaned"], cleanup=fails))
    with pytest.warns(RuntimeWarning, match=r"cleanup of plugin 'math' failed; .*OSError\('disk'\)"):
        registry.unregister("math")
    assert "cleanup of plugin 'math' failed" in caplog.text
    assert "math" not in registry and not mt.is_custom_op_registered_py("uncleaned")


def test_an_op_that_was_unregistered_or_replaced_is_not_touched():
    registry = PluginRegistry()
    registry.register(plugin(ops=["by_hand", "replaced"]))
    for name in ("by_hand", "replaced"):
        mt.unregister_custom_op_py(name)
    mt.custom_op(name="replaced")(lambda x: x * 5)
    registry.unregister("math")
    assert mt.ops.replaced(mt.Tensor([1.0])).item() == 5.0
    assert not hasattr(mt.ops, "by_hand")


def test_an_op_knows_its_plugin():
    registry, free = PluginRegistry(), mt.custom_op(name="adopted")(lambda x: x)
    registry.register(plugin(ops=["listed", free], initialize=lambda registry: built("of_initialize").register()))
    for name in ("listed", "adopted", "of_initialize"):
        assert mt.ops.describe(name)["plugin"] == "math"
    assert mt.ops.describe("swish")["plugin"] is None
    with pytest.raises(
        ValueError, match="'adopted' is already registered: by .* of plugin 'math', and again by .*; .*un"
    ):
        built("adopted").register()
    mt.unregister_custom_op_py("listed")
    built("listed").register()
    assert mt.ops.describe("listed")["plugin"] is None
    registry.unregister("math")
    assert mt.is_custom_op_registered_py("listed") and not mt.is_custom_op_registered_py("adopted")


def test_a_plugin_that_fails_leaves_no_owner_and_no_reason():
    def fails(registry):
        raise KeyError("inside")

    free = mt.custom_op(name="unowned")(lambda x: x)
    with pytest.raises(KeyError):
        PluginRegistry().register(plugin(ops=["unlucky", free], initialize=fails))
    assert mt.ops.describe("unowned")["plugin"] is None
    with pytest.raises(ValueError, match="there is no op 'unlucky'"):
        mt.ops.describe("unlucky")


def test_custom_ops_are_compared_by_identity():
    one, other = built("twin"), built("twin")
    function = one.register()
    assert CustomOp.of(function) == one != other and len({one, other, CustomOp.of(mt.ops.twin)}) == 2
    assert one.is_registered and not other.is_registered
    other.unregister()
    assert one.is_registered and one.aliases == [] and repr(one) == "CustomOp('twin')"
    one.unregister()
    other.register()
    assert other.is_registered and not one.is_registered and CustomOp.of(mt.ops.twin) == other
    assert CustomOp.of(mt.ops.relu) is CustomOp.of(len) is CustomOp.of(3) is None


def test_unregistering_an_op_removes_no_other_attribute():
    op = built("inf")
    assert op.register() is mt.ops.inf and mt.inf == float("inf")
    op.unregister()
    assert mt.inf == float("inf") and not hasattr(mt.ops, "inf")


def test_a_referenced_function_works_again_after_its_plugin_is_reloaded():
    registry, p = PluginRegistry(), plugin(ops=[built("held")])
    registry.register(p)
    held, x = mt.ops.held, mt.Tensor([1.0])
    registry.unregister("math")
    with pytest.raises(RuntimeError, match="op 'held' came with plugin 'math', which was unloaded; load the plugin"):
        held(x)
    registry.register(p)
    assert held(x).item() == 2.0
    registry.unregister("math")
    other = built("held", 3.0)
    other.register()
    with pytest.raises(RuntimeError, match="op 'held' of this function was replaced by another"):
        held(x)


def test_the_ops_of_a_plugin_are_registered_and_unregistered_atomically():
    registry, names = PluginRegistry(), {f"moment{i}" for i in range(20)}
    p, seen, done = plugin(ops=sorted(names)), set(), threading.Event()

    def watch():
        while not done.is_set():
            seen.add(len(names.intersection(mt.list_custom_ops_py())))

    watcher = threading.Thread(target=watch)
    watcher.start()
    for _ in range(100):
        registry.register(p)
        registry.unregister("math")
    done.set()
    watcher.join()
    assert seen <= {0, 20}


def test_the_latest_thousand_reasons_are_kept():
    registry = PluginRegistry()
    for k in range(11):
        registry.register(plugin(ops=[f"many::op{k}_{i}" for i in range(100)]))
        registry.unregister("math")
    with pytest.raises(ValueError, match="there is no op 'many::op0_0'"):
        mt.ops.describe("many::op0_0")
    for name in ("many::op1_0", "many::op10_99"):
        with pytest.raises(ValueError, match=f"op '{name}' came with plugin 'math'"):
            mt.ops.describe(name)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="it reads /proc")
def test_registering_and_unregistering_ops_leaks_no_memory():
    x = mt.Tensor([1.0])
    registry, p = PluginRegistry(), plugin(ops=["passing", "space::passing"])

    def rounds(n):
        for _ in range(n):
            op = mt.CustomOpBuilder("fleeting", 1).forward(lambda x: (x, x)).outputs("a", "b").build()
            op.register()(x)
            mt.execute_custom_op("fleeting", [x])
            op.unregister()
            registry.register(p)
            mt.ops.passing(x)
            registry.unregister("math")
        gc.collect()
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = rounds(700)
    assert rounds(2000) - before < 2 << 20


def test_a_thousand_round_trips_leak_nothing():
    registry = PluginRegistry()
    ops, modules = len(mt.list_custom_ops_py()), len(sys.modules)
    p = plugin(ops=["often", "space::often"])
    for _ in range(1000):
        registry.register(p)
        registry.unregister("math")
    gc.collect()
    assert len(mt.list_custom_ops_py()) == ops and len(registry) == 0
    assert len(sys.modules) <= modules + 1
    assert not any(getattr(o, "__name__", "") == "often" for o in gc.get_objects() if type(o) is type(len))


def test_threads_register_at_once():
    registry, barrier, errors = PluginRegistry(), threading.Barrier(8), []

    def work(i):
        barrier.wait()
        for k in range(20):
            registry.register(plugin(f"p{i}", ops=[f"op{i}", f"more{i}"]))
            assert mt.execute_custom_op(f"op{i}", [mt.Tensor([1.0])]).item() == 2.0
            if k < 19:
                registry.unregister(f"p{i}")
            try:
                registry.register(plugin("contested", ops=["contested"]))
            except ValueError as error:
                errors.append(str(error))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(info.name for info in registry) == sorted(["contested", *(f"p{i}" for i in range(8))])
    assert len(errors) == 8 * 20 - 1 and all("'contested' is already registered" in e for e in errors)
    for info in registry:
        registry.unregister(info.name)


def test_threads_that_contend_for_names_agree_with_the_registry():
    names, barrier = ["contended", "space::contended"], threading.Barrier(4)

    def work(factor):
        ops = [built(name, factor) for name in names]
        barrier.wait()
        for _ in range(300):
            for op in ops:
                with contextlib.suppress(ValueError):
                    op.register()
            for op in ops:
                op.unregister()
        with contextlib.suppress(ValueError):
            ops[0].register()

    threads = [threading.Thread(target=work, args=(float(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert mt.is_custom_op_registered_py("contended") and CustomOp.of(mt.ops.contended).is_registered
    assert mt.ops.contended(mt.Tensor([1.0])).item() in range(4)
    assert not hasattr(mt.ops.space, "contended")
