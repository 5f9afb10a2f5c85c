"""Limits of memory and time: exceeding them raises, and does not crash or hang the process."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import minitensor as mt

LIMITED = """
import resource
import minitensor as mt

mt.set_num_threads(1)
mt.zeros(1 << 20) + 1
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
many = mt.ones(1, dtype="bool").expand(1 << 30)
wide = mt.ones(1).expand(1 << 40)
square = mt.ones(1).expand(1 << 20, 1 << 20)
try:
    {call}
except MemoryError as error:
    print("refused", str(error)[:200])
print(mt.ones(3).sum().item())
"""
CALLS = [
    "mt.ops.nonzero(many)",
    "mt.ops.nonzero(mt.ones(3), size=1 << 40)",
    "mt.ops.unique_values(wide)",
    "mt.ops.unique_all(mt.ones(3), size=1 << 40)",
    "mt.zeros(1 << 30, dtype='int8')[many]",
    "x = mt.zeros(1 << 28, dtype='int8'); x[mt.ones(1, dtype='bool').expand(1 << 28)] = 1",
    "mt.Tensor(range(2**31))",
    "mt.Tensor(range(2**70))",
    "mt.Tensor([range(2**31)])",
    "mt.ones(3).sum(axis=range(2**70))",
    "mt.ones(3).sum(axis=range(2**40))",
    "mt.zeros(range(2**70))",
    "wide.tolist()",
    "mt.ops.sort(wide)",
    "mt.ops.topk(wide, 3)",
    "mt.ops.softmax(wide)",
    "mt.ops.cumsum(wide)",
    "mt.ops.cumsum(square, 0)",
    "mt.ops.one_hot(mt.zeros(1, dtype='int64'), 1 << 40)",
    "mt.ops.concat([wide, wide])",
    "mt.ops.stack([wide, wide])",
    "mt.ops.pad(wide, (1 << 40, 1))",
    "mt.ops.gather(wide, mt.zeros(1, dtype='int64').expand(1 << 40))",
    "mt.ops.embedding(mt.ones((2, 2)), mt.zeros(1, dtype='int64').expand(1 << 40))",
    "mt.ops.scatter(wide, mt.zeros(1, dtype='int64').expand(1 << 40), 3)",
    "mt.ops.scatter_rows(square, mt.zeros(1, dtype='int64').expand(1 << 20), 3)",
    "mt.ops.matmul(square, square)",
    "mt.ops.tril(square)",
    "mt.ops.where(wide > 0, wide, wide)",
    "wide.clone()",
    "wide.numpy().copy()",
    "mt.eye(1 << 20)",
    "mt.randn(1 << 40)",
    "mt.arange(1 << 40)",
    "mt.linspace(0, 1, 1 << 40)",
]


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
@pytest.mark.parametrize("call", CALLS)
def test_too_large_a_call_raises_memory_error(call):
    done = subprocess.run([sys.executable, "-c", LIMITED.format(call=call)], capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    assert done.stdout.startswith("refused") and done.stdout.endswith("3.0\n"), done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="counts memory in the unit of Linux")
@pytest.mark.parametrize("op", ["sum", "max", "std", "var", "logsumexp"])
def test_a_reduction_over_all_axes_does_not_copy_what_it_reads_in_the_order_of_memory(op):
    code = f"""
