"""An op as a function of arrays that other processes can unpickle."""

from __future__ import annotations

import re
from typing import Any

from .._minitensor import _array_function, is_custom_op_registered_py
from .names import Owner, owner

__all__ = ["BlockFunction"]


class BlockFunction:
    """A call of an op with all arguments other than arrays.

    It is pickled by the name of the op, and by the name and version of the plugin that defines the op. A process that
    unpickles it
    needs a compatible version of the plugin; installed plugins are found automatically.
    """

    __slots__ = ("_arguments", "_attrs", "_function", "_name", "_owner")

    def __init__(
        self, name: str, arguments: tuple[Any, ...] | None, attrs: dict[str, Any], expected: Owner | None = None
    ) -> None:
        """`arguments` are the inputs in order, with `...` for those that are arrays. `expected` is the owner of an
        unpickled op."""
        self._name, self._arguments, self._attrs = name, arguments, attrs
        self._owner = expected or owner(name)
        # An unpickled op is looked up by the first call. If unpickling failed, a worker of Dask would never report it.
        self._function = None if expected else _array_function(name)

    @property
    def __name__(self) -> str:
        return self._name

    def __call__(self, *arrays: Any) -> Any:
        if self._function is None:
            _check(self._name, self._owner)
            self._function = _array_function(self._name)
        given = iter(arrays)
        arguments = arrays if self._arguments is None else [next(given) if a is ... else a for a in self._arguments]
        results = self._function(*arguments, **self._attrs)
        return tuple(results) if isinstance(results, tuple) else results

    def is_available(self) -> bool:
        """Whether this process has the op, of a compatible version."""
        try:
            _check(self._name, self._owner)
        except RuntimeError:
            return False
        return True

    def __repr__(self) -> str:
        attrs = "".join(f", {name}={value!r}" for name, value in self._attrs.items())
        return f"<op '{self._name}'{attrs}>"

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return ("minitensor", self._name, tuple(self._owner), self._arguments, tuple(sorted(self._attrs.items())))

    def __reduce__(self) -> tuple[Any, ...]:
        return _load, (self._name, tuple(self._owner), self._arguments, self._attrs)


def _load(name: str, expected: tuple[str | None, str], arguments: tuple[Any, ...] | None, attrs: dict[str, Any]) -> Any:
    """Recreates a function from its pickle."""
    return BlockFunction(name, arguments, attrs, Owner(*expected))


def _check(name: str, expected: Owner) -> None:
    """Raises RuntimeError if this process does not have the op that was pickled."""
    if not is_custom_op_registered_py(name):
        if expected.plugin is None:
            fix = (
                "it belongs to no plugin; import the module that registers it in this process, or put it into a plugin"
            )
        else:
            fix = f"install the plugin '{expected.plugin}' {expected.version} for this process"
        raise RuntimeError(f"op '{name}' is not registered in the process that computes with it; {fix}")
    found = owner(name)
    if found.plugin != expected.plugin or not _is_compatible(found.version, expected.version):
        raise RuntimeError(
            f"op '{name}' was pickled with {_described(expected)}, but this process has {_described(found)}; "
            "install the same version in both"
        )


def _is_compatible(found: str, expected: str) -> bool:
    from ..plugins import VersionInfo

    # A suffix such as `-rc.1` is not compared.
    here, there = (VersionInfo.parse(re.split("[-+]", version)[0]) for version in (found, expected))
    return here.is_compatible_with(there)


def _described(of: Owner) -> str:
    return f"minitensor {of.version}" if of.plugin is None else f"the plugin '{of.plugin}' {of.version}"
