"""Ops for minitensor: `my_ops.squareplus(x)`. The plugin is loaded on first use."""

import os
import sys
from pathlib import Path
from typing import Any

import minitensor as mt

FILE = {"win32": "my_ops.dll", "darwin": "libmy_ops.dylib"}.get(sys.platform, "libmy_ops.so")


def library() -> Path:
    """Returns the library: the one installed with this package, or the one built by `cargo build --release`."""
    here = Path(__file__).resolve().parent
    target = Path(os.environ.get("CARGO_TARGET_DIR") or here.parents[1] / "target")
    return next((path for path in (here / FILE, target / "release" / FILE) if path.exists()), here / FILE)


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    if not mt.plugins.is_plugin_loaded("my_ops"):
        mt.plugins.load_plugin(library())
    return getattr(mt.ops.my_ops, name)
