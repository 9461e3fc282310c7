"""Results of a campaign of comparisons: a ranking, its page and its files."""

import secrets
from pathlib import Path

import numpy as np
import pytest

from crowdveil.campaign.files.folder import CampaignFolder
from crowdveil.campaign.pages.results import DESCRIPTIONS, ResultCache
from crowdveil.campaign.rules.document import Task
from crowdveil.campaign.rules.token import Token
from crowdveil.campaign.service.campaign_registration import register_campaign
from crowdveil.campaign.service.store import Store
from crowdveil.campaign.settings.settings_file import read_settings
from crowdveil.channels.compared_pairs import COMPARISON_ANSWERS
from tests.campaign.builders import BuiltCampaign, body_of, build_campaign, response
from tests.campaign.settings.test_compared_items import build, settings_file

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

    expected = {"ranks.csv", "pairs.csv", "workers.csv", "reports.csv", "statement.txt"}

    assert expected <= {*found.files} <= {*DESCRIPTIONS}
    assert "truths.csv" not in found.files
    assert [line.split(",")[0] for line in ranks[1:]] == ["a", "b", "c"]
    assert "Which &lt;tree&gt;?" in page
    assert "First of 3 items" in page
    assert "epsilon 6 per comparison, participation protected" in page
    assert found.statement.status == "protected"


@pytest.mark.parametrize("mechanism", ["designed", "plan"])
def test_from_settings_to_the_page(tmp_path: Path, mechanism: str) -> None:
    """Where the chosen table tosses ties, its reports show how many answer, so the page has a ranking."""
    changes = {
        "workers": "{ count = 60 }",
        "privacy": f'{{ mechanism = "{mechanism}", budget_per_worker = 8 }}',
        "expected": "{ answered = 0.9, ties = 0.1 }",
        "service": '{ url = "http://127.0.0.1:8000", purge_after_days = 3 }',
    }
    source = read_settings(settings_file(tmp_path, **changes))
    campaign, parts, _ = build(source)
    lists = [own for part in parts for own in part.lists]
    built = BuiltCampaign(campaign, parts, tuple(Token.new(slot) for slot in range(campaign.slots)))
    (channel,), draw = campaign.channels, np.random.default_rng(4)
    store = Store.open(f"sqlite:///{tmp_path / 'reports.sqlite'}")
    register_campaign(store, CampaignFolder(built.write(tmp_path / "made")))
    for slot, own in enumerate(lists):
        said = [0 if campaign.tasks[task].id in ("a|b", "a|c", "a|d", "b|c", "b|d", "c|d") else 2 for task in own]
        said = [3 if draw.random() < 0.1 else answer for answer in said]
        sent = [int(draw.choice(len(channel.outputs), p=channel.probabilities[answer])) for answer in said]
        store.store_report(campaign.digest, built.tokens[slot], secrets.token_hex(16), body_of(sent, campaign))
    store.close_and_count_reports(campaign.digest)
    found = ResultCache(store).get(campaign.digest)
    store.close()

    assert channel.outputs == ("left", "right", "NULL")
    assert found.files["ranks.csv"].decode().splitlines()[1].startswith("a,")
    assert "of the comparisons asked are answered" in " ".join(found.warnings)
