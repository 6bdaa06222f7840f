"""Tests of the environments: Gymnasium's own checker, agreement with plimsoll.replay, and wrong input."""

import os
import runpy
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from conftest import replay, rows

import plimsoll

gymnasium = pytest.importorskip("gymnasium")
numpy = pytest.importorskip("numpy")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from plimsoll.gym import Environment, VectorEnvironment  # noqa: E402

MACHINES = "2x8c16g"

WORKLOAD = {
    "generator": "synthetic",
    "jobs": 40,
    "arrival": {"distribution": "exponential", "mean": 10},
    "class": [
        {"name": "wide", "users": 2, "tasks": 6, "duration": "1m", "demand": {"cpu": 1, "memory_gib": 4}},
        {
            "name": "deep",
            "tasks": {"distribution": "uniform", "min": 1, "max": 3},
            "duration": {"distribution": "exponential", "mean": 100},
            "demand": {"cpu": 3, "memory_gib": 2},
        },
    ],
}

PRESETS = ["window", "image"]


def trace(users):
    """Writes a trace with this number of users and more jobs than fit at once; returns its path."""
    rng = numpy.random.default_rng(3)
    lines, submit = ["job,user,submit_s,duration_s,tasks,cpu,memory_gib"], 0
    for number in range(60):
        tasks, cpu, memory, duration = rng.integers(1, 7), rng.integers(1, 9), rng.integers(1, 17), rng.integers(1, 60)
        lines.append(f"job-{number},user-{number % users},{submit},{duration},{tasks},{cpu},{memory}")
        submit += rng.integers(0, 9)
    Path("jobs.csv").write_text("\n".join(lines) + "\n")
    return "jobs.csv"


def play(environment, seed, rule):
    """Plays an episode; returns the sum of its rewards, and its metrics."""
    observation, info = environment.reset(seed=seed)
    total = 0.0
    while True:
        observation, reward, over, truncated, info = environment.step(rule(info["action_mask"]))
        total += reward
        assert not truncated
        if over:
            return total, info["metrics"]


def first_in_line(mask):
    return 0 if mask[0] else len(mask) - 1


def first_that_fits(mask):
    return int(mask.argmax())


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_gymnasium_accepts_the_environment(preset):
    check_env(Environment(WORKLOAD, MACHINES, observation=preset))
    made = gymnasium.make(f"plimsoll/{preset.capitalize()}-v0", workload=WORKLOAD, machines=MACHINES, jobs=5)
    check_env(made.unwrapped)
    observation, info = made.reset(seed=1)
    assert observation in made.observation_space and observation.dtype == numpy.float32
    assert made.action_space.sample(info["action_mask"]) in made.action_space


@pytest.mark.parametrize("preset", PRESETS)
def test_gymnasium_makes_the_vector_environment(preset):
    made = gymnasium.make_vec(f"plimsoll/{preset.capitalize()}-v0", num_envs=3, workload=WORKLOAD, machines=MACHINES, jobs=8)
    observations, infos = made.reset(seed=1)
    assert isinstance(made.unwrapped, VectorEnvironment) and made.num_envs == 3
    made.action_space.seed(1)
    ends = 0
    for _ in range(100):
        assert observations in made.observation_space and observations.flags.writeable
        assert infos["action_mask"].shape == (3, made.single_action_space.n) and infos["action_mask"].any(axis=1).all()
        observations, rewards, terminated, truncated, infos = made.step(made.action_space.sample())
        assert rewards.shape == terminated.shape == truncated.shape == (3,) and rewards.dtype == numpy.float64
        assert terminated.dtype == truncated.dtype == numpy.bool_ and not truncated.any()
        if terminated.any():
            assert (infos["_metrics"] == terminated).all() and (infos["metrics"]["jobs_finished"][terminated] == 8).all()
            ends += terminated.sum()
    assert ends > 3
    made.close()


