/* Ops for minitensor. Each op is a table with kernels for float32 and float64, and a gradient. */
#include <math.h>

#include <minitensor_plugin.h>

/* A macro defines each kernel twice: `T` is the type, and `F(exp)` its math function, `expf` or `exp`. */
#define FLOAT_FUNCTION(name) name##f
#define DOUBLE_FUNCTION(name) name
#define FOR_BOTH(KERNEL) KERNEL(f32, float, FLOAT_FUNCTION) KERNEL(f64, double, DOUBLE_FUNCTION)

static const MtDType floats[] = {MT_FLOAT32, MT_FLOAT64};
static const MtGeneric T[] = {{MT_STR("T"), floats, MT_COUNT(floats)}};

/* ---- squareplus: over elements. The host broadcasts, promotes, packs strided inputs, and runs threads. ---- */

#define SQUAREPLUS(suffix, T, F)                                                                                        \
  static int32_t squareplus_##suffix(const void *context, const MtValue *attrs, int64_t n, const void *const *inputs,   \
                                     void *const *outputs, MtError *error) {                                            \
    (void)context, (void)error;                                                                                         \
    const T *x = inputs[0], b = (T)attrs[0].as.f;                                                                       \
    T *out = outputs[0];                                                                                                \
    for (int64_t i = 0; i < n; i++) {                                                                                   \
      out[i] = (T)0.5 * (x[i] + F(sqrt)(x[i] * x[i] + b));                                                              \
    }                                                                                                                   \
    return MT_OK;                                                                                                       \
  }
FOR_BOTH(SQUAREPLUS)

static const MtInput squareplus_inputs[] = {{.name = MT_STR("x")}};
static const MtAttr squareplus_attrs[] = {
    {.name = MT_STR("b"), .kind = MT_KIND_FLOAT, .has_default = 1, .value = {.kind = MT_KIND_FLOAT, .as.f = 4.0}},
};
static const MtOutput squareplus_outputs[] = {{.name = MT_STR("out")}};
static const MtKernel squareplus_kernels[] = {
    {.dtypes = {MT_FLOAT32}, .run.elements = squareplus_f32},
    {.dtypes = {MT_FLOAT64}, .run.elements = squareplus_f64},
};
static const MtOp squareplus = {
    MT_OP("my_ops::squareplus", "A smooth `max(x, 0)`: `(x + √(x² + b)) / 2`."),
    .inputs = squareplus_inputs, .n_inputs = MT_COUNT(squareplus_inputs),
    .attrs = squareplus_attrs, .n_attrs = MT_COUNT(squareplus_attrs),
    .outputs = squareplus_outputs, .n_outputs = MT_COUNT(squareplus_outputs),
    .generics = T, .n_generics = MT_COUNT(T),
    .shape = MT_STR("where b > 0.0"),
    .body = MT_ELEMENTS, .kernels = squareplus_kernels, .n_kernels = MT_COUNT(squareplus_kernels),
    .backward_kind = MT_FORMULA,
    .backward = MT_STR("|d| { x: d * 0.5 * (1 + x / sqrt(x * x + b)) }"),
};

/* ---- The other ops: over rows. A row is contiguous; consecutive rows are `step` bytes apart. ---- */

#define ROW(T, args, argument, row) ((T *)((char *)(args)[argument].data + (row) * (args)[argument].step))

#define TEMPERED_SOFTMAX(suffix, T, F)                                                                                  \
  static int32_t tempered_softmax_##suffix(const void *context, const MtValue *attrs, const MtCell *args,               \
                                           int64_t cells, MtError *error) {                                             \
    (void)context, (void)error;                                                                                         \
    const T temperature = (T)attrs[0].as.f;                                                                             \
    const size_t n = args[0].shape[0];                                                                                  \
    for (int64_t row = 0; row < cells; row++) {                                                                         \
      const T *x = ROW(const T, args, 0, row);                                                                          \
      T *out = ROW(T, args, 1, row), largest = -(T)INFINITY, total = 0;                                                 \
      for (size_t i = 0; i < n; i++) {                                                                                  \
        largest = x[i] <= largest ? largest : x[i];                                                                     \
      }                                                                                                                 \
      for (size_t i = 0; i < n; i++) {                                                                                  \
        out[i] = F(exp)((x[i] - largest) / temperature);                                                                \
        total += out[i];                                                                                                \
      }                                                                                                                 \
      for (size_t i = 0; i < n; i++) {                                                                                  \
        out[i] /= total;                                                                                                \
      }                                                                                                                 \
    }                                                                                                                   \
    return MT_OK;                                                                                                       \
  }
