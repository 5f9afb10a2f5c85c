"""`Builder`: writes the nodes of a graph or of a function. `Value`: a result of a node, with operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ..._minitensor import Tensor
from ...ir.symbols import Size
from . import dtypes
from .functions import Functions

__all__ = ["Builder", "Operand", "Value"]

_ONNX_TO_NUMPY = helper.tensor_dtype_to_np_dtype


class Value:
    """A tensor in a graph or function. Its operators write nodes; a Python number gets its dtype."""

    def __init__(self, builder: Builder, name: str, dtype: str, shape: tuple[Size, ...] | None = None) -> None:
        self.builder = builder
        self.name = name
        self.dtype = dtype
        #: The sizes; None if they are not known, as in a function.
        self.shape = shape

    def _with(self, op: str, other: Operand, dtype: str | None = None, is_swapped: bool = False) -> Value:
        value = self.builder.value(other, self.dtype)
        pair = (value, self) if is_swapped else (self, value)
        return self.builder.node(op, *pair, dtype=dtype or self.dtype)

    def __add__(self, other: Operand) -> Value:
        return self._with("Add", other)

    def __radd__(self, other: Operand) -> Value:
        return self._with("Add", other, is_swapped=True)

    def __sub__(self, other: Operand) -> Value:
        return self._with("Sub", other)

    def __rsub__(self, other: Operand) -> Value:
        return self._with("Sub", other, is_swapped=True)

    def __mul__(self, other: Operand) -> Value:
        return self._with("Mul", other)

    def __rmul__(self, other: Operand) -> Value:
        return self._with("Mul", other, is_swapped=True)

    def __truediv__(self, other: Operand) -> Value:
        return self._with("Div", other)

    def __rtruediv__(self, other: Operand) -> Value:
        return self._with("Div", other, is_swapped=True)

    def __lt__(self, other: Operand) -> Value:
        return self._with("Less", other, "bool")

    def __le__(self, other: Operand) -> Value:
        return self._with("LessOrEqual", other, "bool")

    def __gt__(self, other: Operand) -> Value:
        return self._with("Greater", other, "bool")

    def __ge__(self, other: Operand) -> Value:
        return self._with("GreaterOrEqual", other, "bool")

    def equal(self, other: Operand) -> Value:
        """Whether numbers are equal."""
        return self._with("Equal", other, "bool")

    def __and__(self, other: Operand) -> Value:
        return self._with("And" if self.dtype == "bool" else "BitwiseAnd", other)

    def __or__(self, other: Operand) -> Value:
        return self._with("Or" if self.dtype == "bool" else "BitwiseOr", other)

    def __xor__(self, other: Operand) -> Value:
        return self._with("Xor" if self.dtype == "bool" else "BitwiseXor", other)

    def __invert__(self) -> Value:
        return self.apply("Not" if self.dtype == "bool" else "BitwiseNot")

    def __neg__(self) -> Value:
        return 0 - self if self.dtype in dtypes.UNSIGNED else self.apply("Neg")

    def __abs__(self) -> Value:
        return self.apply("Abs")

    def apply(self, op: str, *others: Operand, dtype: str | None = None, **attributes: Any) -> Value:
        """The op of ONNX with this tensor as the first input. Numbers get its dtype."""
        values = [self.builder.value(other, self.dtype) for other in others]
        return self.builder.node(op, self, *values, dtype=dtype, **attributes)

    def cast(self, dtype: str) -> Value:
        """The tensor in another dtype."""
        if dtype == self.dtype:
            return self
        found = self.builder.node("Cast", self, dtype=dtype, to=dtypes.to_onnx(dtype))
        found.shape = self.shape
        return found

    def isnan(self) -> Value:
        """Whether numbers are NaN."""
        found = self.apply("IsNaN", dtype="bool")
        found.shape = self.shape
        return found

    def isinf(self) -> Value:
        """Whether numbers are infinite."""
        return self.apply("IsInf", dtype="bool")


#: What a node takes: a value, or a number that becomes a constant.
Operand = Value | bool | int | float


class Builder:
    """Writes nodes."""

    def __init__(self, functions: Functions) -> None:
        self.nodes: list[onnx.NodeProto] = []
        #: The functions of the model.
        self.functions = functions
        #: The domains of the nodes.
        self.domains: set[str] = {""}
        #: The beginning of the names of values.
        self.prefix = ""
        #: The names that are taken.
        self.taken: set[str] = set()
        self._constants: dict[tuple[Any, ...], Value] = {}

    def free(self, name: str) -> str:
        """Returns a name that is not taken, and takes it."""
        found, number = name, 1
        while found in self.taken:
            number += 1
            found = f"{name}_{number}"
        self.taken.add(found)
        return found

    def node(self, op: str, *inputs: Value | None, dtype: str | None = None, **attributes: Any) -> Value:
        """Writes a node with one output. Its dtype is that of the first input, unless `dtype` says otherwise."""
        return self.nodes_of(op, inputs, [dtype], **attributes)[0]

    def nodes_of(
        self,
        op: str,
        inputs: Sequence[Value | None],
        outputs: Sequence[str | None],
        domain: str = "",
        **attributes: Any,
    ) -> list[Value]:
        """Writes a node with an output of each dtype; None is the dtype of the first input.

        If no runtime has a kernel for an integer dtype, or one of 16 bits, the node is computed in a wider one.
        """
        given = inputs[1] if op == "Where" else inputs[0] if inputs else None
        own = given.dtype if given is not None else ""
        key = f"{op}.{attributes['reduction']}" if "reduction" in attributes else op
        wide = dtypes.computed(key, own) if not domain else own
        if wide != own:
            first = 1 if op == "Where" else 0
            changed = [i.cast(wide) if i is not None and i.dtype == own else i for i in inputs[first:]]
            inputs = [*inputs[:first], *changed]
        names = [self.free(f"{self.prefix}{op}") for _ in outputs]
        last = max((k for k, i in enumerate(inputs) if i is not None), default=-1)
        self.nodes.append(
            helper.make_node(
                op,
                ["" if i is None else i.name for i in inputs[: last + 1]],
                names,
                name=names[0],
                domain=domain,
                **{name: value for name, value in attributes.items() if value is not None},
            )
        )
        self.domains.add(domain)
        made = [
            Value(self, name, wide if dtype is None or dtype == own else dtype)
            for name, dtype in zip(names, outputs, strict=True)
        ]
        return [v.cast(own if dtype is None else dtype) for v, dtype in zip(made, outputs, strict=True)]

    def value(self, operand: Operand, dtype: str) -> Value:
        """The operand as a value; a number is a constant of the dtype."""
        return operand if isinstance(operand, Value) else self.number(operand, dtype)

    def number(self, value: bool | int | float, dtype: str) -> Value:
        """A constant number. An integer dtype has the nearest number."""
        if dtype in dtypes.INTEGERS:
            info = np.iinfo(dtype)
            number = float(value)
            if math.isnan(number):
                value = 0
            elif number >= info.max or number <= info.min:
                value = int(info.max if number > 0 else info.min)
            else:
                value = int(value)
        elif dtypes.is_float(dtype):
            value = float(value)
        return self.constant(value, dtype)

    def constant(self, values: Any, dtype: str) -> Value:
        """A constant tensor."""
        array = np.asarray(values, dtype=_ONNX_TO_NUMPY(dtypes.to_onnx(dtype)))
        key = (dtype, array.shape, array.tobytes())
        found = self._constants.get(key)
        if found is None:
            found = self.node("Constant", dtype=dtype, value=numpy_helper.from_array(array))
            found.shape = array.shape
            self._constants[key] = found
        return found

    def tensor(self, t: Tensor) -> Value:
        """A constant tensor."""
        found = self.node("Constant", dtype=t.dtype.name, value=dtypes.tensor("", t))
        found.shape = t.shape
        return found

    def integers(self, values: Sequence[int]) -> Value:
        """A constant list of integers, such as axes or sizes."""
        return self.constant(list(values), "int64")

    def where(self, mask: Value, x: Operand, y: Operand, dtype: str | None = None) -> Value:
        """`x` where the mask is true, else `y`."""
        dtype = dtype or next(v.dtype for v in (x, y) if isinstance(v, Value))
        return self.node("Where", mask, self.value(x, dtype), self.value(y, dtype), dtype=dtype)

    def shape(self, x: Value, start: int | None = None, end: int | None = None) -> Value:
        """The sizes of a tensor, as a list of integers."""
        return self.node("Shape", x, dtype="int64", start=start, end=end)

    def concat(self, values: Sequence[Value], axis: int = 0) -> Value:
        """Joins tensors."""
        return values[0] if len(values) == 1 else self.node("Concat", *values, axis=axis)

    def subgraph(self, inputs: Sequence[str], write: Callable[..., list[Value]]) -> onnx.GraphProto:
        """The body of a loop: a graph with inputs of these dtypes. `write` returns its outputs."""
        inner = Builder(self.functions)
        # Names are unique in the graph and all graphs inside of it.
        inner.taken, inner.domains, inner.prefix = self.taken, self.domains, self.prefix
        values = [Value(inner, self.free(f"{self.prefix}x"), dtype) for dtype in inputs]
        outputs = write(*values)
        infos = [
            [helper.make_tensor_value_info(v.name, dtypes.to_onnx(v.dtype), None) for v in side]
            for side in (values, outputs)
        ]
        return helper.make_graph(inner.nodes, "body", *infos)

    def call(self, name: str, body: Callable[..., Value], *inputs: Value) -> Value:
        """Calls a function of the model with one result. The body is written once for each dtype."""
        dtype = inputs[0].dtype

        def write(builder: Builder, names: Sequence[str]) -> list[str]:
            return [body(*(Value(builder, name, dtype) for name in names)).name]

        names = [f"x{k}" for k in range(len(inputs))]
        made = self.functions.named(f"{name}_{dtype}", names, write)
        return self.nodes_of(made.name, inputs, [dtype], domain=made.domain)[0]
