"""`mt.lazy` on several threads and in child processes."""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from lazy_results import assert_same, computed, randn

import minitensor as mt

# A deadlock fails a test after this time.
SECONDS = 60


def slow(x, steps=400):
    """Postponed calls that take some time."""
    for _ in range(steps):
        x = x @ x * 1e-3 + 1
    return x


def test_threads_share_pending_tensors():
    x = randn(1000)
    with mt.lazy():
        y = (x * 2).exp()
    with ThreadPoolExecutor(4) as pool:
        texts = list(pool.map(lambda _: y.sum().item(), range(16)))
    assert set(texts) == {(x * 2).exp().sum().item()}


def test_threads_postpone_at_the_same_time():
    x = randn(200)

    def work(seed):
        with mt.lazy():
            y = x * float(seed)
            for k in range(50):
                y = y + float(k)
                if k % 10 == seed % 10:
                    y = y - y.sum().item() * 1e-3
        return y

    expected = []
    for seed in range(8):
        y = x * float(seed)
        for k in range(50):
            y = y + float(k)
            if k % 10 == seed % 10:
                y = y - y.sum().item() * 1e-3
        expected.append(y)
    with ThreadPoolExecutor(8) as pool:
        assert_same(list(pool.map(work, range(8))), expected)


def test_modes_belong_to_threads():
    with mt.lazy():
        names = []
        thread = threading.Thread(target=lambda: names.extend(computed(lambda: mt.ones(2) + 1)))
        thread.start()
        thread.join()
    assert names == ["add"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_process_computes_for_itself():
    with mt.lazy():
        y = mt.ones(3) * 2
    child = os.fork()
    if child == 0:
        os._exit(0 if y.tolist() == [2, 2, 2] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert y.tolist() == [2, 2, 2]


def test_threads_read_the_postponed_tensors_of_each_other():
    x = randn(64)
    tensors, results = {}, {}
    barrier = threading.Barrier(2, timeout=SECONDS)

    def work(own, other):
        for k in range(50):
            with mt.lazy():
                tensors[own] = (x * float(own + k)).exp().clip(hi=9.0)
            barrier.wait()
            results[own, k] = tensors[other].tolist()
            barrier.wait()

    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(work, 0, 1), pool.submit(work, 1, 0)]:
            future.result(timeout=SECONDS)
    for (own, k), values in results.items():
        assert values == (x * float(1 - own + k)).exp().clip(hi=9.0).tolist()


def test_an_op_in_python_reads_on_another_thread(registered):
    x = randn(5)
    with mt.lazy():
        other = x * 3

    @mt.custom_op(name="lazy_test::with_other")
    def with_other(x: mt.Tensor) -> mt.Tensor:
        with ThreadPoolExecutor(1) as pool:
            total = pool.submit(lambda: (other.sum() + x.sum()).item()).result(timeout=SECONDS)
        return x + total

    with mt.lazy():
        y = with_other(x * 2) * 2
    assert_same([y], [(x * 2 + ((x * 3).sum() + (x * 2).sum()).item()) * 2])


def test_a_thread_postpones_calls_while_another_one_computes():
    x = randn(200, 200)
    with mt.lazy():
        wrong = mt.ops.take(slow(x).reshape(-1), mt.Tensor([1 << 20]) * 1)
        right = slow(x, 3)
    errors = []

    def read():
        try:
            wrong.tolist()
        except IndexError as error:
            errors.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    time.sleep(0.02)
    with mt.lazy():
        try:
            after = wrong + right.sum()
        except IndexError:
            after = wrong
    with pytest.raises(IndexError, match="out of range"):
        after.tolist()
    reader.join(SECONDS)
    assert len(errors) == 1
    assert_same([right], [slow(x, 3)])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_process_forks_while_a_thread_computes():
    x = randn(200, 200)
    with mt.lazy():
        y = slow(x)
    reader = threading.Thread(target=y.tolist)
    reader.start()
    time.sleep(0.02)
    with mt.lazy():
        z = x * 2
    child = os.fork()
    if child == 0:
        os._exit(0 if z.tolist() == (x * 2).tolist() and y.shape == (200, 200) else 1)
    assert os.waitpid(child, 0)[1] == 0
    reader.join(SECONDS)
    assert_same([y, z], [slow(x), x * 2])
