"""`crowdveil campaign invite`: links, and new links for those who lost theirs."""

from collections.abc import Callable
from pathlib import Path

from tests.campaign.builders import build_campaign
from tests.cli.conftest import Run, RunJson


def make(name: str, url: str | None) -> None:
    """Write a campaign of three workers into a new folder."""
    from crowdveil.planning.settings.creation import write_campaign

    built = build_campaign(url=url)
    write_campaign(Path(name), built.campaign, built.parts)


def test_links_are_written_and_not_shown(run: Run) -> None:
    """The command names the files and the start of the hash; no link is printed."""
    make("essays", "https://grades.example.org")

    text = run("campaign", "invite", "essays").stdout
    replaced = run("campaign", "invite", "essays", "--replace", 2).stdout

    assert "3, each for one report" in text
    assert "essays/links.csv" in text
    assert "the old link of worker 2" in replaced
    assert "essays/link-0002.csv" in replaced
    assert "keeps the old one if that has stored a report" in replaced
    assert "#1." not in text + replaced


def test_a_second_report_is_accepted_with_a_replacement_only(run: Run, refusal: Callable[..., str]) -> None:
    """The option goes with --replace; without a service a replacement needs it."""
    make("survey", None)
    run("campaign", "invite", "survey", "--accept-second-report", code=2)
    run("campaign", "invite", "survey")

    assert "epsilon of both reports adds up" in refusal("campaign", "invite", "survey", "--replace", 0)
    run("campaign", "invite", "survey", "--replace", 0, "--accept-second-report")


def test_a_link_is_replaced_by_name(run: Run, run_json: RunJson, refusal: Callable[..., str]) -> None:
    """A worker is named as in the list; a near name is suggested, and what names two workers is refused."""
    from crowdveil.planning.settings.creation import write_campaign

    built = build_campaign(url="https://grades.example.org")
    write_campaign(Path("essays"), built.campaign, built.parts, names=["Ada", "Ben", "0"])
    run("campaign", "invite", "essays")

    assert 1 == run_json("campaign", "invite", "essays", "--replace", "Ben")["replaced_slot"]
    assert Path("essays/link-0001.csv").exists()
    assert "Did you mean 'Ada'?" in refusal("campaign", "invite", "essays", "--replace", "Adah")
    assert "write slot:0 or slot:2" in refusal("campaign", "invite", "essays", "--replace", "0")
