"""`crowd.json` of the second format, in which some facts were parts of texts.

The text of the mechanism held the settings, the question, the campaign and whether cells had names; that of the
guarantee held its conditions, or "none: " or "unknown: " with a reason.
"""

import re
from collections.abc import Mapping
from typing import Any

from crowdveil.errors import SettingsError

SECOND_FORMAT = "crowdveil-crowd/2"
_CAMPAIGN = re.compile(r"(?:; question ([0-9]{1,2}) of ([0-9]{1,2}))?; campaign ([A-Za-z0-9_-]{43})$")
_WITHOUT_NAMES = "; cells without names"
_NUMBER = r"[0-9a-z.+-]+"
_GUARANTEE = re.compile(
    rf"(none|unknown): .+|epsilon = (none \(infinite\)|{_NUMBER})( \(claimed {_NUMBER}\))?(, delta = {_NUMBER})?"
    r" per (cell|worker), participation (protected|public)(; .+)?"
)
_SAME = (
    *("tasks", "workers", "simulation", "certificate_sha256", "alphabet", "seed", "lists_from_answers", "edited"),
    *("reports_sha256", "assignment_sha256", "blocks_sha256"),
)
_FIELDS = {"format", "mechanism", "guarantee", "kind", *_SAME}


def is_guarantee_text(text: str) -> bool:
    """Return whether a text has the form of a guarantee in the second format, or of a reason why there is none."""
    return _GUARANTEE.fullmatch(text) is not None


def states_no_guarantee(text: str) -> bool:
    """Return whether the text of a guarantee in the second format states none."""
    return text.startswith(("none: ", "unknown: "))


def fields_of_second_format(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the present format; a guarantee stays the text that it was.

    Raises:
        SettingsError: a field is absent or unknown, or a text has another form than the second format gave it.
    """
    if wrong := _FIELDS.symmetric_difference(data):
        raise SettingsError(f"a crowd of format {SECOND_FORMAT!r} has other fields", value=sorted(wrong))
    mechanism, guarantee = data["mechanism"], data["guarantee"]
    if not isinstance(mechanism, str) or not isinstance(guarantee, str) or not is_guarantee_text(guarantee):
        raise SettingsError(
            "'guarantee' of a crowd must be a guarantee as crowdveil writes it, or have the prefix 'none: '",
            value=guarantee,
        )
    numeric = data["alphabet"] is None or (
        isinstance(data["alphabet"], dict) and data["alphabet"].get("kind") == "scale"
    )
    if data["kind"] != ("numeric" if numeric else "categorical"):
        raise SettingsError("'kind' of a crowd must fit its alphabet", value=data["kind"])
    campaign = _CAMPAIGN.search(mechanism)
    question = None if campaign is None or campaign[1] is None else [int(campaign[1]), int(campaign[2])]
    described = mechanism if campaign is None else mechanism[: campaign.start()]
    return {
        "format": "crowdveil-crowd/3",
        **{name: data[name] for name in _SAME},
        "mechanism": described.partition(" ")[0].rstrip(";,"),
        "description": described.replace(_WITHOUT_NAMES, ""),
        "guarantee": None,
        "stated_guarantee": guarantee,
        "participation": "protected" if "participation protected" in guarantee else "public",
        "campaign": None if campaign is None else campaign[3],
        "question": question,
        "linked": _WITHOUT_NAMES not in mechanism,
    }
