"""Addresses and links: one normal form of an address, and the link in whatever text mail or chat made of it."""

import re
from pathlib import Path
from typing import Any

import pytest

from crowdveil.campaign.rules.address import normal_address
from crowdveil.campaign.rules.document import Campaign
from crowdveil.campaign.settings.settings_file import read_settings
from crowdveil.errors import CampaignError, SettingsError
from crowdveil.standalone.checks import URL, ClaimLog, Refused, check_campaign, fits, parse_link
from crowdveil.standalone.device import Device
from tests.campaign.builders import build_campaign
from tests.device_vectors import read_vectors

ADDRESSES, LINKS = read_vectors("addresses.json"), read_vectors("links.json")


@pytest.mark.parametrize("vector", ADDRESSES, ids=lambda vector: ascii(vector["address"]))
def test_an_address_has_one_form_or_is_refused(vector: dict[str, Any]) -> None:
    """Each address has the stated normal form, which is its own normal form, or is refused."""
    found = normal_address(vector["address"])

    assert vector["normal"] == found
    assert found is None or found == normal_address(found)
    assert fits(vector["address"], URL) == (vector["address"] in (found, vector.get("some_browsers")))


SETTINGS = """
title = "Night shifts"
question = "How often?"
consent = "Ask Ann."
open = { from = 2027-01-10, until = 2027-01-17 }
min_reports = 2
participation = "protected"
answers = { labels = ["never", "weekly"] }
tasks = { file = "tasks.csv" }
workers = { count = 3 }
privacy = { mechanism = "randomized-response", epsilon_per_answer = 0.7 }
"""


def test_settings_normalize_or_refuse_every_address(tmp_path: Path) -> None:
    """The address of a settings file becomes the normal one, or is refused with what was found."""
    (tmp_path / "tasks.csv").write_text("id,text\na,Ward A\n")
    file = tmp_path / "campaign.toml"
    for vector in ADDRESSES:
        quoted = re.sub(r"[\x00-\x1f\"\\]", lambda sign: f"\\u{ord(sign[0]):04x}", vector["address"])
        file.write_text(f'{SETTINGS}service = {{ url = "{quoted}" }}\n', "utf-8")
        if vector["normal"] is None:
            with pytest.raises(SettingsError, match=r"service\.url must be an https address"):
                read_settings(file)
        else:
            assert vector["normal"] == read_settings(file).url


@pytest.mark.parametrize(
    "url", ["https://grades.example.org:443", "http://127.1", "https://h/a/../b", "https://h:65536"]
)
def test_a_campaign_has_a_normal_address(url: str) -> None:
    """No reader accepts a campaign whose address the browsers of its workers would write in another way."""
    with pytest.raises(CampaignError) as caught:
        build_campaign(url=url)
    assert "url" == caught.value.defect
    good = build_campaign(url="https://grades.example.org").campaign
    data = good.to_bytes().replace(b"https://grades.example.org", url.encode())
    with pytest.raises(CampaignError, match="another form"):
        Campaign.from_bytes(data)
    with pytest.raises(Refused) as refused:
        check_campaign(data, ClaimLog())
    assert "url" == refused.value.name


@pytest.mark.parametrize("vector", LINKS, ids=lambda vector: vector["name"])
def test_a_link_is_found_in_any_text(vector: dict[str, Any], tmp_path: Path) -> None:
    """The link is found whatever stands around it; a cut one is called cut; the record keeps the link alone."""
    if "defect" in vector:
        with pytest.raises(Refused) as caught:
            parse_link(vector["text"])
        assert vector["defect"] == caught.value.name
        assert ("is cut" in caught.value.sentence) == (vector["defect"] == "link-cut")
        return
    url, name, token, slot = parse_link(vector["text"])
    short = f"#1.{name}.{token}"

    assert vector["found"] == {"url": url, "name": name, "token": token, "slot": slot}
    assert Device(vector["text"], tmp_path).link == (short if url is None else f"{url}/a/{short}")
