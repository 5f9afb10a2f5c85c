"""Ops of JAX on several devices: eight of the CPU, in a process of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax")

FOLDER = Path(__file__).parent


def run(program, partitioner):
    """Runs a program on eight devices."""
    environment = {
        **os.environ,
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        "JAX_PLATFORMS": "cpu",
        "JAX_USE_SHARDY_PARTITIONER": str(partitioner == "shardy"),
    }
    command = [sys.executable, FOLDER / program]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
    assert done.stdout.strip() == "passed", done.stdout[-4000:] + done.stderr[-4000:]


@pytest.mark.parametrize("partitioner", ["shardy", "gspmd"])
def test_sharded_arrays(partitioner):
    run("jax_devices.py", partitioner)


def test_opcheck_of_all_ops_on_sharded_arrays():
    run("jax_sharded_ops.py", "shardy")
