"""Tests of the plugin `examples/rust_plugin`, with the snippets of its document."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from minitensor.__main__ import main

import minitensor as mt
from minitensor import plugins

EXAMPLE = Path(__file__).parents[2] / "examples" / "rust_plugin"
#: Use installed compilers only; do not download others.
ENVIRONMENT = os.environ | {"RUSTUP_AUTO_INSTALL": "0"}
CARGO = os.environ.get("CARGO") or shutil.which("cargo")

pytestmark = [
    pytest.mark.skipif(CARGO is None, reason="there is no cargo to build it with"),
    pytest.mark.usefixtures("registered", "no_plugins_stay"),
]


def build(*toolchain: str, folder: Path = EXAMPLE, target: Path, name: str = "rust_plugin_example") -> Path:
    """Builds the library of a crate as its README describes, optionally with another toolchain."""
    if not (folder / "Cargo.lock").exists():
        shutil.copy(EXAMPLE.parents[1] / "Cargo.lock", folder)
    # The variables that cargo sets for tests must not reach another build.
    environment = {k: v for k, v in ENVIRONMENT.items() if not k.startswith("CARGO") or k == "CARGO_HOME"}
    command = ["cargo", *toolchain] if toolchain else [str(CARGO)]
    done = subprocess.run(
        [*command, "build", "--release", "--quiet", "--target-dir", target],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return target / "release" / f"lib{name}.so"


@pytest.fixture(scope="module")
def library():
    return build(target=EXAMPLE / "target")


def test_snippets_of_the_document(library, monkeypatch, capfd):
    monkeypatch.chdir(EXAMPLE)

    # Load the plugin (requires dynamic-loading feature)
    plugins.load_plugin("./target/release/librust_plugin_example.so")

    # Check if loaded
    if plugins.is_plugin_loaded("rust_example_plugin"):
        print("Plugin loaded successfully!")

    # List plugin info
    info = plugins.get_plugin_info("rust_example_plugin")
    print(f"Plugin: {info.name} v{info.version}")
    print(f"Author: {info.author}")
    print(f"Description: {info.description}")

    # Create test tensor
    x = mt.tensor([-2.0, -1.0, 0.0, 1.0, 2.0])

    # Use absolute value operation
    abs_result = mt.execute_custom_op("rust_abs", [x])
    print(f"abs({x}) = {abs_result}")

    # Use clamp operation
    min_val = mt.tensor([-1.0])
    max_val = mt.tensor([1.0])
    clamp_result = mt.execute_custom_op("rust_clamp", [x, min_val, max_val])
    print(f"clamp({x}, -1, 1) = {clamp_result}")

    # Use GELU activation
    gelu_result = mt.execute_custom_op("rust_gelu", [x])
    print(f"gelu({x}) = {gelu_result}")

    # Unload when done
    plugins.unload_plugin("rust_example_plugin")

    said = capfd.readouterr().out
    assert "Rust plugin initialized!" in said and "Rust plugin cleaned up!" in said
    assert "Plugin: rust_example_plugin v1.0.0\nAuthor: Rust Developer\nDescription: Example Rust plugin\n" in said
    assert abs_result.tolist() == [2, 1, 0, 1, 2]
    assert clamp_result.tolist() == [-1, -1, 0, 1, 1]
    np.testing.assert_array_equal(gelu_result, mt.ops.gelu(x))


def test_its_ops_behave_like_built_in_ops(library):
    info = plugins.load_plugin(library)
    ops = (
        "rust_abs",
        "rust_clamp",
        "rust_gelu",
        "given::rust_noise",
        "rust_noise",
        "given::rust_resonance",
        "rust_resonance",
        "given::rust_spectrum",
        "rust_spectrum",
        "rust_hypotenuse",
        "rust_transpose",
        "rust_soft_dtw",
    )
    assert sorted(info.ops) == sorted((*ops, "rust_attention", "rust_squares"))
    assert info.kind == "library" and info.path == str(library)
    for op in info.ops:
        mt.testing.opcheck(op)
        described = mt.ops.describe(op)
        assert described["plugin"] == "rust_example_plugin"
        assert described["location"].startswith("src/lib.rs:")
    assert mt.ops.describe("rust_gelu")["program"] == "out = x * normal_cdf(x)"
    plugins.unload_plugin("rust_example_plugin")


def test_a_tuned_attribute_is_measured(library):
    plugins.load_plugin(library)
    x = mt.arange(60.0).reshape(5, 12)
    for arguments in ({}, {"tile": 8}, {"tile": 128}):
        np.testing.assert_array_equal(mt.ops.rust_transpose(x, **arguments), x.T)
    start = "rust_transpose(float32[8, 16]; tile=8|32|128; "
    assert len([name for name in mt.tuning.choices() if name.startswith(start)]) == 1
    with pytest.raises(ValueError, match="attribute 'tile' takes one of 8, 32, 128 or None, got 9"):
        mt.ops.rust_transpose(x, tile=9)
    plugins.unload_plugin("rust_example_plugin")


def test_a_definition_asks_for_positions_and_random_numbers(library):
    plugins.load_plugin(library)
    x, key = mt.Tensor(np.linspace(-1, 1, 12).reshape(3, 4), requires_grad=True), mt.Tensor([5, 0], dtype=mt.uint64)
    at = np.arange(4.0)
    for dtype in (mt.float64, mt.float32, mt.bfloat16):
        xs = x.astype(dtype)
        drawn = np.asarray(mt.ops.random.uniform(key, [3, 4], dtype=mt.float64 if dtype == mt.float64 else mt.float32))
        expected = np.asarray(xs.detach().astype(mt.float64)) + 0.5 * drawn * at / (1 + at)
        result = mt.ops.rust_noise(xs, key, width=0.5)
        tolerance = {mt.float64: 1e-15, mt.float32: 1e-6, mt.bfloat16: 1e-2}[dtype]
        assert result.dtype == dtype
        np.testing.assert_allclose(np.asarray(result.detach().astype(mt.float64)), expected, atol=tolerance)
    mt.ops.rust_noise(x, key).sum().backward()
    np.testing.assert_array_equal(np.asarray(x.grad), np.ones((3, 4)))
    # Without a key, each call draws other numbers, also in a graph.
    jitted = mt.jit(lambda x: mt.ops.rust_noise(x))
    x = x.detach()
    mt.manual_seed(1)
    eager = [mt.ops.rust_noise(x).tolist() for _ in range(3)]
    mt.manual_seed(1)
    assert [jitted(x).tolist() for _ in range(3)] == eager and eager[0] != eager[1]
    plugins.unload_plugin("rust_example_plugin")


def test_an_op_has_complex_and_real_numbers(library):
    plugins.load_plugin(library)
    rng = np.random.default_rng(3)
    force, omega = rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4)), rng.uniform(0.5, 2, 4)

    def response(force, omega):
        return force / (1 - omega**2 + 0.5j * omega)

    for dtype, real, tolerance in ((np.complex128, mt.float64, 1e-14), (np.complex64, mt.float32, 1e-5)):
        out, size = mt.ops.rust_resonance(mt.Tensor(force.astype(dtype)), mt.Tensor(omega).astype(real), damping=0.5)
        assert (out.dtype.name, size.dtype) == (np.dtype(dtype).name, real)
        np.testing.assert_allclose(out.numpy(), response(force, omega), rtol=tolerance)
        np.testing.assert_allclose(size.numpy(), np.abs(response(force, omega)), rtol=tolerance)
    with pytest.raises(TypeError, match="'omega' takes float32, float64, got float16"):
        mt.ops.rust_resonance(mt.Tensor(force), mt.Tensor(omega).astype(mt.float16))
    z, x = mt.Tensor(force, requires_grad=True), mt.Tensor(omega, requires_grad=True)
    for k in range(2):
        mt.testing.gradcheck(lambda z, x, k=k: mt.ops.rust_resonance(z, x, damping=0.5)[k], [z, x])
    # As in PyTorch, the gradient is the derivative by the real part, plus i times that by the imaginary part.
    (gradient,) = mt.grad(mt.ops.rust_resonance(z, x, damping=0.5)[1].sum(), z)
    step = 1e-6
    by_parts = [
        (np.abs(response(force + h, omega)) - np.abs(response(force - h, omega))) / (2 * step)
        for h in (step, 1j * step)
    ]
    np.testing.assert_allclose(gradient.numpy(), by_parts[0] + 1j * by_parts[1], rtol=1e-6, atol=1e-8)
    z, x = z.detach(), x.detach()
    jitted = mt.jit(lambda z, x: mt.ops.rust_resonance(z, x)[0] * 2)
    np.testing.assert_array_equal(jitted(z, x).numpy(), 2 * mt.ops.rust_resonance(z, x)[0].numpy())
    plugins.unload_plugin("rust_example_plugin")


def test_rows_of_complex_numbers_lie_along_any_axis(library):
    plugins.load_plugin(library)
    rng = np.random.default_rng(4)
    values = rng.normal(size=(3, 4, 2)) + 1j * rng.normal(size=(3, 4, 2))
    for axis in (0, 1, -1):
        power = (np.abs(values) ** 2).sum(axis, keepdims=True)
        out, of_out = mt.ops.rust_spectrum(mt.Tensor(values), axis=axis, keepdims=True)
        np.testing.assert_allclose(of_out.numpy(), power, rtol=1e-14)
        np.testing.assert_allclose(out.numpy(), values / np.sqrt(power), rtol=1e-14)
        z = mt.Tensor(values, requires_grad=True)
        mt.testing.gradcheck(lambda z, axis=axis: mt.ops.rust_spectrum(z, axis=axis)[0], [z])
    with pytest.raises(IndexError, match="'rust_spectrum': axis 3 is out of range"):
        mt.ops.rust_spectrum(mt.Tensor(values), axis=3)
    several = mt.vmap(lambda z: mt.ops.rust_spectrum(z, axis=0)[1])(mt.Tensor(values))
    np.testing.assert_allclose(several.numpy(), (np.abs(values) ** 2).sum(1), rtol=1e-14)
    plugins.unload_plugin("rust_example_plugin")


def test_gradients_of_any_order(library):
    plugins.load_plugin(library)
    x = mt.Tensor([-1.5, 0.3, 2.0], dtype="float64", requires_grad=True)
    ours, theirs = mt.ops.rust_gelu(x).sum(), mt.ops.gelu(x).sum()
    for _ in range(3):
        ours, theirs = (mt.grad(y, x, create_graph=True)[0].sum() for y in (ours, theirs))
        np.testing.assert_allclose(ours.item(), theirs.item(), rtol=1e-12)
    plugins.unload_plugin("rust_example_plugin")


def test_the_gradient_of_a_cell_is_derived_in_the_plugin(library):
    plugins.load_plugin(library)
    d = mt.Tensor(np.random.default_rng(0).random((70, 3, 4)), requires_grad=True)
    mt.testing.gradcheck(mt.ops.rust_soft_dtw, [d])
    (alignment,) = mt.grad(mt.ops.rust_soft_dtw(d).sum(), d)
    # Every path contains both ends.
    np.testing.assert_allclose(alignment.numpy()[:, [0, -1], [0, -1]], 1, rtol=1e-12)
    plugins.unload_plugin("rust_example_plugin")


def test_ops_of_the_plugin_become_parts_of_a_graph(library):
    plugins.load_plugin(library)
    rng = np.random.default_rng(1)

    def tensors():
        return [mt.Tensor(rng.standard_normal((2, 4, 4)), requires_grad=True) for _ in range(3)]

    def loss(query, key, value):
        result = (mt.ops.rust_attention(query, key, value) * mt.ops.rust_transpose(value, tile=8)).sum()
        return result, *mt.grad(result, [query, key, value])

    graph = mt.jit(loss)
    graph(*tensors())
    other = tensors()
    for expected, actual in zip(loss(*other), graph(*other), strict=True):
        np.testing.assert_array_equal(actual.detach(), expected.detach())
    ops = graph.graphs[0].ops
    assert "softmax" in ops and not any("attention" in op or "gradient" in op for op in ops)
    plugins.unload_plugin("rust_example_plugin")


#: Ops that panic for some arguments.
PANICKING = """
use minitensor_plugin_sdk::prelude::*;

