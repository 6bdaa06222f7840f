"""Policies of one's own: an expression, a function that ranks users, or one that says how many tasks each should run."""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _plimsoll
from ._errors import InputError

if TYPE_CHECKING:
    import numpy


@dataclass(frozen=True, repr=False)
class Policy:
    """A policy of one's own; it goes wherever the name of a policy goes. `policy` makes it.

    Attributes:
        name: What tables and figures call it.
        expression: ``expr:(...)`` if it is an expression.
        rank: The function that ranks users, if there is one.
        targets: The function that says how many tasks each user should run, if there is one.
        resolve: When targets are solved anew.
        text: Its text, which stands in the metadata of tables; runs in a results folder are known by it.
        version: What its author calls this version.
    """

    name: str
    expression: str | None
    rank: Callable[[Users], Any] | None
    targets: Callable[[Problem], Any] | None
    resolve: str
    text: str
    version: str

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        kind = self.expression or ("a function that ranks users" if self.rank else f"targets, resolve={self.resolve}")
        return f"<plimsoll.Policy {self.name}: {kind}>" if kind != self.name else f"<plimsoll.Policy {self.name}>"


def policy(
    expression: str | None = None,
    *,
    rank: Callable[[Users], Any] | None = None,
    targets: Callable[[Problem], Any] | None = None,
    resolve: str = "change",
    name: str | None = None,
    version: str = "",
) -> Policy:
    """Makes a policy of one's own, of exactly one of an expression, `rank` and `targets`.

    Args:
        expression: The value by which users are served, the least first, such as ``"max(held[r] / (capacity[r] * weight[r]))"``, perhaps
            with more parts: ``"RANK; admit CONDITION; order KEY"``. It is compiled (docs/policies.md has the language).
        rank: ``rank(users)`` returns a number for each row of `Users`, the least served first.
        targets: ``targets(problem)`` returns how many tasks each user of a `Problem` should run at a time. The user furthest below, as
            running / target, is served first.
        resolve: When targets are solved anew: ``"change"``, ``"every:60s"`` or ``"tolerance:0.01"``.
        name: What tables and figures call it; the function's name, or the expression itself.
        version: A name for this version. Runs that are kept in a results folder are known by a policy's name, text and version: give another
            version where something else changes that the function reads.

    Returns:
        A `Policy`: ``plimsoll.replay(trace, machines, [mine, "drf"])``.

    Raises:
        InputError: An expression that is none, or a name that a built-in policy has.
        TypeError: Not exactly one of the three, or something that cannot be called.
    """
    if sum(one is not None for one in (expression, rank, targets)) != 1:
        raise TypeError("policy: expected exactly one of an expression, rank=FUNCTION and targets=FUNCTION")
    if expression is not None:
        if not isinstance(expression, str):
            raise TypeError(f"policy: {expression!r} is not accepted; expected an expression as text, or rank=FUNCTION")
        text = expression.strip()
        spelled = text if text.startswith("expr:") else f"expr:({text})"
        named = name or spelled
    else:
        function = rank or targets
        if not callable(function):
            raise TypeError(f"policy: {function!r} is not accepted; expected a function")
        spelled, text = None, source(function)
        named = name or getattr(function, "__name__", type(function).__name__)
    made = Policy(named, spelled, rank, targets, resolve, text, version)
    try:
        _plimsoll.check_policy(made)
    except ValueError as error:
        raise InputError(str(error)) from error
    if spelled is None or name is not None:
        if not re.fullmatch(r"[A-Za-z0-9_.+-]+", named):
            raise InputError(f"name: '{named}' is not accepted; expected name=..., of letters, digits and . _ + -")
        if _plimsoll.is_policy(named):
            raise InputError(f"name: '{named}' is not accepted, since a built-in policy has it; give another one")
    return made


