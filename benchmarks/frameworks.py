"""The frameworks: how each converts an array to a tensor, and an expression of a row to a loop.

A framework is imported when its class is instantiated, which happens in its own process.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from collections.abc import Callable
from itertools import repeat
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

from .row import Array, Row

THREADS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
"""The number of threads of each framework, one per core."""

Loop = Callable[[int], tuple[float, Any]]
"""Takes the number of repetitions. Returns the time in seconds and the last result."""


class Framework:
    """A framework. It compiles the expression of a row to a loop, like the module `timeit`."""

    module: ClassVar[str]
    title: ClassVar[str]
    spelling: ClassVar[str]
    """The field of `Work` with its expression."""
    options: ClassVar[dict[str, Any]] = {}
    """The keyword arguments for functions that return a step."""
    compilation: ClassVar[str | None] = None
    """A statement that compiles a new function of `make()` and calls it twice. `{0}` are its arguments."""

    names: dict[str, Any]
    """The modules that expressions use."""

    @classmethod
    def version(cls) -> str | None:
        """Returns the installed version, if any."""
        spec = importlib.util.find_spec(cls.module)
        # A folder of the same name is found too, but has no origin.
        if spec is None or spec.origin is None:
            return None
        try:
            return importlib.metadata.version(cls.module)
        except importlib.metadata.PackageNotFoundError:
            return "(unknown version)"

    @classmethod
    def takes(cls, row: Row) -> bool:
        """Returns whether the framework can run the row."""
        return getattr(row.work, cls.spelling) is not None and not (row.anew and cls.compilation is None)

    def loop(self, row: Row, limit: int | None = None) -> Loop:
        """Returns the loop of a row. `limit` is a maximum for the dimensions of the inputs."""
        spelling = getattr(row.work, self.spelling)
        tensors = {
            name: self.tensor(array, row.dtype, row.gradient and name in row.differentiable)
            for name, array in row.arrays(limit).items()
        }
        if not isinstance(spelling, str):
            return self.step(spelling(**tensors, **self.options))
        if row.anew:
            return self.anew(spelling, tensors)
        if not row.gradient:
            return self.forward(spelling, tensors)
        shape = eval(spelling, self.names | tensors).shape
        cotangent = np.asarray(np.random.default_rng(0).standard_normal(shape, np.float32))
        return self.backward(spelling, tensors, self.tensor(cotangent, row.dtype, False), row.differentiable)

    def step(self, step: Callable[[], Any]) -> Loop:
        return compile_loop("out = step()", "out", {"step": step})

    def anew(self, spelling: str, tensors: dict[str, Any]) -> Loop:
        """Returns a loop that makes and compiles a new function in each repetition."""
        assert self.compilation is not None
        arguments = ", ".join(tensors)
        make = compile_lambda(f"lambda {arguments}: {spelling}", "", self.names)
        return compile_loop(self.compilation.format(arguments), "out", tensors | {"make": make}, self.names)

    def forward(self, spelling: str, tensors: dict[str, Any]) -> Loop:
        return compile_loop(f"out = {spelling}", "out", tensors, self.names)

    def backward(self, spelling: str, tensors: dict[str, Any], cotangent: Any, wanted: list[str]) -> Loop:
        """Returns a loop that computes the result and accumulates gradients in the inputs."""
        reset = "; ".join(f"{name}.grad = None" for name in wanted)
        grads = "".join(f", {name}.grad" for name in wanted)
        statement = f"{reset}; out = {spelling}; out.backward(cotangent)"
        return compile_loop(statement, f"(out{grads})", tensors | {"cotangent": cotangent}, self.names)

    def tensor(self, array: Array, dtype: str, gradient: bool) -> Any:
        """An array as a tensor; numbers of `float32` become those of the row's dtype."""
        raise NotImplementedError

    def array(self, tensor: Any) -> Array:
        raise NotImplementedError

    def arrays(self, result: Any) -> list[Array]:
        """Converts the tensors of a result to arrays; `bfloat16` becomes `float32`."""
        if isinstance(result, tuple | list):
            return [array for part in result for array in self.arrays(part)]
        return [self.array(result)]


