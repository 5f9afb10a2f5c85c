"""Imports namespaces of ops of installed plugins, as `import minitensor.ops.my_ops`. Unpickling imports them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from importlib.abc import Loader

#: The modules whose attributes are ops and namespaces.
_ROOTS = ("minitensor.ops", "minitensor.torch")


class _Namespaces:
    """Finds the modules of namespaces, which exist once their plugins are loaded."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        root, _, namespace = name.rpartition(".")
        if root not in _ROOTS or namespace.startswith("_") or root not in sys.modules:
            return None
        # Asked for the namespace, `mt.ops` loads the plugins.
        getattr(sys.modules["minitensor.ops"], namespace, None)
        return ModuleSpec(name, cast("Loader", self)) if name in sys.modules else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return sys.modules[spec.name]

    def exec_module(self, module: ModuleType) -> None:
        pass


def install() -> None:
    """Makes the namespaces importable."""
    if not any(isinstance(finder, _Namespaces) for finder in sys.meta_path):
        sys.meta_path.append(_Namespaces())
