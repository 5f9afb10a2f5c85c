"""Tests of the ops of a shared library while it is loaded, and after it is unloaded."""

import ctypes
import gc
import logging
import resource
import signal
import threading

import pytest
from c_plugin import library, loaded, state

import minitensor as mt
from minitensor import nn, optim, plugins

pytestmark = pytest.mark.usefixtures("no_plugins_stay")

GONE = "op 'probe' came with plugin 'faulty', which was unloaded; load the plugin again to use it"


def with_kernel(body, op="", plugin="", before=""):
    """Builds the plugin with this code at the start of the float32 kernel."""
    code = """
    @before@
    static int32_t first(const void *context, const MtValue *attrs, int64_t n, const void *const *in, void *const *out,
                         MtError *error) {
      @body@
      return kernel_f32(context, attrs, n, in, out, error);
    }
    static const MtKernel first_kernels[] = {{.dtypes = {MT_FLOAT32}, .run.elements = first},
                                             {.dtypes = {MT_FLOAT64}, .run.elements = kernel_f64}};
    """
    code = code.replace("@before@", before).replace("@body@", body)
    return library(code=code, op=".kernels = first_kernels," + op, plugin=plugin)


# Unloading.


def test_tensors_computed_by_an_op_outlive_its_plugin():
    with loaded(library()):
        x = mt.Tensor([1.0, 2.0], requires_grad=True)
        y = mt.ops.probe(mt.ops.probe(x))
    assert y.tolist() == [4.0, 8.0]
    (y * y).sum().backward()
    assert x.grad.tolist() == [32.0, 64.0]


@pytest.mark.parametrize("calls_before", [0, 1])
def test_a_formula_that_calls_ops_of_its_plugin_outlives_it(calls_before):
    # The gradient is the op itself, because both double their input.
    with loaded(library(op='.backward = MT_STR("|d| { x: probe(d) }"),')):
        for _ in range(calls_before):
            x = mt.Tensor([3.0], requires_grad=True)
            mt.ops.probe(x).sum().backward()
            assert x.grad.tolist() == [2.0]
        x = mt.Tensor([3.0], requires_grad=True)
        y = mt.ops.probe(x)
    y.sum().backward()
    assert x.grad.tolist() == [2.0]
    with pytest.raises(ValueError, match=GONE):
        mt.execute_custom_op("probe", [x])


def test_a_second_derivative_outlives_the_plugin():
    with loaded(library(op='.backward = MT_STR("|d| { x: probe(d) * x }"),')):
        x = mt.Tensor([3.0], requires_grad=True)
        y = mt.ops.probe(x)
        (first,) = mt.grad(y, x, create_graph=True)
    (second,) = mt.grad(first, x)
    assert (first.item(), second.item()) == (6.0, 2.0)


def test_later_calls_raise_and_name_the_plugin():
    x = mt.Tensor([1.0])
    with loaded(library()):
        kept = mt.ops.probe
    with pytest.raises(ValueError, match=GONE):
        mt.execute_custom_op("probe", [x])
    with pytest.raises(AttributeError, match=GONE):
        mt.ops.probe  # noqa: B018
    with pytest.raises(RuntimeError, match=GONE):
        kept(x)


def test_unloading_does_not_wait_and_running_calls_complete():
    # The kernel waits until `fini` has been called, so the plugin is unloaded first.
    before = """
    #include <time.h>
    MT_EXPORT volatile int begun, gone;
    static int32_t fini(MtError *error) { (void)error; gone = 1; return MT_OK; }
    """
    body = """
    begun = 1;
    for (clock_t end = clock() + 20 * CLOCKS_PER_SEC; !gone && clock() < end;) continue;
    if (!gone) return mt_fail(error, MT_ERROR_RUNTIME, "nobody unloaded the plugin meanwhile");
    """
    path = with_kernel(body, before=before, plugin=".fini = fini,")
    # Large enough that other Python threads run during the call.
    x, results = mt.ones(1 << 16, requires_grad=True), []
    with loaded(path):
        call = threading.Thread(target=lambda: results.append(mt.ops.probe(x)))
        call.start()
        begun = ctypes.c_int.in_dll(ctypes.CDLL(str(path)), "begun")
        while not begun.value:
            assert call.is_alive()
    call.join()
    assert results[0].sum().item() == 2 << 16
    results[0].sum().backward()
    assert x.grad.sum().item() == 2 << 16
    with pytest.raises(ValueError, match=GONE):
        mt.execute_custom_op("probe", [x])


