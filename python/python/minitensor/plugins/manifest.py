"""`plugin.json`: what is known of a plugin, in a file beside it."""

from __future__ import annotations

import dataclasses
import difflib
import json
from pathlib import Path
from typing import Any

from .info import PluginInfo, fault_of
from .version import VersionInfo

__all__ = ["complete", "read"]

#: The longest file, in bytes: what it may say is short.
MOST = 1 << 20
TEXTS = ("name", "description", "author")
VERSIONS = ("version", "min_minitensor_version", "max_minitensor_version")


def complete(info: PluginInfo | None, plugin: Path) -> PluginInfo:
    """What a plugin says of itself, and of what it says nothing, what the `plugin.json` beside its file says.

    A `plugin.json` with another name is that of another plugin.
    """
    file = plugin.with_name("plugin.json")
    said = read(file) if file.exists() else {}
    if info is None:
        if missing := [field for field in ("name", "version") if field not in said]:
            raise ValueError(
                f"the plugin in '{plugin}' has no info, and '{file}' doesn't say its {' and '.join(missing)}; "
                "give the plugin a PluginInfo"
            )
        return PluginInfo(**said)
    if said.pop("name", info.name) != info.name:
        return info
    return dataclasses.replace(info, **{f: v for f, v in said.items() if getattr(info, f) in ("", None)})


def read(file: Path) -> dict[str, Any]:
    """What a `plugin.json` says."""
    try:
        with file.open("rb") as opened:
            content = opened.read(MOST + 1)
        if len(content) > MOST:
            raise ValueError(f"'{file}' has more than {MOST} bytes")
        said = json.loads(content.decode())
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"'{file}' can't be read as JSON: {error}") from None
    except RecursionError:
        raise ValueError(f"'{file}' can't be read as JSON: it is nested too deeply") from None
    if not isinstance(said, dict):
        raise ValueError(f"'{file}' must hold an object, such as {{\"name\": …}}, got {type(said).__name__}")
    for key in said.keys() - {*TEXTS, *VERSIONS}:
        # Other tools may keep something here, but a misspelled key is reported.
        if len(key) < 64 and (near := difflib.get_close_matches(key, [*TEXTS, *VERSIONS], 1, 0.8)):
            raise ValueError(f"'{file}': '{key}' means nothing; did you mean '{near[0]}'?")
    found: dict[str, Any] = {}
    for key in (*TEXTS, *VERSIONS):
        value = said.get(key)
        if value is None:
            continue
        if not isinstance(value, str):
            raise ValueError(f"'{file}': '{key}' must be a text, got {type(value).__name__}")
        if key in TEXTS and (fault := fault_of(key, value)):
            raise ValueError(f"'{file}': {fault}")
        try:
            found[key] = VersionInfo.parse(value) if key in VERSIONS else value
        except ValueError as error:
            raise ValueError(f"'{file}': '{key}': {error}") from None
    return found
