"""Tests of plugins in Python files and installed packages, and of the command that lists them."""

import importlib
import json
import logging
import os
import re
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from minitensor.plugins import discovery

import minitensor as mt
from minitensor import plugins

pytestmark = pytest.mark.usefixtures("registered", "no_plugins_stay")


SOURCE = """
import minitensor as mt
from minitensor import plugins

@mt.custom_op(name="of_file")
def of_file(x):
    return x * 7

{body}
"""
GIVEN = 'plugin = plugins.CustomPlugin(plugins.PluginInfo("filed", plugins.VersionInfo(1, 2, 3)))'


def write(folder, body=GIVEN, manifest=None, name="filed.py"):
    if manifest is not None:
        text = manifest if isinstance(manifest, str) else json.dumps(manifest)
        (folder / "plugin.json").write_text(text, encoding="utf-8")
    (folder / name).write_text(SOURCE.format(body=body), encoding="utf-8")
    return folder / name


@pytest.mark.parametrize("body", [GIVEN, "def minitensor_plugin():\n    " + GIVEN + "\n    return plugin"])
def test_a_file_is_loaded_and_unloaded_and_loaded_again(tmp_path, body):
    path = write(tmp_path, body)
    modules = set(sys.modules)
    for _ in range(2):
        info = plugins.load_plugin(str(path))
        assert (info.name, str(info.version), info.path, info.ops) == ("filed", "1.2.3", str(path), ("of_file",))
        assert plugins.is_plugin_loaded("filed") and plugins.get_plugin_info("filed") == info
        assert plugins.list_plugins() == [info]
        assert mt.ops.of_file(mt.Tensor([1.0])).item() == 7.0
        with pytest.raises(ValueError, match="is already loaded as plugin 'filed'; unload it first"):
            plugins.load_plugin(path)
        plugins.unload_plugin("filed")
        assert not plugins.is_plugin_loaded("filed") and not mt.is_custom_op_registered_py("of_file")
    assert {m for m in set(sys.modules) - modules if m.startswith("minitensor_plugin")} == set()


def test_an_element_op_of_a_file_writes_programs_until_it_is_unloaded(tmp_path):
    body = """
@mt.element_op(name="filed::power")
def power(x, y=None, n: int = 1):
    return x**n if y is None else x**n + y

"""
    path = write(tmp_path, body + GIVEN)
    for _ in range(2):
        assert plugins.load_plugin(path).ops == ("of_file", "filed::power")
        x = mt.Tensor([3.0], requires_grad=True)
        y = mt.ops.filed.power(x, x, n=2)
        plugins.unload_plugin("filed")
        y.backward()
        assert (y.item(), x.grad.item()) == (12.0, 7.0)


def test_a_folder_is_loaded_with_its_submodules(tmp_path):
    folder = tmp_path / "packaged"
    folder.mkdir()
    write(folder, "from .parts import NAME\n" + GIVEN.replace('"filed"', "NAME"), name="__init__.py")
    (folder / "parts.py").write_text('NAME = "packaged"\n')
    assert plugins.load_plugin(folder).path == str(folder / "__init__.py")
    plugins.unload_plugin("packaged")
    assert not [m for m in sys.modules if m.startswith("minitensor_plugin")]


BROKEN = [
    ("", ValueError, "defines no plugin; define a function minitensor_plugin"),
    ("plugin = 3", TypeError, "the variable plugin must be a CustomPlugin, got 3"),
    ("def minitensor_plugin(): pass", TypeError, r"minitensor_plugin\(\) must return a CustomPlugin, got None"),
    ("raise OSError('disk')", OSError, "disk"),
    ("plugin = plugins.CustomPlugin()", ValueError, "has no info, and '.*' does not state its name and version"),
    (GIVEN.replace("3))", "3), max_minitensor_version=plugins.VersionInfo(0, 0, 1))"), RuntimeError, "up to 0.0.1"),
]


@pytest.mark.parametrize(("body", "error", "words"), BROKEN, ids=[words for *_, words in BROKEN])
def test_a_file_that_fails_registers_nothing(tmp_path, body, error, words):
    path = write(tmp_path, body)
    with pytest.raises(error, match=words):
        plugins.load_plugin(path)
    assert not mt.is_custom_op_registered_py("of_file") and plugins.list_plugins() == []
    assert not [m for m in sys.modules if m.startswith("minitensor_plugin")]


