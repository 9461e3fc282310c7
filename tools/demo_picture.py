"""Picture of the documentation: the first chart of the demo's page, as an SVG file that follows the color scheme.

Usage: crowdveil demo --out shown && python tools/demo_picture.py shown/demo.html docs/assets/demo.svg
"""

import re
import sys
from pathlib import Path

COMMAND = "crowdveil demo; tools/demo_picture.py"
ROOT = '<svg xmlns="http://www.w3.org/2000/svg" width="720" height="368" '


def standalone(page: str) -> str:
    """Return the first chart of a page with the rules of its style sheet that concern it."""
    chart = page[page.index("<svg ") : page.index("</svg>")]
    sheet = page[page.index("<style>") + 7 : page.index("</style>")]
    used = set(re.findall(r'class="([^"]*)"', chart))
    names = {name for names in used for name in names.split()}
    rules = re.findall(r"^svg [^{]*\{[^}]*\}", sheet.replace("} svg", "}\nsvg"), re.MULTILINE)
    kept = [
        rule
        for rule in rules
        if set(re.findall(r"\.([a-z][\w-]*)", rule.partition("{")[0])) & names or "text {" in rule
    ]
    colors = re.findall(r"^:root \{[^}]*--(?:page|line-1)[^}]*\}", sheet, re.MULTILINE)
    dark = re.findall(r"^@media \(prefers-color-scheme: dark\) \{\s*:root \{[^}]*\}\s*\}", sheet, re.MULTILINE)
    font = "svg { font: 14px system-ui, sans-serif; background: var(--card); }"
    style = "\n".join([*colors, *dark, font, *kept])
    head, rest = re.match(r"<svg ([^>]*>(?:<title.*?</title>)?(?:<desc.*?</desc>)?)(.*)", chart, re.DOTALL).groups()
    return f"{ROOT}{head}<!-- {COMMAND} --><style>\n{style}\n</style>{rest}</svg>\n"


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(standalone(Path(sys.argv[1]).read_text("utf-8")), "utf-8")
