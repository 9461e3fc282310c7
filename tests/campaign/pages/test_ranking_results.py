"""Results of a campaign of comparisons: a ranking, its page and its files."""

import secrets

import pytest

from crowdveil.campaign.pages.results import DOWNLOADS, ResultCache
from crowdveil.campaign.rules.document import Task
from crowdveil.campaign.service.store import Store
from crowdveil.channels.compared_pairs import COMPARISON_ANSWERS
from tests.campaign.builders import BuiltCampaign, body_of, build_campaign, response

SLOTS = 20
ASKED = ((0, 2, 4), (1, 3, 5))
"""Tasks of the workers of even and odd slots: the same pairs in the two orders."""


@pytest.fixture
def built() -> BuiltCampaign:
    """A campaign in which twenty workers compare three items, each pair in one order."""
    pairs = (("a", "b"), ("b", "a"), ("a", "c"), ("c", "a"), ("b", "c"), ("c", "b"))
    tasks = tuple(Task(f"{left}|{right}", f"Left: {left}\nRight: {right}") for left, right in pairs)
    channel = response(COMPARISON_ANSWERS, epsilon=6.0)
    lists = [ASKED[slot % 2] for slot in range(SLOTS)]
    content = {"tasks": tasks, "title": "Which <tree>?"}
    return build_campaign(channels=[channel], slots=SLOTS, assignment=lists, content=content)


def test_ranking_of_a_campaign(store: Store, built: BuiltCampaign) -> None:
    """The page and the files are those of a ranking: the item that all prefer is first, and no truths are inferred."""
    for slot in range(SLOTS):
        prefers_left = 2 * (slot % 2)
        body = body_of([prefers_left] * 3, built.campaign)
        store.store_report(built.campaign.digest, built.tokens[slot], secrets.token_hex(16), body)
    store.close_and_count_reports(built.campaign.digest)
    found = ResultCache(store).get(built.campaign.digest)
    page, ranks = found.files["report.html"].decode(), found.files["ranks.csv"].decode().splitlines()

    assert {"ranks.csv", "pairs.csv", "workers.csv", "reports.csv", "statement.txt"} <= {*found.files} <= {*DOWNLOADS}
    assert "truths.csv" not in found.files
    assert [line.split(",")[0] for line in ranks[1:]] == ["a", "b", "c"]
    assert "Which &lt;tree&gt;?" in page
    assert "First of 3 items" in page
    assert "epsilon 6 per comparison, participation protected" in page
    assert found.statement.status == "protected"
