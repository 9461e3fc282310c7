"""Several questions through the command line: collected, inferred one by one, and reported on one page."""

import json
import secrets
from pathlib import Path

from click.testing import CliRunner

from crowdveil.campaign.report_body import encode
from crowdveil.campaign.report_file import ReportFile
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.cli import main
from crowdveil.mechanisms import Laplace
from crowdveil.privacy.questions import OTHERS
from tests.campaign.builders import build_questions, response

SLOTS = 8
CHANNELS = [
    response(Categories(("no", "yes")), 2.0),
    Laplace(alphabet=Scale(0, 4), epsilon=2.0, participation="protected").channel(),
]


def run(*words: object) -> dict[str, object]:
    """Return the JSON document of a command that must succeed."""
    result = CliRunner().invoke(main, [*map(str, words), "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found: dict[str, object] = json.loads(result.stdout)
    return found


def test_two_questions_are_reported_on_one_page(tmp_path: Path) -> None:
    """One page has both questions and the sum of a worker; a page of one folder has that question, and the same sum."""
    built = build_questions(CHANNELS, [3, 2], [range(5)] * SLOTS, url=None)
    folder = built.write(tmp_path / "asked")
    (tmp_path / "in").mkdir()
    for slot, token in enumerate(built.tokens):
        body = encode([1, 0, slot % 2, 4, slot % 3], built.campaign)
        report = ReportFile(token, secrets.token_hex(16), body)
        (tmp_path / "in" / f"{slot}.json").write_bytes(report.to_bytes(built.campaign))
    collected = run(
        "campaign", "collect", tmp_path / "in", "--campaign", folder / "campaign.json", "--out", tmp_path / "c"
    )
    for number in (1, 2):
        run(
            "infer",
            tmp_path / "c" / f"question-{number}" / "reports.csv",
            "--out",
            tmp_path / "f" / f"question-{number}",
        )
    apart = run("report", tmp_path / "f" / "question-2", "--out", tmp_path / "apart.html")
    both = run("report", tmp_path / "f", "--campaign", folder / "campaign.json", "--out", tmp_path / "both.html")
    one = run(
        "report", tmp_path / "f" / "question-2", "--campaign", folder / "campaign.json", "--out", tmp_path / "one.html"
    )
    page, other, alone = ((tmp_path / name).read_text("utf-8") for name in ("both.html", "one.html", "apart.html"))

    assert SLOTS == collected["workers"]
    assert (2, 0) == (len(both["questions"]), len(one["questions"]))  # type: ignore[arg-type]
    assert built.campaign.worker_epsilon == both["epsilon_per_worker"] == one["epsilon_per_worker"]
    assert [True, True] == [f"Question {number}?" in page for number in (1, 2)]
    assert [False, True] == [f"Question {number}?" in other for number in (1, 2)]
    assert [True, True] == [f"Question {number} of 2" in page for number in (1, 2)]
    assert [[False, True]] * 2 == [[f": Question {n} of 2" in text for n in (1, 2)] for text in (other, alone)]
    assert "epsilon per answer to this question, participation protected</dt><dd>2</dd>" in other
    assert None is apart["epsilon_per_worker"]
    assert OTHERS in alone.partition('<div class="notice')[2].partition("</div>")[0].replace("&#39;", "'")
    assert ["epsilon per worker, at most" in text for text in (page, other, alone)] == [True, True, False]
