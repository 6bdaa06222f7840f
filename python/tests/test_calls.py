"""Tests of calls: the quick start, plans of all kinds, changes, results on disk, solve and check, the command line."""

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from conftest import MACHINES, TRACE, files, program, replay, rows

import plimsoll


def test_the_quick_start_works(folder):
    results = plimsoll.replay("trace.csv", machines=MACHINES, policies=["drf", "fifo"])
    assert str(results).startswith("4 machines (64 cores, 256 GiB)") and "\npolicy " in str(results)
    assert [(row["policy"], row["user"]) for row in rows(results, "users")] == [
        ("drf", "ads"), ("drf", "search"), ("fifo", "ads"), ("fifo", "search")
    ]
    assert len(results.users) == 4
    assert results.tables == ["runs", "users", "jobs", "bins", "quantiles", "estimates", "differences"]
    assert set(results.tables) <= set(dir(results))
    assert results.about["policies"] == ["drf", "fifo"]
    assert f'machines = "{MACHINES}"' in results.plan


def test_no_progress_is_printed_where_it_is_not_wanted(folder, capfd):
    replay()
    assert capfd.readouterr() == ("", "")


def test_a_plan_may_be_a_dict_or_a_file(folder, plan):
    of_dict = plimsoll.run(plan, quiet=True)
    Path("plan.toml").write_text(
        f'name = "small"\npolicies = ["drf", "fifo"]\ncluster.machines = "{MACHINES}"\nworkload.trace = "trace.csv"\n'
    )
    for path in ["plan.toml", Path("plan.toml"), folder / "plan.toml"]:
        of_file = plimsoll.run(path, quiet=True)
        assert rows(of_file, "jobs") == rows(of_dict, "jobs")
        assert of_file.about["plan"] == of_dict.about["plan"]


def test_paths_in_a_dict_are_relative_to_the_working_directory(folder, plan, monkeypatch):
    Path("below").mkdir()
    monkeypatch.chdir("below")
    plan["workload"]["trace"] = Path("../trace.csv")
    assert len(plimsoll.run(plan, quiet=True).jobs) == 6


def test_changes_and_keywords_change_a_plan(folder, plan):
    changes = {"cluster.machines": "1x40c160g", "policies": ["asset"], "workload.trace": Path("trace.csv")}
    results = plimsoll.run(plan, changes=changes, sample="30s", quiet=True)
    [run] = rows(results, "runs")
    assert (run["policy"], run["machines"], run["sample_us"]) == ("asset", 1, 30_000_000)


def test_texts_in_plans_and_changes_stay_as_they_are(folder, plan):
    text = "a\"b\\c\n\t\x01 été ☃ ''' # no comment"
    plan["policies"] = ["drf"]
    assert plimsoll.run({**plan, "question": text}, quiet=True).about["question"] == text
    assert plimsoll.run(plan, question=text, quiet=True).about["question"] == text


def test_numbers_and_arrays_of_numpy_are_numbers_and_lists(folder, plan):
    numpy = pytest.importorskip("numpy")
    plan["policies"] = numpy.array(["drf"])
    plan["workload"] = {
        "generator": "synthetic",
        "jobs": numpy.int64(5),
        "arrival": {"distribution": "constant", "value": numpy.float64(2)},
        "class": [{"name": "a", "tasks": 1, "duration": "1m", "demand": {"cpu": 1, "memory_gib": 0.5}}],
    }
    results = plimsoll.run(plan, seeds=numpy.int32(2), quiet=True)
    assert [(run["seed"], run["jobs"]) for run in rows(results, "runs")] == [(1, 5), (2, 5)]


def test_options_of_a_replay_are_keywords(folder):
    results = replay(placement="first-fit", tasks=True, on_blocked="stop", series=None, decisions=False, jobs=1)
    assert "tasks" in results.tables and "usage" not in results.tables and "decisions" not in results.tables
    assert all(task["machine"] is not None for task in rows(results, "tasks"))
    Path("machines.csv").write_text("count,cpu,memory_gib\n2,32,128\n")
    [run] = rows(replay(machines=Path("machines.csv"), policies=["drf"]), "runs")
    assert run["machines"] == 2


def test_results_in_a_folder_are_kept_and_read_again(folder):
    results = replay(out="mine")
    assert results.folder == Path("mine")
    again = plimsoll.read("mine")
    assert again.summary is None and str(again) == repr(again) and "mine" in repr(again)
    assert again.tables == results.tables
    assert rows(again, "jobs") == rows(results, "jobs")


def test_results_without_a_folder_go_away(folder):
    results = replay()
    place = results.folder
    assert place.is_dir()
    del results
    assert not place.exists() and not place.parent.exists()


