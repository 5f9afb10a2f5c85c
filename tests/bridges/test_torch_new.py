"""`python -m minitensor new NAME --torch`: the project's own tests pass."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from minitensor import _new

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.skipif(shutil.which("cargo") is None, reason="there is no cargo")
def test_the_tests_of_the_project_pass(tmp_path):
    folder = _new.create(tmp_path / "fancy_ops", torch=True)
    target = REPOSITORY / "target" / "new"
    environment = os.environ | ({"CARGO_TARGET_DIR": str(target)} if target.parent.is_dir() else {})
    run = {"cwd": folder, "env": environment, "capture_output": True, "text": True}
    built = subprocess.run(["cargo", "build", "--release", "--quiet"], **run)
    assert built.returncode == 0, built.stderr
    tested = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], **run)
    assert tested.returncode == 0, tested.stdout
    assert "59 passed" in tested.stdout


def test_the_template_for_pytorch_is_in_rust(tmp_path):
    with pytest.raises(ValueError, match="the template for PyTorch is in Rust, got the language 'c'; omit --lang"):
        _new.create(tmp_path / "fancy_ops", "c", torch=True)
