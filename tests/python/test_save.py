"""Tests of `mt.save` and `mt.load`: graphs, weights, modes, arguments, and errors of what cannot be saved."""

import math

import numpy as np
import pytest
from minitensor.saving import FileError, LoadedModel

import minitensor as mt
from minitensor import ir, nn


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.mt"


def rebuilt(path, model, *examples):
    mt.save(path, model, *examples)
    return mt.load(path)


def bits(t):
    return mt._minitensor._tensor_bytes(t.detach())


class Counter(nn.Module):
    """A module with a buffer that it changes, dropout, a constant, and parameters under two names."""

    def __init__(self):
        self.first = nn.Linear(4, 4)
        self.tied = self.first
        self.second = nn.Linear(4, 2)
        self.register_buffer("calls", mt.zeros((), dtype="int64"))
        self.register_buffer("scratch", mt.ones(2), persistent=False)
        self.register_parameter("frozen", mt.full((2,), 0.5))

    def forward(self, x, scale=1.0):
        self.calls += 1
        h = mt.ops.dropout(self.tied(self.first(x)).tanh(), 0.5, training=self.training)
        return {
            "y": self.second(h + mt.arange(4)) * scale * self.scratch * self.frozen,
            "h": (h.detach(), "text", None),
        }


def test_a_loaded_module_computes_the_same_in_both_modes(path):
    model, x = Counter(), mt.randn(3, 4)
    loaded = rebuilt(path, model, x)
    for mode in (True, False):
        model.train(mode), loaded.train(mode)
        mt.manual_seed(7)
        expected = model(x)
        mt.manual_seed(7)
        got = loaded(x)
        assert list(got) == ["y", "h"] and got["h"][1:] == ("text", None)
        assert bits(got["y"]) == bits(expected["y"])
        assert bits(got["h"][0]) == bits(expected["h"][0]) and not got["h"][0].requires_grad
        assert bits(loaded.calls) == bits(model.calls)


def test_a_loaded_module_has_the_same_state_and_mode(path):
    model = Counter().eval()
    loaded = rebuilt(path, model, mt.zeros(3, 4))
    assert not loaded.training
    state = loaded.state_dict()
    assert {name: t.shape for name, t in state.items()} == {name: t.shape for name, t in model.state_dict().items()}
    assert all(bits(t) == bits(state[name]) for name, t in model.state_dict().items())
    assert [n for n, _ in loaded.named_parameters()] == [n for n, _ in model.named_parameters()]
    assert [p.requires_grad for p in loaded.parameters()] == [p.requires_grad for p in model.parameters()]
    assert loaded.first.weight is loaded.tied.weight
    Counter().load_state_dict(state)


def test_saving_changes_neither_the_module_nor_the_random_numbers(path):
    model = Counter().eval()
    model.second.train()
    state = mt.get_rng_state()
    mt.save(path, model, mt.ones(3, 4))
    assert model.calls.item() == 0
    assert mt.get_rng_state() == state
    assert (model.training, model.second.training) == (False, True)
    assert all(p.grad is None for p in model.parameters())


def trained(model, steps=5):
    optimizer = mt.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.1)
    mt.manual_seed(3)
    for _ in range(steps):
        optimizer.zero_grad()
        (model(mt.randn(3, 4))["y"] ** 2).sum().backward()
        optimizer.step()
    return {name: bits(t) for name, t in model.state_dict().items()}


