"""`mt.onnx.export`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx

from ...saving import atomic
from .error import ExportError
from .model import Model
from .source import source

__all__ = ["DEFAULT_OPSET", "export"]

#: The version of the operators of ONNX that is used by default: runtimes from 2024 on have it.
DEFAULT_OPSET = 21
#: The first that has all operators that the rules use.
_LEAST_OPSET = 20


def export(
    model: Any,
    path: str | os.PathLike[str],
    examples: Any,
    *,
    dynamic: Any,
    weights: Any,
    opset: int | None,
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
    training: bool,
    external_data: bool,
) -> None:
    """See `mt.onnx.export`."""
    opset = DEFAULT_OPSET if opset is None else opset
    latest = onnx.defs.onnx_opset_version()
    if type(opset) is not int or not _LEAST_OPSET <= opset <= latest:
        raise ExportError(
            f"mt.onnx.export: opset= must be {_LEAST_OPSET} to {latest}, the latest of onnx {onnx.__version__}, got "
            f"{opset!r}"
        )
    made = Model(source(model, examples, dynamic, weights, training), opset, input_names, output_names)
    made.check()
    _warn(made)
    if not external_data:
        atomic.write(path, [made.to_bytes()])
        return
    location = f"{Path(path).name}.data"
    data, chunks = made.with_external_data(location)
    atomic.write(Path(path).with_name(location), chunks)
    atomic.write(path, [data])


def _warn(made: Model) -> None:
    graph = made.graph
    if graph.opaque:
        listed = ", ".join(f"'{op}' (domain '{domain}')" for op, domain in sorted(graph.opaque.items()))
        warnings.warn(
            f"mt.onnx.export: a runtime needs kernels of its own for {listed}: these ops have no program. Write them "
            "with mt.element_op or mt.row_op to export them as functions",
            UserWarning,
            stacklevel=4,
        )
    if graph.memory.changed:
        warnings.warn(
            f"mt.onnx.export: the model changes {', '.join(graph.memory.changed)} in place; the exported graph "
            "computes the same results, but does not keep the change for the next run",
            UserWarning,
            stacklevel=4,
        )
