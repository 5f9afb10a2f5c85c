"""Models in files of ONNX. The package `onnx` is needed, and imported when a function is called."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .. import nn
    from .._minitensor import Graph, Tensor
    from ..ir import IR
    from ..tracing import Jitted

from .exporting import ExportError

__all__ = ["ExportError", "export"]


def _expect_onnx(function: str) -> None:
    try:
        import onnx  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"mt.onnx.{function} needs the package onnx, which is not installed; install it with: pip install onnx"
        ) from error


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
