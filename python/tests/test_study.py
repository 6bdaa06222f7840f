"""A study on the workers of an executor has the results of one machine, even if workers fail."""

import json
import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import MACHINES, files, stored

import plimsoll
from plimsoll import _study

SHARD = _study.shard

#: The longest wait for workers and events, in seconds.
DEADLINE = 120


@pytest.fixture
def sweep(folder):
    """Returns a plan of twelve runs in three cells, in a folder with its trace."""
    return {
        "name": "sweep",
        "policies": ["drf", "fifo"],
        "seeds": 2,
        "cluster": {"machines": MACHINES},
        "workload": {
            "generator": "synthetic",
            "jobs": 20,
            "arrival": {"distribution": "exponential", "mean": 20},
            "class": [{"name": "a", "tasks": 40, "duration": "1m", "demand": {"cpu": 1, "memory_gib": 2}}],
        },
        "sweep": {"workload.jobs": [20, 30, 40]},
    }


def whole(folder):
    """Returns the bytes of all files of a folder except the records of the runs."""
    return {name: data for name, data in files(folder).items() if not name.startswith("run-")}


def made(folder, of):
    """Returns the numbers of runs that the shards of a call have made and kept."""
    records = [json.loads(path.read_text()) for path in Path(folder).glob(f"run-*-of-{of}.json")]
    assert len(records) == of
    return sum(record["runs_made"] for record in records), sum(record["runs_kept"] for record in records)


def receipts(folder):
    return len(list(Path(folder).rglob("done/*.json")))


def run(plan, out="one", **more):
    return plimsoll.run(plan, out, quiet=True, **more)


def study(plan, executor, out="mine", **more):
    return plimsoll.study(plan, out, executor, quiet=True, **more)


class Now:
    """An executor that makes every call immediately, itself or by another function."""

    def __init__(self, instead=SHARD):
        self.instead = instead
        self.submitted = []

    def submit(self, function, args, policies, token):
        assert function is SHARD
        self.submitted.append(args)
        future = Future()
        future.set_running_or_notify_cancel()
        try:
            future.set_result(self.instead(args, policies, token))
        except BaseException as error:
            future.set_exception(error)
        return future


def pool(method):
    """Returns a pool of two processes with this start method, in another working directory."""
    return ProcessPoolExecutor(2, multiprocessing.get_context(method), os.chdir, ("/",))


EXECUTORS = {
    "threads": lambda: ThreadPoolExecutor(2),
    "spawned processes": lambda: pool("spawn"),
    "forked processes": lambda: pool("fork"),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 and newer warn about a fork beside threads.
@pytest.mark.parametrize("kind", EXECUTORS)
def test_the_results_are_those_of_one_machine(sweep, kind):
    alone = run(sweep, seeds=3, changes={"workload.class": sweep["workload"]["class"]})
    with EXECUTORS[kind]() as executor:
        shared = study(sweep, executor, seeds=3, changes={"workload.class": sweep["workload"]["class"]})
    assert whole("mine") == whole("one") and stored("mine") == stored("one")
    assert shared.summary == alone.summary and shared.tables == alone.tables and list(shared.figures) == list(alone.figures)
    assert made("mine", 8) == (18, 0)


def test_paths_mean_the_same_files_in_all_workers(folder, plan):
    run(plan)
    Path("plans").mkdir()
    written = f'name = "small"\npolicies = ["drf", "fifo"]\ncluster.machines = "{MACHINES}"\nworkload.trace = "../trace.csv"\n'
    Path("plans/plan.toml").write_text(written)
    run("plans/plan.toml", "two")
    with pool("spawn") as executor:
        study(plan, executor, changes={"workload.trace": Path("trace.csv")})
        study(Path("plans/plan.toml"), executor, Path("yours"))
    assert whole("mine") == whole("one") and whole("yours") == whole("two")


def test_without_an_executor_it_is_a_run(sweep):
    alone = run(sweep)
    assert study(sweep, None).tables == alone.tables
    assert whole("mine") == whole("one") and receipts("mine") == 12


def kill_once(flag):
    """Makes this process kill itself during a shard, unless another process has already done so."""

    def shard(args, policies, token):
        out = args["output"]
        try:
            os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return SHARD(args, policies, token)
        work = threading.Thread(target=SHARD, args=(args, policies, token), daemon=True)
        work.start()
        # Usually in the middle of a run, and always before the executor is notified of the end of a shard.
        while work.is_alive() and not list(Path(out).rglob("*.parquet")):
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGKILL)

    # The executor finds the function by its name.
    shard.__qualname__, shard.__module__ = "shard", _study.__name__
    _study.shard = shard


posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


@posix
@pytest.mark.filterwarnings("ignore:.*it was run again:plimsoll.Warning")
@pytest.mark.parametrize("failures", [0, 3])
def test_a_worker_of_dask_may_be_killed(sweep, tmp_path, failures):
    """Dask gives the shard to the other worker. If it may not, it reports the failure, and the shard is submitted again."""
    distributed = pytest.importorskip("distributed")
    dask = pytest.importorskip("dask")
    run(sweep)
    settings = {"distributed.scheduler.allowed-failures": failures}
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with dask.config.set(settings), distributed.Client(local_directory=tmp_path / "dask", **options) as client:
        before = set(client.run(os.getpid).values())
        client.run(kill_once, str(tmp_path / "killed"))
        study(sweep, client if failures else client.get_executor())
        assert (tmp_path / "killed").exists()
        client.wait_for_workers(2, timeout=DEADLINE)
        assert len(before - set(client.run(os.getpid).values())) == 1
    assert whole("mine") == whole("one") and receipts("mine") == 12


@posix
@pytest.mark.filterwarnings("ignore:.*it was run again:plimsoll.Warning")
def test_a_pool_that_lost_a_process_is_told_and_the_next_call_goes_on(sweep, tmp_path):
    run(sweep)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, kill_once, (str(tmp_path / "killed"),)) as executor:
        with pytest.raises(plimsoll.RunError, match=r"shard \d/4: the executor accepts no more tasks .*runs that have ended are kept"):
            study(sweep, executor, shards=4)
    there = receipts("mine")
    with ThreadPoolExecutor(2) as executor:
        study(sweep, executor, shards=3)
    # One run may have a receipt without all of its tables.
    assert made("mine", 3) in [(12 - there, there), (13 - there, there - 1)]
    assert whole("mine") == whole("one")


@posix
def test_ctrl_c_cancels_what_has_not_begun_and_the_next_call_makes_the_rest(sweep, ctrl_c):
    run(sweep)
    begun, go_on = threading.Event(), threading.Event()

    def waits(args, policies, token):
        if args["shard"] == "0/4":
            return SHARD(args, policies, token)
        begun.set()
        assert go_on.wait(DEADLINE)
        return SHARD(args, policies, token)

    class Waiting(ThreadPoolExecutor):
        futures = []

        def submit(self, function, *args):
            self.futures.append(super().submit(waits, *args))
            return self.futures[-1]

    def press():
        assert begun.wait(DEADLINE)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    with Waiting(1) as executor:
        threading.Thread(target=press).start()
        with pytest.raises(KeyboardInterrupt):
            study(sweep, executor, shards=4)
        go_on.set()
    # The second shard had begun.
    assert [future.cancelled() for future in Waiting.futures] == [False, False, True, True]
    there = receipts("mine")
    assert there == 6 and not Path("mine/report.html").exists()
    with ThreadPoolExecutor(2) as executor:
        study(sweep, executor, shards=3)
    assert made("mine", 3) == (6, 6) and whole("mine") == whole("one")


def test_what_is_there_is_summed_up_without_a_shard(sweep):
    study(sweep, Now())
    before = whole("mine")
    executor = Now()
    study(sweep, executor)
    assert executor.submitted == [] and whole("mine") == before


