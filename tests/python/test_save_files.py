"""Tests of damaged, hostile and interrupted files: an error, or the same model, and nothing partially loaded."""

import json
import os
import random
import signal
import struct
import subprocess
import sys
import textwrap
import time

import pytest
from minitensor.saving import FileError, atomic, safetensors
from saved_training import bits

import minitensor as mt
from minitensor import nn

pytestmark = pytest.mark.usefixtures("registered")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.mt"


def file_of(header, data=b"", padding=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + padding + data


def tensor(shape, begin, end, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


HOSTILE = [
    (struct.pack("<Q", 2**63) + b"{}", "its header would have 9223372036854775808 bytes"),
    (struct.pack("<Q", 100) + b"{}", "is truncated: its header has 100 bytes, but the file ends after 2"),
    (file_of(b"[]"), "does not begin with '{'"),
    (file_of(b"{"), "not valid JSON"),
    (file_of(b'{"a": ' + b"[" * 50_000 + b"]" * 50_000 + b"}"), "nested too deeply"),
    (file_of(b'{"\xff": 1}'), "not valid JSON"),
    (file_of(b'{"a": NaN}'), "the number NaN"),
    (file_of(b'{"x": 1, "x": 2}'), "two entries 'x'"),
    (file_of({"x": 1}), "must have the fields 'dtype', 'shape' and 'data_offsets'"),
    (file_of({"x": tensor([1], 0, 4) | {"more": 1}}, bytes(4)), "must have the fields"),
    (file_of({"x": tensor([1], 0, 4, "F8")}, bytes(4)), "dtype 'F8', which is not supported"),
    (file_of({"x": tensor([1], 0, 4, 3)}, bytes(4)), "dtype 3, which is not supported"),
    (file_of({"x": tensor([-1], 0, 4)}, bytes(4)), "must be a list of at most 64 sizes"),
    (file_of({"x": tensor([True], 0, 4)}, bytes(4)), "must be a list of at most 64 sizes"),
    (file_of({"x": tensor([1] * 65, 0, 4)}, bytes(4)), "must be a list of at most 64 sizes"),
    (file_of({"x": tensor([2**62, 2**62], 0, 4)}, bytes(4)), r"but F32 of shape .* has \d+ bytes"),
    (file_of({"x": tensor([1], 4, 0)}, bytes(4)), r"offsets \[4, 0\]"),
    (file_of({"x": tensor([1], -4, 0)}, bytes(4)), "the offsets must be two sizes"),
    (file_of({"x": tensor([2], 0, 8)}, bytes(4)), "is truncated: tensor 'x' ends at byte 8 of the data, which has 4"),
    (file_of({"x": tensor([1], 0, 4)}, bytes(8)), "4 bytes after tensor 'x', which belong to no tensor"),
    (file_of({"x": tensor([1], 4, 8)}, bytes(8)), "leaves a gap after the header"),
    (file_of({"x": tensor([2], 0, 8), "y": tensor([1], 4, 8)}, bytes(8)), "tensor 'y' overlaps tensor 'x'"),
    (file_of({"x": tensor([2], 0, 2, "BOOL")}, b"\x02\x00"), "tensor 'x': the data of a bool tensor"),
    (file_of({"__metadata__": {"a": 1}}), "must be an object of strings"),
    (file_of({"__metadata__": {"minitensor.complex128": '["z"]'}}), "tensor 'z' is not F64"),
]


@pytest.mark.parametrize(("content", "words"), HOSTILE)
def test_hostile_files_are_errors_that_name_the_part(path, content, words):
    path.write_bytes(content)
    for read in (mt.load, mt.load_state):
        with pytest.raises(FileError, match=words):
            read(path)


def saved(path):
    """Saves a model with an op, and returns the model and its description."""

    @mt.row_op(name="saved::soft", where="t > 0")
    def soft(x, weight=None, t: float = 1.0, mode: bool = False):
        y = mt.ops.softmax(x / t)
        return y if weight is None else y * weight

    class Model(nn.Module):
        def __init__(self):
            self.linear = nn.Linear(3, 2)
            self.tied = self.linear
            self.register_buffer("calls", mt.zeros((), dtype="int64"))

        def forward(self, x, scale=2.0):
            self.calls += 1
            y = mt.concat([soft(self.linear(x), t=0.5) * scale, mt.ops.dropout(x, 0.5, training=self.training)], axis=1)
            return y.detach() + y, mt.arange(2), None

    model = Model()
    mt.save(path, model, mt.zeros(4, 3))
    mt.unregister_custom_op_py("saved::soft")
    contents = safetensors.read(path)
    return model.eval(), json.loads(contents.metadata["minitensor.model"]), contents.tensors


def rewritten(path, data, tensors):
    safetensors.write(path, tensors, {"minitensor.model": json.dumps(data)})


def expect_error(path, words):
    before = mt.list_custom_ops_py()
    with pytest.raises(FileError, match=words):
        mt.load(path)
    assert mt.list_custom_ops_py() == before


def graph(data):
    return data["graphs"][0]["ir"]


def node(data, op):
    return next(n for n in graph(data)["nodes"] if n["op_type"] == f"minitensor.{op}")


def op(data):
    return data["ops"][0]


def program(data):
    return op(data)["programs"][0]["program"]


def changed(change):
    return pytest.param(change[0], change[1], id=change[1][:40])


CHANGES = [
    (lambda d: d.update(version=2), "version 2 of the format, written by minitensor .*; upgrade minitensor"),
    (lambda d: d.update(version=True), "has version True"),
    (lambda d: d.update(extra=1), "the model must be an object with the fields"),
    (lambda d: d.update(graphs=[]), "has no graph"),
    (lambda d: d.update(training=1), "'training' of the model must be of type bool"),
    (lambda d: d["graphs"][0].update(mode="never"), "the mode of graph 0 must be one of"),
    (lambda d: d["graphs"][0].update(inputs={"tensor": 0}), "must be a tuple of positional arguments and a dict"),
    (
        lambda d: d["graphs"][0]["outputs"]["tuple"].append({"tensor": 9}),
        "outputs of graph 0 must have each of 2 tensors once",
    ),
    (lambda d: d["graphs"][0]["outputs"]["tuple"].append({"code": "1"}), "has a part that is no tensor"),
    (lambda d: graph(d).update(version=9), "graph 0: the IR has the version 9"),
    (lambda d: graph(d)["symbols"].update(n=[1, None]), "has the symbol 'n', which is not the size of an input"),
    (lambda d: graph(d)["symbols"].update(n=[5, None]), "which are at least 1"),
    (
        lambda d: (graph(d)["symbols"].update(n=[1, None]), graph(d)["inputs"][0].update(shape=["n", "n**2"])),
        "not a sum",
    ),
    (
        lambda d: (graph(d)["symbols"].update(n=[1, None]), graph(d)["inputs"][0].update(shape=["n", 3])),
        "graph 0: node",
    ),
    (lambda d: graph(d)["nodes"].reverse(), "the calls are a cycle, or out of order"),
    (lambda d: graph(d)["nodes"][0]["inputs"].append("nothing"), "input 'nothing' is not an input"),
    (lambda d: node(d, "linear").update(op_type="minitensor.nothing"), "calls op 'nothing', which minitensor"),
    (lambda d: node(d, "linear").update(op_type="os.system"), "calls 'os.system', which minitensor does not know"),
    (lambda d: node(d, "linear").update(op_type="minitensor.describe"), "describe"),
    (lambda d: node(d, "linear").update(op_type="minitensor.__name__"), "__name__"),
    (lambda d: node(d, "linear")["inputs"].pop(), r"node 'linear1' \(minitensor.linear\): the input '\w+' is missing"),
    (lambda d: node(d, "linear")["inputs"].append("input0"), "expected the inputs"),
    (lambda d: node(d, "linear")["attrs"].update(more=1), "the op has no attribute 'more'"),
    (lambda d: node(d, "concat")["attrs"].update(axis="one"), r"node 'concat1' .*attribute 'axis' takes"),
    (lambda d: node(d, "concat")["attrs"].update(axis=7), "node 'concat1'"),
    (lambda d: node(d, "concat")["attrs"].update(inputs=[{"input": 0}]), "the op has no attribute 'inputs'"),
    (lambda d: node(d, "concat")["attrs"]["tensors"].pop(), "expected the inputs"),
    (
        lambda d: node(d, "concat")["outputs"][0].update(shape=[4, 6]),
        "but v.*when the model was saved|differs from its def",
    ),
    (lambda d: node(d, "dropout")["attrs"].update(p=[1.0]), "attribute 'p' takes"),
    (
        lambda d: graph(d)["weights"][0].update(shape=[9, 9]),
        r"graph 0 reads calls: int64 \(9, 9\), but the file has int64 \(\)",
    ),
    (lambda d: d["tensors"].pop("calls"), "has tensors that the model does not have: calls"),
    (lambda d: d["tensors"].update(more=d["tensors"]["calls"]), "lacks the elements of the tensors more"),
    (lambda d: d["tensors"]["calls"].update(requires_grad=True), "must have a floating or complex dtype"),
    (lambda d: d["tensors"]["calls"].update(kind="code"), "the kind of tensor 'calls' must be one of"),
    (lambda d: d["tensors"]["tied.weight"].update(same_as="tied.bias"), "which has no elements"),
    (lambda d: d["tensors"]["tied.weight"].update(same_as="nothing"), "which has no elements"),
    (
        lambda d: d["tensors"].update({"linear": dict(d["tensors"]["tied.weight"])}),
        "the name of a tensor and of a module",
    ),
    (lambda d: d["tensors"].update({"a..b": dict(d["tensors"]["tied.weight"])}), "an empty part in its name"),
    (
        lambda d: d["tensors"].update({"forward": dict(d["tensors"]["tied.weight"])}),
        "already has an attribute 'forward'",
    ),
    (
        lambda d: d["tensors"].update({"__class__.w": dict(d["tensors"]["tied.weight"])}),
        "already has an attribute '__class__'",
    ),
    (lambda d: d.update(ops=[]), "calls op 'saved::soft'"),
    (lambda d: d["ops"].append(op(d)), "two ops have the name 'saved::soft'"),
    (lambda d: op(d).update(name="softmax"), "its op 'softmax' is not the registered op"),
    (lambda d: op(d).update(name="../soft"), "the definition of op '../soft' is malformed"),
    (lambda d: op(d).update(extra=1), "unknown field 'extra'"),
    (lambda d: op(d).update(programs=[]), "expected at least one program"),
    (lambda d: op(d).update(dtypes=["int8"]), "support none of its dtypes"),
    (lambda d: op(d).update(dtypes=["float99"]), r"'dtypes' of the definition\[0\] must be a dtype"),
    (lambda d: op(d).update(dtypes_of_u="int64"), "'dtypes_of_u' of the definition must be a list"),
    (lambda d: op(d).update(dtypes_of_v=["int64"]), "'dtypes_of_v' of the definition must be null"),
    (lambda d: op(d).update(dtypes_of_u=["int64"]), "a program over rows needs one dtype variable"),
    (lambda d: op(d)["inputs"][0].update(dtype="float16"), "must be 'T', 'U', 'V', 'W', 'bool' or an integer dtype"),
    (lambda d: op(d)["inputs"][0].update(dtype="U"), "a program does not determine the dtype of 'x'"),
    (lambda d: op(d)["inputs"][0].update(dtype="bool"), "used (as a number|like a row of numbers)"),
    (lambda d: op(d)["outputs"][0].update(dtype="bool"), "is a number, but the op returns a truth value"),
    (lambda d: op(d)["outputs"][0].update(changes=1), "changes input 1 in place, which must be"),
    (lambda d: op(d)["outputs"][0].update(name="other"), "its outputs are not those of its first program"),
    (lambda d: op(d)["outputs"].append(op(d)["outputs"][0]), "its outputs are not those of its first program"),
    (lambda d: op(d).update(outputs=[]), "its outputs are not those of its first program"),
    (lambda d: op(d).update(outputs=None), "'outputs' of the definition must be a list"),
    (lambda d: op(d).update(shape="(x: [.., n]) -> [.., m]"), "malformed"),
    (lambda d: op(d).update(shape=None), "a program over rows needs a shape"),
    (lambda d: op(d).update(where=["t >"]), "where"),
    (lambda d: op(d).update(axis={"attribute": 200, "keepdims": None, "several": False}), "its axis must be"),
    (lambda d: op(d)["attributes"][0].update(type="code"), "must be a type of attributes"),
    (lambda d: op(d)["attributes"][0].update(name="x"), "malformed"),
    (lambda d: op(d)["gradient"].update(kind="op", op={}, wrt=[]), "lacks the field"),
    (lambda d: op(d)["gradient"].update(kind="formula", formula="|d| { x: __import__(d) }"), "saved::soft"),
    (lambda d: op(d)["programs"][0].update(given=[]), "must have a value for each attribute and each input"),
    (lambda d: program(d)["nodes"].append(["exp", 9999]), "uses node 9999, which doesn't precede it"),
    (lambda d: program(d)["nodes"].append(["exp", len(program(d)["nodes"])]), "which doesn't precede it"),
    (lambda d: program(d)["nodes"].extend([["exp", 0]] * 20_000), r"at most 16384 are allowed"),
    (lambda d: program(d)["nodes"].append(["system", 0]), "calls 'system' of arity 1, which does not exist"),
    (lambda d: program(d)["outputs"].append(["more", 0]), "malformed"),
    (lambda d: program(d)["inputs"].pop(), "malformed"),
    (lambda d: d["missing"].append({"name": 1}), "missing op 0 must be an object with the fields"),
]


@pytest.mark.parametrize(("change", "words"), [changed(change) for change in CHANGES])
def test_a_model_with_a_wrong_part_is_an_error_that_names_it(path, change, words):
    _, data, tensors = saved(path)
    change(data)
    rewritten(path, data, tensors)
    expect_error(path, words)


def test_weights_that_are_missing_or_differ_are_errors(path):
    _, data, tensors = saved(path)
    less = {name: t for name, t in tensors.items() if name != "linear.weight"}
    rewritten(path, data, less)
    expect_error(path, "lacks the elements of the tensors linear.weight")
    rewritten(path, data, tensors | {"linear.weight": mt.zeros(3, 3)})
    expect_error(path, r"reads linear.weight: float32 \(2, 3\), but the file has float32 \(3, 3\)")
    rewritten(path, data, tensors | {"linear.weight": mt.zeros((2, 3), dtype="float64")})
    expect_error(path, r"but the file has float64 \(2, 3\)")


def outcome(path, x):
    """Loads and runs a file: the bits of all results, or None for an error. Nothing stays registered."""
    before = mt.list_custom_ops_py()
    try:
        model = mt.load(path).eval()
    except FileError:
        assert mt.list_custom_ops_py() == before
        return None
    try:
        y, n, nothing = model(x)
        return bits(y), bits(n), nothing
    finally:
        for name in set(mt.list_custom_ops_py()) - set(before):
            mt.unregister_custom_op_py(name)


def test_a_truncated_file_is_an_error(path):
    saved(path)
    content = path.read_bytes()
    for size in [*range(64), *range(64, len(content), 97), len(content) - 1]:
        path.write_bytes(content[:size])
        with pytest.raises(FileError):
            mt.load(path)
    path.write_bytes(content + b"\x00")
    expect_error(path, "belong to no tensor")


def test_flipped_bytes_are_errors_or_the_same_model(path):
    saved(path)
    content = path.read_bytes()
    rng = random.Random(0)
    x, errors = mt.ones(4, 3), 0
    expected = outcome(path, x)
    assert expected is not None
    for _ in range(1500):
        changed = bytearray(content)
        for _ in range(rng.choice([1, 1, 1, 4])):
            changed[rng.randrange(len(changed))] = rng.choice([rng.randrange(256), *b'0129[]{}",:-e'])
        path.write_bytes(changed)
        got = outcome(path, x)
        assert got in (None, expected)
        errors += got is None
    assert errors > 1000


def test_flipped_bytes_without_a_checksum_never_crash(path):
    """The description is changed, and the checksum is right: the result is an error, or another valid model."""
    _, data, tensors = saved(path)
    text = json.dumps(data)
    rng = random.Random(0)
    x, errors = mt.ones(4, 3), 0
    for _ in range(1500):
        changed = list(text)
        for _ in range(rng.choice([1, 1, 2, 4])):
            at = rng.randrange(len(changed))
            changed[at] = rng.choice([*'0129[]{}",:-etrufalsn', changed[at] * 2, ""])
        safetensors.write(path, tensors, {"minitensor.model": "".join(changed)})
        try:
            errors += outcome(path, x) is None
        except (ValueError, TypeError, RuntimeError):
            # The model takes other arguments.
            errors += 1
    assert errors > 1000


WRITER = """
import os, signal, sys
import minitensor as mt
from minitensor.saving import atomic
path, value, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
count = 0

def trace(frame, event, argument):
    global count
    if frame.f_code.co_filename != atomic.__file__:
        return None
    count += event == "line"
    if count == last:
        os.kill(os.getpid(), signal.SIGKILL)
    return trace

state = {"x": mt.full((100_000,), value), "y": mt.full((), value)}
sys.settrace(trace)
mt.save_state(path, state)
"""


def written(path, value, last):
    """Writes a file in another process, which is killed before a line of `atomic.py`. Returns its exit status."""
    command = [sys.executable, "-c", WRITER, path, str(value), str(last)]
    return subprocess.run(command, env=os.environ, check=False).returncode


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL")
def test_killing_the_writer_at_any_line_leaves_the_old_file_or_the_new_one(tmp_path):
    path, value = tmp_path / "state.safetensors", 1
    assert written(path, value, -1) == 0
    old = new = leftover = 0
    for last in range(1, 1000):
        status = written(path, last + 1, last)
        state = mt.load_state(path)
        now = int(state["y"].item())
        assert (state["x"] == now).all().item()
        assert now in (value, last + 1)
        if status == 0:
            break
        assert status == -signal.SIGKILL
        old, new = old + (now == value), new + (now != value)
        value = now
        for file in tmp_path.glob(".*.tmp"):
            leftover += 1
            file.unlink()
    assert old > 10 and new > 3 and leftover > 5


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL")
def test_killing_the_writer_at_any_time_leaves_the_old_file_or_the_new_one(tmp_path):
    path = tmp_path / "state.safetensors"
    assert written(path, 1, -1) == 0
    script = WRITER.replace("mt.save_state(path, state)", "print(flush=True)\nwhile True: mt.save_state(path, state)")
    rng = random.Random(1)
    for k in range(10):
        command = [sys.executable, "-c", script, path, str(k + 2), "-1"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ) as writer:
            writer.stdout.readline()
            time.sleep(rng.random() * 0.1)
            writer.kill()
        state = mt.load_state(path)
        now = state["y"].item()
        assert now in range(1, k + 3) and (state["x"] == now).all().item()


@pytest.mark.parametrize("function", ["write", "fsync", "replace"])
def test_an_error_while_writing_leaves_the_old_file(tmp_path, monkeypatch, function):
    path = tmp_path / "state.safetensors"
    mt.save_state(path, {"x": mt.ones(3)})
    before = path.read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    if function == "write":
        monkeypatch.setattr(mt._minitensor, "_tensor_bytes", fail)
    else:
        monkeypatch.setattr(atomic.os, function, fail)
    with pytest.raises(OSError, match="No space left"):
        mt.save_state(path, {"x": mt.zeros(4)})
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_link_stays_a_link_and_permissions_stay(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    mt.save_state(target, {"x": mt.ones(1)})
    target.chmod(0o640)
    link.symlink_to(target)
    mt.save_state(link, {"x": mt.zeros(1)})
    assert link.is_symlink() and target.stat().st_mode & 0o777 == 0o640
    assert mt.load_state(target)["x"].tolist() == [0.0]


def test_loading_imports_nothing_and_runs_no_code(path):
    saved(path)
    script = textwrap.dedent(
        """
        import sys
        import minitensor as mt
        assert not {"numpy", "torch", "pickle", "safetensors"} & sys.modules.keys(), sys.modules.keys()
        before = set(sys.modules)
        model = mt.load(sys.argv[1])
        model(mt.ones(4, 3))
        print(sorted(n for n in set(sys.modules) - before if not n.startswith("minitensor")))
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script, path], capture_output=True, text=True, check=False, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    assert not {"numpy", "torch", "pickle"} & set(eval(done.stdout))
