"""The commands of `generate.py`."""

from __future__ import annotations

import sys
from pathlib import Path

from minitensor import plugins

from . import page, speed

FOLDER = Path(__file__).parents[1]
DOCS = FOLDER.parents[1] / "docs"
LIBRARY = FOLDER / "target" / "release" / "libgallery.so"


def run(arguments: list[str]) -> int:
    """Runs a command and returns its exit status."""
    if arguments not in (["write"], ["measure"]):
        print("usage: generate.py write | measure", file=sys.stderr)
        return 2
    ops = plugins.load_plugin(LIBRARY).ops
    if arguments == ["measure"]:
        speed.measure(FOLDER)
    for path, text in page.files(FOLDER, ops).items():
        target = DOCS / path
        target.parent.mkdir(exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return 0