def source(function: Callable[..., Any]) -> str:
    """The text of a function; where there is none, its name with a digest of its code."""
    inner = inspect.unwrap(function)
    while isinstance(inner, functools.partial):
        inner = inner.func
    try:
        return inspect.getsource(inner if hasattr(inner, "__code__") else type(inner))
    except (OSError, TypeError):
        code = getattr(inner, "__code__", None)
        told = repr((code.co_code, code.co_consts, code.co_names)) if code else repr(inner)
        return f"{getattr(inner, '__qualname__', inner)}, digest {hashlib.sha256(told.encode()).hexdigest()[:16]}"


def names_of(policies: Sequence[Any], own: list[Policy]) -> list[str]:
    """The names of policies, of which those of one's own are added to `own`."""
    for one in policies:
        if isinstance(one, Policy) and one not in own:
            if any(other.name == one.name for other in own):
                raise InputError(f"policies: '{one.name}' is the name of two policies; give one of them another name")
            own.append(one)
    return [one.name if isinstance(one, Policy) else one for one in policies]


def told(error: BaseException, function: Callable[..., Any]) -> str:
    """An exception in a line, with the place in the user's code where it comes from."""
    summary = f"{type(error).__name__}: {error}".strip().splitlines()[0]
    steps = traceback.walk_tb(error.__traceback__)
    frames = [(frame.f_code, line) for frame, line in steps if frame.f_globals.get("__name__") != __name__]
    if frames:
        code, line = frames[-1]
        return f"{summary} ({code.co_filename}, line {line}, in {code.co_name})"
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{summary} ({code.co_filename}, line {code.co_firstlineno}, in {code.co_name})" if code else summary


def _numpy() -> Any:
    try:
        import numpy
    except ImportError as error:
        raise ImportError("policies that are functions need NumPy: pip install numpy") from error
    return numpy


#: Columns of one number a row, in the order in which they stand in memory; then come those of one a resource, and the answers.
_SINGLE = ["running", "waiting", "launch", "user", "dominant_share", "weight"]
_EACH = ["held", "demand", "weights"]


class Users:
    """The users that wait, as columns: NumPy arrays of floats that the simulator writes, not to be written or kept beyond the call.

    A user has four rows: for its next task, and for the three after it, as if the tasks before them ran. Where a user launches more
    in a round, or tasks of another demand, the function is called again in the round, for that user's sake.

    Attributes:
        running: Tasks that run. Shape (rows,), as below unless another is named.
        waiting: Tasks that wait.
        launch: Which of the user's next tasks the row is for: 0, 1, 2 or 3.
        user: The user's number, from 0 in order of appearance: its place in `names`.
        dominant_share: The largest part of the cluster that the user holds of a resource; weights play no part.
        weight: The user's weight; NaN where weights differ by resource.
        held: What the user holds, in cores, GiB, ...; shape (resources, rows).
        demand: What its next task demands; shape (resources, rows).
        weights: Its weight by resource; shape (resources, rows).
        capacity: The cluster; shape (resources, 1).
        resources: Their names, in order.
        names: The names of all users so far, in order of appearance.
        now_s: The instant, in seconds.
    """

    running: numpy.ndarray
    waiting: numpy.ndarray
    launch: numpy.ndarray
    user: numpy.ndarray
    dominant_share: numpy.ndarray
    weight: numpy.ndarray
    held: numpy.ndarray
    demand: numpy.ndarray
    weights: numpy.ndarray

    def __init__(self, resources: list[str], capacity: numpy.ndarray, names: list[str]) -> None:
        self.resources, self.capacity, self.names = resources, capacity, names
        self.now_s = 0.0
        self._rows = 0
        self._columns: dict[str, numpy.ndarray] = {}

    def __len__(self) -> int:
        return self._rows

    def __getattr__(self, name: str) -> numpy.ndarray:
        # Made when somebody asks, and kept as long as the number of rows is the same.
        column = self.__dict__.get("_columns", {}).get(name)
        if column is None:
            known = ", ".join([*_SINGLE, *_EACH, "capacity", "resources", "names", "now_s"])
            raise AttributeError(f"users have no '{name}'; they have {known}")
        column = self.__dict__[name] = column[..., : self._rows]
        return column

    def _cut(self, rows: int) -> None:
        for name in (*_SINGLE, *_EACH):
            self.__dict__.pop(name, None)
        self._rows = rows


