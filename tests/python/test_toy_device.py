"""A device of a plugin, `toy_device.c`: tensors are created, moved, computed, differentiated and freed there."""

import gc
from pathlib import Path

import numpy as np
import pytest
from c_plugin import compiled, refuses

import minitensor as mt
from minitensor import plugins

FLAGS = ("-lm", "-Wno-unused-function")
SOURCE = Path(__file__).with_name("toy_device.c").read_text(encoding="utf-8")


@pytest.fixture(autouse=True, scope="module")
def toy():
    plugins.load_plugin(compiled(SOURCE, flags=FLAGS))
    yield
    plugins.unload_plugin("toy")


def held(index=0):
    gc.collect()
    probe = mt.zeros(1, dtype="float64", device=f"toy:{index}")
    # The probe itself has 8 bytes, and the result 8.
    return mt.ops.toy.held(probe).item() - 16


def test_tensors_are_created_moved_and_freed():
    before = held(), held(1)
    x = mt.Tensor([[1.0, 2.0], [3.0, 4.0]], device="toy")
    assert x.device == "toy" and x.device.type == "toy" and held() == before[0] + 16
    assert x.tolist() == [[1, 2], [3, 4]] and x[1, 0].item() == 3 and x.T.tolist() == [[1, 3], [2, 4]]
    assert repr(x) == "tensor([[1., 2.],\n        [3., 4.]], device='toy')"
    y = x.to("toy:1", dtype="float64")
    assert y.device == mt.Device("toy:1") and held(1) == before[1] + 32 and y.tolist() == x.tolist()
    assert y.cpu().device == "cpu" and y.to("cpu").dtype == "float64"
    for made in (
        mt.ones(2, device="toy"),
        mt.full((2,), 1, device="toy"),
        mt.zeros_like(x),
        mt.arange(3, device="toy"),
        mt.randn(3, device="toy"),
        mt.asarray(np.eye(2), device="toy"),
    ):
        assert made.device == "toy" and made.cpu().numpy() is not None
    del x, y, made
    assert (held(), held(1)) == before


def test_ops_and_gradients_are_computed_there():
    x = mt.Tensor([-1.0, 0.5, 2.0], dtype="float64", device="toy", requires_grad=True)
    y = (x * x + 2 * mt.ops.swish(x)).sum()
    y.backward()
    host = mt.Tensor([-1.0, 0.5, 2.0], dtype="float64", requires_grad=True)
    (host * host + 2 * mt.ops.swish(host)).sum().backward()
    assert y.device == x.grad.device == "toy"
    np.testing.assert_allclose(x.grad.cpu().numpy(), host.grad.numpy(), rtol=1e-14)


def test_elements_are_read_and_written_there():
    x = mt.Tensor([[1.0, 2.0], [3.0, 4.0]], dtype="float64", device="toy")
    x[0] = 5.0
    x[1, 1] = mt.Tensor(7.0, dtype="float64", device="toy")
    x[1, :1] = [6.0]
    assert x.tolist() == [[5, 5], [6, 7]] and 6.0 in x
    copy = mt.Tensor(x)
    assert copy.device == "cpu" and copy.tolist() == x.tolist()
    assert mt.Tensor(x, dtype="float32", device="toy:1").device == "toy:1"
    with pytest.raises(NotImplementedError, match="op 'index' has no kernel on device 'toy'"):
        x[[1, 0]]
    with pytest.raises(RuntimeError, match="'source' is on device 'cpu'"):
        x[0] = mt.ones(2, dtype="float64")


def test_gradients_flow_between_devices():
    x = mt.Tensor([1.0, 2.0], dtype="float64", requires_grad=True)
    (x.to("toy") * 3.0).to("toy:1").cpu().sum().backward()
    assert x.grad.device == "cpu" and x.grad.tolist() == [3, 3]
    z = mt.Tensor(2.0, dtype="float64", requires_grad=True)
    (g,) = mt.grad((z.to("toy") * z.to("toy")).cpu(), [z], create_graph=True)
    assert mt.grad(g, [z])[0].item() == 2


