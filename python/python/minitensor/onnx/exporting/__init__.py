"""The export of models to ONNX. It is imported when it is used, because it needs the package `onnx`.

| module | contents |
|---|---|
| `exporter` | `export`, which `mt.onnx.export` calls |
| `source` | what is exported: an IR of calls of ops, its tensors and names |
| `model` | the model of ONNX: graph, functions, weights, and its check |
| `graph`, `call` | the calls of an IR, and a call as the rules see it |
| `writes` | tensors that calls change in place |
| `lowering` | how a call becomes nodes: by a rule, by its program, or as a node of its own domain |
| `rule`, `rules` | the table of rules, and its families |
| `program`, `rows` | the program of an op as a function of ONNX |
| `primitives`, `reductions`, `special` | the functions of programs as nodes |
| `builder`, `functions` | the nodes of a graph or function, and the functions of a model |
| `dtypes` | the dtypes of ONNX, and those that runtimes compute with |
"""

from __future__ import annotations

from .error import ExportError

__all__ = ["ExportError"]
