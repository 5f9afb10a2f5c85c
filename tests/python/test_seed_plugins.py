"""Every Python snippet of the plugin documents, unchanged."""

import subprocess
import sys
from pathlib import Path

import pytest
from minitensor.plugins import loaded

import minitensor as mt
from minitensor import plugins

pytestmark = pytest.mark.usefixtures("registered", "no_plugins_stay")


def test_version_compatibility(capsys):
    # Check current minitensor version
    current_version = plugins.VersionInfo.current()
    print(f"Minitensor version: {current_version}")

    # Create version info
    plugin_version = plugins.VersionInfo(1, 0, 0)
    min_required = plugins.VersionInfo(0, 1, 0)

    # Check compatibility
    if current_version.is_compatible_with(min_required):
        print("Compatible!")
    assert plugin_version > min_required
    assert capsys.readouterr().out.endswith("Compatible!\n")


def test_plugin_information(capsys):
    plugin = (
        plugins.PluginBuilder()
        .name("my_custom_plugin")
        .version(plugins.VersionInfo(1, 0, 0))
        .description("A custom plugin for special operations")
        .author("Your Name")
        .min_minitensor_version(plugins.VersionInfo(0, 1, 0))
        .build()
    )
    info = plugin.info
    print(f"Plugin: {info.name} v{info.version}")
    assert capsys.readouterr().out == "Plugin: my_custom_plugin v1.0.0\n"


def test_basic_plugin_structure(capsys):
    # Create a plugin using the builder pattern
    plugin = (
        plugins.PluginBuilder()
        .name("example_plugin")
        .version(plugins.VersionInfo(1, 0, 0))
        .description("An example plugin demonstrating custom operations")
        .author("Plugin Developer")
        .min_minitensor_version(plugins.VersionInfo(0, 1, 0))
        .build()
    )

    # Define initialization function
    def initialize_plugin(registry):
        print("Plugin initialized!")
        # Register custom operations here

    # Define cleanup function
    def cleanup_plugin(registry):
        print("Plugin cleaned up!")
        # Unregister operations here

    # Define custom operations
    def get_custom_operations():
        # Return list of custom operations
        return []

    # Set plugin functions
    plugin.set_initialize_fn(initialize_plugin)
    plugin.set_cleanup_fn(cleanup_plugin)
    plugin.set_custom_operations_fn(get_custom_operations)

    registry = plugins.PluginRegistry()
    registry.register(plugin)
    registry.unregister("example_plugin")
    assert capsys.readouterr().out == "Plugin initialized!\nPlugin cleaned up!\n"


# The op of the document is named `square`, like a built-in op. Except in one test, it gets another name here.
def create_square_operation(name="document_square"):
    """Create a custom square operation"""

    def forward(inputs):
        # Forward pass: square the input
        x = inputs[0]
        return x * x

    def backward(grad_output, input_ids, input_shapes, input_dtypes, input_devices):
        # Backward pass: gradient of x^2 is 2x
        gradients = {}
        if input_ids:
            gradients[input_ids[0]] = grad_output * 2
        return gradients

    def validate(inputs):
        if len(inputs) != 1:
            raise ValueError("square operation requires a single input")

    # Create the custom operation
    op = (
        mt.CustomOpBuilder(name, 1)
        .forward(forward)
        .backward(backward)
        .validate(validate)
        .build()
    )  # fmt: skip

    return op  # noqa: RET504


# Plugin with custom operation
def create_math_plugin(name="document_square"):
    plugin = (
        plugins.PluginBuilder()
        .name("math_extensions")
        .version(plugins.VersionInfo(1, 0, 0))
        .description("Additional mathematical operations")
        .author("Math Team")
        .min_minitensor_version(plugins.VersionInfo(0, 1, 0))
        .build()
    )

    def get_operations():
        return [create_square_operation(name)]

    plugin.set_custom_operations_fn(get_operations)
    return plugin


def test_managing_plugins(capsys):
    # Create plugin registry
    registry = plugins.PluginRegistry()

    # Register a plugin
    plugin = create_math_plugin()
    registry.register(plugin)

    # List registered plugins
    for plugin_info in registry.list_plugins():
        print(f"Plugin: {plugin_info.name} v{plugin_info.version}")
        print(f"  Author: {plugin_info.author}")
        print(f"  Description: {plugin_info.description}")

    # Check if plugin is registered
    if registry.is_registered("math_extensions"):
        print("Math extensions plugin is available")

    # Get specific plugin
    math_plugin = registry.get_plugin("math_extensions")
    assert math_plugin is plugin
    x = mt.Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = mt.execute_custom_op("document_square", [x])
    y.sum().backward()
    assert y.tolist() == [[1.0, 4.0], [9.0, 16.0]]
    # The document's gradient is a constant.
    assert x.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]

    # Unregister plugin
    registry.unregister("math_extensions")
    assert capsys.readouterr().out == (
        "Plugin: math_extensions v1.0.0\n"
        "  Author: Math Team\n"
        "  Description: Additional mathematical operations\n"
        "Math extensions plugin is available\n"
    )


