"""Ops as functions of PyTorch's own ops, from the programs of their bodies.

Compilers fuse these functions with their surroundings, and compute them on every device.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import json
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from .._definitions import INTEGER_FUNCTIONS, is_of_bits
from .._minitensor import _program
from . import shapes
from .definition import Definition
from .selection import Selection

if TYPE_CHECKING:
    from .op import Op


def chain(derivative: Tensor, tangent: Tensor) -> Tensor:
    """A derivative times a tangent. It is 0 if the tangent is 0, even if the derivative is infinite."""
    return torch.where(tangent == 0, 0, derivative * tangent)


def extremum(reduce: Callable[..., Tensor], identity: float, x: Tensor) -> Tensor:
    """The largest or smallest element of each row; the identity if there is none."""
    return x.new_full((*x.shape[:-1], 1), identity) if x.shape[-1] == 0 else reduce(x, -1, keepdim=True)


def reverse_cumsum(x: Tensor) -> Tensor:
    """For each element of a row, the sum of the elements from it on."""
    return x.flip(-1).cumsum(-1).flip(-1)


def shift(x: Tensor, places: int) -> Tensor:
    """The element of a row so many places before each; 0 outside of the row."""
    n = x.shape[-1]
    if abs(places) >= n:
        return torch.zeros_like(x)
    at = torch.arange(n, device=x.device) - places
    return torch.where((at >= 0) & (at < n), x.roll(places, -1), 0)


def positions(index: Tensor, n: Any) -> tuple[Tensor, Tensor]:
    """Whether each number is a position in a row of `n` elements, and the position, or else 0."""
    is_one = (index >= 0) & (index < n) & (index == index.floor())
    return is_one, torch.where(is_one, index, 0).long()


def take(x: Tensor, index: Tensor) -> Tensor:
    """The elements of rows at positions; 0 where there is none."""
    x, index = torch.broadcast_tensors(x, index)
    is_one, at = positions(index, x.shape[-1])
    return torch.where(is_one, x.gather(-1, at), 0)


def put(x: Tensor, index: Tensor) -> Tensor:
    """The sums of the elements of rows by their positions."""
    x, index = torch.broadcast_tensors(x, index)
    is_one, at = positions(index, x.shape[-1])
    return torch.zeros_like(x).scatter_add(-1, at, torch.where(is_one, x, 0))


#: The functions of programs. Those of PyTorch with the same name are not listed.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "and": torch.logical_and,
    "chain": chain,
    "argsort": lambda x: x.argsort(dim=-1, stable=True).to(x.dtype),
    "bitwise_invert": torch.bitwise_not,
    "bfloat16": lambda x: x.to(torch.bfloat16).to(x.dtype),
    "cbrt": lambda x: torch.copysign(x.abs().pow(1 / 3), x),
    "conj": lambda x: x,
    "cummax": lambda x: x.cummax(-1).values,
    "cumsum": lambda x: x.cumsum(-1),
    "detach": lambda x: x,
    "equal": torch.eq,
    "float16": lambda x: x.to(torch.float16).to(x.dtype),
    "left_shift": torch.bitwise_left_shift,
    "log_sigmoid": torch.nn.functional.logsigmoid,
    "max": functools.partial(extremum, torch.amax, -math.inf),
    "min": functools.partial(extremum, torch.amin, math.inf),
    "mul_add": lambda x, y, z: x * y + z,
    "normal_cdf": lambda x: torch.erfc(x * -math.sqrt(0.5)) * 0.5,
    "normal_pdf": lambda x: torch.exp(x * x * -0.5) * math.sqrt(0.5 / math.pi),
    "not": torch.logical_not,
    "or": torch.logical_or,
    "polygamma": lambda x, order: torch.polygamma(order, x),
    "powi": lambda x, exponent: x.pow(exponent),
    "prod": lambda x: x.prod(-1, keepdim=True),
    "put": put,
    "recip": torch.reciprocal,
    "reverse": lambda x: x.flip(-1),
    "reverse_cumsum": reverse_cumsum,
    "right_shift": torch.bitwise_right_shift,
    "select": torch.where,
    "shift": shift,
    # −∞ · 0 is NaN, but the limit is −0.
    "silu": lambda x: torch.where(x == -math.inf, -0.0, torch.nn.functional.silu(x)),
    "softplus": lambda x: torch.logaddexp(x, torch.zeros_like(x)),
    "sign": lambda x: torch.where(x.isnan(), x, torch.sign(x)),
    "sum": lambda x: x.sum(-1, keepdim=True),
    "take": take,
    "truthy": lambda x: x != 0,
}
#: The functions over rows.
_OF_ROWS = (
    *("sum", "prod", "max", "min", "cumsum", "reverse_cumsum"),
    *("shift", "reverse", "cummax", "argsort", "take", "put"),
)
#: Functions that PyTorch lacks.
_MISSING = {"recurrence", "scan"}


class Program(NamedTuple):
    """The program of a call."""

    nodes: list[list[Any]]
    outputs: list[int]
    #: What each input and each uniform is: an input of the op, a cotangent, or a number.
    inputs: list[tuple[str, Any]]
    uniforms: list[tuple[str, Any]]
    is_of_rows: bool
    #: For each output of the op, whether it has one value per element of a row.
    returns_rows: list[bool]

    @staticmethod
    def of(name: str, attrs: dict[str, Any], given: Sequence[bool], wrt: Sequence[int] | None = None) -> Program | None:
        """The program of an op, or of its gradients with respect to the inputs `wrt`; None if it has none."""
        try:
            found = _program(name, attrs, given, wrt)
        except RuntimeError:
            # The body has a function without a derivative.
            return None
        if found is None:
            return None
        program = json.loads(found.pop("program"))
        # PyTorch has no such functions of the bits of floats either.
        if any(name in _MISSING or is_of_bits(name) for name, *_ in program["nodes"]):
            return None
        return Program(program["nodes"], [at for _, at in program["outputs"]], **found)

    def evaluate(
        self, inputs: list[Tensor], uniforms: list[Tensor], length: Any, dtype: torch.dtype, device: torch.device
    ) -> list[Tensor]:
        """The values of the outputs, for rows of a length, which are the last dimension."""

        def number(value: Any) -> Tensor:
            value = float(value) if isinstance(value, str) else value
            return torch.full((), value, dtype=dtype, device=device)

        def row(x: Tensor) -> Tensor:
            return x.expand(*x.shape[:-1], length) if x.dim() else x.expand(length)

        values: list[Any] = []
        for name, *operands in self.nodes:
            match name:
                case "input":
                    value = inputs[operands[0]]
                case "uniform":
                    value = uniforms[operands[0]]
                case "constant":
                    value = number(operands[0])
                case "epsilon":
                    value = number(torch.finfo(dtype).eps)
                case "truth":
                    value = torch.full((), operands[0], dtype=torch.bool, device=device)
                case "count":
                    value = torch.scalar_tensor(length, dtype=dtype, device=device)
                case "position":
                    value = torch.arange(length, dtype=dtype, device=device)
                case _:
                    last = operands.pop() if name in INTEGER_FUNCTIONS else None
                    args = [values[at] for at in operands]
                    if name in _OF_ROWS:
                        args = [row(x) for x in args]
                    value = function(name)(*args, *([] if last is None else [last]))
            values.append(value)
        return [values[at] for at in self.outputs]


def fingerprint(definition: Definition) -> str:
    """A text that changes with the programs of an op. Caches of compiled code have only the name of the op."""
    return hashlib.sha256("\n".join([definition.name, *programs(definition)]).encode()).hexdigest()


def programs(definition: Definition) -> list[str]:
    """The programs of an op and of its gradient, with each choice of attributes, as texts."""
    # Values for attributes without defaults.
    samples = {"bool": True, "int": 1, "float": 0.5, "ints": [1], "floats": [0.5]}
    required = {a.name: samples[a.kind] for a in definition.attrs if a.required and a.kind in samples}
    choices: dict[str, list[Any]] = {a.name: [False, True] if a.kind == "bool" else a.choices for a in definition.attrs}
    options = [[(name, choice) for choice in found] for name, found in choices.items() if found]
    texts = []
    for chosen in itertools.islice(itertools.product(*options), 64):
        for given in ([True] * len(definition.inputs), [i.arity == "one" for i in definition.inputs]):
            for wrt in (None, [i for i, x in enumerate(definition.inputs) if x.differentiable and given[i]]):
                # A body may reject a choice, or have no derivative.
                with contextlib.suppress(Exception):
                    texts.append(str(_program(definition.name, required | dict(chosen), given, wrt)))
    return texts


def function(name: str) -> Callable[..., Any]:
    """The function of PyTorch for a function of programs."""
    found: Callable[..., Any] = FUNCTIONS.get(name) or getattr(torch, name)
    return found


class Layout:
    """Where a call has its rows: in the last dimension, or in the axes that the caller chose."""

    def __init__(self, definition: Definition, tensors: Sequence[Tensor | None], attrs: dict[str, Any]) -> None:
        self.axes: list[int] | None = None
        self.keepdims = False
        self.rank = max((t.dim() for t in tensors if t is not None), default=0)
        if definition.shapes is not None and definition.shapes.axis is not None:
            attrs = definition.complete(attrs)
            self.axes = definition.shapes.axis.chosen(attrs, self.rank)
            self.keepdims = definition.shapes.axis.keeps(attrs)

    @property
    def last(self) -> list[int]:
        """The last dimensions, as many as there are axes."""
        return list(range(-len(self.axes or ()), 0))

    def rows(self, x: Tensor) -> Tensor:
        """A tensor whose rows are its last dimension."""
        if self.axes is None:
            return x
        x = x.reshape((*[1] * (self.rank - x.dim()), *x.shape))
        return x.movedim(self.axes, self.last).flatten(-len(self.axes)) if self.axes else x.unsqueeze(-1)

    def numbers(self, x: Tensor) -> Tensor:
        """A tensor with one number per row, as rows of length 1."""
        return self.rows(x) if self.keepdims else x.unsqueeze(-1)

    def restored(self, x: Tensor, shape: Sequence[Any]) -> Tensor:
        """The inverse of `rows`, for a tensor whose rows have the sizes of a shape, or length 1."""
        if self.axes is None:
            return x
        if not self.axes:
            return x.squeeze(-1)
        sizes = [1] * len(self.axes) if x.shape[-1] == 1 else [shape[axis] for axis in self.axes]
        return x.unflatten(-1, sizes).movedim(self.last, self.axes)


def computes(definition: Definition, tensors: Sequence[Tensor | None]) -> bool:
    """Whether a call has a decomposition for its dtypes: real floats, and inputs of fixed dtypes."""
    if definition.mutated is not None or definition.is_variadic or definition.gives_list:
        return False
    is_fixed = [i.dtype in ("bool", "int64") for i in definition.inputs]
    given = [(t, fixed) for t, fixed in zip(tensors, is_fixed, strict=True) if t is not None]
    return any(not fixed for _, fixed in given) and all(fixed or t.dtype.is_floating_point for t, fixed in given)


def forward(op: Op, *args: Any) -> Any:
    """Computes a call by functions of PyTorch. NotImplemented if there is no program for it."""
    definition = op.definition
    args = definition.all_arguments(args)
    tensors, attrs = definition.flat(args), definition.attributes(args)
    if not computes(definition, tensors):
        return NotImplemented
    program = Program.of(definition.name, attrs, [t is not None for t in tensors])
    if program is None:
        return NotImplemented
    layout = Layout(definition, tensors, attrs)
    values = evaluate(program, layout, tensors, [])
    found = []
    for k, (shape, dtype) in enumerate(shapes.results(definition, tensors, attrs)):
        value = values[k]
        if program.is_of_rows and program.returns_rows[k]:
            value = layout.restored(value, shape)
        elif program.is_of_rows:
            value = value.squeeze(-1)
            value = value.reshape(shape) if layout.keepdims else value
        # The memory of the result is its own.
        found.append(value.to(dtype).expand(shape).clone(memory_format=torch.contiguous_format))
    return found[0] if len(found) == 1 else tuple(found)


def gradient(op: Op, given: list[Tensor], results: list[Tensor], wrt: str, *attributes: Any) -> Any:
    """Computes gradients of the first order by functions of PyTorch. NotImplemented if there is no program for them."""
    definition = op.definition
    selection = Selection.decode(wrt)
    if len(selection.orders) > 1:
        return NotImplemented
    everything = selection.complete(given)
    first = len(everything) - len(definition.inputs)
    cotangents, tensors = everything[:first], everything[first:]
    if not computes(definition, tensors):
        return NotImplemented
    attrs = definition.attributes((*[None] * len(definition.inputs), *attributes))
    wanted = [i for i, is_wanted in enumerate(selection.orders[0]) if is_wanted]
    program = Program.of(definition.name, attrs, [t is not None for t in tensors], wanted)
    if program is None:
        return NotImplemented
    layout = Layout(definition, tensors, attrs)
    found = []
    for i, value in zip(wanted, evaluate(program, layout, tensors, cotangents), strict=True):
        x = tensors[i]
        assert x is not None
        if program.is_of_rows and ("input", i) in program.inputs:
            value = layout.restored(value, x.shape)
        elif program.is_of_rows:
            value = value.squeeze(-1)
        value = value.expand(torch.broadcast_shapes(value.shape, x.shape))
        found.append(value.sum_to_size(x.shape).to(x.dtype).clone(memory_format=torch.contiguous_format))
    return found


def evaluate(
    program: Program, layout: Layout, tensors: Sequence[Tensor | None], cotangents: Sequence[Tensor | None]
) -> list[Tensor]:
    """The values of the outputs of a program."""
    floats = [t for t in tensors if t is not None and t.dtype.is_floating_point]
    dtype = functools.reduce(torch.promote_types, [t.dtype for t in floats])
    # Half floats are a storage format.
    dtype = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
    device = floats[0].device

    def argument(kind: str, which: Any, is_input: bool) -> Tensor:
        t = None if kind == "number" else tensors[which] if kind == "input" else None
        if kind == "cotangent" and which < len(cotangents):
            t = cotangents[which]
        if t is None:
            # An absent input is not read. An absent cotangent is zero.
            t = torch.full((), which if kind == "number" else 0, dtype=dtype, device=device)
            return t.expand(1) if program.is_of_rows else t
        t = t.to(dtype)
        if not program.is_of_rows:
            return t
        return layout.rows(t) if is_input else layout.numbers(t)

    inputs = [argument(kind, which, True) for kind, which in program.inputs]
    uniforms = [argument(kind, which, False) for kind, which in program.uniforms]
    # Absent inputs do not have the length of the row.
    is_given = [kind == "input" and tensors[which] is not None for kind, which in program.inputs]
    rows = [t for t, given in zip(inputs, is_given, strict=True) if given] if program.is_of_rows else []
    length = rows[0].shape[-1] if rows else 1
    found = program.evaluate(inputs, uniforms, length, dtype, device)
    if program.is_of_rows:
        # Values that do not depend on the position have one element.
        found = [t.expand(1) if t.dim() == 0 else t for t in found]
    return found
