"""Metrics written in Python: functions of the finished jobs of a run."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._errors import InputError
from ._policies import _numpy, registered_as, source

if TYPE_CHECKING:
    import numpy


class Jobs:
    """The finished jobs of a run that were submitted in the measured window, as columns: NumPy arrays of shape (jobs,), in the order of
    completion. A missing value is NaN.

    Attributes:
        user: The names of the users.
        tasks: The numbers of tasks.
        submit_s: The instants of submission, in seconds, as all columns with this suffix.
        wait_s: The times from the submission to the first start.
        completion_s: The times from the submission to the end.
        ideal_s: The completion times with unlimited machines.
        slowdown: The completion times over the ideal ones.
        work_s: Tasks times duration.
    """

    user: numpy.ndarray
    tasks: numpy.ndarray
    submit_s: numpy.ndarray
    wait_s: numpy.ndarray
    completion_s: numpy.ndarray
    ideal_s: numpy.ndarray
    slowdown: numpy.ndarray
    work_s: numpy.ndarray

    def __init__(self, columns: dict[str, numpy.ndarray]) -> None:
        self.__dict__.update(columns)

    def __len__(self) -> int:
        return len(self.user)

    def __getitem__(self, name: str) -> numpy.ndarray:
        return getattr(self, name)

    def __getattr__(self, name: str) -> numpy.ndarray:
        raise AttributeError(f"jobs have no '{name}'; they have {', '.join(self.__dict__)}")


@dataclass(frozen=True, repr=False)
class Metric:
    """A user-defined metric, a value of ``plan["metric"]``. `metric` creates it.

    Attributes:
        name: The name of the function.
        function: The function.
        unit: ``"s"``, ``"fraction"`` or ``"1"``.
        better: ``"lower"``, ``"higher"`` or ``"neither"``.
        text: The source text. The metadata of tables contain it, and it identifies runs in a results folder.
        version: The author's name for this version.
    """

    name: str
    function: Callable[[Jobs], Any]
    unit: str
    better: str
    text: str
    version: str

    def __repr__(self) -> str:
        return f"<plimsoll.Metric {self.name}>"


def metric(function: Callable[[Jobs], Any], *, unit: str = "1", better: str = "neither", name: str | None = None, version: str = "") -> Metric:
    """Creates a user-defined metric from a function of the finished jobs of a run.

    Args:
        function: ``function(jobs)`` returns a number for the columns of `Jobs`, or None if the metric has no value. NaN counts as None.
        unit: ``"s"``, ``"fraction"`` or ``"1"``.
        better: ``"lower"``, ``"higher"`` or ``"neither"``.
        name: The name of the function in the plan. If None, the function's own name.
        version: A name for this version. Runs in a results folder are identified by the text and the version of their metrics.

    Returns:
        A `Metric`: ``plimsoll.run({..., "metric": {"late": plimsoll.metric(late, unit="fraction")}})``.

    Raises:
        InputError: The name is invalid.
        TypeError: The function is not callable, or another argument is not text.
    """
    if not callable(function):
        raise TypeError(f"metric: {function!r} is not accepted; expected a function")
    named = getattr(function, "__name__", type(function).__name__) if name is None else name
    for key, value in {"name": named, "unit": unit, "better": better, "version": version}.items():
        if not isinstance(value, str):
            raise TypeError(f"{key}: {value!r} is not accepted; expected text")
    named = "function" if named == "<lambda>" else named
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*", named):
        raise InputError(f"name: '{named}' is not accepted; expected name=... that begins with a letter, a digit or _ and has only letters, digits and . _ + -")
    return Metric(named, function, unit, better, source(function), version)


#: The group of entry points for metrics of installed packages.
ENTRY_POINTS = "plimsoll.metrics"


def registered_metric(name: str) -> Metric | None:
    """Returns the metric that an installed package registers under this name, or None. Raises InputError if the entry point refers to
    anything else than a `Metric` with this name or a function that returns one."""
    return registered_as(ENTRY_POINTS, name, Metric, "plimsoll.metric(...)")


def compute(function: Callable[[Jobs], Any], users: Sequence[str], user: bytes, columns: Sequence[tuple[str, bytes]]) -> float | None:
    """Calls a function with the columns of jobs; `user` are the numbers of their users."""
    np = _numpy()
    of = np.frombuffer(user, dtype=np.uint32)
    found = function(Jobs({"user": np.array(users, dtype=str)[of], **{name: np.frombuffer(values) for name, values in columns}}))
    if found is None:
        return None
    if getattr(found, "shape", None) == ():
        found = found.item()
    if not isinstance(found, numbers.Real) or math.isinf(found):
        raise ValueError(f"it returned {found!r}"[:100] + "; expected a finite number or None")
    return None if math.isnan(found) else float(found)
