"""Symbolic sizes in compiled code."""

import minitensor.torch as mtt
import pytest
import torch
from torch._dynamo.utils import counters


def graph_count(f, shapes):
    """The number of graphs that are compiled for inputs of these shapes."""
    counters.clear()
    torch._dynamo.reset()
    g = torch.compile(f, fullgraph=True, backend="aot_eager", dynamic=True)
    for shape in shapes:
        x = torch.randn(shape, requires_grad=True)
        y = torch.randn(shape)
        assert g(x).shape == f(y).shape
        g(x).sum().backward()
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


def test_an_op_without_a_rule_is_compiled_for_each_shape():
    assert graph_count(lambda x: mtt.matmul(x, torch.ones(5, 2)), [(n, 5) for n in (4, 9)]) == 2
