"""`plugin.json`: the metadata of a plugin, in a file in the same folder."""

from __future__ import annotations

import dataclasses
import difflib
import json
from pathlib import Path
from typing import Any

from .info import PluginInfo, fault_of
from .version import VersionInfo

__all__ = ["complete", "read"]

#: The maximum size of the file in bytes.
MAX_BYTES = 1 << 20
TEXTS = ("name", "description", "author")
VERSIONS = ("version", "min_minitensor_version", "max_minitensor_version")


def complete(info: PluginInfo | None, plugin: Path) -> PluginInfo:
    """Completes the metadata of a plugin with the `plugin.json` in its folder.

    A `plugin.json` that states another name belongs to another plugin and is ignored.
    """
    file = plugin.with_name("plugin.json")
    fields = read(file) if file.exists() else {}
    if info is None:
        if missing := [field for field in ("name", "version") if field not in fields]:
            raise ValueError(
                f"the plugin in '{plugin}' has no info, and '{file}' does not state its {' and '.join(missing)}; "
                "pass a PluginInfo to the plugin"
            )
        return PluginInfo(**fields)
    if fields.pop("name", info.name) != info.name:
        return info
    return dataclasses.replace(info, **{f: v for f, v in fields.items() if getattr(info, f) in ("", None)})


def read(file: Path) -> dict[str, Any]:
    """Returns the content of a `plugin.json`."""
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ValueError(f"'{file}' has more than {MAX_BYTES} bytes")
        fields = json.loads(content.decode())
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"'{file}' is not valid JSON: {error}") from None
    except RecursionError:
        raise ValueError(f"'{file}' is not valid JSON: it is nested too deeply") from None
    if not isinstance(fields, dict):
        raise ValueError(f"'{file}' must contain an object, such as {{\"name\": …}}, got {type(fields).__name__}")
    for key in fields.keys() - {*TEXTS, *VERSIONS}:
        # Unknown keys are allowed, because other tools may use the file. A misspelled key is an error.
        if len(key) < 64 and (near := difflib.get_close_matches(key, [*TEXTS, *VERSIONS], 1, 0.8)):
            raise ValueError(f"'{file}': unknown key '{key}'; did you mean '{near[0]}'?")
    found: dict[str, Any] = {}
    for key in (*TEXTS, *VERSIONS):
        value = fields.get(key)
        if value is None:
            continue
        if not isinstance(value, str):
            raise ValueError(f"'{file}': '{key}' must be a string, got {type(value).__name__}")
        if key in TEXTS and (fault := fault_of(key, value)):
            raise ValueError(f"'{file}': {fault}")
        try:
            found[key] = VersionInfo.parse(value) if key in VERSIONS else value
        except ValueError as error:
            raise ValueError(f"'{file}': '{key}': {error}") from None
    return found
