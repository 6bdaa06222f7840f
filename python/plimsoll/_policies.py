"""User-defined policies: an expression, a function that ranks users, or a function that returns how many tasks each user should run."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import inspect
import re
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from . import _plimsoll
from ._errors import InputError

if TYPE_CHECKING:
    import numpy


@dataclass(frozen=True, repr=False)
class Policy:
    """A user-defined policy, accepted wherever the name of a policy is. `policy` creates it.

    Attributes:
        name: The name in tables and figures.
        expression: ``expr:(...)``, or None if the policy is a function.
        rank: The function that ranks users, or None.
        targets: The function that returns how many tasks each user should run, or None.
        resolve: When targets are computed again.
        order: The expression that orders each user's task sets, or None.
        text: The source text. The metadata of tables contain it, and it identifies runs in a results folder.
        version: The author's name for this version.
    """

    name: str
    expression: str | None
    rank: Callable[[Users], Any] | None
    targets: Callable[[Problem], Any] | None
    resolve: str
    order: str | None
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
    order: str | None = None,
    name: str | None = None,
    version: str = "",
) -> Policy:
    """Creates a user-defined policy from exactly one of an expression, `rank` and `targets`.

    Args:
        expression: The rank of users, the lowest first, such as ``"max(held[r] / (capacity[r] * weight[r]))"``, optionally with more
            parts: ``"RANK; admit CONDITION; order KEY"``. It is compiled (docs/policies.md has the language).
        rank: ``rank(users)`` returns a number for each row of `Users`. The lowest is served first.
        targets: ``targets(problem)`` returns how many tasks each user of a `Problem` should run at a time. The user with the lowest
            running / target is served first.
        resolve: When targets are computed again: ``"change"``, ``"every:60s"`` or ``"tolerance:0.01"``.
        order: With `rank`, an expression over task sets and jobs, such as ``"job_attained"`` (the values after ``order`` in
            docs/policies.md). Each user's task set with the least value is next, and `Users` has columns about it. The function is then
            called for each queue, which is slower.
        name: The name in tables and figures. If None, the function's name, or the expression.
        version: A name for this version. Runs in a results folder are identified by the policy's name, text and version. Give another
            version if the function reads a value that has changed and that is not part of its text, such as a variable of an enclosing
            function.

    Returns:
        A `Policy`: ``plimsoll.replay(trace, machines, [mine, "drf"])``.

    Raises:
        InputError: The expression is invalid, or the name is invalid or that of a built-in policy.
        TypeError: Not exactly one of the three is given, or the function is not callable.
    """
    if sum(one is not None for one in (expression, rank, targets)) != 1:
        raise TypeError("policy: expected exactly one of an expression, rank=FUNCTION and targets=FUNCTION")
    if expression is not None:
        if not isinstance(expression, str):
            raise TypeError(f"policy: {expression!r} is not accepted; expected an expression as text, or rank=FUNCTION")
        text = expression.strip()
        spelled = text if text.startswith("expr:") else f"expr:({text})"
        named = spelled if name is None else name
    else:
        function = targets if rank is None else rank
        if not callable(function):
            raise TypeError(f"policy: {function!r} is not accepted; expected a function")
        spelled, text = None, source(function)
        named = getattr(function, "__name__", type(function).__name__) if name is None else name
    for key, value in {"name": named, "resolve": resolve, "version": version}.items():
        if not isinstance(value, str):
            raise TypeError(f"{key}: {value!r} is not accepted; expected text")
    if order is not None and (rank is None or not isinstance(order, str)):
        raise TypeError(f"order: {order!r} is not accepted; expected an expression as text, beside rank=FUNCTION")
    made = Policy(named, spelled, rank, targets, resolve, order, text, version)
    try:
        _plimsoll.check_policy(made)
    except ValueError as error:
        raise InputError(str(error)) from error
    if spelled is None or name is not None:
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*", named):
            raise InputError(
                f"name: '{named}' is not accepted; expected name=... that begins with a letter, a digit or _ and has only letters, "
                "digits and . _ + -"
            )
        if _plimsoll.is_policy(named):
            raise InputError(f"name: '{named}' is not accepted, since a built-in policy has it; give another one")
    return made


def source(function: Callable[..., Any]) -> str:
    """Returns the source text of a function and of the functions that it wraps, with the arguments of partial functions. A function without
    source text has a digest of its code instead."""
    if isinstance(function, functools.partial):
        return f"partial{function.args!r}{sorted(function.keywords.items())!r} of\n{source(function.func)}"
    code = getattr(function, "__code__", None)
    of = function if code else type(function)
    try:
        text = inspect.getsource(code or of)
    except (OSError, TypeError):
        code = code or getattr(getattr(of, "__call__", None), "__code__", None)
        told = hashlib.sha256(repr(compiled(code)).encode()).hexdigest()[:16] if code else "unknown"
        text = f"{getattr(of, '__qualname__', of)}, digest {told}"
    inner = getattr(function, "__wrapped__", None)
    return text if inner is None else f"{text}\nof\n{source(inner)}"


def compiled(value: Any) -> Any:
    """Returns the content of a code object or of a constant in it, which is the same in every process."""
    if hasattr(value, "co_code"):
        return (value.co_name, value.co_code, value.co_names, [compiled(constant) for constant in value.co_consts])
    if isinstance(value, frozenset):
        return sorted(repr(one) for one in value)
    return value


#: The group of entry points for policies of installed packages.
ENTRY_POINTS = "plimsoll.policies"


def registered(name: str) -> Policy | None:
    """Returns the policy that an installed package registers under this name, or None. Raises InputError if the entry point refers to
    anything else than a `Policy` with this name or a function that returns one."""
    # The name of a built-in policy always means this policy.
    return None if _plimsoll.is_policy(name) else registered_as(ENTRY_POINTS, name, Policy, "plimsoll.policy(...)")


Kind = TypeVar("Kind")


def registered_as(group: str, name: str, kind: type[Kind], expected: str) -> Kind | None:
    """Returns the object of this kind that an installed package registers in a group of entry points, or None. The entry point refers to
    the object or to a function that returns it. Raises InputError if it refers to anything else, or if the object has another name."""
    points = importlib.metadata.entry_points(group=group, name=name)
    if not points:
        return None
    [point, *others] = points
    if others:
        raise InputError(f"{group}: several installed packages register '{name}': {', '.join(str(one.dist.name) for one in points if one.dist)}")
    found: Any = point.load()
    found = found if isinstance(found, kind) or not callable(found) else found()
    if not isinstance(found, kind):
        raise InputError(f"{group}: the entry point '{name}' ({point.value}) is a {type(found).__name__}; expected a {expected}")
    if found.name != name:  # type: ignore[attr-defined]
        raise InputError(f"{group}: the entry point '{name}' ({point.value}) is named '{found.name}'; expected the same name")  # type: ignore[attr-defined]
    return found


def registered_names(group: str = ENTRY_POINTS) -> set[str]:
    """Returns the names of all policies, or of the objects of another group, that installed packages register."""
    return {point.name for point in importlib.metadata.entry_points(group=group)}


def names_of(policies: Sequence[Any], own: list[Any]) -> list[str]:
    """Returns the names of policies, and adds the user-defined ones and those of installed packages to `own`. Raises InputError if two of
    these have the same name."""
    policies = [registered(one) or one if isinstance(one, str) else one for one in policies]
    for one in policies:
        if isinstance(one, Policy) and one not in own:
            if any(isinstance(other, Policy) and other.name == one.name for other in own):
                raise InputError(f"policies: '{one.name}' is the name of two policies; give one of them another name")
            own.append(one)
    return [one.name if isinstance(one, Policy) else one for one in policies]


def told(error: BaseException, function: Callable[..., Any]) -> str:
    """Returns an exception as one line, with its place in the user's code."""
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


