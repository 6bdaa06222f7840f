"""Environments of Gymnasium for agents that learn to choose the jobs that start.

    >>> import gymnasium, plimsoll.gym
    >>> environment = gymnasium.make("plimsoll/Window-v0", workload="trace.csv", machines="4x16c64g", jobs=256)

An episode is some jobs of a workload on a cluster. Its window is the first jobs of the queue. The agent decides whenever a task of a job in
the window fits. An action is the number of a place in the window: it starts the tasks of the job at this place, of its next task set, that
fit. The last action waits until a job arrives or a task ends. docs/howto/gym.md has the observations, rewards and measures.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _plimsoll
from ._call import Frames, framed, plain
from ._errors import InputError, RunError

try:
    import gymnasium
    import numpy
    from gymnasium.vector import AutoresetMode
except ImportError as error:
    raise ImportError("plimsoll.gym needs NumPy and Gymnasium: pip install 'gymnasium>=1.1'") from error

__all__ = ["Environment", "VectorEnvironment"]


class _Simulations:
    """Simulations with states as arrays of NumPy."""

    def __init__(self, workload: Any, machines: Any, count: int, begins_anew: bool, keys: Mapping[str, Any]) -> None:
        if not isinstance(workload, (str, os.PathLike, Mapping)) and not hasattr(workload, "__arrow_c_stream__"):
            expected = "a path, a frame or a dict such as the table [workload] of a plan"
            raise TypeError(f"workload: {workload!r} is not accepted; expected {expected}")
        if not isinstance(machines, (str, Mapping)):
            expected = "text such as '4x16c64g', or a dict such as the table [cluster] of a plan"
            raise TypeError(f"machines: {machines!r} is not accepted; expected {expected}")
        # Keeps the files of frames: a reset reads their rows again if the workload depends on the seed.
        self._frames = Frames()
        try:
            setting = {
                "cluster": machines if isinstance(machines, Mapping) else {"machines": machines},
                "workload": workload if isinstance(workload, Mapping) else {"trace": workload},
                **{key: value for key, value in keys.items() if value is not None},
            }
            text = _plimsoll.toml(json.dumps(framed(setting, self._frames, ""), default=plain))
            self._simulations = _plimsoll.Simulations(text, count, begins_anew)
        except ValueError as error:
            raise InputError(self._frames.told(str(error))) from error
        self.count, self.shape, self.actions = count, self._simulations.shape, self._simulations.actions
        #: Whether a step is allowed: it continues an episode, or begins the next one.
        self.live = False
        self.masks = numpy.zeros((count, self.actions), numpy.int8)

    def reset(self, seeds: Sequence[int | None]) -> numpy.ndarray:
        """Begins episodes; returns the observations."""
        for seed in seeds:
            if seed is not None and not 0 <= seed < 2**63:
                raise InputError(f"seed: {seed} is not accepted; expected 0 to {2**63 - 1}")
        observations, _, _ = self._seen(self._simulations.reset, seeds)
        self.live = True
        return observations

    def step(self, actions: list[int]) -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]:
        """Takes one action in each simulation; returns observations, rewards, and whether each episode has ended."""
        if not self.live:
            raise RunError("there is no current episode; expected a call of reset() first")
        return self._seen(self._simulations.step, actions)

    def _seen(self, verb: Callable[[Any], tuple[bytearray, ...]], inputs: Any) -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]:
        try:
            observations, masks, rewards, ends = verb(inputs)
        except (ValueError, OverflowError) as error:
            raise InputError(self._frames.told(str(error))) from error
        self.masks = numpy.frombuffer(masks, numpy.int8).reshape(self.count, self.actions)
        observations = numpy.frombuffer(observations, numpy.float32).reshape(self.count, *self.shape)
        return observations, numpy.frombuffer(rewards, numpy.float64), numpy.frombuffer(ends, numpy.bool_)

    def metrics(self, number: int) -> dict[str, float]:
        """Returns the metrics of the episode that ended last."""
        return dict(self._simulations.metrics(number))

    def jobs(self, number: int) -> dict[str, numpy.ndarray]:
        """Returns the jobs of the episode as columns."""
        columns = list(zip(*self._simulations.jobs(number))) or [()] * 5
        names = ["job", "user", "submit_s", "start_s", "finish_s"]
        # None becomes NaN.
        types = [numpy.str_, numpy.str_, numpy.float64, numpy.float64, numpy.float64]
        return {name: numpy.array(column, of) for name, column, of in zip(names, columns, types)}


class Environment(gymnasium.Env):
    """A sequence of simulations as an environment of Gymnasium.

    Args:
        workload: A path (CSV, Parquet or a public format), a frame, or a dict with the keys of the table ``[workload]`` of a plan, such
            as a generator with its parameters. An episode of a trace has consecutive jobs from a position that the seed determines.
        machines: ``"4x16c64g"``, or a dict with keys of the table ``[cluster]``, such as
            ``{"machines": "4x16c64g", "placement": "first-fit"}``.
        observation: ``"window"``, rows of numbers as in RLScheduler (Zhang et al., SC 2020), or ``"image"``, as in DeepRM (Mao et al.,
            HotNets 2016).
        reward: A column of the table ``runs``: the rewards of an episode add up to its value, or to minus its value if less is
            better. Rewards for ``"slowdown_mean"``, ``"completion_mean_s"`` and ``"wait_mean_s"`` are given as time passes, others at the
            end.
        jobs: The number of jobs of an episode. If None, all.
        window: The number of jobs that the agent can choose from. If None, 128, or 10 with the image.
        longest: The time with the value 1 in the rows; longer times are 1 too. If None, ``"12h"``.
        step: The time that a row of the image represents. If None, ``"60s"``.
        horizon: The number of rows of the image. If None, 20.
        slots: The width of a resource in the image, in cells. If None, 10.

    Raises:
        InputError: A workload, machines or an option is not accepted.
        TypeError: An argument has the wrong type.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        workload: Any,
        machines: str | Mapping[str, Any],
        *,
        observation: str = "window",
        reward: str = "slowdown_mean",
        jobs: int | None = None,
        window: int | None = None,
        longest: str | None = None,
        step: str | None = None,
        horizon: int | None = None,
        slots: int | None = None,
    ) -> None:
        keys = {"observation": observation, "reward": reward, "jobs": jobs, "window": window}
        keys |= {"longest": longest, "step": step, "horizon": horizon, "slots": slots}
        self._simulations = _Simulations(workload, machines, 1, False, keys)
        self._seeded = False
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, self._simulations.shape, numpy.float32)
        self.action_space = gymnasium.spaces.Discrete(self._simulations.actions)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[numpy.ndarray, dict[str, Any]]:
        """Begins an episode. With a seed, it is the run of that seed in a plan; otherwise it is the next episode of the sequence that began
        with the last seed."""
        super().reset(seed=seed)
        if seed is None and not self._seeded:
            seed = int(self.np_random.integers(2**63 - 1))
        self._seeded = True
        observation = self._simulations.reset([seed])[0]
        return observation, {"action_mask": self._simulations.masks[0]}

    def step(self, action: int) -> tuple[numpy.ndarray, float, bool, bool, dict[str, Any]]:
        """Takes an action and simulates until the next decision.

        An action that the mask does not allow waits, or starts the first job that fits if there is no event to wait for.
        """
        observations, rewards, ends = self._simulations.step([int(action)])
        info: dict[str, Any] = {"action_mask": self._simulations.masks[0]}
        over = bool(ends[0])
        if over:
            self._simulations.live = False
            info["metrics"] = self._simulations.metrics(0)
        return observations[0], float(rewards[0]), over, False, info

    def action_masks(self) -> numpy.ndarray:
        """Returns whether each action is allowed now. Shape (actions,)."""
        return self._simulations.masks[0].astype(numpy.bool_)

    def jobs(self) -> dict[str, numpy.ndarray]:
        """Returns the jobs of this episode: name, user, and times of submission, start and end, in seconds. Future times are NaN."""
        return self._simulations.jobs(0)


