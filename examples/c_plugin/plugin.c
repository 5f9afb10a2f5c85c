/* Two ops in C: one over elements, and one over rows. */
#include <math.h>

#include <minitensor_plugin.h>

/* Both ops have one dtype variable, and kernels for float32 and float64. A macro defines each kernel twice: `T` is the type, and
 * `F(exp)` its math function, `expf` or `exp`. */
#define FLOAT_FUNCTION(name) name##f
#define DOUBLE_FUNCTION(name) name
#define FOR_BOTH(KERNEL) KERNEL(f32, float, FLOAT_FUNCTION) KERNEL(f64, double, DOUBLE_FUNCTION)

static const MtDType floats[] = {MT_FLOAT32, MT_FLOAT64};
static const MtGeneric T[] = {{MT_STR("T"), floats, MT_COUNT(floats)}};

/* ---- log_cosh: over elements ---- */

#define LOG_COSH(suffix, T, F)                                                                                          \
  static int32_t log_cosh_##suffix(const void *context, const MtValue *attrs, int64_t n, const void *const *inputs,     \
                                   void *const *outputs, MtError *error) {                                              \
    (void)context, (void)attrs, (void)error;                                                                            \
    const T *x = inputs[0];                                                                                             \
    T *out = outputs[0];                                                                                                \
    for (int64_t i = 0; i < n; i++) {                                                                                   \
      T a = F(fabs)(x[i]);                                                                                              \
      out[i] = a + F(log1p)(F(exp)(-2 * a)) - (T)0.69314718055994531;                                                   \
    }                                                                                                                   \
    return MT_OK;                                                                                                       \
  }
FOR_BOTH(LOG_COSH)

static const MtInput log_cosh_inputs[] = {{.name = MT_STR("x")}};
static const MtOutput log_cosh_outputs[] = {{.name = MT_STR("out")}};
static const MtKernel log_cosh_kernels[] = {
    {.dtypes = {MT_FLOAT32}, .run.elements = log_cosh_f32},
    {.dtypes = {MT_FLOAT64}, .run.elements = log_cosh_f64},
};
static const MtOp log_cosh = {
    MT_OP("c_example::log_cosh", "`log(cosh(x))`: about `x²/2` near 0, and `|x| − log 2` for large `|x|`."),
    .inputs = log_cosh_inputs, .n_inputs = MT_COUNT(log_cosh_inputs),
    .outputs = log_cosh_outputs, .n_outputs = MT_COUNT(log_cosh_outputs),
    .generics = T, .n_generics = MT_COUNT(T),
    .body = MT_ELEMENTS, .kernels = log_cosh_kernels, .n_kernels = MT_COUNT(log_cosh_kernels),
    .backward_kind = MT_FORMULA, .backward = MT_STR("|d| { x: d * tanh(x) }"),
};

/* ---- moving_average: over rows ---- */

/* The host calls it on several threads, with several rows each. Consecutive rows are `step` bytes apart. */
#define MOVING_AVERAGE(suffix, T, F)                                                                                    \
  static int32_t moving_average_##suffix(const void *context, const MtValue *attrs, const MtCell *args, int64_t cells,  \
                                         MtError *error) {                                                              \
    (void)context, (void)error;                                                                                         \
    const T decay = (T)attrs[0].as.f;                                                                                   \
    for (int64_t row = 0; row < cells; row++) {                                                                         \
      const T *x = (const T *)((const char *)args[0].data + row * args[0].step);                                        \
      T *out = (T *)((char *)args[1].data + row * args[1].step);                                                        \
      T average = 0;                                                                                                    \
      for (size_t i = 0; i < args[0].shape[0]; i++) {                                                                   \
        average = decay * average + (1 - decay) * x[i];                                                                 \
        out[i] = average;                                                                                               \
      }                                                                                                                 \
    }                                                                                                                   \
    return MT_OK;                                                                                                       \
  }
FOR_BOTH(MOVING_AVERAGE)

static const MtInput moving_average_inputs[] = {{.name = MT_STR("x"), .core = MT_SLICE}};
static const MtAttr moving_average_attrs[] = {
    {.name = MT_STR("decay"), .kind = MT_KIND_FLOAT, .has_default = 1, .value = {.kind = MT_KIND_FLOAT, .as.f = 0.9}},
};
static const MtOutput moving_average_outputs[] = {{.name = MT_STR("out"), .core = MT_SLICE}};
static const MtKernel moving_average_kernels[] = {
    {.dtypes = {MT_FLOAT32}, .run.cells = moving_average_f32},
    {.dtypes = {MT_FLOAT64}, .run.cells = moving_average_f64},
};
static const MtOp moving_average = {
    MT_OP("c_example::moving_average", "An exponential moving average: `outᵢ = decay · outᵢ₋₁ + (1 − decay) · xᵢ`."),
    .inputs = moving_average_inputs, .n_inputs = MT_COUNT(moving_average_inputs),
    .attrs = moving_average_attrs, .n_attrs = MT_COUNT(moving_average_attrs),
    .outputs = moving_average_outputs, .n_outputs = MT_COUNT(moving_average_outputs),
    .generics = T, .n_generics = MT_COUNT(T),
    .shape = MT_STR("(x: [.., n]) -> [.., n] where decay >= 0.0, decay <= 1.0"),
    .body = MT_CELLS, .kernels = moving_average_kernels, .n_kernels = MT_COUNT(moving_average_kernels),
    .backward_kind = MT_FORMULA,
    .backward = MT_STR("|d| { x: flip(c_example::moving_average(flip(d, -1), decay), -1) }"),
};

/* ---- the plugin ---- */

static int32_t init(const MtHost *host, MtError *error) {
  int32_t failed = host->register_op(host, &log_cosh, error);
  return failed ? failed : host->register_op(host, &moving_average, error);
}

MT_EXPORT const MtPlugin minitensor_plugin = {
    MT_PLUGIN("c_example", "1.0.0"),
    .description = "Two ops in C",
    .min_minitensor = "0.1.0",
    .init = init,
};
