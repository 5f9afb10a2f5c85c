"""Tests of tuned attributes. Each process that measures has a cache of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import minitensor as mt

#: An op in Python that records the tiles it is called with.
DEFINITION = """
import minitensor as mt
used = []

@mt.custom_op(name="tuned::scaled", tune={"tile": [1, 2, 4]})
def scaled(x, factor: float = 2.0, *, tile: int):
    used.append(tile)
    return x * factor
"""


def run(code: str, cache: Path, **variables: str) -> str:
    environment = os.environ | {"MINITENSOR_CACHE_DIR": str(cache)} | variables
    process = subprocess.run(
        [sys.executable, "-c", DEFINITION + code], env=environment, capture_output=True, text=True, timeout=120
    )
    assert process.returncode == 0, process.stderr
    return process.stdout.strip()


CALL = """
y = scaled(mt.ones((3, 4)))
assert y.tolist() == [[2.0] * 4] * 3
print(len(used), used[-1])
"""


def test_the_first_call_measures_and_later_processes_read_the_file(tmp_path: Path) -> None:
    count, tile = run(CALL, tmp_path).split()
    # One run before, three rounds of three candidates, and the call.
    assert count == "11" and tile in {"1", "2", "4"}
    assert run(CALL, tmp_path) == f"1 {tile}"
    (file,) = tmp_path.iterdir()
    value, tab, text = file.read_text().partition("\t")
    assert (value, tab) == (tile, "\t") and text.startswith("tuned::scaled(float32[4, 4]; tile=1|2|4; ")


def test_nothing_is_measured_if_tuning_is_off(tmp_path: Path) -> None:
    assert run(CALL, tmp_path, MINITENSOR_TUNE="off") == "1 1"
    assert list(tmp_path.iterdir()) == []


def test_choices_are_listed_and_forgotten(tmp_path: Path) -> None:
    code = """
scaled(mt.ones(5))
(name, values), = mt.tuning.choices().items()
assert name.startswith("tuned::scaled(float32[8]; ") and values in [(1,), (2,), (4,)], (name, values)
mt.tuning.clear()
assert mt.tuning.choices() == {}
mt.tuning.clear()
"""
    run(code, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_gradients_and_profiles_see_one_call(tmp_path: Path) -> None:
    code = """
x = mt.ones(6, requires_grad=True)
with mt.profiler.profile() as p:
    y = scaled(x, 3.0)
assert sorted(e.name for e in p.events()) == ["multiply", "tuned::scaled"], p.events()
y.sum().backward()
assert x.grad.tolist() == [3.0] * 6
"""
    run(code, tmp_path)


def test_an_op_that_changes_its_input_changes_it_once(tmp_path: Path) -> None:
    code = """
@mt.custom_op(tune={"tile": [1, 2, 4]})
def changing(x, *, tile: int):
    mt.ops.add_(x, 1.0)
    return x * 1.0

x = mt.zeros(3)
assert changing(x).tolist() == x.tolist() == [1.0] * 3
leaf = mt.zeros(3, requires_grad=True)
try:
    changing(leaf)
except RuntimeError as error:
    assert "leaf" in str(error)
assert leaf.tolist() == [0.0] * 3
"""
    run(code, tmp_path)


def test_a_measured_op_sees_gradients_as_any_other(tmp_path: Path) -> None:
    code = """
@mt.custom_op(tune={"tile": [1, 2]})
def slope(x, *, tile: int):
    return mt.grad((x * x).sum(), [x])[0]

assert slope(mt.ones(2, requires_grad=True)).tolist() == [2.0, 2.0]

@mt.custom_op(tune={"tile": [2, 4]}, backward=lambda ctx, grad: grad * ctx.attrs["tile"] * 0 + grad)
def same(x, *, tile: int):
    return x * 1.0

x = mt.ones(2, requires_grad=True)
same(x).sum().backward()
assert x.grad.tolist() == [1.0, 1.0]
"""
    run(code, tmp_path)


@pytest.mark.parametrize("off", ["off", "OFF", "0", "false"])
def test_random_numbers_need_a_key_whether_or_not_the_call_is_measured(tmp_path: Path, off: str) -> None:
    code = """
@mt.custom_op(tune={"tile": [1, 2]})
def noisy(x, *, tile: int):
    return x + mt.randn(3)

for _ in range(2):
    try:
        noisy(mt.ones(3))
        raise SystemExit("no error")
    except RuntimeError as error:
        assert "give the op a key as an input" in str(error), error
assert noisy(mt.ones(3), tile=2).shape == (3,)
"""
    run(code, tmp_path)
    run(code, tmp_path, MINITENSOR_TUNE=off)


def test_floats_do_not_make_classes_and_one_candidate_is_not_measured(tmp_path: Path) -> None:
    code = """
for k in range(50):
    scaled(mt.ones(3), k * 0.1)
assert len(used) == 50 + 10 and len(mt.tuning.choices()) == 1

