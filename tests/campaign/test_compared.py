"""What people compare of a campaign's name: at least 128 bits wherever it is shown, so that a forged one differs."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from crowdveil.campaign.assignment_part import AssignmentPart
from crowdveil.campaign.document import Campaign, compared
from crowdveil.campaign.token import Link, Token
from crowdveil.cli import main
from crowdveil.folder.campaign.invitations import render_sheet
from crowdveil.planning.settings.creation import write_campaign
from crowdveil.standalone import device as one_file
from tests.device_vectors import read_vectors
from tests.service.accessibility import await_screen
from tests.service.browser import chromium, needs_chromium

FORGED = read_vectors("same_prefix.json")
"""Two campaigns, of epsilon 0.7 and 20, whose names have the same first 8 characters."""
CHARACTER_BITS, LEAST_BITS = 6, 128


def written(vector: dict[str, Any], folder: Path) -> Campaign:
    """Write the folder of a campaign and return the campaign."""
    campaign = Campaign.from_bytes(vector["campaign"].encode())
    parts = [AssignmentPart.from_bytes(vector["part"].encode(), campaign, 0)]
    write_campaign(folder, campaign, parts)
    return campaign


def test_a_forged_campaign_has_another_code() -> None:
    """Two campaigns with the same 8 characters and epsilons of 0.7 and 20 have different codes of 132 bits."""
    one, other = (Campaign.from_bytes(vector["campaign"].encode()) for vector in FORGED)

    assert one.name[:8] == other.name[:8]
    assert (0.7, 20.0) == pytest.approx((one.epsilon, other.epsilon), rel=1e-6)
    assert compared(one.name) != compared(other.name)
    assert all(compared(campaign.name) == one_file.compared(campaign.name) for campaign in (one, other))


@pytest.mark.parametrize("vector", FORGED, ids=lambda vector: vector["name"])
def test_every_place_shows_at_least_128_bits(vector: dict[str, Any], tmp_path: Path) -> None:
    """Device, sheet and commands show one code of at least 128 bits, which begins the campaign's name."""
    campaign, folder = written(vector, tmp_path / "survey"), tmp_path / "survey"
    link = Link(None, campaign.name, Token.new(0))
    code = compared(campaign.name)
    with one_file.Device(link.text, tmp_path / "home", folder) as device:
        device.open()
        shown = {"device": one_file.promise(device), "sheet": render_sheet(campaign, [link])}
    for words in (
        ["campaign", "invite", folder],
        ["campaign", "page", folder, "--out", tmp_path / "device.html"],
        ["verify", folder / "campaign.json"],
    ):
        shown[" ".join(map(str, words))] = CliRunner().invoke(main, list(map(str, words))).stdout

    assert campaign.name.startswith(code.replace(" ", ""))
    assert CHARACTER_BITS * len(code.replace(" ", "")) >= LEAST_BITS
    assert [] == [place for place, text in shown.items() if code not in text]


@pytest.mark.slow
@needs_chromium
def test_the_page_shows_at_least_128_bits(tmp_path: Path) -> None:
    """The pages of the two campaigns show their own codes."""
    found = []
    with chromium() as browser:
        for number, vector in enumerate(FORGED):
            campaign, file = written(vector, tmp_path / str(number)), tmp_path / f"{number}.html"
            CliRunner().invoke(main, ["campaign", "page", str(tmp_path / str(number)), "--out", str(file)])
            page = browser.new_page()
            page.goto(f"{file.as_uri()}{Link(None, campaign.name, Token.new(0)).text}")
            await_screen(page, "intro")
            found.append(page.inner_text("dd.code"))

    assert [compared(vector["campaign_name"]) for vector in FORGED] == found
    assert 2 == len(set(found))
