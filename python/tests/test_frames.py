"""Frames as input and tables as output have the same values in every library."""

import datetime
import math

import pytest
from conftest import MACHINES, TRACE, replay, rows

import plimsoll

pyarrow = pytest.importorskip("pyarrow")

NAMES = TRACE.split("\n", 1)[0].split(",")
LIBRARIES = ["polars", "pandas", "pyarrow", "duckdb"]


def columns():
    """Returns the columns of the trace in Arrow types of many widths, with one column that is not a column of traces."""
    text, seen = pyarrow.string(), datetime.datetime(2024, 2, 29, 12)
    return {
        "job": pyarrow.array(["etl-1", "train-7", "etl-2"], text),
        "user": pyarrow.array(["ads", "search", "ads"], text),
        "submit_s": pyarrow.array([0, 5.5, 7], pyarrow.float32()),
        "duration_s": pyarrow.array([120, 20.5, 60], pyarrow.float64()),
        "tasks": pyarrow.array([40, 8, 3], pyarrow.int32()),
        "cpu": pyarrow.array([1, 4, 2], pyarrow.uint64()),
        "memory_gib": pyarrow.array([4, 16, 2], pyarrow.int8()),
        "seen": pyarrow.array([seen, None, seen], pyarrow.timestamp("us")),
    }


def frame(library, columns):
    """Returns these columns as a frame of a library."""
    table = pyarrow.table(columns)
    module = pytest.importorskip(library)
    if library == "polars":
        return module.from_arrow(table)
    if library == "pandas":
        return table.to_pandas()
    if library == "duckdb":
        connection = module.connect()
        connection.register("given", table)
        return connection.sql("SELECT * FROM given")
    return table


def out(library, table_):
    """Returns the columns of a table of results as read by a library."""
    module = pytest.importorskip(library)
    if library == "polars":
        return module.DataFrame(table_).to_dict(as_series=False)
    if library == "pandas":
        taken = module.DataFrame.from_arrow(table_)
        return {name: [None if value != value else value for value in taken[name].tolist()] for name in taken}
    if library == "duckdb":
        relation = module.sql("FROM table_")
        return dict(zip(relation.columns, map(list, zip(*relation.fetchall()))))
    return module.table(table_).to_pydict()


def same(ours, theirs):
    """Returns whether two results have the same tables except for the name of the trace."""
    def plain(results, name):
        return [{key: value for key, value in row.items() if key != "workload"} for row in rows(results, name)]

    return ours.tables == theirs.tables and all(plain(ours, name) == plain(theirs, name) for name in ours.tables)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frame_is_read_as_the_file_is(folder, library):
    assert same(replay(frame(library, columns())), replay("trace.csv"))


@pytest.mark.parametrize("name", [None, "number"])
def test_the_index_of_pandas_is_no_column(folder, name):
    pytest.importorskip("pandas")
    given = frame("pandas", columns()).rename_axis(name)
    given.index = given.index[::-1]
    given = given.sort_values("submit_s")
    assert same(replay(given), replay("trace.csv"))
    # The same after pandas has written the index to a file, or Arrow has imported it.
    unnamed = given.rename_axis(None)
    assert same(replay(pyarrow.Table.from_pandas(unnamed)), replay("trace.csv"))
    unnamed.to_parquet("indexed.parquet")
    assert same(replay("indexed.parquet"), replay("trace.csv"))


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("index", ["int8", "uint32"])
def test_categories_are_text(folder, library, index):
    given = columns()
    given["user"] = given["user"].dictionary_encode().cast(pyarrow.dictionary(getattr(pyarrow, index)(), pyarrow.string()))
    assert same(replay(frame(library, given)), replay("trace.csv"))


def test_enums_and_categoricals_of_polars_are_text(folder):
    polars = pytest.importorskip("polars")
    given = frame("polars", columns())
    for kind in [polars.Categorical, polars.Enum(["search", "ads"])]:
        assert same(replay(given.with_columns(polars.col("user").cast(kind))), replay("trace.csv"))


