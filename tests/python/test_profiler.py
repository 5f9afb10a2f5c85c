"""`mt.profiler.profile`: what it records, and that it changes nothing."""

import json
import threading

import numpy as np
import pytest

import minitensor as mt


def recorded(f):
    with mt.profiler.profile() as p:
        f()
    return p


def test_each_call_is_recorded_with_its_dtypes_shapes_and_bytes():
    x, y = mt.ones((3, 4)), mt.ones(4, dtype="float64")
    events = recorded(lambda: mt.ops.exp(x * y)).events()
    assert [e.name for e in events] == ["multiply", "exp"]
    assert events[0].inputs == ((mt.float32, (3, 4)), (mt.float64, (4,)))
    assert [e.bytes for e in events] == [3 * 4 * 8] * 2
    assert events[0].shapes == "float32[3, 4], float64[4]"


def test_a_view_has_no_bytes_of_its_own():
    x = mt.ones((3, 4))
    assert [e.bytes for e in recorded(lambda: x.reshape(4, 3)).events()] == [0]


def test_small_calls_and_calls_with_gradients_are_recorded_too():
    x = mt.Tensor([1.0, 2.0], requires_grad=True)
    names = [e.name for e in recorded(lambda: mt.ops.swish(x).sum().backward()).events()]
    assert names[:2] == ["swish", "sum"] and "swish.vjp" in names[2:]


def test_inner_calls_are_within_the_outer_one_and_count_once():
    x = mt.randn((64, 8, 4, 4))
    events = recorded(lambda: mt.ops.group_norm(x, groups=4)).events()
    outer = events[0]
    assert outer.name == "group_norm" and len(events) > 1
    for inner in events[1:]:
        assert outer.start <= inner.start and inner.start + inner.total <= outer.start + outer.total
    # Each moment of the outer call belongs to one call.
    assert sum(e.self_time for e in events) == outer.total
    assert all(0 <= e.self_time <= e.total for e in events)


def test_a_call_that_fails_is_recorded_and_raises_as_before():
    x = mt.ones((2, 3))
    with mt.profiler.profile() as p, pytest.raises(ValueError, match="broadcast"):
        mt.ops.add(x, mt.ones((4, 5)))
    assert [(e.name, e.bytes) for e in p.events()] == [("add", 0)]


def test_threads_have_numbers_of_their_own():
    x = mt.ones(3)
    with mt.profiler.profile() as p:
        mt.ops.exp(x)
        thread = threading.Thread(target=lambda: mt.ops.log(x))
        thread.start()
        thread.join()
    threads = {e.name: e.thread for e in p.events()}
    assert threads["exp"] != threads["log"]


def test_nothing_is_recorded_before_or_after():
    x = mt.ones(3)
    mt.ops.exp(x)
    with mt.profiler.profile() as p:
        mt.ops.sin(x)
    mt.ops.cos(x)
    assert [e.name for e in p.events()] == ["sin"]


def test_profiles_nest_and_overlap():
    x = mt.ones(3)
    with mt.profiler.profile() as outer:
        mt.ops.exp(x)
        with mt.profiler.profile() as inner:
            mt.ops.sin(x)
        mt.ops.cos(x)
    assert [e.name for e in outer.events()] == ["exp", "sin", "cos"]
    assert [e.name for e in inner.events()] == ["sin"]
    assert all(0 <= e.self_time <= e.total for e in outer.events())


def test_results_and_gradients_are_the_same():
    def loss():
        x = mt.Tensor(np.linspace(-3, 3, 24).reshape(4, 6), requires_grad=True)
        mt.ops.layer_norm(mt.ops.gelu(x), mt.ones(6, dtype="float64")).square().sum().backward()
        return x.grad.numpy()

    without = loss()
    with mt.profiler.profile():
        assert np.array_equal(loss(), without)


def test_the_table_sums_up_calls():
    x = mt.ones(1000)
    p = recorded(lambda: [mt.ops.exp(x), mt.ops.exp(x[:10]), mt.ops.sin(x)])
    [exp] = [row for row in p.averages() if row.name == "exp"]
    events = [e for e in p.events() if e.name == "exp"]
    assert (exp.calls, exp.bytes, exp.total) == (2, 4040, sum(e.total for e in events))
    by_shape = [row.shapes for row in p.averages(group_by_shape=True) if row.name == "exp"]
    assert by_shape == ["float32[1000]", "float32[10]"]
    header, rule, first, *_ = p.table(sort_by="calls").splitlines()
    assert header.split()[:2] == ["op", "calls"] and set(rule) <= {"-", " "} and first.split()[:2] == ["exp", "2"]
    assert "… 1 more" in p.table(row_limit=2) and len(p.averages()) == 3
    assert str(p) == repr(p) == p.table()
    with pytest.raises(ValueError, match="'self', 'total', 'mean', 'calls', 'bytes', got 'time'"):
        p.table(sort_by="time")