def test_missing_metadata_is_read_from_the_manifest(tmp_path):
    said = {
        "name": "filed",
        "version": "9.9.9",
        "description": "of the file",
        "author": "me",
        "min_minitensor_version": "0.0.1",
        "max_minitensor_version": "99.0.0",
        "homepage": "https://example.org",
    }
    info = plugins.load_plugin(write(tmp_path, manifest=said))
    assert (str(info.version), info.description, info.author) == ("1.2.3", "of the file", "me")
    assert (str(info.min_minitensor_version), str(info.max_minitensor_version)) == ("0.0.1", "99.0.0")
    plugins.unload_plugin("filed")
    info = plugins.load_plugin(write(tmp_path, "plugin = plugins.CustomPlugin()", said))
    assert (info.name, str(info.version)) == ("filed", "9.9.9")
    plugins.unload_plugin("filed")
    assert plugins.load_plugin(write(tmp_path, manifest={**said, "name": "other"})).author == ""
    plugins.unload_plugin("filed")
    with pytest.raises(RuntimeError, match="plugin 'filed' 1.2.3 needs minitensor 98.0.0 or later"):
        plugins.load_plugin(write(tmp_path, manifest={**said, "min_minitensor_version": "98.0.0"}))


MALFORMED = [
    ("{", "is not valid JSON"),
    ([1], r"must contain an object, such as .* got list"),
    ("[" * 100_000, "is not valid JSON: it is nested too deeply"),
    ('{"name": ' * 100_000, "is not valid JSON: it is nested too deeply"),
    ('{"author": "' + "x" * (1 << 20) + '"}', "has more than 1048576 bytes"),
    ({"name": "../../escape"}, r"name must consist of letters, digits, .*; got '../../escape'"),
    ({"name": "filed\n"}, r"name must consist of letters, digits, .*; got 'filed\\n'"),
    ({"name": "x" * 256}, "name has 256 characters; 255 is the limit"),
    ({"description": "x" * 5000}, "description has 5000 characters; 4096 is the limit"),
    ({"author": "a\x1b[2Jb"}, r"author contains a control character: 'a\\x1b\[2Jb'"),
    ({"version": "9" * 10_000 + ".0.0"}, "'version': '9{80}' is not a version"),
    ({"name": 1}, "'name' must be a string, got int"),
    ({"version": "1"}, "'version': '1' is not a version"),
    (
        {"min_minitensor_verson": "1.0.0"},
        "unknown key 'min_minitensor_verson'; did you mean 'min_minitensor_version'",
    ),
]


@pytest.mark.parametrize(("manifest", "words"), MALFORMED, ids=[words for _, words in MALFORMED])
def test_a_malformed_manifest_raises_and_nothing_is_loaded(tmp_path, manifest, words):
    with pytest.raises(ValueError, match=r"plugin.json'.*" + words):
        plugins.load_plugin(write(tmp_path, manifest=manifest))
    assert not mt.is_custom_op_registered_py("of_file") and plugins.list_plugins() == []


def test_inspect_validates_a_manifest(tmp_path):
    from minitensor.plugins import command

    path = write(tmp_path, manifest={"name": "../../escape"})
    with pytest.raises(ValueError, match=r"plugin.json'.* got '../../escape'"):
        command.run(["inspect", str(path)])


def test_the_module_of_a_file_belongs_to_no_package(tmp_path):
    path = write(tmp_path, name="of.some package.py")
    before = set(sys.modules)
    plugins.load_plugin(path)
    [module] = set(sys.modules) - before
    assert re.fullmatch(r"minitensor_plugin_of_some_package_[0-9a-f]{8}", module)


# Discovery.


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Creates installed packages: `installed(name, source, value)` has an entry point with this value."""

    def install(name, source, value):
        (tmp_path / f"{name}.py").write_text("import minitensor as mt\nfrom minitensor import plugins\n" + source)
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[minitensor.plugins]\n{name} = {value}\n")

    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(discovery, "_has_started", False)
    before = set(sys.modules)
    yield install
    for module in set(sys.modules) - before:
        if getattr(sys.modules[module], "__file__", None) and str(tmp_path) in sys.modules[module].__file__:
            del sys.modules[module]


MADE = """
@mt.custom_op(name="{0}_op")
def op(x):
    return x * 2

def make():
    return plugins.PluginBuilder().name("{0}").version(plugins.VersionInfo(1, 0, 0)).build()

