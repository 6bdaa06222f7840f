"""Comparison, figures, statistics of traces, policies and schema; and the first rows of tables."""

import pytest
from conftest import MACHINES, replay

import plimsoll


def test_tables_convert_and_have_first_rows(folder):
    results = replay()
    head = results.jobs.head(2)
    assert (len(head), head.name, head.columns) == (2, "jobs", results.jobs.columns)
    assert len(results.jobs.head(100)) == len(results.jobs) and len(results.jobs.head(0)) == 0
    polars = pytest.importorskip("polars")
    assert results.jobs.to_polars().equals(polars.DataFrame(results.jobs))
    assert head.to_polars().equals(polars.DataFrame(results.jobs).head(2))
    pandas = pytest.importorskip("pandas")
    assert results.jobs.to_pandas().equals(pandas.DataFrame.from_arrow(results.jobs))


def test_results_are_compared(folder):
    before, after = replay(placement="first-fit"), replay(placement="worst-fit")
    found = plimsoll.compare(before, after, metric="completion_mean_s", all=True)
    assert found == plimsoll.compare(before.folder, str(after.folder), metric=["completion_mean_s"], all=True)
    assert "completion_mean_s" in str(found) and found != plimsoll.compare(before, before, metric="completion_mean_s", all=True)
    with pytest.raises(plimsoll.InputError, match="completion_means"):
        plimsoll.compare(before, after, metric="completion_means")


def test_figures_are_drawn_again(folder):
    results = replay()
    assert not results.figures
    figures = plimsoll.plot(results, only="completion")
    assert list(figures) == ["completion"]
    # The figure keeps the temporary folder of its results.
    del results
    assert figures["completion"].path.exists()


def test_traces_policies_and_tables_are_described(folder):
    stats = plimsoll.trace_stats("trace.csv", machines=MACHINES)
    assert "jobs" in str(stats)
    names = [policy["policy"] for policy in plimsoll.policies()]
    assert "drf" in names and plimsoll.policies("drf")["source"].startswith("Ghodsi")
    [users] = plimsoll.schema("users")["tables"]
    described = {column["name"] for column in users["columns"] if "<r>" not in column["name"]}
    assert users["name"] == "users" and {"policy", "user", "completion_mean_s"} <= described
    assert described <= {name for name, _ in replay().users.columns} | {"cell"}
    assert [table["name"] for table in plimsoll.schema()["tables"]][:2] == ["runs", "users"]
