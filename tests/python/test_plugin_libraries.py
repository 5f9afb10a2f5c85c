"""Tests of loading shared libraries: valid plugins, and the errors for everything else."""

import os
import re
import shutil
import struct
import subprocess
import threading
from pathlib import Path

import pytest
from c_plugin import (
    CXX_SOURCE,
    INCLUDE,
    SOURCE,
    compiled,
    cxx_library,
    fill,
    library,
    loaded,
    needs_cxx,
    refuses,
    state,
)
from minitensor.plugins.registry import AlreadyLoaded

import minitensor as mt
from minitensor import plugins

pytestmark = pytest.mark.usefixtures("no_plugins_stay")


def test_a_library_is_loaded_used_and_unloaded():
    before = state()
    with loaded(library()) as info:
        assert (info.name, str(info.version), info.kind, info.ops) == ("faulty", "1.0.0", "library", ("probe",))
        assert info.path == str(library()) and plugins.list_plugins()[-1] == info
        assert mt.ops.probe(mt.Tensor([1.0, 2.0])).tolist() == [2.0, 4.0]
        assert mt.ops.describe("probe")["plugin"] == "faulty"
        assert mt.ops.describe("probe")["location"].endswith(".c:25")
        assert mt.testing.opcheck("probe").findings == []
    assert state() == before


# Files that are not plugins.


def damaged(change):
    """Returns a function that creates a library with modified bytes."""

    def make(folder):
        path = folder / "damaged.so"
        path.write_bytes(change(bytearray(library().read_bytes())))
        return path

    return make


def with_machine(data):
    """Changes the library to one for another CPU."""
    (machine,) = struct.unpack_from("<H", data, 18)
    struct.pack_into("<H", data, 18, 62 if machine == 183 else 183)
    return data


def named(name, content):
    def make(folder):
        (folder / name).write_text(content)
        return folder / name

    return make


def copied(source, kind):
    """Returns a function that compiles a source and names the output like a library."""

    def make(folder):
        return shutil.copy(compiled(source, kind), folder / "copied.so")

    return make


def folder_of_that_name(folder):
    (folder / "folder.so").mkdir()
    return folder / "folder.so"


OTHER = "int other(void) { return 1; }"
NO_PLUGINS = {
    "a missing file": (
        lambda folder: folder / "missing.so",
        FileNotFoundError,
        r"there is no plugin file '.*missing.so'; the working directory is /",
    ),
    "an empty file": (named("empty.so", ""), ValueError, "'.*empty.so' is empty"),
    "a text": (named("text.so", "Dear reader, " * 100), ValueError, "'.*text.so' is not a shared library"),
    "a short text": (named("text.so", "x"), ValueError, "'.*text.so' is not a shared library"),
    "a Python file": (named("py.so", "plugin = 3\n"), ValueError, "'.*py.so' is not a shared library"),
    "a kind of its own": (
        named("library.o", ""),
        ValueError,
        r"'.*library.o' is not a plugin; expected a file '\*.py', '\*.so', '\*.dylib', '\*.dll', or a folder with an",
    ),
    "a folder": (folder_of_that_name, ValueError, "'.*folder.so' is not a plugin; .* or a folder with an __init__.py"),
    "an object file": (
        copied(fill(SOURCE), "o"),
        ValueError,
        "'.*copied.so' is an object file; link it to a shared library first",
    ),
    "a program": (
        copied("int main(void) { return 0; }", "exe"),
        ValueError,
        "' is (an executable|not a minitensor plugin)",
    ),
    "a library for another processor": (
        damaged(with_machine),
        ValueError,
        r"'.*damaged.so' is a library for another processor \((aarch64|x86_64)\), but this is (x86_64|aarch64)",
    ),
    "a library that is no plugin": (
        copied(OTHER, "so"),
        ValueError,
        "'.*copied.so' is not a minitensor plugin: it has no symbol 'minitensor_plugin'; define this constant in C, or "
        "use `plugin! {}` in Rust; .* if another crate of the same build enables the feature `engine` of minitensor: "
        "build the plugin alone, with `cargo build -p NAME`",
    ),
    "a library that only uses the symbol": (
        copied("extern int minitensor_plugin; int *other(void) { return &minitensor_plugin; }", "so"),
        ValueError,
        "'.*copied.so' is not a minitensor plugin: it has no symbol",
    ),
    "a small symbol": (
        copied("const char minitensor_plugin[] = {77, 84, 80, 76, 85, 71, 73, 78};", "so"),
        ValueError,
        "'.*copied.so' (is damaged|is a plugin for the plugin ABI|is a plugin whose constant)",
    ),
}


