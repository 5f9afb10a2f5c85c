/* A plugin with a device of its own, `toy`, and kernels of a few ops. The CPU cannot read its memory by its addresses. */
#include <math.h>
#include <minitensor_plugin.h>
#include <stdlib.h>

#define TAG ((uintptr_t)1 << 62)

static int64_t held[2]; /* the bytes on each device */

static void *on_cpu(const void *address) { return (void *)((uintptr_t)address & ~TAG); }

static void *allocate(const void *context, int32_t index, size_t bytes, MtError *error) {
  (void)context;
  if (bytes > (size_t)1 << 30) {
    mt_fail(error, MT_ERROR_MEMORY, "a toy holds at most 1 GiB, asked for %zu bytes", bytes);
    return NULL;
  }
  void *block = aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (!block) return NULL;
  __atomic_add_fetch(&held[index], (int64_t)bytes, __ATOMIC_SEQ_CST);
  return (void *)((uintptr_t)block | TAG);
}
static void release(const void *context, int32_t index, void *memory, size_t bytes) {
  (void)context;
  __atomic_sub_fetch(&held[index], (int64_t)bytes, __ATOMIC_SEQ_CST);
  free(on_cpu(memory));
}
static int32_t write(const void *context, int32_t index, void *to, const void *from, size_t bytes, MtError *error) {
  (void)context, (void)index, (void)error;
  memcpy(on_cpu(to), from, bytes);
  return MT_OK;
}
static int32_t read(const void *context, int32_t index, void *to, const void *from, size_t bytes, MtError *error) {
  (void)context, (void)index, (void)error;
  memcpy(to, on_cpu(from), bytes);
  return MT_OK;
}
static void *stream(const void *context, int32_t index) {
  (void)context;
  return &held[index];
}
static const MtDevice toy = {
  .struct_size = sizeof(MtDevice), .name = MT_STR("toy"), .count = 2,
  .allocate = allocate, .release = release, .write = write, .read = read, .stream = stream,
};

/* The address of an element, by its number in row-major order. */
static void *at(const MtArray *a, int64_t number, size_t size) {
  int64_t offset = 0;
  for (int32_t d = a->ndim - 1; d >= 0; d--) {
    offset += number % a->shape[d] * a->strides[d];
    number /= a->shape[d];
  }
  return (char *)on_cpu(a->data) + offset * (int64_t)size;
}
static int64_t count(const MtArray *a) {
  int64_t n = 1;
  for (int32_t d = 0; d < a->ndim; d++) n *= a->shape[d];
  return n;
}
static int32_t checked(const MtCall *call, MtError *error) {
  const MtArray *out = call->output_arrays[0];
  if (call->stream != &held[out->device_id]) return mt_fail(error, MT_ERROR_RUNTIME, "this is not the stream of the device");
  if (out->device_type != call->host->device_type(mt_str("toy"), error))
    return mt_fail(error, MT_ERROR_RUNTIME, "the output is not on a toy");
  return MT_OK;
}

#define IN(T, k) (*(const T *)at(call->input_arrays[k], i, sizeof(T)))
#define ELEMENTS(name, T, R, expression) \
  static int32_t name(const MtCall *call, MtError *error) { \
    if (checked(call, error)) return MT_ERROR_RUNTIME; \
    const MtArray *out = call->output_arrays[0]; \
    for (int64_t n = count(out), i = 0; i < n; i++) *(R *)at(out, i, sizeof(R)) = (R)(expression); \
    return MT_OK; \
  }
ELEMENTS(add_f32, float, float, IN(float, 0) + IN(float, 1))
ELEMENTS(add_f64, double, double, IN(double, 0) + IN(double, 1))
ELEMENTS(subtract_f64, double, double, IN(double, 0) - IN(double, 1))
ELEMENTS(multiply_f32, float, float, IN(float, 0) * IN(float, 1))
ELEMENTS(multiply_f64, double, double, IN(double, 0) * IN(double, 1))
ELEMENTS(divide_f64, double, double, IN(double, 0) / IN(double, 1))
ELEMENTS(negative_f64, double, double, -IN(double, 0))
ELEMENTS(sigmoid_f64, double, double, 1 / (1 + exp(-IN(double, 0))))
ELEMENTS(equal_f64, double, uint8_t, IN(double, 0) == IN(double, 1))
ELEMENTS(less_f64, double, uint8_t, IN(double, 0) < IN(double, 1))
ELEMENTS(where_f64, double, double, IN(uint8_t, 0) ? IN(double, 1) : IN(double, 2))

/* The core dimension is the last. */
static int32_t row_sum(const MtCall *call, MtError *error) {
  (void)error;
  const MtArray *x = call->input_arrays[0], *out = call->output_arrays[0];
  int64_t length = x->shape[x->ndim - 1];
  for (int64_t rows = count(out), row = 0; row < rows; row++) {
    double sum = 0;
    for (int64_t i = 0; i < length; i++) sum += *(double *)at(x, row * length + i, sizeof(double));
    *(double *)at(out, row, sizeof(double)) = sum;
  }
  return MT_OK;
}

/* An op of this plugin, which has a kernel on the toy only. */
static const MtDType f64[] = {MT_FLOAT64}, f32[] = {MT_FLOAT32};
static const MtGeneric generics[] = {{MT_STR("T"), f64, 1}};
static const MtInput inputs[] = {{.name = MT_STR("x")}};
static const MtOutput outputs[] = {{.name = MT_STR("out")}};
static int32_t held_bytes(const MtCall *call, MtError *error) {
  (void)error;
  *(double *)on_cpu(call->output_arrays[0]->data) = (double)held[call->output_arrays[0]->device_id];
  return MT_OK;
}
static int32_t nowhere(const MtCall *call, MtError *error) {
  (void)call;
  return mt_fail(error, MT_ERROR_NOT_IMPLEMENTED, "only a toy computes this");
}
static const MtOp held_op = {
  MT_OP("toy::held", "The bytes on the device of `x`."),
  .inputs = inputs, .n_inputs = 1, .outputs = outputs, .n_outputs = 1, .generics = generics, .n_generics = 1,
  .shape = MT_STR("(x: [..]) -> []"), .body = MT_ARRAYS, .call = nowhere, .backward_kind = MT_NO_GRADIENT,
};

#define KERNEL(name, function, type) \
  {.struct_size = sizeof(MtDeviceKernel), .op = MT_STR(name), .device = MT_STR("toy"), .dtypes = type, .n_dtypes = 1, .run = function}
static const MtDeviceKernel kernels[] = {
  KERNEL("add", add_f32, f32), KERNEL("add", add_f64, f64), KERNEL("subtract", subtract_f64, f64),
  KERNEL("multiply", multiply_f32, f32), KERNEL("multiply", multiply_f64, f64), KERNEL("divide", divide_f64, f64),
  KERNEL("negative", negative_f64, f64), KERNEL("sigmoid", sigmoid_f64, f64), KERNEL("equal", equal_f64, f64),
  KERNEL("less", less_f64, f64), KERNEL("where", where_f64, f64), KERNEL("sum", row_sum, f64), KERNEL("toy::held", held_bytes, f64),
};

static int32_t init(const MtHost *host, MtError *error) {
  int32_t code = host->register_device(host, &toy, error);
  if (!code) code = host->register_op(host, &held_op, error);
  for (size_t i = 0; !code && i < MT_COUNT(kernels); i++) code = host->register_kernel(host, &kernels[i], error);
  return code;
}
MT_EXPORT const MtPlugin minitensor_plugin = {MT_PLUGIN("toy", "1.0.0"), .init = init};