def test_a_table_outlives_its_results(folder):
    pyarrow = pytest.importorskip("pyarrow")
    users = replay().users
    assert pyarrow.table(users).num_rows == len(users) == 4
    assert pyarrow.table(replay().users).num_rows == 4
    reader = pyarrow.RecordBatchReader.from_stream(replay().users)
    assert reader.read_all().num_rows == 4


def test_a_table_that_is_not_there_is_named(folder):
    with pytest.raises(AttributeError, match="no table 'tasks'; they have runs, users, jobs"):
        replay().tasks
    assert not hasattr(replay(), "_repr_markdown_")


def test_figures_are_drawn_on_request(folder):
    results = replay()
    assert results.figures == {} and results.report is None
    assert results.draw() is results
    assert results.report.read_text(encoding="utf-8").startswith("<!")
    name, figure = next(iter(results.figures.items()))
    assert name in repr(figure) and "<svg" in figure._repr_svg_() and "<svg" in results._repr_html_()


def test_saved_replays_are_what_the_command_line_writes(folder):
    args = ["replay", "trace.csv", "--machines", MACHINES, "--policy", "drf", "--policy", "slot:12"]
    assert program(*args, "-o", "theirs", "-q").returncode == 0
    results = replay()
    saved = results.save("a/b/mine")
    assert files("theirs") == files("a/b/mine")
    assert rows(saved, "jobs") == rows(results, "jobs") and saved.summary == results.summary
    assert sorted(path.name for path in Path("a/b").iterdir()) == ["mine"]
    with pytest.raises(plimsoll.InputError, match="a file or folder of this name exists"):
        results.save("a/b/mine")


def test_saved_runs_are_what_the_command_line_writes(folder, root):
    plan = root / "experiments/gangs.toml"
    assert program("run", plan, "--set", "seeds=1", "--set", "workload.jobs=40", "-o", "theirs", "-q").returncode == 0
    plimsoll.run(plan, seeds=1, changes={"workload.jobs": 40}, quiet=True).save("mine")
    theirs = files("theirs")
    assert theirs == files("mine") and "report.html" in theirs


def test_saved_results_can_be_bundled(folder, root):
    plimsoll.run(root / "experiments/paper/drf-fig3.toml", quiet=True).save("a/mine")
    bundled = program("bundle", folder / "a/mine", "-o", folder / "mine.zip", cwd=root)
    assert bundled.returncode == 0, bundled.stderr


def test_a_plan_without_runs_has_figures_and_no_tables(root):
    results = plimsoll.run(root / "experiments/paper/drf-fig3.toml", quiet=True)
    assert results.tables == [] and list(results.figures) == ["drf-example"] and results.report
    assert results.about["name"] == "drf-fig3" and "[solve]" in results.plan


def test_solve_answers_as_the_command_line_does(root):
    path = root / "traces/instances/drf-example.toml"
    printed = json.loads(program("solve", path, "--policy", "drf", "--policy", "asset", "--format", "json").stdout)
    assert plimsoll.solve(path, ["drf", "asset"]) == printed
    instance = {
        "capacity": {"cpu": 9, "memory": 18},
        "user": [{"name": "A", "demand": {"cpu": 1, "memory": 4}}, {"name": "B", "demand": {"cpu": 3, "memory": 1}}],
    }
    [drf] = plimsoll.solve(instance, "drf")
    assert [Fraction(user["tasks_exact"]) for user in drf["users"]] == [3, 2]
    assert len(plimsoll.solve(instance)) > 3
    assert plimsoll.solve(instance, "drf", whole_tasks=True) != []


def test_check_answers_as_the_command_line_does():
    args = ["check", "-q", "--policy", "slot:2", "--property", "envy-freeness", "--effort", "quick", "--format", "json"]
    printed = json.loads(program(*args).stdout)
    found = plimsoll.check("slot:2", property=["envy-freeness"], effort="quick")
    assert found == printed and {one["property"] for one in found} == {"envy-freeness"}


@pytest.mark.parametrize("args", [["--version"], ["policies"], ["replay", "none.csv", "--machines", "1x1c", "--policy", "drf"], []])
def test_the_console_script_is_the_module_and_has_its_exit_codes(folder, args):
    module = subprocess.run([sys.executable, "-m", "plimsoll", *args], capture_output=True, text=True, timeout=60)
    script = program(*args)
    assert (module.returncode, module.stdout, module.stderr) == (script.returncode, script.stdout, script.stderr)
    assert script.returncode == (0 if args and args[0] != "replay" else 2)
    if args == ["--version"]:
        assert plimsoll.__version__ in script.stdout


def test_the_command_line_reads_standard_input(folder):
    printed = program("replay", "-", "--machines", MACHINES, "--policy", "drf", input=TRACE)
    assert printed.returncode == 0 and "drf" in printed.stdout