@pytest.mark.parametrize("preset", PRESETS)
def test_many_together_are_each_alone(preset):
    together = VectorEnvironment(WORKLOAD, MACHINES, 4, observation=preset, jobs=12)
    alone = [Environment(WORKLOAD, MACHINES, observation=preset, jobs=12) for _ in range(4)]
    observations, infos = together.reset(seed=5)
    for number, environment in enumerate(alone):
        observation, info = environment.reset(seed=5 + number)
        assert (observation == observations[number]).all() and (info["action_mask"] == infos["action_mask"][number]).all()
    rng, over, ends = numpy.random.default_rng(1), [False] * 4, 0
    for _ in range(150):
        actions = rng.integers(0, together.single_action_space.n, 4)
        observations, rewards, terminated, _, infos = together.step(actions)
        for number, environment in enumerate(alone):
            if over[number]:
                # The step after the end of an episode begins the next one.
                (observation, info), reward, over[number] = environment.reset(), 0.0, False
            else:
                observation, reward, over[number], _, info = environment.step(actions[number])
            assert (observation == observations[number]).all() and (info["action_mask"] == infos["action_mask"][number]).all()
            assert (reward, over[number]) == (rewards[number], terminated[number])
            if over[number]:
                ends += 1
                assert info["metrics"] == {name: values[number] for name, values in infos["metrics"].items() if name[0] != "_"}
                assert environment.jobs()["job"].tolist() == together.jobs(number)["job"].tolist()
    assert ends > 4


def test_a_seed_is_an_episode():
    environment = Environment(WORKLOAD, MACHINES)
    played = [play(environment, seed, first_that_fits) for seed in [1, 2, 1, None, None, 1, None]]
    assert played[0] == played[2] == played[5] and played[3] == played[6]
    assert len({total for total, _ in played}) == 4
    fresh = Environment(WORKLOAD, MACHINES)
    assert play(fresh, None, first_that_fits)[0] != play(Environment(WORKLOAD, MACHINES), None, first_that_fits)[0]


def assert_same_times(found, there):
    """Asserts that the jobs of an episode have the times of a table of jobs."""
    for job, user, *times in zip(*found.values()):
        row = there[job]
        assert user == row["user"]
        expected = [row["submit_us"], row["start_us"], row["finish_us"]]
        assert [round(time * 1e6) for time in times] == expected, job


@pytest.mark.parametrize("placement", ["pooled", "first-fit"])
@pytest.mark.parametrize("on_blocked, users, rule", [("stop", 4, first_in_line), ("skip", 60, first_that_fits)])
def test_serving_by_arrival_is_fifo(folder, placement, on_blocked, users, rule):
    path = trace(users)
    results = replay(path, MACHINES, ["fifo"], on_blocked=on_blocked, placement=placement)
    environment = Environment(path, {"machines": MACHINES, "placement": placement}, window=60, reward="completion_mean_s")
    total, metrics = play(environment, 1, rule)
    found = environment.jobs()
    there = {row["job"]: row for row in rows(results, "jobs")}
    assert len(there) == len(found["job"]) == 60
    assert_same_times(found, there)
    [run] = rows(results, "runs")
    assert total == pytest.approx(-run["completion_mean_s"], rel=1e-12)
    same = [name for name in metrics if name in run and run[name] is not None]
    assert {"slowdown_mean", "jain_backlogged", "used_cpu", "makespan_us", "wait_p90_s"} <= set(same)
    assert {name: metrics[name] for name in same} == pytest.approx({name: run[name] for name in same}, rel=1e-9)


@pytest.mark.parametrize("on_blocked, rule", [("stop", first_in_line), ("skip", first_that_fits)])
def test_labels_places_and_failures_change_nothing_of_that(folder, on_blocked, rule):
    lines = Path(trace(60)).read_text().splitlines()
    asks = [",,", ",ssd,", ",,x/r1", ",!ssd,x/r2", ",ssd,x/r2"]
    lines = [lines[0] + ",gang,label,location"] + [f"{line},{int(at % 7 == 0)}{asks[at % 5]}" for at, line in enumerate(lines[1:])]
    Path("jobs.csv").write_text("\n".join(lines) + "\n")
    Path("machines.csv").write_text(
        "name,count,cpu,memory_gib,labels,room,rack\na,2,16,64,ssd,x,r1\nb,1,16,64,,x,r2\nc,1,16,64,ssd,x,r2\nd,1,16,64,,x,r2\n"
    )
    Path("events.csv").write_text("at_s,machine,event,labels\n40,a-0,fail,\n90,a-0,join,\n95,b,relabel,ssd\n150,b,relabel,\n")
    results = replay(
        "jobs.csv", "machines.csv", ["fifo"], on_blocked=on_blocked, placement="first-fit", machine_events="events.csv", fall_back="7s"
    )
    machines = {"machines": "machines.csv", "placement": "first-fit", "events": "events.csv", "fall_back": "7s"}
    environment = Environment("jobs.csv", machines, window=60)
    metrics = play(environment, 1, rule)[1]
    assert metrics["tasks_stopped"] > 0 and metrics["tasks_located"] > 0
    assert_same_times(environment.jobs(), {row["job"]: row for row in rows(results, "jobs")})