@pytest.mark.parametrize("limit", [0, -1, 1.5])
def test_a_wrong_row_limit_is_an_error(limit):
    with pytest.raises(ValueError, match="row_limit must be an integer of at least 1, or None"):
        recorded(lambda: mt.ones(1) + 1).table(row_limit=limit)


def test_the_total_of_a_recursive_op_counts_its_outermost_call():
    op = mt.CustomOpBuilder("recursive", 1).forward(lambda x: op(x[1:]) if x.shape[0] > 1 else x * 2).register()
    try:
        p = recorded(lambda: op(mt.ones(5)))
    finally:
        mt.unregister_custom_op_py("recursive")
    outermost, *inner = [e for e in p.events() if e.name == "recursive"]
    [row] = [row for row in p.averages() if row.name == "recursive"]
    assert (row.calls, row.total, row.mean) == (5, outermost.total, outermost.total / 5) and len(inner) == 4


def test_an_empty_profile_has_an_empty_table():
    p = recorded(lambda: None)
    assert p.events() == [] and p.table().splitlines()[-1] == "0 calls, 0.000 µs in all"


def test_the_trace_is_in_the_trace_event_format(tmp_path):
    x = mt.ones((2, 3))
    p = recorded(lambda: mt.ops.exp(x))
    p.export_chrome_trace(tmp_path / "trace.json")
    call, thread = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    [event] = p.events()
    assert (call["name"], call["ph"]) == ("exp", "X")
    assert (call["ts"], call["dur"]) == (event.start / 1000, event.total / 1000)
    assert call["args"] == {"inputs": "float32[2, 3]", "bytes": 24}
    assert (thread["ph"], thread["tid"]) == ("M", call["tid"])
    assert thread["args"] == {"name": f"thread {event.thread}"}


def test_each_thread_is_a_track_that_viewers_do_not_reserve(tmp_path):
    x = mt.ones(3)
    with mt.profiler.profile() as p:
        for op in (mt.ops.exp, mt.ops.log):
            thread = threading.Thread(target=op, args=(x,))
            thread.start()
            thread.join()
    # The numbers of threads depend on the calls before this profile, and one of them is 0.
    events = [e._replace(thread=number) for number, e in enumerate(p.events())]
    p.events = lambda: events
    p.export_chrome_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    calls, threads = trace[:2], trace[2:]
    assert [e["name"] for e in calls] == ["exp", "log"]
    assert [(e["tid"], e["args"]["name"]) for e in threads] == [(e["tid"], f"thread {i}") for i, e in enumerate(calls)]
    assert 0 not in {e["tid"] for e in trace} and calls[0]["tid"] != calls[1]["tid"]


def test_a_trace_declares_that_its_times_are_precise_to_the_nanosecond(tmp_path):
    recorded(lambda: mt.ones(3) + 1).export_chrome_trace(tmp_path / "trace.json")
    container = json.loads((tmp_path / "trace.json").read_text())
    # Without the unit, chrome://tracing nests calls that are less than a microsecond apart. Without the metadata, it
    # warns that the trace may be unusable.
    assert container["displayTimeUnit"] == "ns" and container["metadata"] == {"highres-ticks": True}


def test_misuse_is_an_error():
    p = mt.profiler.profile()
    with pytest.raises(RuntimeError, match="has not recorded yet; use it in a with statement"):
        p.events()
    with p:
        pass
    with pytest.raises(RuntimeError, match="has recorded already; create another one"), p:
        pass


def test_an_op_written_in_python_is_recorded_with_the_ops_that_it_calls():
    op = mt.CustomOpBuilder("profiled", 1).forward(lambda x: mt.ops.exp(x) * 2).register()
    try:
        p = recorded(lambda: op(mt.ones(3)))
    finally:
        mt.unregister_custom_op_py("profiled")
    assert [e.name for e in p.events()] == ["profiled", "exp", "multiply"]
