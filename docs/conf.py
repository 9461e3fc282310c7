"""Sphinx configuration of the documentation; every warning of the build is an error (`sphinx-build -W`)."""

import re
import sys
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))

project = "crowdveil"
copyright = "crowdveil maintainers, Apache-2.0"
version = release = installed_version("crowdveil")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "mathml"]
exclude_patterns = ["_build"]
# ref.python: attributes of one name in several classes; no page links to them by that name.
suppress_warnings = ["myst.header", "misc.highlighting_failure", "ref.python"]

myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
myst_dmath_double_inline = True

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_preserve_defaults = True
# Functions that authors of mechanisms define; their base class has them.
autodoc_default_options = {"exclude-members": "examples, from_settings, marginal_channel"}
napoleon_use_ivar = True
napoleon_use_rtype = False
default_role = "code"

html_math_renderer = "mathml"
html_static_path = ["assets"]
html_css_files = ["style.css"]
html_theme = "furo"
html_title = f"crowdveil {release}"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"source_directory": "docs/"}


def escape_markup(_app: Any, _what: str, _name: str, _obj: Any, _options: Any, lines: list[str]) -> None:
    """Escape `|`, `*` and final underscores outside backticks; join names of one line (`low, high: ...`) to one field.

    Docstrings are plain text, not reStructuredText.
    """
    for number, text in enumerate(lines):
        line = re.sub(r"^ +\w+(, \w+)+(?=: )", lambda m: m[0].replace(", ", ","), text)
        lines[number] = re.sub(r"(`[^`]*`)|([|*]|(?<=\w)_(?!\w))", lambda m: m[1] or "\\" + m[2], line)


def describe_groups_once(_app: Any, _what: str, _name: str, _obj: Any, _options: Any, lines: list[str]) -> None:
    """Keep the text of grouped parameters (`low, high: ...`) for the first, and refer the others to it."""
    fields = re.split(r"^(?=:)", "\n".join(lines), flags=re.MULTILINE)
    first, described = "", ""
    for number, field in enumerate(fields):
        if match := re.match(r":param (\w+): (.*)", field, re.DOTALL):
            if match[2].strip() == described:
                fields[number] = f":param {match[1]}: as `{first}`.\n"
            else:
                first, described = match[1], match[2].strip()
    lines[:] = "".join(fields).split("\n")


def setup(app: Any) -> None:
    """Register the escaping before sections of docstrings are parsed, the grouping after (called by Sphinx)."""
    app.connect("autodoc-process-docstring", escape_markup, priority=100)
    app.connect("autodoc-process-docstring", describe_groups_once, priority=900)