FOR_BOTH(TEMPERED_SOFTMAX)

static const MtInput row_inputs[] = {{.name = MT_STR("x"), .core = MT_SLICE}};
static const MtOutput row_outputs[] = {{.name = MT_STR("out"), .core = MT_SLICE}};
static const MtAttr tempered_softmax_attrs[] = {
    {.name = MT_STR("temperature"), .kind = MT_KIND_FLOAT, .has_default = 1, .value = {.kind = MT_KIND_FLOAT, .as.f = 1.0}},
};
static const MtKernel tempered_softmax_kernels[] = {
    {.dtypes = {MT_FLOAT32}, .run.cells = tempered_softmax_f32},
    {.dtypes = {MT_FLOAT64}, .run.cells = tempered_softmax_f64},
};
static const MtOp tempered_softmax = {
    MT_OP("my_ops::tempered_softmax", "The softmax of each row, with a temperature."),
    .inputs = row_inputs, .n_inputs = MT_COUNT(row_inputs),
    .attrs = tempered_softmax_attrs, .n_attrs = MT_COUNT(tempered_softmax_attrs),
    .outputs = row_outputs, .n_outputs = MT_COUNT(row_outputs),
    .generics = T, .n_generics = MT_COUNT(T),
    .shape = MT_STR("(x: [.., n]) -> [.., n] where temperature > 0.0"),
    .body = MT_CELLS, .kernels = tempered_softmax_kernels, .n_kernels = MT_COUNT(tempered_softmax_kernels),
    .backward_kind = MT_FORMULA,
    .backward = MT_STR("|d| { x: (d - sum(d * out, -1, true)) * out / temperature }"),
};

/* The output has one value per row, so its core is a scalar. */
#define FREE_ENERGY(suffix, T, F)                                                                                       \
  static int32_t free_energy_##suffix(const void *context, const MtValue *attrs, const MtCell *args, int64_t cells,     \
                                      MtError *error) {                                                                 \
    (void)context, (void)error;                                                                                         \
    const T temperature = (T)attrs[0].as.f;                                                                             \
    const size_t n = args[0].shape[0];                                                                                  \
    for (int64_t row = 0; row < cells; row++) {                                                                         \
      const T *x = ROW(const T, args, 0, row);                                                                          \
      T least = (T)INFINITY;                                                                                            \
      double total = 0; /* float32 is too narrow to sum long rows */                                                    \
      for (size_t i = 0; i < n; i++) {                                                                                  \
        least = x[i] >= least ? least : x[i];                                                                           \
      }                                                                                                                 \
      const T shift = isinf(least) ? 0 : least;                                                                         \
      for (size_t i = 0; i < n; i++) {                                                                                  \
        total += F(exp)((shift - x[i]) / temperature);                                                                  \
      }                                                                                                                 \
      *ROW(T, args, 1, row) = shift - temperature * (T)log(total);                                                      \
    }                                                                                                                   \
    return MT_OK;                                                                                                       \
  }
FOR_BOTH(FREE_ENERGY)

static const MtOutput number_outputs[] = {{.name = MT_STR("out")}};
static const MtKernel free_energy_kernels[] = {
    {.dtypes = {MT_FLOAT32}, .run.cells = free_energy_f32},
    {.dtypes = {MT_FLOAT64}, .run.cells = free_energy_f64},
};
static const MtOp free_energy = {
    MT_OP("my_ops::free_energy",
          "`−temperature · log Σ exp(−x / temperature)` of each row, a smooth minimum."),
    .inputs = row_inputs, .n_inputs = MT_COUNT(row_inputs),
    .attrs = tempered_softmax_attrs, .n_attrs = MT_COUNT(tempered_softmax_attrs),
    .outputs = number_outputs, .n_outputs = MT_COUNT(number_outputs),
    .generics = T, .n_generics = MT_COUNT(T),
    .shape = MT_STR("(x: [.., n]) -> [..] where temperature > 0.0"),
    .body = MT_CELLS, .kernels = free_energy_kernels, .n_kernels = MT_COUNT(free_energy_kernels),
    .backward_kind = MT_FORMULA,
    .backward = MT_STR("|d| { x: unsqueeze(d, -1) * softmax(x * (-1.0 / temperature), -1) }"),
};

