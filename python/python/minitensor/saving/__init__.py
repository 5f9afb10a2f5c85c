"""Models and states in files. `mt.save`, `mt.load` and their neighbours are defined here.

| module | contents |
|---|---|
| `saved` | `save` and `load` |
| `recording`, `nodes` | a function as an IR of calls of ops |
| `sizes` | one IR for all sizes |
| `carried` | the definitions of ops in a file |
| `manifest`, `structure` | the description of a model as JSON, and that of its arguments and results |
| `model`, `interpreter` | a loaded model, and how it runs |
| `states` | states and checkpoints |
| `safetensors`, `atomic` | the file format, and how a file is replaced |
| `command` | `python -m minitensor model` |
"""

from __future__ import annotations

from .error import FileError
from .model import LoadedModel
from .saved import load, save
from .states import load_checkpoint, load_state, save_checkpoint, save_state

__all__ = ["FileError", "LoadedModel", "load", "load_checkpoint", "load_state", "save", "save_checkpoint", "save_state"]
