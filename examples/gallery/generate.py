"""Writes the page of the gallery: `python generate.py write`, or `measure` to compare the speed with PyTorch."""

from __future__ import annotations

import sys

from gallery_page import command

if __name__ == "__main__":
    sys.exit(command.run(sys.argv[1:]))
