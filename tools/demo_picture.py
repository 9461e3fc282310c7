"""Picture of the documentation: the first chart of the demo's page, as an SVG file that follows the color scheme.

Usage: crowdveil demo --out shown && python tools/demo_picture.py shown/demo.html docs/assets/demo.svg
"""

import re
import sys
from pathlib import Path

COMMAND = "crowdveil demo; tools/demo_picture.py"
ROOT = '<svg xmlns="http://www.w3.org/2000/svg" width="720" height="368" '
FONT = "svg { font: 14px system-ui, sans-serif; background: var(--card); }"


def standalone(page: str) -> str:
    """Return the first chart of a page with the rules of its style sheet that concern it."""
    chart = page[page.index("<svg ") : page.index("</svg>")]
    sheet = page[page.index("<style>") : page.index("</style>")].replace("} svg", "}\nsvg")
    names = {name for used in re.findall(r'class="([^"]*)"', chart) for name in used.split()}
    rules = re.findall(r"^svg [^{]*\{[^}]*\}", sheet, re.MULTILINE)
    classes = {rule: set(re.findall(r"\.([a-z][\w-]*)", rule.partition("{")[0])) for rule in rules}
    kept = [rule for rule in rules if (classes[rule] and classes[rule] <= names) or rule.startswith("svg text {")]
    light = re.findall(r"^:root \{[^}]*\}", sheet, re.MULTILINE)
    dark = re.findall(r"^@media \(prefers-color-scheme: dark\) \{\s*:root \{[^}]*\}\s*\}", sheet, re.MULTILINE)
    style = "\n".join([*light, *dark, FONT, *kept])
    head, end, rest = chart.removeprefix("<svg ").partition("</desc>")
    return f"{ROOT}{head}{end}<!-- {COMMAND} --><style>\n{style}\n</style>{rest}</svg>\n"


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(standalone(Path(sys.argv[1]).read_text("utf-8")), "utf-8")
