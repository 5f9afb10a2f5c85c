"""Tests of the ops in files: they compute and differentiate the same where nothing defines them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest
import saved_definitions
from c_plugin import cxx_library, library, loaded, needs_cxx
from minitensor._definitions import define
from minitensor.saving import FileError
from saved_training import bits, trained
from test_plugin_library_programs import ALONE, DOUBLED, MASKED, SCALED, writing

import minitensor as mt
from minitensor import nn

pytestmark = pytest.mark.usefixtures("registered", "no_plugins_stay")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.mt"


def elsewhere(path):
    """Trains the model of a file in another process, which has no op but those of minitensor and of the file."""
    script = Path(__file__).with_name("saved_training.py")
    done = subprocess.run([sys.executable, script, path], capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


class Layers(nn.Module):
    """Linear layers around a function."""

    def __init__(self, function, n=7):
        self.first = nn.Linear(5, n)
        self.second = nn.Linear(n, 3)
        self.weight = mt.rand(n, requires_grad=True)
        self.function = function

    def forward(self, x):
        return self.second(self.function(self.first(x), self.weight))


def expect_same_elsewhere(path, function, n=7):
    model = Layers(function, n)
    mt.save(path, model, mt.zeros(4, 5))
    assert elsewhere(path) == trained(model, (4, 5))


def test_element_ops_in_python(path):
    @mt.element_op(name="saved::leaky", where="power >= 1")
    def leaky(x, shift=None, slope: float = 0.01, power: int = 1, mode: Literal["soft", "hard"] = "hard"):
        gate = x.sigmoid() if mode == "soft" else mt.where(x > 0, 1.0, 0.0)
        y = x**power * (slope + (1 - slope) * gate)
        return y if shift is None else y + shift.erf()

    def function(x, weight):
        return leaky(leaky(x, power=2), slope=0.3, mode="soft", shift=weight) * leaky(x)

    expect_same_elsewhere(path, function)


def test_element_ops_with_several_results(path):
    @mt.element_op(name="saved::polar", outputs=["radius", "angle", "is_far"])
    def polar(x, y):
        radius = (x * x + y * y).sqrt()
        return radius, mt.ops.atan2(y, x), radius > 1.0

    def function(x, weight):
        radius, angle, is_far = polar(x, weight)
        return mt.where(is_far, radius, angle)

    expect_same_elsewhere(path, function)


def test_element_ops_of_complex_numbers(path):
    @mt.element_op(name="saved::turned")
    def turned(z, shift: float = 3.0):
        return z.exp() / (z * z.conj() + shift)

    def function(x, weight):
        z = turned(mt.ops.complex(x, x * weight))
        return mt.ops.real(turned(z, shift=2.0)) + mt.ops.imag(z) * x

    expect_same_elsewhere(path, function)


@pytest.mark.parametrize("shape", [None, "(x: [.., n], weight: [n]) -> [.., n]"])
def test_row_ops_in_python(path, shape):
    @mt.row_op(name="saved::rms_norm", shape=shape, where="eps >= 0")
    def rms_norm(x, weight, eps: float = 1e-6, is_centered: bool = False):
        x = x - x.mean() if is_centered else x
        return x / ((x * x).mean() + eps).sqrt() * weight

    expect_same_elsewhere(path, lambda x, weight: rms_norm(rms_norm(x, weight), weight, eps=0.1, is_centered=True))


def test_row_ops_with_an_axis_and_numbers_per_row(path):
    @mt.row_op(name="saved::spread", axis=-1, outputs=["scaled", "largest"])
    def spread(x):
        return x / (x.max() - x.min() + 1), x.abs().max()

    @mt.row_op(name="saved::scaled_by", shape="(t: [..], x: [.., n]) -> [.., n]")
    def scaled_by(t, x):
        return x.cumsum() * t / x.count()

    def function(x, weight):
        scaled, largest = spread(x, axis=0, keepdims=True)
        return scaled_by(spread(x).largest, scaled) + largest * weight

    expect_same_elsewhere(path, function)


def test_composite_ops_in_python_are_saved_as_their_parts(path):
    @mt.element_op(name="saved::bent")
    def bent(x):
        return (x * x + 1).sqrt() - 1

    @mt.custom_op(name="saved::block")
    def block(x, weight, times: int = 2):
        for _ in range(times):
            x = bent(x) * weight
        return x - x.mean()

    expect_same_elsewhere(path, lambda x, weight: block(x, weight, times=3))
    model = mt.load(path)
    assert [json.loads(text)["name"] for text in _definitions(path)] == ["saved::bent"]
    assert model.missing == []


def _definitions(path):
    contents = mt.saving.safetensors.read(path)
    return mt.saving.manifest.read(path, *contents).ops


ELEMENT = ALONE + ".attrs = 0,"


@pytest.mark.parametrize(
    "op", ["", ".program = program,", ".program = program, .backward_kind = MT_FROM_PROGRAM, .backward = {0},"]
)
def test_a_plugin_with_kernels_and_a_program(path, op):
    has_program = "program" in op
    with loaded(library(code=writing(DOUBLED), op=op)):
        model = Layers(lambda x, weight: mt.ops.probe(x) * mt.ops.probe(weight))
        if has_program:
            mt.save(path, model, mt.zeros(4, 5))
        else:
            with pytest.warns(
                UserWarning, match=r"will not contain op 'probe', because it has no program; .* plugin 'faulty' 1.0.0"
            ):
                mt.save(path, model, mt.zeros(4, 5))
        expected = trained(model, (4, 5))
        state = mt.load(path).state_dict()
    assert not mt.is_custom_op_registered_py("probe")
    if has_program:
        assert elsewhere(path) == expected
        return
    with pytest.raises(
        FileError,
        match=r"(?s)needs ops that are missing; .*op 'probe' .*it has no program; install plugin 'faulty' 1.0.0",
    ):
        mt.load(path)
    model = mt.load(path, allow_missing=True)
    assert [op.name for op in model.missing] == ["probe"]
    assert [bits(t) for t in model.state_dict().values()] == [bits(t) for t in state.values()]
    with pytest.raises(RuntimeError, match="node 'probe1': op 'probe' is not registered"):
        model(mt.zeros(4, 5))
    with loaded(library(code=writing(DOUBLED), op=op)):
        assert trained(mt.load(path), (4, 5)) == expected


@needs_cxx
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_a_body_of_tensors_of_a_plugin_is_saved_as_its_parts(path, dtype):
    run = """
      mt::Ops ops(call->host, error);
      auto y = ops("exp", {call->inputs[0]}, {});
      auto z = ops("multiply", {y, call->inputs[0]}, {});
      call->give(call->sink, ops("sqrt", {ops("multiply", {z, z}, {})}, {}).give());
    """
    x = mt.rand(50).astype(dtype)
    with loaded(cxx_library(run=run)):
        function = mt.jit(lambda x: mt.ops.probe(x) * 3.0)
        mt.save(path, function, mt.zeros(50, dtype=dtype))
        expected = bits(function(x))
        # The plugin stores half results as float32 in between.
        parts = mt.jit(lambda x: (x.exp() * x * (x.exp() * x)).sqrt() * 3.0)
        assert (bits(parts(x)) == expected) == (dtype == "float32")
    model = mt.load(path)
    assert model.missing == [] and bits(model(x)) == expected


def test_a_program_of_a_plugin_with_a_mask_and_an_attribute(path):
    with loaded(library(code=writing(SCALED), op=MASKED)):
        expect_same_elsewhere(
            path, lambda x, weight: mt.ops.probe(x, x > 0.1, scale=2.5) * mt.ops.probe(weight, weight > 0.5)
        )


def test_a_gradient_that_is_a_function_of_a_plugin_needs_the_plugin(path):
    @mt.custom_op(name="saved::through", backward=lambda ctx, grad: grad)
    def through(x):
        return x.round()

    with pytest.warns(UserWarning, match="it has no program; .*Python code that defines it"):
        mt.save(path, mt.jit(lambda x: through(x)), mt.zeros(3))
    assert mt.load(path)(mt.Tensor([0.4, 0.6, 1.2])).tolist() == [0.0, 1.0, 1.0]
    mt.unregister_custom_op_py("saved::through")
    with pytest.raises(FileError, match="it was defined in Python; run its definition before loading"):
        mt.load(path)


@pytest.mark.skipif(shutil.which("cargo") is None, reason="there is no cargo to build it with")
def test_a_plugin_in_rust(path):
    from test_rust_plugin import EXAMPLE, build

    library = build(target=EXAMPLE / "target")
    mt.plugins.load_plugin(library)
    ops = mt.ops

    def function(x, weight):
        return ops.rust_clamp(ops.rust_gelu(x), -weight, weight) + ops.rust_abs(x) * ops.rust_gelu(weight)

    expect_same_elsewhere(path, function)
    with pytest.warns(UserWarning, match="will not contain op 'rust_transpose'"):
        mt.save(path, mt.jit(lambda x: ops.rust_transpose(x)), mt.zeros(2, 3))


def square(name="saved::square", factor=1.0):
    @mt.element_op(name=name)
    def square(x):
        """The square."""
        return x * x * factor

    return square


def test_an_op_with_the_same_definition_is_used(path):
    function = square()
    mt.save(path, mt.jit(lambda x: function(x)), mt.zeros(3))
    before = mt._minitensor._op_identity("saved::square")
    loaded = mt.load(path)
    assert mt._minitensor._op_identity("saved::square") == before
    assert loaded(mt.Tensor([1.0, 2.0, 3.0])).tolist() == [1.0, 4.0, 9.0]


def test_an_op_with_another_definition_is_an_error(path):
    function = square()
    mt.save(path, mt.jit(lambda x: function(x)), mt.zeros(3))
    mt.unregister_custom_op_py("saved::square")
    square(factor=2.0)
    with pytest.raises(
        FileError,
        match=r"its op 'saved::square' is not the registered op .*test_save_ops.py.*: their programs differ; un",
    ):
        mt.load(path)
    mt.unregister_custom_op_py("saved::square")

    @mt.element_op(name="saved::square")
    def other(x, y):
        return x * y

    with pytest.raises(FileError, match="it has other inputs or attributes|their inputs differ"):
        mt.load(path)


def test_two_models_may_use_different_programs_of_one_op(path, tmp_path):
    @mt.element_op(name="saved::power")
    def power(x, n: int = 2):
        return x**n

    x, other = mt.Tensor([1.0, 2.0, 3.0]), tmp_path / "other.mt"
    mt.save(path, mt.jit(lambda x: power(x, n=3)), x)
    mt.save(other, mt.jit(lambda x: power(x, n=4)), x)
    mt.unregister_custom_op_py("saved::power")
    first, second = mt.load(path), mt.load(other)
    assert second(x).tolist() == [1.0, 16.0, 81.0]
    assert first(x).tolist() == [1.0, 8.0, 27.0]
    assert mt.ops.saved.power(x).tolist() == [1.0, 4.0, 9.0]
    with pytest.raises(ValueError, match="has no program for a call with these attributes"):
        mt.ops.saved.power(x, n=5)


def test_loaded_ops_pass_opcheck_and_keep_their_documentation(path):
    @mt.row_op(name="saved::soft", where="t > 0")
    def soft(x, t: float = 1.0):
        """A softmax with a temperature."""
        return mt.ops.softmax(x / t)

    mt.save(path, mt.jit(lambda x: soft(x, t=2.0)), mt.zeros(2, 3))
    mt.unregister_custom_op_py("saved::soft")
    mt.load(path)
    assert mt.ops.describe("saved::soft")["doc"] == "A softmax with a temperature."
    assert mt.testing.opcheck("saved::soft").findings == []
    with pytest.raises(ValueError, match="t > 0"):
        mt.ops.saved.soft(mt.zeros(3), t=-1.0)


def test_built_in_ops_compute_the_same_from_their_definitions():
    """The loops of these ops are compiled Rust. Their definitions in a file are programs."""
    compared = set()
    for name in mt.list_custom_ops_py():
        samples = mt._minitensor._samples(name)
        try:
            data = saved_definitions.definition_of(name, samples)
        except ValueError as error:
            assert not define(name).has_program, (name, error)
            continue
        if saved_definitions.compare(name, samples, data):
            compared.add(name)
    assert len(compared) > 100
    assert {"row::cross_entropy", "relu_", "bitwise_xor"} <= compared
