"""Graphs of calls as data: without weights, without code, and without the library that made them.

>>> from minitensor import ir
>>> x, y = (ir.TensorMeta(name, ("n", 3), "float32") for name in ("x", "y"))
>>> graph = ir.IR("example", [x], [], [ir.OpNode("y", "minitensor.swish", [x], [y])], [y], symbols={"n": (1, None)})
>>> ir.IR.from_json(graph.to_json()) == graph
True
"""

from __future__ import annotations

from .error import IRError
from .graph import IR
from .meta import Constant, TensorMeta
from .node import Input, OpNode
from .symbols import Sym

__all__ = ["IR", "Constant", "IRError", "Input", "OpNode", "Sym", "TensorMeta"]