/* The input `strength` has one value per row, so its core is a scalar. */
#define DAMPED(suffix, T, F)                                                                                            \
  static int32_t damped_##suffix(const void *context, const MtValue *attrs, const MtCell *args, int64_t cells,          \
                                 MtError *error) {                                                                      \
    (void)context, (void)attrs, (void)error;                                                                            \
    const size_t n = args[0].shape[0];                                                                                  \
    for (int64_t row = 0; row < cells; row++) {                                                                         \
      const T *x = ROW(const T, args, 0, row), strength = *ROW(const T, args, 1, row);                                  \
      T *out = ROW(T, args, 2, row);                                                                                    \
      double total = 0;                                                                                                 \
      for (size_t i = 0; i < n; i++) {                                                                                  \
        total += x[i] * x[i];                                                                                           \
      }                                                                                                                 \
      for (size_t i = 0; i < n; i++) {                                                                                  \
        out[i] = x[i] / (1 + strength * (T)(total / (double)n));                                                        \
      }                                                                                                                 \
    }                                                                                                                   \
    return MT_OK;                                                                                                       \
  }
FOR_BOTH(DAMPED)

static const MtInput damped_inputs[] = {{.name = MT_STR("x"), .core = MT_SLICE}, {.name = MT_STR("strength")}};
static const MtKernel damped_kernels[] = {
    {.dtypes = {MT_FLOAT32}, .run.cells = damped_f32},
    {.dtypes = {MT_FLOAT64}, .run.cells = damped_f64},
};
static const MtOp damped = {
    MT_OP("my_ops::damped", "Each row divided by `1 + strength · mean(x²)`."),
    .inputs = damped_inputs, .n_inputs = MT_COUNT(damped_inputs),
    .outputs = row_outputs, .n_outputs = MT_COUNT(row_outputs),
    .generics = T, .n_generics = MT_COUNT(T),
    .shape = MT_STR("(x: [.., n], strength: [..]) -> [.., n]"),
    .body = MT_CELLS, .kernels = damped_kernels, .n_kernels = MT_COUNT(damped_kernels),
    .backward_kind = MT_FORMULA,
    .backward = MT_STR("|d| { let k = unsqueeze(strength, -1); let square = mean(x * x, -1, true); let by = 1.0 + k * square;"
                       "x: d / by - 2.0 * mean(d * x, -1, true) * k * x / (by * by),"
                       "strength: squeeze(sum(d * x, -1, true) * square / (by * by), -1) * -1.0 }"),
};

/* All rows share `weight`: its shape has no `..`, and its `step` is 0. The host sums its gradient over the rows. */
#define RMS_NORM(suffix, T, F)                                                                                          \
  static int32_t rms_norm_##suffix(const void *context, const MtValue *attrs, const MtCell *args, int64_t cells,        \
                                   MtError *error) {                                                                    \
    (void)context, (void)error;                                                                                         \
    const T eps = (T)attrs[0].as.f;                                                                                     \
    const size_t n = args[0].shape[0];                                                                                  \
    for (int64_t row = 0; row < cells; row++) {                                                                         \
      const T *x = ROW(const T, args, 0, row), *weight = ROW(const T, args, 1, row);                                    \
      T *out = ROW(T, args, 2, row);                                                                                    \
      double total = 0;                                                                                                 \
      for (size_t i = 0; i < n; i++) {                                                                                  \
        total += x[i] * x[i];                                                                                           \
      }                                                                                                                 \
      const T by = 1 / F(sqrt)((T)(total / (double)n) + eps);                                                           \
      for (size_t i = 0; i < n; i++) {                                                                                  \
        out[i] = x[i] * by * weight[i];                                                                                 \
      }                                                                                                                 \
    }                                                                                                                   \
    return MT_OK;                                                                                                       \
  }
FOR_BOTH(RMS_NORM)

