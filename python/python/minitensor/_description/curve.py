"""A curve: the values and derivatives of an op over a range of one input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .. import _minitensor as core
from .. import ops

#: The range of the input, unless the caller chooses one.
RANGE = (-4.0, 4.0)
#: The value of the other inputs, unless the caller chooses one.
OTHER = 1.0


class Curve(NamedTuple):
    """Points of an op."""

    #: The call, such as `pinball_loss(prediction, target=1)`.
    call: str
    x: list[float]
    value: list[float]
    #: `None` if the op has no gradient.
    derivative: list[float] | None


def function(name: str) -> Any:
    """Returns the function of an op, which may be in a namespace."""
    found: Any = ops
    for part in name.split("::"):
        found = getattr(found, part)
    return found


def curve(
    description: Mapping[str, Any],
    count: int,
    bounds: tuple[float, float] = RANGE,
    along: str | None = None,
    fixed: Mapping[str, Any] | None = None,
) -> Curve | None:
    """Evaluates an elementwise op with one result at `count` places of one input, or returns `None` for other ops.

    `along` names the input, the first by default. `fixed` has values of other inputs and attributes.
    """
    if not _is_plain(description):
        return None
    along = along or description["inputs"][0]["name"]
    others = [i["name"] for i in description["inputs"] if i["name"] != along and not i["optional"]]
    fixed = dict.fromkeys(others, OTHER) | dict(fixed or {})
    if any(a["required"] and a["name"] not in fixed for a in description["attributes"]):
        return None
    call = ", ".join([along, *(f"{name}={_number(value)}" for name, value in fixed.items())])
    is_differentiable = description["differentiable"]
    x = core.linspace(*bounds, count, dtype="float64").requires_grad_(is_differentiable)
    y = function(description["name"])(**{along: x}, **fixed)
    derivative = core.grad(y.sum(), x)[0].tolist() if is_differentiable else None
    return Curve(f"{description['name']}({call})", x.tolist(), y.astype("float64").tolist(), derivative)


def _is_plain(description: Mapping[str, Any]) -> bool:
    """Returns whether an op computes one number from numbers."""
    inputs = description["inputs"]
    return (
        len(inputs) > 0
        and "program" in description
        and not description["shape_rule"].startswith("(")
        and [o["role"] for o in description["outputs"]] == ["returned"]
        and all("float64" in description["dtypes"].get("T", ()) and "floating" in i["dtypes"] for i in inputs)
    )


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