def test_a_run_that_is_damaged_is_made_again_with_a_warning(sweep):
    run(sweep, "mine")
    expected = whole("mine")
    path = sorted(Path("mine").rglob("jobs.parquet"))[0]
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.warns(plimsoll.Warning, match="jobs.parquet.* it was run again") as caught:
        study(sweep, Now(), shards=2)
    assert [warning.filename for warning in caught] == [study.__code__.co_filename]
    assert whole("mine") == expected and made("mine", 2) == (1, 11)


def test_shards_are_four_for_each_worker_and_no_more_than_runs(sweep):
    executor = Now()
    study(sweep, executor)
    assert len(executor.submitted) == 12  # Of 16, the default for an unknown number of workers.
    executor._max_workers = 2
    study(sweep, executor, "second", shards=3)
    study(sweep, executor, "third")
    assert [len([args for args in executor.submitted if args["shard"].endswith(f"/{of}")]) for of in [12, 3, 8]] == [12, 3, 8]


@pytest.mark.parametrize("failures", [1, 2, 3])
def test_a_shard_that_fails_is_submitted_again(sweep, failures):
    left = [failures]

    def fails(args, policies, token):
        if args["shard"] == "1/4" and left[0]:
            left[0] -= 1
            raise OSError("the node is gone")
        return SHARD(args, policies, token)

    executor = Now(fails)
    if failures < 3:
        study(sweep, executor, shards=4)
        assert len(executor.submitted) == 4 + failures and receipts("mine") == 12
    else:
        with pytest.raises(plimsoll.RunError, match="shard 1/4: OSError: the node is gone\nRuns that have ended are kept") as raised:
            study(sweep, executor, shards=4)
        assert isinstance(raised.value.__cause__, OSError) and len(executor.submitted) == 6


def test_a_shard_of_wrong_input_is_not_submitted_again(folder, plan):
    def unseen(args, policies, token):
        Path("trace.csv").unlink(missing_ok=True)
        return SHARD(args, policies, token)

    executor = Now(unseen)
    with pytest.raises(plimsoll.InputError, match=r"shard \d/2, on .*: workload.trace: .*trace\.csv' is not accepted"):
        study(plan, executor)
    assert len(executor.submitted) == 2


def test_a_folder_that_workers_do_not_see_is_told(sweep):
    def elsewhere(args, policies, token):
        return SHARD({**args, "output": Path("elsewhere").absolute()}, policies, token)

    with pytest.raises(plimsoll.RunError, match="12 runs are missing.*\nAll shards have ended: do all workers see .*mine?"):
        study(sweep, Now(elsewhere))


def test_a_shard_that_cannot_write_is_told(sweep):
    def full(args, policies, token):
        return (1, "no space left", [], "node7") if args["shard"] == "1/4" else SHARD(args, policies, token)

    with pytest.raises(plimsoll.RunError, match="3 runs are missing.*\nshard 1/4, on node7: no space left$"):
        study(sweep, Now(full), shards=4)


def test_tasks_that_never_start_are_told_as_of_a_run(folder, plan):
    small = {**plan, "cluster": {"machines": "40x2c8g", "placement": "first-fit"}}
    with pytest.warns(plimsoll.Warning, match="8 tasks never started") as caught:
        study(small, Now())
    assert {warning.filename for warning in caught} == {__file__}
    none = {**plan, "cluster": {"machines": "1x1c1m"}}
    with pytest.raises(plimsoll.RunError, match="no task ever started under drf"), pytest.warns(plimsoll.Warning):
        study(none, Now(), "second")


class Untouched:
    """An executor that accepts no submission."""

    def submit(self, *_):
        raise AssertionError("a shard was submitted")


