"""The picture of an op: its value and its gradient."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minitensor._description.curve import curve, function

import minitensor as mt

from .drawing import drawing
from .example import RANGES, ROWS, Range

COUNT = 121


def picture(description: Mapping[str, Any]) -> str | None:
    """Returns the drawing of an op, or `None` for an op that is not drawn."""
    name = description["name"]
    if name in ROWS:
        return _of_row(description, ROWS[name])
    low, high, along, fixed = RANGES.get(name, Range())
    drawn = curve(description, COUNT, (low, high), along, fixed) if name in RANGES or _is_simple(description) else None
    if drawn is None:
        return None
    lines = [("value", drawn.call, drawn.value)]
    if drawn.derivative is not None:
        lines.append(("gradient", "derivative", drawn.derivative))
    return drawing(drawn.x, lines)


def _is_simple(description: Mapping[str, Any]) -> bool:
    return len(description["inputs"]) == 1 or description["location"].startswith("src/activation.rs")


def _of_row(description: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """Draws a row, the result, and the gradient of an element in the middle of the result."""
    integers = {i["name"] for i in description["inputs"] if i["dtypes"] == "int64"}
    tensors = {i["name"] for i in description["inputs"]}
    given = {k: mt.Tensor(v, dtype="int64" if k in integers else "float64") if k in tensors else v for k, v in arguments.items()}
    name, first = next(iter(given.items()))
    first.requires_grad_(description["differentiable"])
    y = function(description["name"])(**given)
    is_row = y.ndim == 1
    lines = [("given", name, first.detach().tolist())]
    if is_row:
        lines.insert(0, ("value", description["outputs"][0]["name"], y.detach().astype("float64").tolist()))
    if description["differentiable"]:
        middle = y.shape[0] // 2 if is_row else None
        (gradient,) = mt.grad(y[middle] if is_row else y, first)
        lines.append(("gradient", f"gradient of element {middle}" if is_row else "gradient", gradient.tolist()))
    return drawing(list(range(len(lines[0][2]))), lines)
