"""Symbolic sizes in compiled code."""

import minitensor.torch as mtt
import pytest
import torch
from torch._dynamo.utils import counters

import minitensor as mt


def graph_count(f, shapes):
    """The number of graphs that are compiled for inputs of these shapes."""
    counters.clear()
    torch._dynamo.reset()
    g = torch.compile(f, fullgraph=True, backend="aot_eager", dynamic=True)
    for shape in shapes:
        x = torch.randn(shape, requires_grad=True)
        y = g(x)
        torch.testing.assert_close(y.detach(), f(x.detach()), rtol=0, atol=0)
        if y.requires_grad:
            y.sum().backward()
            assert x.grad.shape == x.shape
    return counters["stats"]["unique_graphs"]


@pytest.mark.parametrize(
    "f",
    [
        mtt.swish,
        mtt.layer_norm,
        lambda x: mtt.add(x, x[:1]),
        lambda x: mtt.softmax(x, axis=1),
        lambda x: mtt.var(x, axis=0, keepdims=True),
        lambda x: mtt.var(x, axis=[0, 2]),
        lambda x: mtt.var(x),
    ],
)
def test_symbolic_sizes_stay_symbolic(f):
    assert graph_count(f, [(n, 3, 5) for n in (4, 9, 11)]) == 1


def test_sizes_stay_symbolic_if_only_the_body_knows_the_dtypes(monkeypatch):
    asked = []

    def unknown(name, *_):
        asked.append(name)
        raise NotImplementedError(name)

    monkeypatch.setattr(mtt.shapes, "_infer_dtypes", unknown)
    assert graph_count(mtt.layer_norm, [(n, 5) for n in (4, 9, 11)]) == 1
    assert "layer_norm" in asked


SEQUENCES = [(n, 6, 8 + n) for n in (4, 9, 11)]
ROWS = [(n, 6, 8) for n in (4, 9, 11)]
IMAGES = [(n, 4, 8 + n, 9 + n) for n in (3, 9, 11)]
VOLUMES = [(n, 4, 8 + n, 9 + n, 7 + n) for n in (3, 5, 6)]
KEY = torch.tensor([1, 2], dtype=torch.uint64)
INDEX = torch.zeros(2, 3, dtype=torch.int64)

