"""Report files: the vectors, and each rule of their form."""

import json

import pytest

from crowdveil.campaign.document import Campaign
from crowdveil.campaign.report_file import ReportFile
from crowdveil.errors import CampaignError
from tests.device_vectors import read_vectors

VECTORS = read_vectors("campaigns.json")


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_a_file_has_one_form(vector):
    """The report file of each vector is read and written again with the same bytes."""
    campaign = Campaign.from_bytes(vector["campaign"].encode())
    found = ReportFile.from_bytes(vector["report_file"].encode(), campaign)

    assert (vector["slot"], vector["report"]) == (found.token.slot, found.report)
    assert vector["body"] == found.body.hex()
    assert vector["report_file"].encode() == found.to_bytes(campaign)


@pytest.mark.parametrize(
    ("changed", "defect"),
    [
        ({"format": "crowdveil-report/2"}, "report file"),
        ({"note": "x"}, "report file"),
        ({"report": 5}, "report file"),
        ({"report": "A" * 32}, "report file"),
        ({"symbols": "0"}, "report file"),
        ({"campaign": "A" * 43}, "foreign"),
        ({"token": "A" * 26}, "token"),
        ({"symbols": "00" * 1000}, "oversize"),
    ],
)
def test_another_form_is_refused(changed, defect):
    """Each changed field is refused by its name."""
    vector = VECTORS[0]
    campaign = Campaign.from_bytes(vector["campaign"].encode())
    data = json.dumps({**json.loads(vector["report_file"]), **changed}, sort_keys=True, separators=(",", ":"))

    with pytest.raises(CampaignError) as refusal:
        ReportFile.from_bytes(data.encode(), campaign)

    assert defect == refusal.value.defect
