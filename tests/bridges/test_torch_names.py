"""Functions of ops by their names: named results, pickles, and other tracers of PyTorch."""

import pickle

import minitensor.torch as mtt
import pytest
import torch

import minitensor as mt

X = torch.tensor([3.0, 1.0, 2.0])


class Largest(torch.nn.Module):
    def forward(self, x):
        found = mtt.topk(x, 2)
        return found.values, found


def check(values, found):
    assert values.tolist() == [3.0, 2.0]
    assert found._fields == ("values", "indices")
    assert found.indices.tolist() == [0, 2]


def test_compiled_and_exported_results_keep_their_names():
    model = Largest()
    check(*model(X))
    check(*torch.compile(model, backend="eager", fullgraph=True)(X))
    check(*torch.export.export(model, (X,)).module()(X))


@pytest.mark.parametrize("function", [mtt.gelu, mtt.linalg.matrix_product, mtt.random.dropout])
def test_functions_are_pickled_by_name(function):
    assert pickle.loads(pickle.dumps(function)) is function


def test_fx_traces_calls():
    w = torch.ones(3, requires_grad=True)
    closed = torch.fx.symbolic_trace(lambda x: mtt.multiply(w, x))
    torch.testing.assert_close(closed(X), X)
    traced = torch.fx.symbolic_trace(lambda x: mtt.gelu(mtt.add(x, 1.0)))
    torch.testing.assert_close(traced(X), torch.nn.functional.gelu(X + 1))


def test_tensors_that_have_no_memory_of_numbers_are_refused_by_name():
    quantized = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8)
    message = r"op 'exp' takes no quantized tensors, got torch.quint8; convert them with .dequantize\(\)"
    for exp in (mtt.exp, mt.ops.exp, torch.ops.minitensor.exp):
        with pytest.raises(NotImplementedError, match=message):
            exp(quantized)


def test_prod_has_a_hessian():
    x = torch.tensor([1.0, 2.0, 3.0])
    found = torch.func.hessian(lambda x: mtt.prod(x, axis=0))(x)
    assert found.tolist() == [[0.0, 3.0, 2.0], [3.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
