"""The functions of a namespace of ops, as attributes."""

from __future__ import annotations

from typing import Any

from .._minitensor import _op_names
from . import registration


class Namespace:
    """The ops of a namespace, such as `minitensor.torch.row`."""

    def __init__(self, name: str, prefix: str) -> None:
        self.__name__ = name
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"'{self.__name__}' has no attribute '{name}'")
        full = self._prefix + name
        inner = f"{full}::"
        if (op := registration.find(full)) is not None:
            return op.function
        if any(op.startswith(inner) for op in _op_names()):
            return Namespace(f"{self.__name__}.{name}", inner)
        raise AttributeError(f"'{self.__name__}' has no op '{name}'; mt.ops has the registered ops")

    def __dir__(self) -> list[str]:
        own = (name.removeprefix(self._prefix) for name in _op_names() if name.startswith(self._prefix))
        return sorted({name.partition("::")[0] for name in own})

    def __repr__(self) -> str:
        return f"<ops of {self.__name__}>"
