"""Ops in notebooks: a cell that ends with an op, such as `mt.ops.swish`, shows its description."""

from __future__ import annotations

import sys
import types
from typing import Any

from .._minitensor import describe
from ..arrays.names import op_name
from .markdown import markdown


def register() -> None:
    """Registers the description with the running IPython, if there is one.

    Functions of ops are builtin functions, which cannot have methods such as `_repr_markdown_`.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    if shell is not None:
        shell.display_formatter.formatters["text/markdown"].for_type(types.BuiltinFunctionType, representation)


def representation(function: Any) -> str | None:
    """Returns the description of the function of an op, or `None` for other functions."""
    try:
        return markdown(describe(op_name(function, "the notebook")))
    except (TypeError, ValueError):
        return None
