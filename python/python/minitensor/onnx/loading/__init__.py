"""Reading of ONNX models.

| module | contents |
|---|---|
| `file` | a file becomes a valid `ModelProto` |
| `elements` | dtypes, and the elements of a `TensorProto`, also those in other files |
| `values` | what flows through a graph: tensors, arrays whose elements are known, strings, sequences |
| `narrow` | tensors of formats with less than 16 bits that minitensor has no dtype for |
| `known` | arithmetic of known arrays, such as shapes |
| `rule`, `rules` | the table of operators, one module for each family |
| `graph`, `preparation` | a `GraphProto` becomes steps, and how they run |
| `functions` | operators that are defined by other operators |
| `names` | the names of initializers as names of parameters and buffers |
| `model` | `OnnxModel`, the module |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .model import OnnxModel

__all__ = ["load_model"]


def load_model(source: Any) -> OnnxModel:
    """Reads a model. See `minitensor.onnx.load`."""
    from .file import read
    from .model import OnnxModel
    from .preparation import prepare

    return OnnxModel(prepare(*read(source)))
