"""An IR as a text for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .graph import IR

__all__ = ["shown"]


def shown(ir: IR) -> str:
    """Returns the text: a tensor or a call in a line."""
    return "\n".join(
        [
            f"ir {ir.name}",
            *(
                f"symbol {name}: {least} to {'∞' if most is None else most}"
                for name, (least, most) in ir.symbols.items()
            ),
            *(f"input {meta}" for meta in ir.inputs),
            *(f"weight {meta}" for meta in ir.weights),
            *(f"constant {constant.meta}" for constant in ir.constants),
            *map(str, ir.nodes),
            *(f"update {target} = {value}" for target, value in ir.updates.items()),
            f"return {', '.join(meta.name for meta in ir.outputs)}",
        ]
    )
