"""Checks that this is the main interpreter, before anything else is imported."""

from __future__ import annotations

from importlib import import_module

__all__: list[str] = []


def _is_main() -> bool:
    check = getattr(import_module("_thread"), "_is_main_interpreter", None)  # From Python 3.13 on.
    if check is not None:
        return bool(check())
    try:
        interpreters = import_module("_xxsubinterpreters")
    except ImportError:
        return True
    return bool(interpreters.get_current() == interpreters.get_main())


if not _is_main():
    raise ImportError(
        "minitensor cannot be imported in a subinterpreter, because its ops and threads belong to the process; import "
        "it in the main interpreter, or start another process with multiprocessing"
    )
