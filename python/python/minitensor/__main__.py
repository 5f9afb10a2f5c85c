"""`python -m minitensor`: what is installed here; `ops`, `plugins`: what is loaded; `stubs`: writes the type stubs."""

from __future__ import annotations

import platform
import sys

import minitensor as mt

from . import _stubs


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as info:
            return next(line.split(":", 1)[1].strip() for line in info if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _plugins() -> str:
    """A table of the plugins that are loaded."""
    rows = [("name", "version", "kind", "ops", "description", "path")]
    for p in mt.plugins.list_plugins():
        rows.append((p.name, str(p.version), p.kind, str(len(p.ops)), p.description, p.path or ""))
    if len(rows) == 1:
        return "no plugins are loaded"
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def main(arguments: list[str]) -> int:
    """Runs a command."""
    match arguments:
        case []:
            print(f"minitensor {mt.__version__} (Python {platform.python_version()})")
            print(f"ops        {len(mt.list_custom_ops_py())}")
            print(f"processor  {_processor()}")
            print(f"threads    {mt.get_num_threads()}")
            print(f"CUDA       {'yes' if mt.cuda.is_available() else 'no'}")
        case ["ops"]:
            for name in mt.list_custom_ops_py():
                print(mt.ops.describe(name)["signature"])
        case ["plugins"] | ["plugins", "list"]:
            print(_plugins())
        case ["stubs"]:
            for path in _stubs.write():
                print(path)
        case _:
            print("usage: python -m minitensor [ops | plugins [list] | stubs]", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