here = make()
"""


def test_installed_plugins_are_loaded_when_plugins_are_first_listed(installed, tmp_path, caplog):
    caplog.set_level(logging.DEBUG, "minitensor.plugins")
    installed("found_one", MADE.format("found_one"), "found_one:make")
    installed("found_two", MADE.format("found_two"), "found_two:here")
    path = write(tmp_path)
    installed("found_file", f"def path():\n    return {str(path)!r}\n", "found_file:path")
    names = sorted(info.name for info in plugins.list_plugins())
    assert names == ["filed", "found_one", "found_two"]
    assert plugins.get_plugin_info("found_one").ops == ("found_one_op",)
    assert "found found_one = found_one:make" in caplog.text
    assert "loaded found_one v1.0.0 (python, ops: found_one_op)" in caplog.text
    plugins.unload_plugin("found_one")
    assert "unloaded found_one v1.0.0" in caplog.text
    assert plugins.discover() == []


def test_installed_plugins_are_loaded_on_access_to_an_unknown_op(installed):
    installed("found_late", MADE.format("found_late"), "found_late:make")
    assert mt.execute_custom_op("found_late_op", [mt.Tensor([1.0])]).item() == 2.0
    with pytest.raises(ValueError, match="there is no op 'found_latt_op'; did you mean 'found_late_op'"):
        mt.execute_custom_op("found_latt_op", [mt.Tensor([1.0])])


def test_installed_plugins_are_loaded_on_first_use_of_an_op(installed):
    installed("found", MADE.format("found") + "assert not hasattr(mt.ops, 'found_op_of_another')", "found:make")
    discovery.enable_autoload()
    assert mt.ops.swish(mt.Tensor([0.0])).item() == 0.0 and not plugins.discovery._has_started
    with ThreadPoolExecutor(8) as threads:
        assert {f.item() for f in threads.map(lambda _: mt.ops.found_op(mt.Tensor([1.0])), range(64))} == {2.0}
    with pytest.raises(AttributeError, match="module 'minitensor.ops' has no attribute 'found_opp'"):
        mt.ops.found_opp  # noqa: B018


def test_a_lookup_of_an_op_finds_those_of_installed_plugins(installed, monkeypatch):
    asks = {
        "describe": lambda name: mt.ops.describe(name)["plugin"],
        "opcheck": lambda name: mt.testing.opcheck(name).op,
        "registered": mt.is_custom_op_registered_py,
        "listed": lambda name: name in mt.list_custom_ops_py(),
    }
    for way, ask in asks.items():
        installed(f"found_{way}", MADE.format(f"found_{way}"), f"found_{way}:make")
        monkeypatch.setattr(discovery, "_has_started", False)
        assert ask(f"found_{way}_op"), way


PROGRAM = """
import minitensor as mt
is_waiting = lambda: "__getattr__" in vars(mt.ops)
before = is_waiting()
print(mt.ops.found_fresh_op(mt.Tensor([1.0])).item(), before, is_waiting())
"""


def test_a_new_program_needs_to_do_nothing(installed, tmp_path):
    installed("found_fresh", MADE.format("found_fresh"), "found_fresh:make")
    where = os.pathsep.join([str(tmp_path), *sys.path])
    command = [sys.executable, "-c", PROGRAM]
    for autoload, expected in (("1", "2.0 True False"), ("0", "has no attribute 'found_fresh_op'")):
        environment = {**os.environ, "PYTHONPATH": where, "MINITENSOR_PLUGINS_AUTOLOAD": autoload}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert expected in done.stdout + done.stderr
        assert done.returncode == (autoload == "0")


def test_a_loaded_plugin_takes_precedence_over_an_installed_one(installed, tmp_path, caplog):
    caplog.set_level(logging.DEBUG, "minitensor.plugins")
    installed(
        "found_same",
        "def make():\n    return plugins.CustomPlugin(plugins.PluginInfo('filed', plugins.VersionInfo(9, 0, 0)))\n",
        "found_same:make",
    )
    before = plugins.load_plugin(write(tmp_path))
    assert [str(info.version) for info in plugins.list_plugins()] == [str(before.version)]
    assert "found_same = found_same:make was not loaded: plugin 'filed' is already registered" in caplog.text
    plugins.unload_plugin("filed")


def test_discovery_can_be_turned_off(installed, monkeypatch):
    monkeypatch.setenv("MINITENSOR_PLUGINS_AUTOLOAD", "0")
    installed("found_off", MADE.format("found_off"), "found_off:make")
    assert plugins.list_plugins() == []
    with pytest.raises(ValueError, match="there is no op 'found_off_op'"):
        mt.execute_custom_op("found_off_op", [mt.Tensor([1.0])])
    assert [info.name for info in plugins.discover()] == ["found_off"]


LATE = """
@mt.custom_op(name="broken_late_op")
def op(x):
    return x

def make():
    raise OSError("late")
