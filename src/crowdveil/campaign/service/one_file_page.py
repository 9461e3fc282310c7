"""One-file page of a campaign: the worker's page, the campaign and its pictures in one HTML file.

The page connects to nothing (connect-src 'none'); it gives the report as a file and as text. Its policy names the
SHA-256 of the script and of the style, so that no other one runs.
"""

import base64
import json
import re
from importlib.resources import files

from crowdveil.campaign.files.folder import CampaignFolder
from crowdveil.campaign.rules.document import Campaign
from crowdveil.channels.guarantee import Guarantee
from crowdveil.channels.rounding import format_odds, format_three_decimals, percent_rounded_up
from crowdveil.display.html import policy_source
from crowdveil.errors import SettingsError

KIND = "one-file page"
MAX_BYTES = 20_000_000
"""Largest size of a page; telephones refuse to open larger ones."""
LANGUAGES = ("en", "de")
POLICY = (
    "default-src 'none'; script-src {script}; style-src {style}; img-src blob:; connect-src 'none'; base-uri 'none'; "
    "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
ICON_LINK = '<link rel="icon" href="../static/icon.svg" type="image/svg+xml">\n'
STYLE_LINK = '<link rel="stylesheet" href="../static/style.css">\n'
SCRIPT_LINK = '<script type="module" src="../static/page.mjs"></script>\n'
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(device|hpke)\.mjs";\n', re.MULTILINE)


def one_file_page(folder: CampaignFolder) -> bytes:
    """Return the HTML of the page, the same bytes for the same campaign.

    Raises:
        CampaignError, CertificateError: the folder is damaged.
        SettingsError: the page is larger than `MAX_BYTES`, or the campaign has a relay.
    """
    if folder.campaign.relay is not None:
        raise SettingsError(
            "a campaign with a relay has no one-file page",
            value=folder.campaign.name,
            hint="Workers answer with the page of their links, or with crowdveil campaign answer.",
        )
    names = ("device.mjs", "hpke.mjs", "page.mjs", "style.css")
    device, sealing, screens, style = map(_static_text, names)
    messages = {language: json.loads(_static_text(f"messages.{language}.json")) for language in LANGUAGES}
    embedded = json.dumps({"files": _base64_campaign_files_by_path(folder), "messages": messages}).replace(
        "<", "\\u003c"
    )
    script = device + sealing + _IMPORT.sub("", screens)
    policy = POLICY.format(script=policy_source(script), style=policy_source(style))
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>\n'
        f'<script type="application/json" id="embedded">{embedded}</script>\n'
        f'<script type="module">{script}</script>\n'
    )
    html = _static_text("index.html")
    for link, text in ((ICON_LINK, ""), (STYLE_LINK, ""), (SCRIPT_LINK, head)):
        html = html.replace(link, text)
    page = html.encode()
    if len(page) > MAX_BYTES:
        raise SettingsError(
            f"a one-file page has at most {MAX_BYTES:,} bytes",
            value=f"{len(page):,}",
            hint="Use smaller pictures, or a service.",
        )
    return page


def odds_sentences_by_language(campaign: Campaign, answers: int) -> dict[str, str]:
    """Return what devices say about the odds of one answer and of all, by language; numbers are rounded up.

    Args:
        campaign: the campaign.
        answers: largest number of answers of one worker.
    """
    single, total = campaign.epsilon, campaign.worker_epsilon
    values = {"count": str(answers), "epsilon": format_three_decimals(single), "total": format_three_decimals(total)}
    for factor, sure, loss in (("factor", "sure", single), ("all", "allSure", total)):
        values[factor] = format_odds(loss)
        values[sure] = percent_rounded_up(Guarantee(epsilon=loss).largest_guess_probability).removesuffix(" %")
    found = {}
    for language in LANGUAGES:
        messages = json.loads(_static_text(f"messages.{language}.json"))
        text = " ".join(messages[f"promise.{part}"] for part in ("answer", "worker"))
        marks = str.maketrans(",.", ".,") if language == "de" else {}
        text = text.format(**{name: value.translate(marks) for name, value in values.items()})
        found[language] = text.replace("more than", messages["promise.above"])
    return found


def _static_text(name: str) -> str:
    return (files("crowdveil.campaign.service") / "static" / name).read_text("utf-8")


def _base64_campaign_files_by_path(folder: CampaignFolder) -> dict[str, str]:
    """Return document, assignment parts and pictures in base64, by their paths below /v1/campaigns/."""
    campaign = folder.campaign
    pictures = {task.picture.sha256 for task in campaign.tasks if task.picture is not None}
    contents = {
        campaign.name: campaign.to_bytes(),
        **{f"{campaign.name}/parts/{k}": folder.checked_part_bytes(k) for k in range(len(campaign.assignment_parts))},
        **{f"{campaign.name}/pictures/{digest}": folder.picture(digest) for digest in sorted(pictures)},
    }
    return {path: base64.b64encode(data).decode() for path, data in contents.items()}
