/* minitensor_plugin.h: what a shared library needs to bring ops to minitensor. C11 or C++17; nothing else is linked. For C++,
 * minitensor_plugin.hpp makes tables of less text, and guards functions.
 *
 * A plugin exports one constant, `minitensor_plugin`. The host reads it before it runs anything of the library. Then it calls
 * `init`, which hands over the ops, each a table of constants and functions. How to write one is told in docs/plugins-in-c.md.
 *
 * The promise
 * - Within one major version of the ABI, a plugin that was loaded is loaded by every later minitensor, without being compiled
 *   again. Nothing moves, and nothing changes its meaning.
 * - Tables grow at their end only, each time with a new minor version. Whoever fills a table says in `struct_size` how much of it
 *   he knows; who reads it takes what is missing as zero, which always means what it meant before.
 * - Tables without a `struct_size` never grow, as there are arrays of them. Numbers of enumerations are never given twice.
 * - A new major version is a new ABI: the host refuses plugins of another one, in a sentence that says which it speaks.
 *
 * Rules for all functions of a plugin
 * - What is handed in is lent until the function returns, but for tensors that are retained, and the host, which stays.
 * - 0 (`MT_OK`) is success. Anything else is a code of `MtCode`, with a sentence given to `error` before. The host puts the name
 *   of the op in front of it. A function of the host that fails has given its sentence: its code is returned, or any where it
 *   gives a null pointer.
 * - They may be called on any thread, on several at once, and while or after `fini` runs, as graphs keep ops alive.
 * - No exception may leave them. In C++ they are `noexcept`, which `mt::guarded<f>` makes of any; the Rust SDK catches all.
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
#define MT_ABI_MINOR 0u
#define MT_MAX_NDIM 32

/* ---- texts, errors --------------------------------------------------------------------------------------------- */

/* UTF-8; no NUL is needed at its end. All lengths have limits, and what is longer is refused: 255 bytes for a name, 4096 for a
 * path, 64 KiB for a clause, 1 MiB for documentation or a message, 16 MiB for an attribute, 64 MiB for a program. */
typedef struct MtStr {
  const char *data;
  size_t len;
} MtStr;
/* A literal: `.name = MT_STR("swish")`. */
#define MT_STR(literal) { (literal), sizeof(literal) - 1 }

/* What went wrong: the Python exception that it becomes. */
typedef enum MtCode {
  MT_OK = 0,
  MT_ERROR_TYPE = 1,             /* TypeError */
  MT_ERROR_VALUE = 2,            /* ValueError */
  MT_ERROR_INDEX = 3,            /* IndexError */
  MT_ERROR_MEMORY = 4,           /* MemoryError */
  MT_ERROR_RUNTIME = 5,          /* RuntimeError */
  MT_ERROR_NOT_IMPLEMENTED = 6,  /* NotImplementedError */
  MT_PANIC = 7                   /* RuntimeError, which says that the plugin has a fault */
} MtCode;

/* Takes the sentence that goes with a code; it is copied. May be given several: the last one counts. */
typedef struct MtError {
  size_t struct_size;
  void *context;
  void (*set)(void *context, MtStr message);
} MtError;

/* ---- values ---------------------------------------------------------------------------------------------------- */

/* DLPack's code, bits and lanes in one number, as they lie in memory. */
typedef uint32_t MtDType;
/* A byte: 0 is false, any other value is true. Read it as uint8_t: other threads may have written any value. */
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

