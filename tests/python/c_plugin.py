"""Plugins in C and C++ for tests. A test replaces parts of one common source."""

import contextlib
import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

import minitensor as mt
from minitensor import plugins

INCLUDE = Path(__file__).parents[2] / "plugin-sdk" / "include"
CC = os.environ.get("CC", "cc").split()
CXX = os.environ.get("CXX", "c++").split()

# Compiler options for C and C++. Tests override a field by initializing it twice.
STRICT = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-const-variable"]
WARNINGS = [[*STRICT, "-Wno-override-init"], STRICT]

needs_cxx = pytest.mark.skipif(shutil.which(CXX[0]) is None, reason="there is no C++ compiler")

# The op `probe` doubles its input. Words between @ are placeholders.
SOURCE = """
#include <minitensor_plugin.h>

static const MtHost *host;
static const MtDType floats[] = {MT_FLOAT32, MT_FLOAT64};
static const MtGeneric generics[] = {{MT_STR("T"), floats, 2}};
static const MtInput inputs[] = {{.name = MT_STR("x")}};
static const MtOutput outputs[] = {{.name = MT_STR("out")}};
#define KERNEL(name, T) \\
  static int32_t name(const void *context, const MtValue *attrs, int64_t n, const void *const *in, void *const *out, \\
                      MtError *error) { \\
    (void)context, (void)attrs, (void)error; \\
    const T *x = in[0]; \\
    for (int64_t i = 0; i < n; i++) ((T *)out[0])[i] = 2 * x[i]; \\
    return MT_OK; \\
  }
KERNEL(kernel_f32, float)
KERNEL(kernel_f64, double)
static const MtKernel kernels[] = {
  {.dtypes = {MT_FLOAT32}, .run.elements = kernel_f32},
  {.dtypes = {MT_FLOAT64}, .run.elements = kernel_f64},
};
@code@
static const MtOp op = {
  MT_OP("probe", "Twice `x`."),
  .inputs = inputs, .n_inputs = 1, .outputs = outputs, .n_outputs = 1, .generics = generics, .n_generics = 1,
  .body = MT_ELEMENTS, .kernels = kernels, .n_kernels = 2,
  .backward_kind = MT_FORMULA, .backward = MT_STR("|d| { x: d * 2.0 }"),
  @op@
};
static int32_t init(const MtHost *given, MtError *error) {
  host = given;
  @init@
  return host->register_op(host, &op, error);
}
MT_EXPORT const MtPlugin minitensor_plugin = {MT_PLUGIN("faulty", "1.0.0"), .init = init, @plugin@};
"""

# One op for each kind of body; tests change its table.
CELLS = """
static int32_t cells(const void *context, const MtValue *attrs, const MtCell *args, int64_t n, MtError *error) {
  (void)context, (void)attrs, (void)args, (void)n, (void)error;
  return MT_OK;
}
static const MtKernel cell_kernels[] = {{.dtypes = {MT_FLOAT32}, .run.cells = cells},
                                        {.dtypes = {MT_FLOAT64}, .run.cells = cells}};
"""
CALL = """
#define UNUSED __attribute__((unused))
UNUSED static int32_t call(const MtCall *call, MtError *error) {
  (void)call, (void)error;
  CALL
  return MT_OK;
}
UNUSED static int32_t infer(const void *context, const MtMeta *inputs, int32_t n_inputs, const MtValue *attrs,
                            int32_t n_attrs, MtMeta *outputs, int32_t n_outputs, MtError *error) {
  (void)context, (void)n_inputs, (void)attrs, (void)n_attrs, (void)n_outputs, (void)error;
  outputs[0] = inputs[0];
  INFER
  return MT_OK;
}
"""
ARRAYS = ".body = MT_ARRAYS, .call = call, .infer = infer, .backward_kind = MT_NOT_NEEDED,"
TENSORS = ".body = MT_TENSORS, .call = call, .backward_kind = MT_COMPOSITE,"


def bodies(call="", infer=""):
    return CALL.replace("CALL", call).replace("INFER", infer)


# The same plugin in C++. Its op is over tensors and calls `run`.
CXX_SOURCE = """
#include <minitensor_plugin.hpp>

constexpr MtInput inputs[] = {mt::input("x", MT_ANY)};
constexpr MtOutput outputs[] = {mt::output("out", MT_ANY)};
int32_t run(const MtCall *call, MtError *error) {
  (void)call, (void)error;
  @run@
  return MT_OK;
}
constexpr MtOp op = mt::Op("probe", "What `run` does.").inputs(inputs).outputs(outputs).tensors(@guard@);
int32_t init(const MtHost *host, MtError *error) {
  @init@
  mt::register_ops(host, {&op}, error);
  return MT_OK;
}
int32_t fini(MtError *error) {
  (void)error;
  @fini@
  return MT_OK;
}
constexpr MtPlugin minitensor_plugin =
    mt::Plugin("faulty", "1.0.0", mt::guarded<init>).on_unload(mt::guarded<fini>);
"""


def fill(template: str, **parts: str) -> str:
    for name, text in parts.items():
        assert f"@{name}@" in template, name
        template = template.replace(f"@{name}@", text)
    for name in ("code", "op", "init", "plugin", "run", "fini"):
        template = template.replace(f"@{name}@", "")
    return template.replace("@guard@", "mt::guarded<run>")


@functools.cache
def compiled(source: str, kind: str = "so", flags: tuple[str, ...] = (), cxx: bool = False) -> Path:
    """Compiles a source to a new file."""
    folder = Path(_folder().name)
    number = len(list(folder.iterdir()))
    text = folder / f"source{number}.{'cpp' if cxx else 'c'}"
    text.write_text(source, encoding="utf-8")
    made = text.with_suffix(f".{kind}")
    command = [*CXX, "-std=c++17"] if cxx else [*CC, "-std=c11"]
    how = {"so": ["-shared", "-fPIC", *WARNINGS[cxx]], "o": ["-c"], "exe": []}[kind]
    command += [*how, f"-I{INCLUDE}", "-o", str(made), str(text), *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SyntaxError(done.stderr)
    return made


@functools.cache
def _folder() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="minitensor-plugins-")


def library(**parts: str) -> Path:
    """Builds `SOURCE` with some parts replaced."""
    return compiled(fill(SOURCE, **parts))


def cxx_library(**parts: str) -> Path:
    """Builds `CXX_SOURCE` with some parts replaced."""
    return compiled(fill(CXX_SOURCE, **parts), cxx=True)


def state() -> tuple[list[str], list[plugins.PluginInfo]]:
    """Returns the names of all ops and plugins."""
    return mt.list_custom_ops_py(), plugins.list_plugins()


def alone(words):
    """Returns the message about the only op of a faulty library."""
    return f"plugin 'faulty': op 'probe': {words}"


def refuses(path: object, error: type[Exception], words: str) -> None:
    """Asserts that loading a file raises and changes nothing."""
    before = state()
    with pytest.raises(error, match=words) as raised:
        plugins.load_plugin(path)
    assert type(raised.value) is error
    assert state() == before


@contextlib.contextmanager
def loaded(path: Path):
    """Loads a plugin during a block."""
    info = plugins.load_plugin(path)
    try:
        yield info
    finally:
        if plugins.is_plugin_loaded(info.name):
            plugins.unload_plugin(info.name)
