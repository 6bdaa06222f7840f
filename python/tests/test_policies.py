"""Tests of policies in Python against built-in ones: an expression, a function that ranks users, and a function with targets."""

import functools
import json
import random
import signal
import subprocess
import sys
import threading
import time

import pytest
from conftest import rows

import plimsoll

numpy = pytest.importorskip("numpy")

DRF = "max(held[r] / (capacity[r] * weight[r]))"


def dominant(users):
    return users.dominant_share / users.weight


@pytest.fixture
def busy(folder):
    """Writes traces of a few hundred tasks of several users, more than fit on the machines."""
    for seed in range(4):
        rng = random.Random(seed)
        lines, now = ["job,user,submit_s,duration_s,tasks,cpu,memory_gib,priority"], 0
        for job in range(120):
            now += rng.choice([0, 0, 1, 3])
            cpu = rng.choice([1, 1, 2, 0.5])
            demand = f"{cpu},{rng.choice([0, 1, 2, 4])}"
            lines.append(f"j{job}-{cpu},u{rng.randrange(5)},{now},{rng.choice([0, 5, 9, 20])},{rng.choice([1, 1, 2, 7])},{demand},{rng.choice([0, 0, 3])}")
        (folder / f"busy{seed}.csv").write_text("\n".join(lines))
    return folder


def tasks(results, policy):
    """Returns the tasks of a policy, by job and number."""
    found = [row for row in rows(results, "tasks") if row.pop("policy") == policy]
    assert found
    return sorted(found, key=lambda row: (row["job"], row["task"]))


def replay(trace, policies, **more):
    return plimsoll.replay(trace, "3x4c8g", policies, quiet=True, tasks=True, **more)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("on_blocked", ["skip", "stop"])
def test_drf_in_each_of_two_ways_is_the_built_in_one_task_by_task(busy, seed, on_blocked):
    ways = [plimsoll.policy(DRF, name="a"), plimsoll.policy(rank=dominant, name="b"), "drf", plimsoll.policy(DRF)]
    results = replay(f"busy{seed}.csv", ways, on_blocked=on_blocked, placement="first-fit")
    wanted = tasks(results, "drf")
    for name in ["a", "b", f"expr:({DRF})"]:
        assert tasks(results, name) == wanted, name


def test_with_weights_an_expression_is_the_built_in_one(busy):
    (busy / "weights.csv").write_text("user,cpu,memory_gib\nu1,2,1\nu3,0.3,1.7\n")
    results = replay("busy1.csv", [plimsoll.policy(DRF, name="a"), "drf"], weights="weights.csv")
    assert tasks(results, "a") == tasks(results, "drf")


def test_a_target_function_with_the_same_targets_is_ceei(busy):
    """The targets are those of `plimsoll.solve`, called during the run."""

    def market(problem):
        users = [
            {"name": str(at), "demand": dict(zip(problem.resources, demand.tolist())), "tasks": int(tasks)}
            for at, (demand, tasks) in enumerate(zip(problem.demand.T, problem.tasks))
        ]
        [solution] = plimsoll.solve({"capacity": {name: 1 for name in problem.resources}, "user": users}, "ceei")
        return [user["tasks"] for user in solution["users"]]

    results = replay("busy2.csv", [plimsoll.policy(targets=market), "ceei"])
    assert tasks(results, "market") == tasks(results, "ceei")


def test_a_rank_sees_launches_ahead_and_users_as_they_are(busy):
    seen = {"rows": 0, "further": 0, "users": set()}

    def looking(users):
        names = numpy.array(users.names)[users.user.astype(int)]
        assert len(users) == len(users.running) == users.held.shape[1] and users.held.shape[0] == len(users.resources) == 2
        assert users.capacity.tolist() == [[12], [24]] and users.now_s >= 0
        # Four rows per user, each with one task more than the row before.
        held, launch = users.held.reshape(2, -1, 4), users.launch.reshape(-1, 4)
        assert (launch == [0, 1, 2, 3]).all()
        assert numpy.allclose(held[:, :, 1:] - held[:, :, :-1], users.demand.reshape(2, -1, 4)[:, :, 1:])
        assert (users.waiting.reshape(-1, 4)[:, 0] >= 1).all()
        assert numpy.allclose(users.dominant_share, (users.held / users.capacity).max(axis=0))
        seen["rows"] += len(users)
        seen["further"] += int((users.running.reshape(-1, 4)[:, 3] >= 3).any())
        seen["users"] |= set(names)
        return users.running

    results = replay("busy0.csv", [plimsoll.policy(rank=looking), plimsoll.policy("running", name="running")])
    assert tasks(results, "looking") == tasks(results, "running")
    assert seen["rows"] and seen["further"] and seen["users"] == {f"u{at}" for at in range(5)}


