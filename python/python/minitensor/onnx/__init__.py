"""Models of the Open Neural Network Exchange format (ONNX). This package needs the package `onnx`.

| module | contents |
|---|---|
| `loading` | `load`: a file becomes a module |
| `exporting` | `export`: a model becomes a file |
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnx import ModelProto

    from .. import nn
    from .._minitensor import Graph, Tensor
    from ..ir import IR
    from ..tracing import Jitted
    from .exporting.error import ExportError
    from .loading.error import OnnxError
    from .loading.model import OnnxModel
    from .loading.narrow import NarrowTensor

__all__ = ["ExportError", "NarrowTensor", "OnnxError", "OnnxModel", "export", "load"]

# The modules are imported when they are used: most programs read no ONNX, and `onnx` need not be installed.


_CLASSES = {
    "ExportError": "exporting.error",
    "NarrowTensor": "loading.narrow",
    "OnnxError": "loading.error",
    "OnnxModel": "loading.model",
}


def __getattr__(name: str) -> Any:
    if name in _CLASSES:
        return getattr(importlib.import_module(f"{__name__}.{_CLASSES[name]}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def _expect_onnx(function: str) -> None:
    if importlib.util.find_spec("onnx") is None:
        raise ImportError(f"mt.onnx.{function} needs the package onnx; install it with: pip install onnx")


def export(
    model: nn.Module | Jitted[..., Any] | Graph | IR,
    path: str | os.PathLike[str],
    examples: Any = None,
    *,
    dynamic: Mapping[int, str] | Sequence[Mapping[int, str]] | None = None,
    weights: Mapping[str, Tensor] | None = None,
    opset: int | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    training: bool = False,
    external_data: bool = False,
) -> None:
    """Writes a model to a file of ONNX, which runtimes such as onnxruntime execute.

    `model`, `examples`, `dynamic` and `weights` are those of `mt.save`, but there is one example: a tensor, or a tuple
    of arguments. A module is recorded in evaluation mode, unless `training=True`.

    Ops with a program, such as those of `mt.element_op`, become functions of the model, so any runtime can execute
    them. Custom ops without a program become nodes of a domain of their own, and a warning lists them.

    `opset` is the version of the operators of ONNX; the default is 21. Inputs and results are named by parameters of
    the function and keys of its result, unless `input_names` and `output_names` name them. With `external_data=True`,
    the weights are in a second file, `PATH.….data`: a file of ONNX has at most 2 GiB.

    The model is checked by `onnx.checker` before it is written. A crash while the file is written leaves the old file
    or the new one.

    >>> import minitensor as mt, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "linear.onnx")
    >>> mt.onnx.export(mt.nn.Linear(3, 2), path, mt.zeros(5, 3), dynamic={0: "batch"})
    >>> import onnx
    >>> [node.op_type for node in onnx.load(path).graph.node]
    ['Transpose', 'MatMul', 'Add']

    Raises ExportError, a ValueError, if a call cannot be exported; ImportError if `onnx` is not installed; RuntimeError
    and TypeError as `mt.save` does.
    """
    _expect_onnx("export")
    from .exporting import exporter

    exporter.export(
        model,
        path,
        examples,
        dynamic=dynamic,
        weights=weights,
        opset=opset,
        input_names=input_names,
        output_names=output_names,
        training=training,
        external_data=external_data,
    )


def load(model: str | os.PathLike[str] | bytes | ModelProto) -> OnnxModel:
    """Reads an ONNX model: from a file, from the bytes of a file, or from a `ModelProto`.

    The result is an `nn.Module`. Its parameters and buffers are the initializers of the model, by their names. It is
    called with the inputs of the model by position or by name, and returns its output, or a tuple of its outputs.
    No code of the file runs, and the file need not be trusted.

    >>> import minitensor as mt
    >>> from onnx import TensorProto, helper
    >>> x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 2]) for name in "xy")
    >>> weight = helper.make_tensor("weight", TensorProto.FLOAT, [2, 2], [0.0, 1.0, 1.0, 0.0])
    >>> node = helper.make_node("MatMul", ["x", "weight"], ["y"])
    >>> graph = helper.make_graph([node], "swap", [x], [y], [weight])
    >>> model = mt.onnx.load(helper.make_model(graph))
    >>> model(mt.Tensor([[1.0, 2.0]])).tolist()
    [[2.0, 1.0]]
    >>> [name for name, _ in model.named_parameters()]
    ['weight']

    Raises OnnxError, a ValueError, if the file is not a valid model, if weights are missing, or if the model has
    operators that minitensor does not know. The error lists all of them. Raises ImportError if `onnx` is missing.
    """
    _expect_onnx("load")
    from .loading import load_model

    return load_model(model)