class Ranking:
    """The arrays of a run under a function that ranks users, and the way to call it."""

    def __init__(self, function: Callable[[Users], Any], resources: list[str], capacity: list[float]) -> None:
        self._numpy = _numpy()
        self._function = function
        self.names: list[str] = []
        self._users = Users(resources, self._numpy.array(capacity).reshape(-1, 1), self.names)
        self._base = self._numpy.zeros((0, 0))
        self._answers = self._base

    def room(self, rows: int) -> int:
        """Makes room for so many rows, keeps those that are there, and returns the address of all columns, one behind the other."""
        old, resources = self._base, len(self._users.resources)
        self._base = self._numpy.zeros((len(_SINGLE) + len(_EACH) * resources + 1, rows))
        if old.size:
            self._base[:, : old.shape[1]] = old
        seen = self._base.view()
        seen.flags.writeable = False
        columns = {name: seen[at] for at, name in enumerate(_SINGLE)}
        for at, name in enumerate(_EACH):
            first = len(_SINGLE) + at * resources
            columns[name] = seen[first : first + resources]
        self._users._columns = columns
        self._users._cut(0)
        return self._base.__array_interface__["data"][0]

    def know(self, names: list[str]) -> None:
        """More users have appeared."""
        self.names.extend(names)

    def ask(self, rows: int, now_s: float) -> None:
        """Has the function rank so many rows."""
        users = self._users
        if rows != users._rows:
            users._cut(rows)
            self._answers = self._base[-1, :rows]
        users.now_s = now_s
        found = self._function(users)
        try:
            self._answers[:] = found
        except (TypeError, ValueError) as error:
            shape = getattr(found, "shape", None)
            got = f"an array of shape {shape}" if shape is not None else repr(found)[:80]
            raise type(error)(f"it returned {got}; expected a number for each of {rows} rows") from None


class Problem:
    """What users demand, for a function that says how many tasks each should run at a time.

    Attributes:
        demand: What a task of each user demands, as a part of the whole cluster; the mean over its running and waiting tasks. Shape
            (resources, users).
        weight: The users' weights. Shape (users,).
        tasks: How many tasks each has, running and waiting: it can use no more. Shape (users,).
        resources: The names of resources, in order.
        capacity: The cluster, in cores, GiB, ...; shape (resources, 1).
    """

    def __init__(self, resources: list[str], capacity: numpy.ndarray, demand: Any, weight: Any, tasks: Any) -> None:
        self.resources, self.capacity = resources, capacity
        self.demand: numpy.ndarray = demand
        self.weight: numpy.ndarray = weight
        self.tasks: numpy.ndarray = tasks

    def __len__(self) -> int:
        return len(self.weight)


class Solver:
    """The way to call a function that says how many tasks users should run."""

    def __init__(self, function: Callable[[Problem], Any], resources: list[str], capacity: list[float]) -> None:
        self._numpy = _numpy()
        self._function = function
        self._resources, self._capacity = resources, self._numpy.array(capacity).reshape(-1, 1)

    def ask(self, demand: bytes, weight: bytes, tasks: bytes) -> list[float]:
        """The targets; all arrays are of doubles."""
        of = self._numpy.frombuffer
        weights = of(weight)
        problem = Problem(self._resources, self._capacity, of(demand).reshape(-1, len(weights)), weights, of(tasks))
        found = self._numpy.asarray(self._function(problem), dtype=float)
        if found.shape != weights.shape:
            raise ValueError(f"it returned an array of shape {found.shape}; expected a number of tasks for each of {len(weights)} users")
        if not (self._numpy.isfinite(found) & (found >= 0)).all():
            raise ValueError("it returned numbers that are negative or not finite; expected tasks")
        return found.tolist()