@pytest.mark.parametrize(("make", "error", "words"), NO_PLUGINS.values(), ids=NO_PLUGINS)
def test_a_file_that_is_not_a_plugin_raises(tmp_path, make, error, words):
    refuses(make(tmp_path), error, words)


@pytest.mark.parametrize("part", [0.0, 0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0])
def test_a_truncated_library_raises(tmp_path, part):
    def cut(data):
        return data[: max(1, min(len(data) - 1, int(part * len(data))))]

    refuses(damaged(cut)(tmp_path), ValueError, "'.*damaged.so' is (not a shared library|truncated)")


def test_no_modified_byte_of_a_header_crashes_the_reader(tmp_path):
    good = library().read_bytes()
    for at in [*range(64), *range(64, 600, 7)]:
        data = bytearray(good)
        data[at] ^= 0xFF
        path = tmp_path / "flipped.so"
        path.write_bytes(data)
        try:
            mt._minitensor._inspect_library(path)
        except ValueError as error:
            assert str(path) in str(error)


# Constants with invalid fields.

HEADER = (INCLUDE / "minitensor_plugin.h").read_text()
ABI = ".".join(re.search(rf"MT_ABI_{part} (\d+)u", HEADER)[1] for part in ("MAJOR", "MINOR"))
UNENDED = "{[0 ... sizeof(((MtPlugin *)0)->%s) - 1] = 'a'}"
CONSTANTS = {
    ".magic = 7": "has a symbol 'minitensor_plugin' that is not the constant of a plugin",
    ".abi_major = 0": f"is a plugin for the plugin ABI 0.0, but this minitensor supports {ABI}; rebuild the plugin",
    ".abi_major = 2": f"is a plugin for the plugin ABI 2.0, but this minitensor supports {ABI}; upgrade minitensor",
    ".abi_minor = 99": f"is a plugin for the plugin ABI 1.99, but this minitensor supports {ABI}; upgrade minitensor",
    ".struct_size = 0": "declares a size of 0 bytes; the plugin ABI 1.0 expects at least 648",
    ".struct_size = sizeof(MtPlugin) - 8": "declares a size of 640 bytes; the plugin ABI 1.0 expects at least 648",
    ".struct_size = sizeof(MtPlugin) + 8": "declares a size of 656 bytes, but has 648 bytes",
    ".struct_size = ~0ull": "declares a size of 18446744073709551615 bytes; the plugin ABI 1.0 expects at least 648",
    '.name = ""': 'is a plugin named ""; a name must consist of letters, digits',
    '.name = "a b"': 'is a plugin named "a b"; a name must consist of letters, digits',
    '.name = "a\\0b"': "is a plugin whose name has data after its NUL",
    '.description = "a\\33[2Jb"': "is a plugin whose description contains a control character",
    '.name = "\\xff"': "is a plugin whose name is not valid UTF-8",
    '.description = "\\xc3"': "is a plugin whose description is not valid UTF-8",
    '.version = ""': "is plugin 'faulty', which has no version",
    '.version = "1.0"': "is plugin 'faulty', whose version is invalid: '1.0' is not a version; write three numbers",
    '.min_minitensor = "new"': "is plugin 'faulty', whose min_minitensor is invalid: 'new' is not a version;",
    **{
        f".{field} = {UNENDED % field}": f"is a plugin whose {field} does not end with a NUL"
        for field in ("name", "version", "description", "author", "min_minitensor", "max_minitensor", "built_with")
    },
}