"""


def test_a_broken_plugin_is_reported_once_and_discovery_continues(installed, caplog):
    installed("broken_import", "raise OSError('disk')", "broken_import:make")
    installed("broken_value", "here = 3", "broken_value:here")
    installed("broken_late", LATE, "broken_late:make")
    installed("found_well", MADE.format("found_well"), "found_well:make")
    with pytest.warns(RuntimeWarning) as warned:
        assert [info.name for info in plugins.list_plugins()] == ["found_well"]
    texts = sorted(str(w.message) for w in warned)
    assert [re.sub(r" \(.*\)", "", text) for text in texts] == [
        "plugin 'broken_import' of broken_import was not loaded: disk",
        "plugin 'broken_late' of broken_late was not loaded: late",
        "plugin 'broken_value' of broken_value was not loaded: "
        "it must be a function that returns a path or a CustomPlugin, got int",
    ]
    assert caplog.text.count("was not loaded") == 3
    assert not mt.is_custom_op_registered_py("broken_late_op")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plugins.list_plugins()
        plugins.discover()


def test_interrupted_discovery_is_repeated(installed):
    installed("found_slow", "raise KeyboardInterrupt", "found_slow:make")
    installed("found_swift", MADE.format("found_swift"), "found_swift:make")
    with pytest.raises(KeyboardInterrupt):
        plugins.list_plugins()
    module = Path(sys.path[0]) / "found_slow.py"
    module.write_text("import minitensor as mt\nfrom minitensor import plugins\n" + MADE.format("found_slow"))
    assert sorted(info.name for info in plugins.list_plugins()) == ["found_slow", "found_swift"]


def test_a_package_that_exits_is_a_plugin_that_fails(installed):
    installed("found_exit", "raise SystemExit(3)", "found_exit:make")
    with pytest.warns(RuntimeWarning, match="plugin 'found_exit' of found_exit .* was not loaded: 3"):
        assert plugins.list_plugins() == []


LOADING = """
def make():
    plugin = plugins.CustomPlugin(plugins.PluginInfo("found_outer", plugins.VersionInfo(1, 0, 0)))
    inner = plugins.CustomPlugin(plugins.PluginInfo("found_inner", plugins.VersionInfo(1, 0, 0)))
    plugin.set_initialize_fn(lambda registry: registry.register(inner))
    return plugin
"""


def test_a_plugin_that_fails_because_another_is_loaded_is_reported(installed):
    inner = plugins.CustomPlugin(plugins.PluginInfo("found_inner", plugins.VersionInfo(1, 0, 0)))
    plugins.load_plugin(inner)
    installed("found_outer", LOADING, "found_outer:make")
    with pytest.warns(RuntimeWarning, match="plugin 'found_outer' .* was not loaded: plugin 'found_inner' is already"):
        assert [info.name for info in plugins.list_plugins()] == ["found_inner"]


IMPORTING = (
    MADE
    + """
import time
time.sleep(0.3)
plugins.load_plugin(plugins.CustomPlugin(plugins.PluginInfo("found_by_import", plugins.VersionInfo(1, 0, 0))))
"""
)


def test_a_module_may_load_plugins_while_it_is_imported_and_discovered(installed):
    installed("found_both", IMPORTING.format("found_both"), "found_both:make")
    threads = [
        threading.Thread(target=importlib.import_module, args=["found_both"]),
        threading.Thread(target=plugins.discover),
    ]
    for thread in threads:
        thread.start()
        time.sleep(0.1)
    for thread in threads:
        thread.join(300)
    assert not any(thread.is_alive() for thread in threads)
    assert sorted(info.name for info in plugins.list_plugins()) == ["found_both", "found_by_import"]


SLOW = """
import time

def make():
    time.sleep(0.3)
    return plugins.CustomPlugin(plugins.PluginInfo("found_slowly", plugins.VersionInfo(1, 0, 0)))
"""


def test_a_plugin_may_list_plugins_during_discovery(installed):
    installed("found_slowly", SLOW, "found_slowly:make")
    asking = plugins.CustomPlugin(plugins.PluginInfo("asking", plugins.VersionInfo(1, 0, 0)))

    def initialize(registry):
        time.sleep(0.3)
        plugins.list_plugins()

    asking.set_initialize_fn(initialize)
    threads = [threading.Thread(target=f, daemon=True) for f in (plugins.discover, lambda: plugins.load_plugin(asking))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert not any(thread.is_alive() for thread in threads)
    assert sorted(info.name for info in plugins.list_plugins()) == ["asking", "found_slowly"]


# The command line.


def run(*arguments, **environment):
    command = [sys.executable, "-m", "minitensor", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **environment}).stdout


def test_the_command_line_lists_plugins(installed, tmp_path):
    installed("found_cli", MADE.format("found_cli"), "found_cli:make")
    where = os.pathsep.join([str(tmp_path), *sys.path])
    lines = run("plugins", PYTHONPATH=where).splitlines()
    assert lines[0].split() == ["name", "version", "kind", "ops", "description", "path"]
    assert ["found_cli", "1.0.0", "python", "1"] in [line.split() for line in lines]
    out = run("plugins", "list", PYTHONPATH=where, MINITENSOR_PLUGINS_AUTOLOAD="0")
    assert out == "no plugins are loaded\n"
