"""Ops for minitensor: `my_ops.squareplus(x)`. The plugin is loaded on first use."""

from pathlib import Path
from typing import Any

import minitensor as mt


FILE = "my_ops.so"


def library() -> Path:
    """Returns the library: the one installed with this package, or the one built by `make`."""
    here = Path(__file__).resolve().parent
    return next((path for path in (here / FILE, here.parents[1] / FILE) if path.exists()), here / FILE)


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    if not mt.plugins.is_plugin_loaded("my_ops"):
        mt.plugins.load_plugin(library())
    return getattr(mt.ops.my_ops, name)
