"""Wrong input raises an exception of the right type with its place; warnings report facts that are easily missed."""

import pytest
from conftest import MACHINES, replay, rows

import plimsoll

pyarrow = pytest.importorskip("pyarrow")
compute = pytest.importorskip("pyarrow.compute")


def table(**changed):
    columns = {"job": ["a", "b"], "user": ["x", "y"], "submit_s": [0, 1], "duration_s": [5, 5], "cpu": [1, 1], "memory_gib": [1, 1]}
    columns.update(changed)
    return pyarrow.table({name: values for name, values in columns.items() if values is not None})


class Broken:
    def __arrow_c_stream__(self, requested_schema=None):
        return 3


def run(plan, **more):
    return plimsoll.run(plan, quiet=True, **more)


def with_machines(plan, machines):
    return {**plan, "cluster": {"machines": machines}}


INPUT, RUN = plimsoll.InputError, plimsoll.RunError

WRONG = {
    "a file that is not there": (lambda plan: replay("none.csv"), INPUT, "none.csv: No such file"),
    "a plan that is not there": (lambda plan: run("none.toml"), INPUT, "none.toml: No such file"),
    "a number below 0": (
        lambda plan: replay(table(cpu=[1, -2])),
        INPUT,
        "trace, column 'cpu': row 2: '-2' is negative",
    ),
    "rows out of order": (
        lambda plan: replay(table(submit_s=[1, 0])),
        INPUT,
        "trace, column 'submit_s': row 2: 0 s is before",
    ),
    "a column too few": (lambda plan: replay(table(user=None)), INPUT, "trace, column 'user': is missing"),
    "a column too many": (lambda plan: replay(table(cqu=[1, 1])), INPUT, "column 'cqu': is not a trace column"),
    "a column of another type": (
        lambda plan: replay(table(cpu=pyarrow.array([0, 1], pyarrow.timestamp("s")))),
        INPUT,
        "trace, column 'cpu': is of type timestamp",
    ),
    "a number too large": (
        lambda plan: replay(table(tasks=pyarrow.array([1, 2**63], pyarrow.uint64()))),
        INPUT,
        "trace, column 'tasks': has a value of 2^63",
    ),
    "runs of equal values": (
        lambda plan: replay(table(cpu=compute.run_end_encode(pyarrow.array([1, 1])))),
        INPUT,
        "trace: a column is run-end encoded; expected plain values",
    ),
    "tasks that are no whole number": (
        lambda plan: replay(table(tasks=[1.0, float("inf")])),
        INPUT,
        "trace, column 'tasks': row 2: 'inf' is not a whole number",
    ),
    "infinity": (lambda plan: replay(table(cpu=[1.0, float("inf")])), INPUT, "trace, column 'cpu': row 2:"),
    "values that are no rows": (
        lambda plan: replay(pyarrow.chunked_array([[1, 2]])),
        INPUT,
        "trace: the values are of type",
    ),
    "no frame": (lambda plan: replay(3), TypeError, "trace: a value of type int"),
    "no trace": (lambda plan: replay(None), TypeError, "trace: a value of type NoneType"),
    "a frame that is none": (lambda plan: replay(Broken()), TypeError, "a value of type Broken"),
    "machines": (
        lambda plan: replay(machines="4x"),
        INPUT,
        "machines: '4x' is not accepted; expected COUNTxCAPACITY",
    ),
    "a policy": (lambda plan: replay(policies=["dfr"]), INPUT, "unknown policy 'dfr' (did you mean 'drf'?)"),
    "no policy": (lambda plan: replay(policies=[]), INPUT, "policies: no value is given; expected at least one"),
    "policies of another type": (
        lambda plan: plimsoll.replay("trace.csv", MACHINES, 3),
        TypeError,
        "policies: a value of type int is not accepted; expected a name",
    ),
    "an option": (
        lambda plan: replay(plcement="pooled"),
        TypeError,
        "replay() got an unexpected keyword argument 'plcement'; did you mean 'placement'?",
    ),
    "an option of two words": (lambda plan: replay(on_blockd="stop"), TypeError, "did you mean 'on_blocked'?"),
    "an option that is like no other": (
        lambda plan: replay(zzz=1),
        TypeError,
        "replay() got an unexpected keyword argument 'zzz'",
    ),
    "a dict of weights": (
        lambda plan: replay(weights={"ads": 2}),
        TypeError,
        "weights: a value of type dict is not accepted; expected the path of a file or folder",
    ),
    "a frame of weights": (lambda plan: replay(weights=table()), TypeError, "weights: a value of type Table is not"),
    "a list of machines": (
        lambda plan: replay(machines=["4x16c64g"]),
        TypeError,
        "machines: a value of type list is not accepted; expected text",
    ),
    "a frame of machines": (lambda plan: replay(machines=table()), TypeError, "machines: a value of type Table is not"),
    "a frame for a plan": (lambda plan: run(table()), TypeError, "plan: a value of type Table is not accepted"),
    "a parameter of another format": (
        lambda plan: replay(set="swf.memory=ignore"),
        INPUT,
        "set: 'swf.memory=ignore' is not accepted; expected parameters of a public format",
    ),
    "a value of an option": (
        lambda plan: replay(placement="x"),
        INPUT,
        "placement: 'x' is not accepted; expected pooled, first-fit",
    ),
    "a folder that is a file": (lambda plan: replay(out="trace.csv"), INPUT, "output: 'trace.csv' is not accepted"),
    "a folder that cannot be made": (lambda plan: replay(out="/dev/null/x"), (INPUT, RUN), "/dev/null/x"),
    "machines that are all too small": (lambda plan: replay(machines="1x1c1m"), RUN, "no task ever started under drf"),
    "a key of a plan": (lambda plan: run({**plan, "polices": []}), INPUT, "polices: unknown field `polices`"),
    "a number of machines in a plan": (
        lambda plan: run(with_machines(plan, 20)),
        INPUT,
        "cluster.machines: invalid type: integer `20`, expected text such as \"20x8c32g\"",
    ),
    "a value in a list of tables": (
        lambda plan: run({**plan, "service": [{"name": "a"}]}),
        INPUT,
        "service[0]: missing field `tasks`",
    ),
    "a value of a plan": (lambda plan: run(with_machines(plan, "4y")), INPUT, "cluster.machines: '4y' is not accepted"),
    "an empty plan": (lambda plan: run({}), INPUT, "missing field `name`"),
    "None in a plan": (
        lambda plan: run(with_machines(plan, None)),
        INPUT,
        "plan: cluster.machines: None is not accepted; leave the key out",
    ),
    "no number in a plan": (
        lambda plan: run({**plan, "seeds": float("nan")}),
        INPUT,
        "plan: seeds: nan is not accepted",
    ),
    "a set in a plan": (
        lambda plan: run({**plan, "policies": {"drf"}}),
        INPUT,
        "plan: {'drf'} is not accepted; expected text",
    ),
    "a frame in the wrong place": (
        lambda plan: run(with_machines(plan, table())),
        INPUT,
        "cluster.machines: a Table is not accepted; only workload.trace may be a frame",
    ),
    "a frame of a plan": (
        lambda plan: run({**plan, "workload": {"trace": table(cpu=[1, -2])}}),
        INPUT,
        "workload.trace, column 'cpu': row 2: '-2' is negative",
    ),
    "a plan of another type": (lambda plan: run([plan]), TypeError, "is not accepted; expected a path or a dict"),
    "a key of a change": (lambda plan: run(plan, changes={"workload.trce": "a"}), INPUT, "Did you mean 'trace'?"),
    "None in a change": (
        lambda plan: run(plan, changes={"cluster.machines": None}),
        INPUT,
        "cluster.machines: None is not accepted",
    ),
    "an object in a change": (lambda plan: run(plan, sample=object()), INPUT, "changes: <object object"),
    "an instance": (
        lambda plan: plimsoll.solve({"capacty": {}}),
        INPUT,
        "'capacty' is no key (did you mean 'capacity'?)",
    ),
    "an instance of another type": (lambda plan: plimsoll.solve(3), TypeError, "instance: a value of type int is not accepted"),
    "a policy of an instance": (
        lambda plan: plimsoll.solve({"capacity": {"cpu": 1}, "user": [{"demand": {"cpu": 1}}]}, "dfr"),
        INPUT,
        "unknown policy 'dfr'",
    ),
    "an effort": (
        lambda plan: plimsoll.check("drf", effort="x"),
        INPUT,
        "effort: 'x' is not accepted; expected quick, normal",
    ),
    "a folder without results": (
        lambda plan: plimsoll.read("."),
        INPUT,
        "not a results folder: it has no experiment.json",
    ),
}


