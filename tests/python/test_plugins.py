"""Tests of plugins: versions, metadata, loading and unloading, and layers."""

from pathlib import Path

import pytest
from minitensor.plugins import CustomPlugin, PluginBuilder, PluginInfo, PluginRegistry, VersionInfo
from python_plugin import built, plugin

import minitensor as mt
from minitensor import nn, plugins

pytestmark = pytest.mark.usefixtures("registered", "no_plugins_stay")


# Versions.


def test_versions_are_parsed_shown_ordered_and_hashed():
    assert str(VersionInfo.parse("1.10.0")) == "1.10.0"
    assert VersionInfo.parse("1.10.0") == VersionInfo(1, 10, 0) > VersionInfo(1, 9, 9) >= VersionInfo(1, 9, 9)
    assert len({VersionInfo(1, 0, 0), VersionInfo.parse("1.0.0"), VersionInfo(1, 0, 1)}) == 2
    assert mt.__version__.startswith(str(VersionInfo.current()))
    assert VersionInfo(1, 0, 0) != "1.0.0"
    with pytest.raises(TypeError):
        VersionInfo(1, 0, 0) < "1.0.0"  # noqa: B015


@pytest.mark.parametrize(
    ("version", "required", "compatible"),
    [
        ("1.2.3", "1.2.3", True),
        ("1.2.3", "1.2.4", False),
        ("1.3.0", "1.2.4", True),
        ("2.0.0", "1.9.9", False),
        ("0.1.5", "0.1.2", True),
        ("0.1.1", "0.1.2", False),
        ("0.2.0", "0.1.2", False),
        ("1.0.0", "0.1.2", False),
    ],
)
def test_compatibility_is_that_of_semantic_versions(version, required, compatible):
    assert VersionInfo.parse(version).is_compatible_with(VersionInfo.parse(required)) is compatible


@pytest.mark.parametrize(
    ("low", "high", "current", "words"),
    [
        ("0.1.0", None, "0.1.9", None),
        ("0.1.0", "0.9.0", "0.5.0", None),
        (None, None, "7.0.0", None),
        (None, "1.0.0", "1.0.0", None),
        ("1.2.0", None, "1.1.9", "needs minitensor 1.2.0 or later, but this is minitensor 1.1.9; upgrade minitensor"),
        (
            "1.0.0",
            "1.2.0",
            "1.2.1",
            "supports minitensor up to 1.2.0, but this is minitensor 1.2.1; use a newer version of the plugin",
        ),
        (
            "0.1.0",
            None,
            "0.2.0",
            "supports minitensor 0.1.0 and compatible versions, but this is minitensor 0.2.0; use a newer",
        ),
    ],
)
def test_a_plugin_states_the_versions_that_it_supports(low, high, current, words):
    low, high = (v and VersionInfo.parse(v) for v in (low, high))
    info = PluginInfo("p", VersionInfo(1, 0, 0), min_minitensor_version=low, max_minitensor_version=high)
    if words is None:
        info.check(VersionInfo.parse(current))
    else:
        with pytest.raises(RuntimeError, match="plugin 'p' 1.0.0 .*" + words):
            info.check(VersionInfo.parse(current))


@pytest.mark.parametrize("versions", [{"min_minitensor_version": "99.0.0"}, {"max_minitensor_version": "0.0.1"}])
def test_versions_are_enforced_before_anything_is_called(versions):
    called = []
    p = plugin(ops=["versioned"], initialize=called.append, **{k: VersionInfo.parse(v) for k, v in versions.items()})
    registry = PluginRegistry()
    with pytest.raises(RuntimeError, match=r"plugin 'math' 1.0.0 .* but this is minitensor \d+\.\d+\.\d+; "):
        registry.register(p)
    with pytest.raises(RuntimeError, match="plugin 'math'"):
        plugins.load_plugin(p)
    assert not called and not mt.is_custom_op_registered_py("versioned") and len(registry) == 0


# Metadata.