def test_calls_during_loading_and_unloading_succeed_or_name_the_plugin():
    done, surprises = threading.Event(), []

    def call():
        x = mt.Tensor([1.0, 2.0])
        while not done.is_set():
            try:
                assert mt.ops.probe(x).tolist() == [2.0, 4.0]
            except (AttributeError, RuntimeError) as error:
                if "probe" not in str(error):
                    surprises.append(error)
            except Exception as error:
                surprises.append(error)

    threads = [threading.Thread(target=call) for _ in range(3)]
    [t.start() for t in threads]
    for _ in range(30):
        with loaded(library()):
            pass
    done.set()
    [t.join() for t in threads]
    assert not surprises


def test_a_thousand_loads_and_unloads_leak_no_memory():
    x, path, before = mt.Tensor([1.0, 2.0], requires_grad=True), library(), state()

    def come_and_go(times):
        for _ in range(times):
            plugins.load_plugin(path)
            mt.ops.probe(x).sum().backward()
            plugins.unload_plugin("faulty")
        gc.collect()

    def resident():
        with open("/proc/self/statm") as pages:
            return int(pages.read().split()[1]) * resource.getpagesize()

    come_and_go(100)
    start = resident()
    come_and_go(1000)
    assert resident() - start < 2 << 20
    assert state() == before


def test_a_fini_that_fails_is_reported_and_the_plugin_is_removed():
    code = 'static int32_t fini(MtError *error) { return mt_fail(error, MT_ERROR_VALUE, "not now"); }'
    before = state()
    plugins.load_plugin(library(code=code, plugin=".fini = fini,"))
    with pytest.warns(
        RuntimeWarning, match="the cleanup of plugin 'faulty' failed; the plugin is unloaded nevertheless: .*not now"
    ):
        plugins.unload_plugin("faulty")
    assert state() == before


def test_fini_is_called_for_each_init_that_succeeded_and_no_other(caplog):
    code = 'static int32_t fini(MtError *error) { (void)error; host->log(MT_INFO, mt_str("fini")); return MT_OK; }'
    finis = 0
    with caplog.at_level(logging.INFO, "minitensor.plugins"):
        for _ in range(3):
            with loaded(library(code=code, plugin=".fini = fini,")):
                pass
            finis += 1
            assert caplog.messages.count("fini") == finis
        failing = library(code=code, plugin=".fini = fini,", init='return mt_fail(error, MT_ERROR_VALUE, "no");')
        with pytest.raises(ValueError, match="no"):
            plugins.load_plugin(failing)
        assert caplog.messages.count("fini") == finis
        # `init` succeeds, but registering its op fails.
        taken = library(code=code, plugin=".fini = fini,", op='.name = MT_STR("square"),')
        with pytest.raises(ValueError, match="'square' is already registered"):
            plugins.load_plugin(taken)
        assert caplog.messages.count("fini") == finis + 1


# Use.


def test_an_op_of_a_plugin_is_trained_through():
    class Probe(plugins.CustomLayer):
        def forward(self, x):
            return mt.execute_custom_op("probe", [x])

    with loaded(library()):
        mt.manual_seed(0)
        model = nn.Sequential(nn.Linear(2, 8), Probe("probe"), nn.Linear(8, 1))
        x, y = mt.randn(64, 2), mt.randn(64, 1)
        optimizer = optim.Adam(model.parameters(), lr=0.01)
        losses = []
        for _ in range(40):
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < 0.9 * losses[0]
    with pytest.raises(ValueError, match=GONE):
        model(x)


def test_a_plugin_writes_to_the_logger_of_plugins(caplog):
    body = 'host->log(MT_WARNING, mt_str("100 % of it")); host->log(MT_DEBUG, mt_str("not \\xff UTF-8"));'
    with caplog.at_level(logging.DEBUG, "minitensor.plugins"), loaded(with_kernel(body)):
        caplog.clear()
        mt.ops.probe(mt.Tensor([1.0]))
        assert [(r.name, r.levelno, r.getMessage()) for r in caplog.records] == [
            ("minitensor.plugins", logging.WARNING, "100 % of it"),
            ("minitensor.plugins", logging.DEBUG, "not \ufffd UTF-8"),
        ]


