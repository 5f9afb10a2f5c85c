"""Versions of plugins and of minitensor."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from .._minitensor import __version__

__all__ = ["VersionInfo"]


@dataclass(frozen=True, order=True, slots=True)
class VersionInfo:
    """A version of three numbers, with the rules of semantic versioning.

    >>> from minitensor.plugins import VersionInfo
    >>> str(VersionInfo(1, 2, 3))
    '1.2.3'
    >>> VersionInfo.parse("1.10.0") > VersionInfo(1, 9, 0)
    True
    """

    major: int
    minor: int
    patch: int

    def __post_init__(self) -> None:
        for name in ("major", "minor", "patch"):
            number = getattr(self, name)
            if not isinstance(number, int) or isinstance(number, bool) or number < 0:
                raise ValueError(f"VersionInfo: {name} must be an integer of at least 0, got {number!r}")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses a version such as `1.2.3`."""
        if not isinstance(text, str):
            raise TypeError(f"a version must be a str such as '1.2.3', got {type(text).__name__}")
        if not re.fullmatch(r"\d{1,9}\.\d{1,9}\.\d{1,9}", text, re.ASCII):
            raise ValueError(f"'{text[:80]}' is not a version; write three numbers, such as '1.2.3'")
        return cls(*map(int, text.split(".")))

    @classmethod
    def current(cls) -> Self:
        """Returns the version of minitensor, without a suffix such as `-rc.1`."""
        return cls.parse(re.split("[-+]", __version__)[0])

    def is_compatible_with(self, min_required: VersionInfo) -> bool:
        """Returns whether this version provides everything that another one does.

        It must not be older, and must have the same major version. Before 1.0.0 it must also have the same minor
        version, because minor versions may then change everything.

        >>> from minitensor.plugins import VersionInfo
        >>> VersionInfo(1, 4, 0).is_compatible_with(VersionInfo(1, 2, 3))
        True
        >>> VersionInfo(0, 4, 0).is_compatible_with(VersionInfo(0, 2, 3))
        False
        """
        if not isinstance(min_required, VersionInfo):
            raise TypeError(f"is_compatible_with takes a VersionInfo, got {type(min_required).__name__}")
        same_line = self.major == min_required.major and (self.major > 0 or self.minor == min_required.minor)
        return same_line and self >= min_required

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"
