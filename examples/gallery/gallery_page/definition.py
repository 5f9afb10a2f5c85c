"""Definitions of ops in Rust, as they are in the sources."""

from __future__ import annotations

import re
from pathlib import Path


class Source:
    """A file of ops."""

    def __init__(self, path: Path) -> None:
        self.lines = path.read_text(encoding="utf-8").splitlines()
        #: The first line of the file says what its ops are.
        self.title = self.lines[0].removeprefix("//! ").rstrip(".")

    def definition(self, line: int) -> str:
        """Returns the function at a line, from 1, with its attributes, after the private functions that it uses."""
        parts = [self._item(line - 1)]
        used: set[str] = set()
        for part in parts:
            for name, start in self._private():
                if name not in used and re.search(rf"\b{name}\b", part):
                    used.add(name)
                    parts.append(self._item(start))
        return "\n\n".join(reversed(parts))

    def _private(self) -> list[tuple[str, int]]:
        """Returns the names of the private functions, and where the text of each begins."""
        found = []
        for number, line in enumerate(self.lines):
            if name := re.match(r"fn (\w+)", line):
                start = number
                while self.lines[start - 1].startswith(("#[", "///")):
                    start -= 1
                found.append((name[1], start))
        return found

    def _item(self, start: int) -> str:
        end = next(n for n in range(start, len(self.lines)) if self.lines[n] == "}")
        return "\n".join(self.lines[start : end + 1])
