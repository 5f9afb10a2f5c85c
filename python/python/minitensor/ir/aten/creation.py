"""New tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ... import _minitensor as mt
from ... import ops
from ..native import rule
from .promotion import Tensor, is_float, number


def full(size: Sequence[int], value: Any, dtype: str) -> Tensor:
    """Returns a tensor of one number."""
    return mt.full(tuple(size), number(value, dtype), dtype=dtype)


@rule("full", "new_full")
def _full(
    size: Sequence[int], fill_value: Any, out_dtype: str, dtype: str | None = None, self: Tensor | None = None
) -> Tensor:
    return full(size, fill_value, out_dtype)


@rule("full_like", "fill.Scalar")
def _full_like(
    self: Tensor, out_dtype: str, fill_value: Any = None, value: Any = None, dtype: str | None = None
) -> Tensor:
    return full(self.shape, value if fill_value is None else fill_value, out_dtype)


@rule("fill.Tensor")
def _fill(self: Tensor, value: Tensor, out_dtype: str) -> Tensor:
    return ops.expand(ops.astype(value, out_dtype), self.shape) + mt.zeros(self.shape, dtype=out_dtype)


def _constant(value: float) -> Any:
    def compute(size: Sequence[int], out_dtype: str, dtype: str | None = None, self: Any = None) -> Tensor:
        return full(size, value, out_dtype)

    return compute


def _constant_like(value: float) -> Any:
    def compute(self: Tensor, out_dtype: str, dtype: str | None = None) -> Tensor:
        return full(self.shape, value, out_dtype)

    return compute


# The elements of an empty tensor are not defined. They are zeros here.
for _name, _value in (("zeros", 0), ("ones", 1), ("empty", 0)):
    rule(f"{_name}.memory_format" if _name == "empty" else _name)(_constant(_value))
    rule(f"{_name}_like")(_constant_like(_value))


def _new(value: float) -> Any:
    def compute(self: Tensor, size: Sequence[int], out_dtype: str, dtype: str | None = None) -> Tensor:
        return full(size, value, out_dtype)

    return compute


for _name, _value in (("new_zeros", 0), ("new_ones", 1), ("new_empty", 0)):
    rule(_name)(_new(_value))


@rule("empty_strided", "new_empty_strided")
def _empty_strided(
    size: Sequence[int], stride: Sequence[int], out_dtype: str, dtype: str | None = None, self: Any = None
) -> Tensor:
    return full(size, 0, out_dtype)


@rule("empty_permuted")
def _empty_permuted(
    size: Sequence[int], physical_layout: Sequence[int], out_dtype: str, dtype: str | None = None
) -> Tensor:
    return full(size, 0, out_dtype)


@rule("scalar_tensor")
def _scalar_tensor(s: Any, out_dtype: str, dtype: str | None = None) -> Tensor:
    return full((), s, out_dtype)


@rule("arange", "arange.start", "arange.start_step")
def _arange(end: Any, out_dtype: str, start: Any = 0, step: Any = 1, dtype: str | None = None) -> Tensor:
    count = max(math.ceil((end - start) / step), 0)
    if not is_float(out_dtype):
        start, step = int(start), int(step)
        return mt.arange(start, start + count * step, step, dtype=out_dtype) if count else full((0,), 0, out_dtype)
    steps = mt.arange(count, dtype="int64").astype("float64")
    return ops.astype(steps * float(step) + float(start), out_dtype)


@rule("linspace")
def _linspace(start: float, end: float, steps: int, out_dtype: str, dtype: str | None = None) -> Tensor:
    if not is_float(out_dtype):
        raise NotImplementedError("PyTorch rounds the steps of integers")
    return ops.astype(mt.linspace(float(start), float(end), steps, dtype="float64"), out_dtype)


@rule("eye", "eye.m")
def _eye(n: int, out_dtype: str, m: int | None = None, dtype: str | None = None) -> Tensor:
    return mt.eye(n, n if m is None else m, dtype=out_dtype)


def _triangle(function: Callable[[Tensor, int], Tensor]) -> Callable[..., Tensor]:
    def compute(self: Tensor, diagonal: int = 0) -> Tensor:
        if self.dtype.name == "bool":
            return ops.astype(function(ops.astype(self, "uint8"), diagonal), "bool")
        return function(self, diagonal)

    return compute


rule("tril")(_triangle(ops.tril))
rule("triu")(_triangle(ops.triu))


@rule("rand")
def _rand(size: Sequence[int], out_dtype: str, dtype: str | None = None) -> Tensor:
    return mt.rand(tuple(size), dtype=out_dtype)


@rule("rand_like")
def _rand_like(self: Tensor, out_dtype: str, dtype: str | None = None) -> Tensor:
    return mt.rand(self.shape, dtype=out_dtype)


@rule("randn")
def _randn(size: Sequence[int], out_dtype: str, dtype: str | None = None) -> Tensor:
    return mt.randn(tuple(size), dtype=out_dtype)


@rule("randn_like")
def _randn_like(self: Tensor, out_dtype: str, dtype: str | None = None) -> Tensor:
    return mt.randn(self.shape, dtype=out_dtype)


@rule("randperm")
def _randperm(n: int, out_dtype: str, dtype: Any = None) -> Tensor:
    return ops.astype(ops.argsort(mt.rand(n, dtype="float64")), out_dtype)