/* What an attribute can be. */
typedef enum MtKind {
  MT_NONE = 0,    /* an optional attribute that isn't given */
  MT_KIND_BOOL = 1,
  MT_KIND_INT = 2,
  MT_KIND_SIZE = 3,    /* an integer of at least 0; its values are MT_KIND_INT */
  MT_KIND_FLOAT = 4,
  MT_KIND_STR = 5,
  MT_KIND_WORD = 6,    /* one of `words`; its values are MT_KIND_STR */
  MT_KIND_INTS = 7,
  MT_KIND_FLOATS = 8,
  MT_KIND_DTYPE = 9
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

/* Elements in memory; laid out as DLPack's DLTensor, so that a pointer to one is a pointer to the other. */
typedef struct MtArray {
  void *data;            /* null for a tensor of which only shape and dtype are known */
  int32_t device_type;   /* DLPack's: 1 is main memory */
  int32_t device_id;
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

/* A tensor of the host: memory, gradient and history, counted by those who hold it. */
typedef struct MtTensor MtTensor;
/* An op of the host. */
typedef struct MtOpRef MtOpRef;
typedef struct MtHost MtHost;

/* ---- what an op is --------------------------------------------------------------------------------------------- */

typedef enum MtArity { MT_ONE = 0, MT_OPTIONAL = 1, MT_VARIADIC = 2 } MtArity;

/* How a kernel of cells sees a core. */
typedef enum MtCore {
  MT_SCALAR = 0,  /* one element */
  MT_SLICE = 1,   /* contiguous: the host packs what isn't */
  MT_VIEW = 2     /* with strides */
} MtCore;

/* Which dtype an input must have, or an output gets. */
typedef enum MtDTypeRule {
  MT_GENERIC = 0, /* the dtype variable at `dtype_index`; inputs that share one are promoted to it */
  MT_FIXED = 1,   /* `dtype` */
  MT_FROM_ATTR = 2, /* the value of the attribute at `dtype_index`; outputs only */
  MT_ANY = 3      /* whatever comes; MT_ARRAYS and MT_TENSORS only */
} MtDTypeRule;

/* A dtype variable: inputs that share one have one dtype. */
typedef struct MtGeneric {
  MtStr name;
  const MtDType *dtypes; /* those that it can be */
  size_t n_dtypes;
} MtGeneric;

typedef struct MtInput {
  MtStr name;
  uint32_t arity;        /* MtArity; MT_VARIADIC only for the last one of MT_TENSORS */
  uint32_t core;         /* MtCore */
  uint32_t dtype_rule;   /* MtDTypeRule */
  uint32_t dtype_index;
  MtDType dtype;
  uint32_t is_mutated;   /* changed in place, by MT_ELEMENTS only: an output has `role` MT_MUTATES for it */
} MtInput;

typedef struct MtAttr {
  MtStr name;
  uint32_t kind;         /* MtKind */
  uint32_t is_optional;  /* whether MT_NONE is a value of it */
  uint32_t has_default;
  uint32_t reserved;
  MtValue value;         /* the default */
  const MtStr *words;    /* of MT_KIND_WORD */
  size_t n_words;
} MtAttr;

typedef enum MtRole {
  MT_RETURNED = 0,
  MT_SAVED = 1,     /* only the gradient gets it */
  MT_MUTATES = 2    /* it is the input at `input`, changed in place */
} MtRole;

typedef struct MtOutput {
  MtStr name;            /* one output of MT_TENSORS that is named "outs" stands for any number */
  uint32_t role;         /* MtRole */
  uint32_t input;
  uint32_t core;         /* MtCore */
  uint32_t dtype_rule;   /* MtDTypeRule */
  uint32_t dtype_index;
  MtDType dtype;
} MtOutput;

/* ---- kernels --------------------------------------------------------------------------------------------------- */

/* One element at a time: computes `n` elements, which lie one after the other. Inputs broadcast, have any layout and dtypes that
 * promote: the host sees to that, and to threads. Behind the op's own attributes follows a bool for each optional input: whether
 * it is given; one that isn't is zeros. */
typedef int32_t (*MtElementsFn)(const void *context, const MtValue *attrs, int64_t n, const void *const *inputs,
                                void *const *outputs, MtError *error) MT_NOEXCEPT;

/* The cores of one argument of a kernel of cells. */
typedef struct MtCell {
  void *data;             /* of the first core; null for an optional input that is absent, or an output that nobody wants */
  int64_t step;           /* bytes to the next core */
  uint64_t is_large;      /* whether all together are too large for the processor's cache */
  size_t ndim;            /* core dimensions */
  const size_t *shape;
  const ptrdiff_t *strides; /* in elements */
} MtCell;

/* One cell at a time: computes `cells` of them. The shape clause says what a cell is; the host loops over batches, on threads. */
typedef int32_t (*MtCellsFn)(const void *context, const MtValue *attrs, const MtCell *args, int64_t cells,
                             MtError *error) MT_NOEXCEPT;

/* A kernel for some dtypes. */
typedef struct MtKernel {
  MtDType dtypes[2];      /* one for each dtype variable; float16 and bfloat16 are computed as float32 */
  union {
    MtElementsFn elements;
    MtCellsFn cells;
  } run;
  const void *context;    /* handed to it */
} MtKernel;

/* A call of an op over whole tensors. */
typedef struct MtCall {
  size_t struct_size;
  const MtHost *host;
  const void *context;    /* the op's */
  int32_t n_inputs, n_attrs, n_outputs, reserved;
  const MtArray *const *input_arrays;   /* MT_ARRAYS: null where an optional input is absent */
  const MtArray *const *output_arrays;  /* MT_ARRAYS: contiguous, to be written */
  MtTensor *const *inputs;              /* MT_TENSORS: likewise */
  const MtValue *attrs;
  void *sink;
  void (*give)(void *sink, MtTensor *output); /* MT_TENSORS: called with each output in turn, which is the host's from then on */
} MtCall;
typedef int32_t (*MtCallFn)(const MtCall *call, MtError *error) MT_NOEXCEPT;

/* Gives shape and dtype of all outputs from those of the inputs; an absent one has ndim -1. */
typedef int32_t (*MtInferFn)(const void *context, const MtMeta *inputs, int32_t n_inputs, const MtValue *attrs,
                             int32_t n_attrs, MtMeta *outputs, int32_t n_outputs, MtError *error) MT_NOEXCEPT;

/* Gives the op's program as JSON for these attributes (behind which a bool for each optional input says whether it is given): it
 * calls `give(sink, json)` once. Inputs, uniforms and outputs have the names of the op's table, in its order. The program of
 * elements takes all inputs; its uniforms are the attributes of MT_KIND_FLOAT. The program of cells describes a row: each argument
 * is MT_SLICE with the dimension of the row, or MT_SCALAR with none. The former are its inputs; its uniforms are the latter, those
 * of a fixed dtype last, and then the attributes. */
typedef int32_t (*MtProgramFn)(const void *context, const MtValue *attrs, int32_t n_attrs, void *sink,
                               void (*give)(void *sink, MtStr json), MtError *error) MT_NOEXCEPT;

/* A call of a gradient that is written as a function. */
typedef struct MtGradient {
  size_t struct_size;
  const MtHost *host;
  const void *context;    /* the gradient's */
  int32_t n_inputs, n_attrs, n_outputs, n_dims;
  const MtMeta *input_metas;     /* as the gradient sees them; an absent one has ndim -1 */
  const MtMeta *output_metas;
  MtTensor *const *inputs;       /* null where it wasn't saved */
  MtTensor *const *outputs;      /* likewise */
  MtTensor *const *cotangents;   /* one for each output; null where it took no part, which means zeros */
  const uint8_t *needs;          /* for each input: whether its gradient is wanted */
  const MtValue *attrs;
  const MtStr *dim_names;        /* the named dimensions of the shape clause, */
  const int64_t *dims;           /* and their sizes */
  MtTensor **gradients;          /* one for each input, to be set where it is wanted; they are given to the host */
} MtGradient;
typedef int32_t (*MtGradientFn)(const MtGradient *call, MtError *error) MT_NOEXCEPT;

/* What a gradient is. */
typedef enum MtBackward {
  MT_NO_GRADIENT = 0,  /* differentiating raises, with the reason in `backward` */
  MT_NOT_NEEDED = 1,   /* no output can have one */
  MT_FORMULA = 2,      /* the text in `backward`: `|d| { x: d * cos(x) }` */
  MT_FROM_PROGRAM = 3, /* derived from the program, of any order */
  MT_VJP = 4,          /* the op `vjp`: it takes the cotangents of the outputs that can have one and aren't saved, then the inputs,
                          and the first of the op's attributes, or all; it gives the gradients of the inputs that `wrt`
                          lists */
  MT_GRADIENT_FN = 5,  /* the function `gradient` */
  MT_TRACED = 6        /* follows from the ops that an MT_TENSORS body calls */
} MtBackward;

typedef enum MtBody {
  MT_ELEMENTS = 1, /* `kernels`, or a program alone */
  MT_CELLS = 2,    /* `kernels`, `shape`; a program if each cell is a row */
  MT_ARRAYS = 3,   /* `call`, `infer` or `shape` */
  MT_TENSORS = 4   /* `call` */
} MtBody;

/* ---- an op ----------------------------------------------------------------------------------------------------- */

typedef struct MtOp {
  size_t struct_size;
  MtStr name;             /* "swish", "ns::swish" */
  MtStr doc;              /* Markdown; the first line is a sentence */
  const MtStr *aliases;
  size_t n_aliases;
  uint32_t since;         /* the version of the plugin that had it first */
  uint32_t line;          /* where it is defined */
  MtStr file;
  const MtInput *inputs;
  const MtAttr *attrs;
  const MtOutput *outputs;
  const MtGeneric *generics;
  int32_t n_inputs, n_attrs, n_outputs, n_generics;
  /* "(x: [.., n], k: [m]) -> [.., n] where m <= n", as in docs/defining-ops.md; empty for elements, which broadcast, and for
   * tensors, whose parts tell */
  MtStr shape;
  /* of cells: which attribute is `axis`, and which `keepdims`, counted from 1; 0 if there is none; whether several axes may be given */
  int32_t axis, keepdims, many_axes;
  uint32_t body;          /* MtBody */
  const void *context;    /* handed to `call`, `infer` and `program` */
  const MtKernel *kernels;
  size_t n_kernels;
  MtCallFn call;
  MtInferFn infer;
  MtProgramFn program;
  uint32_t backward_kind; /* MtBackward */
  uint32_t n_wrt;
  MtStr backward;
  const struct MtOp *vjp; /* need not be registered itself */
  const uint32_t *wrt;
  MtGradientFn gradient;
  const void *gradient_context;
  /* of `gradient`: the inputs and outputs that it gets, and the inputs that have no gradient */
  const uint32_t *saved_inputs, *saved_outputs, *without;
  uint32_t n_saved_inputs, n_saved_outputs, n_without, reserved;
  MtStr cuda;             /* reserved: CUDA C++ source */
} MtOp;

/* ---- what the host lends --------------------------------------------------------------------------------------- */

/* An argument of a call by name: a tensor, several for a variadic input, or a value. */
typedef struct MtArg {
  MtTensor *tensor;         /* or null */
  MtTensor *const *tensors; /* or null */
  size_t n_tensors;
  MtValue value;            /* where both are null */
} MtArg;

/* A part of a loop: the indices from `begin` up to `end`. */
typedef int32_t (*MtRangeFn)(void *context, int64_t begin, int64_t end, MtError *error) MT_NOEXCEPT;

typedef enum MtLevel { MT_DEBUG = 10, MT_INFO = 20, MT_WARNING = 30, MT_ERROR = 40 } MtLevel;

struct MtHost {
  size_t struct_size;
  uint32_t abi_major, abi_minor;
  MtStr version;          /* of minitensor */

  /* Hands an op over; in `init` only. All it points to must stay, as long as the library does. */
  int32_t (*register_op)(const MtHost *host, const MtOp *op, MtError *error);

  /* Memory for a kernel's own use, aligned to 64 bytes, not initialised; null if there is none. */
  void *(*allocate)(size_t bytes);
  void (*release)(void *memory, size_t bytes);

  /* How many threads loops run on. */
  int32_t (*num_threads)(void);
  /* Calls `body` with ranges that together are 0..n, of at least `grain` indices, on several threads; stops at the first that
   * doesn't give MT_OK, and gives its error; a panic comes out as MT_ERROR_RUNTIME. */
  int32_t (*parallel_for)(int64_t n, int64_t grain, MtRangeFn body, void *context, MtError *error);
  /* MT_OK unless the user wants to stop, by Ctrl-C for one; the error is then to be given back. */
  int32_t (*check_interrupt)(MtError *error);
  /* Writes to Python's logger `minitensor.plugins`; a message may wait until the call ends. */
  void (*log)(uint32_t level, MtStr message);

  /* A tensor, filled with zeros; with `is_meta` only its shape and dtype. Held by the caller. */
  MtTensor *(*tensor_zeros)(MtDType dtype, int32_t ndim, const int64_t *shape, uint32_t is_meta, MtError *error);
  MtTensor *(*tensor_retain)(const MtTensor *tensor);
  void (*tensor_release)(MtTensor *tensor);
  /* Its memory as it lies; valid as long as the tensor is held. */
  MtArray (*tensor_array)(const MtTensor *tensor);

  /* The op of that name, held by the caller. */
  MtOpRef *(*op_find)(MtStr name, MtError *error);
  void (*op_release)(MtOpRef *op);
  /* Calls it with positional arguments, then keywords: tensors first, then attributes, as in Python. Sets `outputs`, which are
   * held by the caller from then on; `n_outputs` is how many there is room for, and then how many there are. Gradients are
   * recorded. */
  int32_t (*op_call)(const MtOpRef *op, const MtArg *args, size_t n_args, const MtStr *names, const MtArg *keywords,
                     size_t n_keywords, MtTensor **outputs, size_t *n_outputs, MtError *error);
  /* The vector-Jacobian product of a call by tensors alone: a gradient for each input, or null where there is none. */
  int32_t (*op_vjp)(const MtOpRef *op, MtTensor *const *inputs, size_t n_inputs, MtTensor *cotangent,
                    MtTensor **gradients, MtError *error);
};

/* ---- the plugin ------------------------------------------------------------------------------------------------ */

/* Texts end with a NUL; what isn't used is zero. The constant is read from the file, so it holds no pointers before `init`. */
typedef struct MtPlugin {
  uint64_t magic;              /* MT_MAGIC; these four never move */
  uint32_t abi_major;          /* MT_ABI_MAJOR */
  uint32_t abi_minor;          /* the least that it needs */
  uint64_t struct_size;
  char name[64];
  char version[32];            /* "1.2.3" */
  char description[256];
  char author[128];
  char min_minitensor[32];     /* may be empty */
  char max_minitensor[32];     /* may be empty */
  char built_with[64];         /* "gcc 14.2" */
  /* Called when the plugin is loaded, after all has been checked: registers the ops. If it fails, none stays. */
  int32_t (*init)(const MtHost *host, MtError *error) MT_NOEXCEPT;
  /* Called when it is unloaded; may be null. The library stays mapped, and its ops may still be called by graphs. If it fails, the
   * user is warned, and the plugin is gone all the same. */
  int32_t (*fini)(MtError *error) MT_NOEXCEPT;
} MtPlugin;

#if defined(_WIN32)
#define MT_EXPORT __declspec(dllexport)
#else
#define MT_EXPORT __attribute__((visibility("default")))
#endif

/* The one symbol: `MT_EXPORT const MtPlugin minitensor_plugin = { .magic = MT_MAGIC, … };` */
extern MT_EXPORT const MtPlugin minitensor_plugin;

#if defined(__clang__)
#define MT_BUILT_WITH "clang " __clang_version__
#elif defined(__GNUC__)
#define MT_BUILT_WITH "gcc " __VERSION__
#else
#define MT_BUILT_WITH ""
#endif

/* ---- to write less --------------------------------------------------------------------------------------------- */

/* `.kernels = swish_kernels, .n_kernels = MT_COUNT(swish_kernels)` */
#define MT_COUNT(list) (sizeof(list) / sizeof *(list))

/* In C: `static const MtOp swish = { MT_OP("swish", "`x · sigmoid(x)`."), .inputs = x, … };` */
#define MT_OP(op_name, op_doc) \
  .struct_size = sizeof(MtOp), .name = MT_STR(op_name), .doc = MT_STR(op_doc), .since = 1, .line = __LINE__, .file = MT_STR(__FILE__)

/* In C: `MT_EXPORT const MtPlugin minitensor_plugin = { MT_PLUGIN("activations", "1.0.0"), .init = init };` */
#define MT_PLUGIN(plugin_name, plugin_version) \
  .magic = MT_MAGIC, .abi_major = MT_ABI_MAJOR, .abi_minor = 0, .struct_size = sizeof(MtPlugin), .name = plugin_name, \
  .version = plugin_version, .built_with = MT_BUILT_WITH

/* Lends a text that ends with a NUL. */
static inline MtStr mt_str(const char *text) {
  MtStr lent = { text, strlen(text) };
  return lent;
}

/* Fails: `return mt_fail(error, MT_ERROR_VALUE, "takes at most %d rows, got %d", most, rows);` */
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
