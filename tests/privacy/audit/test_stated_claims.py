"""Claims of certificates: a claim is a number from 0, and a stated ratio of any size is read."""

import json
import math

import pytest

from crowdveil.channels.alphabet import Categories
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import RandomizedResponse
from crowdveil.privacy.audit.stated_claims import audit_file
from crowdveil.standalone.checks import digest


@pytest.fixture
def certificate():
    """Certificate of randomized response with epsilon 1."""
    return RandomizedResponse(alphabet=Categories(("no", "yes")), epsilon=1.0).channel().certificate()


@pytest.mark.parametrize("epsilon", [float("nan"), -1.0])
def test_a_claim_that_is_no_loss_is_refused(epsilon, certificate, tmp_path):
    """Such a claim neither holds nor is refuted."""
    file = tmp_path / "certificate.json"
    file.write_text(json.dumps(certificate), "utf-8")

    with pytest.raises(SettingsError, match="non-negative"):
        audit_file(file, epsilon=epsilon)


def test_a_huge_stated_ratio_is_a_claim(certificate, tmp_path):
    """The largest ratio that a certificate can state has its logarithm as the claim."""
    data = certificate | {"ratio": [2**53 - 1, 1]}
    file = tmp_path / "certificate.json"
    file.write_text(json.dumps(data | {"sha256": digest(data)}), "utf-8")

    result = audit_file(file)

    assert pytest.approx(53 * math.log(2)) == result.claimed_epsilon
    assert not result.refuted
