"""`minitensor.torch` and DLPack with tensors on CUDA devices."""

import minitensor.torch as mtt
import pytest
import torch
import torch.nn.functional as F
from minitensor._minitensor import _cuda_stream, _has_cuda
from minitensor.torch.registration import find
from torch._subclasses.fake_tensor import FakeTensorMode

import minitensor as mt

HAS_CUDA = torch.cuda.is_available() and mt.cuda.is_available()
needs_cuda = pytest.mark.skipif(not HAS_CUDA, reason="PyTorch or minitensor has no CUDA device")


# Without a GPU.


def test_shapes_and_devices_are_known_without_a_device():
    with FakeTensorMode():
        x = torch.empty(3, 4, device="cuda")
        y = mtt.layer_norm(mtt.swish(x), torch.empty(4, device="cuda"))
        (g,) = torch.ops.minitensor.swish_gradient([x, x], [], "1_11")
        for t in (y, g):
            assert (t.device, t.shape) == (torch.device("cuda:0"), (3, 4))


def test_kernels_of_cuda_are_registered():
    for name in ("swish", "sort", "swish_gradient", "sgd_step"):
        assert torch._C._dispatch_has_kernel_for_dispatch_key(f"minitensor::{name}", "CUDA")


@pytest.mark.skipif(_has_cuda(), reason="minitensor has a CUDA device")
def test_without_a_cuda_device_an_error_says_so():
    with FakeTensorMode():
        x = torch.empty(3, device="cuda")
    op = find("sort")
    with pytest.raises(
        NotImplementedError, match=r"op 'sort' .* on 'cuda:0'; minitensor has no CUDA device here; .*\.cpu"
    ):
        op._compute_on_cuda(op._kernel, lambda x: op._compute_elsewhere(lambda *_: NotImplemented, x), x)


# With a GPU.


def on_cuda(*shape, **options):
    return torch.randn(*shape, device="cuda", **options)


@needs_cuda
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int64", "bool"])
def test_memory_is_shared_in_both_directions(dtype):
    x = torch.ones(2, 3, device="cuda", dtype=getattr(torch, dtype))
    t = mt.from_dlpack(x.T)
    assert (t.device, t.data_ptr(), t.shape) == ("cuda", x.data_ptr(), (3, 2))
    back = torch.from_dlpack(t)
    assert (back.device, back.data_ptr()) == (x.device, x.data_ptr())
    x.zero_()
    assert not any(t.flatten().tolist())
    own = mt.ones((2, 3), dtype=dtype, device="cuda")
    y = torch.from_dlpack(own)
    assert (y.data_ptr(), y.device.type) == (own.data_ptr(), "cuda")
    y.zero_()
    torch.cuda.synchronize()
    assert not any(own.flatten().tolist())


@needs_cuda
@pytest.mark.parametrize("call", [mtt.swish, torch.ops.minitensor.swish, mt.ops.swish])
def test_an_op_computes_on_the_device(call):
    x = on_cuda(64, 33)
    for view in (x, x.T, x[::2, 1:], x[:0]):
        y = call(view)
        assert y.device == x.device and y.is_contiguous()
        torch.testing.assert_close(y, F.silu(view))


@needs_cuda
def test_layer_norm_and_its_gradients():
    x, w, b = on_cuda(5, 32, requires_grad=True), on_cuda(32, requires_grad=True), on_cuda(32, requires_grad=True)
    for call in (mtt.layer_norm, torch.ops.minitensor.layer_norm):
        y, expected = call(x, w, b), F.layer_norm(x, (32,), w, b)
        torch.testing.assert_close(y, expected, rtol=1e-5, atol=1e-5)
        cotangent = torch.randn_like(y)
        for g, e in zip(
            torch.autograd.grad(y, [x, w, b], cotangent),
            torch.autograd.grad(expected, [x, w, b], cotangent),
            strict=True,
        ):
            assert g.device == x.device
            torch.testing.assert_close(g, e, rtol=1e-4, atol=1e-4)


@needs_cuda
def test_gradients_of_higher_order():
    x = on_cuda(7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(mtt.swish, x) and torch.autograd.gradgradcheck(mtt.swish, x)


@needs_cuda
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_floats(dtype):
    x = on_cuda(100, dtype=dtype, requires_grad=True)
    y = mtt.swish(x)
    y.sum().backward()
    assert y.dtype == x.grad.dtype == dtype
    torch.testing.assert_close(y.double(), F.silu(x.double()), rtol=2 * torch.finfo(dtype).eps, atol=1e-6)


@needs_cuda
def test_an_op_in_place_changes_the_memory_of_the_tensor():
    p, m, g = torch.ones(3, device="cuda"), torch.zeros(3, device="cuda"), torch.full((3,), 2.0, device="cuda")
    before, version = p.data_ptr(), p._version
    mtt.sgd_step(p, m, g, lr=0.5, momentum=0.0)
    assert (p.data_ptr(), p._version) == (before, version + 1)
    torch.testing.assert_close(p, torch.zeros(3, device="cuda"))


@needs_cuda
def test_an_op_computes_on_the_current_stream():
    seen = []

    @mt.custom_op
    def observed_stream(x):
        seen.append(_cuda_stream(0))
        return x * 2

    try:
        side = torch.cuda.Stream()
        x = torch.zeros(1 << 22, device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(20):
                # Without an order, the product would read old elements.
                torch.cuda._sleep(1_000_000)
                x.add_(1)
                y = mtt.observed_stream(x)
                assert torch.equal(y, x + x)
        assert set(seen) == {side.cuda_stream} and _cuda_stream(0) == 0
    finally:
        mt.unregister_custom_op_py("observed_stream")


@needs_cuda
def test_from_dlpack_waits_for_the_stream_of_pytorch():
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        x = torch.zeros(1 << 22, device="cuda")
        torch.cuda._sleep(50_000_000)
        x.fill_(3)
        t = mt.from_dlpack(x)
        doubled = t + t
        # Its memory is not used again before the sum has ended.
        del t, x
        torch.zeros(1 << 22, device="cuda")
    assert torch.all(torch.from_dlpack(doubled) == 6)
    own = mt.full((1 << 22,), 2.0, device="cuda") * 2.0
    with torch.cuda.stream(side):
        assert torch.all(torch.from_dlpack(own) == 4)


@needs_cuda
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_code(backend):
    def block(x, w):
        return mtt.layer_norm(mtt.swish(x), w)

    torch._dynamo.reset()
    compiled = torch.compile(block, fullgraph=True, dynamic=True, backend=backend)
    w = torch.ones(8, device="cuda", requires_grad=True)
    for rows in (3, 5):
        x = on_cuda(rows, 8, requires_grad=True)
        y = compiled(x, w)
        torch.testing.assert_close(y, block(x, w))
        found, expected = (torch.autograd.grad(f(x, w).square().sum(), [x, w]) for f in (compiled, block))
        for g, e in zip(found, expected, strict=True):
            torch.testing.assert_close(g, e)


@needs_cuda
def test_opcheck_of_pytorch():
    torch.library.opcheck(torch.ops.minitensor.swish.default, (on_cuda(3, 4, requires_grad=True),))


@needs_cuda
def test_inputs_on_different_devices_are_an_error():
    for call in (mtt.add, torch.ops.minitensor.add):
        with pytest.raises(
            RuntimeError, match="op 'add': 'y' is on device 'cpu', but the inputs before it are on device 'cuda'"
        ):
            call(on_cuda(3), torch.ones(3))