@pytest.mark.parametrize(("fields", "words"), CONSTANTS.items(), ids=CONSTANTS)
def test_an_invalid_constant_raises(fields, words):
    path = library(plugin=fields)
    refuses(path, ValueError, re.escape(f"'{path}' {words}" if words.startswith(("is", "has")) else words))


UNSUPPORTED = {
    '.min_minitensor = "99.0.0"': "plugin 'faulty' 1.0.0 needs minitensor 99.0.0 or later, but this is minitensor ",
    '.max_minitensor = "0.0.1"': "plugin 'faulty' 1.0.0 supports minitensor up to 0.0.1, but this is minitensor ",
    '.min_minitensor = "0.0.1"': "plugin 'faulty' 1.0.0 supports minitensor 0.0.1 and compatible versions",
}


@pytest.mark.parametrize(("fields", "words"), UNSUPPORTED.items(), ids=UNSUPPORTED)
def test_versions_are_enforced_before_the_library_is_mapped(fields, words):
    path = library(plugin=fields)
    refuses(path, RuntimeError, words)
    with open("/proc/self/maps") as maps:
        assert str(path) not in maps.read()


def test_a_library_without_init_raises():
    refuses(library(plugin=".init = 0"), ValueError, "plugin 'faulty' has no init: the pointer is null")


def test_a_plugin_is_loaded_once():
    other = library(code="/* another file */")
    with loaded(library()) as info:
        words = re.escape(f"plugin 'faulty' is already registered as version 1.0.0 from '{info.path}'; unload it")
        for path in (library(), other):
            refuses(path, AlreadyLoaded, words)
    with loaded(other) as info:
        assert info.path == str(other)


def test_a_changed_library_is_not_mistaken_for_the_old_one(tmp_path):
    path = tmp_path / "changing.so"
    shutil.copy(library(), path)
    with loaded(path):
        pass
    with loaded(path):
        pass
    path.unlink()
    shutil.copy(library(code="/* built again */ int again(void) { return 1; } extern int again(void);"), path)
    refuses(path, ValueError, "' has changed since it was loaded, but a process loads a file only once; rename the")


def test_a_longer_constant_is_read_up_to_the_known_fields():
    grown = """MT_EXPORT const struct { MtPlugin known; uint64_t more[2]; } grown __asm__("minitensor_plugin") = {{"""
    source = fill(SOURCE, plugin=".struct_size = sizeof grown")
    source = source.replace("MT_EXPORT const MtPlugin minitensor_plugin = {", grown).replace(
        "grown};", "grown}, {1, 2}};"
    )
    with loaded(compiled(source)):
        assert mt.ops.probe(mt.Tensor([1.0])).item() == 2.0


def test_a_longer_table_is_read_up_to_the_known_fields():
    with loaded(library(op=".struct_size = sizeof(MtOp) + 64,")):
        assert mt.ops.probe(mt.Tensor([1.0])).item() == 2.0


# The function `init`.

INITS = {
    'return mt_fail(error, MT_ERROR_TYPE, "no %s today", "luck");': (TypeError, "plugin 'faulty': no luck today"),
    'return mt_fail(error, MT_ERROR_MEMORY, "none");': (MemoryError, "plugin 'faulty': none"),
    'return mt_fail(error, MT_ERROR_INDEX, "out");': (IndexError, "plugin 'faulty': out"),
    'return mt_fail(error, MT_ERROR_NOT_IMPLEMENTED, "later");': (NotImplementedError, "plugin 'faulty': later"),
    'return mt_fail(error, MT_PANIC, "boom");': (
        RuntimeError,
        "plugin 'faulty': the plugin panicked: boom; this is a bug in the plugin",
    ),
    "return MT_ERROR_VALUE;": (ValueError, "plugin 'faulty': the call failed without an error message"),
    "return -77;": (
        RuntimeError,
        r"the call failed without an error message \(the plugin returned the unknown error code -77",
    ),
    'mt_fail(error, 0, "first"); return mt_fail(error, MT_ERROR_VALUE, "second");': (ValueError, "'faulty': second"),
    'return mt_fail(error, MT_ERROR_VALUE, "not \\xff UTF-8");': (ValueError, "'faulty': not \ufffd UTF-8"),
    'static MtOp other; other = op; other.name = mt_str("square"); return host->register_op(host, &other, error);': (
        ValueError,
        r"plugin 'faulty': op 'square' is already registered: by ops/src/.*, and again by .*; rename one of them",
    ),
}


