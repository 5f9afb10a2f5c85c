"""The process of one framework: `python -m benchmarks.worker FRAMEWORK FD`.

It receives commands with arguments over a socket, and answers each with a value or an error:

    prepare, row      creates the inputs and runs the row a few times
    time, count       runs the row `count` times; returns the seconds per repetition
    drop              frees the row
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
    """A framework and its current row."""

    def __init__(self, framework: Framework) -> None:
        self.framework = framework
        self.loop: Loop | None = None

    def prepare(self, name: str) -> Prepared:
        self.loop = self.framework.loop(named(name))
        # Three times, because compilers run in the first two calls, and states are compared after several steps.
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
        # Warm up the caches, which contain the data of other processes.
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
    """Makes the kernel kill this process when its parent dies. A stopped process would otherwise remain."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        if os.getppid() == 1:
            sys.exit()


if __name__ == "__main__":
    die_with_parent()
    serve(Connection(int(sys.argv[2])), sys.argv[1])
