"""Tests of states, checkpoints and `model inspect`. tests/bridges compares with other readers of safetensors."""

import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from minitensor.saving import FileError, command, safetensors
from saved_training import bits
from state_samples import samples

import minitensor as mt
from minitensor import nn


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.safetensors"


def test_tensors_of_all_dtypes_and_shapes_are_the_same(path):
    tensors = samples() | {"a view": mt.arange(12).reshape(3, 4).T[::2], "ünïcode 🙂": mt.ones(2)}
    mt.save_state(path, tensors)
    loaded = mt.load_state(path)
    assert loaded.keys() == tensors.keys()
    for name, t in tensors.items():
        assert (loaded[name].dtype, loaded[name].shape, bits(loaded[name])) == (t.dtype, t.shape, bits(t)), name


def test_a_state_without_tensors_is_a_file(path):
    mt.save_state(path, {})
    assert mt.load_state(path) == {}


def test_a_model_file_has_its_weights_as_safetensors(path):
    model = nn.Linear(3, 2)
    mt.save(path, model, mt.zeros(1, 3))
    state = mt.load_state(path)
    assert {name: bits(t) for name, t in state.items()} == {name: bits(t) for name, t in model.state_dict().items()}
    size = int.from_bytes(path.read_bytes()[:8], "little")
    header = json.loads(path.read_bytes()[8 : 8 + size])
    assert header["weight"] == {"dtype": "F32", "shape": [2, 3], "data_offsets": [8, 32]}
    assert json.loads(header["__metadata__"]["minitensor.model"])["version"] == 1


def test_nested_states_keep_their_structure(path):
    state = {
        "list": [mt.ones(2), 1, 2.5, True, None, "text", (1, mt.zeros(1))],
        "dict": {"a": {"b": mt.full((), 3)}, 7: math.inf, "nan": math.nan, "-": -math.inf},
        "a.b": mt.ones(1),
        "a": {"b": mt.zeros(1)},
        "big": 2**80,
        "float": 0.1 + 0.2,
    }
    mt.save_state(path, state)
    loaded = mt.load_state(path)

    def plain(value):
        if isinstance(value, mt.Tensor):
            return (value.dtype.name, value.shape, bits(value))
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items()}
        return type(value)(plain(item) for item in value) if isinstance(value, (list, tuple)) else repr(value)

    assert plain(loaded) == plain(state)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"x": object()}, "the value of 'x' is of type object"),
        ({"x": {1.5: 1}}, "the value of 'x' is of type dict"),
        ([1], "takes a dict, such as model.state_dict"),
        ({"x": np.zeros(2)}, "the value of 'x' is of type ndarray"),
    ],
)
def test_other_values_are_errors(path, state, words):
    with pytest.raises(TypeError, match=words):
        mt.save_state(path, state)
    assert not path.exists()


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"tensor": "y"}, "the tensor 'y', which the file lacks"),
        ({"list": [{"tensor": "x"}, {"tensor": "x"}]}, "which the file lacks, or has twice"),
        ({"dict": []}, "tensors that its state does not have: x"),
        ({"dict": [["a", 1], ["a", 2]]}, "not a new key and a value"),
        ({"code": "1"}, "no tensor, list, tuple, dict, number or string"),
        ({"list": [{"tensor": "x"}]}, "the state must be a dict"),
    ],
)
def test_a_malformed_state_is_an_error(path, state, words):
    text = json.dumps({"version": 1, "minitensor": "0", "state": state})
    safetensors.write(path, {"x": mt.ones(1)}, {"minitensor.state": text})
    with pytest.raises(FileError, match=words):
        mt.load_state(path)


class Net(nn.Module):
    def __init__(self):
        self.first = nn.Linear(4, 8)
        self.second = nn.Linear(8, 1)
        self.unused = nn.Linear(2, 2)
        self.register_buffer("seen", mt.zeros((), dtype="int64"))

    def forward(self, x):
        self.seen += len(x)
        return self.second(mt.ops.dropout(self.first(x).tanh(), 0.3, training=self.training))


OPTIMIZERS = [
    lambda p: mt.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
    lambda p: mt.optim.Adam(p, lr=0.01, weight_decay=0.1),
    lambda p: mt.optim.AdamW(p, lr=0.01, betas=(0.8, 0.99)),
]


def steps(model, optimizer, count, use_second):
    losses = []
    for k in range(count):
        optimizer.lr *= 0.9
        optimizer.zero_grad()
        # Some parameters get no gradient in some steps, so they have other counts of updates.
        x = mt.randn(16, 4)
        loss = (model(x) ** 2).mean() if use_second(k) else model.first(x).abs().mean()
        loss.backward()
        optimizer.step()
        losses.append(bits(loss))
    return losses


def numbers(model, optimizer):
    state = optimizer.state_dict()
    tensors = [{name: bits(t) for name, t in s.items()} for s in state.pop("state")]
    return {name: bits(t) for name, t in model.state_dict().items()}, state, tensors, mt.get_rng_state()


