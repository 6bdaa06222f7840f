"""Plimsoll: a discrete-event simulator for the fair sharing of clusters.

    >>> import plimsoll
    >>> results = plimsoll.replay("trace.csv", machines="400x16c32g", policies=["drf", "fifo"])
    >>> print(results)              # what the command line prints
    >>> polars.DataFrame(results.users)

A call runs the same code as the command line, with the same plans, options and tables (https://docs.rs/plimsoll). The suffix of a
column's name is its unit: times are in microseconds (``_us``) or seconds (``_s``).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _call, _plimsoll
from ._call import Frames, call, folder, given, named
from ._errors import Error, InputError, RunError, Warning
from ._metrics import Jobs, Metric, metric
from ._plimsoll import Table
from ._policies import Policy, Problem, Users, policy
from ._results import Figure, Results, results_folder
from ._study import study

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._declared import (
        CheckOptions,
        CompareOptions,
        CourtOptions,
        DecideOptions,
        PlotOptions,
        ReplayOptions,
        SolveOptions,
        TraceStatsOptions,
    )

__version__, __commit__ = _plimsoll.version()

__all__ = [
    "Error",
    "Figure",
    "InputError",
    "Jobs",
    "Metric",
    "Policy",
    "Problem",
    "Results",
    "RunError",
    "Table",
    "Users",
    "Warning",
    "check",
    "compare",
    "court",
    "decide",
    "metric",
    "plot",
    "policies",
    "policy",
    "read",
    "replay",
    "run",
    "schema",
    "solve",
    "study",
    "trace_stats",
]


def run(
    plan: str | os.PathLike | Mapping[str, Any],
    out: str | os.PathLike | None = None,
    *,
    changes: Mapping[str, Any] | None = None,
    jobs: int | None = None,
    restart: bool = False,
    quiet: bool = False,
    **more: Any,
) -> Results:
    """Runs an experiment: all runs, tables, figures and the report.

    Args:
        plan: The path of a plan in TOML, or a dict with the same keys. In a dict ``workload["trace"]`` may be a frame, ``policies`` may
            contain your own (`policy`), ``metric`` functions (`metric`), and paths are relative to the working directory. A frame is written to a file that is deleted with
            the results; give a path instead to reuse runs in `out` or to bundle the results.
        out: The folder for the results. If None, a temporary folder that is deleted with the results. Runs of this plan that are
            already in the folder are kept.
        changes: Keys of the plan with their new values, such as ``{"workload.load": 0.7}``; values may be policies of your own.
        jobs: The number of threads. If None, all cores.
        restart: Whether to remove existing runs and run everything again.
        quiet: Whether to hide the progress.
        **more: Further changes: ``seeds=2`` is ``changes={"seeds": 2}``.

    Returns:
        `Results`.

    Raises:
        InputError: The plan is not accepted; the message has the place.
        RunError: The results cannot be written, or no task of a run started.
        KeyboardInterrupt: Ctrl-C; complete runs are kept in `out`.
    """
    place, kept = folder(out)
    frames = Frames(kept)
    changed = _call.changes({**(changes or {}), **more}, frames)
    args = {"plans": [given(plan, "plan", frames)], "output": place, "set": changed, "quiet": quiet}
    return Results(place, call("run", args, {"jobs": jobs, "restart": restart}, frames), frames.kept)


def replay(
    trace: Any,
    machines: str | os.PathLike,
    policies: str | Policy | Sequence[str | Policy],
    out: str | os.PathLike | None = None,
    *,
    quiet: bool = False,
    **more: Unpack[ReplayOptions],
) -> Results:
    """Replays a trace under some policies.

    Args:
        trace: A path (CSV, Parquet or a public format), or a frame with the columns of a canonical trace (docs/traces.md): any object with
            ``__arrow_c_stream__``, such as the frames of polars, pandas and pyarrow and the relations of DuckDB.
        machines: ``"400x16c32g"``, or the path of a CSV of machines.
        policies: The name of a policy, a policy of your own (`policy`), or a list of these.
        out: The folder for the results. If None, a temporary folder that is deleted with the results.
        quiet: Whether to hide the progress.
        **more: Options of ``plimsoll replay``: ``placement="first-fit"``, ``tasks=True``, ``weights="weights.csv"``, ``jobs=1``.

    Returns:
        `Results`.

    Raises:
        InputError: The trace or an option is not accepted. For a trace, the message has row and column.
        RunError: The results cannot be written, or no task started.
        TypeError: The trace is neither a path nor a frame.
        KeyboardInterrupt: Ctrl-C.
    """
    place, kept = folder(out)
    frames = Frames(kept)
    if not isinstance(trace, (str, os.PathLike)):
        trace = frames.file(trace, "trace")
    args = {"trace": trace, "machines": machines, "policies": named(policies, frames), "output": place, "quiet": quiet}
    return Results(place, call("replay", args, more, frames), frames.kept)


def solve(
    instance: str | os.PathLike | Mapping[str, Any],
    policies: str | Sequence[str] | None = None,
    **more: Unpack[SolveOptions],
) -> list[dict[str, Any]]:
    """Computes the allocation of each policy for an instance, without a simulation.

    Args:
        instance: The path of an instance in TOML or JSON, or a dict with the same keys (docs/solve.md).
        policies: The name of a policy, or a list of names. If None, all policies that can solve the instance.
        **more: Options of ``plimsoll solve``: ``whole_tasks=True``, ``on_blocked="stop"``, ``variant=...``.

    Returns:
        For each policy the JSON document of ``plimsoll solve --format json``, as lists and dicts. Fractions are text.

    Raises:
        InputError: The instance is not accepted; the message has the place.
        RunError: A solver did not converge.
    """
    names = named([] if policies is None else policies, Frames())
    args = {"instance": given(instance, "instance", Frames()), "policies": names, "format": "json"}
    found = json.loads(call("solve", args, more))
    return found if isinstance(found, list) else [found]


def check(policies: str | Policy | Sequence[str | Policy], **more: Unpack[CheckOptions]) -> list[dict[str, Any]]:
    """Searches for instances in which policies violate the fairness properties of the literature.

    Args:
        policies: The name of a policy, a policy of your own (`policy`), or a list of these. If the list has a policy of your own, all
            policies are checked in runs, with whole tasks.
        **more: Options of ``plimsoll check``: ``property=[...]``, ``effort="quick"``, ``whole_tasks=True``.

    Returns:
        The JSON document of ``plimsoll check --format json``: the finding for each property, with a smallest counterexample.

    Raises:
        InputError: A policy or an option is not accepted.
        RunError: A policy of your own raised.
        KeyboardInterrupt: Ctrl-C.
    """
    frames = Frames()
    args = {"policies": named(policies, frames), "format": "json", "quiet": True}
    return json.loads(call("check", args, {"whole_tasks": bool(frames.own), **more}, frames))


def decide(
    state: str | os.PathLike | Mapping[str, Any],
    policies: str | Policy | Sequence[str | Policy],
    **more: Unpack[DecideOptions],
) -> list[dict[str, Any]]:
    """Computes the decisions of policies on a given state: the tasks that start, are stopped and wait, with reasons.

    Args:
        state: The path of a state in TOML or JSON, or a dict with the same keys (docs/court.md).
        policies: The name of a policy, a policy of your own (`policy`), or a list of these.
        **more: Options of ``plimsoll decide``: ``rounds=3``.

    Returns:
        For each policy the JSON document of ``plimsoll decide --format json``: ``launched``, ``evicted``, ``waiting``, ``shares``.

    Raises:
        InputError: The state or a policy is not accepted; the message has the place.
        RunError: A policy of your own raised.
    """
    frames = Frames()
    args = {"state": given(state, "state", frames), "policies": named(policies, frames), "format": "json"}
    found = json.loads(call("decide", args, more, frames))
    return found if isinstance(found, list) else [found]


def court(
    scenario: str | os.PathLike | Mapping[str, Any] | None = None,
    policies: str | Policy | Sequence[str | Policy] | None = None,
    **more: Unpack[CourtOptions],
) -> list[dict[str, Any]]:
    """Runs scenarios of production schedulers to a verdict, or searches small states for a verdict.

    Args:
        scenario: The path of a scenario in TOML or JSON, the name of a built-in scenario, or a dict with the same keys (docs/court.md). If
            None, all built-in scenarios.
        policies: The name of a policy, a policy of your own (`policy`), or a list of these. If None, the policies with an expected outcome
            in the scenario.
        **more: Options of ``plimsoll court``: ``rounds=1000``, ``names=True``, ``search=True, size=6``.

    Returns:
        The JSON document of ``plimsoll court --format json``: ``verdict``, and for a livelock the ``cycle`` of rounds that recur. For a
        search, one document for each policy, with ``found``.

    Raises:
        InputError: The scenario or an option is not accepted.
        RunError: The outcome of a scenario differs from the expected one.
        KeyboardInterrupt: Ctrl-C.
    """
    frames = Frames()
    scenarios = [] if scenario is None else [given(scenario, "scenario", frames)]
    names = named([] if policies is None else policies, frames)
    args = {"scenarios": scenarios, "policies": names, "format": "json", "quiet": True}
    found = json.loads(call("court", args, more, frames))
    return found if isinstance(found, list) else [found]


def compare(before: Results | str | os.PathLike, after: Results | str | os.PathLike, **more: Unpack[CompareOptions]) -> dict[str, Any]:
    """Compares two results: the metrics that differ, with interval and test.

    Args:
        before: `Results`, or the folder of results.
        after: Other `Results`, or their folder.
        **more: Options of ``plimsoll compare``: ``metric=["completion_mean_s"]``, ``all=True``.

    Returns:
        The JSON document of ``plimsoll compare --format json``.

    Raises:
        InputError: A folder has no results, or there is no such metric.
    """
    args = {"before": results_folder(before, "before"), "after": results_folder(after, "after"), "format": "json"}
    return json.loads(call("compare", args, more))


def plot(results: Results | str | os.PathLike, **more: Unpack[PlotOptions]) -> dict[str, Figure]:
    """Draws the figures of results again.

    Args:
        results: `Results`, or the folder of results.
        **more: Options of ``plimsoll plot``: ``only=["completion"]``, ``preset="ieee"``.

    Returns:
        All figures of the folder by name.

    Raises:
        InputError: The folder has no results, or an option is not accepted.
    """
    call("plot", {"folder": results_folder(results, "results"), "quiet": True}, more)
    return (results if isinstance(results, Results) else Results(results)).figures


def trace_stats(trace: Any, **more: Unpack[TraceStatsOptions]) -> dict[str, Any]:
    """Describes a workload: sizes, demands, durations and arrivals, and the load that it offers to machines.

    Args:
        trace: As in `replay`, or the name of a generator.
        **more: Options of ``plimsoll trace stats``: ``machines="400x16c32g"``, ``from_="swf"``.

    Returns:
        The JSON document of ``plimsoll trace stats --format json``.

    Raises:
        InputError: The trace or an option is not accepted.
    """
    frames = Frames()
    if not isinstance(trace, (str, os.PathLike)):
        trace = frames.file(trace, "trace")
    return json.loads(call("trace_stats", {"trace": trace, "format": "json", "quiet": True}, more, frames))


def policies(name: str | None = None) -> Any:
    """Returns the description of a policy with its variants and keys, or a list of the descriptions of all policies.

    Raises:
        InputError: There is no policy of this name.
    """
    return json.loads(call("policies", {"format": "json", **({} if name is None else {"name": name})}))


def schema(*tables: str) -> dict[str, Any]:
    """Returns the columns of these tables, or of all tables: name, type, unit, meaning, and whether lower or higher values are better.

    Raises:
        InputError: There is no table of this name.
    """
    return json.loads(call("schema", {"tables": tables, "format": "json"}))


def read(folder: str | os.PathLike) -> Results:
    """Reads a results folder that the command line or another call has written.

    Raises:
        InputError: The folder has no results, or one of its tables was modified.
    """
    return Results(folder)
