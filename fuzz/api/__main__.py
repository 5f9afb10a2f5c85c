"""Random calls of everything that the package offers, each with claims that must hold.

    python fuzz/api MODE [--seed N] [--seconds N] [--case N] [--cases N]

The modes are those of `modes.py`. Processes with limited memory make the cases; this one watches them. A case that ends
its process, or takes too long, is a finding like a claim that does not hold. `--case N` makes that case alone.
"""

import argparse
import collections
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).parent
#: Seconds that one case may take before it is interrupted, and after that before it is killed.
PATIENCE = 20
LEVELS = ["baseline", "avx2", "avx512"]
MODES = ["ops", "levels", "graphs", "methods", "threads", "texts"]


class Watched:
    """A worker process and its output."""

    def __init__(self, folder, mode, seed, first, last, level=None):
        self.progress, self.errors = folder / f"progress.{level}", folder / f"errors.{level}"
        self.progress.write_bytes(struct.pack("q1016x", first))
        variables = {"PYTHONFAULTHANDLER": "1", "RUST_BACKTRACE": "0"} | ({"MINITENSOR_SIMD": level} if level else {})
        command = [sys.executable, HERE / "worker.py", mode, seed, first, last, self.progress]
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                [str(word) for word in command],
                env=os.environ | variables,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        self.lines = []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(json.loads(line))

    def at(self):
        return struct.unpack("q1016x", self.progress.read_bytes())[0]

    def call(self):
        return self.progress.read_bytes()[8:].rstrip(b"\0").decode(errors="replace")

    def watch(self, until):
        """Waits for the worker's end. Returns the case that killed it, or None."""
        number, since, interrupted = self.at(), time.monotonic(), False
        while self.process.poll() is None:
            time.sleep(0.2)
            now = self.at()
            if now != number:
                number, since, interrupted = now, time.monotonic(), False
            waited = time.monotonic() - since
            if waited > PATIENCE and not interrupted:
                self.process.send_signal(signal.SIGINT)
                interrupted = True
            if waited > 2 * PATIENCE or (time.monotonic() > until and not interrupted and waited > PATIENCE):
                self.process.kill()
        self.reader.join(10)
        return None if self.process.returncode == 0 else self.at()

    def said(self):
        return self.errors.read_text(errors="replace")


def report(finding):
    print(json.dumps(finding), flush=True)


def fuzz(mode, seed, seconds, first, cases, chunk=2000):
    """Makes cases until the time is over. Returns how many there were, and how they ended."""
    until, number, outcomes = time.monotonic() + seconds, first, collections.Counter()
    while number < cases and time.monotonic() < until:
        last = min(number + chunk, cases)
        with tempfile.TemporaryDirectory() as folder:
            workers = {level: Watched(Path(folder), mode, seed, number, last, level) for level in levels(mode)}
            ends = [watched(worker, level, number, last, until, outcomes) for level, worker in workers.items()]
        compare(workers, outcomes)
        number = min(ends)
    return number - first, outcomes


def watched(worker, level, first, last, until, outcomes):
    """Watches a worker and reports its findings. Returns the case to continue with."""
    died = worker.watch(until)
    findings = [line for line in worker.lines if "finding" in line]
    for line in worker.lines:
        outcomes.update(line.get("outcomes", {}))
        if "slow" in line:
            report(line)
    said = worker.said()
    if died is not None:
        status = f"exit status {worker.process.returncode}"
        findings.append({"case": died, "call": worker.call(), "finding": status, "stderr": said[-2000:]})
    elif "panicked" in said:
        shown = said[said.index("panicked") :][:1000]
        findings.append({"cases": [first, last], "finding": "a panic message", "stderr": shown})
    for finding in findings:
        outcomes["findings"] += 1
        report(finding | ({"level": level} if level else {}))
    return last if died is None else died + 1


def levels(mode):
    return [level for level in LEVELS if level in supported()] if mode == "levels" else [None]


def supported():
    flags = Path("/proc/cpuinfo").read_text()
    return {"baseline"} | {"avx2" for _ in [0] if " avx2" in flags} | {"avx512" for _ in [0] if " avx512f" in flags}


def compare(workers, outcomes):
    """The digests of the levels with each other."""
    digests = {level: worker.lines[-1].get("digests", {}) for level, worker in workers.items() if worker.lines}
    reference = next(iter(digests.values()), {})
    for number, (call, digest) in reference.items():
        others = {level: d.get(number, ("", digest))[1] for level, d in digests.items()}
        if set(others.values()) != {digest}:
            outcomes["findings"] += 1
            report({"case": int(number), "call": call, "finding": f"SIMD levels differ: {others}"})


def main():
    parser = argparse.ArgumentParser(prog="python fuzz/api", description=__doc__.splitlines()[0])
    parser.add_argument("mode", choices=MODES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--case", type=int)
    parser.add_argument("--cases", type=int, default=1 << 60)
    args = parser.parse_args()
    first, cases = (0, args.cases) if args.case is None else (args.case, args.case + 1)
    started = time.monotonic()
    made, outcomes = fuzz(args.mode, args.seed, args.seconds, first, cases)
    seconds = time.monotonic() - started
    print(f"{args.mode}, seed {args.seed}: {made} cases in {seconds:.0f} s, {dict(outcomes)}")
    sys.exit(outcomes["findings"] > 0)


if __name__ == "__main__":
    main()