#: A function for each op over whole tensors, and the shapes for which one graph serves.
TENSOR_BODIES = {
    "matmul": (lambda x: mtt.matmul(x, torch.ones(8, 2)), ROWS),
    "matmul of itself": (lambda x: mtt.matmul(x, x.mT), SEQUENCES),
    "concat": (lambda x: mtt.concat([x, x], axis=1), SEQUENCES),
    "stack": (lambda x: mtt.stack([x, x], axis=-1), SEQUENCES),
    "reshape": (lambda x: mtt.reshape(x, (x.shape[0], -1)), SEQUENCES),
    "reshape of rows": (lambda x: mtt.reshape(x, (-1, 8)), ROWS),
    "flatten": (lambda x: mtt.flatten(x, 1), SEQUENCES),
    "mse": (lambda x: mtt.mse(x, x * 2), SEQUENCES),
    "mse of elements": (lambda x: mtt.mse(x, x[:1], reduction="none"), SEQUENCES),
    "cross_entropy": (lambda x: mtt.cross_entropy(x, x[..., 0].argsort() * 0), SEQUENCES),
    "conv1d": (lambda x: mtt.conv1d(x, torch.ones(3, 6, 3), padding=[1]), SEQUENCES),
    "conv1d of batches": (lambda x: mtt.conv1d(x.mT, torch.ones(3, 9, 3)), [(n, 2 + n, 8, 9) for n in (3, 9)]),
    "conv2d": (lambda x: mtt.conv2d(x, torch.ones(3, 4, 3, 3), padding=[1], stride=[2]), IMAGES),
    "conv3d": (lambda x: mtt.conv3d(x, torch.ones(3, 4, 3, 3, 3)), VOLUMES),
    "conv_transpose1d": (lambda x: mtt.conv_transpose1d(x, torch.ones(6, 3, 3)), SEQUENCES),
    "conv_transpose2d": (lambda x: mtt.conv_transpose2d(x, torch.ones(4, 3, 3, 3), stride=[2]), IMAGES),
    "conv_transpose3d": (lambda x: mtt.conv_transpose3d(x, torch.ones(4, 3, 3, 3, 3), stride=[2]), VOLUMES),
    "max_pool1d": (lambda x: mtt.max_pool1d(x, [2]), SEQUENCES),
    "max_pool1d with steps": (lambda x: mtt.max_pool1d(x, [3], [2], [1], [2]), SEQUENCES),
    "max_pool2d": (lambda x: mtt.max_pool2d(x, [2], ceil_mode=True), IMAGES),
    "max_pool3d": (lambda x: mtt.max_pool3d(x, [2], ceil_mode=True), VOLUMES),
    "max_pool1d of batches": (lambda x: mtt.max_pool1d(x, [2]), IMAGES),
    "avg_pool1d": (lambda x: mtt.avg_pool1d(x, [2]), SEQUENCES),
    "avg_pool2d": (lambda x: mtt.avg_pool2d(x, [2], ceil_mode=True), IMAGES),
    "avg_pool3d": (lambda x: mtt.avg_pool3d(x, [2], ceil_mode=True), VOLUMES),
    "adaptive_avg_pool1d": (lambda x: mtt.adaptive_avg_pool1d(x, [2]), SEQUENCES),
    "adaptive_avg_pool2d": (lambda x: mtt.adaptive_avg_pool2d(x, [2, 3]), IMAGES),
    "adaptive_avg_pool3d": (lambda x: mtt.adaptive_avg_pool3d(x, [2]), VOLUMES),
    "batch_norm": (mtt.batch_norm, IMAGES),
    "group_norm": (lambda x: mtt.group_norm(x, groups=2), IMAGES),
    "instance_norm": (mtt.instance_norm, IMAGES),
    "pad": (lambda x: mtt.pad(x, [1, 2, 3, 4]), SEQUENCES),
    "crop": (lambda x: mtt.crop(x, [1, 2, 3, 4]), SEQUENCES),
    "slice": (lambda x: mtt.slice(x, axis=2, start=1, stop=-1, step=2), SEQUENCES),
    "slice to a size": (lambda x: mtt.slice(x, axis=2, stop=x.shape[0]), SEQUENCES),
    "slice backwards": (lambda x: mtt.slice(x, axis=2, step=-2), SEQUENCES),
    "slice backwards between": (lambda x: mtt.slice(x, axis=2, start=-2, stop=1, step=-1), SEQUENCES),
    "slice from outside": (lambda x: mtt.slice(x, axis=0, start=8, step=-3), SEQUENCES),
    "slice to outside": (lambda x: mtt.slice(x, axis=0, stop=20, step=-1), SEQUENCES),
    "squeeze": (lambda x: mtt.squeeze(x[:1], axis=0), SEQUENCES),
    "squeeze all": (lambda x: mtt.squeeze(x[:1]), SEQUENCES),
    "unsqueeze": (lambda x: mtt.unsqueeze(x, axis=1), SEQUENCES),
    "take": (lambda x: mtt.take(x, INDEX, axis=1), SEQUENCES),
    "index": (lambda x: mtt.index(x, [INDEX]), SEQUENCES),
    "transpose": (mtt.transpose, SEQUENCES),
    "matrix_transpose": (mtt.matrix_transpose, SEQUENCES),
    "moveaxis": (lambda x: mtt.moveaxis(x, 0, 2), SEQUENCES),
    "permute_dims": (lambda x: mtt.permute_dims(x, [2, 0, 1]), SEQUENCES),
    "expand": (lambda x: mtt.expand(x[:1], (5, x.shape[1], x.shape[2])), SEQUENCES),
    "flip": (mtt.flip, SEQUENCES),
    "roll": (lambda x: mtt.roll(x, 1, 1), SEQUENCES),
    "argsort": (mtt.argsort, SEQUENCES),
    "unfold": (lambda x: mtt.unfold(x, [2]), IMAGES),
    "fold": (lambda x: mtt.fold(mtt.unfold(x, [2]), (x.shape[2], x.shape[3]), [2]), IMAGES),
    "astype": (lambda x: mtt.astype(x, torch.float64), SEQUENCES),
    "clone": (mtt.clone, SEQUENCES),
    "zeros_like": (mtt.zeros_like, SEQUENCES),
    "complex": (lambda x: mtt.real(mtt.complex(x, x[0])), SEQUENCES),
    "random::uniform": (lambda x: mtt.random.uniform(KEY, [x.shape[0], 2], torch.float32), SEQUENCES),
    "unslice": (lambda x: mtt.unslice(x, [2 * x.shape[0], 6, x.shape[2]], 0, step=2), SEQUENCES),
    "dropout": (lambda x: mtt.dropout(x, training=False), SEQUENCES),
}


