"""Writes a file so that a crash at any moment leaves the old content or the new one."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

__all__ = ["write"]


def write(path: str | os.PathLike[str], chunks: Iterable[bytes]) -> None:
    """Writes the chunks to a temporary file in the same folder, and renames it when all is on the disk.

    If writing fails, the temporary file is removed. If the process is killed, a file `.NAME.….tmp` may stay.
    """
    # A link stays a link to the file.
    target = Path(os.path.realpath(os.fspath(path)))
    if target.is_dir():
        raise IsADirectoryError(f"cannot save to '{path}': it is a folder; pass the path of a file")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"cannot save to '{path}': there is no folder '{target.parent}'; create it first")
    temporary = target.with_name(f".{target.name[:200]}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            with contextlib.suppress(OSError):
                os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _flush_folder(target.parent)


def _flush_folder(folder: Path) -> None:
    """Writes the renaming to the disk. Windows has no such operation."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        # Some file systems do not support it.
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
