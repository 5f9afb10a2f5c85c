"""Controls the worker processes. At most one runs at a time; the others are stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any

from .frameworks import FRAMEWORKS, THREADS

ROOT = Path(__file__).parents[1]

TIMEOUT = 300.0
"""The time limit for an answer of a worker in seconds, which includes compilation."""

ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "OMP_NUM_THREADS": str(THREADS),
    "OPENBLAS_NUM_THREADS": str(THREADS),
    "MKL_NUM_THREADS": str(THREADS),
    # A pool of compiler processes would run during the measurement.
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
}


class Failure(Exception):
    """A worker failed."""


class Member:
    """The process of a framework. It runs only while it handles a request.

    It is started on the first request, and again after it has died.
    """

    def __init__(self, framework: str) -> None:
        self.framework = framework
        self.title = FRAMEWORKS[framework].title
        self.process: subprocess.Popen[bytes] | None = None
        self.connection: Connection | None = None

    def ask(self, command: str, *arguments: Any) -> Any:
        """Calls a method of the worker and returns its result."""
        if self.process is None:
            self.start()
        else:
            self.signal(signal.SIGCONT)
        self.send(command, *arguments)
        value = self.answer()
        self.stop()
        return value

    def start(self) -> None:
        self.connection, theirs = Pipe()
        with theirs:
            command = [sys.executable, "-m", "benchmarks.worker", self.framework, str(theirs.fileno())]
            # In its own session, Ctrl-C does not reach it, and its children are stopped with it.
            self.process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=os.environ | ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self.answer()

    def send(self, *message: Any) -> None:
        assert self.connection is not None
        try:
            self.connection.send(message)
        except OSError:
            raise self.ended() from None

    def answer(self) -> Any:
        assert self.connection is not None
        try:
            if not self.connection.poll(TIMEOUT):
                self.kill()
                raise Failure(f"no answer in {TIMEOUT:.0f} s")
            done, value = self.connection.recv()
        except (EOFError, OSError):
            raise self.ended() from None
        if not done:
            self.stop()
            raise Failure(value)
        return value

    def stop(self) -> None:
        """Stops the process. Waits until it has stopped, if the system supports it."""
        assert self.process is not None
        self.signal(signal.SIGSTOP)
        if hasattr(os, "waitid"):
            os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def ended(self) -> Failure:
        """Cleans up after the process has ended without an answer."""
        assert self.process is not None
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(1)
        status = self.process.returncode
        self.kill()
        return Failure(f"its process ended with status {status}")

    def kill(self) -> None:
        """Kills the process, even if it is stopped."""
        if self.process is not None and self.connection is not None:
            self.signal(signal.SIGKILL)
            self.process.wait()
            self.connection.close()
        self.process = self.connection = None


class Crew:
    """One member for each framework. All processes are killed at the end of the block."""

    def __init__(self, frameworks: Iterable[str]) -> None:
        self.members = [Member(framework) for framework in frameworks]

    def __enter__(self) -> list[Member]:
        return self.members

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for member in self.members:
            member.kill()
