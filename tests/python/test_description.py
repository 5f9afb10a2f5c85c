"""Tests of the descriptions of ops: `python -m minitensor op`, and notebooks."""

import sys
import types
from types import SimpleNamespace

import pytest
from minitensor.__main__ import main
from minitensor._description import notebook
from minitensor._description.curve import curve
from minitensor._description.markdown import markdown
from minitensor._description.text_plot import plot

import minitensor as mt

pytestmark = pytest.mark.usefixtures("registered", "no_plugins_stay")


def test_the_command_shows_what_the_registry_knows(capsys):
    assert main(["op", "swish"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("swish(x)\n\nSwish (SiLU): `x · σ(x)` (Ramachandran et al., 2017).\n")
    for fact in ("gradient    derived", "aliases     silu", "program     out = silu(x)", "3.93 ┤", "-0.0998 ┤"):
        assert fact in shown


def test_an_op_without_a_program_has_no_plot(capsys):
    assert main(["op", "reshape"]) == 0
    shown = capsys.readouterr().out
    assert "program" not in shown and "┤" not in shown


def test_the_command_shows_an_op_of_a_plugin_file(capsys, tmp_path):
    file = tmp_path / "thirds.py"
    file.write_text(
        "import minitensor as mt\n"
        "from minitensor import plugins\n\n\n"
        "@mt.element_op\n"
        "def third(x):\n"
        '    """`x / 3`."""\n'
        "    return x / 3\n\n\n"
        'plugin = plugins.CustomPlugin(plugins.PluginInfo("thirds", plugins.VersionInfo(1, 0, 0)))\n'
        "plugin.set_custom_operations_fn(lambda: [third])\n"
    )
    assert main(["op", "third", str(file)]) == 0
    assert "program     out = x / 3" in capsys.readouterr().out


def test_an_unknown_op_is_an_error_without_a_traceback(capsys):
    assert main(["op", "swishh"]) == 1
    assert capsys.readouterr().err.startswith("error: ")
    assert main(["op"]) == 2


@pytest.mark.parametrize(
    ("name", "kind"),
    [("swish", "derived"), ("softsign", "formula"), ("cosine_similarity", "derived"), ("argmax", "none")],
)
def test_the_gradient_is_named_by_its_origin(name, kind):
    assert mt.ops.describe(name)["gradient"] == kind


def test_numbers_without_a_default_are_symbols_of_the_program():
    described = mt.ops.describe("random::scale_where")
    assert any(a["required"] for a in described["attributes"])
    assert "scale" in described["program"]


def test_a_curve_has_values_and_derivatives():
    drawn = curve(mt.ops.describe("multiply"), 3, (0.0, 2.0), along="y", fixed={"x": 3.0})
    assert drawn == ("multiply(y, x=3)", [0, 1, 2], [0, 3, 6], [3, 3, 3])
    assert curve(mt.ops.describe("softmax"), 3) is None


def test_a_plot_has_the_bounds_and_leaves_gaps():
    assert plot([0.0, 1.0], height=2) == ["1 ┤⢸", "0 ┤⡸"]
    top, bottom = plot([0.0, float("nan"), 2.0, 2.0], height=2)
    assert (top, bottom) == ("2 ┤⠀⠉", "0 ┤⡀")
    assert plot([float("nan")]) == []


def test_a_notebook_shows_functions_of_ops():
    shown = notebook.representation(mt.ops.random.normal)
    assert shown.startswith("**`random::normal(key, shape, dtype=float32)`**")
    assert "$$\n\\mathrm{out} = \\operatorname{silu}" in markdown(mt.ops.describe("swish"))
    assert notebook.representation(len) is None
    assert notebook.representation(mt.ops.describe) is None


def test_the_representation_is_registered_with_a_running_ipython(monkeypatch):
    registered = {}
    formatter = SimpleNamespace(for_type=registered.__setitem__)
    shell = SimpleNamespace(display_formatter=SimpleNamespace(formatters={"text/markdown": formatter}))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    notebook.register()
    assert registered == {types.BuiltinFunctionType: notebook.representation}
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    notebook.register()