@mt.custom_op(tune={"a": [16], "b": [1, 2]})
def two(x, *, a: int, b: int):
    used.append(b)
    return x * a

used.clear()
for _ in range(4):
    two(mt.ones(3)), two(mt.ones(3), a=16)
assert len(used) == 1 + 3 * 2 + 8, len(used)
used.clear()
two(mt.ones(30), b=1)
assert used == [1]
"""
    run(code, tmp_path)


def test_a_full_table_measures_nothing(tmp_path: Path) -> None:
    run(CALL, tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_text("".join(f"1\tother{k}\n" for k in range(70_000)))
    assert run(CALL, tmp_path) == "1 1"
    assert file.read_text().count("\n") == 70_000


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_a_cache_that_is_no_file_is_not_read(tmp_path: Path) -> None:
    run(CALL, tmp_path)
    (file,) = tmp_path.iterdir()
    file.unlink()
    os.mkfifo(file)
    assert run(CALL, tmp_path).startswith("11 ")
    assert run("import os; mt.ones(3); child = os.fork() or os._exit(0); os.waitpid(child, 0)", tmp_path) == ""
    file.unlink()
    file.mkdir()
    assert run(CALL, tmp_path).startswith("11 ")


def test_a_byte_that_is_no_text_hides_no_other_line(tmp_path: Path) -> None:
    _, tile = run(CALL, tmp_path).split()
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"abc\xff\n" + file.read_bytes() + b"\xff")
    assert run(CALL, tmp_path) == f"1 {tile}"


def test_a_forked_child_measures_too(tmp_path: Path) -> None:
    code = """
import os, sys
if not hasattr(os, "fork"):
    sys.exit()
scaled(mt.ones(3))
child = os.fork()
if child == 0:
    before = len(used)
    scaled(mt.ones(100))
    os._exit(0 if len(used) - before == 11 else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    run(code, tmp_path)


def test_threads_do_not_wait_for_a_measurement(tmp_path: Path) -> None:
    code = """
import threading
results = []
threads = [threading.Thread(target=lambda: results.append(scaled(mt.ones(64)).sum().item())) for _ in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
assert results == [128.0] * 8
"""
    run(code, tmp_path)


@pytest.fixture
def scaled() -> object:
    @mt.custom_op(name="tuned::here", tune={"tile": [16, 32]})
    def here(x: mt.Tensor, *, tile: int) -> mt.Tensor:
        return x * tile

    yield here
    mt.unregister_custom_op_py("tuned::here")


def test_a_candidate_can_be_passed(scaled: object) -> None:
    assert scaled(mt.ones(2), tile=32).tolist() == [32.0, 32.0]
    attribute = mt.ops.describe("tuned::here")["attributes"][0]
    assert attribute["candidates"] == [16, 32] and attribute["default"] is None and not attribute["required"]


@pytest.mark.parametrize(
    ("value", "error"), [(8, ValueError), (0, ValueError), (-16, ValueError), (16.0, TypeError), ("16", TypeError)]
)
def test_other_values_are_refused(scaled: object, value: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="op 'tuned::here': attribute 'tile' takes one of 16, 32 or None, got "):
        scaled(mt.ones(2), tile=value)


@pytest.mark.parametrize("candidates", [[], [0], [-1, 2], [4, 4], list(range(1, 66))])
def test_wrong_candidates_are_refused(candidates: list[int]) -> None:
    with pytest.raises(ValueError, match="the candidates of 'tile' must be 1 to 64 different positive integers"):
        mt.CustomOpBuilder("tuned::wrong", 1).forward(lambda x, tile: x).tune("tile", *candidates).build()


def test_only_an_integer_without_a_default_is_tuned() -> None:
    message = (
        "op 'tuned::wrong': 'tile' cannot be tuned; tune a parameter that is annotated with int and has no default"
    )
    for function in (lambda x, tile=3: x, lambda x: x, lambda x, tile="a": x):
        with pytest.raises(TypeError, match=message):
            mt.custom_op(name="tuned::wrong", tune={"tile": [1, 2]})(function)
    for wrong in ("tile", ["tile"], {"tile": 5}, {"tile": "ab"}, {"tile": [1.5]}, {"tile": [True]}):
        with pytest.raises(TypeError, match=r"op 'tuned::wrong': expected tune=\{name: \[integers\]\}, got "):
            mt.custom_op(name="tuned::wrong", tune=wrong)(lambda x, tile: x)

    def required_after(x: mt.Tensor, tile: int, factor: float) -> mt.Tensor:
        return x

    with pytest.raises(TypeError, match="op 'tuned::wrong': 'factor' has no default, but follows the tuned 'tile'"):
        mt.custom_op(name="tuned::wrong", tune={"tile": [1, 2]})(required_after)
    with pytest.raises(TypeError, match="the candidates of attribute 'tile' must be integers"):
        mt.CustomOpBuilder("tuned::wrong", 1).forward(lambda x, tile: x).tune("tile", 1.5).build()
