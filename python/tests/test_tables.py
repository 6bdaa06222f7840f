"""The tables of plans of all kinds equal those of the command line."""

import pytest
from conftest import program, stored

import plimsoll

pyarrow = pytest.importorskip("pyarrow")

# Plans of experiments/, shortened.
PLANS = {
    "backups": {"seeds": 1, "workload.jobs": 40},
    "failures": {"seeds": 1, "workload.hours": 0.02},
    "gangs": {"seeds": 1, "workload.jobs": 60},
    "load-sweep": {"seeds": 1, "workload.hours": 0.1, "measure.from": "1m"},
    "memory": {"seeds": 1, "workload.hours": 0.05, "measure.from": "30s", "measure.to": "2m"},
    "preemption": {"seeds": 2, "workload.jobs": 60},
    "quota-labels": {"seeds": 1, "workload.hours": 0.5},
    "quota-vs-drf": {"seeds": 1, "workload.hours": 0.1},
    "paper/drf-fig8": {},
    "paper/drf-fig8-placement": {},
    "paper/drf-fig9-12": {"seeds": 1},
    "paper/drf-table1": {},
}


def text(value):
    return f'"{value}"' if isinstance(value, str) else str(value)


@pytest.mark.filterwarnings("ignore::plimsoll.Warning")
@pytest.mark.parametrize("name", PLANS)
def test_all_tables_of_a_plan_are_those_of_the_command_line(name, root, tmp_path):
    plan = root / f"experiments/{name}.toml"
    sets = [f"--set={key}={text(value)}" for key, value in PLANS[name].items()]
    told = program("run", plan, *sets, "-q", "-o", tmp_path / "theirs")
    assert told.returncode == 0, told.stderr
    results = plimsoll.run(plan, changes=PLANS[name], quiet=True)
    theirs = stored(tmp_path / "theirs")
    ours = {name: sorted(map(repr, pyarrow.table(results.table(name)).to_pylist())) for name in results.tables}
    assert set(ours) == set(theirs)
    for table, rows in ours.items():
        assert rows == theirs[table], table
    assert results.summary == told.stdout
