"""`python -m minitensor plugins …`: what is loaded, what a file says of itself, whether its ops are right."""

from __future__ import annotations

from pathlib import Path

from .. import _stubs, testing
from ..testing import counted
from . import library, loaded, manifest, sources
from .file import find
from .info import PluginInfo

__all__ = ["COMMANDS", "run"]

#: What each command is told, and what it does.
COMMANDS = {
    "plugins [list]": "list what is loaded, installed plugins too",
    "plugins inspect FILE": "tell what a plugin says of itself; nothing of it runs",
    "plugins check FILE": "load a plugin, and put its ops to opcheck",
    "plugins stubs FILE": "load a plugin, and print type stubs of its ops",
    "plugins include": "print the folder of minitensor_plugin.h",
    "plugins sdk": "print the folder of the crates that plugins in Rust are built of",
    "plugins cargo-config [SDK]": "print a .cargo/config.toml by which cargo takes them from there",
}


def run(arguments: list[str]) -> int | None:
    """Runs a command and gives its exit status; `None` if there is no such command."""
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
    """A table of the plugins that are loaded."""
    rows = [("name", "version", "kind", "ops", "description", "path")]
    for p in loaded.list_plugins():
        description = " ".join(p.description.split())
        rows.append((p.name, str(p.version), p.kind, str(len(p.ops)), description, p.path or ""))
    if len(rows) == 1:
        return "no plugins are loaded"
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _inspect(path: Path) -> str:
    """What a plugin says of itself; nothing of it runs."""
    if path.suffix == ".py":
        file = path.with_name("plugin.json")
        if not file.exists():
            raise ValueError(
                f"'{path}' is Python, and says what it is only when it runs: there is no plugin.json beside it; "
                "`python -m minitensor plugins check` runs it"
            )
        said = manifest.read(file)
        rows = {field.removesuffix("_version").replace("_", " "): str(value) for field, value in said.items()}
        rows |= {"kind": "python", "path": str(path), "said by": f"{file.name}; what the file says shows when it runs"}
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
    return f"{low}, and what is compatible with it" if low else ""


def _check(file: str) -> int:
    """Loads a plugin, and puts its ops to `opcheck`."""
    info = loaded.load(file)
    print(info)
    failed, width = 0, max(map(len, info.ops), default=0)
    for name in sorted(info.ops):
        report = testing.opcheck(name, raises=False)
        verdict = "FAILED" if report.findings else "ok" if report.samples else "not checked"
        failed += bool(report.findings)
        print(f"  {name:<{width}}  {verdict:<11}  {counted(report.samples, 'sample')}".rstrip())
        for finding in report.findings:
            print(f"    {finding.check}: {finding.message}")
        if not report.samples and not report.findings:
            print(f"    it takes none of the arguments made for it; give some: minitensor.testing.opcheck('{name}', …)")
            print(f"    it says: {report.refusal}")
    print(f"{counted(len(info.ops), 'op')}, {failed} with findings")
    return 1 if failed else 0
