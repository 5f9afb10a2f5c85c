"""`python -m minitensor new NAME` creates a plugin project. The folders here are a project named `my_ops`."""

from __future__ import annotations

import keyword
import re
import sys
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import minitensor as mt

from .._minitensor import _op_names
from ..plugins import sources

__all__ = ["COMMANDS", "LANGUAGES", "create", "run"]

LANGUAGES = ("rust", "c")
COMMANDS = {
    "new NAME [--lang rust | c] [--sdk FOLDER] [--torch]": (
        "create a plugin project, also for PyTorch; the default SDK is that of this minitensor"
    )
}
#: The name of the project in the templates.
PLACEHOLDER = "my_ops"
#: Names that cargo or rustc reject.
RESERVED = (
    "abstract alloc become box build const core crate deps do doc dyn enum examples extern final fn impl incremental "
    "let loop macro match mod move mut override priv proc_macro pub ref self static std struct super test trait type "
    "typeof unsafe unsized use virtual where"
)


def run(arguments: list[str]) -> int | None:
    """Runs the command. Returns `None` if the arguments are invalid."""
    given: dict[str, str] = {}
    words = iter(arguments)
    for word in words:
        if word == "--torch" and word not in given:
            given[word] = word
            continue
        option, _, value = word.partition("=")
        key = option if option in ("--lang", "--sdk") else "name"
        value = word if key == "name" else value or next(words, "")
        if key in given or (key == "name" and word.startswith("-")) or not (value or key == "name"):
            return None
        given[key] = value
    if "name" not in given:
        return None
    sdk = Path(given["--sdk"]) if "--sdk" in given else None
    folder = create(Path(given["name"]), given.get("--lang", "rust"), sdk, torch="--torch" in given)
    print(f"created {folder}, a plugin in {given.get('--lang', 'rust').capitalize()}; see its README.md")
    return 0


def create(folder: Path, language: str = "rust", sdk: Path | None = None, torch: bool = False) -> Path:
    """Creates a project in a new folder. The name of the folder is the name of the plugin.

    With `torch`, importing the package also registers its ops with PyTorch.
    """
    name = folder.name
    if torch and language != "rust":
        raise ValueError(f"the template for PyTorch is in Rust, got the language '{language}'; omit --lang")
    if language not in LANGUAGES:
        raise ValueError(f"unknown language '{language}'; the templates are {' and '.join(LANGUAGES)}")
    if fault := _fault(name):
        raise ValueError(f"'{name}' is not a valid name of a plugin: {fault}")
    if folder.exists():
        raise FileExistsError(f"'{folder}' already exists; choose another name, or remove it")
    if not folder.absolute().parent.is_dir():
        raise FileNotFoundError(f"the folder '{folder.absolute().parent}' does not exist; create it before '{name}'")
    words = {PLACEHOLDER: name, "@VERSION@": mt.__version__}
    written = dict(_files(files(__name__) / "shared", Path()) + _files(files(__name__) / language, Path()))
    if torch:
        for added, more in _files(files(__name__) / "torch", Path()):
            # The text for a file that exists already is added to it.
            written[added] = written.get(added, "") + more
    texts = {_replaced(str(path), words): _replaced(text, words) for path, text in written.items()}
    if language == "rust":
        texts[".cargo/config.toml"] = sources.cargo_config(sdk)
        if (lock := (sdk or sources.sdk()) / "Cargo.lock").exists():
            # The versions that minitensor is tested with. Cargo removes unused entries.
            texts["Cargo.lock"] = lock.read_text(encoding="utf-8")
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8", newline="\n")
    return folder


def _fault(name: str) -> str | None:
    """Returns why a name is not valid as a Python package, a crate and an op namespace, or `None`."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name, re.ASCII):
        return "a name must consist of lower-case letters, digits and '_', and begin with a letter"
    if len(name) > 63:
        return "a name has at most 63 characters"
    if keyword.iskeyword(name) or keyword.issoftkeyword(name):
        return "it is a keyword of Python"
    if name in RESERVED.split():
        return "it is reserved by Rust or cargo"
    if name in sys.stdlib_module_names or name in ("minitensor", "numpy"):
        return "it is the name of a Python module"
    if any(op.split("::")[0] == name for op in _op_names()):
        return "minitensor has an op or a namespace of this name"
    return None


def _files(folder: Traversable, at: Path) -> list[tuple[Path, str]]:
    """Returns the paths and contents of all files in a folder. The prefix `dot_` becomes a dot."""
    found = []
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        path = at / re.sub("^dot_", ".", entry.name)
        if entry.is_dir():
            if entry.name != "__pycache__":
                found += _files(entry, path)
        else:
            found.append((path, entry.read_text(encoding="utf-8")))
    return found


def _replaced(text: str, words: dict[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(word, value)
    return text
