/* minitensor_plugin.h: the C interface for plugins, which are shared libraries that add ops to minitensor. It requires C11 or C++17,
 * and links with nothing. For C++, minitensor_plugin.hpp adds builders for the tables, and guards that catch exceptions.
 *
 * A plugin exports one constant, `minitensor_plugin`. The host reads it before it runs any code of the library. Then it calls
 * `init`, which registers the ops. Each op is a table of constants and functions. docs/plugins-in-c.md describes how to write one.
 *
 * Stability
 * - Within one major version of the ABI, a plugin works with every later minitensor without being recompiled. No field moves or
 *   changes its meaning.
 * - A minor version may add fields at the end of a table that has a `struct_size`. The creator of a table sets `struct_size` to the
 *   size that it knows. The reader takes missing fields as zero, and zero always means the previous behaviour.
 * - Tables without a `struct_size` never grow, because they occur in arrays. Values of enumerations are never reused.
 * - The host rejects a plugin of another major version with an error that states both versions.
 *
 * Rules for all functions of a plugin
 * - Arguments are borrowed until the function returns, except retained tensors and the host, which stay valid.
 * - 0 (`MT_OK`) means success. To report an error, set its message with `error`, and return a code of `MtCode`. The host prefixes
 *   the message with the name of the op. If a function of the host fails, it has already set the message: return its code, or any
 *   error code if it returned a null pointer.
 * - They may be called on any thread, on several threads at once, and during and after `fini`, because graphs keep ops alive.
 * - They must not throw exceptions. In C++ they are `noexcept`; `mt::guarded<f>` converts any function. The Rust SDK catches panics.
 */
