"""The picture of an op: its value and its gradient."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minitensor._description.curve import curve, function

import minitensor as mt

from .drawing import Panel, drawing
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
    panels = [Panel("value", "value", drawn.value)]
    if drawn.derivative is not None:
        panels.append(Panel("gradient", f"derivative by {along or description['inputs'][0]['name']}", drawn.derivative))
    return drawing(drawn.call, drawn.x, panels)


def _is_simple(description: Mapping[str, Any]) -> bool:
    return len(description["inputs"]) == 1 or description["location"].startswith("src/activation.rs")


def _of_row(description: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """Draws a row, the result, and the gradient of the largest element of the result."""
    integers = {i["name"] for i in description["inputs"] if i["dtypes"] == "int64"}
    tensors = {i["name"] for i in description["inputs"]}
    given = {
        k: mt.Tensor(v, dtype="int64" if k in integers else "float64") if k in tensors else v
        for k, v in arguments.items()
    }
    name, first = next(iter(given.items()))
    first.requires_grad_(description["differentiable"])
    y = function(description["name"])(**given)
    panels = [Panel("given", name, first.detach().tolist())]
    is_row = y.ndim == 1
    if is_row:
        panels.append(Panel("value", description["outputs"][0]["name"], y.detach().astype("float64").tolist()))
    if description["differentiable"]:
        largest = int(mt.ops.argmax(y).item())
        (gradient,) = mt.grad(y[largest] if is_row else y, first)
        panels.append(Panel("gradient", f"gradient of element {largest}" if is_row else "gradient", gradient.tolist()))
    return drawing(_call(description["name"], arguments), list(range(len(panels[0].values))), panels)


def _call(name: str, arguments: Mapping[str, Any]) -> str:
    """Returns the call; the values of rows are left out."""
    shown = (key if isinstance(value, list) else f"{key}={value}" for key, value in arguments.items())
    return f"{name}({', '.join(shown)})"