def compile_loop(statement: str, result: str, tensors: dict[str, Any], names: dict[str, Any] | None = None) -> Loop:
    """Compiles a function that repeats a statement. Tensors are local variables, modules are global ones."""
    scope = {"repeat": repeat, "perf_counter": perf_counter, "tensors": tensors, **(names or {})}
    source = (
        f"def loop(_count, {', '.join(f'{name}=tensors[{name!r}]' for name in tensors)}):\n"
        f"    _start = perf_counter()\n"
        f"    for _ in repeat(None, _count):\n"
        f"        {statement}\n"
        f"    return perf_counter() - _start, {result}\n"
    )
    exec(source, scope)
    loop: Loop = scope["loop"]
    return loop


def compile_lambda(spelling: str, arguments: str, names: dict[str, Any]) -> Any:
    """Returns an expression as a function, for a compiler."""
    return eval(f"lambda {arguments}: {spelling}", dict(names))


def compile_call(
    compiler: Callable[..., Any], spelling: str, tensors: dict[str, Any], names: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    """Compiles an expression. Returns the call of the compiled function, and the tensors with that function."""
    arguments = ", ".join(tensors)
    return f"compiled({arguments})", tensors | {"compiled": compiler(compile_lambda(spelling, arguments, names))}


class Minitensor(Framework):
    """minitensor, with `mt.jit` in rows that are `jitted`."""

    module, title, spelling = "minitensor", "minitensor", "minitensor"
    # The first call records the function, and the second one compiles the graph.
    compilation = "f = mt.jit(make()); f({0}); out = f({0})"

    def __init__(self) -> None:
        import minitensor as mt

        mt.set_num_threads(THREADS)
        self.names = {"mt": mt}
        self.jitted = False

    def loop(self, row: Row, limit: int | None = None) -> Loop:
        self.jitted = row.jitted
        return super().loop(row, limit)

    def step(self, step: Callable[[], Any]) -> Loop:
        return super().step(self.names["mt"].jit(step) if self.jitted else step)

    def forward(self, spelling: str, tensors: dict[str, Any]) -> Loop:
        if self.jitted:
            spelling, tensors = compile_call(self.names["mt"].jit, spelling, tensors, self.names)
        return super().forward(spelling, tensors)

    def backward(self, spelling: str, tensors: dict[str, Any], cotangent: Any, wanted: list[str]) -> Loop:
        """Returns a loop that computes the result and gradients. A graph computes both in one call, as in JAX."""
        if not self.jitted:
            return super().backward(spelling, tensors, cotangent, wanted)
        inputs = "".join(f"{name}, " for name in wanted)
        both = f"((out := {spelling}).detach(), *mt.grad(out, ({inputs}), cotangent))"
        return self.forward(both, tensors | {"cotangent": cotangent})

    def tensor(self, array: Array, dtype: str, gradient: bool) -> Any:
        mt = self.names["mt"]
        tensor = mt.Tensor(array)
        if dtype == "bfloat16" and array.dtype == np.float32:
            tensor = tensor.astype(mt.bfloat16)
        return tensor.requires_grad_() if gradient else tensor

    def array(self, tensor: Any) -> Array:
        mt = self.names["mt"]
        tensor = tensor.detach()
        return np.asarray(tensor.astype(mt.float32) if tensor.dtype == mt.bfloat16 else tensor)


class NumPy(Framework):
    module, title, spelling = "numpy", "NumPy", "numpy"

    def __init__(self) -> None:
        self.names = {"np": np}

    @classmethod
    def takes(cls, row: Row) -> bool:
        return super().takes(row) and not row.gradient and row.dtype != "bfloat16"

    def tensor(self, array: Array, dtype: str, gradient: bool) -> Any:
        return array

    def array(self, tensor: Any) -> Array:
        return np.asarray(tensor)


class Torch(Framework):
    """PyTorch in eager mode."""

    module, title, spelling = "torch", "PyTorch", "torch"
    options: ClassVar[dict[str, Any]] = {"compiled": False}

    def __init__(self) -> None:
        import torch

        torch.set_num_threads(THREADS)
        self.names = {"torch": torch, "F": torch.nn.functional}

    def tensor(self, array: Array, dtype: str, gradient: bool) -> Any:
        torch = self.names["torch"]
        tensor = torch.tensor(array)
        if dtype == "bfloat16" and array.dtype == np.float32:
            tensor = tensor.bfloat16()
        return tensor.requires_grad_() if gradient else tensor

    def array(self, tensor: Any) -> Array:
        torch = self.names["torch"]
        tensor = tensor.detach()
        return np.asarray((tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy())


class Inductor(Torch):
    """PyTorch with `torch.compile`."""

    title = "compiled"
    options: ClassVar[dict[str, Any]] = {"compiled": True}
    compilation = "torch.compiler.reset(); f = torch.compile(make()); f({0}); out = f({0})"

    def loop(self, row: Row, limit: int | None = None) -> Loop:
        compiler = self.names["torch"].compiler
        compiler.reset()
        # There is a cache on disk, too.
        compiler.config.force_disable_caches = row.anew
        return super().loop(row, limit)

    def forward(self, spelling: str, tensors: dict[str, Any]) -> Loop:
        return super().forward(*self.compile(spelling, tensors))

    def backward(self, spelling: str, tensors: dict[str, Any], cotangent: Any, wanted: list[str]) -> Loop:
        return super().backward(*self.compile(spelling, tensors), cotangent, wanted)

    def compile(self, spelling: str, tensors: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return compile_call(self.names["torch"].compile, spelling, tensors, self.names)


class Jax(Framework):
    """JAX with `jax.jit`. Each call is awaited."""

    module, title, spelling = "jax", "JAX", "jax"
    compilation = "f = jax.jit(make()); f({0}); out = f({0}).block_until_ready()"

    def __init__(self) -> None:
        import jax

        self.names = {"jax": jax, "jnp": jax.numpy}

    def loop(self, row: Row, limit: int | None = None) -> Loop:
        self.names["jax"].config.update("jax_enable_x64", row.wide)
        return super().loop(row, limit)

    def forward(self, spelling: str, tensors: dict[str, Any]) -> Loop:
        jax, arguments = self.names["jax"], ", ".join(tensors)
        compiled = jax.jit(compile_lambda(spelling, arguments, self.names))
        # All results of a program become ready together, so waiting for the first one is enough.
        first = "out" if isinstance(compiled(*tensors.values()), jax.Array) else "out[0]"
        statement = f"out = compiled({arguments}); {first}.block_until_ready()"
        return compile_loop(statement, "out", tensors | {"compiled": compiled})

    def backward(self, spelling: str, tensors: dict[str, Any], cotangent: Any, wanted: list[str]) -> Loop:
        jax, work = self.names["jax"], compile_lambda(spelling, ", ".join(tensors), self.names)

        def out_and_gradients(cotangent: Any, *arguments: Any) -> Any:
            given = dict(zip(tensors, arguments, strict=True))
            out, back = jax.vjp(lambda some: work(**given | some), {name: given[name] for name in wanted})
            gradients = back(cotangent)[0]
            return out, *(gradients[name] for name in wanted)

        arguments = ", ".join(["cotangent", *tensors])
        compiled = {"cotangent": cotangent, "compiled": jax.jit(out_and_gradients)}
        statement = f"out = compiled({arguments}); out[0].block_until_ready()"
        return compile_loop(statement, "out", tensors | compiled)

    def tensor(self, array: Array, dtype: str, gradient: bool) -> Any:
        jnp = self.names["jnp"]
        return jnp.asarray(array, jnp.bfloat16 if dtype == "bfloat16" and array.dtype == np.float32 else None)

    def array(self, tensor: Any) -> Array:
        jnp = self.names["jnp"]
        return np.asarray(tensor.astype(jnp.float32) if tensor.dtype == jnp.bfloat16 else tensor)


FRAMEWORKS: dict[str, type[Framework]] = {
    "minitensor": Minitensor,
    "numpy": NumPy,
    "torch": Torch,
    "inductor": Inductor,
    "jax": Jax,
}