@pytest.mark.parametrize(("body", "expected"), INITS.items(), ids=INITS)
def test_an_init_that_fails_registers_nothing(body, expected):
    refuses(library(init=body), *expected)


def test_ops_registered_before_init_failed_are_removed():
    body = 'host->register_op(host, &op, error); return mt_fail(error, MT_ERROR_VALUE, "after all");'
    refuses(library(init=body), ValueError, "plugin 'faulty': after all")
    assert not mt.is_custom_op_registered_py("probe")


def test_an_op_of_another_plugin_is_not_adopted():
    with loaded(library()):
        other = library(plugin='.name = "other"')
        refuses(
            other,
            ValueError,
            "plugin 'other': op 'probe' is already registered: by .* of plugin 'faulty', and again by .* unload",
        )
        assert mt.ops.probe(mt.Tensor([1.0])).item() == 2.0


def test_two_ops_of_one_name_raise():
    body = "static MtOp twin; twin = op; if (host->register_op(host, &twin, error)) return 1;"
    refuses(library(init=body), ValueError, "op 'probe' is registered twice")


def test_a_table_may_be_registered_again():
    with loaded(library(init="if (host->register_op(host, &op, error)) return 1;")) as info:
        assert info.ops == ("probe",)


def test_ops_are_registered_only_in_init():
    kernel = """
    static const MtOp late;
    static int32_t register_late(const void *c, const MtValue *a, int64_t n, const void *const *in, void *const *out,
                                 MtError *error) {
      (void)c, (void)a, (void)n, (void)in, (void)out;
      return host->register_op(host, &late, error);
    }
    static const MtKernel late_kernels[] = {{.dtypes = {MT_FLOAT32}, .run.elements = register_late},
                                            {.dtypes = {MT_FLOAT64}, .run.elements = register_late}};
    """
    with loaded(library(code=kernel, op=".kernels = late_kernels,")):
        before = state()
        with pytest.raises(
            RuntimeError, match="op 'probe': ops can only be registered while the init of the plugin runs"
        ):
            mt.ops.probe(mt.Tensor([1.0]))
        assert state() == before


# C++.


@needs_cxx
@pytest.mark.parametrize(
    ("thrown", "error", "words"),
    [
        ('std::runtime_error("boom")', RuntimeError, "the plugin panicked: boom; this is a bug in the plugin"),
        ("17", RuntimeError, "the plugin panicked: an unknown exception; this is a bug in the plugin"),
        ("std::bad_alloc()", MemoryError, "there is not enough memory"),
        ('mt::Error(MT_ERROR_INDEX, "far out")', IndexError, "far out"),
    ],
)
def test_exceptions_of_cxx_become_errors(thrown, error, words):
    refuses(cxx_library(init=f"throw {thrown};"), error, f"plugin 'faulty': {words}")
    with loaded(cxx_library(run=f"throw {thrown};")), pytest.raises(error, match=f"op 'probe': {words}"):
        mt.ops.probe(mt.Tensor([1.0]))


@needs_cxx
@pytest.mark.parametrize("word", ['"tanh"', 'std::string_view("tanh")'])
def test_a_text_is_an_argument_in_cpp(word):
    run = """
      mt::Ops ops(call->host, error);
      call->give(call->sink, ops("gelu", {call->inputs[0]}, {{"approximate", WORD}}).give());
    """
    run = run.replace("WORD", word)
    with loaded(cxx_library(run=run)):
        x = mt.Tensor([0.5, -1.0])
        assert mt.ops.probe(x).tolist() == mt.ops.gelu(x, approximate="tanh").tolist() != mt.ops.gelu(x).tolist()


