"""The devices `cuda`: memory, kernels for all kinds of layouts and sizes, errors, graphs and training."""

import os
import subprocess
import sys

import numpy as np
import pytest
from test_cuda_ops import check

import minitensor as mt


def random(*shape, seed=0):
    return mt.Tensor(np.random.default_rng(seed).standard_normal(shape).astype("f4"))


def both(f, *given):
    """Checks that a function gives the same on the CPU and on the device."""
    results = f(*(t.to("cuda") for t in given))
    expected = f(*given)
    pairs = zip(results, expected, strict=True) if isinstance(results, tuple) else [(results, expected)]
    for result, wanted in pairs:
        check(result, wanted, str([t.shape for t in given]))


def test_devices_are_described():
    assert mt.cuda.is_available() and mt.cuda.device_count() >= 1
    assert mt.Device("cuda") == "cuda:0" and mt.cuda.get_device_name("cuda:0") == mt.cuda.get_device_name()
    free, total = mt.cuda.mem_get_info()
    assert 0 < free <= total
    mt.cuda.synchronize()
    with pytest.raises(ValueError, match=r"unknown device 'cuda:99'; the devices are 'cpu', 'meta'.*'cuda'"):
        mt.Tensor([1.0], device="cuda:99")
    with pytest.raises(ValueError, match=r"expected a device 'cuda', got 'cpu'"):
        mt.cuda.synchronize("cpu")


def test_without_a_gpu_the_error_says_what_is_missing(tmp_path):
    script = "import minitensor as mt; assert not mt.cuda.is_available(); mt.Tensor([1.0], device='cuda')"
    environment = {**os.environ, "MINITENSOR_CUDA": "", "CUDA_VISIBLE_DEVICES": "-1"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert "RuntimeError: device 'cuda' is not available: " in done.stderr
    environment["MINITENSOR_CUDA"] = "simulated"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert "MINITENSOR_CUDA must be 'emulated', got \"simulated\"" in done.stderr


@pytest.mark.parametrize("shape", [(1,), (7,), (1024,), (1027,), (3, 5), (4, 128), (5, 33, 6), (2, 3, 4, 5), (70000,)])
@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float32", "float64", "int8", "int16", "int64", "uint8", "bool"]
)
def test_copies_and_conversions(shape, dtype):
    x = (random(*shape) * 50).astype(dtype)
    assert np.array_equal(x.to("cuda").cpu().astype("float64").numpy(), x.astype("float64").numpy())
    for other in ("float16", "bfloat16", "float32", "int32", "uint64", "bool"):
        if dtype != "bool" and not dtype.startswith("int") or other != "uint64":
            both(lambda t, other=other: t.astype(other), x)
    both(lambda t: t.T.contiguous() if t.ndim > 1 else t[::-1].contiguous(), x)


@pytest.mark.parametrize("start", range(5))
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "uint8"])
def test_vectors_at_any_address(start, dtype):
    x = (random(4, 261) * 9).astype(dtype)
    both(lambda t: mt.ops.multiply(t[:, start:], 2), x)
    both(lambda t: t.reshape((-1,))[start:] + t.reshape((-1,))[: 4 * 261 - start], x)
    if dtype.startswith("float"):
        both(lambda t: mt.ops.softmax(t[:, start : start + 256]), x)


def test_broadcasting():
    x, row, column = random(17, 64), random(64), random(17, 1)
    both(lambda x, row, column: mt.where(x > row, x * column, row), x, row, column)
    both(lambda x, row: x.T + row, random(64, 64), row)
    both(lambda x: x.sum() * x, x)


ROWS = [1, 2, 3, 31, 32, 33, 64, 100, 127, 128, 500, 512, 1000, 1024, 4096, 5000, 16384, 40000]


@pytest.mark.parametrize("n", ROWS)
def test_rows_of_any_length(n):
    x = random(3, n)
    both(mt.ops.softmax, x)
    both(lambda t: mt.ops.layer_norm(t, t[0], t[1]), x)
    both(lambda t: (t.sum(axis=1), t.max(axis=1), t.mean(axis=1), t.argmax(axis=1), (t > 2).any(axis=1)), x)
    both(lambda t: mt.ops.softmax(t.T, axis=0), x)
    both(lambda t: (t.sum(axis=0), t.min(axis=0)), random(n, 3))


def test_long_rows_are_split():
    x = random(200_000) * 0.1
    both(lambda t: (t.sum(), t.max(), t.mean(), t.argmin(), mt.ops.logsumexp(t), t.var()), x)
    both(mt.ops.softmax, x)
    both(lambda t: mt.ops.standardize(t), x)
    both(lambda t: (t.sum(axis=0), mt.ops.softmax(t, axis=0)), x.reshape((20_000, 10)))


@pytest.mark.parametrize("shape", [(1, 8), (5, 8), (300, 40), (5000, 64), (40, 40000)])
def test_gradients_of_weights_are_sums_over_rows(shape):
    x, weight, bias = random(*shape), random(shape[1], seed=1), random(shape[1], seed=2)

    def gradients(*given):
        leaves = [t.detach().requires_grad_() for t in given]
        out = mt.ops.layer_norm(*leaves)
        (out * out).sum().backward()
        return tuple(leaf.grad / shape[0] for leaf in leaves)

    both(gradients, x, weight, bias)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32", "uint8"])
