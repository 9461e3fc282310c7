"""`crowdveil campaign collect`: what it refuses before it reads a report."""

from pathlib import Path

from click.testing import CliRunner

from crowdveil.campaign.document import Relay
from crowdveil.cli import main
from tests.campaign.builders import PUBLIC_KEY, build_campaign


def test_batches_of_a_relay_need_the_key(tmp_path: Path) -> None:
    """Without the key sealed batches are not read as report files: the error names --key, and nothing is written."""
    relay = Relay("The library", PUBLIC_KEY, 2, "cell")
    folder = build_campaign(content={"relay": relay}).write(tmp_path / "essays")
    (tmp_path / "batches").mkdir()
    words = ["campaign", "collect", str(tmp_path / "batches"), "--campaign", str(folder / "campaign.json")]
    result = CliRunner().invoke(main, [*words, "--out", str(tmp_path / "collected")])

    assert 2 == result.exit_code
    assert "--key" in result.output
    assert not (tmp_path / "collected").exists()
