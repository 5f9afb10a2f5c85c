"""DLPack between tensors of minitensor and of PyTorch."""

import gc
import threading

import pytest

torch = pytest.importorskip("torch")

import minitensor as mt  # noqa: E402


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float16", "bfloat16", "float32", "complex64"])
def test_both_read_the_same_memory(dtype):
    t = mt.zeros((2, 3), dtype=dtype)
    x = torch.from_dlpack(t.T)
    assert (x.data_ptr(), tuple(x.shape), str(x.dtype)) == (t.data_ptr(), (3, 2), f"torch.{dtype}")
    x[0, 1] = 1
    assert t.astype("float64" if "complex" not in dtype else "complex128").tolist()[1][0] == 1
    back = mt.from_dlpack(x)
    assert back.data_ptr() == t.data_ptr() and back.shape == (3, 2)


def test_what_memory_cannot_express_is_refused():
    grad, lazy = torch.ones(2, requires_grad=True), torch.full((2,), 1j).conj()
    # Versions of PyTorch before 2.9 raise RuntimeError.
    refusals = (BufferError, RuntimeError)
    with pytest.raises(refusals, match="gradient"):
        torch.from_dlpack(mt.ones(2, requires_grad=True))
    for x, match in (
        (grad, "gradient"),
        (grad * 2, "gradient"),
        (lazy, "conjugate"),
        (torch.ones(2, device="meta"), "meta"),
    ):
        with pytest.raises(refusals, match=match):
            mt.from_dlpack(x)
        # With a tensor of ours, the call is ours, too.
        t = mt.ones(2)
        for call in (lambda: t + x, lambda: mt.ops.add(x, t), lambda: mt.ops.stack([t, x]), lambda: mt.ops.add_(x, t)):  # noqa: B023
            with pytest.raises(refusals, match=match):
                call()
    assert mt.from_dlpack(lazy.resolve_conj()).tolist() == [-1j, -1j]
    assert (mt.ones(2) + torch.ones(2)).tolist() == [2.0, 2.0]


def test_memory_lives_as_long_as_either_tensor_on_many_threads():
    before, faults = mt.memory_stats()["allocated"], []

    def work(seed):
        try:
            for _ in range(100):
                x = torch.from_dlpack(mt.full(64, float(seed)))
                gc.collect(0)
                y = mt.from_dlpack(x)
                del x
                assert y.sum().item() == 64 * seed
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    gc.collect()
    assert mt.memory_stats()["allocated"] == before
