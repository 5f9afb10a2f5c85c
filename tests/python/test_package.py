"""Tests of the package as a whole: stubs, the command line, long calls, panics."""

import doctest
import importlib
import os
import pkgutil
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import minitensor as mt
from minitensor import _minitensor, _stubs

PACKAGE = Path(mt.__file__).parent


def test_the_committed_stubs_are_those_of_the_registry():
    for name, text in _stubs.FILES.items():
        assert (PACKAGE / name).read_text() == text(), f"{name} is old: run python -m minitensor stubs"


def test_the_package_is_typed():
    assert (PACKAGE / "py.typed").exists()
    declared = (PACKAGE / "_minitensor.pyi").read_text()
    for name in [n for n in dir(mt._minitensor) if not n.startswith("__") and n not in ("_DTYPES", "_rebuild")]:
        assert f"def {name}(" in declared or f"class {name}" in declared or f"{name}: DType" in declared, name


def test_every_public_name_is_there_and_documented():
    for name in mt.__all__:
        assert getattr(mt, name, mt) is not mt, name
    for name in mt.__all__:
        value = getattr(mt, name)
        if callable(value):
            assert value.__doc__, name


MODULES = [m.name for m in pkgutil.walk_packages(mt.__path__, "minitensor.") if "__main__" not in m.name]


#: The frameworks that modules of these names need.
FRAMEWORKS = {name: name for name in ("torch", "jax", "dask", "cubed", "xarray", "onnx")} | {"torch_ir": "torch"}


@pytest.mark.parametrize("name", ["minitensor", *MODULES])
def test_the_examples_in_docstrings_run(name):
    for framework in FRAMEWORKS.keys() & set(name.split(".")):
        pytest.importorskip(FRAMEWORKS[framework])
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_the_command_line_shows_what_is_installed():
    out = subprocess.run([sys.executable, "-m", "minitensor"], capture_output=True, text=True, check=True).stdout
    assert f"minitensor {mt.__version__}" in out
    assert f"ops        {len(mt.list_custom_ops_py())}" in out
    wrong = subprocess.run(
        [sys.executable, "-m", "minitensor", "nonsense"], capture_output=True, text=True, check=False
    )
    assert wrong.returncode == 2


def _run_at(level: str) -> subprocess.CompletedProcess[str]:
    """Runs a new interpreter in which `MINITENSOR_SIMD` selects the level."""
    code = "import minitensor as mt; print(mt.simd_level(), mt.ops.exp(mt.zeros(40)).sum().item())"
    variables = os.environ | {"MINITENSOR_SIMD": level}
    return subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=False)


def test_a_variable_names_the_simd_level():
    assert mt.simd_level() in mt.simd_levels()
    for level in mt.simd_levels():
        assert _run_at(level).stdout == f"{level} 40.0\n"
    assert _run_at("").stdout == f"{mt.simd_levels()[-1]} 40.0\n"


