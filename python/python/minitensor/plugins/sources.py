"""What plugins are built of: the C header, and the crates of the Rust SDK. They come with the package."""

from __future__ import annotations

import json
from pathlib import Path

__all__ = ["cargo_config", "include", "sdk"]

PACKAGE = Path(__file__).parents[1]
#: A checkout of minitensor, in which the package is `python/python/minitensor`.
CHECKOUT = PACKAGE.parents[2]
#: The crates that a plugin names: what it is built with, and what its own tests call.
CRATES = {"minitensor-plugin-sdk": "plugin-sdk", "minitensor-ops": "ops"}


def include() -> Path:
    """The folder of `minitensor_plugin.h`."""
    return _folder("the C header", [PACKAGE / "include", CHECKOUT / "plugin-sdk" / "include"], "minitensor_plugin.h")


def sdk() -> Path:
    """The folder of the crates that a plugin in Rust is built of."""
    return _folder("the Rust SDK", [PACKAGE / "sdk", CHECKOUT], "plugin-sdk/Cargo.toml")


def _folder(what: str, folders: list[Path], file: str) -> Path:
    for folder in folders:
        if (folder / file).exists():
            return folder
    raise FileNotFoundError(f"this minitensor came without {what}; install it from a wheel")


def cargo_config(folder: Path | None = None) -> str:
    """A `.cargo/config.toml` by which cargo takes the SDK from a folder, rather than from crates.io."""
    folder = sdk() if folder is None else folder.absolute()
    if missing := [name for name in CRATES.values() if not (folder / name / "Cargo.toml").exists()]:
        raise FileNotFoundError(
            f"'{folder}' is no SDK: it has no folder {missing[0]} with a Cargo.toml; "
            "give the folder that `python -m minitensor plugins sdk` prints, or a checkout of minitensor"
        )
    lines = [
        f"{crate} = {{ path = {json.dumps(str(folder / name), ensure_ascii=False)} }}" for crate, name in CRATES.items()
    ]
    return "\n".join(["# Written by minitensor: where its SDK lies on this computer.", "[patch.crates-io]", *lines, ""])
