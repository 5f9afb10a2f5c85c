"""States of modules and optimizers, and checkpoints, as safetensors files."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any

from .. import _minitensor
from .._minitensor import Tensor, get_rng_state, set_rng_state
from . import safetensors
from .error import FileError

__all__ = ["load_checkpoint", "load_state", "save_checkpoint", "save_state"]

#: The key of the metadata with the structure of a state.
KEY = "minitensor.state"
VERSION = 1
_PLAIN = (bool, int, float, str, type(None))
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_MAX_DEPTH = 64


def save_state(path: str | os.PathLike[str], state: Mapping[str, Any]) -> None:
    """See `mt.save_state`."""
    if not isinstance(state, Mapping):
        raise TypeError(f"mt.save_state takes a dict, such as model.state_dict(), got {type(state).__name__}")
    state = dict(state)
    if all(type(name) is str and isinstance(t, Tensor) for name, t in state.items()):
        safetensors.write(path, state)
        return
    tensors: dict[str, Tensor] = {}
    written = {"version": VERSION, "minitensor": _minitensor.__version__, "state": _written(state, "", tensors, 0)}
    safetensors.write(path, tensors, {KEY: json.dumps(written, separators=(",", ":"), allow_nan=False)})


def _written(value: Any, name: str, tensors: dict[str, Tensor], depth: int) -> Any:
    where = f"mt.save_state: the value of '{name}'" if name else "mt.save_state: the state"
    if depth > _MAX_DEPTH:
        raise ValueError(f"{where} is nested more than {_MAX_DEPTH} levels deep")
    if isinstance(value, Tensor):
        while name in tensors:
            name += "_"
        tensors[name] = value
        return {"tensor": name}
    if isinstance(value, dict) and all(type(key) in (str, int) for key in value):
        return {"dict": [[key, _written(item, _joined(name, key), tensors, depth + 1)] for key, item in value.items()]}
    if type(value) in (list, tuple):
        items = [_written(item, _joined(name, k), tensors, depth + 1) for k, item in enumerate(value)]
        return {type(value).__name__: items}
    if type(value) is float and not math.isfinite(value):
        return {"float": repr(value)}
    if type(value) in _PLAIN:
        return value
    raise TypeError(
        f"{where} is of type {type(value).__name__}; use tensors, numbers, strings, None, and lists, tuples and "
        "dicts of them with "
        "strings or integers as keys"
    )


def _joined(name: str, key: object) -> str:
    return f"{name}.{key}" if name else str(key)


def load_state(path: str | os.PathLike[str]) -> dict[str, Any]:
    """See `mt.load_state`."""
    metadata, tensors = safetensors.read(path)
    if KEY not in metadata:
        return dict(tensors)
    data = safetensors.parsed(path, "the state", metadata[KEY])
    if not isinstance(data, dict) or data.keys() != {"version", "minitensor", "state"}:
        raise FileError(f"'{path}': the state must be an object with the fields version, minitensor and state")
    if type(data["version"]) is not int or data["version"] != VERSION:
        raise FileError(
            f"'{path}' has version {str(data['version'])[:40]} of the format, but minitensor "
            f"{_minitensor.__version__} reads "
            f"version {VERSION}; upgrade minitensor"
        )
    unread = dict(tensors)
    state = _read(path, data["state"], unread, 0)
    if unread:
        raise FileError(f"'{path}' has tensors that its state does not have: {', '.join(sorted(unread)[:10])}")
    if not isinstance(state, dict):
        raise FileError(f"'{path}': the state must be a dict")
    return state


def _read(path: object, value: Any, tensors: dict[str, Tensor], depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise FileError(f"'{path}': the state is nested too deeply")
    match value:
        case None | bool() | int() | float() | str():
            return value
        case {"tensor": str(name), **rest} if not rest:
            if name not in tensors:
                raise FileError(f"'{path}': the state has the tensor '{name[:80]}', which the file lacks, or has twice")
            return tensors.pop(name)
        case {"float": str(word), **rest} if not rest and word in _NOT_FINITE:
            return _NOT_FINITE[word]
        case {"list": list(items), **rest} if not rest:
            return [_read(path, item, tensors, depth + 1) for item in items]
        case {"tuple": list(items), **rest} if not rest:
            return tuple(_read(path, item, tensors, depth + 1) for item in items)
        case {"dict": list(items), **rest} if not rest:
            found: dict[Any, Any] = {}
            for item in items:
                if type(item) is not list or len(item) != 2 or type(item[0]) not in (str, int) or item[0] in found:
                    raise FileError(f"'{path}': a dict of the state has an item that is not a new key and a value")
                found[item[0]] = _read(path, item[1], tensors, depth + 1)
            return found
    raise FileError(f"'{path}': the state has a part that is no tensor, list, tuple, dict, number or string")


def save_checkpoint(path: str | os.PathLike[str], **parts: Any) -> None:
    """See `mt.save_checkpoint`."""
    if not parts:
        raise TypeError("mt.save_checkpoint: nothing to save; pass model=model, optimizer=optimizer, …")
    states = {name: part.state_dict() for name, part in parts.items() if hasattr(part, "state_dict")}
    values = {name: part for name, part in parts.items() if name not in states}
    save_state(path, {"states": states, "values": values, "random": get_rng_state()})


def load_checkpoint(path: str | os.PathLike[str], **parts: Any) -> dict[str, Any]:
    """See `mt.load_checkpoint`."""
    state = load_state(path)
    match state:
        case {"states": dict(states), "values": dict(values), "random": (int(seed), int(block)), **rest} if not rest:
            pass
        case _:
            raise FileError(f"'{path}' is not a checkpoint of mt.save_checkpoint; read it with mt.load_state")
    if not (0 <= seed < 2**64 and 0 <= block < 2**64):
        raise FileError(f"'{path}': the state of the random numbers must be two 64-bit integers")
    if parts.keys() != states.keys():
        raise ValueError(
            f"'{path}' has the states of {', '.join(states) or 'nothing'}; pass an object for each by these names, got "
            f"{', '.join(parts) or 'none'}"
        )
    before = {name: part.state_dict() for name, part in parts.items()}
    done: list[str] = []
    try:
        for name, part in parts.items():
            done.append(name)
            part.load_state_dict(states[name])
    except BaseException as error:
        for name in done:
            parts[name].load_state_dict(before[name])
        error.add_note(f"while loading '{name}' of '{path}'; nothing was loaded")
        raise
    set_rng_state((seed, block))
    return values