class VectorEnvironment(gymnasium.vector.VectorEnv):
    """Several simulations, stepped together on threads, as a vector environment of Gymnasium.

    The arguments are those of `Environment`, and `num_envs` is the number of simulations. The step after the end of an episode begins
    the next episode, whatever its action (``AutoresetMode.NEXT_STEP``).
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(
        self,
        workload: Any,
        machines: str | Mapping[str, Any],
        num_envs: int = 1,
        *,
        observation: str = "window",
        reward: str = "slowdown_mean",
        jobs: int | None = None,
        window: int | None = None,
        longest: str | None = None,
        step: str | None = None,
        horizon: int | None = None,
        slots: int | None = None,
    ) -> None:
        if not isinstance(num_envs, int) or num_envs < 1:
            raise InputError(f"num_envs: {num_envs!r} is not accepted; expected a whole number from 1")
        keys = {"observation": observation, "reward": reward, "jobs": jobs, "window": window}
        keys |= {"longest": longest, "step": step, "horizon": horizon, "slots": slots}
        self._simulations = _Simulations(workload, machines, num_envs, True, keys)
        self._seeded = False
        self.num_envs = num_envs
        self.single_observation_space = gymnasium.spaces.Box(0.0, 1.0, self._simulations.shape, numpy.float32)
        self.single_action_space = gymnasium.spaces.Discrete(self._simulations.actions)
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, num_envs)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[numpy.ndarray, dict[str, Any]]:
        """Begins an episode in each simulation, with these seeds, or with `seed`, `seed` + 1 and so on. Each simulation has the sequence of
        episodes of an `Environment` with its seed."""
        if seed is None:
            seeds: list[int | None] = [None] * self.num_envs
            if not self._seeded:
                first = int(self.np_random.integers(2**62))
                seeds = [first + number for number in range(self.num_envs)]
        elif isinstance(seed, (int, numpy.integer)):
            super().reset(seed=int(seed))
            seeds = [int(seed) + number for number in range(self.num_envs)]
        else:
            seeds = list(seed)
        self._seeded = True
        observations = self._simulations.reset(seeds)
        return observations, self._infos()

    def step(self, actions: Any) -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray, numpy.ndarray, dict[str, Any]]:
        """Takes one action in each simulation, as `Environment.step` does."""
        observations, rewards, ends = self._simulations.step(numpy.asarray(actions).tolist())
        infos = self._infos()
        for number in numpy.flatnonzero(ends).tolist():
            infos = self._add_info(infos, {"metrics": self._simulations.metrics(number)}, number)
        return observations, rewards, ends, numpy.zeros(self.num_envs, numpy.bool_), infos

    def _infos(self) -> dict[str, Any]:
        return {"action_mask": self._simulations.masks, "_action_mask": numpy.ones(self.num_envs, numpy.bool_)}

    def action_masks(self) -> numpy.ndarray:
        """Returns whether each action is allowed now. Shape (simulations, actions)."""
        return self._simulations.masks.astype(numpy.bool_)

    def jobs(self, number: int) -> dict[str, numpy.ndarray]:
        """Returns the jobs of the episode of a simulation, as `Environment.jobs` does."""
        return self._simulations.jobs(number)


for _name in ["window", "image"]:
    gymnasium.register(
        id=f"plimsoll/{_name.capitalize()}-v0",
        entry_point="plimsoll.gym:Environment",
        vector_entry_point="plimsoll.gym:VectorEnvironment",
        kwargs={"observation": _name},
        # Gymnasium's checker would reject wrong input before this package can report it.
        disable_env_checker=True,
    )