@pytest.mark.parametrize("new", OPTIMIZERS)
def test_resumed_training_gives_the_same_numbers(path, new):
    mt.manual_seed(0)
    model = Net()
    optimizer = new(model.parameters())
    steps(model, optimizer, 5, lambda k: k % 2 == 0)
    mt.save_checkpoint(path, model=model, optimizer=optimizer, epoch=5, history=[1.5, math.inf])
    expected = steps(model, optimizer, 5, lambda k: k % 3 == 0), numbers(model, optimizer)

    mt.manual_seed(99)
    model = Net()
    optimizer = new(model.parameters())
    values = mt.load_checkpoint(path, model=model, optimizer=optimizer)
    assert values == {"epoch": 5, "history": [1.5, math.inf]}
    assert (steps(model, optimizer, 5, lambda k: k % 3 == 0), numbers(model, optimizer)) == expected


def test_a_checkpoint_that_does_not_match_changes_nothing(path):
    model = Net()
    optimizer = mt.optim.Adam(model.parameters())
    steps(model, optimizer, 2, lambda k: True)
    mt.save_checkpoint(path, model=model, optimizer=optimizer)
    other = Net()
    sgd = mt.optim.SGD(other.parameters())
    before = numbers(other, sgd)
    with pytest.raises(ValueError, match="belongs to another optimizer") as raised:
        mt.load_checkpoint(path, model=other, optimizer=sgd)
    assert "while loading 'optimizer'" in raised.value.__notes__[0]
    assert numbers(other, sgd) == before
    with pytest.raises(ValueError, match="has the states of model, optimizer; pass an object for each"):
        mt.load_checkpoint(path, model=other)
    mt.save_state(path, {"x": 1})
    with pytest.raises(FileError, match="not a checkpoint of mt.save_checkpoint"):
        mt.load_checkpoint(path, model=other)


OPTIMIZER_CHANGES = [
    (lambda s: s.update(options=[]), "'options' must be a dict"),
    (lambda s: s["options"].update(lr="much"), "the option 'lr' must be like"),
    (lambda s: s["options"].update(betas=[0.9, 0.9]), "the option 'betas' must be like"),
    (lambda s: s["options"].update(more=1), "differing options: more"),
    (lambda s: s.update(steps=-1), "'steps' must be a number of steps"),
    (lambda s: s.update(updates=[1]), "'updates' one for each parameter"),
    (lambda s: s["state"].pop(), "the state has 5 parameters"),
    (lambda s: s["state"][0].update(m=1), "must be a dict of tensors"),
    (lambda s: s["state"][0].update(other=s["state"][0]["m"]), "unknown tensors: other"),
    (
        lambda s: s["state"][0].update(m=mt.zeros(1)),
        r"'m' of parameter 0 is float32 \(1,\), the parameter float32 \(8, 4\)",
    ),
]


@pytest.mark.parametrize(("change", "words"), OPTIMIZER_CHANGES)
def test_a_wrong_state_of_an_optimizer_changes_nothing(change, words):
    model = Net()
    optimizer = mt.optim.Adam(model.parameters())
    steps(model, optimizer, 2, lambda k: True)
    state = optimizer.state_dict()
    change(state)
    before = numbers(model, optimizer)
    with pytest.raises(ValueError, match=words):
        optimizer.load_state_dict(state)
    assert numbers(model, optimizer) == before


def test_the_state_of_the_random_numbers_is_restored():
    mt.manual_seed(4)
    mt.rand(3)
    state = mt.get_rng_state()
    assert state[0] == 4
    first = mt.randn(5), mt.randint(0, 9, (3,))
    mt.set_rng_state(state)
    second = mt.randn(5), mt.randint(0, 9, (3,))
    assert [bits(t) for t in first] == [bits(t) for t in second]


def test_inspect_shows_graphs_tensors_and_ops(path, registered):
    @mt.element_op(name="saved::shrink")
    def shrink(x, by: float = 0.5):
        return x - by * x.sign()

    mt.save(path, nn.Sequential(nn.Linear(3, 2), lambda x: shrink(x)), mt.zeros(5, 3))
    mt.unregister_custom_op_py("saved::shrink")
    done = subprocess.run(
        [sys.executable, "-m", "minitensor", "model", "inspect", path],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ,
    )
    for line in [
        "parameters  8",
        "  Sequential(float32 (5, 3))",
        "        1 × minitensor.saved::shrink",
        "  0.weight  float32  (2, 3)  parameter",
        "  saved::shrink  element op, gradient: derived, 1 program",
    ]:
        assert line in done.stdout.splitlines(), done.stdout
    assert not mt.is_custom_op_registered_py("saved::shrink")
    path.write_bytes(b"")
    done = subprocess.run(
        [sys.executable, "-m", "minitensor", "model", "inspect", path],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: ") and "has 0 bytes" in done.stderr
    mt.save_checkpoint(path, model=nn.Linear(1, 1))
    assert "states.model.weight  float32  (1, 1)" in command.inspect(path)
