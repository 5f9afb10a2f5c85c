"""`mt.jit`, `mt.lazy` and `mt.vmap`: calls as graphs, and control flow in them.

| module | contents |
|---|---|
| `jitted` | `jit`, and the function that it returns |
| `lazy_mode` | `lazy`: calls that are postponed until their results are read |
| `vmapped` | `vmap`, and the function that it returns |
| `control_flow` | `cond` and `while_loop` |
| `scan` | `scan` |
| `values` | checks of what control flow gets and returns |
| `branch` | a function that is recorded while another graph is |
| `call` | calls of Python code that a graph repeats as a whole |
| `tree` | nested containers as lists of tensors, and back |
| `watch` | the Python state that a function refers to |
"""

from .control_flow import cond, while_loop
from .jitted import Jitted, jit
from .lazy_mode import lazy
from .scan import scan
from .vmapped import Vmapped, vmap

__all__ = ["Jitted", "Vmapped", "cond", "jit", "lazy", "scan", "vmap", "while_loop"]