WRONG = {
    "a key": ({"polices": []}, {}, "unknown field `polices`"),
    "a value": ({"cluster": {"machines": "4y"}}, {}, "cluster.machines: '4y' is not accepted"),
    "a trace that is not there": ({"workload": {"trace": "none.csv"}}, {}, "workload.trace: 'none.csv' is not accepted"),
    "a change": ({}, {"changes": {"workload.trce": "a"}}, "Did you mean 'trace'?"),
    "no shards": ({}, {"shards": 0}, "shards: 0 is not accepted; expected at least 1"),
    "retries": ({}, {"retries": -1}, "retries: -1 is not accepted; expected 0 or more"),
    "no folder": ({}, {"out": None}, "out: is missing; expected a folder that this process and all workers see"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_input_is_told_before_anything_is_submitted(folder, plan, kind):
    changed, options, message = WRONG[kind]
    with pytest.raises(plimsoll.InputError) as raised:
        study({**plan, **changed}, Untouched(), **options)
    assert message in str(raised.value)
    assert not Path("mine").exists()


def test_a_plan_without_runs_is_told(root):
    with pytest.raises(plimsoll.InputError, match="plan: has no runs to distribute"):
        study(root / "experiments/paper/drf-fig3.toml", Untouched(), "none")


def test_results_of_another_plan_are_told_before_anything_is_submitted(folder, plan):
    run(plan, "mine")
    with pytest.raises(plimsoll.InputError, match="results of another plan"):
        study({**plan, "sample": "30s"}, Untouched())


def test_frames_are_refused(folder, plan):
    pyarrow = pytest.importorskip("pyarrow")
    frame = pyarrow.table({"job": ["a"], "user": ["x"], "submit_s": [0], "duration_s": [5], "cpu": [1], "memory_gib": [1]})
    message = "workload.trace: a frame is not accepted where workers run the study; expected the path of a file"
    with pytest.raises(plimsoll.InputError, match=message):
        study({**plan, "workload": {"trace": frame}}, Untouched())
    with pytest.raises(plimsoll.InputError, match=message):
        study(plan, Untouched(), changes={"workload.trace": frame})


@pytest.mark.parametrize("executor", ["dask", 3, object()])
def test_what_is_no_executor_is_told(folder, plan, executor):
    with pytest.raises(TypeError, match="executor: .* is not accepted; expected one as in concurrent.futures"):
        study(plan, executor)


def test_futures_of_another_kind_are_told(folder, plan):
    class Other:
        def submit(self, *_):
            return "future"

    with pytest.raises(TypeError, match="executor: its futures, of type builtins.str, are not accepted"):
        study(plan, Other())


def test_progress_is_printed_unless_it_is_not_wanted(sweep, capsys):
    plimsoll.study(sweep, "mine", Now(), shards=2)
    told = capsys.readouterr()
    assert told.out == "" and told.err.split("\n") == ["0 of 2 shards have ended", "1 of 2 shards have ended", "2 of 2 shards have ended", ""]
    study(sweep, Now(), "second")
    assert capsys.readouterr() == ("", "")


def dominant(users):
    """Ranks users in a function of a module, which processes find by its name."""
    return users.dominant_share


@pytest.mark.parametrize("kind", ["threads", "forked processes"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_policies_of_ones_own_go_to_the_workers(sweep, kind):
    pytest.importorskip("numpy")
    own = [plimsoll.policy("max(held[r] / capacity[r])", name="a"), plimsoll.policy(rank=dominant, name="b", version="1")]
    plan = {**sweep, "policies": [*own, "drf"]}
    run(plan)
    with EXECUTORS[kind]() as executor:
        study(plan, executor)
    assert whole("mine") == whole("one")


def test_a_policy_that_raises_is_told_before_a_shard_is_submitted(sweep):
    pytest.importorskip("numpy")
    own, executor = plimsoll.policy(rank=lambda users: 1 / 0, name="mine"), Now()
    with pytest.raises(plimsoll.RunError, match="policy mine at .*ZeroDivisionError: division by zero"):
        study({**sweep, "policies": [own]}, executor)
    assert not executor.submitted
