"""Trains a small scheduler in a minute and compares it with first come, first served.

Covers: plimsoll.gym.VectorEnvironment, action masks, metrics of episodes, a plan's generator as workload.

Scenario: a pool of ten processors and 10 GiB, as in DeepRM (Mao et al., HotNets 2016): four jobs in five are short, and each needs much of
one resource and little of the other. The agent scores each job in the window by four weights (time waited, time requested, processors,
memory) and has a fifth one for the action that waits; it takes what is allowed and has the highest score. Evolution strategies
(Salimans et al., 2017) improve the weights: random changes are tried in pairs of opposite sign on the same seeds, and each counts by
its rank.

    pip install 'gymnasium>=1.1' numpy
    python examples/gym_train.py

It prints the mean slowdowns of fifo and of the agent on seeds that it was not trained on, with a 95 % confidence interval of their
difference: of fifo that waits for the first in line (on_blocked = "stop" in a plan), and that passes over jobs that do not fit ("skip",
where each job is a user of its own). All randomness comes from SEED.
"""

import argparse
import time

import numpy as np

from plimsoll.gym import VectorEnvironment

SEED = 7
MACHINES = "1x10c10g"
JOBS = 150


def job(name, weight, shortest, longest, much, little):
    """A class of jobs of one task each."""
    uniform = {"distribution": "uniform"}
    amounts = {much: {**uniform, "min": 2.5, "max": 5}, little: {**uniform, "min": 0.5, "max": 1}}
    return {"name": name, "weight": weight, "tasks": 1, "duration": {**uniform, "min": shortest, "max": longest}, "demand": amounts}


WORKLOAD = {
    "generator": "synthetic",
    "jobs": JOBS,
    "arrival": {"distribution": "exponential", "mean": 75},
    "class": [
        job("short-cpu", 4, 60, 180, "cpu", "memory_gib"),
        job("short-memory", 4, 60, 180, "memory_gib", "cpu"),
        job("long-cpu", 1, 600, 900, "cpu", "memory_gib"),
        job("long-memory", 1, 600, 900, "memory_gib", "cpu"),
    ],
}


def environment(count):
    """So many simulations, which show 32 jobs with times as parts of 15 minutes."""
    return VectorEnvironment(WORKLOAD, MACHINES, count, window=32, longest="15m", reward="slowdown_mean")


def scored(weights):
    """The rule by weights, a row for each simulation: the allowed action of the highest score."""

    def decide(observations, masks):
        scores = np.empty(masks.shape)
        scores[:, :-1] = np.einsum("nwf,nf->nw", observations[:, :, :4], weights[:, :4])
        scores[:, -1] = weights[:, 4]
        return np.where(masks, scores, -np.inf).argmax(axis=1)

    return decide


def fifo_stop(observations, masks):
    """The first in line, or to wait."""
    return np.where(masks[:, 0], 0, masks.shape[1] - 1)


def fifo_skip(observations, masks):
    """The first in line of those that fit."""
    return masks.argmax(axis=1)


def slowdowns(environments, decide, seeds):
    """Plays an episode in each simulation; their mean slowdowns."""
    observations, _ = environments.reset(seed=[int(seed) for seed in seeds])
    found = np.full(environments.num_envs, np.nan)
    while np.isnan(found).any():
        observations, _, ends, _, infos = environments.step(decide(observations, environments.action_masks()))
        for number in np.flatnonzero(ends & np.isnan(found)):
            found[number] = infos["metrics"]["slowdown_mean"][number]
    return found


def train(generations, pairs=16, spread=0.5, rate=0.5):
    """Evolution strategies; the weights."""
    rng = np.random.default_rng(SEED)
    environments = environment(2 * pairs)
    weights = np.zeros(5)
    for generation in range(generations):
        changes = rng.standard_normal((pairs, 5))
        tried = weights + spread * np.concatenate([changes, -changes])
        seeds = rng.integers(1_000_000, 2_000_000, pairs)
        results = slowdowns(environments, scored(tried), np.concatenate([seeds, seeds]))
        # 1 for the better of a pair, -1 for the worse: mean slowdowns differ much between seeds.
        better = np.sign(results[pairs:] - results[:pairs])
        weights = weights + rate * spread * (better @ changes) / pairs
        if generation % 20 == 0:
            print(f"generation {generation}: mean slowdown {results.mean():.2f}, weights {np.round(weights, 2)}", flush=True)
    return weights


def main():
    parser = argparse.ArgumentParser(description="Trains a small scheduler and compares it with fifo.")
    parser.add_argument("--generations", type=int, default=200)
    parser.add_argument("--episodes", type=int, default=60)
    options = parser.parse_args()
    begun = time.perf_counter()
    weights = train(options.generations)
    print(f"trained in {time.perf_counter() - begun:.0f} s: weights {np.round(weights, 2)}")
    unseen = range(1, options.episodes + 1)
    environments = environment(options.episodes)
    agent = slowdowns(environments, scored(np.tile(weights, (options.episodes, 1))), unseen)
    print(f"mean slowdown of the agent: {agent.mean():.2f} ({options.episodes} seeds)")
    beaten = True
    for name, rule in [("fifo, on_blocked stop", fifo_stop), ("fifo, on_blocked skip", fifo_skip)]:
        fifo = slowdowns(environments, rule, unseen)
        gain = fifo - agent
        half = 1.96 * gain.std(ddof=1) / np.sqrt(len(gain))
        low, high = gain.mean() - half, gain.mean() + half
        print(f"of {name}: {fifo.mean():.2f}; less by {gain.mean():.2f}, 95 % confidence interval {low:.2f} to {high:.2f}")
        beaten = beaten and low > 0
    return beaten


if __name__ == "__main__":
    raise SystemExit(0 if main() else "the agent does not beat fifo")
