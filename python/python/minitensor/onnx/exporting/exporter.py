"""`mt.onnx.export`."""

from __future__ import annotations

import hashlib
import os
import re
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
    if external_data:
        _write_two(Path(os.path.realpath(path)), made)
    else:
        atomic.write(path, [made.to_bytes()])


def _write_two(path: Path, made: Model) -> None:
    """Writes the weights to a file of their own, whose name depends on them: the old file keeps its weights until the
    new one is in its place."""
    digest = hashlib.sha256()
    for chunk in made.chunks():
        digest.update(chunk)
    weights = path.with_name(f"{path.name}.{digest.hexdigest()[:16]}.data")
    is_new = not weights.exists()
    atomic.write(weights, made.chunks())
    try:
        atomic.write(path, [made.to_bytes_with(weights.name)])
    except BaseException:
        if is_new:
            weights.unlink()
        raise
    own = re.compile(re.escape(path.name) + r"\.[0-9a-f]{16}\.data")
    for other in path.parent.iterdir():
        if own.fullmatch(other.name) and other != weights:
            other.unlink()


def _warn(made: Model) -> None:
    graph = made.graph
    if graph.opaque:
        ops = sorted(graph.opaque.items())
        listed = "".join(f"\n  '{op}' (domain '{domain}'): {reason}" for op, (domain, reason) in ops)
        warnings.warn(
            "mt.onnx.export: a runtime needs kernels of its own for these ops; to export them as functions, write them "
            f"with mt.element_op, mt.row_op, or calls of the ops of minitensor:{listed}",
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