@pytest.mark.filterwarnings("ignore::plimsoll.Warning")
@pytest.mark.parametrize("kind", WRONG)
def test_wrong_input_is_an_exception_with_its_place(folder, plan, kind):
    call, exception, message = WRONG[kind]
    with pytest.raises(exception) as raised:
        call(plan)
    assert message in str(raised.value)
    # The temporary file of a frame is not a place that the caller knows.
    assert "frame-" not in str(raised.value)


def test_exceptions_are_of_one_family():
    assert issubclass(INPUT, plimsoll.Error) and issubclass(INPUT, ValueError) and INPUT.exit_code == 2
    assert issubclass(RUN, plimsoll.Error) and issubclass(RUN, RuntimeError) and RUN.exit_code == 1


def test_a_line_of_a_file_is_named(folder):
    with open("trace.csv", "a") as file:
        file.write("late,ads,9,1,1,x,1\n")
    with pytest.raises(INPUT, match=r"trace\.csv, line 5, column 'cpu': 'x'"):
        replay()


def test_a_damaged_table_is_an_error(folder):
    results = replay(out="mine")
    [path] = results.folder.glob("jobs/policy=drf/*/jobs.parquet")
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(INPUT, match="jobs.parquet"):
        plimsoll.read("mine")


def test_a_table_that_has_gone_is_an_error(folder):
    results = replay(out="mine")
    jobs = results.jobs
    for path in results.folder.glob("jobs/*/*/jobs.parquet"):
        path.unlink()
    with pytest.raises(Exception, match="jobs.parquet"):
        pyarrow.table(jobs)


def test_tasks_that_never_start_are_a_warning_at_the_call(folder):
    with pytest.warns(plimsoll.Warning, match="8 tasks never started: too large for any machine.*'train-7'") as caught:
        plimsoll.replay("trace.csv", "40x2c8g", "drf", quiet=True, placement="first-fit")
    assert [warning.filename for warning in caught] == [__file__]


def test_nothing_is_warned_of_where_all_is_well(folder, recwarn):
    replay()
    assert [str(warning.message) for warning in recwarn] == []
