"""`python -m minitensor op …`: shows one op."""

from __future__ import annotations

from .. import plugins
from .._minitensor import describe
from .text import text

__all__ = ["COMMANDS", "run"]

#: The arguments of the command, and its description.
COMMANDS = {"op NAME [PLUGIN]": "show an op, also of a plugin's file: its formula, program and plot"}


def run(arguments: list[str]) -> int | None:
    """Runs the command and returns its exit status, or `None` if the arguments are invalid."""
    match arguments:
        case [name, *files] if len(files) < 2:
            for file in files:
                plugins.load_plugin(file)
            print(text(describe(name)))
        case _:
            return None
    return 0
