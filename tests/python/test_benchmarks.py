"""Tests of `cargo xtask bench`: the rows of all frameworks compute the same. No test depends on times."""

import os
import signal
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

import pytest

import minitensor as mt

pytest.importorskip("benchmarks", reason="run from the repository: python -m pytest")

from benchmarks import page
from benchmarks.crew import Crew, Failure, Member
from benchmarks.frameworks import FRAMEWORKS, Framework, Minitensor, NumPy
from benchmarks.machine import Machine
from benchmarks.outcome import Outcome
from benchmarks.row import Row
from benchmarks.rows import ROWS
from benchmarks.sample import Prepared, Sample

LIMIT = 16
"""The largest dimension of an input."""


def prepared(framework: Framework, row: Row) -> Prepared:
    _, out = framework.loop(row, LIMIT)(2)
    return Prepared(0, [Sample.of(array) for array in framework.arrays(out)])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_runs_and_agrees_with_numpy(row: Row) -> None:
    ours = prepared(Minitensor(), row)
    assert ours.results
    if NumPy.takes(row):
        assert ours.difference(prepared(NumPy(), row), row.dtype) == ""


@pytest.mark.parametrize("row", [row for row in ROWS if row.jitted], ids=lambda row: row.name)
def test_a_jitted_row_runs_as_a_graph(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    functions = []

    def jit(function, original=mt.jit):
        functions.append(original(function))
        return functions[-1]

    monkeypatch.setattr(mt, "jit", jit)
    prepared(Minitensor(), row)
    assert functions
    assert all(function.graphs for function in functions)


def test_only_compilers_run_a_row_that_compiles() -> None:
    rows = [row for row in ROWS if row.anew]
    assert rows
    for row in rows:
        assert [name for name, kind in FRAMEWORKS.items() if kind.takes(row)] == ["minitensor", "inductor", "jax"]


def test_row_names_are_unique() -> None:
    assert [name for name, count in Counter(row.name for row in ROWS).items() if count > 1] == []


def test_different_results_are_detected() -> None:
    exp, tanh = (next(row for row in ROWS if row.name == name) for name in ("exp 1 Mi", "tanh 1 Mi"))
    assert "differs" in prepared(NumPy(), exp).difference(prepared(NumPy(), tanh), "float32")


@pytest.fixture
def member():
    with Crew(["numpy"]) as [member]:
        yield member


def test_a_worker_continues_after_a_failure(member: Member) -> None:
    with pytest.raises(Failure):
        member.ask("prepare", "no such row")
    assert member.ask("prepare", "add 8").results


def test_a_worker_that_was_killed_is_started_again(member: Member) -> None:
    member.ask("prepare", "add 8")
    assert member.process
    os.kill(member.process.pid, signal.SIGKILL)
    with pytest.raises(Failure, match="ended"):
        member.ask("time", 1)
    assert member.ask("prepare", "add 8").results


def test_no_process_is_left_after_an_interruption() -> None:
    with pytest.raises(KeyboardInterrupt), Crew(["numpy"]) as [member]:
        member.ask("prepare", "add 8")
        assert member.process
        pid = member.process.pid
        raise KeyboardInterrupt
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_the_page_has_every_row_and_keeps_the_section_on_gpus(tmp_path: Path) -> None:
    names = dict.fromkeys(FRAMEWORKS, "1.0")
    outcomes = [Outcome(row, {"minitensor": 1e-3, "numpy": 2e-3}) for row in ROWS[:-1]] + [Outcome(ROWS[-1], {})]
    machine = Machine.this(names, dict.fromkeys(FRAMEWORKS, 0.1), None, rounds=1)
    (tmp_path / "benchmarks.md").write_text("old\n\n## GPU\n\nFigures.\n", encoding="utf-8")
    page.save(tmp_path, machine, outcomes)
    text = (tmp_path / "benchmarks.md").read_text(encoding="utf-8")
    assert all(f"| {row.name} |" in text for row in ROWS)
    assert text.endswith("## GPU\n\nFigures.\n")
    picture = ElementTree.parse(tmp_path / "benchmarks.svg")
    assert len([e for e in picture.iter() if e.get("class") == "faster"]) == len(ROWS) - 1
