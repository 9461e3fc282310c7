"""Statement of privacy as an HTML page of its own, one sheet of paper when printed."""

from collections.abc import Sequence

from crowdveil.display.html import Html, filled, joined_html
from crowdveil.privacy.largest_posterior import sentences_on_adversary_certainty
from crowdveil.privacy.statement import PrivacyStatement, statement_sentences

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Statement of privacy</title>
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
@page {{ size: A4; margin: 15mm }}
body {{ font: 11pt/1.4 system-ui, sans-serif; color: #1f2933; background: #fff; max-width: 45rem; margin: 1rem auto;
  padding: 0 1rem; overflow-wrap: anywhere }}
h1 {{ font-size: 1.4rem }} h2 {{ font-size: 1.05rem; margin-bottom: .2rem }}
dl {{ display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 0 }} dd {{ margin: 0 }}
dt {{ color: #52606d }}
.first {{ border-left: 4px solid #0f766e; padding-left: .8rem; font-size: 1.1rem }}
ul {{ margin-top: .2rem; padding-left: 1.2rem }}
@media print {{ body {{ margin: 0; padding: 0; max-width: none; font-size: 9pt; line-height: 1.3 }} }}
</style></head><body>
<h1>Statement of privacy</h1>
<dl>{filed}</dl>
{worst}
{facts}
<h2>Privacy</h2>
<p>{text}</p>
{uncovered}
</body></html>
"""
"""Template; braces of the style are doubled."""


def statement_page(
    statement: PrivacyStatement, facts: Sequence[tuple[str, str]], filed: Sequence[tuple[str, str]]
) -> str:
    """Return the statement as a self-contained page; arguments as `statement_text`."""
    worst: tuple[str, ...] = ()
    if statement.per_answer is not None:
        worst = sentences_on_adversary_certainty(statement.per_answer, statement.per_worker)
    stated = [text for text in statement_sentences(statement) if text not in worst]
    digest = statement.certificate_sha256
    known = [*facts, *([] if digest is None else [("Certificate, SHA-256", digest)])]
    known = known if statement.status == "protected" else []
    uncovered = [filled("<li>{text}</li>", text=text) for text in statement.not_covered]
    page = filled(
        PAGE,
        filed=_definition_list_rows(filed),
        worst=filled('<p class="first">{text}</p>', text=" ".join(worst)) if worst else Html(""),
        text=" ".join(stated),
        facts=filled("<h2>Facts</h2><dl>{pairs}</dl>", pairs=_definition_list_rows(known)) if known else Html(""),
        uncovered=filled("<h2>Not covered</h2><ul>{rows}</ul>", rows=joined_html(uncovered)) if uncovered else Html(""),
    )
    return page.replace(" %", "\N{NO-BREAK SPACE}%")


def _definition_list_rows(rows: Sequence[tuple[str, str]]) -> Html:
    return joined_html([filled("<dt>{name}</dt><dd>{text}</dd>", name=name, text=text) for name, text in rows])