@pytest.mark.parametrize("reward", ["slowdown_mean", "completion_mean_s", "wait_mean_s", "makespan_us", "used_cpu", "jain_backlogged"])
def test_rewards_add_up_to_the_metric(reward):
    total, metrics = play(Environment(WORKLOAD, MACHINES, reward=reward), 4, first_that_fits)
    sign = 1 if reward in ["used_cpu", "jain_backlogged"] else -1
    # Slowdowns of the table are rounded to millionths.
    assert total == pytest.approx(sign * metrics[reward], rel=1e-6)


def test_masks_say_what_may_be_chosen():
    environment = Environment(WORKLOAD, MACHINES, window=5)
    observation, info = environment.reset(seed=1)
    rng, over = numpy.random.default_rng(1), False
    while not over:
        mask = environment.action_masks()
        assert mask.dtype == numpy.bool_ and (mask == info["action_mask"]).all() and mask[:-1].any()
        assert (mask[:-1] == (observation[:, -2] == 1)).all()
        observation, _, over, _, info = environment.step(rng.choice(numpy.flatnonzero(mask)))
    assert environment.action_masks().tolist() == [False] * 5 + [True] and not observation.any()


def test_what_may_not_be_chosen_ends_no_episode():
    environment = Environment(WORKLOAD, MACHINES, window=5)
    for action in [4, 5]:
        assert play(environment, 1, lambda mask: action)[1]["jobs_finished"] == 40


def test_a_frame_and_a_plan_are_workloads(folder):
    pyarrow = pytest.importorskip("pyarrow.csv")
    path = trace(5)
    frame = pyarrow.read_csv(path)
    expected = play(Environment(path, MACHINES, jobs=10), 2, first_that_fits)
    assert play(Environment(frame, MACHINES, jobs=10), 2, first_that_fits) == expected
    thinned = Environment({"trace": frame, "thin": 0.5, "estimates": "lognormal:1"}, MACHINES, jobs=10)
    assert play(thinned, 2, first_that_fits)[1]["jobs_finished"] == 10
    # The seed determines the position in the trace where an episode begins.
    environment = Environment(path, MACHINES, jobs=10)
    firsts = {play(environment, seed, first_that_fits) and environment.jobs()["job"][0] for seed in range(12)}
    assert len(firsts) > 5


def make(workload=WORKLOAD, machines=MACHINES, **more):
    environment = Environment(workload, machines, **more)
    environment.reset(seed=1)
    return environment


INPUT = plimsoll.InputError

