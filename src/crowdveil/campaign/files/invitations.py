"""Links of the workers: a CSV file, a printable sheet with QR codes, and the hashes that the service keeps.

Each token comes from `secrets`. The links exist in `links.csv` and `links.html` only (mode 0600).
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlsplit

import segno
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from crowdveil.answers.write_reports import formula_names_warning
from crowdveil.campaign.files.folder import (
    LINKS_FILE,
    SHEET_FILE,
    TOKENS_FILE,
    WORKERS_FILE,
    CampaignFolder,
    TokenEntry,
    tokens_bytes,
)
from crowdveil.campaign.rules.document import Campaign, spaced_name_to_compare
from crowdveil.campaign.rules.token import Link, Token, token_hash
from crowdveil.campaign.settings.public_lists import read_rows
from crowdveil.display.html import policy_source
from crowdveil.errors import SettingsError
from crowdveil.files.atomic_write import Outputs, write_outputs
from crowdveil.files.csv_rows import csv_text
from crowdveil.hints import advice, command_advice, one_of

KIND = "links"
MAX_SHEET = 2_000
"""Largest number of links on a printable sheet."""
POLICY = "default-src 'none'; style-src {style}; base-uri 'none'; form-action 'none'"
PHRASES = {
    "en": {
        "worker": "Worker",
        "scan": "Scan the code, or open this link. It works once.",
        "paste": "Open the page that you were given, and paste or scan this link. It works once.",
        "compare": "The device must show these 22 characters. Compare them with those of other people who were asked, "
        "and with the public announcement: this sheet alone proves nothing.",
    },
    "de": {
        "worker": "Person",
        "scan": "Scannen Sie den Code, oder öffnen Sie diesen Link. Er gilt einmal.",
        "paste": "Öffnen Sie die Seite, die Sie erhalten haben, und fügen Sie diesen Link ein. Er gilt einmal.",
        "compare": "Das Gerät muss diese 22 Zeichen zeigen. Vergleichen Sie sie mit denen anderer Befragter und mit "
        "der öffentlichen Bekanntgabe: Dieses Blatt allein beweist nichts.",
    },
}
"""Sentences of the sheet by language; other languages get English ones."""


@dataclass(frozen=True, kw_only=True)
class Invitation:
    """Links that were written.

    Attributes:
        campaign: the campaign.
        slots: slots of the links.
        files: paths of the files.
        warnings: sentences on what a person may have overlooked.
    """

    campaign: Campaign
    slots: tuple[int, ...]
    files: tuple[Path, ...]
    warnings: tuple[str, ...]


def write_first_links(path: Path) -> Invitation:
    """Write one new link for each worker of a campaign.

    Raises:
        CampaignError, CertificateError: the folder is damaged.
        SettingsError: the links exist already, or the folder cannot be written or is open to other users.
    """
    folder = CampaignFolder(path)
    if (path / TOKENS_FILE).exists():
        raise SettingsError(
            "the links of a campaign are made once",
            value=str(path / TOKENS_FILE),
            hint=one_of(
                command_advice(
                    "for a lost link use {replace}", "for a lost link replace that of its worker", replace="WORKER"
                ),
                "for a changed campaign make a new one",
            ),
        )
    tokens = [Token.new(slot) for slot in range(folder.campaign.slots)]
    return _write_links_sheet_and_tokens(folder, tokens, (), LINKS_FILE, SHEET_FILE)


def replace_link(path: Path, worker: int | str, *, accept_second_report: bool = False) -> Invitation:
    """Revoke the link of a worker and write a new one, into files of its own.

    The service keeps an old link that has stored a report. A campaign without a service cannot know, so the second
    report must be accepted: if the worker has reported already, epsilon of both reports adds up.

    Args:
        path: folder of the campaign.
        worker: slot of the worker, or the name in the list of workers.
        accept_second_report: whether a second report, with a second epsilon, is accepted.

    Raises:
        CampaignError, CertificateError: the folder is damaged, or has no links.
        SettingsError: no such worker, or a second report that is possible and not accepted.
    """
    folder = CampaignFolder(path)
    slot = _slot_of(worker, _worker_names(folder), folder.campaign.slots)
    if folder.campaign.url is None and not accept_second_report:
        raise SettingsError(
            "without a service it is unknown whether the old link was used",
            value=slot,
            hint="If the worker may report twice, the epsilons of both reports add up: accept it"
            f"{advice(' ({accept_second_report})', accept_second_report=True)}, and tell the worker.",
        )
    revoked = [
        TokenEntry(entry.slot, entry.hash, revoked=entry.revoked or entry.slot == slot) for entry in folder.tokens
    ]
    return _write_links_sheet_and_tokens(
        folder, [Token.new(slot)], revoked, f"link-{slot:04}.csv", f"link-{slot:04}.html"
    )


def _slot_of(worker: int | str, names: Sequence[str], slots: int) -> int:
    """Return the slot of a worker who is given by slot (3, or slot:3 where a worker is named 3) or name.

    Raises:
        SettingsError: no such worker, or the name of one that is the slot of another.
    """
    text = unicodedata.normalize("NFC", str(worker).strip())
    found = [slot for slot in range(slots) if text in (str(slot), f"slot:{slot}", *names[slot : slot + 1])]
    if len(found) == 1:
        return found[0]
    near = get_close_matches(text, names, n=1)
    choices = " or ".join(f"slot:{slot}" for slot in found)
    hint = f"It is the slot or name of several workers: write {choices}." if found else ""
    raise SettingsError(
        f"a worker is one slot from 0 to {slots - 1}{', or one name of the list' if names else ''}",
        value=worker,
        hint=hint or (f"Did you mean {near[0]!r}?" if near else "links.csv has the slot of each link."),
    )


def _write_links_sheet_and_tokens(
    folder: CampaignFolder, tokens: Sequence[Token], before: Sequence[TokenEntry], links: str, sheet: str
) -> Invitation:
    """Write the links of new tokens, and `tokens.json` with these after the earlier ones."""
    campaign, names = folder.campaign, _worker_names(folder)
    made = [Link(campaign.url, campaign.name, token) for token in tokens]
    entries = [*before, *(TokenEntry(token.slot, token_hash(campaign.digest, token)) for token in tokens)]
    header = ("slot", "name", "link") if names else ("slot", "link")
    rows = [(link.token.slot, *names[link.token.slot : link.token.slot + 1], link.text) for link in made]
    contents: dict[str, bytes | str] = {links: csv_text(header, rows)}
    warnings = [*formula_names_warning("csv", names)]
    if len(made) <= MAX_SHEET:
        contents[sheet] = render_link_sheet(campaign, made, names)
    else:
        warnings.append(f"No printable sheet was written: it holds at most {MAX_SHEET:,} links.")
    contents[TOKENS_FILE] = tokens_bytes(entries, campaign)
    if _is_versioned(folder.path):
        warnings.append(
            "The folder lies inside a git repository. Do not commit the links: anyone who has one can use it."
        )
    outputs = Outputs(folder=folder.path, names=tuple(contents), kind=KIND, private=True)
    write_outputs(outputs, dict(contents))
    return Invitation(
        campaign=campaign,
        slots=tuple(token.slot for token in tokens),
        files=tuple(outputs.paths),
        warnings=tuple(warnings),
    )


def render_link_sheet(campaign: Campaign, links: Sequence[Link], names: Sequence[str] = ()) -> str:
    """Return a printable page with a card per link: QR code, link, worker, host, and the characters people compare."""
    environment = Environment(
        loader=PackageLoader("crowdveil.campaign.files", "templates"), autoescape=True, undefined=StrictUndefined
    )
    style = (files("crowdveil.campaign.files") / "templates" / "links.css").read_text("utf-8")
    phrases = PHRASES.get(campaign.language.partition("-")[0], PHRASES["en"])
    cards = [
        {
            "code": Markup(segno.make(link.text, error="m", micro=False).svg_inline(omitsize=True)),
            "link": link.text,
            "worker": names[link.token.slot] if names else f"{phrases['worker']} {link.token.slot}",
        }
        for link in links
    ]
    return environment.get_template("links.html").render(
        campaign=campaign,
        cards=cards,
        style=Markup(style),
        policy=POLICY.format(style=policy_source(style)),
        host=None if campaign.url is None else urlsplit(campaign.url).netloc,
        compared=spaced_name_to_compare(campaign.name),
        phrases=phrases,
    )


def _worker_names(folder: CampaignFolder) -> list[str]:
    """Return the names of the workers by slot; empty without `workers.csv`."""
    path, slots = folder.path / WORKERS_FILE, folder.campaign.slots
    columns = ("slot", "name")
    rows = list(read_rows(path, columns, required=columns).values()) if path.exists() else []
    if rows and [row["slot"] for row in rows] != [str(slot) for slot in range(slots)]:
        raise SettingsError(f"{WORKERS_FILE} must name each worker once, in order of the slots", value=len(rows))
    return [row["name"] for row in rows]


def _is_versioned(path: Path) -> bool:
    """Return whether a folder lies in a working tree of git."""
    return any((parent / ".git").exists() for parent in (path.absolute(), *path.absolute().parents))
