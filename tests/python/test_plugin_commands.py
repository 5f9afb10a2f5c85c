"""Tests of `python -m minitensor plugins`: its output and its errors."""

import re

import pytest
from minitensor.__main__ import main
from minitensor.plugins.command import COMMANDS

import minitensor as mt
from minitensor import _new

pytestmark = pytest.mark.usefixtures("registered", "no_plugins_stay")

PLUGIN = """
import minitensor as mt
from minitensor import plugins

double = mt.CustomOpBuilder("commanded::double", 1).forward(lambda x: x * 2)
double = double.backward(lambda ctx, d: d * {factor}).build()
plugin = plugins.CustomPlugin(plugins.PluginInfo("commanded", plugins.VersionInfo(1, 0, 0)))
plugin.set_custom_operations_fn(lambda: [double])
"""


@pytest.fixture
def run(capsys):
    """Runs a command, and returns its exit status, output and errors."""

    def run(*arguments):
        status = main(["plugins", *map(str, arguments)])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def test_a_python_plugin_is_inspected_by_its_manifest(run, tmp_path):
    file = tmp_path / "commanded.py"
    file.write_text("raise OSError('it was run')")
    status, out, error = run("inspect", file)
    assert (status, out) == (1, "")
    assert error.startswith(f"error: '{file}' is a Python file without a plugin.json in its folder")
    (tmp_path / "plugin.json").write_text('{"name": "commanded", "min_minitensor_version": "0.1.0"}')
    status, out, error = run("inspect", file)
    assert (status, error) == (0, "")
    assert [line.split() for line in out.splitlines()[:3]] == [
        ["name", "commanded"],
        ["min", "minitensor", "0.1.0"],
        ["kind", "python"],
    ]
    assert "the Python file was not run" in out


def test_check_reports_each_op(run, tmp_path):
    file = tmp_path / "commanded.py"
    file.write_text(PLUGIN.format(factor=2))
    status, out, _ = run("check", file)
    assert status == 0
    assert out.splitlines()[0] == "commanded v1.0.0 (python, ops: commanded::double)"
    assert out.splitlines()[-1] == "1 op, 0 with findings"
    assert mt.plugins.is_plugin_loaded("commanded")


def test_check_shows_why_an_op_rejects_all_arguments(run, tmp_path):
    file = tmp_path / "commanded.py"
    file.write_text(PLUGIN.format(factor=2).replace("lambda x: x * 2", "lambda x: x[99]"))
    status, out, _ = run("check", file)
    assert "the op rejects all generated arguments" in out
    assert re.search(r"its error: .*99.*out of range.* — with x0?: float64 \(2, 3\)", out)
    with pytest.raises(ValueError, match=r"rejects all generated arguments; pass .*\. Its error: .*99.*out of"):
        mt.testing.opcheck("commanded::double")


def test_check_fails_where_an_op_does(run, tmp_path):
    file = tmp_path / "commanded.py"
    file.write_text(PLUGIN.format(factor=3))
    status, out, _ = run("check", file)
    assert status == 1
    assert "commanded::double  FAILED" in out and "gradient" in out
    assert out.splitlines()[-1] == "1 op, 1 with findings"


def test_stubs_declare_parameters_and_results(run, tmp_path):
    file = tmp_path / "commanded.py"
    file.write_text(PLUGIN.format(factor=2).replace("double.backward", 'double.attr("mode", str, "up").backward'))
    status, out, _ = run("stubs", file)
    assert status == 0
    assert out.splitlines() == [
        '"""The ops of commanded."""',
        "",
        "from minitensor import Tensor",
        "from minitensor._minitensor import TensorLike",
        "",
        'def double(x: TensorLike, mode: str = "up") -> Tensor: ...',
    ]


FAULTS = [
    ("def f(:", "invalid syntax"),
    ("x = 1", "defines no plugin"),
    ("raise KeyError()", "error: KeyError"),
]


@pytest.mark.parametrize(("source", "words"), FAULTS, ids=[words for _, words in FAULTS])
def test_errors_are_printed_without_a_traceback(run, tmp_path, source, words):
    file = tmp_path / "broken.py"
    file.write_text(source)
    status, out, error = run("check", file)
    assert (status, out) == (1, "")
    assert words in error and error.startswith("error: ") and error.count("\n") == 1


def test_a_file_that_is_not_a_plugin_raises(run, tmp_path):
    (tmp_path / "noise.so").write_bytes(b"noise")
    (tmp_path / "noise.txt").write_text("noise")
    for command in ("inspect", "check"):
        for name in ("noise.so", "noise.txt", "nowhere.so"):
            status, _, error = run(command, tmp_path / name)
            assert status == 1 and name in error and error.count("\n") == 1


def test_unknown_commands_show_the_usage(run):
    for arguments in (["inspect"], ["nonsense"], ["check", "a", "b"], ["cargo-config", "a", "b"]):
        status, _, error = run(*arguments)
        assert status == 2 and error.startswith("usage: python -m minitensor")


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["help"], ["plugins", "--help"], ["new", "-h"]])
def test_help_lists_the_commands(capsys, arguments):
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert all(command in out for command in (*COMMANDS, *_new.COMMANDS))
