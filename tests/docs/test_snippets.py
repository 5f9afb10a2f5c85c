"""Runs every snippet of the README and of `docs/`, and checks the links."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import minitensor as mt

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
#: The pages that need other frameworks. tests/bridges runs their snippets.
BRIDGES = [page for page in PAGES if page.name in ("bridges.md", "many-machines.md", "onnx.md", "torch-ir.md")]


def snippets(page: Path, language: str) -> list[tuple[int, str]]:
    """Returns the fenced blocks of a language, each with the number of its first line."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, block.start(1)) + 1, block.group(1)) for block in found]


def printed(code: str) -> list[str]:
    """Returns the expected output from the comments after `print(…)`."""
    return [line.partition("  # ")[2] for line in code.splitlines() if re.match(r"\s*print\(.*\)  # ", line)]


#: The compiler of each language.
COMPILERS = {"c": [os.environ.get("CC", "cc"), "-std=c11"], "cpp": [os.environ.get("CXX", "c++"), "-std=c++17"]}
STRICT = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-shared", "-fPIC"]
INCLUDE = ROOT / "plugin-sdk" / "include"


def build(page: Path, folder: Path, language: str) -> list[Path]:
    """Builds the plugins of a page. Each snippet is a file; its first line contains the file name."""
    libraries = []
    for line, code in snippets(page, language):
        name = re.match(r"(?:/\*|//) (\w+\.\w+)", code)
        assert name, f"{page.name}, line {line}: the first line says no name of a file"
        source = folder / name[1]
        source.write_text(code, encoding="utf-8")
        libraries.append(source.with_suffix(".so"))
        command = [*COMPILERS[language], *STRICT, f"-I{INCLUDE}", "-o", str(libraries[-1]), str(source)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return libraries


@pytest.mark.usefixtures("no_plugins_stay")
@pytest.mark.parametrize("page", [page for page in PAGES if snippets(page, "cpp")], ids=lambda page: page.name)
@pytest.mark.skipif(shutil.which(COMPILERS["cpp"][0]) is None, reason="there is no C++ compiler")
def test_plugins_in_cxx_pass_opcheck(page: Path, tmp_path: Path) -> None:
    for library in build(page, tmp_path, "cpp"):
        for op in mt.plugins.load_plugin(library).ops:
            assert mt.testing.opcheck(op).findings == []


@pytest.mark.usefixtures("registered", "no_plugins_stay")
@pytest.mark.parametrize("page", [page for page in PAGES if page not in BRIDGES], ids=lambda page: page.name)
def test_python_runs_and_prints_what_the_comments_say(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if build(page, tmp_path, "c"):
        monkeypatch.chdir(tmp_path)
    run(page, capsys)


def run(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs the Python snippets of a page, and compares their output with the comments."""
    names: dict[str, object] = {"__name__": "__main__"}
    for line, code in snippets(page, "python"):
        # Leading blank lines make the line numbers of errors equal to those of the page.
        exec(compile("\n" * (line - 1) + code, page, "exec"), names)
        shown = capsys.readouterr().out.splitlines()
        for promise, reality in zip(printed(code), shown, strict=True):
            beginning, cut, _ = promise.partition("…")
            assert reality.startswith(beginning) if cut else reality == promise


def test_the_readme_shows_an_op_as_it_is_defined() -> None:
    definitions = (ROOT / "ops" / "src" / "activation.rs").read_text(encoding="utf-8")
    [(_, shown)] = snippets(ROOT / "README.md", "rust")
    for paragraph in shown.strip().split("\n\n"):
        assert paragraph in definitions


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_are_valid(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("#"):
            assert target[1:] in anchors, target
        elif "://" not in target:
            assert (page.parent / target.partition("#")[0]).exists(), target