@pytest.mark.parametrize("name", TENSOR_BODIES)
def test_sizes_of_ops_over_whole_tensors_stay_symbolic(name):
    assert graph_count(*TENSOR_BODIES[name]) == 1


def test_exported_programs_have_dynamic_sizes():
    class Layer(torch.nn.Module):
        def forward(self, x):
            return mtt.flatten(mtt.conv2d(x, torch.ones(3, 4, 3, 3), padding=[1]), 1)

    rows = torch.export.Dim("rows", min=2, max=64)
    x = torch.randn(5, 4, 6, 6)
    program = torch.export.export(Layer(), (x,), dynamic_shapes=({0: rows},))
    for n in (2, 7):
        x = torch.randn(n, 4, 6, 6)
        torch.testing.assert_close(program.module()(x), Layer()(x))


@pytest.mark.parametrize(
    "f",
    [
        lambda q: mtt.concat([q, q]),
        lambda q: mtt.flatten(q),
        lambda q: mtt.reshape(q, [-1]),
        lambda q: mtt.pad(q, [0, 1, 0, 0]),
        lambda q: mtt.matmul(q.float(), torch.ones(2, 3)),
        lambda q: mtt.crop(q, [0, 1, 0, 0]),
        lambda q: mtt.slice(q, axis=0, step=-1),
    ],
)
def test_sizes_may_be_known_only_when_the_graph_runs(f):
    x = torch.tensor([[0.0, 1.0, 2.0], [3.0, 0.0, 4.0]])
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        torch._dynamo.reset()
        g = torch.compile(lambda x: f(torch.nonzero(x)), fullgraph=True, backend="aot_eager", dynamic=True)
        for y in (x, x + 1):
            assert torch.equal(g(y), f(torch.nonzero(y)))


@pytest.fixture
def tiled():
    @mt.custom_op(name="test_sizes::tiled")
    def tiled(x, *, count: int):
        return mt.concat([x] * count)

    yield lambda x: mtt.test_sizes.tiled(x, count=2)
    mt.unregister_custom_op_py("test_sizes::tiled")


def test_an_op_without_a_rule_is_compiled_for_each_shape(tiled):
    assert graph_count(tiled, [(n, 5) for n in (4, 9)]) == 2


def test_an_op_of_the_user_has_a_fake(tiled):
    mtt.register_fake("test_sizes::tiled")(lambda x, count: x.new_empty(x.shape[0] * count, x.shape[1]))
    assert graph_count(tiled, [(n, 5) for n in (4, 9)]) == 1


@pytest.mark.parametrize(
    ("fake", "reason"),
    [
        (lambda x, count: x, "it gave [(4, 5)], the op gives [(8, 5)]"),
        (lambda x, count: (x, x), "it gave [(4, 5), (4, 5)], the op gives [(8, 5)]"),
        (lambda x, count: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda x, count: 3, "TypeError: 'int' object is not iterable"),
    ],
)
def test_a_wrong_fake_is_not_used_and_the_log_says_why(tiled, fake, reason, caplog):
    caplog.set_level("INFO", logger="minitensor.torch")
    mtt.register_fake("test_sizes::tiled")(fake)
    assert graph_count(tiled, [(n, 5) for n in (4, 9)]) == 2
    assert f"op 'test_sizes::tiled' is compiled for its sizes, without its fake: {reason}" in caplog.messages


def test_a_fake_belongs_to_one_definition(tiled):
    mtt.register_fake("test_sizes::tiled")(lambda x, count: x.new_empty(x.shape[0] * count, x.shape[1]))
    mt.unregister_custom_op_py("test_sizes::tiled")

    @mt.custom_op(name="test_sizes::tiled")
    def tiled_again(x, *, count: int):
        return mt.concat([x, *[x[:4]] * (count - 1)])

    assert graph_count(tiled, [(n, 5) for n in (4, 9)]) == 2


def test_a_fake_of_an_unknown_op_is_an_error():
    with pytest.raises(ValueError, match="there is no op 'test_sizes::nothing'; register the op first"):
        mtt.register_fake("test_sizes::nothing")
