"""Registers ops with PyTorch's dispatcher, and keeps them up to date with the registry of minitensor."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from .._minitensor import _on_change, _op_names
from . import sharding
from .decomposition import fingerprint
from .op import Op

_lock = threading.RLock()
#: The registered ops, by the namespace in PyTorch and the name in minitensor.
_ops: dict[tuple[str, str], Op] = {}
#: The namespaces in PyTorch, with the prefixes of the ops that they have.
_namespaces: dict[str, str] = {}
#: A number that identifies the decompositions that inductor has.
_fingerprint = 0
#: The namespaces whose ops inductor decomposes.
_decomposed: set[str] = set()
#: Whether the sharding rules are registered.
_shards = False


def register(namespace: str = "minitensor", prefix: str = "", decompose: bool = False) -> None:
    """Registers the ops whose names start with `prefix` as `torch.ops.<namespace>.<op>`.

    Importing `minitensor.torch` calls it for all ops. A package of ops calls it to get a namespace of its own:
    `register("my_ops", "my_ops::")` registers the op `my_ops::clip` as `torch.ops.my_ops.clip`. Ops that are registered
    with minitensor later are added at once, and ops that are defined again are replaced. Repeated calls have no further
    effect.

    With `decompose`, `torch.compile` computes element ops and row ops of the namespace, and their gradients, by
    PyTorch's own ops instead of the kernels of minitensor, so it fuses them with the ops around them. A later call with
    `decompose=False` has no effect on this. `decompositions` returns the functions.

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
        if decompose and namespace not in _decomposed:
            _decomposed.add(namespace)
            for (its, _), op in _ops.items():
                if its == namespace:
                    hand_over(op)
        update()


def decompositions(namespace: str = "minitensor") -> dict[Any, Callable[..., Any]]:
    """Returns a function of PyTorch's own ops for each op of a namespace that has one, and for its gradient.

    The functions are made from the programs of element ops and row ops. They compute real floats; for other calls they
    return NotImplemented. `ExportedProgram.run_decompositions` takes such a table.

    >>> import torch
    >>> import minitensor.torch
    >>> table = minitensor.torch.decompositions()
    >>> table[torch.ops.minitensor.swish.default](torch.tensor([1.0]))
    tensor([0.7311])
    """
    with _lock:
        return {key: f for (its, _), op in _ops.items() if its == namespace for key, f in op.decompositions.items()}


def hand_over(op: Op) -> None:
    """Registers the decompositions of an op with inductor."""
    global _fingerprint
    if not op.decompositions:
        return
    from torch._inductor import decomposition as inductor
    from torch._inductor.lowering import make_fallback

    inductor.decompositions.update(op.decompositions)
    for target in op.decompositions:
        # A call that has no decomposition calls the kernel, which takes tensors of any layout.
        make_fallback(target, warn=False, override_decomp=True)
    inductor.fast_random_decomps.cache_clear()
    # The key of a cached program has the names of ops only.
    config = torch.compiler.config
    tag = config.cache_key_tag.removesuffix(f" minitensor {_fingerprint:x}")
    _fingerprint = (_fingerprint + int(fingerprint(op.definition)[:16], 16)) % 2**64
    config.cache_key_tag = f"{tag} minitensor {_fingerprint:x}"


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
                if namespace in _decomposed:
                    hand_over(op)
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
        if name not in ("call", "decompositions", "register", "register_sharding"):
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
    op = find(name)
    # By position, because a call without keywords needs no binding.
    tensors = []
    for given in op.definition.inputs:
        if given.name not in arguments:
            break
        tensors.append(arguments.pop(given.name))
    return op.function(*tensors, **arguments)


_on_change(update)
