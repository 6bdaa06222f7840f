"""A type checker finds misspelt options and tables."""

import subprocess
import sys

import pytest

pytest.importorskip("mypy")

#: Lines, and a part of the message about each; None if the line is correct.
LINES = [
    ('results = plimsoll.replay("trace.csv", machines="2x2c2g", policies="drf", placement="spread", tasks=True)', None),
    ("results.runs", None),
    ("results.jbos", '"Results" has no attribute "jbos"'),
    ('plimsoll.replay("trace.csv", machines="2x2c2g", policies="drf", placment="spread")', 'keyword argument "placment"'),
    ('plimsoll.replay("trace.csv", machines="2x2c2g", policies="drf", placement=3)', "placement"),
    ('plimsoll.check("drf", effort="quick", whole_task=True)', 'keyword argument "whole_task"'),
    ('plimsoll.court("kueue-14543", rounds="many")', "rounds"),
    ('plimsoll.compare(results, results, metrics="wait_mean_s")', 'keyword argument "metrics"'),
    ('plimsoll.plot(results, onyl="speeds")', 'keyword argument "onyl"'),
    ('plimsoll.trace_stats("trace.csv", machine="2x2c2g")', 'keyword argument "machine"'),
    ('plimsoll.solve("instance.toml", polices=["drf"])', 'keyword argument "polices"'),
]


def test_mypy_finds_what_the_program_would_refuse(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("\n".join(["import plimsoll", *(line for line, _ in LINES), ""]))
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", tmp_path, program],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    found = {int(line.split(":")[1]): line for line in checked.stdout.splitlines() if ": error: " in line}
    for number, (line, message) in enumerate(LINES, start=2):
        assert (message is None) == (number not in found), (line, checked.stdout + checked.stderr)
        assert message is None or message in found[number], (line, found[number])
