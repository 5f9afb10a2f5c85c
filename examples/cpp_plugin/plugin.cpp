// Four ops in C++: over elements, over rows, over arrays, and over tensors.
#include <algorithm>
#include <cmath>

#include <minitensor_plugin.hpp>

namespace {

constexpr MtDType floats[] = {MT_FLOAT32, MT_FLOAT64};
constexpr MtGeneric generics[] = {mt::generic("T", floats)};

// ---- log_cosh: over elements ----

template <class T>
int32_t log_cosh(const void *, const MtValue *, int64_t n, const void *const *inputs, void *const *outputs, MtError *) {
  const T *x = static_cast<const T *>(inputs[0]);
  std::transform(x, x + n, static_cast<T *>(outputs[0]), [](T x) {
    const T a = std::abs(x);
    return a + std::log1p(std::exp(-2 * a)) - T(0.69314718055994531);
  });
  return MT_OK;
}

constexpr MtInput log_cosh_inputs[] = {mt::input("x")};
constexpr MtOutput log_cosh_outputs[] = {mt::output("out")};
static const MtKernel log_cosh_kernels[] = {
    mt::kernel(MT_FLOAT32, mt::guarded<log_cosh<float>>),
    mt::kernel(MT_FLOAT64, mt::guarded<log_cosh<double>>),
};
constexpr MtOp log_cosh_op = mt::Op("cpp_example::log_cosh", "`log(cosh(x))`: about `x²/2` near 0, and `|x| − log 2` for large `|x|`.")
                                 .at(__FILE__, __LINE__)
                                 .inputs(log_cosh_inputs)
                                 .outputs(log_cosh_outputs)
                                 .generics(generics)
                                 .elements(log_cosh_kernels)
                                 .formula("|d| { x: d * tanh(x) }");

// ---- moving_average: over rows; the host calls it on several threads ----

template <class T>
int32_t moving_average(const void *, const MtValue *attrs, const MtCell *args, int64_t cells, MtError *) {
  const T decay = T(attrs[0].as.f);
  for (int64_t row = 0; row < cells; row++) {
    const T *x = mt::core<const T>(args[0], row);
    T *out = mt::core<T>(args[1], row);
    T average = 0;
    for (size_t i = 0; i < args[0].shape[0]; i++) {
      average = decay * average + (1 - decay) * x[i];
      out[i] = average;
    }
  }
  return MT_OK;
}

constexpr MtInput moving_average_inputs[] = {mt::input("x", MT_SLICE)};
static const MtAttr moving_average_attrs[] = {mt::attr("decay", 0.9)};
constexpr MtOutput moving_average_outputs[] = {mt::output("out", MT_SLICE)};
static const MtKernel moving_average_kernels[] = {
    mt::kernel(MT_FLOAT32, mt::guarded<moving_average<float>>),
    mt::kernel(MT_FLOAT64, mt::guarded<moving_average<double>>),
};
constexpr MtOp moving_average_op =
    mt::Op("cpp_example::moving_average", "An exponential moving average: `outᵢ = decay · outᵢ₋₁ + (1 − decay) · xᵢ`.")
        .at(__FILE__, __LINE__)
        .inputs(moving_average_inputs)
        .attrs(moving_average_attrs)
        .outputs(moving_average_outputs)
        .generics(generics)
        .shape("(x: [.., n]) -> [.., n] where decay >= 0.0, decay <= 1.0")
        .cells(moving_average_kernels)
        .formula("|d| { x: flip(cpp_example::moving_average(flip(d, -1), decay), -1) }");

// ---- histogram: over arrays; `infer` computes the shape and dtype of the result ----

int32_t infer_histogram(const void *, const MtMeta *, int32_t, const MtValue *attrs, int32_t, MtMeta *outputs, int32_t,
                        MtError *) {
  const int64_t bins = attrs[0].as.i;
  if (bins < 1) throw mt::Error(MT_ERROR_VALUE, "needs at least one bin, got bins = " + std::to_string(bins));
  outputs[0].dtype = MT_INT64;
  outputs[0].ndim = 1;
  outputs[0].shape[0] = bins;
  return MT_OK;
}

// Counts the elements of `x`, of any layout, along the dimensions from `dim` on.
template <class T> void count(const MtArray &x, int32_t dim, const T *at, int64_t bins, int64_t *out) {
  if (dim == x.ndim) {
    if (*at >= 0 && *at < 1) out[std::min(bins - 1, int64_t(*at * T(bins)))]++;
    return;
  }
  for (int64_t i = 0; i < x.shape[dim]; i++) count(x, dim + 1, at + i * x.strides[dim], bins, out);
}

int32_t histogram(const MtCall *call, MtError *) {
  const MtArray &x = *call->input_arrays[0], &out = *call->output_arrays[0];
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    count(x, 0, static_cast<const T *>(x.data), out.shape[0], static_cast<int64_t *>(out.data));
  };
  x.dtype == MT_FLOAT32 ? run(0.0f) : run(0.0);
  return MT_OK;
}

constexpr MtInput histogram_inputs[] = {mt::input("x")};
static const MtAttr histogram_attrs[] = {mt::attr("bins", 10)};
constexpr MtOutput histogram_outputs[] = {mt::output("counts", MT_FIXED, MT_INT64)};
constexpr MtOp histogram_op = mt::Op("cpp_example::histogram", "The number of elements in each of `bins` equal intervals of `[0, 1)`.")
                                  .at(__FILE__, __LINE__)
                                  .inputs(histogram_inputs)
                                  .attrs(histogram_attrs)
                                  .outputs(histogram_outputs)
                                  .generics(generics)
                                  .arrays(mt::guarded<histogram>, mt::guarded<infer_histogram>)
                                  .gradient_not_needed();

// ---- cosine: over tensors; its gradient follows from the ops that it calls ----

int32_t cosine(const MtCall *call, MtError *error) {
  const mt::Ops ops(call->host, error);
  MtTensor *x = call->inputs[0], *y = call->inputs[1];
  const auto dot = [&](MtTensor *a, MtTensor *b) { return ops("sum", {ops("multiply", {a, b})}, {{"axis", -1}}); };
  const mt::Tensor lengths = ops("sqrt", {ops("multiply", {dot(x, x), dot(y, y)})});
  call->give(call->sink, ops("divide", {dot(x, y), lengths}).give());
  return MT_OK;
}

constexpr MtInput cosine_inputs[] = {mt::input("x"), mt::input("y")};
constexpr MtOutput cosine_outputs[] = {mt::output("out")};
constexpr MtOp cosine_op = mt::Op("cpp_example::cosine", "The cosine similarity of the rows of `x` and `y`.")
                               .at(__FILE__, __LINE__)
                               .inputs(cosine_inputs)
                               .outputs(cosine_outputs)
                               .generics(generics)
                               .shape("(x: [.., n], y: [.., n]) -> [..] where n > 0")
                               .tensors(mt::guarded<cosine>);

// ---- the plugin ----

int32_t init(const MtHost *host, MtError *error) {
  mt::register_ops(host, {&log_cosh_op, &moving_average_op, &histogram_op, &cosine_op}, error);
  return MT_OK;
}

} // namespace

constexpr MtPlugin minitensor_plugin =
    mt::Plugin("cpp_example", "1.0.0", mt::guarded<init>).description("Four ops in C++").supports("0.1.0");