WRONG = {
    "an observation": (lambda: make(observation="picture"), INPUT, "observation: 'picture' is not accepted; expected window or image"),
    "an option of the other observation": (lambda: make(horizon=9), INPUT, "horizon: a value is not accepted; expected nothing, with"),
    "a reward": (lambda: make(reward="slowdwn_mean"), INPUT, "reward: 'slowdwn_mean' is not accepted; expected one of"),
    "a reward without a good end": (lambda: make(reward="users"), INPUT, "reward: 'users' is not accepted"),
    "a window": (lambda: make(window=0), INPUT, "window: 0 is not accepted; expected 1 to 10000"),
    "a time": (lambda: make(longest="x"), INPUT, "longest: 'x' is not accepted; expected a time span"),
    "too many jobs": (lambda: make(jobs=41), INPUT, "jobs: 41 is not accepted; expected 1 to 40"),
    "machines": (lambda: make(machines="4x"), INPUT, "cluster.machines: '4x' is not accepted"),
    "machines of another type": (lambda: make(machines=3), TypeError, "machines: 3 is not accepted; expected text"),
    "a key of the machines": (lambda: make(machines={"machine": MACHINES}), INPUT, "unknown field `machine`"),
    "a rule for whom to serve": (
        lambda: make(machines={"machines": MACHINES, "on_blocked": "stop"}),
        INPUT,
        "cluster.on_blocked: a value is not accepted; expected no value: the agent alone decides",
    ),
    "a file that is not there": (lambda: make("none.csv"), INPUT, "none.csv"),
    "a workload of another type": (lambda: make(3), TypeError, "workload: 3 is not accepted; expected a path, a frame or a dict"),
    "a key of the workload": (lambda: make({**WORKLOAD, "job": 3}), INPUT, "unknown field `job`"),
    "a closed loop": (lambda: make(CLOSED), INPUT, "workload.generator: 'closed-loop' is not accepted; expected a workload that is known"),
    "resources that are not there": (lambda: make(machines="2x8c"), INPUT, "the cluster has no memory"),
    "an action": (lambda: make().step(129), INPUT, "action: 129 is not accepted; expected 0 to 128"),
    "an action below 0": (lambda: make().step(-1), INPUT, "action: -1 is not accepted"),
    "a step before the first episode": (lambda: Environment(WORKLOAD, MACHINES).step(0), plimsoll.RunError, "call of reset()"),
    "a step of many before it": (lambda: VectorEnvironment(WORKLOAD, MACHINES, 2).step([0, 0]), plimsoll.RunError, "call of reset()"),
    "a step after the last": (lambda: ended().step(0), plimsoll.RunError, "no current episode"),
    "a row of a trace on the way": (lambda: play(make(gpus()), 1, first_that_fits), INPUT, "row 2 of the workload, column 'gpu'"),
    "no simulations": (lambda: VectorEnvironment(WORKLOAD, MACHINES, 0), INPUT, "num_envs: 0 is not accepted"),
    "machines that are too small": (
        lambda: make(machines={"machines": "2x1c1g", "placement": "first-fit"}),
        INPUT,
        "no job of the episode with seed 1 fits",
    ),
    "too few actions": (lambda: vector().step([1]), INPUT, "actions: 1 are not accepted; expected 2"),
    "a seed": (lambda: VectorEnvironment(WORKLOAD, MACHINES, 2).reset(seed=[1, -1]), INPUT, "seed: -1 is not accepted; expected 0 to"),
    "too few seeds": (lambda: VectorEnvironment(WORKLOAD, MACHINES, 2).reset(seed=[1]), INPUT, "seeds: 1 are not accepted; expected 2"),
}

CLOSED = {
    "generator": "closed-loop",
    "jobs_per_user": 2,
    "class": [{"name": "a", "users": 1, "tasks": 1, "duration": "1m", "demand": {"cpu": 1}}],
}


def ended():
    environment = make(jobs=1)
    play(environment, 1, first_that_fits)
    return environment


def gpus():
    Path("gpus.csv").write_text("job,user,submit_s,duration_s,cpu,gpu\na,x,0,5,1,0\nb,x,1,5,1,1\n")
    return "gpus.csv"


def vector():
    environment = VectorEnvironment(WORKLOAD, MACHINES, 2)
    environment.reset(seed=1)
    return environment


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_input_is_an_exception_with_its_place(folder, kind):
    call, exception, message = WRONG[kind]
    with pytest.raises(exception) as raised:
        call()
    assert message in str(raised.value)


def test_an_interrupt_ends_the_loop(ctrl_c):
    environment = VectorEnvironment(WORKLOAD, MACHINES, 8)
    environment.reset(seed=1)
    timer = threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        while True:
            environment.step([0] * 8)
    timer.join()
    environment.step([0] * 8)


def test_without_gymnasium_the_message_says_what_to_install():
    code = "import sys; sys.modules['gymnasium'] = None; import plimsoll; import plimsoll.gym"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 1 and "pip install 'gymnasium>=1.1'" in ended.stderr


def test_the_example_learns(root, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["gym_train.py", "--generations=15", "--episodes=20"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(root / "examples/gym_train.py"), run_name="__main__")
    assert ended.value.code == 0, capsys.readouterr().out
