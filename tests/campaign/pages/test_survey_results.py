"""Curator's pages of a survey: shares with their intervals in place of truths."""

import csv
import io
import secrets

import pytest
from starlette.testclient import TestClient

from crowdveil.campaign.planning.expected_share import is_survey_campaign
from crowdveil.campaign.service.store import Store
from crowdveil.channels.alphabet import Alphabet, Categories, Scale
from crowdveil.pages.results_page import content_security_policy
from crowdveil.pages.sections_page import sections_style_sheet
from tests.campaign.builders import BuiltCampaign, body_of, build_campaign, response
from tests.campaign.pages import test_pages

client, post, token, logged_in = test_pages.client, test_pages.post, test_pages.token, test_pages.logged_in
YES_NO, SLOTS = Categories(("no", "yes")), 40


@pytest.fixture
def built() -> BuiltCampaign:
    """A campaign of one question to forty people."""
    return build_campaign(channels=[response(YES_NO, 2.0)], tasks=1, slots=SLOTS, content={"title": "Exams <of> 2026"})


def test_a_survey_has_shares_and_no_truths(
    logged_in: TestClient, post: test_pages.Post, store: Store, built: BuiltCampaign
) -> None:
    """After the end the pages offer the shares, their page with its own policy, and no truths of tasks."""
    for slot in range(SLOTS):
        body = body_of([slot % 3], built.campaign)
        store.store_report(built.campaign.digest, built.tokens[slot], secrets.token_hex(16), body)
    post("close", confirm="close")
    before = logged_in.get("/curator/").text
    post("infer")
    overview, page = logged_in.get("/curator/").text, logged_in.get("/curator/results")
    table = list(csv.DictReader(io.StringIO(logged_in.get("/curator/files/shares.csv").text)))

    assert "The campaign is a survey" in before
    assert "truths" not in before + overview
    assert 404 == logged_in.get("/curator/files/truths.csv").status_code
    assert content_security_policy(sections_style_sheet()) in page.headers["content-security-policy"]
    assert "say &#39;yes&#39; to &#39;Picture 0&#39; (40 people asked)" in page.text
    assert "Exams &lt;of&gt; 2026" in page.text
    assert ["no", "yes", ""] == [row["label"] for row in table]
    assert "shares.csv" in overview
    assert logged_in.get("/curator/files/statement.txt").text.split("\n\n")[1].startswith("Someone who thought")
    assert "sent a report" not in page.text


def test_people_who_sent_nothing_are_named(
    logged_in: TestClient, post: test_pages.Post, store: Store, built: BuiltCampaign
) -> None:
    """A link that nobody used is no refusal that the channel hides: the page says how many sent a report."""
    for slot in range(30):
        body = body_of([slot % 3], built.campaign)
        store.store_report(built.campaign.digest, built.tokens[slot], secrets.token_hex(16), body)
    post("close", confirm="close")
    post("infer")

    assert "30 of the 40 people with a link sent a report. These shares are of those 30" in (
        logged_in.get("/curator/results").text
    )


@pytest.mark.parametrize(
    ("alphabet", "tasks", "slots", "survey"),
    [(YES_NO, 1, 40, True), (YES_NO, 3, 30, True), (YES_NO, 4, 40, False), (YES_NO, 1, 9, False)],
)
def test_a_survey_asks_few_questions_of_many(alphabet: Alphabet, tasks: int, slots: int, survey: bool) -> None:
    """A campaign is a survey if it asks at most three questions with labels, each of 30 people or more."""
    campaign = build_campaign(channels=[response(alphabet, 2.0)], tasks=tasks, slots=slots).campaign

    assert survey == is_survey_campaign(campaign)


def test_numbers_are_no_survey() -> None:
    """Answers on a scale have a mean, not shares of labels."""
    scale = build_campaign(channels=[response(Scale(0, 4), 2.0)], tasks=1, slots=40).campaign

    assert not is_survey_campaign(scale)
