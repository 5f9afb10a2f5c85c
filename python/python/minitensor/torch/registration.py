"""Registers ops with PyTorch's dispatcher, and keeps them up to date with the registry of minitensor."""

from __future__ import annotations

import sys
import threading
from types import ModuleType
from typing import Any

from .._minitensor import _on_change, _op_names
from . import sharding
from .op import Op

_lock = threading.RLock()
#: The registered ops, by the namespace in PyTorch and the name in minitensor.
_ops: dict[tuple[str, str], Op] = {}
#: The namespaces in PyTorch, with the prefixes of the ops that they have.
_namespaces: dict[str, str] = {}
#: Whether the sharding rules are registered.
_shards = False


def register(namespace: str = "minitensor", prefix: str = "") -> None:
    """Registers the ops whose names start with `prefix` as `torch.ops.<namespace>.<op>`.

    Importing `minitensor.torch` calls it for all ops. A package of ops calls it to get a namespace of its own:
    `register("my_ops", "my_ops::")` registers the op `my_ops::clip` as `torch.ops.my_ops.clip`. Ops that are registered
    with minitensor later are added at once, and ops that are defined again are replaced. Repeated calls have no further
    effect.

    Raises ValueError if the namespace is not an identifier, or already has ops with another prefix.

    >>> import torch
    >>> import minitensor.torch
    >>> minitensor.torch.register()
    >>> torch.ops.minitensor.swish(torch.tensor([1.0]))
    tensor([0.7311])
    """
    if not (namespace.isidentifier() and namespace.isascii()):
        raise ValueError(f"register: a namespace of PyTorch must be an identifier, got '{namespace}'")
    with _lock:
        if _namespaces.setdefault(namespace, prefix) != prefix:
            raise ValueError(
                f"register: the namespace '{namespace}' has the ops '{_namespaces[namespace]}*', got the prefix "
                f"'{prefix}'; choose another namespace"
            )
        update()


def update() -> None:
    """Registers new ops, and those that are defined again. It runs after every change of minitensor's registry."""
    with _lock:
        for namespace, prefix in _namespaces.items():
            for name in _op_names():
                key = (namespace, name)
                if not name.startswith(prefix) or (key in _ops and _ops[key].is_current()):
                    continue
                if key in _ops:
                    _ops.pop(key).destroy()
                op = _ops[key] = Op(namespace, name.removeprefix(prefix), name)
                if _shards:
                    sharding.register(op)
                if namespace == "minitensor":
                    publish(op)


def register_sharding() -> None:
    """Registers the sharding rules of all ops, so that they take DTensors.

    `minitensor.torch.<op>` calls it when it gets a DTensor first. Programs that call `torch.ops.minitensor.<op>` with
    DTensors call it once before.
    """
    global _shards
    with _lock:
        if not _shards:
            _shards = True
            for op in _ops.values():
                sharding.register(op)


def publish(op: Op) -> None:
    """Adds the function of an op to the module of each of its names."""
    for name in op.definition.names:
        last = name.rpartition("::")[2]
        if name not in ("call", "register", "register_sharding"):
            module_of(name)[last] = op.function


def module_of(name: str) -> dict[str, Any]:
    """The variables of the module of an op: `minitensor.torch`, or that of its namespace."""
    path = "minitensor.torch"
    for part in name.split("::")[:-1]:
        outer, path = path, f"{path}.{part}"
        if path not in sys.modules:
            module = sys.modules[path] = ModuleType(path, f"The ops of the namespace '{part}' as ops of PyTorch.")
            vars(sys.modules[outer]).setdefault(part, module)
    return vars(sys.modules[path])


def find(name: str) -> Op:
    """The op with this name in minitensor.

    Raises RuntimeError if there is none.
    """
    if ("minitensor", name) not in _ops:
        update()
    if ("minitensor", name) not in _ops:
        raise RuntimeError(f"op '{name}' is not registered")
    return _ops["minitensor", name]


def call(name: str, arguments: dict[str, Any]) -> Any:
    """Calls an op, given its arguments by name. `mt.ops.<op>` does so for tensors of PyTorch."""
    return find(name).function(**arguments)


_on_change(update)
