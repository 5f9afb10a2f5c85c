"""`python -m minitensor`: what is installed; `ops`, `plugins`: what is loaded; `new`: begins a plugin; `stubs`."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable

import minitensor as mt

from . import _new, _stubs
from .plugins import command


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as info:
            return next(line.split(":", 1)[1].strip() for line in info if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


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
        case ["plugins", *rest]:
            return _told(lambda: command.run(rest))
        case ["new", *rest]:
            return _told(lambda: _new.run(rest))
        case ["stubs"]:
            for path in _stubs.write():
                print(path)
        case _:
            return _usage()
    return 0


def _usage() -> int:
    print("usage: python -m minitensor", "ops", command.USAGE, _new.USAGE, "stubs", sep="\n  ", file=sys.stderr)
    return 2


def _told(run: Callable[[], int | None]) -> int:
    """The exit status of a command; what goes wrong is told in a sentence."""
    try:
        status = run()
    except Exception as error:
        print(f"error: {error}" if str(error) else f"error: {type(error).__name__}", file=sys.stderr)
        return 1
    return _usage() if status is None else status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
