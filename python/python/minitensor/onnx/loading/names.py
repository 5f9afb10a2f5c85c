"""The names of initializers as names of parameters and buffers of a module."""

from __future__ import annotations

from collections.abc import Iterable

from ... import nn

__all__ = ["paths"]


def paths(names: Iterable[str], reserved: Iterable[str] = ()) -> dict[str, str]:
    """Returns a path such as `block.weight` for each name.

    A path is the name itself where a module can have it. A part that is empty or an attribute of modules gets an
    underscore, and so does a path that is taken, also as a module.
    """
    attributes = {*dir(nn.Module()), *reserved}
    tensors: set[str] = set()
    modules: set[str] = set()
    found: dict[str, str] = {}
    for name in names:
        parts = [f"{part}_" if not part or part in attributes else part for part in name.split(".")]
        path = ".".join(parts)
        prefixes = [".".join(parts[:k]) for k in range(1, len(parts))]
        while tensors & set(prefixes):
            # A module cannot have the name of a tensor.
            parts = ["_".join(parts)]
            path, prefixes = parts[0], []
        while path in tensors or path in modules:
            path += "_"
        tensors.add(path)
        modules.update(prefixes)
        found[name] = path
    return found