@pytest.mark.parametrize("name", ["add", "multiply", "square", "sigmoid", "silu"])
def test_opcheck_and_gradcheck_take_tensors_of_the_device(name):
    op = getattr(mt.ops, name)
    n = 2 if name in ("add", "multiply") else 1
    x = [mt.Tensor([[0.3 + i, -1.1], [0.7, 2.0]], dtype="float64", device="toy", requires_grad=True) for i in range(n)]
    mt.testing.opcheck(op, *(t.detach() for t in x))
    mt.testing.gradcheck(op, x, orders=1)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: mt.sin(x), NotImplementedError, "op 'sin' has no kernel for float64 on device 'toy'"),
        (lambda x: mt.ops.sort(x), NotImplementedError, "op 'sort' has no kernel for float64 on device 'toy'"),
        (
            lambda x: x + mt.ones(2, dtype="float64"),
            RuntimeError,
            "'y' is on device 'cpu', but the inputs before it are on device 'toy'",
        ),
        (lambda x: x.numpy(), RuntimeError, "on device 'toy', whose memory the CPU does not read; copy it with to"),
        (lambda x: memoryview(x), (BufferError, RuntimeError), "on device 'toy'"),
        (lambda x: x.__dlpack__(), (BufferError, RuntimeError), "on device 'toy'"),
        (lambda x: np.asarray(x), RuntimeError, "on device 'toy'"),
        (
            lambda x: x.to("toy:2"),
            ValueError,
            "unknown device 'toy:2'; the devices are 'cpu', 'meta', 'toy' and 'toy:1'",
        ),
        (lambda x: mt.ones(1 << 29, device="toy"), MemoryError, "a toy holds at most 1 GiB"),
        (lambda x: mt.ops.toy.held(x.cpu()), NotImplementedError, "only a toy computes this"),
    ],
)
def test_what_the_device_cannot_do_is_an_error(call, error, message):
    with pytest.raises(error, match=message):
        call(mt.Tensor([1.0, 2.0], dtype="float64", device="toy"))


def test_the_device_outlives_its_plugin():
    x = mt.Tensor([1.0, 2.0], dtype="float64", device="toy")
    plugins.unload_plugin("toy")
    try:
        assert (x + x).tolist() == [2, 4]
    finally:
        plugins.load_plugin(compiled(SOURCE, flags=FLAGS))
    assert held() >= 0


def changed(old, new, name):
    assert old in SOURCE
    source = SOURCE.replace(old, new).replace('MT_PLUGIN("toy"', 'MT_PLUGIN("toys"').replace("toy::held", "toys::held")
    return compiled(source.replace('MT_STR("toy")', f'MT_STR("{name}")'), flags=FLAGS)


@pytest.mark.parametrize(
    ("old", "new", "name", "error", "message"),
    [
        (".count = 2", ".count = 0", "toys", ValueError, "device 'toys' has a count of 0, expected 1 to 64"),
        (
            ".read = read,",
            "",
            "toys",
            ValueError,
            "device 'toys' needs the functions allocate, release, write and read",
        ),
        (
            ".struct_size = sizeof(MtDevice)",
            ".struct_size = 8",
            "toys",
            ValueError,
            "the table of a device has 8 bytes",
        ),
        (".count = 2", ".count = 1", "Toys!", ValueError, "the name of a kind of device consists of"),
        (".count = 2", ".count = 1", "toy", ValueError, "device 'toy' is already registered"),
        (".count = 2", ".count = 1", "cpu", ValueError, "device 'cpu' is already registered"),
        ('KERNEL("add", add_f32, f32)', 'KERNEL("ad", add_f32, f32)', "toys", ValueError, "there is no op 'ad'"),
        ('KERNEL("add", add_f32, f32)', 'KERNEL("add", 0, f32)', "toys", ValueError, "the function is a null pointer"),
        (".n_dtypes = 1", ".n_dtypes = 2", "toys", ValueError, "dtype"),
    ],
)
def test_a_wrong_table_is_refused(old, new, name, error, message):
    refuses(changed(old, new, name), error, message)


def test_nonzero_elements_are_found_on_the_cpu():
    x = mt.Tensor([0.0, 2.0, 0.0, 3.0], dtype="float64", device="toy")
    bounded = mt.jit(lambda x: mt.ops.nonzero(x, size=3, fill_value=-1))
    for values, expected in ((x, [[1], [3], [-1]]), (x * x, [[1], [3], [-1]]), (x * 0, [[-1]] * 3)):
        found = bounded(values)
        assert (found.device, found.tolist()) == ("toy", expected)
    assert len(bounded.graphs) == 1
    assert mt.ops.nonzero(x).tolist() == [[1], [3]]