def test_an_unknown_simd_level_is_an_error_that_names_the_levels():
    result = _run_at("sse9")
    assert result.returncode != 0
    assert 'ImportError: the environment variable MINITENSOR_SIMD is "sse9"' in result.stderr
    assert ", ".join(mt.simd_levels()) in result.stderr


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
@pytest.mark.parametrize("call", ["mt.ops.softmax(x)", "[mt.ops.sin(x) for _ in range(1000)]"])
def test_ctrl_c_stops_a_long_call(call):
    # A background job may inherit an ignored signal.
    code = f"""
import signal, minitensor as mt
signal.signal(signal.SIGINT, signal.default_int_handler)
mt.set_num_threads(1)
x = mt.zeros((2000, 20000))
try:
    print("ready", flush=True)
    while True:
        {call}
except KeyboardInterrupt:
    print("stopped", mt.ops.exp(mt.zeros(1)).item())
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=300)
        finally:
            process.kill()
    assert out == "stopped 1.0\n"


def test_large_blocks_are_reused_and_returned_to_the_system():
    mt.empty_cache()
    assert mt.memory_stats()["cached"] == 0
    held = mt.memory_stats()["allocated"]
    x = mt.ones(1 << 20)
    assert mt.memory_stats()["allocated"] == held + (4 << 20)
    where = x.numpy().ctypes.data
    del x
    stats = mt.memory_stats()
    assert (stats["allocated"], stats["cached"]) == (held, 4 << 20)
    x = mt.zeros(1 << 20)
    assert x.numpy().ctypes.data == where
    assert not x.numpy().any()
    assert mt.memory_stats()["cached"] == 0
    del x
    mt.empty_cache()
    assert mt.memory_stats()["cached"] == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda: mt.ops.sin(mt.zeros(1).expand(1 << 23)),
        lambda: mt.full(1 << 23, 2.0),
        lambda: mt.ones_like(mt.zeros(1).expand(1 << 23)),
        lambda: mt.eye(1 << 12),
        lambda: mt.randn(1 << 23),
        lambda: mt.arange(1 << 23),
        lambda: mt.linspace(0, 1, 1 << 23),
        lambda: mt.randint(9, 1 << 23),
    ],
    ids=["sin", "full", "ones_like", "eye", "randn", "arange", "linspace", "randint"],
)
def test_other_threads_run_during_a_long_call(call):
    ticks, done = 0, False

    def tick():
        nonlocal ticks
        while not done:
            ticks += 1
            time.sleep(0)

    thread = threading.Thread(target=tick)
    thread.start()
    # Threads alternate only if one of them releases the GIL.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        for _ in range(1000):
            before = ticks
            call()
            if ticks > before:
                break
        else:
            pytest.fail("no other thread ran during any call")
    finally:
        sys.setswitchinterval(interval)
        done = True
        thread.join()


def test_the_example_in_the_docs_of_opcheck_finds_nothing():
    report = mt.testing.opcheck(mt.ops.add)
    assert (report.op, report.findings) == ("add", [])
    assert report.samples > 0
    assert "0 findings" in str(report)
    with pytest.raises(TypeError, match="opcheck takes an op"):
        mt.testing.opcheck(len)


@pytest.mark.usefixtures("registered")
def test_opcheck_finds_a_planted_fault():
    @mt.custom_op(name="faulty", backward=lambda ctx, g: g * 3)
    def faulty(x):
        return x * 2

    with pytest.raises(RuntimeError, match="gradient"):
        mt.testing.opcheck(faulty, mt.Tensor([1.0, 2.0], dtype="float64"))


def test_gradcheck_finds_a_wrong_gradient_and_refuses_float32():
    with pytest.raises(ValueError, match="float64"):
        mt.testing.gradcheck(mt.ops.exp, mt.zeros(1))
    with pytest.raises(RuntimeError, match="gradient"):
        mt.testing.gradcheck(lambda x: x * x.detach(), mt.Tensor([1.0, 2.0], dtype="float64"))


@pytest.mark.parametrize("command", [["ops"], ["--help"], ["plugins"], []], ids=str)
def test_a_command_whose_reader_closes_early_prints_no_error(command):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        done = subprocess.run(
            [sys.executable, "-m", "minitensor", *command], stdout=pipe, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (0, "")


def test_samples_are_calls_that_the_op_accepts():
    from minitensor._minitensor import _samples

    for name in ("layer_norm", "clamp", "concat", "add_"):
        for inputs, attrs in _samples(name):
            parameters = [*mt.ops.describe(name)["inputs"]]
            assert len(inputs) == len(parameters)
            getattr(mt.ops, name)(*inputs, **attrs)
    x = mt.Tensor([1.0])
    [([parts], attrs)] = _samples("concat", ([x, x],), {"axis": -1})
    assert [type(t) for t in parts] == [mt.Tensor, mt.Tensor] and attrs == {"axis": -1}
    with pytest.raises(TypeError, match="no argument 'axes'"):
        _samples("concat", ([x, x],), {"axes": 0})


@pytest.mark.skipif(
    sys.platform != "linux", reason="only glibc reserves a fixed size for libraries that are loaded later"
)
def test_the_library_fits_the_thread_local_memory_of_glibc():
    # glibc reserves 1,664 bytes for all libraries that are loaded after the start and have such variables.
    data = Path(_minitensor.__file__).read_bytes()
    (offset,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    headers = [struct.unpack_from("<IIQQQQQQ", data, offset + k * size) for k in range(count)]
    assert sum(header[6] for header in headers if header[0] == 7) < 1400
