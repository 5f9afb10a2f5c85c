"""Tests `python -m minitensor new`: runs the commands in the README of the new project."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from minitensor.plugins import sources

import minitensor as mt
from minitensor import _new

#: Whether to run the slow blocks of the README too: `cargo test` compiles all of minitensor. CI does.
SLOW = bool(os.environ.get("CI")) or os.environ.get("MINITENSOR_TEST_NEW") == "slow"
COMPILERS = {"rust": "cargo", "c": "cc"}
REPOSITORY = Path(__file__).parents[2]

NAMES = [
    ("", "must consist of lower-case letters"),
    ("my-ops", "must consist of lower-case letters"),
    ("MyOps", "must consist of lower-case letters"),
    ("3ops", "must consist of lower-case letters"),
    ("öps", "must consist of lower-case letters"),
    ("n" * 64, "at most 63"),
    ("lambda", "a keyword of Python"),
    ("match", "a keyword of Python"),
    ("crate", "reserved by Rust"),
    ("json", "the name of a Python module"),
    ("minitensor", "the name of a Python module"),
    ("softmax", "minitensor has an op or a namespace of this name"),
]


@pytest.mark.parametrize(("name", "words"), NAMES, ids=[name or "empty" for name, _ in NAMES])
def test_an_invalid_name_raises(tmp_path, name, words):
    folder = Path(name) if not name else tmp_path / name
    with pytest.raises(ValueError, match=f"'{name}' is not a valid name of a plugin: .*{words}"):
        _new.create(folder)
    assert list(tmp_path.iterdir()) == []


def test_existing_folders_are_not_overwritten(tmp_path):
    (tmp_path / "here").mkdir()
    with pytest.raises(FileExistsError, match="already exists"):
        _new.create(tmp_path / "here")
    with pytest.raises(FileNotFoundError, match="nowhere' does not exist"):
        _new.create(tmp_path / "nowhere" / "here")
    with pytest.raises(ValueError, match="unknown language 'ada'"):
        _new.create(tmp_path / "fine", "ada")
    with pytest.raises(FileNotFoundError, match="is not an SDK: it has no folder plugin-sdk"):
        _new.create(tmp_path / "fine", sdk=tmp_path)
    assert not (tmp_path / "fine").exists()


@pytest.mark.parametrize("language", _new.LANGUAGES)
def test_the_name_replaces_every_placeholder(tmp_path, language):
    folder = _new.create(tmp_path / "fancy", language)
    for path in folder.rglob("*"):
        text = "" if path.is_dir() else path.read_text(encoding="utf-8")
        assert "my_ops" not in f"{path} {text}" and not re.search("@[A-Z]+@", text), path
    assert {"README.md", "pyproject.toml", ".gitignore"} <= {path.name for path in folder.iterdir()}


def test_cargo_takes_the_sdk_from_the_folder_that_is_given(tmp_path):
    folder = _new.create(tmp_path / "fancy", sdk=sources.sdk())
    assert (folder / ".cargo" / "config.toml").read_text() == sources.cargo_config()
    assert f'minitensor-plugin-sdk = "{mt.__version__}"' in (folder / "Cargo.toml").read_text()


def test_the_package_contains_the_header_and_the_sdk():
    assert (sources.include() / "minitensor_plugin.h").exists()
    for crate in ("kernels", "minitensor", "minitensor-macros", "ops", "plugin-sdk", "schema"):
        assert (sources.sdk() / crate / "src" / "lib.rs").exists()


@pytest.fixture
def environment(tmp_path):
    """Creates a Python environment that uses the packages of this one, and returns its variables. Downloads nothing."""
    venv.create(tmp_path / "venv", symlinks=os.name == "posix")
    programs = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    [packages] = (tmp_path / "venv").rglob("site-packages")
    lent = [Path(mt.__file__).parents[1], *[path for path in sys.path if path.endswith("site-packages")]]
    (packages / "lent.pth").write_text("\n".join(map(str, lent)))
    variables = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "CARGO_TARGET_DIR")}
    variables |= {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PIP_NO_DEPS": "1", "PYTHONUTF8": "1"}
    if int(importlib.metadata.version("setuptools").split(".")[0]) >= 77:
        variables |= {"PIP_NO_BUILD_ISOLATION": "0"}
    return variables


@pytest.mark.skipif(os.name != "posix", reason="the commands are those of a POSIX shell")
@pytest.mark.parametrize("language", _new.LANGUAGES)
def test_the_commands_of_the_readme_work(tmp_path, environment, language):
    if shutil.which(COMPILERS[language]) is None:
        pytest.skip(f"there is no {COMPILERS[language]}")
    folder = _new.create(tmp_path / "fancy_ops", language)
    if language == "rust" and (REPOSITORY / "target").is_dir():
        # Share the build of the dependencies between tests.
        (folder / "target").symlink_to(REPOSITORY / "target" / "new")
        (REPOSITORY / "target" / "new").mkdir(exist_ok=True)
    readme = (folder / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh( slow)?\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 3
    shown = ""
    for slow, commands in blocks:
        if slow and not SLOW:
            continue
        done = subprocess.run(
            ["sh", "-e"], input=commands, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
        shown += done.stdout
    assert re.search(r"^name +fancy_ops\n(.*\n)*kind +library\nABI +1\.\d+\nbuilt with +\w+ \d", shown, re.MULTILINE)
    assert "6 ops, 0 with findings" in shown
    assert "19 passed" in shown
    assert shown.count("times as fast") == 3
    assert "tensor([1., 2.])" in shown
    stubs = (folder / "python" / "fancy_ops" / "__init__.pyi").read_text()
    assert set(re.findall("^def .*", stubs, re.MULTILINE)) - {"def library() -> Path: ..."} <= set(shown.splitlines())
    [wheel] = (folder / "dist").iterdir()
    assert wheel.name.startswith("fancy_ops-0.1.0-py3-none-")
    assert wheel.stat().st_size < 600_000