#ifndef MINITENSOR_PLUGIN_H
#define MINITENSOR_PLUGIN_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
#define MT_NOEXCEPT noexcept
extern "C" {
#else
#define MT_NOEXCEPT
#endif

#define MT_MAGIC UINT64_C(0x4E4947554C50544D) /* "MTPLUGIN" */
#define MT_ABI_MAJOR 1u
#define MT_ABI_MINOR 4u
#define MT_MAX_NDIM 64

/* ---- texts, errors --------------------------------------------------------------------------------------------- */

/* UTF-8 text, not necessarily NUL-terminated. The host rejects texts that exceed these lengths: 255 bytes for a name, 4096 for a
 * path, 64 KiB for a clause, 1 MiB for documentation or a message, 16 MiB for an attribute, 64 MiB for a program. */
typedef struct MtStr {
  const char *data;
  size_t len;
} MtStr;
/* Initializes an MtStr from a string literal: `.name = MT_STR("swish")`. */
#define MT_STR(literal) { (literal), sizeof(literal) - 1 }

/* Error codes. The comments are the corresponding Python exceptions. */
typedef enum MtCode {
  MT_OK = 0,
  MT_ERROR_TYPE = 1,             /* TypeError */
  MT_ERROR_VALUE = 2,            /* ValueError */
  MT_ERROR_INDEX = 3,            /* IndexError */
  MT_ERROR_MEMORY = 4,           /* MemoryError */
  MT_ERROR_RUNTIME = 5,          /* RuntimeError */
  MT_ERROR_NOT_IMPLEMENTED = 6,  /* NotImplementedError */
  MT_PANIC = 7                   /* RuntimeError that reports a fault of the plugin */
} MtCode;

/* Receives the message of an error. `set` copies it; if it is called several times, the last message is used. */
typedef struct MtError {
  size_t struct_size;
  void *context;
  void (*set)(void *context, MtStr message);
} MtError;

/* ---- values ---------------------------------------------------------------------------------------------------- */

/* A DLPack DLDataType (code, bits, lanes), read as one 32-bit number. */
typedef uint32_t MtDType;
/* A byte: 0 is false, any other value is true. Read it as uint8_t, because other threads may write any value. */
#define MT_BOOL 0x00010806u
#define MT_INT8 0x00010800u
#define MT_INT16 0x00011000u
#define MT_INT32 0x00012000u
#define MT_INT64 0x00014000u
#define MT_UINT8 0x00010801u
#define MT_UINT16 0x00011001u
#define MT_UINT32 0x00012001u
#define MT_UINT64 0x00014001u
#define MT_FLOAT16 0x00011002u
#define MT_BFLOAT16 0x00011004u
#define MT_FLOAT32 0x00012002u
#define MT_FLOAT64 0x00014002u
#define MT_COMPLEX64 0x00014005u
#define MT_COMPLEX128 0x00018005u

/* The type of an attribute. */
typedef enum MtKind {
  MT_NONE = 0,    /* the value of an absent optional attribute */
  MT_KIND_BOOL = 1,
  MT_KIND_INT = 2,
  MT_KIND_SIZE = 3,    /* an integer, at least 0; its values have the kind MT_KIND_INT */
  MT_KIND_FLOAT = 4,
  MT_KIND_STR = 5,
  MT_KIND_WORD = 6,    /* one of `words`; its values have the kind MT_KIND_STR */
  MT_KIND_INTS = 7,
  MT_KIND_FLOATS = 8,
  MT_KIND_DTYPE = 9,
  MT_KIND_TUNED = 10   /* one of the positive integers in the default, which has the kind MT_KIND_INTS; values have the kind
                          MT_KIND_INT. The integers only differ in speed: the host measures them. `grain` is the fewest
                          elements for a thread. */
} MtKind;

typedef struct MtValue {
  uint32_t kind;  /* MtKind */
  uint32_t reserved;
  union {
    int64_t i;     /* bool, int, dtype */
    double f;
    struct {
      const void *data;
      size_t len;
    } list;        /* text, ints (int64_t), floats (double) */
  } as;
} MtValue;

/* An array with the layout of DLPack's DLTensor; pointers to the two types are interchangeable. */
typedef struct MtArray {
  void *data;            /* null for a meta tensor, which has only shape and dtype */
  int32_t device_type;   /* 0 for a meta tensor, 1 for the CPU, else the number that the host's `device_type` returns */
  int32_t device_id;     /* the index of the device among those of its type */
  int32_t ndim;
  MtDType dtype;
  const int64_t *shape;
  const int64_t *strides; /* in elements; never null */
  uint64_t byte_offset;   /* always 0 */
} MtArray;

/* Shape and dtype. */
typedef struct MtMeta {
  MtDType dtype;
  int32_t ndim;
  int64_t shape[MT_MAX_NDIM];
} MtMeta;

/* A tensor of the host, with reference counting. */
typedef struct MtTensor MtTensor;
/* An op of the host. */
typedef struct MtOpRef MtOpRef;
typedef struct MtHost MtHost;

/* ---- signatures ------------------------------------------------------------------------------------------------ */

typedef enum MtArity { MT_ONE = 0, MT_OPTIONAL = 1, MT_VARIADIC = 2 } MtArity;

/* The layout of one cell in a kernel of cells. */
typedef enum MtCore {
  MT_SCALAR = 0,  /* one element */
  MT_SLICE = 1,   /* contiguous; the host packs strided arguments */
  MT_VIEW = 2,    /* strided */
  MT_COLUMNS = 3  /* one dimension: contiguous, or neighbouring cells as the columns of a table. Then all arguments are such tables of
                     as many columns: `ndim` is 2, and 1 for an argument without dimensions, whose elements are next to each other.
                     The last dimension is that of the cells, with the stride 1, and `cells` counts tables. */
} MtCore;

/* The dtype of an input or output. */
typedef enum MtDTypeRule {
  MT_GENERIC = 0, /* the dtype variable at `dtype_index`; inputs that share one are promoted to it */
  MT_FIXED = 1,   /* `dtype` */
  MT_FROM_ATTR = 2, /* the value of the attribute at `dtype_index`; outputs only */
  MT_ANY = 3      /* any dtype; MT_ARRAYS and MT_TENSORS only */
} MtDTypeRule;

/* A dtype variable. Inputs that share a variable have the same dtype. */
typedef struct MtGeneric {
  MtStr name;
  const MtDType *dtypes; /* the admissible dtypes */
  size_t n_dtypes;
} MtGeneric;

typedef struct MtInput {
  MtStr name;
  uint32_t arity;        /* MtArity; MT_VARIADIC only for the last input of MT_TENSORS */
  uint32_t core;         /* MtCore */
  uint32_t dtype_rule;   /* MtDTypeRule */
  uint32_t dtype_index;
  MtDType dtype;
  uint32_t is_mutated;   /* modified in place; MT_ELEMENTS or MT_CELLS; requires an output with the role MT_MUTATES */
} MtInput;

typedef struct MtAttr {
  MtStr name;
  uint32_t kind;         /* MtKind */
  uint32_t is_optional;  /* whether MT_NONE is accepted */
  uint32_t has_default;
  uint32_t reserved;
  MtValue value;         /* the default */
  const MtStr *words;    /* of MT_KIND_WORD */
  size_t n_words;
} MtAttr;

typedef enum MtRole {
  MT_RETURNED = 0,
  MT_SAVED = 1,     /* only the gradient receives it */
  MT_MUTATES = 2    /* the modified input at index `input` */
} MtRole;

typedef struct MtOutput {
  MtStr name;            /* a single output "outs" of MT_TENSORS stands for any number of outputs */
  uint32_t role;         /* MtRole */
  uint32_t input;
  uint32_t core;         /* MtCore */
  uint32_t dtype_rule;   /* MtDTypeRule */
  uint32_t dtype_index;
  MtDType dtype;
} MtOutput;

/* ---- kernels --------------------------------------------------------------------------------------------------- */

/* Computes `n` contiguous elements. The host broadcasts, promotes and packs the inputs, and runs threads. After the attributes of
 * the op, `attrs` has one bool for each optional input, which states whether it is present; an absent input reads as zeros. */
typedef int32_t (*MtElementsFn)(const void *context, const MtValue *attrs, int64_t n, const void *const *inputs,
                                void *const *outputs, MtError *error) MT_NOEXCEPT;

/* The cells of one argument of a kernel of cells. */
typedef struct MtCell {
  void *data;             /* the first cell; null for an absent optional input or an output that is not needed */
  int64_t step;           /* bytes between consecutive cells */
  uint64_t is_large;      /* whether all cells together exceed the CPU's cache */
  size_t ndim;            /* the number of dimensions of a cell */
  const size_t *shape;
  const ptrdiff_t *strides; /* in elements */
} MtCell;

/* Computes `cells` cells. The shape clause defines the dimensions of a cell. The host splits the batch over threads. */
typedef int32_t (*MtCellsFn)(const void *context, const MtValue *attrs, const MtCell *args, int64_t cells,
                             MtError *error) MT_NOEXCEPT;

/* A kernel for one combination of dtypes. An op with three or four dtype variables lists its kernels in the order of all combinations:
 * sorted by the dtype of the first variable, then the second, and so on, each in the order of the list of dtypes above. */
typedef struct MtKernel {
  MtDType dtypes[2];      /* the dtypes of the first two dtype variables; float16 and bfloat16 are computed as float32 */
  union {
    MtElementsFn elements;
    MtCellsFn cells;
  } run;
  const void *context;    /* passed to the function */
} MtKernel;

/* A call of an op over arrays or tensors. */
typedef struct MtCall {
  size_t struct_size;
  const MtHost *host;
  const void *context;    /* of the op */
  int32_t n_inputs, n_attrs, n_outputs, reserved;
  const MtArray *const *input_arrays;   /* MT_ARRAYS: null for an absent optional input */
  const MtArray *const *output_arrays;  /* MT_ARRAYS: contiguous; the function writes them */
  MtTensor *const *inputs;              /* MT_TENSORS: null for an absent optional input */
  const MtValue *attrs;
  void *sink;
  void (*give)(void *sink, MtTensor *output); /* MT_TENSORS: call it with each output in order; it takes ownership */
  void *stream;           /* MtDeviceKernel: the stream of the device, or null */
} MtCall;
typedef int32_t (*MtCallFn)(const MtCall *call, MtError *error) MT_NOEXCEPT;

/* Computes the shapes and dtypes of the outputs from those of the inputs. An absent input has ndim -1. */
typedef int32_t (*MtInferFn)(const void *context, const MtMeta *inputs, int32_t n_inputs, const MtValue *attrs,
                             int32_t n_attrs, MtMeta *outputs, int32_t n_outputs, MtError *error) MT_NOEXCEPT;

/* Generates the program of the op as JSON, and calls `give(sink, json)` once. After the attributes, `attrs` has one bool for each
 * optional input, which states whether it is present. Inputs, uniforms and outputs have the names and the order of the op's table.
 * A program of elements takes all inputs; its uniforms are the attributes of MT_KIND_FLOAT. A program of cells describes a row: each
 * argument is either MT_SLICE with the dimension of the row, or MT_SCALAR without dimensions. Its inputs are the slices. Its
 * uniforms are the scalars, those of a fixed dtype last, and then the attributes. */
typedef int32_t (*MtProgramFn)(const void *context, const MtValue *attrs, int32_t n_attrs, void *sink,
                               void (*give)(void *sink, MtStr json), MtError *error) MT_NOEXCEPT;

/* A call of a gradient function. */
typedef struct MtGradient {
  size_t struct_size;
  const MtHost *host;
  const void *context;    /* `gradient_context` of the op */
  int32_t n_inputs, n_attrs, n_outputs, n_dims;
  const MtMeta *input_metas;     /* after promotion; an absent input has ndim -1 */
  const MtMeta *output_metas;
  MtTensor *const *inputs;       /* null for inputs that are not saved */
  MtTensor *const *outputs;      /* null for outputs that are not saved */
  MtTensor *const *cotangents;   /* one for each output; null means zeros. For MT_JVP_FN, the tangents: one for each input */
  const uint8_t *needs;          /* for each input, whether its gradient is needed */
  const MtValue *attrs;
  const MtStr *dim_names;        /* the named dimensions of the shape clause */
  const int64_t *dims;           /* their sizes */
  MtTensor **gradients;          /* one for each input; set those that are needed; the host takes ownership.
                                    For MT_JVP_FN, the tangents: one for each output, or null if it is zero */
} MtGradient;
typedef int32_t (*MtGradientFn)(const MtGradient *call, MtError *error) MT_NOEXCEPT;

/* How the gradient of an op is defined. */
typedef enum MtBackward {
  MT_NO_GRADIENT = 0,  /* differentiating raises, with the reason in `backward` */
  MT_NOT_NEEDED = 1,   /* no output can have a gradient */
  MT_FORMULA = 2,      /* the text in `backward`: `|d| { x: d * cos(x) }` */
  MT_FROM_PROGRAM = 3, /* derived from the program, for any order */
  MT_VJP = 4,          /* the op `vjp`: it takes the cotangents of the differentiable outputs that are not saved, then the inputs,
                          then a prefix of the op's attributes; it returns the gradients of the inputs listed in `wrt` */
  MT_GRADIENT_FN = 5,  /* the function `gradient` */
  MT_COMPOSITE = 6,    /* follows from the ops that the MT_TENSORS body calls */
  MT_JVP_FORMULA = 7,  /* the transpose of the text in `backward`: `|dx| { out: dx * cos(x) }` */
  MT_JVP_FN = 8        /* the transpose of the function `gradient`, which computes tangents */
} MtBackward;

typedef enum MtBody {
  MT_ELEMENTS = 1, /* needs `kernels` or `program` */
  MT_CELLS = 2,    /* needs `shape`, and `kernels` or, if each cell is a row, `program` */
  MT_ARRAYS = 3,   /* needs `call`, and `infer` or `shape` */
  MT_TENSORS = 4   /* needs `call` */
} MtBody;

/* MT_CELLS with an axis, one input along it, and one output without its dimension: how the results for parts of a row combine, in any
 * order. Then the host computes long rows that are not contiguous in parts, and reads them in the order of memory. */
typedef enum MtCombine {
  MT_NOT_COMBINED = 0,
  MT_COMBINE_ADD = 1,
  MT_COMBINE_MULTIPLY = 2,
  MT_COMBINE_MAXIMUM = 3,
  MT_COMBINE_MINIMUM = 4,
  MT_COMBINE_LOGICAL_OR = 5,
  MT_COMBINE_LOGICAL_AND = 6,
  MT_COMBINE_AVERAGE = 7  /* weighted by the numbers of elements */
} MtCombine;

/* ---- an op ----------------------------------------------------------------------------------------------------- */

typedef struct MtOp {
  size_t struct_size;
  MtStr name;             /* "swish", "ns::swish" */
  MtStr doc;              /* Markdown; the first line is the summary */
  const MtStr *aliases;
  size_t n_aliases;
  uint32_t since;         /* the version that introduced the op */
  uint32_t line;          /* the source location of the definition */
  MtStr file;
  const MtInput *inputs;
  const MtAttr *attrs;
  const MtOutput *outputs;
  const MtGeneric *generics;
  int32_t n_inputs, n_attrs, n_outputs, n_generics;
  /* "(x: [.., n], k: [m]) -> [.., n] where m <= n", as in docs/defining-ops.md. May be empty for elements, which broadcast, and for
   * tensors, whose shape follows from the ops called. */
  MtStr shape;
  /* The 1-based indices of the attributes `axis` and `keepdims`, 0 for none; whether `axis` accepts several axes. Cells get the axis
   * as the last one. A body of tensors gets them as they are. Elements have no axis. */
  int32_t axis, keepdims, many_axes;
  uint32_t body;          /* MtBody */
  const void *context;    /* passed to `call`, `infer` and `program` */
  const MtKernel *kernels;
  size_t n_kernels;
  MtCallFn call;
  MtInferFn infer;
  MtProgramFn program;
  uint32_t backward_kind; /* MtBackward */
  uint32_t n_wrt;
  MtStr backward;
  const struct MtOp *vjp; /* need not be registered */
  const uint32_t *wrt;
  MtGradientFn gradient;
  const void *gradient_context;
  /* MT_GRADIENT_FN, MT_JVP_FN: the indices of the inputs and outputs to save, and of the inputs without a gradient */
  const uint32_t *saved_inputs, *saved_outputs, *without;
  uint32_t n_saved_inputs, n_saved_outputs, n_without;
  uint32_t combine;       /* MtCombine */
  MtStr cuda;             /* reserved: CUDA C++ source */
  /* Since ABI 1.3: "linear = x, symmetric, replaces = log(softmax(x))", or some of these, as in docs/defining-ops.md. May be empty. */
  MtStr properties;
} MtOp;

/* ---- devices --------------------------------------------------------------------------------------------------- */

/* The memory of a kind of device. The host never reads from its addresses; it passes them to these functions and to kernels. It
 * adds offsets to them. `index` is that of the device, from 0. */
typedef struct MtDevice {
  size_t struct_size;
  MtStr name;             /* lowercase letters, digits and '_'; as in Python: device="name" or "name:1" */
  int32_t count;          /* how many devices there are */
  int32_t reserved;
  const void *context;    /* passed to the functions */
  /* Allocates at least 1 byte, aligned to 64. To report an error, set its message and return null. */
  void *(*allocate)(const void *context, int32_t index, size_t bytes, MtError *error) MT_NOEXCEPT;
  void (*release)(const void *context, int32_t index, void *memory, size_t bytes) MT_NOEXCEPT;
  /* Copies from main memory to the device. */
  int32_t (*write)(const void *context, int32_t index, void *to, const void *from, size_t bytes, MtError *error) MT_NOEXCEPT;
  /* Copies from the device to main memory, after all kernels that were called before. */
  int32_t (*read)(const void *context, int32_t index, void *to, const void *from, size_t bytes, MtError *error) MT_NOEXCEPT;
  /* Returns the stream on which the calls of this thread run. May be null. */
  void *(*stream)(const void *context, int32_t index) MT_NOEXCEPT;
} MtDevice;

/* A kernel of an op on a kind of device. The op may be one of this plugin, of another plugin, or built in. The host broadcasts the
 * inputs, as strided arrays, and allocates the outputs, which are contiguous zeros. An op with a `shape` has its core dimensions last.
 * An output that is not needed is null. Where an op has no kernel, the host computes it by its program or by the ops it calls. */
typedef struct MtDeviceKernel {
  size_t struct_size;
  MtStr op;
  MtStr device;           /* the name of the kind: "cpu", "cuda" or that of an MtDevice */
  const MtDType *dtypes;  /* the dtype of each dtype variable of the op; none for a kernel that takes all */
  size_t n_dtypes;
  MtCallFn run;           /* receives arrays, as for MT_ARRAYS */
  const void *context;    /* passed to `run` as the context of the call */
} MtDeviceKernel;

/* ---- functions of the host ------------------------------------------------------------------------------------- */

/* An argument of `op_call`: a tensor, several tensors for a variadic input, or a value. */
typedef struct MtArg {
  MtTensor *tensor;         /* or null */
  MtTensor *const *tensors; /* or null */
  size_t n_tensors;
  MtValue value;            /* used if both pointers are null */
} MtArg;

/* Runs a part of a loop: the indices from `begin` to `end`, excluding `end`. */
typedef int32_t (*MtRangeFn)(void *context, int64_t begin, int64_t end, MtError *error) MT_NOEXCEPT;

typedef enum MtLevel { MT_DEBUG = 10, MT_INFO = 20, MT_WARNING = 30, MT_ERROR = 40 } MtLevel;

struct MtHost {
  size_t struct_size;
  uint32_t abi_major, abi_minor;
  MtStr version;          /* of minitensor */

  /* Registers an op. Call it only in `init`. Everything that `op` points to must stay valid while the library is mapped. */
  int32_t (*register_op)(const MtHost *host, const MtOp *op, MtError *error);
  /* Registers a device or a kernel, in the same way. They stay registered after the plugin is unloaded, because tensors and graphs
   * may use them. */
  int32_t (*register_device)(const MtHost *host, const MtDevice *device, MtError *error);
  int32_t (*register_kernel)(const MtHost *host, const MtDeviceKernel *kernel, MtError *error);
  /* The number of a kind of device, as in MtArray. To report an error, it sets the message and returns -1. */
  int32_t (*device_type)(MtStr name, MtError *error);
  /* The name of the kind of device with this number. Empty if there is none. */
  MtStr (*device_name)(int32_t device_type);

  /* Allocates uninitialized memory, aligned to 64 bytes. Returns null if it fails. */
  void *(*allocate)(size_t bytes);
  void (*release)(void *memory, size_t bytes);

  /* The number of threads that parallel loops use. */
  int32_t (*num_threads)(void);
  /* Calls `body` on several threads, with ranges of at least `grain` indices that partition 0..n. Stops at the first error and
   * returns it. A panic becomes MT_ERROR_RUNTIME. */
  int32_t (*parallel_for)(int64_t n, int64_t grain, MtRangeFn body, void *context, MtError *error);
  /* Returns MT_OK, or an error if the call has been interrupted, for example with Ctrl-C. Return that error. */
  int32_t (*check_interrupt)(MtError *error);
  /* Writes to the Python logger `minitensor.plugins`. Messages may be delayed until the end of the call. */
  void (*log)(uint32_t level, MtStr message);

  /* Creates a tensor of zeros on a device, as in MtArray. The caller owns it. */
  MtTensor *(*tensor_zeros)(MtDType dtype, int32_t ndim, const int64_t *shape, int32_t device_type, int32_t device_id,
                            MtError *error);
  MtTensor *(*tensor_retain)(const MtTensor *tensor);
  void (*tensor_release)(MtTensor *tensor);
  /* Describes the memory of a tensor. The result is valid while the tensor is retained. */
  MtArray (*tensor_array)(const MtTensor *tensor);

  /* Looks up an op by name. The caller owns the reference. */
  MtOpRef *(*op_find)(MtStr name, MtError *error);
  void (*op_release)(MtOpRef *op);
  /* Calls an op with positional and keyword arguments: tensors first, then attributes, as in Python. Stores the results in `outputs`;
   * the caller owns them. `n_outputs` is the capacity of `outputs` on entry, and the number of results on return. Gradients are
   * recorded. */
  int32_t (*op_call)(const MtOpRef *op, const MtArg *args, size_t n_args, const MtStr *names, const MtArg *keywords,
                     size_t n_keywords, MtTensor **outputs, size_t *n_outputs, MtError *error);
  /* Computes the vector-Jacobian product of a call with tensors only. Stores a gradient for each input, or null if it has none. */
  int32_t (*op_vjp)(const MtOpRef *op, MtTensor *const *inputs, size_t n_inputs, MtTensor *cotangent,
                    MtTensor **gradients, MtError *error);

  /* Since 1.1: as `tensor_array`, with a null `data`. Does not read the tensor: a call that only looks at layouts and calls ops can become
   * part of a graph, op by op. */
  MtArray (*tensor_layout)(const MtTensor *tensor);
};

/* ---- the plugin ------------------------------------------------------------------------------------------------ */

/* The texts are NUL-terminated. Set unused fields to zero. The host reads the constant from the file, so all fields before `init`
 * contain no pointers. */
typedef struct MtPlugin {
  uint64_t magic;              /* MT_MAGIC; the first four fields are the same in every ABI version */
  uint32_t abi_major;          /* MT_ABI_MAJOR */
  uint32_t abi_minor;          /* the minimum minor version */
  uint64_t struct_size;
  char name[64];
  char version[32];            /* "1.2.3" */
  char description[256];
  char author[128];
  char min_minitensor[32];     /* may be empty */
  char max_minitensor[32];     /* may be empty */
  char built_with[64];         /* "gcc 14.2" */
  /* Registers the ops. Called when the plugin is loaded, after the checks. If it fails, no op stays registered. */
  int32_t (*init)(const MtHost *host, MtError *error) MT_NOEXCEPT;
  /* Called when the plugin is unloaded; may be null. The library stays mapped, because graphs may still call its ops. If it fails,
   * the host issues a warning, and the plugin is removed nevertheless. */
  int32_t (*fini)(MtError *error) MT_NOEXCEPT;
} MtPlugin;

#if defined(_WIN32)
#define MT_EXPORT __declspec(dllexport)
#else
#define MT_EXPORT __attribute__((visibility("default")))
#endif

/* The exported symbol: `MT_EXPORT const MtPlugin minitensor_plugin = { .magic = MT_MAGIC, … };` */
extern MT_EXPORT const MtPlugin minitensor_plugin;

#if defined(__clang__)
#define MT_BUILT_WITH "clang " __clang_version__
#elif defined(__GNUC__)
#define MT_BUILT_WITH "gcc " __VERSION__
#else
#define MT_BUILT_WITH ""
#endif

/* ---- shorthands ------------------------------------------------------------------------------------------------ */

/* `.kernels = swish_kernels, .n_kernels = MT_COUNT(swish_kernels)` */
#define MT_COUNT(list) (sizeof(list) / sizeof *(list))

/* In C: `static const MtOp swish = { MT_OP("swish", "`x · sigmoid(x)`."), .inputs = x, … };` */
#define MT_OP(op_name, op_doc) \
  .struct_size = sizeof(MtOp), .name = MT_STR(op_name), .doc = MT_STR(op_doc), .since = 1, .line = __LINE__, .file = MT_STR(__FILE__)

/* In C: `MT_EXPORT const MtPlugin minitensor_plugin = { MT_PLUGIN("activations", "1.0.0"), .init = init };` */
#define MT_PLUGIN(plugin_name, plugin_version) \
  .magic = MT_MAGIC, .abi_major = MT_ABI_MAJOR, .abi_minor = 0, .struct_size = sizeof(MtPlugin), .name = plugin_name, \
  .version = plugin_version, .built_with = MT_BUILT_WITH

/* Borrows a NUL-terminated text. */
static inline MtStr mt_str(const char *text) {
  MtStr str = { text, strlen(text) };
  return str;
}

/* Sets the message of an error and returns its code:
 * `return mt_fail(error, MT_ERROR_VALUE, "takes at most %d rows, got %d", max_rows, rows);` */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static inline int32_t
mt_fail(MtError *error, MtCode code, const char *format, ...) {
  char message[1024];
  va_list values;
  va_start(values, format);
  vsnprintf(message, sizeof message, format, values);
  va_end(values);
  error->set(error->context, mt_str(message));
  return code;
}

#ifdef __cplusplus
}
#endif
#endif
