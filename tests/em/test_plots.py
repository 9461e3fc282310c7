"""Figures: reproducible files, and a clear error without matplotlib."""

import sys

import pytest
from experiments.figure_files import drawn_svg, has_matplotlib

from crowdveil.em.plots import bar_plot
from crowdveil.errors import SettingsError


def test_a_plot_names_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plot without matplotlib is refused with the command that installs it."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    assert not has_matplotlib()
    with pytest.raises(SettingsError, match=r"plots need matplotlib.*pip install 'crowdveil\[plots\]'"):
        bar_plot(None, ["a"], [1.0], "errors")


def test_the_same_figure_gives_the_same_bytes() -> None:
    """SVG files carry no date."""
    files = [drawn_svg(lambda figure: figure.add_subplot().plot([0, 1], [1, 0]), size=(2, 1)) for _ in range(2)]

    assert has_matplotlib()
    assert files[0] == files[1]


@pytest.mark.slow
def test_every_figure_of_a_notebook_is_shown() -> None:
    """In a kernel whose first figure is one of ours, our second one and one of the user are shown, too."""
    plot = "estimate.plot()"
    cells = [
        "import crowdveil, pandas\n"
        "answers = pandas.DataFrame({'task': [*'aabb'], 'worker': [*'uvuv'], 'label': [*'xxxy']})\n"
        f"estimate = crowdveil.MajorityVote().fit(crowdveil.Reports.from_frame(answers))\n{plot}",
        plot,
        "import matplotlib.pyplot as plt\nplt.plot([0, 1])",
    ]
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()

    assert [sum("image/png" in out.get("data", {}) for out in cell.outputs) for cell in notebook.cells] == [1, 1, 1]