@needs_cxx
def test_a_fini_that_throws_is_reported_and_the_plugin_is_removed():
    before = state()
    plugins.load_plugin(cxx_library(fini='throw std::runtime_error("stuck");'))
    with pytest.warns(
        RuntimeWarning, match="the cleanup of plugin 'faulty' failed; the plugin is unloaded nevertheless: .*stuck"
    ):
        plugins.unload_plugin("faulty")
    assert state() == before


@needs_cxx
def test_the_headers_are_clean_in_later_standards():
    for standard in ("-std=c++17", "-std=c++20"):
        compiled(fill(CXX_SOURCE), flags=(standard, "-pedantic"), cxx=True)
    compiled(fill(SOURCE), flags=("-std=c17", "-pedantic"))


@needs_cxx
def test_an_unguarded_function_does_not_compile():
    with pytest.raises(SyntaxError, match="noexcept|invalid conversion|cannot convert|no matching"):
        cxx_library(guard="run")


# Threads.


def at_once(count, run):
    """Runs a function on several threads, and returns the result or exception of each."""
    barrier, results = threading.Barrier(count), [None] * count

    def thread(i):
        barrier.wait()
        try:
            results[i] = run(i)
        except Exception as error:
            results[i] = error

    threads = [threading.Thread(target=thread, args=(i,)) for i in range(count)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    return results


def test_one_of_many_threads_loads_a_plugin():
    results = at_once(8, lambda i: plugins.load_plugin(library()))
    errors = [r for r in results if isinstance(r, Exception)]
    assert len(errors) == 7 and all("is already registered" in str(e) for e in errors)
    assert mt.ops.probe(mt.Tensor([1.0])).item() == 2.0


def test_many_threads_load_plugins_of_their_own():
    paths = [library(plugin=f'.name = "p{i}"', op=f'.name = MT_STR("probe{i}"),') for i in range(8)]
    results = at_once(8, lambda i: plugins.load_plugin(paths[i]))
    assert [info.ops for info in results] == [(f"probe{i}",) for i in range(8)]
    for i in range(8):
        assert getattr(mt.ops, f"probe{i}")(mt.Tensor([1.0])).item() == 2.0


# The examples.

EXAMPLES = os.path.join(os.path.dirname(__file__), "..", "..", "examples")


@pytest.mark.parametrize("name", ["c_plugin", pytest.param("cpp_plugin", marks=needs_cxx)])
def test_every_op_of_the_examples_passes_opcheck(name):
    cxx = name == "cpp_plugin"
    with open(os.path.join(EXAMPLES, name, "plugin.cpp" if cxx else "plugin.c"), encoding="utf-8") as source:
        path = compiled(source.read(), flags=("-pedantic",) if cxx else ("-pedantic", "-lm"), cxx=cxx)
    with loaded(path) as info:
        assert len(info.ops) == (4 if cxx else 2)
        for op in info.ops:
            assert mt.testing.opcheck(op).findings == []
        x = mt.Tensor([4.0, 0.0])
        assert getattr(mt.ops, info.name).moving_average(x, decay=0.5).tolist() == [2.0, 1.0]


@pytest.mark.skipif(shutil.which("clang++") is None, reason="there is no clang")
@pytest.mark.parametrize("language", ["c", "cpp"])
def test_clang_builds_the_examples(tmp_path, language):
    folder = shutil.copytree(Path(__file__).parents[2] / "examples" / f"{language}_plugin", tmp_path / language)
    include = f"MINITENSOR_INCLUDE={INCLUDE}"
    subprocess.run(["make", "-B", "CC=clang", "CXX=clang++", include], cwd=folder, check=True, capture_output=True)
    [made] = folder.glob("*.so")
    info = plugins.load_plugin(made)
    assert all(mt.testing.opcheck(op).findings == [] for op in info.ops)
    plugins.unload_plugin(info.name)
