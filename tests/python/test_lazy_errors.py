"""`mt.lazy`: errors of calls, interrupts, and too little memory."""

import signal

import pytest
from lazy_results import assert_same, computed, randn

import minitensor as mt

needs_timer = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there is no timer")


@pytest.fixture
def one_thread():
    """So that a computation takes long enough for a signal."""
    before = mt.get_num_threads()
    mt.set_num_threads(1)
    yield
    mt.set_num_threads(before)


def test_a_saved_tensor_that_changes_is_an_error_as_ever():
    w = randn(3, requires_grad=True)
    with mt.lazy():
        y = w.exp()
        with mt.no_grad():
            y += 1
        with pytest.raises(RuntimeError, match="changed in place"):
            y.sum().backward()


def test_mode_ends_with_an_exception():
    with pytest.raises(ZeroDivisionError), mt.lazy():
        raise ZeroDivisionError
    assert computed(lambda: mt.ones(2) + 1) == ["add"]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: x + mt.zeros(7), ValueError),
        (lambda x: x @ mt.zeros(9, 9), ValueError),
        (lambda x: mt.ops.bitwise_and(x, x), TypeError),
        (lambda x: x.reshape(5), ValueError),
        (lambda x: mt.ops.concat([x, mt.zeros(1, 1, 1)]), ValueError),
        (lambda x: x.sum(axis=9), (ValueError, IndexError)),
        (lambda x: mt.ops.softmax(x, axis=5), (ValueError, IndexError)),
    ],
)
def test_errors_of_arguments_are_raised_by_the_call(call, error):
    with pytest.raises(error) as expected:
        call(randn(4, 6))
    with mt.lazy():
        x = randn(4, 6) * 2
        with pytest.raises(error) as got:
            call(x)
    assert str(got.value) == str(expected.value)
    assert x.sum().item() == (randn(4, 6) * 2).sum().item()


def test_an_attribute_that_the_dtype_cannot_hold_is_refused_by_the_call(registered):
    @mt.element_op(name="lazy::divided")
    def divided(x, by: int = 3):
        return x // by

    wrong = "op 'lazy::divided' with by=1099511627776 takes int64.*, got uint32"
    with mt.lazy(), pytest.raises(TypeError, match=wrong):
        divided(mt.Tensor([1, 2]).astype("uint32") * 2, by=1 << 40)


def test_an_error_that_depends_on_elements_is_raised_by_each_read():
    x = mt.Tensor([1.0, 2.0, 3.0])
    with mt.lazy():
        at = mt.Tensor([1, 7]) * 1
        wrong = mt.ops.take(x * 2, at)
        after = wrong + 1
        right = x + 1
    for t in (wrong, after, wrong, after[0]):
        with pytest.raises(IndexError, match=r"op 'take': .*out of range.*called at .*test_lazy_errors.py, line \d+"):
            t.tolist()
        with pytest.raises(IndexError, match="op 'take': .*out of range"):
            repr(t)
    with pytest.raises(IndexError, match="out of range"):
        after * 2
    with mt.lazy(), pytest.raises(IndexError, match="out of range"):
        after * 2
    assert right.tolist() == [2, 3, 4]


@needs_timer
@pytest.mark.usefixtures("one_thread")
def test_an_interrupted_computation_goes_on():
    x = randn(300, 300) / 300
    with mt.lazy():
        y = x.clone()
        for _ in range(400):
            y = y @ x + 1
        y += 1
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            y.tolist()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    expected = x.clone()
    for _ in range(400):
        expected = expected @ x + 1
    assert_same([y], [expected + 1])


def test_tensors_remain_readable_after_an_exception():
    x = randn(3)
    with pytest.raises(ZeroDivisionError), mt.lazy():
        y = x * 2
        raise ZeroDivisionError
    assert_same([y + 1], [x * 2 + 1])


def test_calls_that_use_a_failed_result_fail_and_others_do_not():
    x = randn(4)
    state = x.clone()
    with mt.lazy():
        wrong = mt.ops.take(x * 2, mt.Tensor([9]) * 1)
        state += wrong.sum()
        good = x.exp()
    assert_same([good], [x.exp()])
    for t in (wrong, state, wrong.reshape(1, 1)):
        with pytest.raises(IndexError, match="out of range"):
            t.tolist()
        with pytest.raises(IndexError, match="out of range"):
            t * 2
        with pytest.raises(IndexError, match="out of range"):
            t.data_ptr()


@pytest.mark.parametrize("lo", [-1.0, 0.5, 1e9])
def test_an_attribute_that_the_dtype_cannot_hold_is_an_error_of_the_call(lo):
    x = mt.ones(3, dtype="uint8")
    message = "op 'clamp': attribute 'lo' must be an integer that the dtype of the inputs can represent"
    with mt.lazy(), pytest.raises(ValueError, match=message):
        mt.ops.clamp(x, lo, 1e9)


def test_a_call_that_needs_too_much_memory_fails():
    x = randn(1)
    with mt.lazy():
        early = x * 2
        big = x.expand(1 << 46) + 1
        late = x * 3
    with pytest.raises(MemoryError):
        late.tolist()
    # The second attempt goes on without the call.
    assert_same([early, late], [x * 2, x * 3])
    for _ in range(2):
        with pytest.raises(MemoryError):
            big.sum()


@needs_timer
@pytest.mark.usefixtures("one_thread")
def test_a_signal_handler_cannot_read_what_is_being_computed():
    x = randn(300, 300) / 300
    seen = []

    def handler(*_):
        try:
            y.tolist()
        except RuntimeError as error:
            seen.append(str(error))
        seen.append((x + 1).tolist() == plus_one)

    plus_one = (x + 1).tolist()
    expected = x
    for _ in range(400):
        expected = expected @ x + 1
    with mt.lazy():
        y = x
        for _ in range(400):
            y = y @ x + 1
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    try:
        assert_same([y], [expected])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert seen[1:] == [True]
    assert "cannot read a tensor of lazy mode" in seen[0]
