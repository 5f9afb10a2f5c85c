"""The process of one framework: `python -m benchmarks.worker FRAMEWORK FD`.

Over a socket it is told what to do, a name and its arguments, and answers with a value or an error:

    prepare, row      makes the inputs and does the work a few times
    time, count       does it so often; the seconds for one time
    drop              forgets the row
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

from .frameworks import FRAMEWORKS, Framework, Loop
from .rows import named
from .sample import Prepared, Sample


class Worker:
    """A framework, and the row it is at."""

    def __init__(self, framework: Framework) -> None:
        self.framework = framework
        self.loop: Loop | None = None

    def prepare(self, name: str) -> Prepared:
        self.loop = self.framework.loop(named(name))
        # Thrice, because compilers get ready at the first and second time, and a state is compared after some steps.
        for _ in range(3):
            _, out = self.loop(1)
        results = [Sample.of(array) for array in self.framework.arrays(out)]
        del out
        count = 1
        while self.loop(count)[0] < 2e-3:
            count *= 2
        return Prepared(min(self.loop(count)[0] for _ in range(3)) / count, results)

    def time(self, count: int) -> float:
        assert self.loop is not None
        # The processes before it had the caches.
        self.loop(max(1, count // 4))
        return self.loop(count)[0] / count

    def drop(self) -> None:
        self.loop = None
        gc.collect()


def serve(connection: Connection, framework: str) -> None:
    try:
        worker = Worker(FRAMEWORKS[framework]())
    except Exception as error:
        connection.send((False, f"{type(error).__name__}: {error}"))
        return
    connection.send((True, None))
    gc.disable()
    while True:
        try:
            command, *arguments = connection.recv()
        except EOFError:
            return
        try:
            answer: tuple[bool, Any] = True, getattr(worker, command)(*arguments)
        except Exception as error:
            answer = False, f"{type(error).__name__}: {error}"
        connection.send(answer)


def die_with_parent() -> None:
    """A process that is stopped when its parent dies would otherwise stay so."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        if os.getppid() == 1:
            sys.exit()


if __name__ == "__main__":
    die_with_parent()
    serve(Connection(int(sys.argv[2])), sys.argv[1])
