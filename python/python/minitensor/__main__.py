"""`python -m minitensor`: information on the installation, and the commands that `--help` lists."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable

import minitensor as mt

from . import _new, _stubs
from ._description import command as description_command
from .plugins import command
from .saving import command as saving_command

#: The arguments of each command, and its description.
COMMANDS = {
    "": "show versions, SIMD level and threads",
    "ops": "print the signatures of all ops",
    **description_command.COMMANDS,
    **command.COMMANDS,
    **saving_command.COMMANDS,
    **_new.COMMANDS,
    "stubs": "regenerate the type stubs of minitensor itself",
}


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
            print(f"SIMD       {mt.simd_level()}")
            print(f"threads    {mt.get_num_threads()}")
            print(f"CUDA       {'yes' if mt.cuda.is_available() else 'no'}")
        case ["ops"]:
            for name in mt.list_custom_ops_py():
                print(mt.ops.describe(name)["signature"])
        case [*_, "-h" | "--help"] | ["help"]:
            print(_usage())
        case ["op", *rest]:
            return _status(lambda: description_command.run(rest))
        case ["plugins", *rest]:
            return _status(lambda: command.run(rest))
        case ["model", *rest]:
            return _status(lambda: saving_command.run(rest))
        case ["new", *rest]:
            return _status(lambda: _new.run(rest))
        case ["stubs"]:
            for path in _stubs.write():
                print(path)
        case _:
            return _usage_error()
    return 0


def _usage() -> str:
    width = max(map(len, COMMANDS))
    return "\n".join(
        ["usage: python -m minitensor …", *(f"  {words:<{width}}  {about}" for words, about in COMMANDS.items())]
    )


def _usage_error() -> int:
    print(_usage(), file=sys.stderr)
    return 2


def _status(run: Callable[[], int | None]) -> int:
    """Runs a command and returns its exit status. Prints errors without a traceback."""
    try:
        status = run()
    except BrokenPipeError:
        raise
    except Exception as error:
        print(f"error: {error}" if str(error) else f"error: {type(error).__name__}", file=sys.stderr)
        return 1
    return _usage_error() if status is None else status


def _piped(arguments: list[str]) -> int:
    """Runs a command. A reader that closes the pipe early, such as `head`, is not an error."""
    try:
        status = main(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status


if __name__ == "__main__":
    sys.exit(_piped(sys.argv[1:]))
