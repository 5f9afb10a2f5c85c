"""Models of the Open Neural Network Exchange format (ONNX). This package needs the package `onnx`.

| module | contents |
|---|---|
| `loading` | `load`: a file becomes a module |
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnx import ModelProto

    from .loading.error import OnnxError
    from .loading.model import OnnxModel
    from .loading.narrow import NarrowTensor

__all__ = ["NarrowTensor", "OnnxError", "OnnxModel", "load"]

# The modules are imported when they are used: most programs read no ONNX, and `onnx` need not be installed.


_CLASSES = {"NarrowTensor": "narrow", "OnnxError": "error", "OnnxModel": "model"}


def __getattr__(name: str) -> Any:
    if name in _CLASSES:
        return getattr(importlib.import_module(f"{__name__}.loading.{_CLASSES[name]}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


# `export` belongs here.


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
    from .loading import load_model

    return load_model(model)
