"""The blocks of Python in docs/python.md run, one after the other, as a reader would enter them."""

import re
from pathlib import Path

import pytest

BLOCK = re.compile(r"(?:<!-- test: file (?P<file>\S+) -->\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_page_is_true(root, tmp_path, monkeypatch, capsys):
    for package in ["polars", "pandas", "pyarrow", "duckdb", "distributed"]:
        pytest.importorskip(package)
    page = (root / "docs/python.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names, ran = {"__name__": "__main__"}, 0
    for block in BLOCK.finditer(page):
        if block["file"]:
            Path(block["file"]).write_text(block["text"])
        if block["language"] == "python":
            line = page.count("\n", 0, block.start("text"))
            code = compile("\n" * line + block["text"], root / "docs/python.md", "exec")
            exec(code, names)
            ran += 1
    assert ran >= 8
    printed = capsys.readouterr().out
    for expected in ["unknown policy 'dfr' (did you mean 'drf'?)", "{'A': '3', 'B': '2'}", "[1, 2]", "'usage'"]:
        assert expected in printed, expected