/// The second element.
#[custom_op(name = "panicking::second", shape = (x: [.., n]) -> [..])]
pub fn second<T: Float>(x: &[T], out: &mut T) {
    *out = x[1];
}

/// The sum of products.
#[custom_op(name = "panicking::weighted", shape = (x: [.., n], w: [.., n]) -> [..], backward = none)]
pub fn weighted<T: Float>(x: &[T], w: Option<&[T]>, out: &mut T) {
    let w = w.unwrap();
    *out = x.iter().zip(w).fold(T::zero(), |sum, (x, w)| sum + *x * *w);
}

minitensor_plugin_sdk::plugin! {}
"""


@pytest.fixture
def panicking(library, tmp_path):
    """A plugin whose ops panic. It shares the built dependencies of the example."""
    shutil.copytree(EXAMPLE, tmp_path / "panicking", ignore=shutil.ignore_patterns("target", "tests"))
    folder = tmp_path / "panicking"
    manifest, code = folder / "Cargo.toml", folder / "src" / "lib.rs"
    text = manifest.read_text().replace("../..", str(EXAMPLE.parents[1])).replace("rust_plugin_example", "panicking")
    manifest.write_text(text)
    code.write_text(PANICKING)
    return build(folder=folder, target=EXAMPLE / "target", name="panicking")


def test_check_reports_panics_as_findings_only(panicking, capfd, monkeypatch):
    monkeypatch.delenv("RUST_BACKTRACE", raising=False)
    assert main(["plugins", "check", str(panicking)]) == 1
    said = capfd.readouterr()
    assert said.err == ""
    assert "sizes: the op panics for n = 1: index out of bounds" in said.out and "`where n > 1`" in said.out
    assert "set RUST_BACKTRACE=1 to print where an op panics" in said.out
    # A call outside of the check prints the panic, with its place.
    with pytest.raises(RuntimeError, match="op 'panicking::second': the plugin panicked: index out of bounds"):
        mt.ops.panicking.second(mt.ones(2, 1))
    assert "src/lib.rs:" in capfd.readouterr().err


def test_a_panic_names_the_optional_inputs_that_are_absent(panicking):
    plugins.load_plugin(panicking)
    assert mt.ops.panicking.weighted(mt.ones(2, 3), mt.ones(2, 3)).tolist() == [3, 3]
    words = r"op 'panicking::weighted': the plugin panicked: .*`None` value.*\(called without the optional input 'w'\)"
    with pytest.raises(RuntimeError, match=words):
        mt.ops.panicking.weighted(mt.ones(2, 3))


def has_nightly() -> bool:
    """Returns whether another Rust compiler is installed."""
    try:
        command = ["cargo", "+nightly", "--version"]
        return subprocess.run(command, env=ENVIRONMENT, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def of_nightly(output: Path) -> Path:
    """Builds the plugin under another name with another compiler."""
    copy = output / "rust_plugin"
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("target", "tests"))
    manifest, code = copy / "Cargo.toml", copy / "src" / "lib.rs"
    manifest.write_text(manifest.read_text().replace("../..", str(EXAMPLE.parents[1])))
    code.write_text(code.read_text().replace("rust_", "nightly_"))
    return build("+nightly", folder=copy, target=EXAMPLE / "target" / "nightly")


def make(example: str, output: Path) -> Path:
    """Builds one of the other examples as its README describes."""
    copy = output / example
    shutil.copytree(EXAMPLE.parent / example, copy, ignore=shutil.ignore_patterns("*.so"))
    include = EXAMPLE.parents[1] / "plugin-sdk" / "include"
    command = ["make", f"MINITENSOR_INCLUDE={include}"]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return next(copy.glob("*.so"))


@pytest.mark.skipif(not all(map(shutil.which, ["make", "gcc", "g++"])), reason="it takes make, gcc and g++")
def test_one_model_of_plugins_by_all_compilers(library, tmp_path):
    libraries = [library, make("c_plugin", tmp_path), make("cpp_plugin", tmp_path)]
    libraries += [of_nightly(tmp_path)] if has_nightly() else []
    for path in libraries:
        plugins.load_plugin(path)
    activations = [mt.ops.rust_gelu, mt.ops.c_example.log_cosh, mt.ops.cpp_example.log_cosh]
    activations += [mt.ops.nightly_gelu] if has_nightly() else []
    rng = np.random.default_rng(0)
    x = mt.from_numpy(rng.normal(size=(64, 3)))
    target = mt.from_numpy(np.sin(np.asarray(x)).sum(axis=1, keepdims=True))
    layers = [mt.nn.Linear(n, m, dtype="float64") for n, m in [(3, 16), *[(16, 16)] * (len(activations) - 1), (16, 1)]]
    optimizer = mt.optim.Adam([p for layer in layers for p in layer.parameters()], lr=0.01)
    losses = []
    for _ in range(80):
        optimizer.zero_grad()
        hidden = x
        for layer, activation in zip(layers, activations, strict=False):
            hidden = activation(layer(hidden))
        loss = ((layers[-1](hidden) - target) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 4
