"""Tests of faulty functions in a library."""

import subprocess
import sys

import pytest
from c_plugin import ARRAYS, TENSORS, bodies, library, loaded, state

import minitensor as mt

pytestmark = pytest.mark.usefixtures("no_plugins_stay")

X = [1.0, 2.0]


# Kernels.

FAILURES = {
    'return mt_fail(error, MT_ERROR_VALUE, "x is %d", 7);': (ValueError, "op 'probe': x is 7"),
    "return MT_ERROR_INDEX;": (IndexError, "op 'probe': the call failed without an error message"),
    "return 1234;": (
        RuntimeError,
        "op 'probe': .*the plugin returned the unknown error code 1234, which is a bug in the plugin",
    ),
    'return mt_fail(error, MT_PANIC, "boom");': (
        RuntimeError,
        "op 'probe': the plugin panicked: boom; this is a bug",
    ),
}


@pytest.mark.parametrize(("body", "expected"), FAILURES.items(), ids=FAILURES)
def test_a_kernel_that_fails_raises_and_the_next_call_works(body, expected):
    code = """
    static int32_t failing(const void *context, const MtValue *attrs, int64_t n, const void *const *in,
                           void *const *out, MtError *error) {
      if (*(const float *)in[0] < 0) { BODY }
      return kernel_f32(context, attrs, n, in, out, error);
    }
    static const MtKernel failing_kernels[] = {{.dtypes = {MT_FLOAT32}, .run.elements = failing},
                                               {.dtypes = {MT_FLOAT64}, .run.elements = kernel_f64}};
    """
    with loaded(library(code=code.replace("BODY", body), op=".kernels = failing_kernels,")):
        before = state()
        for _ in range(2):
            with pytest.raises(expected[0], match=expected[1]):
                mt.ops.probe(mt.Tensor([-1.0]))
            assert mt.ops.probe(mt.Tensor(X)).tolist() == [2.0, 4.0]
        assert state() == before


def test_a_formula_that_calls_a_missing_op_fails_at_its_first_call():
    with loaded(library(op='.backward = MT_STR("|d| { x: nowhere::sinn(d) }"),')):
        x = mt.Tensor(X, requires_grad=True)
        y = mt.ops.probe(x)
        assert y.tolist() == [2.0, 4.0]
        with pytest.raises(Exception, match=r"op 'probe'.*nowhere::sinn") as raised:
            y.sum().backward()
        assert type(raised.value) in (ValueError, RuntimeError)


# Inference.

INFERENCES = {
    "outputs[0].shape[0] = -3;": (
        RuntimeError,
        r"its inference .*: the size of a dimension must not be negative, got -3 \(output 'out'\)",
    ),
    "outputs[0].ndim = 1000;": (
        RuntimeError,
        r"its inference returned an invalid result: invalid number of dimensions 1000 \(output 'out'\)",
    ),
    "outputs[0].ndim = -1;": (
        RuntimeError,
        r"its inference returned an invalid result: invalid number of dimensions -1 \(output 'out'\)",
    ),
    "outputs[0].dtype = 9;": (
        RuntimeError,
        r"its inference returned an invalid result: unknown dtype 0x00000009 \(output 'out'\)",
    ),
    "outputs[0].shape[0] = INT64_MAX;": ((MemoryError, ValueError), "."),
    'return mt_fail(error, MT_ERROR_TYPE, "never");': (TypeError, "never"),
    "return -5;": (RuntimeError, "the unknown error code -5"),
}


@pytest.mark.parametrize(("infer", "expected"), INFERENCES.items(), ids=INFERENCES)
def test_a_wrong_inference_raises(infer, expected):
    with (
        loaded(library(code=bodies(infer=infer), op=ARRAYS)),
        pytest.raises(expected[0], match="op 'probe': .*" + expected[1]),
    ):
        mt.ops.probe(mt.Tensor(X))


