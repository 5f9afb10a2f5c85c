"""Memory that tensors share with arrays, buffers and other threads."""

import gc
import pickle
import subprocess
import sys

import numpy as np
import pytest

import minitensor as mt


def leaf(*values, dtype="float64"):
    return mt.Tensor(list(values), dtype=dtype, requires_grad=True)


def test_a_round_trip_shares_memory():
    x = mt.ones(3, dtype="float64")
    for _ in range(20_000):
        x = mt.from_numpy(x.numpy())
    for _ in range(20_000):
        x = mt.from_dlpack(x)
    del x
    gc.collect()
    x, w = mt.ones(3, dtype="float64"), leaf(1.0, 1.0, 1.0)
    y = (x * w).sum()
    mt.from_numpy(x.numpy()[::-1]).add_(4)
    with pytest.raises(RuntimeError, match="was changed in place after the forward pass"):
        y.backward()
    m = mt.arange(6, dtype="float64").reshape(2, 3)
    assert mt.from_numpy(m.numpy().T[1:]).tolist() == [[1.0, 4.0], [2.0, 5.0]]
    assert mt.from_numpy(m.numpy().view("int64")).shape == (2, 3)


def test_any_byte_but_zero_is_true():
    def masks():
        array = np.zeros(4, bool)
        mine = mt.from_numpy(array)
        array.view("u1")[:] = [0, 1, 2, 255]
        shown = mt.zeros(4, dtype="bool")
        shown.numpy().view("u1")[:] = [0, 1, 2, 255]
        return [mine, shown, mine.clone(), shown.reshape(2, 2).T.contiguous().T.reshape(4)]

    truth = [False, True, True, True]
    x = mt.arange(4, dtype="float32")
    for m in masks():
        assert m.tolist() == truth
        assert (~m).tolist() == [not t for t in truth]
        assert (m == mt.Tensor(truth)).all() and not (m != mt.Tensor(truth)).any()
        assert (m & True).tolist() == (m | False).tolist() == truth and (m ^ True).tolist() == (~m).tolist()
        assert mt.ops.count_nonzero(m).item() == m.sum().item() == 3
        assert m.astype("uint8").tolist() == [0, 1, 1, 1] and m.astype("float16").tolist() == [0.0, 1.0, 1.0, 1.0]
        assert mt.ops.nonzero(m).tolist() == [[1], [2], [3]]
        assert x[m].tolist() == [1.0, 2.0, 3.0] and mt.ops.where(m, x, -x - 1).tolist() == [-1.0, 1.0, 2.0, 3.0]
        assert repr(m) == "tensor([False,  True,  True,  True])"
        assert m[3:].item() is True and bool(m[3:]) and [bool(v) for v in m] == truth


def test_a_mask_that_changes_after_the_forward_pass_scales_no_gradient():
    x = leaf(1.0, 2.0, 3.0, 4.0)
    m = mt.Tensor([True, True, False, False])
    y = mt.ops.where(m, x * 3, x)
    m.numpy().view("u1")[:] = [255, 2, 0, 0]
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0, 1.0, 1.0]


INDEX_OPS = ["gather", "scatter", "take", "embedding", "embedding_gradient", "narrow_gradient", "index", "two_indices"]
INDEX_OPS += ["one_hot", "cross_entropy"]
CHANGING_INDICES = """
import sys, threading
import numpy as np
import minitensor as mt

# The other thread must run while ours computes, also on one core.
sys.setswitchinterval(1e-6)
n = 1 << 17
name = sys.argv[1]
x, rows = mt.arange(n, dtype="float32"), mt.ones((n, 4), dtype="float32")
wide, few = mt.ones((n, 64)), mt.ones((1000, 64))
i = mt.zeros(n, dtype="int64")
logits = mt.zeros((n // 64, 64))
calls = {
    "gather": lambda: mt.ops.gather(x, i),
    "scatter": lambda: mt.ops.scatter(x, i, n),
    "take": lambda: mt.ops.take(rows, i),
    "embedding": lambda: mt.ops.embedding(few, i),
    "embedding_gradient": lambda: mt.ops.scatter_rows(wide, i, 1000),
    "narrow_gradient": lambda: mt.ops.scatter_rows(rows, i, n),
    "index": lambda: rows[i],
    "two_indices": lambda: rows[i, 0],
    "one_hot": lambda: mt.ops.one_hot(i[:1000], 8),
    "cross_entropy": lambda: mt.ops.cross_entropy(logits, i[: n // 64]),
}
memory, done = i.numpy(), False

def write():
    while not done:
        memory[:] = 1 << 60
        memory[:] = 0

thread = threading.Thread(target=write, daemon=True)
thread.start()
refused = 0
for _ in range(300):
    try:
        calls[name]()
    except IndexError:
        refused += 1
done = True
thread.join()
print("survived", refused)
"""


@pytest.mark.parametrize("name", INDEX_OPS)
def test_indices_that_another_thread_changes_stay_within_bounds(name):
    script = [sys.executable, "-c", CHANGING_INDICES, name]
    done = subprocess.run(script, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("survived"), (done.returncode, done.stderr)


def test_copies_are_made_only_if_allowed():
    for array in (np.ones(3, ">f8"), np.zeros(3, [("a", "i4"), ("z", "c8")])["z"]):
        with pytest.raises(ValueError, match="copy=False, but tensors do not support the byte order"):
            mt.asarray(array, copy=False)
        assert mt.asarray(array).tolist() == array.tolist() == mt.Tensor(array).tolist()


def test_bytes_other_than_0_and_1_are_saved_as_true(tmp_path):
    t = mt.zeros(3, dtype="bool")
    t.numpy().view("u1")[:] = [0, 2, 255]
    assert pickle.loads(pickle.dumps(t)).tolist() == [False, True, True]
    mt.save_state(tmp_path / "state", {"t": t})
    assert mt.load_state(tmp_path / "state")["t"].tolist() == [False, True, True]


BUFFERS = """
import ctypes, sys
import minitensor as mt

get = ctypes.pythonapi.PyObject_GetBuffer
get.argtypes = [ctypes.py_object, ctypes.c_void_p, ctypes.c_int]
release = ctypes.pythonapi.PyBuffer_Release
release.argtypes = [ctypes.c_void_p]
STRIDES = 0x10 | 0x08
C, F, ANY = 0x20 | STRIDES, 0x40 | STRIDES, 0x80 | STRIDES

def gives(t, flags):
    view = ctypes.create_string_buffer(256)
    try:
        get(t, view, flags)
    except BufferError:
        return False
    release(view)
    return True

rows = mt.zeros((2, 3))
print([[gives(t, flags) for flags in (C, F, ANY, STRIDES, 0)] for t in (rows, rows.T, rows[:, ::2])])
"""


def test_a_buffer_has_the_requested_layout():
    done = subprocess.run([sys.executable, "-c", BUFFERS], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(
        [[True, False, True, True, True], [False, True, True, True, False], [False, False, False, True, False]]
    )
