"""Ops of JAX on several devices: eight of the CPU, in a process of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax")

PROGRAM = Path(__file__).parent / "jax_devices.py"


@pytest.mark.parametrize("partitioner", ["shardy", "gspmd"])
def test_sharded_arrays(partitioner):
    environment = {
        **os.environ,
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        "JAX_PLATFORMS": "cpu",
        "JAX_USE_SHARDY_PARTITIONER": str(partitioner == "shardy"),
    }
    done = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True, env=environment, timeout=600)
    assert done.stdout.strip() == "passed", done.stderr[-4000:]
