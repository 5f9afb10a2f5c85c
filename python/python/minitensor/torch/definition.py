"""The definition of an op, and the schemas of its PyTorch ops."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Any

import torch

from .. import _definitions
from .._definitions import Attribute, Input

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
    "int": "SymInt",
    "float": "float",
    "str": "str",
    "ints": "SymInt[]",
    "floats": "float[]",
    "dtype": "ScalarType",
}


class Definition(_definitions.Definition):
    """The definition of an op, with schemas of PyTorch."""

    @property
    def torch_name(self) -> str:
        """The name within a namespace of PyTorch."""
        return self.name.replace("::", "__")

    @property
    def is_differentiable(self) -> bool:
        """Whether the op has a gradient. One that changes an argument in place has none in PyTorch."""
        has_tensors = any(i.differentiable for i in self.inputs) and any(o.differentiable for o in self.outputs)
        return self.no_gradient is None and self.mutated is None and has_tensors

    @property
    def parameters(self) -> list[str]:
        """The names of all arguments, in order."""
        return [i.name for i in self.inputs] + [a.name for a in self.attrs]

    def flat(self, args: tuple[Any, ...]) -> list[torch.Tensor | None]:
        """The tensors of a call with all arguments by position, with those of a list one by one."""
        tensors = list(args[: len(self.inputs)])
        return tensors[:-1] + list(tensors[-1]) if self.is_variadic else tensors

    def collected(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The positional arguments of a call, in which the tensors of a list may be arguments of their own."""
        first = len(self.inputs) - 1
        if not self.is_variadic or len(args) <= first or not isinstance(args[first], torch.Tensor):
            return args
        end = next((k for k in range(first, len(args)) if not isinstance(args[k], torch.Tensor)), len(args))
        return (*args[:first], args[first:end], *args[end:])

    def nested(self, tensors: Sequence[Any]) -> Sequence[Any]:
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

    def by_position(self, attributes: dict[str, Any]) -> list[Any]:
        """The values of all attributes, None for those that are not given."""
        return [attributes.get(a.name) for a in self.attrs]

    def all_arguments(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
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
            f"{type_of_input(i)} {i.name}"
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
            default = f"={literal(a) or 'None'}" if k > last_required and not a.required else ""
            attribute.append(f"{type_of_attribute(a)} {a.name}{default}")
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


def type_of_input(of: Input) -> str:
    """The type in a schema."""
    if of.mutated:
        return "Tensor(a!)"
    return {"one": "Tensor", "optional": "Tensor?", "variadic": "Tensor[]"}[of.arity]


def type_of_attribute(attr: Attribute) -> str:
    """The type in a schema. None stands for a default that schemas cannot express."""
    is_optional = attr.optional or (not attr.required and literal(attr) is None)
    return _TYPES[attr.kind] + ("?" if is_optional else "")


def literal(attr: Attribute) -> str | None:
    """The default in a schema; None if schemas cannot express it."""
    match attr.default:
        case float() as number if not math.isfinite(number):
            return None
        case float() | int():
            return repr(attr.default)
        case None:
            return "None"
        case str() as word:
            return f'"{word}"' if word.isidentifier() else None
        case list() as items if all(isinstance(item, int) or math.isfinite(item) for item in items):
            return repr(items)
        case _:
            return None


def in_schema(attr: Attribute, value: Any) -> Any:
    """A value that minitensor takes, as the schema takes it."""
    if attr.kind in ("ints", "floats") and isinstance(value, (int, float)):  # noqa: UP038
        return [value]
    if attr.kind == "dtype" and value is not None and not isinstance(value, torch.dtype):
        return DTYPES.get(str(value), value)
    if attr.choices and isinstance(value, enum.Enum):
        return value.value
    return value


def copied(value: Any) -> Any:
    """A copy of an attribute: the caller may change a list or a tensor before the gradient is computed."""
    if isinstance(value, torch.Tensor):
        return value.item() if value.ndim == 0 else value.tolist()
    return tuple(value) if isinstance(value, list) else value


def given(attrs: list[Attribute], values: Any) -> list[tuple[str, Any]]:
    """The attributes that are given, by name."""
    return [
        (a.name, NAMES[value] if isinstance(value, torch.dtype) else value)
        for a, value in zip(attrs, values, strict=False)
        if value is not None or a.optional
    ]
