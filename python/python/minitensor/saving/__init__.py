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

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .error import FileError

if TYPE_CHECKING:
    from .. import nn
    from .._minitensor import Graph, Tensor
    from ..ir import IR
    from ..tracing import Jitted
    from .model import LoadedModel

__all__ = ["FileError", "LoadedModel", "load", "load_checkpoint", "load_state", "save", "save_checkpoint", "save_state"]

# The modules are imported when they are used: most programs save nothing.


def __getattr__(name: str) -> Any:
    if name == "LoadedModel":
        from .model import LoadedModel

        return LoadedModel
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def save(
    path: str | os.PathLike[str],
    model: nn.Module | Jitted[..., Any] | Graph | IR,
    examples: Any = None,
    *,
    dynamic: Mapping[int, str] | Sequence[Mapping[int, str]] | None = None,
    weights: Mapping[str, Tensor] | None = None,
) -> None:
    """Writes a model to a file: its graph, its weights, and the definitions of its ops. `mt.load` reads it.

    `model` is a module, a function under `mt.jit`, one of its `graphs`, or an `ir.IR` of ops of minitensor with its
    `weights`. A module is recorded with `examples`: a tensor, a tuple of positional arguments, or a list of such
    tuples. The loaded model takes arguments of the same shapes, dtypes and plain values as one of them. A module is
    recorded in training and in evaluation mode. Without examples, a function under `mt.jit` is recorded for all shapes
    that it was called with.

    `dynamic={0: "batch"}` says that axis 0 of all tensors has any size, and the same one in all of them. A list has
    such a dict for each tensor of the arguments. The function is then recorded for several sizes.

    A crash while the file is written leaves the old file or the new one.

    >>> import minitensor as mt, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "model.mt")
    >>> mt.save(path, mt.nn.Linear(3, 2), mt.zeros(5, 3))
    >>> mt.load(path)(mt.zeros(5, 3)).shape
    (5, 2)

    Raises RuntimeError if the function does what a graph cannot repeat, such as reading elements; TypeError for
    arguments and results that are not tensors, numbers, strings, None, or lists, tuples and dicts of them. Warns of ops
    that the file cannot contain.
    """
    from . import saved

    saved.save(path, model, examples, dynamic=dynamic, weights=weights)


def load(path: str | os.PathLike[str], *, allow_missing: bool = False) -> LoadedModel:
    """Reads a model that `mt.save` wrote. No code of the file runs, and the file need not be trusted.

    The ops of the file that are not registered are registered. If an op of the same name is, it must have the same
    definition. With `allow_missing=True`, ops that are neither registered nor in the file are listed in `missing` of
    the model, and a call of one raises an error.

    Raises FileError, a ValueError, if the file is not valid, or needs ops that are missing. Then nothing is registered.
    """
    from . import saved

    return saved.load(path, allow_missing=allow_missing)


def save_checkpoint(path: str | os.PathLike[str], **parts: Any) -> None:
    """Writes a checkpoint: the states of modules and optimizers, other values, and that of the random numbers.

    >>> import minitensor as mt, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "last.safetensors")
    >>> model = mt.nn.Linear(3, 2)
    >>> optimizer = mt.optim.Adam(model.parameters())
    >>> mt.save_checkpoint(path, model=model, optimizer=optimizer, epoch=3)
    >>> mt.load_checkpoint(path, model=model, optimizer=optimizer)
    {'epoch': 3}
    """
    from . import states

    states.save_checkpoint(path, **parts)


def load_checkpoint(path: str | os.PathLike[str], **parts: Any) -> dict[str, Any]:
    """Restores modules and optimizers, and the state of the random numbers, from a file of `mt.save_checkpoint`.

    Returns the other values. If anything does not match, raises an error, and changes nothing.
    """
    from . import states

    return states.load_checkpoint(path, **parts)


def save_state(path: str | os.PathLike[str], state: Mapping[str, Any]) -> None:
    """Writes a state to a safetensors file: a dict of tensors, or of nested dicts, lists, tuples, numbers and strings.

    The names of nested tensors are joined by dots. A crash while the file is written leaves the old file or the new
    one.

    >>> import minitensor as mt, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "linear.safetensors")
    >>> model = mt.nn.Linear(3, 2)
    >>> mt.save_state(path, model.state_dict())
    >>> model.load_state_dict(mt.load_state(path))
    LoadedKeys(missing=[], unexpected=[])
    """
    from . import states

    states.save_state(path, state)


def load_state(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads a state that `mt.save_state` wrote, or any other safetensors file: a dict of tensors.

    No code of the file runs, and the file need not be trusted. Raises FileError, a ValueError, if it is not valid.
    """
    from . import states

    return states.load_state(path)