def test_training_continues_with_the_same_bits(path):
    model = Counter().train()
    loaded = rebuilt(path, model, mt.zeros(3, 4))
    before = {name: bits(t) for name, t in model.state_dict().items()}
    after = trained(model)
    assert trained(loaded) == after
    assert before["first.weight"] != after["first.weight"]
    assert before["frozen"] == after["frozen"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_composite_ops_round_as_before(path, registered, dtype):
    @mt.custom_op(name="saved::normalized")
    def normalized(x, scale: float = 3.0):
        return (x - x.mean()) / (x.var() + 1e-3).sqrt() * scale

    x = mt.randn(50, requires_grad=True).astype(dtype).detach().requires_grad_()
    y = normalized(x, 2.0)
    y.sum().backward()
    mt.save(path, mt.jit(lambda x: normalized(x, 2.0)), mt.zeros(50, dtype=dtype))
    mt.unregister_custom_op_py("saved::normalized")
    z = x.detach().requires_grad_()
    got = mt.load(path)(z)
    got.sum().backward()
    assert got.dtype == x.dtype
    assert bits(got) == bits(y)
    assert bits(z.grad) == bits(x.grad)


def test_a_function_under_jit_is_saved_for_all_of_its_calls(path):
    w, table = mt.randn(3, requires_grad=True), {"shift": mt.ones(3)}

    @mt.jit
    def function(x, power, *, flags):
        y = (x * w).sum() + table["shift"][0]
        return [y**power, flags["on"]]

    first, second = mt.randn(3), mt.randn(2, 3)
    expected = [function(first, 2, flags={"on": True}), function(second, 3, flags={"on": False})]
    loaded = rebuilt(path, function)
    assert len(loaded.branches) == 2
    got = [loaded(first, 2, flags={"on": True}), loaded(second, 3, flags={"on": False})]
    assert [(bits(y), flag) for y, flag in got] == [(bits(y), flag) for y, flag in expected]
    assert [name for name, _ in loaded.named_parameters()] == ["w"]
    assert sorted(loaded.state_dict()) == ["table.shift", "w"]
    for arguments in [(first, 4), (first.astype("float64"), 2), (mt.zeros(4), 2)]:
        with pytest.raises(TypeError, match=r"it was saved for:\n  \(float32 \(3,\), 2, flags=\{'on': True\}\)"):
            loaded(*arguments, flags={"on": True})


def test_a_graph_of_a_function_is_saved(path):
    function = mt.jit(lambda x: x * 2)
    function(mt.ones(3)), function(mt.ones(2, 3))
    loaded = rebuilt(path, function.graphs[1])
    assert [str(branch) for branch in loaded.branches] == ["(float32 (2, 3))"]
    assert loaded(mt.ones(2, 3)).tolist() == [[2.0] * 3] * 2
    graph = function.graphs[0]
    del function
    with pytest.raises(ValueError, match="the function of the graph no longer exists"):
        mt.save(path, graph)


def test_histories_end_where_they_ended(path):
    def function(x):
        with mt.no_grad():
            fixed = x * 2
        return x.detach() * x + fixed * x.exp()

    loaded = rebuilt(path, mt.jit(function), mt.zeros(3))
    x = mt.randn(3, requires_grad=True)
    (expected,), (got,) = mt.grad(function(x).sum(), [x]), mt.grad(loaded(x).sum(), [x])
    assert bits(got) == bits(expected)
    assert bits(got) != bits(mt.grad((x * x + x * 2 * x.exp()).sum(), [x])[0])


def test_views_in_place_calls_and_random_numbers_are_repeated(path):
    def function(x):
        y = x.reshape(2, 3).T.clone()
        y[0] = 5.0
        y[:, 1] += mt.rand(3)
        return y, y.reshape(-1)[2:4], mt.randint(0, 10, (4,))

    x = mt.randn(6)
    loaded = rebuilt(path, mt.jit(function), x)
    mt.manual_seed(1)
    expected = function(x)
    mt.manual_seed(1)
    assert [bits(t) for t in loaded(x)] == [bits(t) for t in expected]


def test_a_loaded_model_can_be_saved_again(path, tmp_path):
    model, x = Counter().eval(), mt.randn(3, 4)
    loaded = rebuilt(path, model, x)
    again = rebuilt(tmp_path / "again.mt", loaded)
    assert bits(again(x)["y"]) == bits(model(x)["y"])
    assert path.read_bytes() == (tmp_path / "again.mt").read_bytes()


def test_a_loaded_model_works_with_jit_vmap_and_grad(path):
    model, x = nn.Sequential(nn.Linear(3, 4), mt.ops.tanh, nn.Linear(4, 1)), mt.randn(5, 3)
    loaded = rebuilt(path, model, [(x,), (x[0],)])
    assert bits(mt.jit(loaded)(x)) == bits(model(x))
    weights, expected = list(loaded.parameters()), list(model.parameters())

    def gradients(model, weights):
        return mt.vmap(lambda x: mt.grad(model(x).sum(), weights))(x)

    assert [bits(g) for g in gradients(loaded, weights)] == [bits(g) for g in gradients(model, expected)]


def test_an_ir_is_saved_with_its_weights(path):
    x, w, y = (ir.TensorMeta(name, (2,), "float32") for name in ("x", "w", "y"))
    graph = ir.IR("scale", [x], [w], [ir.OpNode("product", "minitensor.multiply", [x, w], [y])], [y])
    mt.save(path, graph, weights={"w": mt.Tensor([2.0, 3.0])})
    (result,) = mt.load(path)(mt.ones(2))
    assert result.tolist() == [2.0, 3.0]
    with pytest.raises(ValueError, match=r"lacks the weight w: float32 \(2,\)"):
        mt.save(path, graph)
    with pytest.raises(ValueError, match=r"the IR has the weight w: float32 \(2,\), but weights= has float32 \(3,\)"):
        mt.save(path, graph, weights={"w": mt.zeros(3)})


def test_graphs_of_files_are_those_of_other_programs(path):
    loaded = rebuilt(path, mt.jit(lambda x: (x * 2).tanh()), mt.zeros(3))
    (branch,) = loaded.branches
    assert [node.op_type for node in branch.ir.nodes] == ["minitensor.multiply", "minitensor.tanh"]
    assert branch.ir.nodes[0].attrs == {"y": 2}
    assert branch.ir.run(mt.ones(3))[0].tolist() == pytest.approx([math.tanh(2)] * 3)


class Attention(nn.Module):
    """Attention with heads, whose graph has sizes that are products and sums of the sizes of its arguments."""

    def __init__(self, width=8, heads=2):
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x, memory):
        batch, n, width = x.shape
        m = memory.shape[1]

        def split(t, n):
            return t.reshape(batch, n, self.heads, width // self.heads).permute_dims((0, 2, 1, 3))

        q, k, v = split(self.query(x), n), split(self.key(memory), m), split(self.value(memory), m)
        weights = mt.ops.softmax(q @ k.permute_dims((0, 1, 3, 2)) / width**0.5, axis=-1)
        y = (weights @ v).permute_dims((0, 2, 1, 3)).reshape(batch * n, width)
        return y.sum(0) / (batch * n + m), mt.ops.dropout(y, 0.5, training=self.training)[: batch * n - 1]


def test_dynamic_sizes(path):
    model = Attention()
    dynamic = [{0: "batch", 1: "n"}, {0: "batch", 1: "m"}]
    mt.save(path, model, (mt.randn(1, 3, 8), mt.randn(1, 4, 8)), dynamic=dynamic)
    loaded = mt.load(path)
    assert len(loaded.branches) == 2
    meta, _ = loaded.branches[0].ir.inputs
    assert meta.shape == ("batch", "n", 8)
    for batch, n, m in [(2, 3, 4), (1, 5, 1), (3, 1, 9), (7, 4, 4)]:
        x, memory = mt.randn(batch, n, 8), mt.randn(batch, m, 8)
        for mode in (True, False):
            model.train(mode), loaded.train(mode)
            results, gradients = [], []
            for each in (model, loaded):
                mt.manual_seed(2)
                first, second = each(x, memory)
                (first.sum() + second.sum()).backward()
                results.append([bits(first), bits(second)])
                gradients.append([np.asarray(p.grad) for p in each.parameters()])
                each.zero_grad()
            assert results[0] == results[1]
            # A graph may store a gradient in another order, in which a sum has other last digits.
            for ours, theirs in zip(*gradients, strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    with pytest.raises(TypeError, match=r"it was saved for:\n  \(float32 \(batch, n, 8\), float32 \(batch, m, 8\)\)"):
        loaded(mt.zeros(2, 3, 8), mt.zeros(3, 4, 8))
    with pytest.raises(TypeError, match="it was saved for"):
        loaded(mt.zeros(0, 3, 8), mt.zeros(0, 4, 8))


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: x.exp() if x.shape[0] > 5 else x, "it differs at other sizes than these|differs in its"),
        (lambda x: x * (1.0 / x.shape[0]), "it differs in its attribute 'y' of call 'multiply1'"),
        (lambda x: x * x.shape[0] ** 2, "it differs at other sizes than these"),
        (lambda x: x + mt.arange(x.shape[0]), "it differs in its"),
        (lambda x: [x] * x.shape[0], "it differs in its structure|differs in its"),
    ],
)
def test_a_graph_that_differs_between_sizes_is_an_error(path, function, words):
    with pytest.raises(ValueError, match=words):
        mt.save(path, mt.jit(function), mt.ones(4), dynamic={0: "n"})
    assert not path.exists()


