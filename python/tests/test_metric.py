"""Metrics that are functions of the finished jobs of a run."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy
import pytest
from conftest import rows

import plimsoll

TRACE = "job,user,submit_s,duration_s,tasks,cpu\na,ann,0,100,1,1\nb,bob,0,100,1,1\nc,ann,0,100,2,1\nd,bob,10,50,1,1\n"


def plan(metric, **more):
    Path("jobs.csv").write_text(TRACE)
    cluster, workload = {"machines": "1x1c"}, {"trace": "jobs.csv"}
    return {"name": "m", "policies": ["fifo"], "cluster": cluster, "workload": workload, "metric": metric, **more}


def late(jobs):
    return (jobs.wait_s > 100).mean()


def test_a_function_is_a_column_of_runs(folder):
    seen = {}

    def look(jobs):
        seen.update(user=list(jobs.user), wait=list(jobs["wait_s"]), tasks=list(jobs.tasks), length=len(jobs), work=list(jobs.work_s))
        return None

    metrics = {"late": plimsoll.metric(late, unit="fraction", better="lower"), "nothing": plimsoll.metric(look)}
    found = plimsoll.run(plan(metrics), quiet=True)
    [row] = rows(found, "runs")
    # One core: a until 100 s, b until 200 s, c until 400 s, then d.
    assert seen == {"user": ["ann", "bob", "ann", "bob"], "wait": [0, 100, 200, 390], "tasks": [1, 1, 2, 1], "length": 4, "work": [100, 100, 200, 50]}
    assert (row["late"], row["nothing"]) == (0.5, None)
    assert found.why("d", own=list(metrics.values()))["jobs"][0]["wait_us"] == 390_000_000


def test_an_expression_of_the_same_columns_has_the_same_value(folder):
    metrics = {"late": plimsoll.metric(late), "late_too": {"expr": "mean(wait_s > 100)"}}
    [row] = rows(plimsoll.run(plan(metrics), quiet=True), "runs")
    assert row["late"] == row["late_too"]


def test_mistakes_are_errors(folder):
    with pytest.raises(TypeError, match="expected a function"):
        plimsoll.metric("late")
    with pytest.raises(plimsoll.InputError, match="name"):
        plimsoll.metric(late, name="a b")
    with pytest.raises(plimsoll.InputError, match="metric.late.unit.*'h'"):
        plimsoll.run(plan({"late": plimsoll.metric(late, unit="h")}), quiet=True)
    with pytest.raises(plimsoll.InputError, match="metric.late.function.*'missing'"):
        plimsoll.run(plan({"late": {"function": "missing"}}), quiet=True)
    with pytest.raises(plimsoll.InputError, match="'late' is the name of two functions"):
        plimsoll.run(plan({"one": plimsoll.metric(late), "two": plimsoll.metric(len, name="late")}), quiet=True)
    number = "expected a finite number"
    for function, problem in [(lambda _: "x", number), (lambda _: numpy.inf, number), (lambda jobs: jobs.waits, "jobs have no 'waits'")]:
        with pytest.raises(plimsoll.RunError, match=f"metric wrong: .*{problem}"):
            plimsoll.run(plan({"wrong": plimsoll.metric(function, name="wrong")}), quiet=True)


def test_another_text_is_another_run(folder):
    for version in ["1", "2"]:
        # A kept run would have the metadata of the first call.
        plimsoll.run(plan({"late": plimsoll.metric(late, version=version)}), out="out", quiet=True)
        [table] = Path("out").rglob("runs.parquet")
        assert f"late, version {version}:\ndef late(jobs):".encode() in table.read_bytes()


def test_metrics_of_installed_packages_have_names(folder, monkeypatch):
    site = folder / "site"
    about = site / "measures-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: measures\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[plimsoll.metrics]\njobs-of = measures:jobs_of\n")
    (site / "measures.py").write_text("import plimsoll\n\ndef jobs_of():\n    return plimsoll.metric(len, name='jobs-of')\n")
    monkeypatch.syspath_prepend(str(site))
    [row] = rows(plimsoll.run(plan({"jobs_of": {"function": "jobs-of"}}), quiet=True), "runs")
    assert row["jobs_of"] == 4
    Path("p.toml").write_text(
        'name = "p"\npolicies = ["fifo"]\ncluster.machines = "1x1c"\nworkload.trace = "jobs.csv"\n[metric.jobs_of]\nfunction = "jobs-of"\n'
    )
    found = plimsoll.run("p.toml", out="q", quiet=True)
    assert [row["jobs_of"] for row in rows(found, "runs")] == [4]
    assert found.why("d")["jobs"][0]["wait_us"] == 390_000_000
    sys.modules.pop("measures", None)
