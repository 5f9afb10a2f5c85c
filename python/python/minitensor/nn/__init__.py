"""Modules: objects that have parameters and compute with them.

>>> import minitensor as mt
>>> model = mt.nn.Sequential(mt.nn.Linear(2, 8), mt.ops.tanh, mt.nn.Linear(8, 1))
>>> optimizer = mt.optim.Adam(model.parameters())
>>> model(mt.zeros((4, 2))).shape
(4, 1)

`Module` is the base class. `Sequential`, `ModuleList` and `ModuleDict` contain other modules.
"""

from .function import Function
from .hooks import HookHandle
from .linear import Linear
from .module import Module
from .module_dict import ModuleDict
from .module_list import ModuleList
from .parameter import Parameter
from .sequential import Sequential
from .state import LoadedKeys

__all__ = [
    "Function",
    "HookHandle",
    "Linear",
    "LoadedKeys",
    "Module",
    "ModuleDict",
    "ModuleList",
    "Parameter",
    "Sequential",
]