def test_wrong_dynamic_sizes_are_errors(path):
    function = mt.jit(lambda x, y: (x, y))
    example = (mt.ones(2, 3), mt.ones(4))
    for dynamic, words in [
        ([{0: "n"}], "a list with one for each of 2 tensors"),
        ([{2: "n"}, {}], r"must map axes of a tensor of shape \(2, 3\)"),
        ([{0: "n n"}, {}], "must map axes"),
        ({0: "n"}, "'n' has the sizes 2 and 4 in the example"),
        ([{}, {}], "must have 1 to 4 names, got 0"),
    ]:
        with pytest.raises(ValueError, match=words):
            mt.save(path, function, example, dynamic=dynamic)


REFUSED = [
    (lambda x: x.sum().item(), RuntimeError, "reads the elements of a tensor"),
    (lambda x: mt.cond(x.sum() > 0, lambda: x, lambda: -x), RuntimeError, r"calls mt.cond, .*use mt.where"),
    (
        lambda x: mt.grad(x.exp().sum(), [x])[0],
        RuntimeError,
        r"computes a gradient \(op 'exp.vjp'\).*differentiate it after",
    ),
    (lambda x: {1.5: x}, TypeError, "the result contains a value of type dict"),
    (lambda x: (x, float("nan")), TypeError, "the result contains a value of type float"),
]