def test_the_name_of_a_built_in_op_is_in_use():
    with pytest.raises(ValueError, match=r"plugin 'math_extensions': op 'square' is already registered: by ops/src"):
        plugins.PluginRegistry().register(create_math_plugin("square"))


def test_the_name_of_an_unregistered_built_in_op_can_be_reused():
    # In a separate process, because unregistered built-in ops cannot be restored.
    code = """
import minitensor as mt
import test_seed_plugins
mt.unregister_custom_op_py("square")
registry = mt.plugins.PluginRegistry()
registry.register(test_seed_plugins.create_math_plugin("square"))
print(mt.ops.square(mt.Tensor([3.0])).item(), registry.get_plugin_info("math_extensions"))
registry.unregister("math_extensions")
try:
    mt.execute_custom_op("square", [mt.Tensor([3.0])])
except ValueError as error:
    print(error)
"""
    command = [sys.executable, "-c", code]
    out = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent).stdout
    assert out.splitlines() == [
        "9.0 math_extensions v1.0.0 (python, ops: square)",
        "op 'square' came with plugin 'math_extensions', which was unloaded; load the plugin again to use it",
    ]


def test_global_plugin_management(capsys):
    # Load plugin from shared library (requires dynamic-loading feature)
    try:
        plugins.load_plugin("./my_plugin.so")
        print("Plugin loaded successfully")
    except Exception as e:
        print(f"Failed to load plugin: {e}")

    # List all loaded plugins
    for plugin_info in plugins.list_plugins():
        print(f"Loaded: {plugin_info}")

    # Get plugin information
    try:
        info = plugins.get_plugin_info("my_plugin")
        print(f"Plugin info: {info}")
    except Exception as e:
        print(f"Plugin not found: {e}")

    # Check if plugin is loaded
    if plugins.is_plugin_loaded("my_plugin"):
        print("Plugin is active")

    # Unload plugin
    try:
        plugins.unload_plugin("my_plugin")
        print("Plugin unloaded")
    except Exception as e:
        print(f"Failed to unload: {e}")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Failed to load plugin: there is no plugin file './my_plugin.so'")
    assert lines[1:] == [
        "Plugin not found: there is no plugin 'my_plugin'",
        "Failed to unload: there is no plugin 'my_plugin'",
    ]


def test_the_global_registry_takes_plugins_of_python(capsys):
    plugins.load_plugin(create_math_plugin())
    for plugin_info in plugins.list_plugins():
        print(f"Loaded: {plugin_info}")
    assert plugins.is_plugin_loaded("math_extensions")
    assert loaded.REGISTRY.is_registered("math_extensions")
    with pytest.raises(ValueError, match="there is no plugin 'math_extension'; did you mean 'math_extensions'"):
        plugins.get_plugin_info("math_extension")
    plugins.unload_plugin("math_extensions")
    assert capsys.readouterr().out == "Loaded: math_extensions v1.0.0 (python, ops: document_square)\n"


def test_debugging(capsys):
    # Try loading with error handling
    try:
        plugins.load_plugin("./my_plugin.so")
    except Exception as e:
        print(f"Error details: {e}")
        # Check plugin compatibility
        current = plugins.VersionInfo.current()
        print(f"Current minitensor version: {current}")
    assert "Current minitensor version: " in capsys.readouterr().out


# The arguments of the document's op functions.


def test_functions_with_a_list_parameter_receive_lists():
    def forward(inputs, k):
        return inputs[0] * inputs[1] * k

    def backward(grad_output, input_ids, input_shapes, input_dtypes, input_devices):
        assert (input_shapes, input_devices) == ([(2,), (2,)], ["cpu", "cpu"])
        assert input_dtypes == [mt.float32, mt.float32]
        return {input_ids[1]: grad_output * 5, input_ids[0]: grad_output * 3}

    def validate(inputs):
        if len(inputs) != 2 or inputs[0].shape != inputs[1].shape:
            raise ValueError("two of one shape are wanted")

    f = mt.CustomOpBuilder("listed", 2).attr("k", float, 2.0).forward(forward).backward(backward).validate(validate)
    f = f.register()
    assert Path(mt.ops.describe("listed")["location"].rpartition(":")[0]).name == "test_seed_plugins.py"
    x = mt.Tensor([1.0, 2.0], requires_grad=True)
    f(x, x).sum().backward()
    assert x.grad.tolist() == [8.0, 8.0]
    assert f(x, x, k=1.0).tolist() == [1.0, 4.0]
    with pytest.raises(ValueError, match="two of one shape"):
        f(x, mt.ones(3))


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (
            lambda grad: [grad],
            TypeError,
            "op 'numbered': a backward function that takes input_ids must return a dict .* got list",
        ),
        (lambda grad: {7: grad}, ValueError, "op 'numbered': backward returned a gradient for 7, which is not in inp"),
    ],
)
def test_gradients_by_wrong_numbers_raise(given, error, words):
    def backward(grad_output, input_ids, input_shapes, input_dtypes, input_devices):
        return given(grad_output)

    f = mt.CustomOpBuilder("numbered", 1).forward(lambda x: x * 2).backward(backward).register()
    with pytest.raises(error, match=words):
        f(mt.Tensor([1.0], requires_grad=True)).backward()