def test_info_rejects_long_texts():
    info = PluginInfo("p", VersionInfo(1, 0, 0), author="me", ops=("a", "b"))
    assert repr(info) == "PluginInfo(name='p', version=1.0.0, author='me', ops=('a', 'b'))"
    assert str(info) == "p v1.0.0 (python, ops: a, b)"
    assert repr(CustomPlugin(info)) == "CustomPlugin(p v1.0.0 (python, ops: a, b))"
    registry = PluginRegistry()
    registry.register(plugin())
    assert repr(registry) == "PluginRegistry(math v1.0.0)"


def builder():
    return PluginBuilder().name("p").version(VersionInfo(1, 0, 0))


WRONG = [
    (lambda: VersionInfo(1, -1, 0), ValueError, "minor must be an integer of at least 0, got -1"),
    (lambda: VersionInfo(1, 0, "0"), ValueError, "patch must be an integer of at least 0, got '0'"),
    (lambda: VersionInfo.parse("1.2"), ValueError, "'1.2' is not a version; write three numbers, such as '1.2.3'"),
    (lambda: VersionInfo.parse("1.2.3-rc"), ValueError, "'1.2.3-rc' is not a version"),
    (lambda: VersionInfo.parse(1), TypeError, "must be a str such as '1.2.3', got int"),
    (lambda: VersionInfo(1, 0, 0).is_compatible_with("1.0.0"), TypeError, "takes a VersionInfo, got str"),
    (lambda: PluginBuilder().build(), ValueError, r"call .name\(…\) and .version\(…\) before"),
    (lambda: PluginBuilder().name("p").build(), ValueError, r"call .version\(…\) before"),
    (lambda: builder().name("a plugin").build(), ValueError, "letters, digits, .* got 'a plugin'"),
    (lambda: builder().name(3).build(), ValueError, "got 3"),
    (lambda: builder().version("1.0.0").build(), ValueError, r"version must be a VersionInfo, such as .* got str"),
    (lambda: builder().description(1).author(None).build(), ValueError, "description .* got int; author .* got None"),
    (lambda: builder().min_minitensor_version(1).build(), ValueError, "min_minitensor_version must be a VersionInfo"),
    (
        lambda: (
            builder().min_minitensor_version(VersionInfo(2, 0, 0)).max_minitensor_version(VersionInfo(1, 0, 0)).build()
        ),
        ValueError,
        "min_minitensor_version 2.0.0 is later than max_minitensor_version 1.0.0",
    ),
    (lambda: CustomPlugin("p"), TypeError, "CustomPlugin takes a PluginInfo, got str"),
    (lambda: builder().build().set_initialize_fn(1), TypeError, "set_initialize_fn takes a function, got int"),
    (lambda: builder().build().set_cleanup_fn(1), TypeError, "set_cleanup_fn takes a function, got int"),
    (lambda: builder().build().set_custom_operations_fn([]), TypeError, "set_custom_operations_fn takes a function"),
    (lambda: PluginRegistry().register("p"), TypeError, "a plugin must be a CustomPlugin, got str"),
    (lambda: PluginRegistry().register(CustomPlugin), TypeError, "got the class CustomPlugin; instantiate it"),
    (lambda: PluginRegistry().register(CustomPlugin()), ValueError, "the plugin has no info; pass a PluginInfo"),
    (
        lambda: PluginRegistry().register(plugin(ops=[len])),
        TypeError,
        "plugin 'math': custom_operations .* got an item len",
    ),
    (lambda: PluginRegistry().register(plugin(ops=[mt.ops.relu])), TypeError, "got an item relu"),
    (lambda: PluginRegistry().register(plugin(ops=[3])), TypeError, "got an item int"),
    (lambda: PluginRegistry().register(plugin(ops=["relu"])), ValueError, "plugin 'math': op 'relu' is already regi"),
    (lambda: PluginRegistry().unregister("p"), ValueError, "there is no plugin 'p'"),
    (lambda: PluginRegistry().get_plugin(1), TypeError, "the name of a plugin must be a str, got int"),
    (lambda: plugins.unload_plugin("p"), ValueError, "there is no plugin 'p'"),
    (lambda: plugins.get_plugin_info("p"), ValueError, "there is no plugin 'p'"),
    (lambda: plugins.load_plugin(1), TypeError, "load_plugin takes the path of a file, or a CustomPlugin, got 1"),
    (
        lambda: plugins.load_plugin("nowhere.py"),
        FileNotFoundError,
        "no plugin file 'nowhere.py'; the working directory is",
    ),
    (lambda: plugins.load_plugin(Path(__file__).parent), ValueError, r"is not a plugin; expected a file '\*.py'"),
    (lambda: plugins.CustomLayer(1), TypeError, "the name of a layer must be a str, got int"),
    (lambda: plugins.CustomLayer("l").set_forward_fn(1), TypeError, "set_forward_fn takes a function, got int"),
    (lambda: plugins.CustomLayer("l")(1), NotImplementedError, r"CustomLayer\(l\) has no forward method; define"),
]