def test_the_result_has_the_shape_that_infer_returns():
    with loaded(library(code=bodies(infer="outputs[0].ndim = 2; outputs[0].shape[1] = 3;"), op=ARRAYS)):
        assert mt.ops.probe(mt.Tensor(X)).shape == (2, 3)


def test_a_plugin_takes_tensors_of_every_rank():
    with loaded(library(code=bodies(), op=ARRAYS)):
        assert mt.ops.probe(mt.zeros(*[1] * 64)).ndim == 64


# Bodies over tensors.

GIVEN = {
    "": (RuntimeError, "its body returned 0 outputs, expected 1"),
    "call->give(call->sink, 0);": (RuntimeError, "its body returned a null pointer as an output"),
    "for (int i = 0; i < 2; i++) call->give(call->sink, host->tensor_retain(call->inputs[0]));": (
        RuntimeError,
        "its body returned 2 outputs, expected 1",
    ),
}


@pytest.mark.parametrize(("call", "expected"), GIVEN.items(), ids=GIVEN)
def test_a_body_that_returns_the_wrong_tensors_raises(call, expected):
    with (
        loaded(library(code=bodies(call), op=TENSORS)),
        pytest.raises(expected[0], match="op 'probe': " + expected[1]),
    ):
        mt.ops.probe(mt.Tensor(X))


CALLS = """
  MtOpRef *other = host->op_find(mt_str("NAME"), error);
  if (!other) return MT_ERROR_VALUE;
  MtArg arg = {.tensor = call->inputs[0]};
  MtTensor *out = 0;
  size_t n = ROOM;
  int32_t code = host->op_call(other, &arg, 1, 0, 0, 0, &out, &n, error);
  host->op_release(other);
  if (code) return code;
  call->give(call->sink, out);
"""


def calling(name, room=1):
    return library(code=bodies(CALLS.replace("NAME", name).replace("ROOM", str(room))), op=TENSORS)


def test_an_op_that_calls_another_has_its_gradient():
    with loaded(calling("exp")):
        assert mt.testing.opcheck("probe").findings == []


def test_a_call_without_room_for_outputs_raises():
    code = CALLS.replace("NAME", "exp").replace("ROOM", "1").replace("&out, &n, error", "0, &n, error")
    with (
        loaded(library(code=bodies(code), op=TENSORS)),
        pytest.raises(ValueError, match="op 'probe': 'outputs' or 'n_outputs' is a null pointer"),
    ):
        mt.ops.probe(mt.Tensor(X))


def test_a_call_of_a_missing_op_raises():
    with loaded(calling("expp")), pytest.raises(ValueError, match="op 'probe': .*'expp'.*did you mean 'exp'"):
        mt.ops.probe(mt.Tensor(X))


def test_a_call_with_too_small_an_output_buffer_raises():
    with (
        loaded(calling("exp", room=0)),
        pytest.raises(ValueError, match="op 'probe': op 'exp' returns 1 tensor, but 'outputs' has room for 0"),
    ):
        mt.ops.probe(mt.Tensor(X))


class Peculiar(Exception):
    """An exception class defined in Python."""


@pytest.mark.usefixtures("registered")
def test_a_python_exception_propagates_through_a_plugin_unchanged():
    cause = Peculiar("very", 7)

    def forward(x):
        raise cause

    mt.CustomOpBuilder("peculiar", 1).forward(forward).register()
    with loaded(calling("peculiar")):
        with pytest.raises(Peculiar) as raised:
            mt.ops.probe(mt.Tensor(X))
        assert raised.value is cause


IN_A_LOOP = """
static const MtCall *under_way;
static int32_t part(void *out, int64_t begin, int64_t end, MtError *error) {
  for (int64_t i = begin; i < end; i++) {
    MtOpRef *op = host->op_find(mt_str("exp"), error);
    MtArg arg = {.tensor = under_way->inputs[0]};
    size_t n = 1;
    int32_t code = host->op_call(op, &arg, 1, 0, 0, 0, (MtTensor **)out + i, &n, error);
    host->op_release(op);
    if (code) return code;
  }
  return MT_OK;
}
"""


