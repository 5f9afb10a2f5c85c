"""Tests of ops of a plugin in Rust in files, one for each kind of input and output. The plugin is `saved_plugin`."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import saved_definitions
from saved_training import trained
from test_rust_plugin import EXAMPLE, build
from test_save_ops import Layers, elsewhere

import minitensor as mt

pytestmark = [
    pytest.mark.skipif(shutil.which("cargo") is None, reason="there is no cargo to build it with"),
    pytest.mark.usefixtures("registered", "no_plugins_stay"),
]

OPS = [
    "nll",
    "scaled_at",
    "top_of",
    "quantize",
    "dequantize",
    "quantize_rows",
    "softmax_of_steps",
    "leaky_where",
    "update_average",
    "swap",
    "wave",
    "wave_",
    "centered",
    "centered_",
    "hash",
    "bent_by",
    "signed_bits",
    "graded",
    "axpy",
    "where_equal",
]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.fixture(scope="module")
def library():
    folder = Path(__file__).with_name("saved_plugin")
    build(folder=folder, target=EXAMPLE / "target")
    return EXAMPLE / "target" / "release" / "libsaved_plugin.so"


@pytest.fixture
def kinds(library):
    mt.plugins.load_plugin(library)
    return mt.ops.kinds


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.mt"


def _positions(x):
    return x.detach().argmin(axis=-1)


def _nll(ops, x, weight):
    loss, entropy = ops.nll(x * weight, _positions(x))
    return (loss + entropy).unsqueeze(-1) * x


def _scaled_at(ops, x, weight):
    scale = weight.sum().expand(4)
    y = ops.scaled_at(_positions(x), scale, x) * ops.scaled_at(_positions(x), scale, x * weight, shift=scale)
    return y.unsqueeze(-1) * weight


def _top_of(ops, x, weight):
    first, second = ops.top_of(x, x > 0.1), ops.top_of(x * weight)
    rest = mt.where(first.below & second.has_negative.unsqueeze(-1), x, weight)
    return first.top.unsqueeze(-1) * rest + x.cumsum(-1) * second.at.astype("float32").unsqueeze(-1)


def _quantized(ops, x, weight):
    y, is_positive = ops.dequantize(ops.quantize(x, 0.01 + weight), weight)
    return mt.where(is_positive, y, x)


def _rows(ops, x, weight):
    steps, scale = ops.quantize_rows(x)
    return ops.softmax_of_steps(steps, scale * weight.sum()) * x


def _leaky_where(ops, x, weight):
    return ops.leaky_where(x, x > weight, slope=0.3) * ops.leaky_where(x)


def _update_average(ops, x, weight):
    average = x.detach() * 2
    change = ops.update_average(average, x.detach(), decay=0.7)
    return x * average + weight * change


def _swap(ops, x, weight):
    y, z = x.detach() * 2, weight.detach() + x.detach()
    ops.swap(y, z)
    return x * y + weight * z


def _wave(ops, x, weight):
    y = x * weight
    ops.wave_(y)
    return ops.wave(y)


def _centered(ops, x, weight):
    y = x * weight
    ops.centered_(y, weight.mean().expand(y.shape[:-1]))
    return ops.centered(y, y.sum(-1))


def _hash(ops, x, weight):
    a, b = (x.detach() * 1000).astype("int16"), (weight.detach() * 1000).astype("int16")
    return x * ops.hash(a, b).astype("float32") / 40000 + weight


def _bent_by(ops, x, weight):
    e = (x.detach() * 1e12).astype("int64")
    return ops.bent_by(x, e, scale=0.25) * ops.bent_by(x * weight, e.astype("uint8"))


def _graded(ops, x, weight):
    level = (x.detach() * 5).astype("int32")
    y, code = ops.graded(x * weight, level, (weight * 9).astype("uint8"))
    return y + ops.graded(x, level.astype("int64"), code.astype("int16"), scale=2)[0]


def _signed_bits(ops, x, weight):
    first = ops.signed_bits(x, (x.detach() * 1e12).astype("int64"))
    second = ops.signed_bits(x * weight, (first[1] % 50).astype("int8"), weight > 0.5)
    return first[0] * weight + second[0] * second[1].astype("float32") / 50


def _axpy(ops, x, weight):
    a = (x.detach() * 100).astype("uint8")
    return ops.axpy(x, weight, value=0.5) + ops.axpy(a, a, value=3.0).astype("float32") / 100


def _where_equal(ops, x, weight):
    is_positive = ops.where_equal(x.detach() > 0, weight.detach() > 0.5, weight.detach() > 2)
    return ops.where_equal(x, weight, x * weight) * is_positive


@pytest.mark.parametrize(
    "function",
    [
        _nll,
        _scaled_at,
        _top_of,
        _quantized,
        _rows,
        _leaky_where,
        _update_average,
        _swap,
        _wave,
        _hash,
        _bent_by,
        _signed_bits,
        _graded,
        _axpy,
        _where_equal,
    ],
)
def test_a_model_trains_the_same_without_the_plugin(path, kinds, function):
    model = Layers(lambda x, weight: function(kinds, x, weight))
    mt.save(path, model, mt.zeros(4, 5))
    assert elsewhere(path) == trained(model, (4, 5))


def _converted(args, dtype):
    is_float = [isinstance(a, mt.Tensor) and a.dtype.is_floating_point for a in args]
    return [a.astype(dtype) if convert else a for a, convert in zip(args, is_float, strict=True)]


@pytest.mark.parametrize("name", OPS)
def test_an_op_and_its_definition_have_the_same_bits(kinds, name):
    samples = mt._minitensor._samples(f"kinds::{name}")
    data = saved_definitions.definition_of(f"kinds::{name}", samples)
    all_samples = [
        (_converted(args, dtype), attrs) for dtype in ("float64", *data["dtypes"]) for args, attrs in samples
    ]
    assert saved_definitions.compare(f"kinds::{name}", all_samples, data) > 5
    # The definition says all.
    assert json.loads(mt._minitensor._op_json_rewritten(json.dumps(data))) == data


@pytest.mark.parametrize("name", OPS)
def test_an_op_that_is_built_from_its_definition_passes_opcheck(kinds, name):
    samples = mt._minitensor._samples(f"kinds::{name}")
    data = saved_definitions.definition_of(f"kinds::{name}", samples)
    saved_definitions.rebuilt(data).register()
    try:
        findings = mt.testing.opcheck("saved::again", raises=False).findings
        # The bits of integers have no second derivative.
        assert [finding.check for finding in findings] == (["gradient"] if name == "bent_by" else [])
    finally:
        mt.unregister_custom_op_py("saved::again")


def test_an_op_whose_dtypes_depend_on_each_other_needs_the_plugin(path, kinds):
    x = mt.zeros(3)
    with pytest.warns(UserWarning, match="will not contain op 'kinds::entangled', because numbers of its dtype var"):
        mt.save(path, mt.jit(lambda x: kinds.entangled(x, mt.arange(3))[0]), x)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_programs_of_integers_wrap_around_like_compiled_loops(kinds, dtype):
    op = saved_definitions.rebuilt(saved_definitions.definition_of("kinds::hash"))
    hashed = op.register()
    info = np.iinfo(dtype)
    values = [info.min, info.min + 1, info.min // 3, 0, 1, 2, 7, 100, info.max // 3, info.max - 1, info.max]
    values = np.array(values, dtype=dtype)
    x, y = (mt.Tensor(np.ascontiguousarray(t)) for t in np.meshgrid(values, values))
    assert hashed(x, y).dtype.name == dtype
    assert hashed(x, y).tolist() == kinds.hash(x, y).tolist()
    a, b = np.array(x), np.array(y)
    with np.errstate(over="ignore"):
        z = (a * a.dtype.type(31) + b) ^ (a << a.dtype.type(3))
        greater = z - (b >> b.dtype.type(1)) * z
    is_greater = z > b
    np.testing.assert_array_equal(np.array(hashed(x, y))[is_greater], greater[is_greater])
    op.unregister()


def test_a_position_that_is_out_of_range_is_an_error(kinds):
    op = saved_definitions.rebuilt(saved_definitions.definition_of("kinds::nll"))
    nll = op.register()
    with pytest.raises(IndexError, match="'target' contains position 3, which is out of range for a row of size 3"):
        nll(mt.zeros(2, 3), mt.Tensor([0, 3]))
    with pytest.raises(TypeError, match="'target' takes int64, got int32"):
        nll(mt.zeros(2, 3), mt.Tensor([0, 1], dtype="int32"))
    op.unregister()


def test_an_in_place_op_may_have_any_layout(kinds):
    data = saved_definitions.definition_of("kinds::swap")
    op = saved_definitions.rebuilt(data)
    swap = op.register()
    for dtype in ["float32", "float64", "float16", "bfloat16", "int32", "uint8"]:
        for n in [1, 7, 600, 70_000]:
            values = (mt.arange(2 * n) % 13).astype(dtype).reshape(2, n)
            for layout in (lambda t: t, lambda t: t.T, lambda t: t[:, ::2], lambda t: t.flip(-1)):
                pairs = []
                for function in (kinds.swap, swap):
                    x, y = values.clone(), values.clone() + 1
                    function(layout(x), layout(y))
                    pairs.append((x.tolist(), y.tolist()))
                assert pairs[0] == pairs[1]
    op.unregister()


def test_a_cell_op_of_a_plugin_changes_its_input(kinds):
    x = mt.arange(12, dtype="float16").reshape(3, 4)
    first = kinds.reverse_rows(x.T, axis=0)
    assert first.tolist() == [3, 7, 11]
    assert x[0].tolist() == [3, 2, 1, 0]
    mt.jit(lambda x: kinds.reverse_rows(x[1:]))(x)
    assert x[:, 0].tolist() == [3, 4, 8]
    with pytest.raises(ValueError, match="several of its elements share memory"):
        kinds.reverse_rows(mt.zeros(4).expand(2, 4))
    mt.testing.opcheck(kinds.reverse_rows, mt.zeros(2, 3, dtype="float64"))


def test_older_definitions_without_outputs_and_with_fewer_dtypes_are_read(kinds):
    for name in ("leaky_where", "hash"):
        data = saved_definitions.definition_of(f"kinds::{name}")
        older = {part: value for part, value in data.items() if part != "outputs"}
        older["dtypes"] = data["dtypes"][1:3]
        assert json.loads(mt._minitensor._op_json_rewritten(json.dumps(older))) == data | {"dtypes": older["dtypes"]}


def test_a_file_with_fewer_dtypes_uses_the_registered_op(path, kinds):
    x = mt.arange(5, dtype="int32")
    mt.save(path, mt.jit(lambda x: kinds.hash(x, x + 1)), x)
    contents = mt.saving.safetensors.read(path)
    model = json.loads(contents.metadata["minitensor.model"])
    (op,) = model["ops"]
    op["dtypes"] = ["int32", "int64"]
    del op["outputs"]
    mt.saving.safetensors.write(path, contents.tensors, {"minitensor.model": json.dumps(model)})
    assert mt.load(path)(x).tolist() == kinds.hash(x, x + 1).tolist()
    op["dtypes"] = ["int32", "float32"]
    mt.saving.safetensors.write(path, contents.tensors, {"minitensor.model": json.dumps(model)})
    with pytest.raises(mt.saving.FileError, match="their dtypes differ"):
        mt.load(path)


def _is(**parts):
    return lambda part: part.update(parts)


HOSTILE = [
    (
        "nll",
        "inputs",
        1,
        _is(dtype="float32"),
        r"must be 'T', .*'bool' or an integer dtype, got \"float32\"",
    ),
    ("nll", "inputs", 1, _is(dtype="long"), r"must be 'T', 'U', 'V', 'W', 'bool' or an int"),
    (
        "nll",
        "inputs",
        1,
        _is(dtype="X"),
        r"'dtype' of 'inputs' of the definition\[1\] must be 'T', 'U', 'V'",
    ),
    ("nll", "inputs", 1, _is(dtype="U"), "a program does not determine the dtype of 'target'"),
    ("bent_by", "inputs", 1, _is(dtype="T"), "no dtype supports all functions of its program"),
    ("bent_by", "inputs", 0, _is(dtype="U"), "numbers of its dtype variables meet in its program"),
    ("bent_by", "outputs", 0, _is(dtype="U"), "numbers of its dtype variables meet in its program"),
    ("bent_by", "inputs", 1, _is(dtype="int8"), "'e' has the dtype int8, so its program must run only at floating"),
    ("nll", "inputs", 1, _is(dtype=1), "must be a string"),
    ("nll", "inputs", 1, _is(dtype="int32"), "'target' is one integer for each row, a position, so its dtype must be"),
    ("nll", "inputs", 1, _is(dtype="bool"), "'target' is boolean, so it must be a row"),
    ("nll", "inputs", 0, _is(dtype="bool"), "a mask is used like a row of numbers"),
    ("nll", "outputs", 0, _is(changes=0), "changes input 0 in place, which must be a required input"),
    ("nll", "outputs", 0, _is(dtype="bool"), "output 'loss' is a number, but the op returns a truth value"),
    ("nll", "outputs", 0, _is(name="other"), "its outputs are not those of its first program"),
    ("nll", "outputs", 0, _is(changes=300), "must be a position"),
    ("top_of", "outputs", 2, _is(dtype="T"), "output 'below' is a truth value, but the op returns a number"),
    ("top_of", "outputs", 2, _is(dtype="int8"), "output 'below' is a truth value, but the op returns a number"),
    ("hash", "inputs", 0, _is(dtype="int8"), "'x' has the dtype int8, so its program must run only at floating"),
    ("hash", "outputs", 0, _is(dtype="int8"), "'out' has the dtype int8, so its program must run only at floating"),
    ("swap", "outputs", 0, _is(changes=9), "changes input 9 in place, which must be a required input"),
    ("swap", "outputs", 0, _is(changes=1), "output 'y' changes input 1 in place, which must be .* no other"),
    ("swap", "outputs", 0, _is(changes=-1), "must be a position"),
    ("swap", "inputs", 0, _is(optional=True), "output 'x' changes input 0 in place, which must be a required input"),
    ("swap", "inputs", 0, _is(dtype="int8"), "output 'x' changes input 0 in place, which must be .* the same dtype"),
    ("swap", "outputs", 0, _is(extra=0), "has an unknown field 'extra'"),
    ("leaky_where", "inputs", 1, _is(dtype="T"), None),
    ("leaky_where", "inputs", 1, _is(dtype="int8"), None),
]


@pytest.mark.parametrize(("name", "part", "at", "change", "words"), HOSTILE)
def test_a_definition_with_a_wrong_dtype_is_an_error_that_names_it(kinds, name, part, at, change, words):
    data = saved_definitions.definition_of(f"kinds::{name}")
    change(data[part][at])
    data["gradient"] = {"kind": "derived"}
    if words is None:
        # Another op, but a consistent one.
        assert mt._minitensor._op_from_json(json.dumps(data)).name == f"kinds::{name}"
        return
    with pytest.raises(ValueError, match=words):
        mt._minitensor._op_from_json(json.dumps(data))


@pytest.mark.parametrize("name", OPS)
def test_any_change_of_a_dtype_is_an_error_or_an_op_that_does_not_crash(kinds, name):
    data = saved_definitions.definition_of(f"kinds::{name}", mt._minitensor._samples(f"kinds::{name}"))
    data["gradient"] = {"kind": "derived"}
    for part in ("inputs", "outputs"):
        for at in range(len(data[part])):
            for dtype in ["T", "bool", "int8", "uint16", "int64", "uint64"]:
                changed = json.loads(json.dumps(data))
                changed[part][at]["dtype"] = dtype
                try:
                    op = saved_definitions.rebuilt(changed)
                except ValueError:
                    continue
                function = op.register()
                for args, attrs in mt._minitensor._samples("saved::again"):
                    try:
                        function(*args, **attrs)
                    except (ValueError, TypeError, RuntimeError, IndexError):
                        continue
                op.unregister()


def test_a_plugin_takes_neighbouring_rows_as_columns(kinds):
    a = np.random.default_rng(0).integers(0, 100, (5, 12, 40), dtype=np.int32)
    for view in (lambda x: x, lambda x: x[:, ::-1], lambda x: x[..., 3:30], lambda x: x[..., ::2]):
        x, y = view(mt.Tensor(a)), view(a)
        for axis in (0, 1, 2, (0, 1), (1, 2)):
            np.testing.assert_array_equal(kinds.parity(x, axis=axis), np.bitwise_xor.reduce(y, axis=axis))
        for axis in (0, 1, 2):
            first = np.take(y, [0], axis)
            expected = y + np.concatenate([first, y.take(range(y.shape[axis] - 1), axis)], axis)
            np.testing.assert_array_equal(kinds.pairs(x, axis=axis), expected)
    assert kinds.parity(mt.zeros((0, 9), dtype=mt.int64), axis=0).tolist() == [0] * 9


def test_a_plugin_reduces_a_long_row_in_parts(kinds):
    x = mt.ones(1, dtype=mt.float64).expand(2**34)
    assert kinds.power(x).item() == 2**34
    y = mt.randn(3 * 10**5, 2, dtype=mt.float64)[::2]
    np.testing.assert_allclose(kinds.power(y).item(), np.square(np.asarray(y)).sum(), rtol=1e-12)