@pytest.mark.parametrize(("use", "error", "words"), WRONG, ids=[words for *_, words in WRONG])
def test_invalid_use_raises_with_a_clear_message(use, error, words):
    ops = mt.list_custom_ops_py()
    with pytest.raises(error, match=words):
        use()
    assert mt.list_custom_ops_py() == ops and plugins.list_plugins() == []


# Loading and unloading.


def test_a_plugin_is_loaded_and_unloaded_with_its_ops():
    seen = []

    def look(what):
        return lambda registry: seen.append((what, registry, mt.is_custom_op_registered_py("doubled")))

    registry = PluginRegistry()
    p = plugin(ops=["doubled"], initialize=look("initialize"), cleanup=look("cleanup"))
    assert registry.register(p).ops == ("doubled",)
    assert mt.ops.doubled(mt.Tensor([1.0])).item() == 2.0
    assert registry.get_plugin("math") is p and registry.is_registered("math") and "math" in registry
    assert [info.name for info in registry] == ["math"] and len(registry) == 1
    assert registry.list_plugins()[0].ops == ("doubled",) and p.info.ops == ()
    registry.unregister("math")
    assert not mt.is_custom_op_registered_py("doubled")
    assert not registry.is_registered("math") and list(registry) == []
    assert seen == [("initialize", registry, True), ("cleanup", registry, True)]


def test_a_plugin_may_be_a_class():
    class Math(CustomPlugin):
        info = PluginInfo("math", VersionInfo(1, 0, 0))

        def initialize(self, registry):
            self.state = ["initialized"]

        def cleanup(self, registry):
            self.state.append("cleaned up")

        def custom_operations(self):
            return [built("by_class")]

    p, registry = Math(), PluginRegistry()
    registry.register(p)
    registry.unregister("math")
    assert p.state == ["initialized", "cleaned up"]


def test_ops_are_registered_in_three_ways():
    @mt.custom_op
    def decorated(x):
        return x + 1

    def operations():
        @mt.custom_op(name="inner")
        def inner(x):
            return x + 3

        return [decorated, built("by_builder"), inner]

    p = plugin(initialize=lambda registry: built("by_initialize").register())
    p.set_custom_operations_fn(operations)
    registry = PluginRegistry()
    names = ("decorated", "by_builder", "inner", "by_initialize")
    for _ in range(2):
        assert registry.register(p).ops == names
        assert mt.ops.decorated(mt.Tensor([1.0])).item() == 2.0
        registry.unregister("math")
        assert not any(map(mt.is_custom_op_registered_py, names))