def test_parallel_loops_inherit_the_recording_mode():
    call = """
      MtTensor *outs[64];
      under_way = call;
      int32_t code = host->parallel_for(64, 1, part, outs, error);
      if (code) return code;
      for (int i = 0; i < 64; i++) call->give(call->sink, outs[i]);
    """
    outs = 'static const MtOutput outs[] = {{.name = MT_STR("outs"), .dtype_rule = MT_ANY}};'
    with loaded(library(code=IN_A_LOOP + outs + bodies(call), op=TENSORS + ".outputs = outs,")):
        x = mt.Tensor(X, requires_grad=True)
        assert [y.requires_grad for y in mt.ops.probe(x)] == [True] * 64
        with mt.no_grad():
            assert [y.requires_grad for y in mt.ops.probe(x)] == [False] * 64


def test_a_list_of_outputs_may_be_empty():
    outs = 'static const MtOutput outs[] = {{.name = MT_STR("outs"), .dtype_rule = MT_ANY}};'
    with loaded(library(code=outs + bodies(), op=TENSORS + ".outputs = outs,")):
        assert mt.ops.probe(mt.Tensor(X)) == ()


def test_an_op_that_changes_its_input_is_not_run_once_more_for_a_gradient():
    call = """
      MtOpRef *op = host->op_find(mt_str("add_"), error);
      MtTensor *inputs[] = {call->inputs[0], call->inputs[0]}, *gradients[2] = {0, 0};
      int32_t code = host->op_vjp(op, inputs, 2, call->inputs[0], gradients, error);
      host->op_release(op);
      if (code) return code;
    """
    with loaded(library(code=bodies(call), op=TENSORS)):
        x = mt.Tensor(X)
        with pytest.raises(
            ValueError,
            match="op 'probe': op 'add_' changes 'x' in place, so it cannot run again to compute its gradient",
        ):
            mt.ops.probe(x)
        assert x.tolist() == X


def test_a_library_may_write_to_the_log_when_python_has_ended():
    code = """
    __attribute__((destructor)) static void bye(void) { if (host) host->log(MT_WARNING, mt_str("bye")); }
    """
    program = "import sys\nimport minitensor as mt\nmt.plugins.load_plugin(sys.argv[1])\nprint('loaded')\n"
    done = subprocess.run([sys.executable, "-c", program, library(code=code)], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "loaded\n", "")


# Graphs.


def test_a_gradient_that_reads_elements_is_one_call_of_a_graph():
    """The gradient of `probe` with the cotangent `d` is `d·x`, so that it needs a saved tensor."""
    code = """
    static int32_t gradient(const MtGradient *call, MtError *error) {
      MtArray x = host->tensor_array(call->inputs[0]), d = host->tensor_array(call->cotangents[0]);
      MtTensor *result = host->tensor_zeros(MT_FLOAT32, 1, x.shape, 1, 0, error);
      if (!result) return MT_ERROR_RUNTIME;
      float *out = host->tensor_array(result).data;
      for (int64_t i = 0; i < x.shape[0]; i++)
        out[i] = ((float *)x.data)[i * x.strides[0]] * ((float *)d.data)[i * d.strides[0]];
      call->gradients[0] = result;
      return MT_OK;
    }
    static const uint32_t saved[] = {0};
    """
    op = ".backward_kind = MT_GRADIENT_FN, .gradient = gradient, .saved_inputs = saved, .n_saved_inputs = 1,"
    with loaded(library(code=code, op=op)):

        def gradient(x, scale):
            return mt.grad((mt.ops.probe(x) * scale).sum(), x)[0]

        graph = mt.jit(gradient)
        for values, scale in (([1.0, 2.0], [3.0, 4.0]), ([5.0, 6.0], [7.0, 8.0])):
            x = mt.Tensor(values, requires_grad=True)
            assert graph(x, mt.Tensor(scale)).tolist() == [v * s for v, s in zip(values, scale, strict=True)]
        (recorded,) = graph.graphs
        assert "probe.gradient" in recorded.ops
