"""The definition of an op, and the schemas of its PyTorch ops."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch

from .._minitensor import _definition

#: The dtypes by their names in minitensor.
DTYPES: dict[str, torch.dtype] = {
    name: getattr(torch, name)
    for name in (
        *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
        *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
    )
}
#: The names in minitensor by dtype.
NAMES = {dtype: name for name, dtype in DTYPES.items()}

#: The types of attributes in schemas.
_TYPES = {
    "bool": "bool",
    "int": "int",
    "float": "float",
    "str": "str",
    "ints": "int[]",
    "floats": "float[]",
    "dtype": "ScalarType",
}


class Input(NamedTuple):
    """A tensor argument."""

    name: str
    arity: str
    mutated: bool
    dtype: str
    differentiable: bool

    @property
    def type(self) -> str:
        """The type in a schema."""
        if self.mutated:
            return "Tensor(a!)"
        return {"one": "Tensor", "optional": "Tensor?", "variadic": "Tensor[]"}[self.arity]


class Attribute(NamedTuple):
    """An argument that is not a tensor."""

    name: str
    kind: str
    #: The words that it admits, if they are fixed.
    choices: list[str]
    optional: bool
    required: bool
    default: Any

    @property
    def literal(self) -> str | None:
        """The default in a schema; None if schemas cannot express it."""
        match self.default:
            case float() as number if not math.isfinite(number):
                return None
            case float() | int():
                return repr(self.default)
            case None:
                return "None"
            case str() as word:
                return f'"{word}"' if word.isidentifier() else None
            case list() as items if all(isinstance(item, int) or math.isfinite(item) for item in items):
                return repr(items)
            case _:
                return None

    @property
    def type(self) -> str:
        """The type in a schema. None stands for a default that schemas cannot express."""
        is_optional = self.optional or (not self.required and self.literal is None)
        return _TYPES[self.kind] + ("?" if is_optional else "")

    def in_schema(self, value: Any) -> Any:
        """A value that minitensor takes, as the schema takes it."""
        if self.kind in ("ints", "floats") and isinstance(value, int | float):
            return [value]
        if self.kind == "dtype" and value is not None and not isinstance(value, torch.dtype):
            return DTYPES.get(str(value), value)
        return value


class Output(NamedTuple):
    """A tensor that the op returns."""

    name: str
    dtype: str
    differentiable: bool


class Definition:
    """The definition of an op."""

    def __init__(self, name: str) -> None:
        data = _definition(name)
        self.name: str = data["name"]
        #: The name, and its aliases.
        self.names: list[str] = data["names"]
        self.inputs = [Input(**i) for i in data["inputs"]]
        self.attrs = [Attribute(**a) for a in data["attrs"]]
        self.outputs = [Output(**o) for o in data["outputs"]]
        self.gives_list: bool = data["gives_list"]
        #: Whether the body is a program of elements or rows.
        self.has_program: bool = data["has_program"]
        #: For each output, whether the gradient reads it.
        self.results_read: list[bool] = data["results_read"]
        self.shape: tuple[Any, ...] = data["shape"]
        self.no_gradient: str | None = data["no_gradient"]

    @property
    def torch_name(self) -> str:
        """The name within a namespace of PyTorch."""
        return self.name.replace("::", "__")

    @property
    def is_variadic(self) -> bool:
        """Whether the last input is a list of tensors."""
        return bool(self.inputs) and self.inputs[-1].arity == "variadic"

    @property
    def mutates(self) -> bool:
        """Whether the op changes an argument in place."""
        return any(i.mutated for i in self.inputs)

    @property
    def is_differentiable(self) -> bool:
        """Whether the op has a gradient. One that changes an argument in place has none in PyTorch."""
        has_tensors = any(i.differentiable for i in self.inputs) and any(o.differentiable for o in self.outputs)
        return self.no_gradient is None and not self.mutates and has_tensors

    @property
    def parameters(self) -> list[str]:
        """The names of all arguments, in order."""
        return [i.name for i in self.inputs] + [a.name for a in self.attrs]

    def flat(self, args: tuple[Any, ...]) -> list[torch.Tensor | None]:
        """The tensors of a call with all arguments by position, with those of a list one by one."""
        tensors = list(args[: len(self.inputs)])
        return tensors[:-1] + list(tensors[-1]) if self.is_variadic else tensors

    def nested(self, tensors: list[Any]) -> list[Any]:
        """The tensor arguments of a call, given all of its tensors one by one."""
        first = len(self.inputs) - 1
        return [*tensors[:first], tensors[first:]] if self.is_variadic else tensors

    def read(self, results: Any) -> list[torch.Tensor]:
        """The results of a call that its gradient reads."""
        if not any(self.results_read):
            return []
        tensors = [results] if isinstance(results, torch.Tensor) else results
        return [t for t, is_read in zip(tensors, self.results_read, strict=True) if is_read]

    def attributes(self, args: tuple[Any, ...]) -> dict[str, Any]:
        """The attributes of a call with all arguments by position, as minitensor takes them."""
        return dict(given(self.attrs, args[len(self.inputs) :]))

    def complete(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """All arguments of a call. PyTorch omits trailing ones that equal their defaults."""
        if len(args) == len(self.inputs) + len(self.attrs):
            return args
        defaults = [*[None] * len(self.inputs), *[a.default for a in self.attrs]]
        return (*args, *defaults[len(args) :])

    @property
    def schema(self) -> str:
        """The schema of the op: `(Tensor x, float beta=1.0) -> Tensor`."""
        return f"({', '.join(self._arguments())}) -> {self._returns()}"

    @property
    def gradient_schema(self) -> str:
        """The schema of the gradient of any order, as `_gradient` takes it: all tensors in a list.

        `results` has the results of the call that the gradient reads, or is empty.
        """
        return f"({', '.join(['Tensor[] tensors', 'Tensor[] results', 'str wrt', *self._attributes()])}) -> Tensor[]"

    def _arguments(self) -> list[str]:
        # In a schema, an argument without a default cannot follow one with a default.
        all_default = not any(a.required for a in self.attrs)
        tensors = [
            f"{i.type} {i.name}"
            + ("=None" if i.arity == "optional" and all_default and self._rest_is_optional(k) else "")
            for k, i in enumerate(self.inputs)
        ]
        return tensors + self._attributes()

    def _rest_is_optional(self, index: int) -> bool:
        return all(i.arity == "optional" for i in self.inputs[index:])

    def _attributes(self) -> list[str]:
        last_required = max((k for k, a in enumerate(self.attrs) if a.required), default=-1)
        attribute = []
        for k, a in enumerate(self.attrs):
            default = f"={a.literal or 'None'}" if k > last_required and not a.required else ""
            attribute.append(f"{a.type} {a.name}{default}")
        return attribute

    def _returns(self) -> str:
        if self.gives_list:
            return "Tensor[]"
        match self.outputs:
            case []:
                return "()"
            case [_]:
                return "Tensor"
            case outputs:
                return f"({', '.join(f'Tensor {o.name}' for o in outputs)})"


def given(attrs: list[Attribute], values: Any) -> list[tuple[str, Any]]:
    """The attributes that are given, by name."""
    return [
        (a.name, NAMES[value] if isinstance(value, torch.dtype) else value)
        for a, value in zip(attrs, values, strict=False)
        if value is not None or a.optional
    ]
