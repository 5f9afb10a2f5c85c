"""`mt.jit` and `mt.vmap`: functions of tensors as graphs.

| module | contents |
|---|---|
| `jitted` | `jit`, and the function that it returns |
| `vmapped` | `vmap`, and the function that it returns |
| `tree` | nested containers as lists of tensors, and back |
| `watch` | the Python state that a function refers to |
"""

from .jitted import Jitted, jit
from .vmapped import Vmapped, vmap

__all__ = ["Jitted", "Vmapped", "jit", "vmap"]
