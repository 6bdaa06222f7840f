"""Fixtures and helpers: small traces and plans, the command line, and tables as plain rows."""

import os
import signal
import subprocess
import sysconfig
from pathlib import Path

import pytest

import plimsoll

TRACE = """job,user,submit_s,duration_s,tasks,cpu,memory_gib
etl-1,ads,0,120,40,1,4
train-7,search,5.5,20.5,8,4,16
etl-2,ads,7,60,3,2,2
"""

MACHINES = "4x16c64g"

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def root():
    """Returns the folder of the repository."""
    assert (ROOT / "experiments").is_dir(), f"{ROOT} is not the repository"
    return ROOT


@pytest.fixture
def ctrl_c():
    """Makes an interrupt raise KeyboardInterrupt, also in the background of a shell, where processes start with interrupts ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Returns the working directory: a new folder with `trace.csv`."""
    monkeypatch.chdir(tmp_path)
    Path("trace.csv").write_text(TRACE)
    return tmp_path


@pytest.fixture
def plan():
    """Returns a plan as a dict."""
    return {
        "name": "small",
        "policies": ["drf", "fifo"],
        "cluster": {"machines": MACHINES},
        "workload": {"trace": "trace.csv"},
    }


def replay(trace="trace.csv", machines=MACHINES, policies=("drf", "slot:12"), **more):
    """Replays a trace without progress."""
    return plimsoll.replay(trace, machines, list(policies), quiet=True, **more)


def program(*args, **more):
    """Runs the command line; returns the completed process."""
    path = Path(sysconfig.get_path("scripts")) / "plimsoll"
    return subprocess.run([path, *map(os.fspath, args)], capture_output=True, text=True, timeout=120, **more)


def rows(results, name):
    """Returns the rows of a table of results as dicts, by means of pyarrow."""
    pyarrow = pytest.importorskip("pyarrow")
    found = pyarrow.table(results.table(name)).to_pylist()
    assert len(found) == len(results.table(name))
    return found


def files(folder):
    """Returns the bytes of all files of a folder except the record of the run."""
    found = (path for path in Path(folder).rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found if path.name != "run.json"}


def stored(folder):
    """Returns the rows of all Parquet files of a folder by table, sorted by their text. Reads them without Plimsoll."""
    parquet = pytest.importorskip("pyarrow.parquet")
    tables = {}
    for path in Path(folder).rglob("*.parquet"):
        with parquet.ParquetFile(path) as file:
            tables.setdefault(path.stem, []).extend(file.read().to_pylist())
    return {name: sorted(map(repr, rows)) for name, rows in tables.items()}
