"""Runs the Python snippets of the pages about bridges."""

import importlib.util
from pathlib import Path

import pytest

SNIPPETS = Path(__file__).parents[1] / "docs" / "test_snippets.py"
spec = importlib.util.spec_from_file_location("snippets", SNIPPETS)
snippets = importlib.util.module_from_spec(spec)
spec.loader.exec_module(snippets)


@pytest.mark.parametrize("page", snippets.BRIDGES, ids=lambda page: page.name)
def test_python_runs_and_prints_what_the_comments_say(page, capsys):
    for framework in ("torch", "jax", "dask", "xarray", "cubed", "onnx", "onnxruntime"):
        pytest.importorskip(framework)
    snippets.run(page, capsys)


def test_the_op_is_shown_as_it_is_defined():
    page = snippets.ROOT / "docs" / "bridges.md"
    definitions = (snippets.ROOT / "ops" / "src" / "activation.rs").read_text(encoding="utf-8")
    [(_, shown)] = snippets.snippets(page, "rust")
    assert shown.strip() in definitions
