"""Ops on tensors of PyTorch compute on PyTorch's threads."""

import subprocess
import sys

import pytest
import torch

is_linux = pytest.mark.skipif(sys.platform != "linux", reason="the names of threads are read from /proc")
lends_threads = pytest.mark.skipif(
    torch.__version__ < torch.torch_version.TorchVersion("2.10"), reason="PyTorch before 2.10 lends no threads"
)

#: Before the bridge is imported.
BEFORE = """
import os, pathlib, signal, threading
import minitensor as mt, torch
mt.set_num_threads(3)
torch.set_num_threads(3)
x = torch.randn(2048, 2048)

def has_workers():
    names = [p.read_text() for p in pathlib.Path("/proc/self/task").glob("*/comm")]
    return any(name.startswith("minitensor-") for name in names)
"""
START = (
    BEFORE
    + """
import numpy as np
import minitensor.torch as ops
reference = torch.nn.functional.silu(x.double())

def is_right(y):
    return torch.allclose(y.double(), reference, rtol=1e-6, atol=1e-30)
"""
)


def run(code: str, start: str = START) -> None:
    done = subprocess.run(
        [sys.executable, "-c", start + code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


@is_linux
@lends_threads
def test_calls_and_gradients_start_no_threads_of_ours() -> None:
    run("""
assert is_right(ops.swish(x))
assert is_right(torch.ops.minitensor.swish(x))
assert is_right(mt.ops.swish(x))
x.requires_grad_()
ops.softmax(x).sum().backward()
assert not has_workers()
mt.ops.swish(mt.ones((2048, 2048)))
assert has_workers()
""")


@is_linux
def test_a_forked_child_computes_although_pytorchs_threads_are_gone() -> None:
    run("""
ops.swish(x)
torch.mul(x, x)
child = os.fork()
if child == 0:
    signal.alarm(60)
    y = ops.swish(x).numpy()
    os._exit(0 if np.allclose(y, reference.numpy(), rtol=1e-6, atol=1e-30) and has_workers() else 1)
assert os.waitpid(child, 0) == (child, 0)
""")


@is_linux
@pytest.mark.parametrize("threads", [1, 3])
def test_a_forked_child_may_import_the_bridge_first(threads: int) -> None:
    code = f"""
torch.mul(x, x)
child = os.fork()
if child == 0:
    signal.alarm(60)
    torch.set_num_threads({threads})
    mt.ops.swish(x)
    os._exit(0 if has_workers() == ({threads} > 1) else 1)
assert os.waitpid(child, 0) == (child, 0)
"""
    run(code, start=BEFORE)


def test_calls_from_many_threads_agree() -> None:
    run("""
wrong = []

def call():
    for _ in range(20):
        if not is_right(ops.swish(x)):
            wrong.append(1)

callers = [threading.Thread(target=call) for _ in range(4)]
[t.start() for t in callers]
[t.join() for t in callers]
assert not wrong
""")


@is_linux
def test_one_thread_of_pytorch_is_enough() -> None:
    run("""
torch.set_num_threads(1)
assert is_right(ops.swish(x))
child = os.fork()
if child == 0:
    signal.alarm(60)
    os._exit(0 if is_right(ops.swish(x)) and not has_workers() else 1)
assert os.waitpid(child, 0) == (child, 0)
assert not has_workers()
""")


def test_an_error_within_a_loop_leaves_pytorchs_threads_usable() -> None:
    run("""
indices = torch.full((1 << 20,), 5)
try:
    ops.take(torch.ones(3), indices)
    raise SystemExit("no error")
except IndexError as error:
    assert "take" in str(error)
assert is_right(ops.swish(x))
""")