@pytest.mark.parametrize(("function", "error", "words"), REFUSED)
def test_what_a_file_cannot_repeat_is_an_error(path, function, error, words):
    x = mt.ones(3)
    with pytest.raises(error, match=words):
        mt.save(path, mt.jit(function), x)
    assert not path.exists()


def test_a_training_step_is_an_error(path):
    model = nn.Linear(2, 1)
    optimizer = mt.optim.SGD(model.parameters())

    @mt.jit
    def step(x):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        return x

    before = bits(model.weight)
    with pytest.raises(RuntimeError, match="cannot be saved"):
        mt.save(path, step, mt.ones(3, 2))
    assert bits(model.weight) == before


def test_wrong_arguments_of_save_say_what_to_write(path):
    model = nn.Linear(2, 1)
    for arguments, words in [
        ((model,), r"pass an example: mt.save\(path, model, x\)"),
        ((model, []), "must not be empty"),
        ((model, 3), "must be a tensor or a tuple"),
        ((lambda x: x, mt.ones(1)), r"write mt.jit\(function\)"),
        ((mt.jit(lambda x: x),), "was not called yet"),
        ((model.state_dict(),), "use mt.save_state"),
    ]:
        with pytest.raises(TypeError, match=words):
            mt.save(path, *arguments)

    class Replaces(nn.Module):
        def __init__(self):
            self.register_buffer("count", mt.zeros(()))

        def forward(self, x):
            self.count = self.count + 1
            return x

    with pytest.raises(RuntimeError, match=r"replaces 'count'.*self.count.copy_"):
        mt.save(path, Replaces(), mt.ones(1))
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        mt.save(path / "missing" / "model.mt", model, mt.ones(1, 2))
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        mt.save(path.parent, model, mt.ones(1, 2))


def test_other_files_are_errors_that_say_what_they_are(path, tmp_path):
    mt.save_state(path, {"w": mt.ones(2)})
    with pytest.raises(FileError, match="without a model; read its tensors with mt.load_state"):
        mt.load(path)
    mt.save_checkpoint(path, epoch=1)
    with pytest.raises(FileError, match="read it with mt.load_state or mt.load_checkpoint"):
        mt.load(path)
    for content, words in [
        (b"PK\x03\x04" + bytes(100), "is a zip archive"),
        (b"\x80\x04" + bytes(100), "is a pickle"),
        (b"", "has 0 bytes"),
        (b"text of some length", "is not a safetensors file"),
    ]:
        path.write_bytes(content)
        with pytest.raises(FileError, match=words):
            mt.load(path)
    with pytest.raises(FileNotFoundError):
        mt.load(tmp_path / "none.mt")
    assert isinstance(rebuilt(path, nn.Linear(1, 1), mt.ones(1)), LoadedModel)
