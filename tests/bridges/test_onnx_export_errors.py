"""Arguments that `mt.onnx.export` rejects: errors name the node, the reason and the way out, and no file is written."""

import os
import subprocess
import sys

import onnx
import pytest

import minitensor as mt
from minitensor import ir, nn


@pytest.fixture
def path(tmp_path):
    yield tmp_path / "model.onnx"
    assert list(tmp_path.iterdir()) == []


def refuses(path, model, *examples, error=ValueError, message, **options):
    with pytest.raises(error, match=message) as raised:
        mt.onnx.export(model, path, *examples, **options)
    assert "mt.save" not in str(raised.value)


X = mt.ones(2, 3)


def test_models_and_examples(path):
    refuses(path, print, X, error=TypeError, message="takes a module, a function under mt.jit, .*; write mt.jit")
    refuses(path, nn.Linear(3, 2), error=TypeError, message=r"pass an example: mt.onnx.export\(path, model, x\)")
    refuses(
        path, nn.Linear(3, 2), [X, X], error=TypeError, message="takes one example, .* got 2; pass the arguments of"
    )
    refuses(path, nn.Linear(3, 2), "x", error=TypeError, message="must be a tensor or a tuple")
    refuses(path, mt.jit(lambda x: x), error=TypeError, message="was not called yet")
    refuses(path, nn.Linear(3, 2), X, weights={}, error=TypeError, message="weights= is for an IR")
    refuses(path, mt.jit(lambda x: object()), X, error=TypeError, message="the result contains a value of type object")


def test_options(path):
    model = nn.Linear(3, 2)
    refuses(path, model, X, opset=19, message="opset= must be 20 to .*, got 19")
    refuses(path, model, X, opset=1000, message="opset= must be 20 to")
    refuses(path, model, X, opset="21", message="got '21'")
    refuses(path, model, X, input_names=["a", "b"], message=r"input_names= must be a list of 1 names \(x\)")
    refuses(path, model, X, input_names="x", message="must be a list of 1 names")
    refuses(path, model, X, output_names=["weight"], message="has the name 'weight', which another tensor")
    pair = mt.jit(lambda x: (x, x * 2))
    refuses(path, pair, X, output_names=["a", "a"], message="has the name 'a', which another tensor")
    refuses(path, model, X, dynamic={2: "n"}, message="dynamic= must map axes")


def test_functions_that_a_graph_cannot_repeat(path):
    refuses(path, mt.jit(lambda x: x * x.sum().item()), X, error=RuntimeError, message="reads the elements")
    cond = mt.jit(lambda x: mt.cond(x.sum() > 0, lambda x: x, lambda x: -x, x))
    refuses(path, cond, X, error=RuntimeError, message="mt.cond")


def test_derivatives(path):
    second = mt.jit(lambda x: mt.grad([mt.grad([x.tanh().sum()], [x], create_graph=True)[0].sum()], [x]))
    refuses(path, second, X, error=RuntimeError, message="computes a gradient .op 'tanh.vjp.vjp'")
    backward = mt.jit(lambda x: x.sum().backward())
    refuses(path, backward, X, error=RuntimeError, message="stores the gradients of tensors, as by backward")


def test_random_numbers(path):
    message = r"node 'dropout1' \(op 'dropout'\): it draws random numbers, .*; export the model in evaluation mode"
    refuses(path, mt.jit(lambda x: mt.ops.dropout(x)), X, message=message)
    refuses(path, mt.jit(lambda x: x + mt.rand(3)), X, message="draws random numbers")


def test_sizes_that_must_be_known(path):
    pool = mt.jit(lambda x: mt.ops.max_pool1d(x, [2], stride=[1]))
    refuses(
        path, pool, X, dynamic={1: "n"}, message=r"node '.*' \(op 'max_pool1d'\): a size is 'n', but must be a number"
    )


def test_changes_of_tensors_that_may_be_copies(path):
    def function(x):
        y = (x * 2).T
        z = y.reshape(-1)
        y += 1
        return z

    refuses(path, mt.jit(function), X, message="is a view or a copy of .*; write clone")


def test_graphs(path):
    x, y = (ir.TensorMeta(name, (3,), "float32") for name in ("x", "y"))
    graph = ir.IR("graph", [x], [], [ir.OpNode("y", "minitensor.nothing", [x], [y])], [y])
    refuses(path, graph, error=Exception, message="nothing")
    graph = ir.IR("graph", [x], [], [ir.OpNode("y", "other.op", [x], [y])], [y])
    refuses(path, graph, message="node 'y': other.op")
    wrong = ir.TensorMeta("y", (4,), "float32")
    graph = ir.IR("graph", [x], [], [ir.OpNode("y", "minitensor.exp", [x], [wrong])], [wrong])
    refuses(path, graph, message="does not accept the graph")
    graph = ir.IR("graph", [x], [], [ir.OpNode("y", "minitensor.exp", [x], [y])], [y], updates={"x": "y"})
    refuses(path, graph, message="the model changes x, .*; extract it in evaluation mode")


def test_a_folder_that_does_not_exist(path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        mt.onnx.export(nn.Linear(3, 2), path / "inner.onnx", X)


def test_a_failure_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.onnx"
    mt.onnx.export(nn.Linear(3, 2), path, X)
    before = path.read_bytes()
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("no space left")))
    with pytest.raises(OSError, match="no space"):
        mt.onnx.export(nn.Linear(3, 4), path, X)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_weights_of_more_than_two_gigabytes_need_a_second_file(path, monkeypatch):
    from minitensor.onnx.exporting import model

    monkeypatch.setattr(model, "_MOST", 10)
    refuses(path, nn.Linear(3, 2), X, message="more than 2 GiB.*external_data=True")


def test_a_graph_that_onnx_rejects_is_not_written(path, monkeypatch):
    def check(*_, **__):
        raise onnx.checker.ValidationError("a reason")

    monkeypatch.setattr(onnx.checker, "check_model", check)
    refuses(path, nn.Linear(3, 2), X, message="does not accept the graph: a reason", error=mt.onnx.ExportError)


WITHOUT_ONNX = """
import sys
sys.modules["onnx"] = None
import minitensor as mt
try:
    mt.onnx.export(mt.nn.Linear(3, 2), "model.onnx", mt.ones(2, 3))
except ImportError as error:
    assert str(error) == (
        "mt.onnx.export needs the package onnx; install it with: pip install onnx"
    ), error
else:
    raise AssertionError
"""


def test_the_package_onnx_is_needed_for_the_export_only():
    subprocess.run([sys.executable, "-c", WITHOUT_ONNX], check=True)
    code = "import sys, minitensor as mt; mt.onnx; assert 'onnx' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
