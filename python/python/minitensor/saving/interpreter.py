"""Runs an IR by calls of the ops of minitensor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import _minitensor, empty
from .._definitions import define
from .._minitensor import Tensor
from ..ir import IR, Input, IRError, OpNode, Sym, TensorMeta
from ..ir.symbols import bind, evaluate
from . import nodes

__all__ = ["Interpreter", "ops_of"]

#: Finds an argument among tensors and sizes.
_Get = Callable[[dict[str, Tensor], dict[str, int]], Any]


def ops_of(ir: IR) -> dict[str, str]:
    """Returns the names of the ops that an IR calls, each with the name of the first node that does."""
    found: dict[str, str] = {}
    for node in ir.nodes:
        if node.op_type.startswith(nodes.PREFIX):
            found.setdefault(node.op_type.removeprefix(nodes.PREFIX), node.name)
        elif node.op_type not in (nodes.KEY, nodes.DETACH):
            raise IRError(
                f"node '{node.name}' calls '{node.op_type}', which minitensor does not know; expected "
                f"'{nodes.PREFIX}NAME', '{nodes.KEY}' or '{nodes.DETACH}'"
            )
    return found


class Interpreter:
    """An IR, prepared to run. `missing` are ops that are not registered, with the message of a call."""

    def __init__(self, ir: IR, missing: Mapping[str, str]) -> None:
        self.ir = ir
        self._steps = [_Step(node, missing) for node in ir.nodes]

    def run(self, inputs: Sequence[Tensor], weights: Mapping[str, Tensor]) -> list[Tensor]:
        """Returns the results."""
        ir = self.ir
        values = {meta.name: t for meta, t in zip(ir.inputs, inputs, strict=True)}
        values |= {meta.name: weights[meta.name] for meta in ir.weights}
        sizes: dict[str, int] = {}
        for meta, t in zip(ir.inputs, inputs, strict=True):
            bind(meta.shape, t.shape, sizes)
        for step in self._steps:
            step.run(values, sizes)
        return [values[meta.name] for meta in ir.outputs]

    def check(self) -> None:
        """Runs the IR without elements, for two values of each size. Raises IRError if a node contradicts its op."""
        for first in (2, 7) if self.ir.symbols else (2,):
            sizes = {name: first + k for k, name in enumerate(self.ir.symbols)}
            values = {meta.name: _without_elements(meta, sizes) for meta in (*self.ir.inputs, *self.ir.weights)}
            for step in self._steps:
                step.check(values, sizes)


def _without_elements(meta: TensorMeta, sizes: dict[str, int]) -> Tensor:
    shape = tuple(evaluate(size, sizes) for size in meta.shape)
    if any(size < 0 for size in shape):
        raise IRError(f"{meta} has a negative size for {sizes}")
    return empty(shape, dtype=meta.dtype, device="meta")


class _Step:
    """A call."""

    def __init__(self, node: OpNode, missing: Mapping[str, str]) -> None:
        self.node = node
        self._attrs: dict[str, _Get] = {}
        self._wanted: list[int] | None = None
        if node.op_type == nodes.KEY:
            self._expect_key()
            self._function: Callable[..., Any] = _minitensor._random_key
            self._arguments = [_constant(node.attrs[name]) for name in ("n", "is_of_integers")]
        elif node.op_type == nodes.DETACH:
            self._expect_detach()
            self._function, self._arguments = Tensor.detach, self._in_order(["x"], [])
        else:
            op = node.op_type.removeprefix(nodes.PREFIX)
            if op in missing:
                self._function, self._arguments = _raises(f"node '{node.name}': {missing[op]}"), []
            else:
                definition = define(op)
                # Looked up by each call: the op may be registered again.
                self._function = lambda *args, **attrs: nodes.function(op)(*args, **attrs)
                self._arguments = self._in_order(
                    [i.name for i in definition.inputs], [a.name for a in definition.attrs]
                )
        self._is_missing = op in missing if node.op_type.startswith(nodes.PREFIX) else False

    def _wrong(self, what: str) -> IRError:
        return IRError(f"node '{self.node.name}' ({self.node.op_type}): {what}")

    def _expect_key(self) -> None:
        match self.node.attrs, self.node.inputs, self.node.outputs:
            case {"n": int() | Sym() as n, "is_of_integers": bool(), **rest}, [], [_] if not rest:
                if type(n) is Sym or type(n) is int and 0 <= n < 2**63:
                    return
        raise self._wrong("expected one output, the number 'n', and the truth value 'is_of_integers'")

    def _expect_detach(self) -> None:
        if len(self.node.inputs) != 1 or len(self.node.outputs) != 1 or self.node.attrs:
            raise self._wrong("expected one input, one output, and no attributes")

    def _in_order(self, inputs: list[str], attributes: list[str]) -> list[_Get]:
        """Returns the functions that find the positional arguments."""
        attrs, names = dict(self.node.attrs), [meta.name for meta in self.node.inputs]
        wanted = attrs.pop(nodes.RESULTS, None)
        if wanted is not None:
            if type(wanted) is not list or not all(type(k) is int for k in wanted) or wanted != sorted(set(wanted)):
                raise self._wrong(f"attribute '{nodes.RESULTS}' must be a list of ascending positions")
            self._wanted = wanted
        used: list[int] = []
        arguments: list[_Get] = []
        following = iter(range(len(names)))
        in_lists = {i.position for value in attrs.values() if type(value) is list for i in value if type(i) is Input}
        for name in inputs:
            if name in attrs:
                value = attrs.pop(name)
                if type(value) is list and all(type(i) is Input for i in value):
                    positions = [i.position for i in value]
                    used += positions
                    arguments.append(_list([names[k] for k in positions]))
                elif value is None or type(value) in (bool, int, float, Sym):
                    arguments.append(_constant(value))
                else:
                    raise self._wrong(f"the input '{name}' must be a tensor, a list of tensors, a number or None")
                continue
            position = next((k for k in following if k not in in_lists), None)
            if position is None:
                raise self._wrong(f"the input '{name}' is missing")
            used.append(position)
            arguments.append(_value(names[position]))
        if sorted(used) != list(range(len(names))):
            raise self._wrong(f"expected the inputs ({', '.join(inputs)}), got {len(names)} tensors")
        if self.node.op_type.startswith(nodes.PREFIX):
            for name, value in attrs.items():
                if name not in attributes:
                    raise self._wrong(f"the op has no attribute '{name}'; expected {', '.join(attributes) or 'none'}")
                if not _is_attribute(value):
                    raise self._wrong(f"attribute '{name}' has a value that no attribute has: {value!r}")
            self._attrs = {name: _constant(value) for name, value in attrs.items()}
        return arguments

    def run(self, values: dict[str, Tensor], sizes: dict[str, int]) -> None:
        """Computes the results."""
        arguments = [get(values, sizes) for get in self._arguments]
        attrs = {name: get(values, sizes) for name, get in self._attrs.items()}
        for meta, t in zip(self.node.outputs, self._results(self._function(*arguments, **attrs)), strict=True):
            if t.dtype.name != meta.dtype or not bind(meta.shape, t.shape, sizes):
                raise self._wrong(f"the result is {t.dtype.name} {t.shape}, but {meta} when the model was saved")
            values[meta.name] = t

    def _results(self, returned: Any) -> list[Tensor]:
        all_results = [returned] if isinstance(returned, Tensor) else list(returned or ())
        if not self.node.outputs:
            return []
        wanted = range(len(all_results)) if self._wanted is None else self._wanted
        if len(wanted) != len(self.node.outputs) or any(not 0 <= k < len(all_results) for k in wanted):
            raise self._wrong(f"the op returns {len(all_results)} tensors, but the node has {len(self.node.outputs)}")
        return [all_results[k] for k in wanted]

    def check(self, values: dict[str, Tensor], sizes: dict[str, int]) -> None:
        """Computes the results without elements."""
        results = {meta.name: meta for meta in self.node.outputs}
        if self._is_missing or self.node.op_type == nodes.KEY:
            values |= {name: _without_elements(meta, sizes) for name, meta in results.items()}
            return
        try:
            self.run(values, sizes)
        except IRError:
            raise
        except Exception as error:
            if "meta" not in str(error):
                raise self._wrong(str(error)) from None
            # The shapes of the results depend on elements.
            values |= {name: _without_elements(meta, sizes) for name, meta in results.items()}


def _is_attribute(value: Any) -> bool:
    if type(value) is list:
        return all(type(item) in (int, float, Sym) for item in value)
    return value is None or type(value) in (bool, int, float, str, Sym)


def _value(name: str) -> _Get:
    return lambda values, sizes: values[name]


def _list(names: list[str]) -> _Get:
    return lambda values, sizes: [values[name] for name in names]


def _constant(value: Any) -> _Get:
    """A plain value, in which sizes have their values."""
    if isinstance(value, Sym):
        text = value.text
        return lambda values, sizes: evaluate(text, sizes)
    if type(value) is list:
        items = [_constant(item) for item in value]
        return lambda values, sizes: [get(values, sizes) for get in items]
    return lambda values, sizes: value


def _raises(message: str) -> Callable[..., Any]:
    def function(*_: Any, **__: Any) -> Any:
        raise RuntimeError(message)

    return function
