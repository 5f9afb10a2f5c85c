"""Tests of the arguments that the kernels of a library receive."""

import pytest
from c_plugin import library, loaded

import minitensor as mt

pytestmark = pytest.mark.usefixtures("no_plugins_stay")

X = [1.0, 2.0]


def test_a_kernel_receives_the_default():
    code = """
    static const MtAttr attrs[] = {{.name = MT_STR("k"), .kind = MT_KIND_FLOAT, .has_default = 1,
                                    .value = {.kind = MT_KIND_INT, .as.i = 3}}};
    static int32_t times(const void *context, const MtValue *attrs, int64_t n, const void *const *in, void *const *out,
                         MtError *error) {
      (void)context, (void)error;
      for (int64_t i = 0; i < n; i++) ((float *)out[0])[i] = ((const float *)in[0])[i] * (float)attrs[0].as.f;
      return MT_OK;
    }
    static const MtKernel times_kernels[] = {{.dtypes = {MT_FLOAT32}, .run.elements = times},
                                             {.dtypes = {MT_FLOAT64}, .run.elements = kernel_f64}};
    """
    op = ".attrs = attrs, .n_attrs = 1, .kernels = times_kernels, .backward_kind = MT_NOT_NEEDED, .backward = {0},"
    with loaded(library(code=code, op=op)):
        assert mt.ops.probe(mt.Tensor(X)).tolist() == [3.0, 6.0]
        assert mt.ops.probe(mt.Tensor(X), k=0.5).tolist() == [0.5, 1.0]


def test_a_kernel_receives_a_measured_candidate():
    code = """
    static const int64_t candidates[] = {3, 5};
    static const MtAttr attrs[] = {{.name = MT_STR("tile"), .kind = MT_KIND_TUNED,
                                    .value = {.kind = MT_KIND_INTS, .as.list = {candidates, 2}}}};
    static int32_t tiled(const void *context, const MtValue *attrs, int64_t n, const void *const *in, void *const *out,
                         MtError *error) {
      (void)context, (void)error;
      int64_t tile = attrs[0].kind == MT_KIND_INT ? attrs[0].as.i : 0;
      for (int64_t i = 0; i < n; i++) ((float *)out[0])[i] = ((const float *)in[0])[i] * (float)tile;
      return MT_OK;
    }
    static const MtKernel tiled_kernels[] = {{.dtypes = {MT_FLOAT32}, .run.elements = tiled},
                                             {.dtypes = {MT_FLOAT64}, .run.elements = kernel_f64}};
    """
    op = ".attrs = attrs, .n_attrs = 1, .kernels = tiled_kernels, .backward_kind = MT_NOT_NEEDED, .backward = {0},"
    with loaded(library(code=code, op=op)):
        assert mt.ops.probe(mt.Tensor(X)).tolist() in ([3.0, 6.0], [5.0, 10.0])
        assert mt.ops.probe(mt.Tensor(X), tile=5).tolist() == [5.0, 10.0]
        with pytest.raises(ValueError, match="attribute 'tile' takes one of 3, 5 or None, got 4"):
            mt.ops.probe(mt.Tensor(X), tile=4)


@pytest.mark.parametrize("n", [5, 100_000])
def test_half_outputs_are_computed_in_float32(n):
    code = """
    static const MtOutput half[] = {{.name = MT_STR("out"), .dtype_rule = MT_FIXED, .dtype = MT_FLOAT16}};
    static int32_t narrow(const void *context, const MtValue *attrs, int64_t n, const void *const *in, void *const *out,
                          MtError *error) {
      (void)context, (void)attrs, (void)error;
      for (int64_t i = 0; i < n; i++) ((float *)out[0])[i] = 2 * ((const float *)in[0])[i];
      return MT_OK;
    }
    static const MtKernel narrow_kernels[] = {{.dtypes = {MT_FLOAT32}, .run.elements = narrow},
                                              {.dtypes = {MT_FLOAT64}, .run.elements = narrow}};
    """
    op = ".outputs = half, .kernels = narrow_kernels, .backward_kind = MT_NOT_NEEDED, .backward = {0},"
    with loaded(library(code=code, op=op)):
        y = mt.ops.probe(mt.full(n, 1.5))
        assert y.dtype == mt.float16 and y.numpy().tolist() == [3.0] * n


def test_an_axis_is_counted_if_the_first_input_is_absent():
    code = """
    static const MtInput rows[] = {{.name = MT_STR("a"), .arity = MT_OPTIONAL, .core = MT_SLICE},
                                   {.name = MT_STR("b"), .arity = MT_OPTIONAL, .core = MT_SLICE}};
    static const MtAttr axis[] = {{.name = MT_STR("axis"), .kind = MT_KIND_INT, .has_default = 1,
                                   .value = {.kind = MT_KIND_INT, .as.i = -1}}};
    static int32_t add(const void *context, const MtValue *attrs, const MtCell *args, int64_t n, MtError *error) {
      (void)context, (void)attrs, (void)error;
      for (int64_t i = 0; i < n; i++) {
        float sum = 0;
        for (int k = 0; k < 2; k++)
          for (size_t j = 0; args[k].data && j < args[k].shape[0]; j++)
            sum += ((const float *)((const char *)args[k].data + i * args[k].step))[j];
        *(float *)((char *)args[2].data + i * args[2].step) = sum;
      }
      return MT_OK;
    }
    static const MtDType single[] = {MT_FLOAT32};
    static const MtGeneric only[] = {{MT_STR("T"), single, 1}};
    static const MtKernel adding[] = {{.dtypes = {MT_FLOAT32}, .run.cells = add}};
    """
    op = (
        ".body = MT_CELLS, .inputs = rows, .n_inputs = 2, .attrs = axis, .n_attrs = 1, .axis = 1, .generics = only, "
        '.kernels = adding, .n_kernels = 1, .shape = MT_STR("(a: [.., n], b: [.., n]) -> [..]"), '
        ".backward_kind = MT_NOT_NEEDED, .backward = {0},"
    )
    with loaded(library(code=code, op=op)):
        x = mt.arange(6, dtype="float32").reshape(2, 3)
        for axis in (0, 1, -1):
            expected = x.numpy().sum(axis).tolist()
            assert mt.ops.probe(x, None, axis=axis).tolist() == expected
            assert mt.ops.probe(None, x, axis=axis).tolist() == expected
