"""Tests of Plimsoll in a process: Ctrl-C, threads, memory."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import replay, rows

import plimsoll

LONG = """
import signal, sys, plimsoll
signal.signal(signal.SIGINT, signal.default_int_handler)
print("starts", flush=True)
try:
    plimsoll.run(sys.argv[1], *sys.argv[2:], seeds=50, changes={"workload.hours": 24}, quiet=True, jobs=1)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    raise
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("out", [["mine"], []])
def test_ctrl_c_ends_a_run_and_leaves_nothing_half_written(root, tmp_path, out):
    (tmp_path / "temporary").mkdir()
    args = [sys.executable, "-c", LONG, root / "experiments/facebook.toml", *out]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    process = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment)
    assert process.stdout.readline() == "starts\n"
    time.sleep(1.5)
    asked = time.monotonic()
    process.send_signal(signal.SIGINT)
    printed, told = process.communicate(timeout=30)
    assert time.monotonic() - asked < 10
    assert printed == "interrupted\n" and process.returncode in (-signal.SIGINT, 130), told
    assert list((tmp_path / "temporary").iterdir()) == []
    listed = " ".join(path.read_text() for path in tmp_path.glob("mine/done/*.json"))
    for path in (path for path in (tmp_path / "mine").rglob("*") if path.is_file()):
        assert path.suffix == ".json" or (path.suffix == ".parquet" and path.name in listed), path


def test_another_call_goes_on_after_an_interrupted_one(folder, root, ctrl_c):
    interrupt = threading.Timer(0.7, signal.raise_signal, [signal.SIGINT])
    try:
        interrupt.start()
        with pytest.raises(KeyboardInterrupt):
            plimsoll.run(root / "experiments/facebook.toml", seeds=50, changes={"workload.hours": 24}, quiet=True, jobs=1)
    finally:
        interrupt.cancel()
    assert len(replay().jobs) == 6


def test_threads_at_once_give_the_results_of_one_after_the_other(folder):
    jobs = [["drf"], ["fifo"], ["slot:12"], ["asset"]] * 3
    after_the_other = [rows(replay(policies=policies), "jobs") for policies in jobs[:4]] * 3
    with ThreadPoolExecutor(2) as threads:
        at_once = list(threads.map(lambda policies: rows(replay(policies=policies), "jobs"), jobs))
    assert at_once == after_the_other


def test_plans_of_threads_are_their_own(folder, plan):
    def end(cores):
        results = plimsoll.run({**plan, "cluster": {"machines": f"1x{cores}c400g"}}, quiet=True)
        return rows(results, "runs")[0]["end_us"]

    cores = [4, 8, 16, 40] * 2
    expected = [end(one) for one in cores]
    assert len(set(expected)) > 2
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(end, cores)) == expected


def test_the_interpreter_goes_on_meanwhile(folder, root):
    beats, ended = [], threading.Event()

    def beat():
        while not ended.wait(0.01):
            beats.append(time.monotonic())

    other = threading.Thread(target=beat)
    other.start()
    start = time.monotonic()
    changes = {"workload.hours": 0.1, "measure.from": "1m", "measure.to": "5m"}
    plimsoll.run(root / "experiments/memory.toml", seeds=1, changes=changes, quiet=True)
    span = time.monotonic() - start
    ended.set()
    other.join()
    assert len(beats) > span / 0.2


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_memory_does_not_grow(folder):
    pyarrow = pytest.importorskip("pyarrow")
    csv = pytest.importorskip("pyarrow.csv")
    trace = csv.read_csv("trace.csv")
    # Many rows of one job, so that a copy that is not freed is visible.
    trace = trace.set_column(4, "tasks", pyarrow.array([1, 1, 1])).slice(0, 1)
    trace = pyarrow.concat_tables([trace] * 5_000)

    def resident():
        gc.collect()
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    pytest.importorskip("numpy")
    own = [plimsoll.policy("running"), plimsoll.policy(rank=lambda users: users.running, name="own")]

    def once():
        results = plimsoll.replay(trace, "400x16c64g", ["drf", *own], quiet=True)
        assert pyarrow.table(results.runs)["tasks"].to_pylist() == [5_000] * 3
        with pytest.raises(plimsoll.InputError):
            plimsoll.replay(trace, "4x", "drf", quiet=True)

    for _ in range(10):
        once()
    before, files = resident(), len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(100):
        once()
    assert resident() - before < 40 << 20
    assert len(list(Path("/proc/self/fd").iterdir())) <= files