import minitensor as mt
most = lambda: int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
x = mt.ones(1 << 13, 1 << 12)
before = most()
mt.ops.{op}(x.T)
print(most() - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    # The tensor has 128 MiB.
    assert int(done.stdout) < 64 << 10, done.stderr[-2000:]


def test_iteration_creates_one_element_at_a_time():
    x = mt.ones(1).expand(1 << 40, 3, 1)[:, :, 0]
    held = mt.memory_stats()["allocated"]
    rows = iter(x)
    assert rows.__length_hint__() == 1 << 40
    assert next(rows).tolist() == [1.0] * 3 and iter(rows) is rows
    assert mt.memory_stats()["allocated"] < held + 1000
    first, second = mt.arange(4).reshape(2, 2)
    assert (first.tolist(), second.tolist()) == ([0, 1], [2, 3])
    assert [t.item() for t in mt.arange(3)] == list(range(3)) and list(mt.zeros(0)) == list(mt.zeros((0, 2))) == []
    rows = iter(mt.arange(1))
    assert next(rows).item() == 0 and next(rows, None) is None and next(rows, None) is None
    y = mt.ones(2, requires_grad=True)
    sum(v * (i + 1) for i, v in enumerate(y)).backward()
    assert y.grad.tolist() == [1.0, 2.0]
    with pytest.raises(TypeError, match="a 0-d tensor"):
        iter(mt.ones(()))


class Sequence:
    """An object whose declared size differs from its content."""

    def __init__(self, length, elements):
        self.length, self.elements = length, elements

    def __len__(self):
        return self.length

    def __getitem__(self, at):
        return self.elements[at]


@pytest.mark.parametrize("length", [0, 1, 4, 1 << 40])
def test_a_sequence_must_have_as_many_elements_as_its_length(length):
    for use in (mt.Tensor, lambda s: mt.Tensor([s]), mt.zeros, lambda s: mt.zeros(2, 2).sum(axis=s)):
        with pytest.raises((ValueError, MemoryError)):
            use(Sequence(length, [1, 2]))
    assert mt.Tensor(Sequence(2, [1, 2])).tolist() == [1, 2]


def test_a_list_that_changes_while_it_is_read_raises_or_is_read_completely():
    class Number:
        def __float__(self):
            numbers.append(1.0)
            return 1.0

    numbers = [Number(), 2.0]
    with pytest.raises((ValueError, TypeError)):
        mt.Tensor(numbers)


LONG = {
    "matmul": "big = mt.ones(1).expand(1 << 13, 1 << 13); [mt.ops.matmul(big, big) for _ in range(10**6)]",
    "one product": "a = mt.ones(1).expand(1 << 12, 1 << 26); mt.ops.matmul(a, a.T)",
    "integers": "a = mt.ones(1, dtype='int64').expand(1 << 12, 1 << 26); mt.ops.matmul(a, a.T)",
    "complex numbers": "a = mt.ones(1, dtype='complex64').expand(1 << 12, 1 << 26); mt.ops.matmul(a, a.T)",
    "pairs": "a = mt.ones(1, dtype='bfloat16').expand(1 << 13, 1 << 13); [mt.ops.matmul(a, a.T) for _ in range(10**6)]",
    "dot product": "a = mt.ones(1).expand(1 << 40); mt.ops.matmul(a, a)",
    "a row by a matrix": "a = mt.ones(1).expand(1, 1 << 34); mt.ops.matmul(a, a.T.expand(1 << 34, 1 << 10))",
    "max_pool2d": "mt.ops.max_pool2d(mt.zeros(1, 1, 4096, 4096), 301)",
    "avg_pool2d": "mt.ops.avg_pool2d(mt.zeros(1, 1, 4096, 4096), 301)",
    "conv2d": "mt.ops.conv2d(mt.zeros(1, 1, 4096, 4096), mt.zeros(1, 1, 901, 901))",
    "cross_entropy": "mt.ops.cross_entropy(mt.ones(1).expand(1 << 24, 1 << 12), mt.zeros(1 << 24, dtype='int64'))",
    "randn": "[mt.randn(1 << 24) for _ in range(10**6)]",
    "eye": "[mt.eye(1 << 12) for _ in range(10**6)]",
    "tril": "[mt.ops.tril(mt.ones(1).expand(1 << 12, 1 << 12)) for _ in range(10**6)]",
    "cumsum": "[mt.ops.cumsum(mt.ones(1).expand(1 << 26)) for _ in range(10**6)]",
    "sort": "[mt.ops.sort(mt.ones(1).expand(1 << 24)) for _ in range(10**6)]",
    "rows": "mt.ops.std(mt.ones(1).expand(1 << 20, 1 << 20), 1)",
    "range": "mt.Tensor([range(10**6)] * 100)",
    "axis": "mt.ones(2).sum(axis=range(10**9))",
    "tolist": "mt.ones(1).expand(10**8).tolist()",
}


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
@pytest.mark.parametrize("name", LONG)
def test_ctrl_c_stops(name):
    # The signal always ends the loop, and probably arrives during a call.
    code = f"""
import os, signal, threading, minitensor as mt
signal.signal(signal.SIGINT, signal.default_int_handler)
mt.ops.exp(mt.zeros(1))
try:
    print("ready", flush=True)
    while True:
        {LONG[name]}
except KeyboardInterrupt:
    print("stopped", mt.ops.exp(mt.zeros(1)).item())
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=300)
        finally:
            process.kill()
    assert out == "stopped 1.0\n"


def test_random_numbers_do_not_depend_on_threads():
    threads = mt.get_num_threads()
    drawn = []
    try:
        for n in (1, 4):
            mt.set_num_threads(n)
            mt.manual_seed(3)
            drawn.append([mt.randn(100_001).numpy(), mt.rand(70_000, dtype="float16").numpy(), mt.randn(3).numpy()])
    finally:
        mt.set_num_threads(threads)
    assert all(np.array_equal(a, b) for a, b in zip(*drawn, strict=True))


def test_the_second_gradient_of_a_product_takes_time_in_proportion_to_its_length():
    n = 1 << 17
    x = mt.ones(n, dtype="float64", requires_grad=True)
    (first,) = mt.grad([x.prod()], [x], create_graph=True)
    (second,) = mt.grad([first.sum()], [x])
    assert (second == n - 1).all()


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_windows_much_larger_than_the_volume_take_no_longer(axis):
    huge, x = (1 << 31) - 2, mt.arange(27, dtype="float32").reshape(1, 1, 3, 3, 3)
    size, padding = ([n if a == axis else 1 for a in range(3)] for n in (huge, huge // 2))
    padding = [n if a == axis else 0 for a, n in enumerate(padding)]
    y = mt.ops.max_pool3d(x, size, stride=1, padding=padding)
    assert y.shape == (1, 1, *[4 if a == axis else 3 for a in range(3)])
    np.testing.assert_array_equal(y.numpy(), np.broadcast_to(x.numpy().max(2 + axis, keepdims=True), y.shape))
