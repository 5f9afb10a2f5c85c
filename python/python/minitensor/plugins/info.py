"""The metadata of plugins."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass

from .version import VersionInfo

__all__ = ["PluginInfo", "fault_of"]

#: The maximum lengths in characters.
LIMITS = {"name": 255, "description": 4096, "author": 4096}


def fault_of(field: str, value: object) -> str | None:
    """Returns why a name, a description or an author is invalid, or `None`."""
    if isinstance(value, str) and len(value) > LIMITS[field]:
        return f"{field} has {len(value)} characters; {LIMITS[field]} is the limit"
    if field == "name" and not (isinstance(value, str) and re.fullmatch(r"[A-Za-z_][\w.-]*", value, re.ASCII)):
        return f"name must consist of letters, digits, '_', '-' and '.', and start with a letter or '_'; got {value!r}"
    if not isinstance(value, str):
        return f"{field} must be a str, got {type(value).__name__}"
    if not all(c.isprintable() or c.isspace() for c in value):
        return f"{field} contains a control character: {value[:80]!r}"
    return None


@dataclass(frozen=True, repr=False)
class PluginInfo:
    """The metadata of a plugin. Registering the plugin fills in `kind`, `path` and `ops`.

    >>> from minitensor.plugins import PluginInfo, VersionInfo
    >>> PluginInfo("noise", VersionInfo(1, 0, 0), author="A. Person")
    PluginInfo(name='noise', version=1.0.0, author='A. Person')
    """

    name: str
    version: VersionInfo
    description: str = ""
    author: str = ""
    min_minitensor_version: VersionInfo | None = None
    max_minitensor_version: VersionInfo | None = None
    #: `python`, or `library` for a shared library.
    kind: str = "python"
    #: The file from which it was loaded.
    path: str | None = None
    #: The names of its ops.
    ops: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if faults := self._faults():
            raise ValueError(f"plugin '{str(self.name)[:80]}': " + "; ".join(faults))

    def _faults(self) -> list[str]:
        faults = [fault for field in LIMITS if (fault := fault_of(field, getattr(self, field)))]
        versions = {f: getattr(self, f) for f in ("version", "min_minitensor_version", "max_minitensor_version")}
        for field, value in versions.items():
            if not isinstance(value, VersionInfo) and (value is not None or field == "version"):
                faults.append(
                    f"{field} must be a VersionInfo, such as VersionInfo(1, 0, 0), got {type(value).__name__}"
                )
        low, high = self.min_minitensor_version, self.max_minitensor_version
        if isinstance(low, VersionInfo) and isinstance(high, VersionInfo) and low > high:
            faults.append(f"min_minitensor_version {low} is later than max_minitensor_version {high}")
        return faults

    def check(self, current: VersionInfo) -> None:
        """Raises RuntimeError if the plugin does not support this version of minitensor.

        The version must not be older than the minimum or newer than the maximum. Without a maximum, it must be
        compatible with the minimum (`VersionInfo.is_compatible_with`).
        """
        low, high = self.min_minitensor_version, self.max_minitensor_version
        if low is not None and current < low:
            raise RuntimeError(
                f"plugin '{self.name}' {self.version} needs minitensor {low} or later, "
                f"but this is minitensor {current}; upgrade minitensor, or use an older version of the plugin"
            )
        if high is not None and current > high:
            raise RuntimeError(
                f"plugin '{self.name}' {self.version} supports minitensor up to {high}, "
                f"but this is minitensor {current}; use a newer version of the plugin, or minitensor {high}"
            )
        if low is not None and high is None and not current.is_compatible_with(low):
            raise RuntimeError(
                f"plugin '{self.name}' {self.version} supports minitensor {low} and compatible versions, "
                f"but this is minitensor {current}; use a newer version of the plugin, or set its "
                f"max_minitensor_version to {current} or later if it works"
            )

    def __str__(self) -> str:
        ops = f", ops: {', '.join(self.ops)}" if self.ops else ""
        return f"{self.name} v{self.version} ({self.kind}{ops})"

    def __repr__(self) -> str:
        given = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if getattr(self, f.name) != f.default}
        words = (f"{name}={value if isinstance(value, VersionInfo) else repr(value)}" for name, value in given.items())
        return f"PluginInfo({', '.join(words)})"
