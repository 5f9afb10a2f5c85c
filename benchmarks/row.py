"""The types of the table of benchmarks: a row is an operation on inputs, with an expression for each framework."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

KI, MI = 1 << 10, 1 << 20


@dataclass(frozen=True)
class Group:
    """Rows with the same target: the minimum ratio of the best peer's time to minitensor's."""

    name: str
    target: float | None


@dataclass(frozen=True)
class Input:
    """An array of random numbers: normally distributed, or integers from 0 to `below`, excluding `below`."""

    shape: tuple[int, ...]
    below: int | None = None
    dtype: type = np.int64
    """The dtype of integers."""

    def make(self, rng: np.random.Generator, dtype: str, limit: int | None) -> Array:
        """Creates the array with dimensions of at most `limit`. For `bfloat16`, which NumPy lacks, it is `float32`."""
        shape = [n if limit is None else min(n, limit) for n in self.shape]
        if self.below is not None:
            return rng.integers(0, self.below if limit is None else min(self.below, limit), shape, self.dtype)
        return rng.standard_normal(shape, np.float64 if dtype == "float64" else np.float32)


def normal(*shape: int) -> Input:
    return Input(shape)


def index(*shape: int, below: int) -> Input:
    return Input(shape, below)


def mask(*shape: int) -> Input:
    return Input(shape, 2, np.bool_)


Spelling = str | Callable[..., Callable[[], Any]]
"""An expression of the inputs. For work that modifies a state, a function of the inputs that returns the step."""


@dataclass(frozen=True)
class Work:
    """An operation in the usual style of each framework. JAX and compiled PyTorch compile the expression."""

    name: str
    minitensor: Spelling
    numpy: Spelling | None
    torch: Spelling
    jax: Spelling
    wide: bool = field(default=False, kw_only=True)
    """Whether it needs 64-bit dtypes."""


@dataclass(frozen=True)
class Row:
    """An operation on inputs.

    With `gradient`, it is followed by the backward pass to all inputs. With `jitted`, minitensor runs it under
    `mt.jit`. With `anew`, each repetition compiles a new function, so only compilers run the row.
    """

    group: Group
    work: Work
    inputs: dict[str, Input]
    dtype: str = "float32"
    gradient: bool = False
    size: str | None = None
    """The size in the name of the row, if it is not the shape of the first input."""
    jitted: bool = False
    anew: bool = False

    @property
    def name(self) -> str:
        words = ["newly"] * self.anew + ["jitted"] * self.jitted
        words += [self.work.name, self.size or size(next(iter(self.inputs.values())).shape)]
        words += [SHORT[self.dtype]] * (self.dtype != "float32") + ["with gradient"] * self.gradient
        return " ".join(words)

    @property
    def differentiable(self) -> list[str]:
        return [name for name, input in self.inputs.items() if input.below is None]

    @property
    def wide(self) -> bool:
        """Whether the row needs 64-bit dtypes, which JAX enables only on request."""
        return self.dtype == "float64" or self.work.wide

    def arrays(self, limit: int | None = None) -> dict[str, Array]:
        """Creates the inputs, which are the same in every process."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        return {name: input.make(rng, self.dtype, limit) for name, input in self.inputs.items()}


SHORT = {"float32": "f32", "float64": "f64", "bfloat16": "bf16"}


def size(shape: tuple[int, ...]) -> str:
    """Formats a shape as `16 Mi` or `4096×1024`."""
    if len(shape) != 1:
        return "×".join(map(str, shape))
    units = ((MI, " Mi"), (KI, " Ki"), (1, ""))
    return next(f"{shape[0] // unit}{name}" for unit, name in units if shape[0] % unit == 0)
