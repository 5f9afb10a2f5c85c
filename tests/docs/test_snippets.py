"""Every snippet in the README and in `docs/` does what it says."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def snippets(page: Path, language: str) -> list[tuple[int, str]]:
    """The fenced blocks of a language, each with the number of its first line."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, block.start(1)) + 1, block.group(1)) for block in found]


def printed(code: str) -> list[str]:
    """What the comments behind `print(…)` promise."""
    return [line.partition("  # ")[2] for line in code.splitlines() if re.match(r"\s*print\(.*\)  # ", line)]


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_runs_and_prints_what_the_comments_say(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    for line, code in snippets(page, "python"):
        # Blank lines in front make the line numbers of an error those of the page.
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
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("#"):
            assert target[1:] in anchors, target
        elif "://" not in target:
            assert (page.parent / target.partition("#")[0]).exists(), target