def test_categories_of_numbers_are_an_error_or_numbers(folder):
    given = columns()
    given["tasks"] = given["tasks"].dictionary_encode()
    try:
        assert same(replay(pyarrow.table(given)), replay("trace.csv"))
    except plimsoll.InputError as error:
        assert "column 'tasks'" in str(error)


@pytest.mark.parametrize("library", LIBRARIES)
def test_nulls_are_empty_cells(folder, library):
    given = columns()
    given["stage"] = pyarrow.array(["map", None, None], pyarrow.string())
    given["tasks"] = pyarrow.array([40, 8, None], pyarrow.int64())  # Floats in pandas.
    given["label"] = pyarrow.array([None, None, None], pyarrow.string())
    given["gang"] = pyarrow.array([True, None, False], pyarrow.bool_())
    with open("nulls.csv", "w") as file:
        file.write(TRACE.replace("gib\n", "gib,stage,label,gang\n").replace("1,4\n", "1,4,map,,true\n").replace("4,16\n", "4,16,,,\n")
                   .replace("60,3,2,2\n", "60,,2,2,,,false\n"))
    assert same(replay(frame(library, given)), replay("nulls.csv"))
    given["cpu"] = pyarrow.array([1, None, 2], pyarrow.int64())
    with pytest.raises(plimsoll.InputError, match="trace, column 'cpu': row 2: is empty"):
        replay(frame(library, given))


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_empty_frame_has_no_rows(folder, library):
    empty = {name: column.slice(0, 0) for name, column in columns().items()}
    with pytest.raises(plimsoll.InputError, match="trace: the trace has columns but no rows"):
        replay(frame(library, empty))


def test_pieces_and_readers_are_frames(folder):
    table = pyarrow.table(columns())
    whole = replay("trace.csv")
    assert same(replay(pyarrow.concat_tables([table.slice(0, 1), table.slice(1, 0), table.slice(1, 2)])), whole)
    assert same(replay(table.to_reader(max_chunksize=2)), whole)
    assert same(replay(table.combine_chunks().to_batches()[0]), whole)