def test_registering_is_all_or_nothing():
    mt.custom_op(name="free")(lambda x: x)
    before = mt.list_custom_ops_py()
    registry = PluginRegistry()

    def fails(registry):
        built("of_initialize").register()
        raise KeyError("inside")

    for p, error in [
        (plugin(ops=["one", "two", "relu", "four", "five"]), ValueError),
        (plugin(ops=["one", "two", "one"]), ValueError),
        (plugin(ops=["one", "two", 3]), TypeError),
        (plugin(ops=["one", mt.ops.free, "two"], initialize=fails), KeyError),
    ]:
        with pytest.raises(error) as caught:
            registry.register(p)
        assert caught.value.__notes__ == ["neither plugin 'math' nor its ops were registered"]
        assert mt.list_custom_ops_py() == before and len(registry) == 0
    assert registry.register(plugin(ops=["one", "two"])).ops == ("one", "two")
    registry.unregister("math")


def test_a_plugin_is_registered_once_and_an_op_has_one_plugin():
    registry, other = PluginRegistry(), PluginRegistry()
    registry.register(plugin(ops=["owned"]))
    with pytest.raises(ValueError, match="plugin 'math' is already registered as version 1.0.0; unload it"):
        registry.register(plugin(ops=["another"]))
    words = r"plugin 'second': op 'owned' is already registered: by .*plugin.py:\d+ of plugin 'math', and .* unl"
    for op in ("owned", mt.ops.owned):
        with pytest.raises(ValueError, match=words):
            other.register(plugin("second", ops=[op]))
        assert mt.ops.describe("owned")["plugin"] == "math"
    registry.unregister("math")
    other.register(plugin("second", ops=["owned"]))
    other.unregister("second")


def test_a_plugin_can_load_others_but_not_itself():
    registry = PluginRegistry()
    p = plugin("outer", ops=["outer_op"], initialize=lambda r: r.register(plugin("inner", ops=["inner_op"])))
    assert registry.register(p).ops == ("outer_op",)
    assert registry.get_plugin_info("inner").ops == ("inner_op",)
    registry.unregister("outer")
    assert mt.is_custom_op_registered_py("inner_op")
    registry.unregister("inner")
    selfish = plugin("selfish")
    selfish.set_initialize_fn(lambda r: r.register(selfish))
    with pytest.raises(ValueError, match="'selfish' is already registered"):
        registry.register(selfish)


# Training.


class Gate(plugins.CustomLayer):
    def __init__(self, n):
        super().__init__("gate")
        self.scale = mt.ones(n, requires_grad=True)
        self.register_buffer("calls", mt.zeros((), dtype="int64"))

    def forward(self, x):
        self.calls += 1
        return mt.execute_custom_op("bent", [x]) * self.scale


def test_a_model_learns_through_an_op_and_a_layer_of_a_plugin():
    registry = PluginRegistry()
    backward = lambda ctx, grad: grad / (ctx.inputs[0] * ctx.inputs[0] + 1)  # noqa: E731
    bent = mt.CustomOpBuilder("bent", 1).forward(lambda x: mt.ops.atan(x)).backward(backward).build()
    registry.register(plugin(ops=[bent]))
    mt.manual_seed(0)
    model = nn.Sequential(nn.Linear(1, 16), Gate(16), nn.Linear(16, 1))
    x = mt.linspace(-2.0, 2.0, 64).reshape(64, 1)
    y = mt.ops.sin(x)
    optimizer = mt.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(400):
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
    assert loss.item() < 1e-3
    assert model[1].calls.item() == 400 and model[1].scale.tolist() != [1.0] * 16
    other = nn.Sequential(nn.Linear(1, 16), Gate(16), nn.Linear(16, 1))
    other.load_state_dict(model.state_dict())
    assert other(x).tolist() == model(x).tolist()
    registry.unregister("math")
    with pytest.raises(ValueError, match="op 'bent' came with plugin 'math', which was unloaded"):
        model(x)


def test_a_layer_may_wrap_a_function():
    layer = plugins.CustomLayer("shift")
    layer.by = mt.zeros(1, requires_grad=True)
    layer.set_forward_fn(lambda layer, x, times=1: x + layer.by * times)
    model = nn.Sequential(layer)
    model(mt.ones(1)).backward()
    assert layer.by.grad.item() == 1.0 and list(model.state_dict()) == ["0.by"]
    assert layer(mt.ones(1), times=2).item() == 1.0
