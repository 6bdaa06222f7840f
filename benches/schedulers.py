"""Measures the policies of production schedulers on a million tasks: the table of docs/schedulers.md.

    cargo build --release
    python benches/schedulers.py target/release/plimsoll

The trace has 200,000 rows of 5 tasks. A task has 1 or 2 cores, 2 GiB per core, a duration of 10 to 70 s, and one of three priorities.
The 100 users are in ten queues. Each queue is guaranteed 600 of the 8,000 cores, under the key that the policy reads. The offered load
is 0.95 of a pool of 8,000 cores.
"""

import json
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

POLICIES = [
    "drf",
    "volcano-capacity",
    "yunikorn-fair",
    "volcano-proportion",
    "yarn-fair",
    "koordinator",
    "kai",
    "yarn-capacity",
    "volcano-drf",
    "kueue",
    "armada",
    "kueue@guarded",
]
ROWS, CORES, LOAD = 200_000, 8_000, 0.95
PROMISED = "{ cpu = 600, memory_gib = 1200 }"


def trace():
    """Yields the lines of the trace as CSV, drawn from a fixed seed."""
    numbers = random.Random(1)
    # A row has 5 tasks of 1.5 cores and 40 s on average.
    rate, submit = LOAD * CORES / (5 * 1.5 * 40), 0.0
    yield "job,user,submit_s,duration_s,tasks,cpu,memory_gib,priority"
    for job in range(ROWS):
        submit += numbers.expovariate(rate)
        cores = numbers.choice([1, 2])
        span, user, priority = numbers.uniform(10, 70), numbers.randrange(100), numbers.randrange(3)
        yield f"j{job},u{user},{submit:.3f},{span:.3f},5,{cores},{2 * cores},{priority}"


def plan(policy):
    """Returns a plan with one policy. Each policy reads its own keys of the queues."""
    name = policy if policy == "drf" else f"{policy}:@ten"
    text = f'name = "schedulers"\npolicies = ["{name}"]\ntables = ["runs"]\n'
    text += '[cluster]\nmachines = "500x16c32g"\nplacement = "pooled"\n[workload]\ntrace = "trace.csv"\n'
    for queue in range(10):
        users = json.dumps([f"u{user}" for user in range(10 * queue, 10 * queue + 10)])
        text += f'[[queues.ten.group]]\nname = "q{queue}"\nusers = {users}\nreclaim = "any"\nwithin = "lower-priority"\n'
        text += "".join(f"{key} = {PROMISED}\n" for key in ["nominal", "deserved", "guarantee", "guaranteed", "min"])
    return text


def main(program):
    print("| policy | tasks a CPU second | tasks stopped | work lost, hours |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "trace.csv").write_text("\n".join(trace()) + "\n")
        for policy in POLICIES:
            Path(folder, "plan.toml").write_text(plan(policy))
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            args = [program, "run", "plan.toml", "-o", "out", "--quiet", "--restart", "--format", "json", "--jobs", "1"]
            found = subprocess.run(args, cwd=folder, check=True, capture_output=True, text=True).stdout
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            run = json.loads(found)[0]
            speed = float(f"{5 * ROWS / seconds:.3g}")
            print(f"| `{policy}` | {speed:,.0f} | {run['tasks_stopped']:,} | {run['lost_s'] / 3600:.1f} |", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
