"""DLPack with CUDA devices. A plugin simulates two of them in main memory, so that no GPU is needed.

A device stays for the life of the process, so each case of `cuda_exchange.py` is a process of its own.
"""

import ast
import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest
from c_plugin import compiled
from minitensor._minitensor import _has_cuda

FOLDER = Path(__file__).parent
SCRIPT = FOLDER / "cuda_exchange.py"
HELPERS = {"raises", "from_foreign", "to_foreign", "stream_of_foreign"}
CASES = [
    node.name
    for node in ast.parse(SCRIPT.read_text(encoding="utf-8")).body
    if isinstance(node, ast.FunctionDef) and node.name not in HELPERS
]


@functools.cache
def plugin():
    source = (FOLDER / "toy_device.c").read_text(encoding="utf-8")
    source = source.replace('MT_PLUGIN("toy"', 'MT_PLUGIN("cuda_toy"').replace("toy::held", "cuda_toy::held")
    for function in ("MT_STR", "mt_str"):
        source = source.replace(f'{function}("toy")', f'{function}("cuda")')
    return compiled(source, flags=("-lm", "-Wno-unused-function"))


@pytest.mark.skipif(_has_cuda(), reason="there are CUDA devices, which need not be simulated")
@pytest.mark.parametrize("case", CASES)
def test_an_exchange_with_a_simulated_device(case):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(FOLDER), *sys.path])}
    command = [sys.executable, str(SCRIPT), str(plugin()), case]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.stdout == "passed\n", done.stdout + done.stderr
