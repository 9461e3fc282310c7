"""Campaign folders: every file is checked when it is read."""

import json

import pytest

from crowdveil.campaign.canonical import canonical_bytes
from crowdveil.campaign.folder import CampaignFolder, TokenEntry, parse_tokens, tokens_bytes
from crowdveil.campaign.token import token_hash
from crowdveil.errors import CampaignError
from tests.campaign.builders import build_campaign

BUILT = build_campaign(assignment=[[slot % 4] for slot in range(150)])
ENTRIES = [TokenEntry(token.slot, token_hash(BUILT.campaign.digest, token)) for token in BUILT.tokens]


@pytest.fixture
def folder(tmp_path):
    """Folder of a campaign of 150 slots."""
    return CampaignFolder(BUILT.write(tmp_path))


def test_a_folder_gives_back_the_campaign(folder):
    """Campaign, parts, tasks and tokens are those that were written."""
    assert BUILT.campaign.name == folder.campaign.name
    assert BUILT.parts[1].to_bytes() == folder.part_bytes(1)
    assert BUILT.parts[1] == folder.part(1)
    assert (149 % 4,) == folder.tasks(149)
    assert tuple(ENTRIES) == folder.tokens


def test_a_changed_part_is_refused(folder):
    """A part of a folder that is not the campaign's is refused."""
    (folder.path / "parts" / "0001.json").write_bytes(BUILT.parts[0].to_bytes())
    with pytest.raises(CampaignError, match="hash"):
        folder.part_bytes(1)


def test_a_missing_file_is_named(tmp_path):
    """A folder without a campaign is refused with the name of the file."""
    with pytest.raises(CampaignError, match=r"campaign\.json"):
        _ = CampaignFolder(tmp_path).campaign


def test_a_picture_is_checked(folder):
    """A picture is read by its hash; another content or name is refused."""
    digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    path = folder.path / "pictures" / digest
    path.parent.mkdir()
    path.write_bytes(b"")

    assert b"" == folder.picture(digest)
    path.write_bytes(b"x")
    for name in (digest, "../campaign.json"):
        with pytest.raises(CampaignError, match="picture"):
            folder.picture(name)


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "crowdveil-tokens/2"},
        {"campaign": "A" * 43},
        {"tokens": 1},
        {"tokens": [{"slot": 0, "hash": "0" * 64}]},
        {"tokens": [{"slot": True, "hash": "0" * 64, "revoked": False}]},
        {"tokens": [{"slot": 150, "hash": "0" * 64, "revoked": False}]},
        {"tokens": [{"slot": 0, "hash": "0" * 63, "revoked": False}]},
        {"tokens": [{"slot": 0, "hash": digit * 64, "revoked": False} for digit in "01"]},
        {"tokens": [{"slot": slot, "hash": "0" * 64, "revoked": False} for slot in (0, 1)]},
    ],
)
def test_malformed_tokens_are_refused(changes):
    """Tokens of another form, another campaign, or two valid ones of one slot, are refused."""
    fields = json.loads(tokens_bytes(ENTRIES, BUILT.campaign))
    with pytest.raises(CampaignError) as caught:
        parse_tokens(canonical_bytes({**fields, **changes}), BUILT.campaign)

    assert "tokens" == caught.value.defect


def test_a_slot_may_have_revoked_tokens():
    """Besides its valid token a slot may have revoked ones."""
    entries = (TokenEntry(0, bytes(32), revoked=True), *ENTRIES)

    assert entries == parse_tokens(tokens_bytes(entries, BUILT.campaign), BUILT.campaign)