def test_long_frames_are_read_in_full(folder):
    many = 70_000
    table = pyarrow.table({
        "job": [f"j{at}" for at in range(many)],
        "user": ["ann", "bob"] * (many // 2),
        "submit_s": range(many),
        "duration_s": [1] * many,
        "cpu": [1] * many,
        "memory_gib": [0.5] * many,
    })
    results = replay(table, policies=["drf"])
    [run] = rows(results, "runs")
    assert run["jobs"] == many and len(results.jobs) == many
    assert pyarrow.table(results.jobs)["job"].to_pylist() == table["job"].to_pylist()


def test_a_frame_in_a_plan_or_a_change_is_its_trace(folder, plan):
    of_file = plimsoll.run(plan, quiet=True)
    plan["workload"]["trace"] = pyarrow.table(columns())
    assert same(plimsoll.run(plan, quiet=True), of_file)
    plan["workload"]["trace"] = "elsewhere.csv"
    changes = {"workload.trace": pyarrow.table(columns())}
    assert same(plimsoll.run(plan, changes=changes, quiet=True), of_file)


def test_runs_are_kept_under_a_path_but_not_under_a_frame(folder, plan):
    def written(results):
        return [path.stat().st_mtime_ns for path in sorted(results.folder.rglob("jobs.parquet"))]

    assert written(plimsoll.run(plan, "mine", quiet=True)) == written(plimsoll.run(plan, "mine", quiet=True))
    plan["workload"]["trace"] = pyarrow.table(columns())
    with pytest.raises(plimsoll.InputError, match=r'another plan:\n *- workload.trace = "trace.csv"\n *\+ workload.trace = ".*frame-'):
        plimsoll.run(plan, "mine", quiet=True)
    assert written(plimsoll.run(plan, "mine", restart=True, quiet=True)) != []


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_table_comes_out_with_equal_values(folder, library):
    results = replay("trace.csv", tasks=True, series=True, decisions=True)
    for name in results.tables:
        theirs = pyarrow.table(results.table(name))
        expected = {key: column.to_pylist() for key, column in zip(theirs.column_names, theirs.columns)}
        taken = out(library, results.table(name))
        assert list(taken) == list(expected) == [key for key, _ in results.table(name).columns], name
        for key, values in expected.items():
            assert len(taken[key]) == len(values) == len(results.table(name)), f"{name}.{key}"
            for one, other in zip(taken[key], values):
                assert one == other or math.isnan(other), f"{name}.{key}: {one}, not {other}"


def test_a_table_is_taken_twice(folder):
    results = replay()
    assert results.users is results.users
    assert rows(results, "users") == rows(results, "users")


def test_results_are_frames_for_other_programs(folder):
    duckdb = pytest.importorskip("duckdb")
    results = replay()
    users, jobs = results.users, results.jobs
    found = duckdb.sql("SELECT u.policy, u.user, count(*) FROM users u JOIN jobs j USING (policy, user) GROUP BY ALL ORDER BY ALL")
    assert found.fetchall() == [(policy, user, n) for policy in ["drf", "slot:12"] for user, n in [("ads", 2), ("search", 1)]]


def test_tables_describe_themselves(folder):
    results = replay()
    users = results.users
    assert users.name == "users" and users.columns[0][0] == "policy"
    assert repr(users).startswith("<plimsoll.Table users: 4 rows of policy, run, seed, user")
    assert isinstance(users, plimsoll.Table)


def test_numbers_of_tasks_may_be_whole_floats(folder):
    given = columns()
    given["tasks"] = pyarrow.array([40, 8, 3], pyarrow.float32())
    assert same(replay(pyarrow.table(given)), replay("trace.csv"))
    given["priority"] = pyarrow.array([2, None, math.nan], pyarrow.float64())
    text = TRACE.replace("gib\n", "gib,priority\n").replace("1,4\n", "1,4,2\n").replace("4,16\n", "4,16,\n").replace("2,2\n", "2,2,\n")
    with open("priorities.csv", "w") as file:
        file.write(text)
    assert same(replay(pyarrow.table(given)), replay("priorities.csv"))
    many = pyarrow.concat_tables([pyarrow.table(columns()), pyarrow.table({**columns(), "tasks": pyarrow.array([1, 2.5, 3])})], promote_options="permissive")
    with pytest.raises(plimsoll.InputError, match="^trace, column 'tasks': row 5: '2.5' is not a whole number$"):
        replay(many)


def test_a_frame_in_a_folder_of_kept_runs_is_told(folder, plan):
    plan["workload"]["trace"] = pyarrow.table(columns())
    plimsoll.run(plan, "mine", quiet=True)
    message = "results of another plan(.|\n)*\nworkload.trace is a frame, which is another file in every call. .* give the path of a file"
    with pytest.raises(plimsoll.InputError, match=message):
        plimsoll.run(plan, "mine", quiet=True)


def test_a_notebook_shows_the_first_rows_of_a_table(folder):
    results = replay()
    shown = results.users._repr_html_()
    assert shown.startswith("<table><thead><tr><th>policy</th><th>run</th>") and shown.endswith("<p>users: 4 rows</p>")
    expected = [[str(row[name]) for name in ["policy", "run", "user"]] for row in rows(results, "users")]
    cells = [line.split("</td><td>") for line in shown.split("<tr><td>")[1:]]
    assert [[line[0], line[1], line[3]] for line in cells] == expected
    with open("many.csv", "w") as file:
        file.write(TRACE + "".join(f"<b>&{at},ann,{100 + at},1,1,1,1\n" for at in range(2000)))
    shown = replay("many.csv", policies=["drf"]).jobs._repr_html_()
    assert shown.count("<tr>") == 11 and shown.endswith("<p>jobs: the first 10 of 2,003 rows</p>")
    assert "<td>&lt;b&gt;&amp;0</td>" in shown and "<b>" not in shown
    [path] = results.folder.glob("users/policy=drf/*/users.parquet")
    users = results.users
    path.unlink()
    with pytest.raises(ValueError, match="users.parquet: this table is no longer there"):
        users._repr_html_()
