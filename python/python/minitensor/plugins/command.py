"""`python -m minitensor plugins …`: commands that list, inspect and check plugins."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from .. import _stubs, testing
from ..testing import counted
from . import library, loaded, manifest, sources
from .file import find
from .info import PluginInfo

__all__ = ["COMMANDS", "run"]

#: The arguments of each command, and its description.
COMMANDS = {
    "plugins [list]": "list the loaded and installed plugins",
    "plugins inspect FILE": "show the metadata of a plugin without running it",
    "plugins check FILE": "load a plugin and run opcheck on its ops",
    "plugins stubs FILE": "load a plugin and print type stubs of its ops",
    "plugins include": "print the folder of minitensor_plugin.h",
    "plugins sdk": "print the folder of the Rust crates for plugins",
    "plugins cargo-config [SDK]": "print a .cargo/config.toml that makes cargo use these crates",
}


def run(arguments: list[str]) -> int | None:
    """Runs a command and returns its exit status, or `None` if the arguments are invalid."""
    match arguments:
        case [] | ["list"]:
            print(_list())
        case ["inspect", file]:
            print(_inspect(find(file)))
        case ["check", file]:
            return _check(file)
        case ["stubs", file]:
            info = loaded.load(file)
            print(_stubs.plugin_stub(info.name, sorted(info.ops)), end="")
        case ["include"]:
            print(sources.include())
        case ["sdk"]:
            print(sources.sdk())
        case ["cargo-config", *folder] if len(folder) < 2:
            print(sources.cargo_config(*map(Path, folder)), end="")
        case _:
            return None
    return 0


def _list() -> str:
    """Returns a table of the loaded plugins."""
    rows = [("name", "version", "kind", "ops", "description", "path")]
    for p in loaded.list_plugins():
        description = " ".join(p.description.split())
        rows.append((p.name, str(p.version), p.kind, str(len(p.ops)), description, p.path or ""))
    if len(rows) == 1:
        return "no plugins are loaded"
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _inspect(path: Path) -> str:
    """Returns the metadata of a plugin without running any of its code."""
    if path.suffix == ".py":
        file = path.with_name("plugin.json")
        if not file.exists():
            raise ValueError(
                f"'{path}' is a Python file without a plugin.json in its folder, so it must run to be inspected; "
                "use `python -m minitensor plugins check`"
            )
        fields = manifest.read(file)
        rows = {field.removesuffix("_version").replace("_", " "): str(value) for field, value in fields.items()}
        rows |= {"kind": "python", "path": str(path), "source": f"{file.name}; the Python file was not run"}
    else:
        info, abi, built_with = library.inspect(path)
        rows = {"name": info.name, "version": str(info.version), "description": info.description, "author": info.author}
        rows |= {"minitensor": _supported(info), "kind": info.kind, "ABI": abi, "built with": built_with}
        rows |= {"path": str(path)}
    width = max(map(len, rows))
    return "\n".join(f"{name:<{width}}  {' '.join(value.split())}" for name, value in rows.items() if value)


def _supported(info: PluginInfo) -> str:
    low, high = info.min_minitensor_version, info.max_minitensor_version
    if high is not None:
        return f"{low} to {high}" if low else f"up to {high}"
    return f"{low} and compatible versions" if low else ""


#: While it is set, a plugin in Rust does not print panics, which are errors.
_QUIET_PANICS = "MINITENSOR_QUIET_PANICS"


@contextlib.contextmanager
def _quiet_panics() -> Iterator[None]:
    """Keeps plugins in Rust from printing panics, which findings contain, unless a backtrace is wanted."""
    if os.environ.get("RUST_BACKTRACE", "0") != "0" or _QUIET_PANICS in os.environ:
        yield
        return
    os.environ[_QUIET_PANICS] = "1"
    try:
        yield
    finally:
        os.environ.pop(_QUIET_PANICS, None)


def _check(file: str) -> int:
    """Loads a plugin, runs `opcheck` on its ops, and returns the exit status."""
    info = loaded.load(file)
    print(info)
    with _quiet_panics():
        return _check_ops(info)


def _check_ops(info: PluginInfo) -> int:
    failed, width = 0, max(map(len, info.ops), default=0)
    has_panicked = False
    for name in sorted(info.ops):
        report = testing.opcheck(name, raises=False)
        verdict = "FAILED" if report.findings else "ok" if report.samples else "not checked"
        failed += bool(report.findings)
        print(f"  {name:<{width}}  {verdict:<11}  {counted(report.samples, 'sample')}".rstrip())
        for finding in report.findings:
            print(f"    {finding.check}: {finding.message}")
        has_panicked |= any(
            "panic" in message for message in [report.refusal or "", *(f.message for f in report.findings)]
        )
        if not report.samples and not report.findings:
            print("    the op rejects all generated arguments; pass arguments that it accepts:")
            print(f"    minitensor.testing.opcheck('{name}', …)")
            print(f"    its error: {report.refusal}")
    if has_panicked and _QUIET_PANICS in os.environ:
        print("set RUST_BACKTRACE=1 to print where an op panics")
    print(f"{counted(len(info.ops), 'op')}, {failed} with findings")
    return 1 if failed else 0