#: Columns with one number per row, in their order in memory. Columns with one number per resource follow, then the answers.
_SINGLE = ["running", "waiting", "launch", "user", "dominant_share", "weight", "priority", "release_s", "key"]
#: The columns that exist with an order of task sets.
_ORDERED = ["priority", "release_s", "key"]
_EACH = ["held", "demand", "weights"]


class Users:
    """The waiting users as columns: NumPy arrays of floats. The simulator overwrites them: do not modify them or keep them after a call.

    A user has four rows: for its next task, and for the three after it, as if the tasks before them ran. If a user launches more
    tasks in a round, or tasks with another demand, the function is called again in the round for that user.

    Attributes:
        running: Running tasks. Shape (rows,), as all columns below without a shape.
        waiting: Waiting tasks.
        launch: The index of the row's task among the user's next tasks: 0, 1, 2 or 3.
        user: The user's number, from 0 in order of appearance: its index in `names`.
        dominant_share: The largest share of the user in the capacity of a resource, without weights.
        weight: The user's weight; NaN if weights differ by resource.
        priority: The priority of the user's next task, 0 (most urgent) to 9. This column and the next two require a policy with `order`; they
            are NaN for a user whose queue was not ranked since its last change.
        release_s: When the next task could have started at the earliest, in seconds.
        key: The value of `order` for the next task.
        held: The user's allocation, in cores, GiB, ...; shape (resources, rows).
        demand: The demand of the user's next task; shape (resources, rows).
        weights: The user's weight by resource; shape (resources, rows).
        capacity: The capacity of the cluster; shape (resources, 1).
        resources: The names of the resources, in order.
        now_s: The current time, in seconds.
    """

    running: numpy.ndarray
    waiting: numpy.ndarray
    launch: numpy.ndarray
    user: numpy.ndarray
    dominant_share: numpy.ndarray
    weight: numpy.ndarray
    priority: numpy.ndarray
    release_s: numpy.ndarray
    key: numpy.ndarray
    held: numpy.ndarray
    demand: numpy.ndarray
    weights: numpy.ndarray

    def __init__(self, resources: list[str], capacity: numpy.ndarray, names: list[str]) -> None:
        capacity.flags.writeable = False
        self.resources, self.capacity, self._names = resources, capacity, names
        self.now_s = 0.0
        self._rows = 0
        self._columns: dict[str, numpy.ndarray] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all users so far, in order of appearance."""
        return tuple(self._names)

    def __len__(self) -> int:
        return self._rows

    def __getattr__(self, name: str) -> numpy.ndarray:
        # Created at the first access, and cached until the number of rows changes.
        column = self.__dict__.get("_columns", {}).get(name)
        if column is None:
            known = ", ".join([*self.__dict__.get("_columns", {}), "capacity", "resources", "names", "now_s"])
            hint = " (a policy with order=... has it)" if name in _ORDERED else ""
            raise AttributeError(f"users have no '{name}'{hint}; they have {known}")
        column = self.__dict__[name] = column[..., : self._rows]
        return column

    def _cut(self, rows: int) -> None:
        for name in (*_SINGLE, *_EACH):
            self.__dict__.pop(name, None)
        self._rows = rows


class Ranking:
    """Owns the arrays of a run under a function that ranks users, and calls this function."""

    def __init__(self, function: Callable[[Users], Any], resources: list[str], capacity: list[float], ordered: bool) -> None:
        self._numpy = _numpy()
        self._hidden = [] if ordered else _ORDERED
        self._function = function
        self.names: list[str] = []
        self._users = Users(resources, self._numpy.array(capacity).reshape(-1, 1), self.names)
        self._base = self._numpy.zeros((0, 0))
        self._answers = self._base

    def room(self, rows: int) -> int:
        """Allocates arrays for `rows` rows, copies the existing rows, and returns the address of all columns, one after the other."""
        old, resources = self._base, len(self._users.resources)
        self._base = self._numpy.zeros((len(_SINGLE) + len(_EACH) * resources + 1, rows))
        if old.size:
            self._base[:, : old.shape[1]] = old
        seen = self._base.view()
        seen.flags.writeable = False
        columns = {name: seen[at] for at, name in enumerate(_SINGLE) if name not in self._hidden}
        for at, name in enumerate(_EACH):
            first = len(_SINGLE) + at * resources
            columns[name] = seen[first : first + resources]
        self._users._columns = columns
        self._users._cut(0)
        return self._base.__array_interface__["data"][0]

    def know(self, names: list[str]) -> None:
        """Adds the names of users that have appeared."""
        self.names.extend(names)

    def ask(self, rows: int, now_s: float) -> None:
        """Calls the function, which ranks the first `rows` rows."""
        users = self._users
        if rows != users._rows:
            users._cut(rows)
            self._answers = self._base[-1, :rows]
        users.now_s = now_s
        found = self._function(users)
        if getattr(found, "dtype", None) != float or found.shape != (rows,):
            found = self._numbers(found, rows)
        self._answers[:] = found

    def _numbers(self, found: Any, rows: int) -> numpy.ndarray:
        """Converts values of another type to numbers. A single number applies to all rows."""
        try:
            numbers = self._numpy.asarray(found)
            if numbers.dtype.kind in "biuf" and numbers.shape in ((), (rows,)):
                return numbers.astype(float)
        except (TypeError, ValueError):
            pass
        got = f"an array of shape {found.shape}" if hasattr(found, "shape") else repr(found)[:80]
        raise ValueError(f"it returned {got}; expected a number for each of {rows} rows")


class Problem:
    """The demands of users, for a function that returns how many tasks each user should run at a time.

    Attributes:
        demand: The demand of a task of each user, as a part of the whole cluster: the mean over its running and waiting tasks. Shape
            (resources, users).
        weight: The users' weights. Shape (users,).
        tasks: The number of each user's running and waiting tasks, which is the most that it can use. Shape (users,).
        resources: The names of the resources, in order.
        capacity: The capacity of the cluster, in cores, GiB, ...; shape (resources, 1).
    """

    def __init__(self, resources: list[str], capacity: numpy.ndarray, demand: Any, weight: Any, tasks: Any) -> None:
        self.resources, self.capacity = resources, capacity
        self.demand: numpy.ndarray = demand
        self.weight: numpy.ndarray = weight
        self.tasks: numpy.ndarray = tasks

    def __len__(self) -> int:
        return len(self.weight)


class Solver:
    """Calls a function that returns how many tasks each user should run."""

    def __init__(self, function: Callable[[Problem], Any], resources: list[str], capacity: list[float]) -> None:
        self._numpy = _numpy()
        self._function = function
        self._resources, self._capacity = resources, self._numpy.array(capacity).reshape(-1, 1)

    def ask(self, demand: bytes, weight: bytes, tasks: bytes) -> list[float]:
        """Returns the targets; all arrays are of doubles."""
        of = self._numpy.frombuffer
        weights = of(weight)
        problem = Problem(self._resources, self._capacity, of(demand).reshape(-1, len(weights)), weights, of(tasks))
        found = self._numpy.asarray(self._function(problem), dtype=float)
        if found.shape != weights.shape:
            raise ValueError(f"it returned an array of shape {found.shape}; expected a number of tasks for each of {len(weights)} users")
        if not (self._numpy.isfinite(found) & (found >= 0)).all():
            raise ValueError("it returned numbers that are negative or not finite; expected tasks")
        return found.tolist()