def test_ranks_may_go_by_time_and_by_others(busy):
    """All ranks are reversed every ten seconds, also of users without any change."""

    def turning(users):
        return users.running * (1 if users.now_s // 10 % 2 else -1)

    expression = plimsoll.policy("running * if(floor(now / 10) - 2 * floor(now / 20) == 1, 1, -1)", name="expression")
    for seed in range(4):
        results = replay(f"busy{seed}.csv", [plimsoll.policy(rank=turning), expression, "drf"])
        assert tasks(results, "turning") == tasks(results, "expression") != tasks(results, "drf")


def test_a_rank_sees_the_task_that_is_next_now(folder):
    """A user waits for machines of either label, and its next task changes with time."""
    (folder / "machines.csv").write_text("name,cpu,memory_gib,labels\nx,1,8,a\ny,1,8,b\n")
    rows = ["J2,u,0,10,1,1,0,b", "J2,u,0,50,1,1,4,b", "v1,v,1,20,1,1,0,b", "W,w,1,50,1,1,2,b", "J1,u,5,100,2,1,1,a", "D,d,12,1,1,1,0,a"]
    (folder / "labels.csv").write_text("\n".join(["job,user,submit_s,duration_s,tasks,cpu,memory_gib,label", *rows]))
    policies = [plimsoll.policy(rank=lambda users: users.demand[1], name="f"), plimsoll.policy("demand[memory] + 0 * now", name="e")]
    for on_blocked in ["skip", "stop"]:
        how = {"placement": "first-fit", "on_blocked": on_blocked, "tasks": True, "quiet": True}
        results = plimsoll.replay("labels.csv", "machines.csv", [*policies, "f/las", "e/las"], **how)
        assert tasks(results, "f/las") == tasks(results, "e/las") and tasks(results, "f") == tasks(results, "e")


ORDERED = {
    "service of the job": ("job_attained", lambda users: users.key, "key"),
    "waiting tasks and age": ("waiting - age / 10", lambda users: users.key, "key"),
    "the last submission": ("-submit", lambda users: users.key + users.running, "key + running"),
    "priority and release": ("place", lambda users: 1000 * users.priority + users.release_s, "1000 * priority + release"),
    "the job and the share": ("job_left", lambda users: (users.key > 10) + users.running, "if(key > 10, 1, 0) + running"),
}


@pytest.mark.parametrize("kind", ORDERED)
def test_a_rank_sees_jobs_through_an_order(busy, kind):
    order, rank, expression = ORDERED[kind]
    policies = [plimsoll.policy(rank=rank, order=order, name="f"), plimsoll.policy(f"{expression}; order {order}", name="e")]
    for seed in range(3):
        results = replay(f"busy{seed}.csv", policies, estimates="exact" if "left" in order else None)
        assert tasks(results, "f") == tasks(results, "e"), seed


def test_a_rank_without_an_order_has_no_columns_of_tasks(busy):
    with pytest.raises(plimsoll.RunError, match=r"users have no 'key' \(a policy with order=... has it\); they have running"):
        replay("busy0.csv", [plimsoll.policy(rank=lambda users: users.key, name="f")])


def test_an_expression_has_conditions_and_orders(busy):
    policy = plimsoll.policy("running; admit held[cpu] + tasks * demand[cpu] <= 2; order -submit", name="narrow")
    results = replay("busy0.csv", [policy, "drf"])
    changes = []
    for row in tasks(results, "narrow"):
        if row["start_us"] is not None and row["start_us"] < row["finish_us"]:
            changes += [(row["start_us"], 1, row), (row["finish_us"], 0, row)]
    held, most = {}, 0
    for _, starts, row in sorted(changes, key=lambda change: change[:2]):
        cpu = float(row["job"].split("-")[1])
        held[row["user"]] = held.get(row["user"], 0) + (cpu if starts else -cpu)
        most = max(most, held[row["user"]])
    assert most == 2


def test_policies_go_into_plans_changes_and_sweeps(busy):
    mine = plimsoll.policy(rank=dominant, name="mine", version="7")
    plan = {
        "name": "own",
        "policies": ["fifo", mine],
        "baseline": mine,
        "cluster": {"machines": "3x4c8g"},
        "workload": {"trace": "busy0.csv"},
    }
    assert {row["policy"] for row in rows(plimsoll.run(plan, quiet=True), "runs")} == {"fifo", "mine"}
    changed = plimsoll.run({**plan, "policies": ["fifo", "drf"], "baseline": "fifo"}, policies=["fifo", mine, plimsoll.policy("running")], quiet=True)
    assert {row["policy"] for row in rows(changed, "runs")} == {"fifo", "mine", "expr:(running)"}
    swept = plimsoll.run({**plan, "sweep": {"cluster.machines": ["3x4c8g", "4x4c8g"]}}, quiet=True)
    assert len(rows(swept, "runs")) == 4


def test_the_text_and_version_stand_in_the_provenance_and_make_the_run(busy):
    parquet = pytest.importorskip("pyarrow.parquet")
    plan = {"name": "own", "policies": ["drf"], "cluster": {"machines": "3x4c8g"}, "workload": {"trace": str(busy / "busy0.csv")}}

    def run(policy):
        plimsoll.run({**plan, "policies": [policy]}, out=busy / "out", quiet=True)
        made = json.loads((busy / "out" / "run.json").read_text())
        return made["runs_made"], made["runs_kept"]

    assert run(plimsoll.policy(rank=dominant, name="mine", version="1")) == (1, 0)
    assert run(plimsoll.policy(rank=dominant, name="mine", version="1")) == (0, 1)
    [path] = (busy / "out" / "runs").rglob("*.parquet")
    code = parquet.read_metadata(path).metadata[b"plimsoll.policy_code"].decode()
    assert code.startswith("mine, version 1:\nrank =\ndef dominant(users):")
    assert run(plimsoll.policy(rank=dominant, name="mine", version="2")) == (1, 0)
    assert run(plimsoll.policy(rank=lambda users: users.running, name="mine", version="2")) == (1, 0)
    # The same function with another role, at other times, with other arguments, and wrapped by another function.
    either = plimsoll.policy(rank=either_way, name="mine")
    assert run(either) == (1, 0) and run(either) == (0, 1)
    others = [
        {"targets": either_way},
        {"targets": either_way, "resolve": "every:60s"},
        {"rank": functools.partial(either_way, sign=1)},
        {"rank": functools.partial(either_way, sign=-1)},
        {"rank": functools.wraps(either_way)(lambda of: -either_way(of))},
    ]
    for other in others:
        assert run(plimsoll.policy(name="mine", **other)) == (1, 0), other


def either_way(of, sign=1):
    """Returns ranks of users, or targets."""
    return sign * numpy.ones(len(of))


def test_code_without_text_is_known_by_what_it_does():
    digest = "import plimsoll; exec('def f(users):\\n return [lambda: 1, users in {chr(97), 2}]'); print(plimsoll.policy(rank=f).text)"
    digests = {subprocess.run([sys.executable, "-c", digest], capture_output=True, text=True, check=True).stdout for _ in range(3)}
    assert len(digests) == 1 and "f, digest " in digests.pop()


def test_policies_are_checked_for_properties(folder):
    def first(users):
        return users.user

    policies = [plimsoll.policy(DRF, name="a"), plimsoll.policy(rank=first), plimsoll.policy(targets=lambda p: numpy.minimum(p.tasks, 1), name="one")]
    how = {"property": ["envy-freeness"], "domain": "positive", "effort": "quick"}
    found = plimsoll.check(policies, **how)
    up_to_one_task = {one["policy"]: one["result"] for one in found if one["reading"] == "up-to-one-task"}
    assert up_to_one_task == {"a": "holds", "first": "fails", "one": "fails"}
    built_in = plimsoll.check("drf", whole_tasks=True, **how)
    assert [{**one, "policy": "drf"} for one in found if one["policy"] == "a"] == built_in


def helper(users):
    return users.nothing


def raising(kind):
    def function(users):
        if kind == "late" and users.now_s < 30:
            return users.running
        return {
            "zero": lambda: 1 / 0,
            "late": lambda: {}["key"],
            "helper": lambda: helper(users),
            "short": lambda: [1.0, 2.0],
            "text": lambda: "text",
            "one": lambda: users.running[:1],
            "none": lambda: None,
            "complex": lambda: users.running * 1j,
            "capacity": lambda: users.capacity.__setitem__(0, 1),
            "nan": lambda: users.running * float("nan"),
            "writes": lambda: users.running.__setitem__(0, 1),
        }[kind]()

    return function


RAISED = {
    "zero": (ZeroDivisionError, "policy mine at 3 s: ZeroDivisionError: division by zero"),
    "late": (KeyError, "KeyError: 'key'"),
    "helper": (AttributeError, "users have no 'nothing'; they have running, waiting"),
    "short": (ValueError, "expected a number for each of"),
    "text": (ValueError, "it returned 'text'; expected a number for each of"),
    "one": (ValueError, "it returned an array of shape (1,); expected a number for each of"),
    "none": (ValueError, "it returned None; expected a number for each of"),
    "complex": (ValueError, "expected a number for each of"),
    "capacity": (ValueError, "read-only"),
    "nan": (ValueError, "the rank of user 'u"),
    "writes": (ValueError, "read-only"),
}


@pytest.mark.parametrize("kind", RAISED)
def test_what_a_function_raises_ends_the_run_with_its_place(busy, kind):
    wanted, message = RAISED[kind]
    with pytest.raises(plimsoll.RunError) as raised:
        replay("busy0.csv", [plimsoll.policy(rank=raising(kind), name="mine"), "drf"])
    assert message in str(raised.value) and "test_policies.py, line " in str(raised.value)
    assert isinstance(raised.value.__cause__, wanted)
    if kind == "late":
        assert "policy mine at 30 s" in str(raised.value)
    if kind == "helper":
        assert "in helper)" in str(raised.value)


TARGETS = {
    "of another shape": (lambda problem: [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], "expected a number of tasks for each of"),
    "below nothing": (lambda problem: -problem.tasks, "negative or not finite"),
    "infinite": (lambda problem: problem.tasks * float("inf"), "negative or not finite"),
    "none": (lambda problem: None, "negative or not finite|expected a number"),
}


@pytest.mark.parametrize("kind", TARGETS)
def test_targets_that_are_none_end_the_run(busy, kind):
    function, message = TARGETS[kind]
    with pytest.raises(plimsoll.RunError, match=message):
        replay("busy0.csv", plimsoll.policy(targets=function, name="mine"))


def test_nothing_is_left_of_a_run_that_failed(busy):
    with pytest.raises(plimsoll.RunError):
        replay("busy0.csv", [plimsoll.policy(rank=raising("late"), name="mine")], out=busy / "out")
    assert not list((busy / "out").rglob("*.parquet"))


WRONG = {
    "an open bracket": (dict(expression="held[cpu"), plimsoll.InputError, "']' instead of the end at character 9"),
    "an unknown value": (dict(expression="hold[cpu]"), plimsoll.InputError, "did you mean 'held'"),
    "no function": (dict(rank=3), TypeError, "3 is not accepted"),
    "nothing": ({}, TypeError, "exactly one of"),
    "two": (dict(expression="1", rank=dominant), TypeError, "exactly one of"),
    "no text": (dict(expression=3), TypeError, "as text"),
    "no name": (dict(rank=lambda users: users.running), plimsoll.InputError, "expected name="),
    "a name of a built-in one": (dict(rank=dominant, name="drf"), plimsoll.InputError, "a built-in policy has it"),
    "a name with a slash": (dict(rank=dominant, name="a/b"), plimsoll.InputError, "expected name="),
    "a number for a version": (dict(rank=dominant, version=3), TypeError, "version: 3 is not accepted"),
    "no name at all": (dict(expression="running", name=""), plimsoll.InputError, "expected name="),
    "a name of one with parameters": (dict(rank=dominant, name="quota"), plimsoll.InputError, "a built-in policy has it"),
    "a long chain": (dict(expression="running" + "+1" * 1200), plimsoll.InputError, "at most 300 operators"),
    "an order of nothing": (dict(expression="running", order="age"), TypeError, "beside rank=FUNCTION"),
    "an unknown order": (dict(rank=dominant, order="agee"), plimsoll.InputError, "did you mean 'age'"),
    "no rule": (dict(targets=dominant, resolve="often"), plimsoll.InputError, "change, every:SPAN"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_no_policy_is_told_when_it_is_made(kind):
    given, error, message = WRONG[kind]
    with pytest.raises(error) as raised:
        plimsoll.policy(**given)
    assert message in str(raised.value)


def test_policies_describe_themselves():
    made = [plimsoll.policy("running"), plimsoll.policy("running", name="a"), plimsoll.policy(rank=dominant), plimsoll.policy(targets=dominant, name="t")]
    assert list(map(repr, made)) == [
        "<plimsoll.Policy expr:(running)>",
        "<plimsoll.Policy a: expr:(running)>",
        "<plimsoll.Policy dominant: a function that ranks users>",
        "<plimsoll.Policy t: targets, resolve=change>",
    ]


def test_what_goes_with_no_run_is_told_before_it(busy):
    with pytest.raises(plimsoll.InputError, match="did you mean 'cpu'"):
        replay("busy0.csv", plimsoll.policy("held[cpi]"))
    with pytest.raises(plimsoll.InputError, match="the name of two policies"):
        replay("busy0.csv", [plimsoll.policy("running", name="x"), plimsoll.policy("waiting", name="x")])
    with pytest.raises(plimsoll.InputError, match="either 'order' in the expression or /fifo, not both"):
        replay("busy0.csv", [plimsoll.policy("running; order submit", name="x"), "x/fifo"])
    with pytest.raises(TypeError, match="policies: a value of type int is not accepted"):
        replay("busy0.csv", 7)


def test_runs_side_by_side_do_not_disturb_one_another(busy):
    """Two Python threads, each with runs on two threads."""
    mine = plimsoll.policy(rank=dominant, name="mine")
    wanted = tasks(replay("busy0.csv", ["drf"]), "drf")
    found, failed = [], []

    def work():
        try:
            policies = [mine, *(plimsoll.policy(rank=dominant, name=f"m{at}") for at in range(3))]
            found.append(replay("busy0.csv", policies, jobs=2))
        except BaseException as error:  # noqa: BLE001 - asserted below, in the thread of the test.
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and len(found) == 2
    for results in found:
        for name in ["mine", "m0", "m1", "m2"]:
            assert tasks(results, name) == wanted


def test_ctrl_c_is_heard_while_a_function_ranks(busy, ctrl_c):
    """Slow calls make a long run, which itself checks only at intervals whether it should stop."""
    calls = []

    def slow(users):
        calls.append(len(users))
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
        time.sleep(0.05)
        return users.running

    with pytest.raises(KeyboardInterrupt):
        replay("busy0.csv", plimsoll.policy(rank=slow))
    assert len(calls) < 50


def test_a_notebook_shows_how_far_a_run_is(busy, monkeypatch, capsys):
    slept = []

    def slow(users):
        if not slept:
            slept.append(time.sleep(1.5))
        return users.running

    policies = [plimsoll.policy(rank=slow), "drf"]
    plimsoll.replay("busy0.csv", "3x4c8g", policies, jobs=1)
    assert capsys.readouterr().err == ""
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    slept.clear()
    plimsoll.replay("busy0.csv", "3x4c8g", policies, jobs=1)
    assert "\r0 of 2 runs, 0 tasks" in capsys.readouterr().err
    slept.clear()
    plimsoll.replay("busy0.csv", "3x4c8g", policies, jobs=1, quiet=True)
    assert capsys.readouterr().err == ""


def test_an_interpreter_that_ends_ends_the_calls_of_other_threads(busy):
    script = (
        "import plimsoll, threading, time, sys\n"
        "def slow(users):\n    begun.set()\n    time.sleep(0.05)\n    return users.running\n"
        "begun = threading.Event()\n"
        "work = lambda: plimsoll.replay('busy0.csv', '3x4c8g', plimsoll.policy(rank=slow), quiet=True)\n"
        "threading.Thread(target=work, daemon=True).start()\n"
        "begun.wait()\n"
    )
    for _ in range(3):
        ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
        assert ended.returncode == 0, ended.stderr
