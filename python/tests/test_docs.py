"""Runs the Python blocks in the pages about the package in order, as a reader would enter them."""

import re
from pathlib import Path

import pytest

BLOCK = re.compile(r"(?:<!-- test: file (?P<file>\S+) -->\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def run(path):
    """Runs the blocks of a page; returns their number."""
    page = path.read_text(encoding="utf-8")
    names, ran = {"__name__": "__main__"}, 0
    for block in BLOCK.finditer(page):
        if block["file"]:
            Path(block["file"]).write_text(block["text"])
        if block["language"] == "python":
            line = page.count("\n", 0, block.start("text"))
            code = compile("\n" * line + block["text"], path, "exec")
            exec(code, names)
            ran += 1
    return ran


def test_the_page_is_true(root, tmp_path, monkeypatch, capsys):
    for package in ["polars", "pandas", "pyarrow", "duckdb", "numpy", "distributed"]:
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    assert run(root / "docs/python.md") >= 8
    printed = capsys.readouterr().out
    for expected in ["unknown policy 'dfr' (did you mean 'drf'?)", "{'A': '3', 'B': '2'}", "[1, 2]", "'usage'"]:
        assert expected in printed, expected


def test_the_page_about_environments_is_true(root, tmp_path, monkeypatch, capsys):
    pytest.importorskip("gymnasium")
    monkeypatch.chdir(tmp_path)
    assert run(root / "docs/howto/gym.md") == 2
    # The slowdown of one episode, and those of several episodes in eight environments.
    assert len([float(line) for line in capsys.readouterr().out.splitlines()]) > 8


def test_the_page_about_policies_is_true(root, tmp_path, monkeypatch, capsys):
    for package in ["numpy", "cvxpy"]:
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    assert run(root / "docs/howto/own-policy.md") == 4
    printed = capsys.readouterr().out
    assert "by-formula" in printed and "up-to-one-task holds \n" in printed
    assert "whole fails B runs 0 tasks; with the allocation of A, it would run 1 task\n" in printed