static const MtInput rms_norm_inputs[] = {
    {.name = MT_STR("x"), .core = MT_SLICE},
    {.name = MT_STR("weight"), .core = MT_SLICE},
};
static const MtAttr rms_norm_attrs[] = {
    {.name = MT_STR("eps"), .kind = MT_KIND_FLOAT, .has_default = 1, .value = {.kind = MT_KIND_FLOAT, .as.f = 1e-6}},
};
static const MtKernel rms_norm_kernels[] = {
    {.dtypes = {MT_FLOAT32}, .run.cells = rms_norm_f32},
    {.dtypes = {MT_FLOAT64}, .run.cells = rms_norm_f64},
};
static const MtOp rms_norm = {
    MT_OP("my_ops::rms_norm", "Scales each row to a mean square of 1, then multiplies each column by its weight."),
    .inputs = rms_norm_inputs, .n_inputs = MT_COUNT(rms_norm_inputs),
    .attrs = rms_norm_attrs, .n_attrs = MT_COUNT(rms_norm_attrs),
    .outputs = row_outputs, .n_outputs = MT_COUNT(row_outputs),
    .generics = T, .n_generics = MT_COUNT(T),
    .shape = MT_STR("(x: [.., n], weight: [n]) -> [.., n] where eps > 0.0"),
    .body = MT_CELLS, .kernels = rms_norm_kernels, .n_kernels = MT_COUNT(rms_norm_kernels),
    .backward_kind = MT_FORMULA,
    .backward = MT_STR("|d| { let by = rsqrt(mean(x * x, -1, true) + eps);"
                       "x: by * (d * weight - x * by * by * mean(d * weight * x, -1, true)),"
                       "weight: d * x * by }"),
};

#define MOVING_AVERAGE(suffix, T, F)                                                                                    \
  static int32_t moving_average_##suffix(const void *context, const MtValue *attrs, const MtCell *args, int64_t cells,  \
                                         MtError *error) {                                                              \
    (void)context, (void)error;                                                                                         \
    const T decay = (T)attrs[0].as.f;                                                                                   \
    for (int64_t row = 0; row < cells; row++) {                                                                         \
      const T *x = ROW(const T, args, 0, row);                                                                          \
      T *out = ROW(T, args, 1, row), average = 0;                                                                       \
      for (size_t i = 0; i < args[0].shape[0]; i++) {                                                                   \
        average = decay * average + (1 - decay) * x[i];                                                                 \
        out[i] = average;                                                                                               \
      }                                                                                                                 \
    }                                                                                                                   \
    return MT_OK;                                                                                                       \
  }
FOR_BOTH(MOVING_AVERAGE)

static const MtAttr moving_average_attrs[] = {
    {.name = MT_STR("decay"), .kind = MT_KIND_FLOAT, .has_default = 1, .value = {.kind = MT_KIND_FLOAT, .as.f = 0.9}},
};
static const MtKernel moving_average_kernels[] = {
    {.dtypes = {MT_FLOAT32}, .run.cells = moving_average_f32},
    {.dtypes = {MT_FLOAT64}, .run.cells = moving_average_f64},
};
static const MtOp moving_average = {
    MT_OP("my_ops::moving_average", "An exponential moving average: `outᵢ = decay · outᵢ₋₁ + (1 − decay) · xᵢ`."),
    .inputs = row_inputs, .n_inputs = MT_COUNT(row_inputs),
    .attrs = moving_average_attrs, .n_attrs = MT_COUNT(moving_average_attrs),
    .outputs = row_outputs, .n_outputs = MT_COUNT(row_outputs),
    .generics = T, .n_generics = MT_COUNT(T),
    .shape = MT_STR("(x: [.., n]) -> [.., n]"),
    .body = MT_CELLS, .kernels = moving_average_kernels, .n_kernels = MT_COUNT(moving_average_kernels),
    .backward_kind = MT_FORMULA,
    .backward = MT_STR("|d| { x: flip(my_ops::moving_average(flip(d, -1), decay), -1) }"),
};

/* ---- the plugin ---- */

static const MtOp *const ops[] = {&squareplus, &tempered_softmax, &free_energy, &damped, &rms_norm, &moving_average};

static int32_t init(const MtHost *host, MtError *error) {
  int32_t failed = MT_OK;
  for (size_t i = 0; i < MT_COUNT(ops) && !failed; i++) {
    failed = host->register_op(host, ops[i], error);
  }
  return failed;
}

MT_EXPORT const MtPlugin minitensor_plugin = {
    MT_PLUGIN("my_ops", "0.1.0"),
    .description = "Ops for minitensor",
    .min_minitensor = "@VERSION@",
    .init = init,
};
