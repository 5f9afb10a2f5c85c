"""Strings. They are arrays of objects, outside of graphs of `mt.jit`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from ..error import OnnxError
from ..narrow import NarrowTensor
from ..rule import rule
from ..values import Known, Tensor, Text, Value, is_text, known, tensor

__all__ = ["STRING", "as_numbers", "as_text"]

STRING = TensorProto.STRING

#: Regular expressions of RE2 that Python reads in another way.
_NOT_IN_RE2 = re.compile(r"\\[1-9]|\(\?(?:=|!|<=|<!|\(|P=)")


def strings(items: Sequence[Any], shape: Sequence[int]) -> Text:
    """Returns an array of strings."""
    found = np.empty(len(items), dtype=object)
    found[:] = list(items)
    return found.reshape(tuple(shape))


def as_text(x: Value) -> Text:
    """Returns numbers as strings."""
    if is_text(x):
        found: Text = x
        return found
    array = x.numpy() if isinstance(x, NarrowTensor) else known(x)
    return strings([_shown(item) for item in array.reshape(-1)], array.shape)


def _shown(number: Any) -> str:
    if isinstance(number, np.bool_):
        return str(int(number))
    shown = str(number)
    return {"nan": "NaN", "inf": "INF", "-inf": "-INF"}.get(shown, shown.removesuffix(".0") if "." in shown else shown)


def as_numbers(x: Text, dtype: str) -> Tensor:
    """Returns strings as numbers."""
    read = float if dtype.startswith(("float", "bfloat")) else int
    try:
        numbers = [read(item) for item in x.reshape(-1)]
    except ValueError as error:
        raise OnnxError(f"a string is not a number of dtype {dtype}: {error}") from None
    return tensor(np.array(numbers, dtype="float64" if read is float else "int64").reshape(x.shape)).astype(dtype)


@rule("StringConcat")
def _string_concat(x: Text, y: Text) -> Text:
    return np.asarray(x + y, dtype=object)


@rule("StringSplit")
def _string_split(x: Text, *, delimiter: str | None = None, maxsplit: int | None = None) -> tuple[Value, Value]:
    rows = [item.split(delimiter or None, -1 if maxsplit is None else maxsplit) for item in x.reshape(-1)]
    width = max(map(len, rows), default=0)
    padded = [part for row in rows for part in [*row, *[""] * (width - len(row))]]
    counts = np.array([len(row) for row in rows], dtype="int64").reshape(x.shape)
    return strings(padded, [*x.shape, width]), counts


@rule("StringNormalizer")
def _string_normalizer(
    x: Text,
    *,
    case_change_action: str = "NONE",
    is_case_sensitive: int = 0,
    stopwords: list[str] | None = None,
) -> Text:
    removed = set(stopwords or []) if is_case_sensitive else {word.lower() for word in stopwords or []}
    kept = [item for item in x.reshape(-1) if (item if is_case_sensitive else item.lower()) not in removed]
    changes: dict[str, Callable[[str], str]] = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}
    change = changes[case_change_action]
    # Without any string, one that is empty is the result.
    found = [change(item) for item in kept] or [""]
    return strings(found, [len(found)] if x.ndim < 2 else [1, len(found)])


@rule("RegexFullMatch")
def _regex_full_match(x: Text, *, pattern: str) -> Known:
    if _NOT_IN_RE2.search(pattern):
        raise OnnxError(f"the pattern {pattern!r} has what RE2, the syntax of ONNX, does not know")
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise OnnxError(f"the pattern {pattern!r} is not supported: {error}") from None
    return np.array([compiled.fullmatch(item) is not None for item in x.reshape(-1)], dtype=bool).reshape(x.shape)


@rule("TfIdfVectorizer")
def _tf_idf(
    x: Value,
    *,
    max_gram_length: int,
    max_skip_count: int,
    min_gram_length: int,
    mode: str,
    ngram_counts: list[int],
    ngram_indexes: list[int],
    pool_int64s: list[int] | None = None,
    pool_strings: list[str] | None = None,
    weights: list[float] | None = None,
) -> Known:
    pool: Sequence[Any] = pool_strings or pool_int64s or []
    positions: dict[tuple[Any, ...], int] = {}
    starts = [*ngram_counts, len(pool)]
    number = 0
    for n in range(1, len(ngram_counts) + 1):
        for at in range(max(starts[n - 1], 0), min(starts[n], len(pool)), n):
            # Grams of other lengths also have a place, but are not counted.
            if min_gram_length <= n <= max_gram_length:
                positions[tuple(pool[at : at + n])] = number
            number += 1
    array = x if is_text(x) else known(x)
    rows = array.reshape(1, -1) if array.ndim < 2 else array
    found = np.zeros((len(rows), max(ngram_indexes) + 1), dtype="float32")
    for row, items in zip(found, rows.tolist(), strict=True):
        for n in range(max(min_gram_length, 1), min(max_gram_length, len(ngram_counts), len(items)) + 1):
            # Grams of one item have no gaps, so they are counted once.
            for skip in range(1, min(max_skip_count, len(items)) + 2 if n > 1 else 2):
                for at in range(len(items) - skip * (n - 1)):
                    number = positions.get(tuple(items[at : at + skip * n : skip][:n]), -1)
                    if number >= 0:
                        row[ngram_indexes[number]] += 1
    if mode in ("IDF", "TFIDF"):
        scale = np.ones(found.shape[1], dtype="float32")
        for place, weight in zip(ngram_indexes, weights or [], strict=False):
            scale[place] = weight
        found = (np.minimum(found, 1) if mode == "IDF" else found) * scale
    return found if array.ndim > 1 else found[0]