def test_products_of_matrices(dtype):
    x, y = (random(5, 6, 9) * 3).astype(dtype), (random(5, 9, 4, seed=1) * 3).astype(dtype)
    both(lambda x, y: x @ y, x, y)
    both(lambda x, y: x[:, ::2] @ y[..., 1:], x, y)
    both(lambda x, y: y.mT @ x.mT, x, y)
    both(lambda x, y: (x @ y[0], x[0] @ y, x[0, 0] @ y[0]), x, y)
    both(lambda x, y: mt.expand(x[:1], (5, 6, 9)) @ y, x, y)


def test_an_index_that_is_out_of_range_is_an_error():
    x = random(4, 6).to("cuda")
    for f in (
        lambda: x[mt.Tensor([0, 9]).to("cuda")],
        lambda: mt.ops.gather(x, mt.full((4, 1), 6).to("cuda")),
        lambda: mt.ops.cross_entropy(x, mt.Tensor([0, 1, 2, 6]).to("cuda")),
    ):
        with pytest.raises(IndexError, match=r"on device 'cuda:0' is out of range"):
            f().tolist()
        mt.cuda.synchronize()
        assert x[mt.Tensor([1, -1]).to("cuda")].shape == (2, 6)


def test_an_index_into_nothing_is_an_error_at_once():
    x, index = mt.ones((4, 5), device="cuda"), mt.zeros((4,), dtype="int64").to("cuda")
    for f in (
        lambda: mt.ops.scatter_rows(x, index, 0),
        lambda: mt.ops.scatter(x, mt.zeros((4, 5), dtype="int64").to("cuda"), 0),
        lambda: mt.ops.one_hot(index, 0),
        lambda: mt.ops.gather(x[:, :0], index.reshape((4, 1))),
        lambda: mt.ops.embedding(x[:0], index),
    ):
        with pytest.raises(IndexError, match="out of range for size 0"):
            f()


def test_rows_without_elements():
    for shape in [(0,), (3, 0), (0, 3)]:
        x = mt.zeros(shape)
        both(lambda t: (t.any(), t.all(), mt.ops.count_nonzero(t), t.sum(), t.prod()), x)
        both(lambda t: (t.any(axis=-1), t.all(axis=-1), t.sum(axis=0), (t > 0).any(axis=0)), x)


def test_ops_of_python_and_their_gradients():
    @mt.element_op
    def cuda_smooth(x, y, *, scale: float = 2.0):
        return mt.where(x > y, x.exp() * scale, (y - x).tanh())

    @mt.row_op
    def cuda_centered(x, w):
        return (x - x.mean()) * w / (1 + abs(x).max())

    def gradients(x, y, w):
        leaves = [t.detach().requires_grad_() for t in (x, y, w)]
        out = cuda_centered(cuda_smooth(leaves[0], leaves[1], scale=1.5), leaves[2])
        (out * out).sum().backward()
        return tuple(leaf.grad for leaf in leaves)

    try:
        both(gradients, random(6, 50), random(50), random(6, 50, seed=3))
    finally:
        for op in ("cuda_smooth", "cuda_centered"):
            mt.unregister_custom_op_py(op)


def test_a_graph_runs_on_the_device():
    @mt.jit
    def block(x, w):
        h = mt.ops.gelu(x @ w) * 0.5 + x
        return mt.ops.softmax(h - h.mean(axis=-1, keepdims=True))

    x, w = random(9, 16), random(16, 16, seed=1) * 0.2
    both(block, x, w)
    chain = mt.jit(lambda x: (x * 2 + 1).exp() - x)
    both(chain, x)
    for graph in chain.graphs:
        assert len(graph) == 1 and "fused(multiply, add, exp, subtract)" in str(graph)


def test_a_model_is_trained_as_on_the_cpu():
    x, y = random(64, 8), random(64, 1, seed=1)
    losses = {}
    for device in ("cpu", "cuda"):
        mt.manual_seed(3)
        model = mt.nn.Sequential(mt.nn.Linear(8, 32), mt.ops.gelu, mt.ops.softmax, mt.nn.Linear(32, 1)).to(device)
        optimizer = mt.optim.AdamW(model.parameters(), lr=0.01)
        losses[device] = []
        for _ in range(10):
            loss = ((model(x.to(device)) - y.to(device)) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[device].append(loss.item())
    np.testing.assert_allclose(losses["cuda"], losses["cpu"], rtol=1e-4)
    assert losses["cuda"][-1] < losses["cuda"][0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_random_numbers_are_those_of_the_cpu(dtype):
    key = mt.Tensor([5, 2**64 - 3], dtype="uint64")
    both(lambda key: mt.ops.random.uniform(key, [1001], dtype=dtype), key)
    both(lambda x, key: mt.ops.random.dropout(x, key, p=0.3), random(30, 7).astype(dtype), key)


def test_memory_is_freed():
    _, total = mt.cuda.mem_get_info()
    if total > 1 << 50:
        pytest.skip("the emulated device has no limit")
    for _ in range(50):
        x = mt.zeros((total // 40,), dtype="uint8", device="cuda")
        y = x + 1
        del x, y
    with pytest.raises(MemoryError):
        mt.zeros((2 * total,), dtype="uint8", device="cuda")
    assert mt.ones(3, device="cuda").sum().item() == 3
