/* minitensor_plugin.hpp: the C++17 interface on top of minitensor_plugin.h. It has guards that catch exceptions, builders for tables,
 * and calls of ops. examples/cpp_plugin shows how to use it.
 *
 * All of it is compiled into the plugin; the interface to the host is plain C.
 */
#ifndef MINITENSOR_PLUGIN_HPP
#define MINITENSOR_PLUGIN_HPP

#include <exception>
#include <initializer_list>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "minitensor_plugin.h"

namespace mt {

constexpr MtStr str(std::string_view text) { return {text.data(), text.size()}; }

/* ---- functions ------------------------------------------------------------------------------------------------- */

/* Throw it in a guarded function to report an error with a code. std::bad_alloc becomes MT_ERROR_MEMORY, any other exception
 * MT_PANIC. */
struct Error : std::runtime_error {
  MtCode code;
  Error(MtCode code, const std::string &message) : std::runtime_error(message), code(code) {}
};

/* Thrown if a function of the host failed and has already set the message. */
struct Failed {
  int32_t code;
};

template <auto Function> struct Guard;

template <class... Args, int32_t (*Function)(Args...)> struct Guard<Function> {
  static int32_t call(Args... args) noexcept {
    MtError *error = std::get<sizeof...(Args) - 1>(std::tie(args...));
    try {
      return Function(args...);
    } catch (const Failed &failed) {
      return failed.code;
    } catch (const Error &e) {
      return mt_fail(error, e.code, "%s", e.what());
    } catch (const std::bad_alloc &) {
      return mt_fail(error, MT_ERROR_MEMORY, "there is not enough memory");
    } catch (const std::exception &e) {
      return mt_fail(error, MT_PANIC, "%s", e.what());
    } catch (...) {
      return mt_fail(error, MT_PANIC, "an unknown exception");
    }
  }
};

/* Converts a function to the `noexcept` type that the ABI requires. Its last parameter is `MtError *error`. */
template <auto Function> inline constexpr auto guarded = &Guard<Function>::call;

/* ---- tables ---------------------------------------------------------------------------------------------------- */

/* The MtDType of a C++ type. */
template <class T> inline constexpr MtDType dtype = 0;
template <> inline constexpr MtDType dtype<bool> = MT_BOOL;
template <> inline constexpr MtDType dtype<int8_t> = MT_INT8;
template <> inline constexpr MtDType dtype<int16_t> = MT_INT16;
template <> inline constexpr MtDType dtype<int32_t> = MT_INT32;
template <> inline constexpr MtDType dtype<int64_t> = MT_INT64;
template <> inline constexpr MtDType dtype<uint8_t> = MT_UINT8;
template <> inline constexpr MtDType dtype<uint16_t> = MT_UINT16;
template <> inline constexpr MtDType dtype<uint32_t> = MT_UINT32;
template <> inline constexpr MtDType dtype<uint64_t> = MT_UINT64;
template <> inline constexpr MtDType dtype<float> = MT_FLOAT32;
template <> inline constexpr MtDType dtype<double> = MT_FLOAT64;

/* An input with the first dtype variable. */
constexpr MtInput input(std::string_view name, MtCore core = MT_SCALAR) {
  MtInput made{};
  made.name = str(name);
  made.core = core;
  return made;
}

/* An output with the first dtype variable, or with a fixed dtype. */
constexpr MtOutput output(std::string_view name, MtCore core = MT_SCALAR) {
  MtOutput made{};
  made.name = str(name);
  made.core = core;
  return made;
}
constexpr MtOutput output(std::string_view name, MtDTypeRule rule, MtDType dtype = 0) {
  MtOutput made = output(name);
  made.dtype_rule = rule;
  made.dtype = dtype;
  return made;
}
constexpr MtInput input(std::string_view name, MtDTypeRule rule, MtDType dtype = 0) {
  MtInput made = input(name);
  made.dtype_rule = rule;
  made.dtype = dtype;
  return made;
}

/* Declare values, attributes and kernels `const`, not `constexpr`: in C++17, a constant expression cannot initialize a union member
 * other than the first. */
inline MtValue value(double f) {
  MtValue made{};
  made.kind = MT_KIND_FLOAT;
  made.as.f = f;
  return made;
}
inline MtValue value(int64_t i) {
  MtValue made{};
  made.kind = MT_KIND_INT;
  made.as.i = i;
  return made;
}
inline MtValue value(int i) { return value(int64_t{i}); }
inline MtValue value(bool given) {
  MtValue made = value(int64_t{given});
  made.kind = MT_KIND_BOOL;
  return made;
}
inline MtValue value(std::string_view text) {
  MtValue made{};
  made.kind = MT_KIND_STR;
  made.as.list = {text.data(), text.size()};
  return made;
}
/* Without this overload, a pointer would convert to bool. */
inline MtValue value(const char *text) { return value(std::string_view(text)); }

/* An attribute with a default, which determines its type: float, int, bool or text. */
template <class T> MtAttr attr(std::string_view name, T by_default) {
  MtAttr made{};
  made.name = str(name);
  made.value = value(by_default);
  made.kind = made.value.kind;
  made.has_default = 1;
  return made;
}

/* A dtype variable. */
template <size_t N> constexpr MtGeneric generic(std::string_view name, const MtDType (&dtypes)[N]) {
  return {str(name), dtypes, N};
}

/* A kernel for one dtype. */
inline MtKernel kernel(MtDType dtype, MtElementsFn run) {
  MtKernel made{};
  made.dtypes[0] = dtype;
  made.run.elements = run;
  return made;
}
inline MtKernel kernel(MtDType dtype, MtCellsFn run) {
  MtKernel made{};
  made.dtypes[0] = dtype;
  made.run.cells = run;
  return made;
}

/* A builder for an op. It stores pointers to the lists, so the lists must be constants with static storage. */
struct Op : MtOp {
  constexpr Op(std::string_view name, std::string_view doc) : MtOp{} {
    struct_size = sizeof(MtOp);
    this->name = str(name);
    this->doc = str(doc);
    since = 1;
  }
  constexpr Op &at(std::string_view file, uint32_t line) {
    this->file = str(file);
    this->line = line;
    return *this;
  }
  template <size_t N> constexpr Op &inputs(const MtInput (&list)[N]) {
    MtOp::inputs = list;
    n_inputs = N;
    return *this;
  }
  template <size_t N> constexpr Op &attrs(const MtAttr (&list)[N]) {
    MtOp::attrs = list;
    n_attrs = N;
    return *this;
  }
  template <size_t N> constexpr Op &outputs(const MtOutput (&list)[N]) {
    MtOp::outputs = list;
    n_outputs = N;
    return *this;
  }
  template <size_t N> constexpr Op &generics(const MtGeneric (&list)[N]) {
    MtOp::generics = list;
    n_generics = N;
    return *this;
  }
  constexpr Op &shape(std::string_view clause) {
    MtOp::shape = str(clause);
    return *this;
  }
  constexpr Op &properties(std::string_view clause) {
    MtOp::properties = str(clause);
    return *this;
  }
  template <size_t N> constexpr Op &elements(const MtKernel (&list)[N]) { return with(MT_ELEMENTS, list, N); }
  template <size_t N> constexpr Op &cells(const MtKernel (&list)[N]) { return with(MT_CELLS, list, N); }
  constexpr Op &arrays(MtCallFn run, MtInferFn infer) {
    MtOp::infer = infer;
    call = run;
    body = MT_ARRAYS;
    return *this;
  }
  constexpr Op &tensors(MtCallFn run) {
    call = run;
    body = MT_TENSORS;
    backward_kind = MT_COMPOSITE;
    return *this;
  }
  /* The gradient as a formula: "|d| { x: d * cos(x) }". */
  constexpr Op &formula(std::string_view text) {
    backward_kind = MT_FORMULA;
    backward = str(text);
    return *this;
  }
  constexpr Op &gradient_not_needed() {
    backward_kind = MT_NOT_NEEDED;
    return *this;
  }

private:
  constexpr Op &with(MtBody kind, const MtKernel *list, size_t n) {
    body = kind;
    kernels = list;
    n_kernels = n;
    return *this;
  }
};

/* Registers ops. Call it in `init`. */
inline void register_ops(const MtHost *host, std::initializer_list<const MtOp *> ops, MtError *error) {
  for (const MtOp *op : ops) {
    if (int32_t code = host->register_op(host, op, error)) throw Failed{code};
  }
}

/* Copies a text into a field of the plugin. */
template <size_t N> constexpr void put(char (&field)[N], std::string_view text) {
  if (text.size() >= N) throw std::length_error("a text of the plugin is too long");
  for (size_t i = 0; i < text.size(); i++) field[i] = text[i];
}

/* The plugin: `extern "C" MT_EXPORT constexpr MtPlugin minitensor_plugin = mt::Plugin("name", "1.0.0", mt::guarded<init>);` */
struct Plugin : MtPlugin {
  constexpr Plugin(std::string_view name, std::string_view version, decltype(MtPlugin::init) init) : MtPlugin{} {
    magic = MT_MAGIC;
    abi_major = MT_ABI_MAJOR;
    struct_size = sizeof(MtPlugin);
    put(this->name, name);
    put(this->version, version);
    put(built_with, MT_BUILT_WITH);
    this->init = init;
  }
  constexpr Plugin &description(std::string_view text) {
    put(MtPlugin::description, text);
    return *this;
  }
  constexpr Plugin &author(std::string_view text) {
    put(MtPlugin::author, text);
    return *this;
  }
  /* The oldest and the newest supported version of minitensor. */
  constexpr Plugin &supports(std::string_view oldest, std::string_view newest = "") {
    put(min_minitensor, oldest);
    put(max_minitensor, newest);
    return *this;
  }
  /* The function to call when the plugin is unloaded. */
  constexpr Plugin &on_unload(decltype(MtPlugin::fini) function) {
    fini = function;
    return *this;
  }
};

/* The data of the i-th cell of an argument: `mt::core<const T>(args[0], i)`. */
template <class T> T *core(const MtCell &arg, int64_t i) {
  return reinterpret_cast<T *>(static_cast<char *>(arg.data) + i * arg.step);
}

/* ---- calls of ops ---------------------------------------------------------------------------------------------- */

/* An owned reference to a tensor. */
class Tensor {
public:
  Tensor(const MtHost *host, MtTensor *handle) : host(host), handle(handle) {}
  Tensor(const Tensor &other) : Tensor(other.host, other.host->tensor_retain(other.handle)) {}
  Tensor(Tensor &&other) noexcept : host(other.host), handle(other.give()) {}
  Tensor &operator=(Tensor other) noexcept {
    std::swap(host, other.host);
    std::swap(handle, other.handle);
    return *this;
  }
  ~Tensor() { host->tensor_release(handle); }
  MtTensor *get() const { return handle; }
  /* Releases ownership, for example to the host. */
  MtTensor *give() { return std::exchange(handle, nullptr); }

private:
  const MtHost *host;
  MtTensor *handle;
};

/* An argument: a tensor or a value. */
struct Arg : MtArg {
  Arg(MtTensor *borrowed) : MtArg{} { tensor = borrowed; }
  Arg(const Tensor &borrowed) : Arg(borrowed.get()) {}
  template <class T, class = decltype(mt::value(std::declval<T>()))> Arg(T given) : MtArg{} { value = mt::value(given); }
};

/* Calls ops with one output: `ops("sum", {x}, {{"axis", -1}})`. */
class Ops {
public:
  Ops(const MtHost *host, MtError *error) : host(host), error(error) {}

  Tensor operator()(std::string_view name, std::initializer_list<Arg> args,
                    std::initializer_list<std::pair<std::string_view, Arg>> keywords = {}) const {
    std::vector<MtArg> positional(args.begin(), args.end()), named;
    std::vector<MtStr> names;
    for (const auto &[key, arg] : keywords) {
      names.push_back(str(key));
      named.push_back(arg);
    }
    MtOpRef *op = host->op_find(str(name), error);
    if (op == nullptr) throw Failed{MT_ERROR_VALUE};
    MtTensor *output = nullptr;
    size_t n = 1;
    int32_t code = host->op_call(op, positional.data(), positional.size(), names.data(), named.data(), named.size(), &output,
                                 &n, error);
    host->op_release(op);
    if (code != MT_OK) throw Failed{code};
    if (n != 1) throw Error(MT_ERROR_TYPE, "op '" + std::string(name) + "' returns no tensor");
    return Tensor(host, output);
  }

private:
  const MtHost *host;
  MtError *error;
};

} // namespace mt
#endif
