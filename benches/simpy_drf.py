"""Replays a trace under DRF with SimPy, for a comparison of completions and speed with Plimsoll.

The rules are those of `plimsoll replay TRACE --machines SPEC --placement pooled --policy drf`: a blocked user is skipped, and of users
with equal shares the one with the longest time since its latest launch is first.

    pip install simpy polars
    plimsoll trace generate --plan experiments/facebook.toml -o facebook.csv
    time plimsoll replay facebook.csv --machines 400x16c32g --placement pooled --policy drf -o facebook-drf
    time python benches/simpy_drf.py facebook.csv 400x16c32g -o simpy.csv
    python benches/simpy_drf.py --compare facebook-drf simpy.csv

The simulator is written for this comparison only: it has no gangs, machines, labels, priorities or weights, and no tables. Time is in
whole microseconds and shares are compared as integers, so that the results can be compared exactly.
"""

import csv
import heapq
import math
import sys
from fractions import Fraction

import simpy

AFTER_ALL = 2  # SimPy serves events of one instant by priority, 0 first. Rounds follow arrivals and ends.


class User:
    def __init__(self, number):
        self.number, self.cpu, self.memory = number, 0, 0
        self.latest = 0  # The number of the latest launch, counted from 1; 0 for none.
        self.waiting = []  # Heap of (release instant, released by a stage, row, task set).


class Simulation:
    def __init__(self, path, machines):
        count, size = machines.split("x")
        cores, gib = size.rstrip("g").split("c")
        self.env = simpy.Environment()
        self.capacity = self.free_cpu, self.free_memory = int(count) * int(cores) * 1000, int(count) * int(gib) * 1024
        self.users, self.jobs, self.finish = {}, {}, {}
        self.hungry, self.due, self.launches = set(), False, 0
        self.env.process(self.arrivals(read(path)))

    def arrivals(self, rows):
        for number, row in enumerate(rows):
            if row["submit"] > self.env.now:
                yield self.env.timeout(row["submit"] - self.env.now)
            user = self.users.setdefault(row["user"], User(len(self.users)))
            job = self.jobs.setdefault(row["job"], {"left": {}, "blocked": []})
            job["left"][row["stage"]] = job["left"].get(row["stage"], 0) + row["tasks"]
            row.update(number=number, left=row["tasks"])
            if row["after"]:
                job["blocked"].append((user, row))
            else:
                self.release(user, row, False)

    def release(self, user, row, by_stage):
        heapq.heappush(user.waiting, (self.env.now, by_stage, row["number"], row))
        self.hungry.add(user)
        self.call_round()

    def call_round(self):
        if not self.due:
            self.due = True
            event = self.env.event()
            event._ok, event._value = True, None
            event.callbacks.append(self.round)
            self.env.schedule(event, priority=AFTER_ALL)

    def rank(self, user):
        """Returns the dominant share times both capacities, the latest launch, and the order of arrival."""
        return max(user.cpu * self.capacity[1], user.memory * self.capacity[0]), user.latest, user.number

    def fits(self, user):
        row = user.waiting[0][-1]
        return row["cpu"] <= self.free_cpu and row["memory"] <= self.free_memory

    def round(self, _):
        self.due = False
        ranked = [(self.rank(user), user) for user in self.hungry if self.fits(user)]
        heapq.heapify(ranked)
        while ranked:
            _, user = ranked[0]
            if not self.fits(user):
                heapq.heappop(ranked)
                continue
            self.launch(user)
            if user.waiting:
                heapq.heapreplace(ranked, (self.rank(user), user))
            else:
                heapq.heappop(ranked)
                self.hungry.remove(user)

    def launch(self, user):
        row = user.waiting[0][-1]
        row["left"] -= 1
        if row["left"] == 0:
            heapq.heappop(user.waiting)
        self.hold(user, row, 1)
        self.launches += 1
        user.latest = self.launches
        end = self.env.timeout(row["duration"])
        end.callbacks.append(lambda _: self.end(user, row))

    def hold(self, user, row, tasks):
        user.cpu += tasks * row["cpu"]
        user.memory += tasks * row["memory"]
        self.free_cpu -= tasks * row["cpu"]
        self.free_memory -= tasks * row["memory"]

    def end(self, user, row):
        self.hold(user, row, -1)
        self.finish[row["job"]] = self.env.now
        job = self.jobs[row["job"]]
        job["left"][row["stage"]] -= 1
        if job["left"][row["stage"]] == 0 and job["blocked"]:
            self.release_stages(job)
        self.call_round()

    def release_stages(self, job):
        ready = [item for item in job["blocked"] if not any(job["left"][stage] for stage in item[1]["after"])]
        job["blocked"] = [item for item in job["blocked"] if item not in ready]
        for user, row in ready:
            self.release(user, row, True)


def read(path):
    """Yields the rows of a canonical trace in microseconds, thousandths of cores, and MiB."""
    units = {"memory_gib": 1024, "memory_mib": 1}
    for row in csv.DictReader(open(path, newline="")):
        memory = next(column for column in units if column in row)
        yield {
            "job": row["job"],
            "user": row["user"],
            "submit": int(row["submit_us"]),
            "duration": int(row["duration_us"]),
            "tasks": int(row.get("tasks") or 1),
            "cpu": math.ceil(Fraction(row["cpu"]) * 1000),
            "memory": math.ceil(Fraction(row[memory]) * units[memory]),
            "stage": row.get("stage") or "",
            "after": [stage for stage in (row.get("after") or "").split(";") if stage],
        }


def compare(results, path):
    """Ends with an error unless every job ended at the same microsecond."""
    import polars

    jobs = polars.read_parquet(f"{results}/jobs/**/*.parquet", hive_partitioning=False)
    ours = dict(jobs.select("job", "finish_us").iter_rows())
    theirs = {row["job"]: int(row["finish_us"]) for row in csv.DictReader(open(path, newline=""))}
    differ = [job for job in ours.keys() | theirs.keys() if ours.get(job) != theirs.get(job)]
    print(f"{len(theirs)} jobs, {len(differ)} of which end at another microsecond")
    sys.exit(bool(differ))


def main(arguments):
    if arguments[0] == "--compare":
        compare(*arguments[1:])
    path, machines, _, output = arguments
    simulation = Simulation(path, machines)
    simulation.env.run()
    with open(output, "w", newline="") as file:
        csv.writer(file).writerows([("job", "finish_us"), *simulation.finish.items()])


if __name__ == "__main__":
    main(sys.argv[1:])
