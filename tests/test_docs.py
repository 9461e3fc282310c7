"""Documentation: examples run, every mechanism, estimator and public name has its place, pages stay short."""

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from experiments.theory.verdicts import VERDICTS

import crowdveil
from crowdveil.cli import main
from crowdveil.estimators import ESTIMATORS
from crowdveil.mechanisms import MECHANISMS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
PROOFS = [
    DOCS / "explanation" / name
    for name in ("synthesis/private.md", "synthesis/paper-reproduction.md", "campaign-guarantees.md")
]
"""Pages of proofs, besides those of mechanisms."""
MAX_WORDS = 30_000
"""Words of all documents outside the proofs."""
COMMAND_LINES = {
    "run": ".venv/bin/crowdveil infer sent/reports.csv --out private",
    "test": ".venv/bin/python -m pytest -n 2",
}


def blocks(page: Path, languages: str) -> list[tuple[str, str]]:
    """Return language and code of every fenced block whose language matches, in order."""
    return re.findall(rf"^```({languages})\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def relative(page: Path) -> str:
    """Return the path from the root of the project, with slashes."""
    return page.relative_to(ROOT).as_posix()


def run_command(words: list[str]) -> str:
    """Return the output of one shell command of a page: crowdveil, cat or head; programs of the project must exist."""
    match words:
        case ["crowdveil", *arguments]:
            result = CliRunner().invoke(main, arguments)
            assert result.exit_code == 0, f"{shlex.join(words)}\n{result.output}"
            return result.output
        case ["cat", file]:
            return Path(file).read_text("utf-8")
        case ["head", number, file]:
            return "\n".join(Path(file).read_text("utf-8").splitlines()[: -int(number)])
        case ["python", "-m", module, *_]:
            assert list(ROOT.glob(f"{module.replace('.', '/')}*")), module
            return ""
        case ["python", program, *_]:
            assert (ROOT / program).is_file(), program
            return ""
    raise AssertionError(f"no test runs {shlex.join(words)}")


def run_console(code: str) -> None:
    """Run the commands after `$ `; each line shown below a command must occur in its output (`...` is any text)."""
    for example in re.split(r"^\$ ", code.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        command, *shown = example.splitlines()
        printed = [" ".join(line.split()) for line in run_command(shlex.split(command)).splitlines()]
        for line in shown:
            pattern = re.escape(" ".join(line.split())).replace(r"\.\.\.", ".*")
            assert any(re.fullmatch(pattern, text) for text in printed), f"{command}\n{line}\nnot in\n" + "\n".join(
                printed
            )


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python|console")], ids=relative)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python and console examples of a page run in order, in a folder with the files of docs/samples."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    shutil.copytree(DOCS / "samples", tmp_path, dirs_exist_ok=True)
    shutil.copytree(DOCS / "samples", tmp_path / "docs" / "samples")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for number, (language, code) in enumerate(blocks(page, "python|console"), start=1):
        if language == "console":
            run_console(code)
        else:
            exec(compile(code, f"{relative(page)}, block {number}", "exec"), namespace)


@pytest.mark.parametrize("name", MECHANISMS)
def test_mechanism_has_its_proof_page(name: str) -> None:
    """A registered mechanism has docs/explanation/mechanisms/<name>.md and a heading in the catalogue."""
    assert (DOCS / "explanation" / "mechanisms" / f"{name}.md").exists()
    assert re.search(rf"^### `{name}`", (DOCS / "reference" / "catalogue.md").read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimator_has_its_page(name: str) -> None:
    """A registered estimator has docs/explanation/estimators/<name>.md and a heading in the catalogue."""
    assert (DOCS / "explanation" / "estimators" / f"{name}.md").exists()
    assert re.search(rf"^### `{name}`", (DOCS / "reference" / "catalogue.md").read_text("utf-8"), re.MULTILINE)


def test_catalogue_names_only_what_has_a_page() -> None:
    """The headings of the catalogue and the pages of mechanisms and estimators are the same set."""
    headings = re.findall(r"^### `(.+?)`", (DOCS / "reference" / "catalogue.md").read_text("utf-8"), re.MULTILINE)
    pages = [page.stem for folder in ("mechanisms", "estimators") for page in DOCS.glob(f"explanation/{folder}/*.md")]

    assert sorted(headings) == sorted(page for page in pages if page != "index")


def menu_entries(page: Path) -> list[str]:
    """Return the pages that the tables of contents of one page list, relative to docs/."""
    trees = re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    entries = [line for tree in trees for line in tree.splitlines() if line and not line.startswith(":")]
    found = [path for entry in entries for path in page.parent.glob(f"{entry}.md") if path != page]
    return [path.relative_to(DOCS).as_posix() for path in found]


def test_menu_lists_every_page_once() -> None:
    """Every page under docs/ stands in exactly one table of contents; `docs/index.md` is the root."""
    pages = sorted(DOCS.rglob("*.md"))
    listed = [entry for page in pages for entry in menu_entries(page)]

    assert sorted([*listed, "index.md"]) == [page.relative_to(DOCS).as_posix() for page in pages]


def test_public_name_has_one_api_page() -> None:
    """Every name of `crowdveil.__all__` is documented by one directive on the API pages, and no other name of it is."""
    pages = "\n".join(page.read_text("utf-8") for page in (DOCS / "reference" / "api").glob("*.md"))
    documented = re.findall(r"^\.\. auto(?!module)\w+:: crowdveil\.(\w+)$", pages, re.MULTILINE)

    assert sorted(crowdveil.__all__) == sorted(documented)


def count_words(page: Path) -> int:
    """Return the number of words of a page, code included: what holds a letter or a digit between spaces."""
    return sum(any(map(str.isalnum, word)) for word in page.read_text("utf-8").split())


def test_pages_stay_short() -> None:
    """All documents outside the proofs have at most `MAX_WORDS` words; a tutorial has at most 900."""
    words = {page: count_words(page) for page in PAGES if page.parent.name != "mechanisms" and page not in PROOFS}

    assert sum(words.values()) <= MAX_WORDS
    assert [page.name for page in words if page.parent.name == "tutorials" and words[page] > 900] == []


def test_verdicts_page_says_what_the_registry_says() -> None:
    """The page of verdicts has exactly the rows of `experiments.theory.verdicts`."""
    lines = (DOCS / "explanation" / "verdicts.md").read_text("utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| ")]

    assert [verdict.row for verdict in VERDICTS] == [row for row in rows if not row.startswith(("| claim", "| ---"))]


def test_decisions_are_numbered_and_short() -> None:
    """Decisions are numbered from 1 without a gap, and none is longer than 40 lines."""
    pages = sorted((DOCS / "decisions").glob("0*.md"))

    assert [f"{number:04}" for number in range(1, len(pages) + 1)] == [page.name[:4] for page in pages]
    assert [page.name for page in pages if len(page.read_text("utf-8").splitlines()) > 40] == []


def test_readme_is_short_and_begins_with_the_two_commands() -> None:
    """README has at most 80 lines; its first two sh blocks run the main job and, in one line, the tests."""
    readme = ROOT / "README.md"
    (_, run), (_, test) = blocks(readme, "sh")[:2]

    assert len(readme.read_text("utf-8").splitlines()) <= 80
    assert 1 == test.count("\n")
    assert run.strip().endswith(COMMAND_LINES["run"])
    assert test.strip().endswith(COMMAND_LINES["test"])


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_links_outside_the_site_lead_somewhere(name: str) -> None:
    """Links and pictures of the pages at the root, which the site's strict build does not see, exist."""
    targets = re.findall(r"\]\(([^)#]+)\)", (ROOT / name).read_text("utf-8"))

    assert [target for target in targets if "://" not in target and not (ROOT / target).exists()] == []