@pytest.fixture
def interruptible():
    """Makes SIGINT raise KeyboardInterrupt. A background job may inherit an ignored signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_a_long_kernel_stops_at_ctrl_c():
    # The kernel sends the signal, so it arrives while the kernel runs.
    body = """
    raise(SIGINT);
    for (;;) {
      int32_t stop = host->check_interrupt(error);
      if (stop) return stop;
    }
    """
    with loaded(with_kernel(body, before="#include <signal.h>")):
        with pytest.raises(KeyboardInterrupt):
            mt.ops.probe(mt.Tensor([1.0]))
        assert mt.ops.probe(mt.Tensor([1.0], dtype="float64")).item() == 2.0


def test_a_loop_of_the_host_stops_at_the_first_error_of_its_body():
    body = "int32_t failed = host->parallel_for(1 << 20, 1, part, 0, error); if (failed) return failed;"
    before = """
    static int32_t part(void *context, int64_t begin, int64_t end, MtError *error) {
      (void)context;
      return begin <= 5 && 5 < end ? mt_fail(error, MT_ERROR_INDEX, "%d is in the way", 5) : MT_OK;
    }
    """
    with loaded(with_kernel(body, before=before)), pytest.raises(IndexError, match="op 'probe': 5 is in the way"):
        mt.ops.probe(mt.Tensor([1.0]))


LOGS = """
static int32_t part(void *context, int64_t begin, int64_t end, MtError *error) {
  (void)context, (void)begin, (void)end, (void)error;
  host->log(MT_DEBUG, mt_str("part"));
  return MT_OK;
}
#define LOG_ON_ALL_THREADS host->parallel_for(1 << 20, 1, part, 0, error)
"""


@pytest.mark.parametrize("where", ["kernel", "body", "gradient", "init", "fini"])
def test_threads_of_a_plugin_may_write_to_the_log_wherever_it_is_called(where, caplog):
    body = (
        LOGS
        + """
    static int32_t call(const MtCall *call, MtError *error) {
      call->give(call->sink, host->tensor_retain(call->inputs[0]));
      return LOG_ON_ALL_THREADS;
    }
    static int32_t gradient(const MtGradient *call, MtError *error) {
      call->gradients[0] = host->tensor_retain(call->cotangents[0]);
      return LOG_ON_ALL_THREADS;
    }
    static int32_t fini(MtError *error) { return LOG_ON_ALL_THREADS; }
    static const void *const used[] __attribute__((unused)) = {(void *)call, (void *)gradient, (void *)fini};
    """
    )
    path = {
        "kernel": lambda: with_kernel("LOG_ON_ALL_THREADS;", before=LOGS),
        "body": lambda: library(code=body, op=".body = MT_TENSORS, .call = call, .backward_kind = MT_COMPOSITE,"),
        "gradient": lambda: library(code=body, op=".backward_kind = MT_GRADIENT_FN, .gradient = gradient,"),
        "init": lambda: library(code=body, init="LOG_ON_ALL_THREADS;"),
        "fini": lambda: library(code=body, plugin=".fini = fini,"),
    }[where]()
    with caplog.at_level(logging.DEBUG, "minitensor.plugins"):
        with loaded(path):
            x = mt.Tensor([1.0], requires_grad=True)
            mt.ops.probe(x).sum().backward()
        assert caplog.messages.count("part") > 1


def test_memory_of_the_host_is_aligned():
    body = """
    void *memory = host->allocate(1000);
    if (!memory || (uintptr_t)memory % 64) return mt_fail(error, MT_ERROR_MEMORY, "not aligned");
    memset(memory, 1, 1000);
    host->release(memory, 1000);
    host->release(0, 1000);
    if (host->allocate(SIZE_MAX)) return mt_fail(error, MT_ERROR_MEMORY, "too much");
    """
    with loaded(with_kernel(body)):
        assert mt.ops.probe(mt.Tensor([1.0])).item() == 2.0
