"""One graph for all sizes: recordings at several sizes, whose integers are polynomials of the sizes.

Each integer of a graph is a polynomial that is linear in each size. The recordings at all combinations of two values
for each size determine it. One more recording, at other values, verifies it.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..ir import IR, OpNode, Sym, TensorMeta
from ..ir.symbols import evaluate
from .recording import Recorded

__all__ = ["MOST", "generalized", "is_polynomial"]

#: The most sizes that differ: their number determines that of recordings.
MOST = 4

Sizes = dict[str, int]


def is_polynomial(text: str) -> bool:
    """Whether an expression has only sums and products, so that its value is small enough to compute."""
    return len(text) < 1000 and bool(re.fullmatch(r"[\w +\-*()]*", text, re.ASCII)) and "**" not in text


def generalized(record: Callable[[Sizes], Recorded], given: Mapping[str, int]) -> Recorded:
    """Returns a recording for all sizes. `given` are the sizes of the example, and `record` records at others."""
    first = {name: max(size, 2) for name, size in given.items()}
    corners = [frozenset(c) for n in range(len(first) + 1) for c in itertools.combinations(first, n)]
    recorded = [record({name: size + (name in corner) for name, size in first.items()}) for corner in corners]
    fit = _Fit(first, corners)
    ir = fit.ir([r.ir for r in recorded])
    for r in recorded[1:]:
        fit.expect_equal(
            "constants", [{n: (t.shape, t.tolist()) for n, t in x.constants.items()} for x in (recorded[0], r)]
        )
        fit.expect_equal("structure of the result", [recorded[0].outputs, r.outputs])
    # At other sizes, which differ from each other.
    sizes = {name: size + 3 + 2 * k for k, (name, size) in enumerate(first.items())}
    verified = record(sizes)
    if _at(ir, sizes) != verified.ir or verified.outputs != recorded[0].outputs:
        raise fit.error("at other sizes than these")
    return recorded[0]._replace(ir=ir, calls=[call for r in (*recorded, verified) for call in r.calls])


def _at(ir: IR, sizes: Mapping[str, int]) -> IR:
    """The IR with the values of its sizes."""

    def meta(m: TensorMeta) -> TensorMeta:
        return TensorMeta(m.name, tuple(evaluate(size, sizes) for size in m.shape), m.dtype)

    def value(v: Any) -> Any:
        if type(v) is list:
            return [value(item) for item in v]
        return evaluate(v.text, sizes) if isinstance(v, Sym) else v

    nodes = [
        OpNode(
            n.name,
            n.op_type,
            [meta(m) for m in n.inputs],
            [meta(m) for m in n.outputs],
            {k: value(v) for k, v in n.attrs.items()},
        )
        for n in ir.nodes
    ]
    metas = [[meta(m) for m in part] for part in (ir.inputs, ir.weights, ir.outputs)]
    return IR(ir.name, metas[0], metas[1], nodes, metas[2])


class _Fit:
    """Finds the polynomials."""

    def __init__(self, first: Sizes, corners: Sequence[frozenset[str]]) -> None:
        self._first = first
        self._corners = corners

    def error(self, what: str) -> ValueError:
        sizes = ", ".join(f"{name}={size}" for name, size in self._first.items())
        return ValueError(
            f"mt.save: the graph is not the same for all sizes: it differs {what} ({sizes}); pass examples of all "
            "shapes, or "
            "change what depends on a size, such as an if, or a tensor that is created with this size"
        )

    def expect_equal(self, what: str, values: Sequence[Any]) -> Any:
        if any(value != values[0] for value in values):
            raise self.error(f"in its {what}")
        return values[0]

    def ir(self, irs: Sequence[IR]) -> IR:
        self.expect_equal("number of calls", [len(ir.nodes) for ir in irs])
        self.expect_equal("inputs or results", [(len(ir.inputs), len(ir.weights), len(ir.outputs)) for ir in irs])
        nodes = [self._node(same) for same in zip(*(ir.nodes for ir in irs), strict=True)]
        parts = [
            [self._meta(same) for same in zip(*metas, strict=True)]
            for metas in ([ir.inputs for ir in irs], [ir.weights for ir in irs], [ir.outputs for ir in irs])
        ]
        symbols: dict[str, tuple[int, int | None]] = dict.fromkeys(self._first, (1, None))
        ir = IR(irs[0].name, parts[0], parts[1], nodes, parts[2], symbols=symbols)
        ir.check()
        return ir

    def _node(self, same: Sequence[OpNode]) -> OpNode:
        name = self.expect_equal("calls", [(n.name, n.op_type) for n in same])[0]
        where = f"call '{name}'"
        self.expect_equal(where, [[m.name for m in n.inputs] for n in same])
        self.expect_equal(where, [list(n.attrs) for n in same])
        attrs = {
            key: self._value(f"attribute '{key}' of {where}", [n.attrs[key] for n in same]) for key in same[0].attrs
        }
        inputs = [self._meta(metas) for metas in zip(*(n.inputs for n in same), strict=True)]
        outputs = [self._meta(metas) for metas in zip(*(n.outputs for n in same), strict=True)]
        return OpNode(name, same[0].op_type, inputs, outputs, attrs)

    def _meta(self, same: Sequence[TensorMeta]) -> TensorMeta:
        name, dtype, _ = self.expect_equal("tensors", [(m.name, m.dtype, len(m.shape)) for m in same])
        shape = [self._value(f"tensor '{name}'", sizes) for sizes in zip(*(m.shape for m in same), strict=True)]
        return TensorMeta(name, tuple(size.text if isinstance(size, Sym) else size for size in shape), dtype)

    def _value(self, what: str, values: Sequence[Any]) -> Any:
        if all(type(v) is type(values[0]) and v == values[0] for v in values):
            return values[0]
        if all(type(v) is list for v in values):
            self.expect_equal(what, [len(v) for v in values])
            return [self._value(what, items) for items in zip(*values, strict=True)]
        if not all(type(v) is int for v in values):
            raise self.error(f"in its {what}")
        return Sym(self._polynomial(values))

    def _polynomial(self, values: Sequence[int]) -> str:
        """The polynomial with these values at the corners."""
        known = dict(zip(self._corners, values, strict=True))
        terms: dict[frozenset[str], int] = {}
        for corner in self._corners:
            # The coefficient of the product of (size - first) for the sizes of the corner.
            inner = [c for c in self._corners if c <= corner]
            factor = sum((-1) ** (len(corner) - len(c)) * known[c] for c in inner)
            for c in inner:
                rest = math.prod(-self._first[name] for name in corner - c)
                terms[c] = terms.get(c, 0) + factor * rest
        ordered = sorted((item for item in terms.items() if item[1]), key=lambda item: (-len(item[0]), sorted(item[0])))
        text = ""
        for names, factor in ordered:
            parts = [*([str(abs(factor))] if abs(factor) != 1 or not names else []), *sorted(names)]
            sign = (" - " if factor < 0 else " + ") if text else ("0 - " if factor < 0 else "")
            text += sign + " * ".join(parts)
        return text or "0"
