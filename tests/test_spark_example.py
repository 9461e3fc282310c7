"""The Spark example of the documents, where pyspark and Java are installed."""

import re
from pathlib import Path
from shutil import copy, which

import pytest
from click.testing import CliRunner

from crowdveil.cli import main

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(which("java") is None, reason="needs Java")
def test_spark_writes_what_infer_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example writes a folder, `infer` reads it, and Spark reads the truths of all tasks."""
    pytest.importorskip("pyspark")
    monkeypatch.chdir(tmp_path)
    copy(DOCS / "samples" / "labels.csv", "labels.csv")
    page = (DOCS / "how-to" / "infer-at-scale.md").read_text("utf-8")
    names: dict[str, object] = {}
    exec(re.findall(r"```py\n(.*?)```", page, re.DOTALL)[0], names)

    found = CliRunner().invoke(main, ["infer", "from-spark", "--format", "parquet", "--out", "of-spark"])
    tasks = {line.split(",")[0] for line in Path("labels.csv").read_text("utf-8").split()[1:]}

    assert found.exit_code == 0, found.output
    assert names["spark"].read.parquet("of-spark/truths.parquet").count() == len(tasks)  # type: ignore[attr-defined]
