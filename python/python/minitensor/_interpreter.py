"""The check that this is the main interpreter, which is made before anything else is imported."""

from __future__ import annotations

__all__: list[str] = []


def _is_main() -> bool:
    try:
        from _thread import _is_main_interpreter  # From Python 3.13 on.
    except ImportError:
        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            return True
        return bool(interpreters.get_current() == interpreters.get_main())
    return bool(_is_main_interpreter())


if not _is_main():
    raise ImportError(
        "minitensor can't be imported in a subinterpreter, since its ops and threads belong to the process; import it "
        "in the main interpreter, or start another process with multiprocessing"
    )
