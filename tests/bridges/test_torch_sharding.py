"""Ops on DTensors and under FSDP2, with two processes."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("name", ["test_sharded", "test_fsdp"])
def test_processes(name, tmp_path):
    command = [sys.executable, Path(__file__).parent / "torch_workers.py", name, tmp_path / "store"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr[-4000:]
