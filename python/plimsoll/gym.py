"""Environments of Gymnasium, in which an agent learns to choose the jobs that start.

    >>> import gymnasium, plimsoll.gym
    >>> environment = gymnasium.make("plimsoll/Window-v0", workload="trace.csv", machines="4x16c64g", jobs=256)

An episode is some jobs of a workload on a cluster. Whenever there is room for one of the first jobs in line, the agent decides: the
number of a place in this window starts as many tasks of the next task set of the job there as there is room for; the last action waits
until a job arrives or a task ends. docs/howto/gym.md has the observations, rewards and measures.
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
    """Simulations as arrays of NumPy."""

    def __init__(self, workload: Any, machines: Any, count: int, begins_anew: bool, keys: Mapping[str, Any]) -> None:
        if not isinstance(workload, (str, os.PathLike, Mapping)) and not hasattr(workload, "__arrow_c_stream__"):
            expected = "a path, a frame or a dict such as the table [workload] of a plan"
            raise TypeError(f"workload: {workload!r} is not accepted; expected {expected}")
        if not isinstance(machines, (str, Mapping)):
            expected = "text such as '4x16c64g', or a dict such as the table [cluster] of a plan"
            raise TypeError(f"machines: {machines!r} is not accepted; expected {expected}")
        # Rows of a frame are read again where a seed draws anything of them.
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
        #: Whether there is an episode that a step goes on with, or after which it begins the next one.
        self.live = False
        self.masks = numpy.zeros((count, self.actions), numpy.int8)

    def reset(self, seeds: Sequence[int | None]) -> numpy.ndarray:
        """Begins episodes; the observations."""
        for seed in seeds:
            if seed is not None and not 0 <= seed < 2**63:
                raise InputError(f"seed: {seed} is not accepted; expected 0 to {2**63 - 1}")
        observations, _, _ = self._seen(self._simulations.reset, seeds)
        self.live = True
        return observations

    def step(self, actions: list[int]) -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]:
        """Takes decisions; observations, rewards, and which episodes are over."""
        if not self.live:
            raise RunError("there is no episode that goes on; expected a call of reset() first")
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
        """The metrics of the episode that ended last."""
        return dict(self._simulations.metrics(number))

    def jobs(self, number: int) -> dict[str, numpy.ndarray]:
        """The jobs of the episode, a column each for what is known of them."""
        columns = list(zip(*self._simulations.jobs(number))) or [()] * 5
        names = ["job", "user", "submit_s", "start_s", "finish_s"]
        # None becomes NaN.
        types = [numpy.str_, numpy.str_, numpy.float64, numpy.float64, numpy.float64]
        return {name: numpy.array(column, of) for name, column, of in zip(names, columns, types)}


class Environment(gymnasium.Env):
    """One simulation after the other, as an environment of Gymnasium.

    Args:
        workload: A path (CSV, Parquet or a public format), a frame, or a dict with the keys of the table ``[workload]`` of a plan, such
            as a generator with its parameters. Of a trace, an episode has consecutive jobs from a place that the seed draws.
        machines: ``"4x16c64g"``, or a dict with keys of the table ``[cluster]``, such as
            ``{"machines": "4x16c64g", "placement": "first-fit"}``.
        observation: ``"window"``, rows of numbers as in RLScheduler (Zhang et al., SC 2020), or ``"image"``, as in DeepRM (Mao et al.,
            HotNets 2016).
        reward: A column of the table ``runs``: the rewards of an episode add up to its value, or to minus its value where less is
            better. Of ``"slowdown_mean"``, ``"completion_mean_s"`` and ``"wait_mean_s"`` they come as time passes, else at the end.
        jobs: How many jobs an episode has; all if it is None.
        window: How many jobs the agent can choose from; 128, or 10 with the image, if it is None.
        longest: The time that is 1 in the rows, as is all that is longer: ``"12h"`` if it is None.
        step: The time that a row of the image stands for: ``"60s"`` if it is None.
        horizon: How many rows the image has; 20 if it is None.
        slots: How many cells wide a resource is in the image; 10 if it is None.

    Raises:
        InputError: A workload, machines or an option is not accepted.
        TypeError: An argument is of another kind.
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
        """Begins an episode: with a seed the run of that seed in a plan, else the next one of the sequence that began with the last
        seed."""
        super().reset(seed=seed)
        if seed is None and not self._seeded:
            seed = int(self.np_random.integers(2**63 - 1))
        self._seeded = True
        observation = self._simulations.reset([seed])[0]
        return observation, {"action_mask": self._simulations.masks[0]}

    def step(self, action: int) -> tuple[numpy.ndarray, float, bool, bool, dict[str, Any]]:
        """Takes a decision and goes on to the next one.

        An action that the mask does not allow is a wait, or starts the first job that fits if there is nothing to wait for.
        """
        observations, rewards, ends = self._simulations.step([int(action)])
        info: dict[str, Any] = {"action_mask": self._simulations.masks[0]}
        over = bool(ends[0])
        if over:
            self._simulations.live = False
            info["metrics"] = self._simulations.metrics(0)
        return observations[0], float(rewards[0]), over, False, info

    def action_masks(self) -> numpy.ndarray:
        """Which actions are allowed now."""
        return self._simulations.masks[0].astype(numpy.bool_)

    def jobs(self) -> dict[str, numpy.ndarray]:
        """The jobs of this episode: name, user, and when each was submitted, started and ended; NaN for what has not happened."""
        return self._simulations.jobs(0)


class VectorEnvironment(gymnasium.vector.VectorEnv):
    """Several simulations, stepped together on threads, as a vector environment of Gymnasium.

    The arguments are those of `Environment`, and `num_envs` is the number of simulations. The step after the end of an episode begins
    the next one, whatever its action (``AutoresetMode.NEXT_STEP``).
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
        """Begins an episode in each: with seeds, or `seed`, `seed` + 1 and so on; each goes on as an `Environment` would."""
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
        """Takes a decision in each, as `Environment.step` does."""
        observations, rewards, ends = self._simulations.step(numpy.asarray(actions).tolist())
        infos = self._infos()
        for number in numpy.flatnonzero(ends).tolist():
            infos = self._add_info(infos, {"metrics": self._simulations.metrics(number)}, number)
        return observations, rewards, ends, numpy.zeros(self.num_envs, numpy.bool_), infos

    def _infos(self) -> dict[str, Any]:
        return {"action_mask": self._simulations.masks, "_action_mask": numpy.ones(self.num_envs, numpy.bool_)}

    def action_masks(self) -> numpy.ndarray:
        """Which actions are allowed now, a row for each simulation."""
        return self._simulations.masks.astype(numpy.bool_)

    def jobs(self, number: int) -> dict[str, numpy.ndarray]:
        """The jobs of the episode of a simulation, as `Environment.jobs` gives them."""
        return self._simulations.jobs(number)


for _name in ["window", "image"]:
    gymnasium.register(
        id=f"plimsoll/{_name.capitalize()}-v0",
        entry_point="plimsoll.gym:Environment",
        vector_entry_point="plimsoll.gym:VectorEnvironment",
        kwargs={"observation": _name},
        # Its own messages for wrong input come first.
        disable_env_checker=True,
    )
