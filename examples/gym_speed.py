"""Measures how many decisions a second environments take, each with 256 jobs that come faster than the cluster serves them.

    python examples/gym_speed.py

The agent chooses the first job that fits, so that nearly all of the time is that of the environments.
"""

import time

from plimsoll.gym import VectorEnvironment

WORKLOAD = {
    "generator": "synthetic",
    "jobs": 256,
    "arrival": {"distribution": "exponential", "mean": 8},
    "class": [
        {"name": "wide", "tasks": 4, "duration": "1m", "demand": {"cpu": 1, "memory_gib": 2}},
        {"name": "deep", "tasks": 1, "duration": "5m", "demand": {"cpu": 4, "memory_gib": 8}},
    ],
}

DECISIONS = 100_000


def measure(observation, count):
    """Decisions a second of so many simulations together."""
    environments = VectorEnvironment(WORKLOAD, "4x16c64g", count, observation=observation)
    _, infos = environments.reset(seed=0)
    begun = time.perf_counter()
    for _ in range(DECISIONS // count):
        _, _, _, _, infos = environments.step(infos["action_mask"].argmax(axis=1))
    return DECISIONS / (time.perf_counter() - begun)


if __name__ == "__main__":
    for observation in ["window", "image"]:
        for count in [1, 8, 32]:
            print(f"{observation}, {count:2} simulations: {measure(observation, count):8,.0f} decisions/s", flush=True)
