"""Calls of commands from Python: arguments, errors and warnings."""

from __future__ import annotations

import atexit
import json
import math
import os
import re
import shutil
import sys
import tempfile
import warnings
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from . import _plimsoll
from ._errors import InputError, RunError, Warning
from ._metrics import ENTRY_POINTS as METRICS
from ._metrics import Metric, registered_metric
from ._policies import Policy, names_of, registered_names

atexit.register(_plimsoll.end_calls)

#: The name of a plan or an instance that is not a file. Relative paths in it are relative to the working directory.
GIVEN = "<plan>"


class Kept:
    """A temporary folder that is deleted with this object."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="plimsoll-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


class Frames:
    """The frames of a call, as files with the lifetime of its results, and the user's own policies and metrics.

    Attributes:
        kept: The folder of the files, or None if there are none.
        own: The user's own policies and metrics.
    """

    def __init__(self, kept: Kept | None = None) -> None:
        self.kept = kept
        self.own: list[Policy | Metric] = []
        self._names: dict[str, str] = {}

    def file(self, rows: Any, name: str) -> str:
        """Writes a frame to a file with a digest of its rows in the file name; returns the path. Messages call the file `name`."""
        self.kept = self.kept or Kept()
        # Drops the index of a pandas frame, which is not a column. Other frames have no method of this name.
        if hasattr(rows, "reset_index"):
            rows = rows.reset_index(drop=True)
        place = self.kept.path / "frame.parquet"
        try:
            digest = _plimsoll.write_frame(rows, name, place)
        except ValueError as error:
            raise InputError(str(error)) from error
        path = os.fspath(place.rename(place.with_name(f"frame-{digest[:16]}.parquet")))
        self._names[path] = name
        return path

    def told(self, message: str) -> str:
        """Returns a message with a note about the frames whose files are in it, as values of a plan."""
        for path, name in self._names.items():
            if path in message:
                message += f"\n{name} is a frame, which is another file in every call. To keep runs, give the path of a file."
        return message


class Line:
    """A line on standard error that is overwritten."""

    def __init__(self) -> None:
        self._length = 0

    def __call__(self, text: str) -> None:
        """Overwrites the last text with another one."""
        sys.stderr.write("\r" + text.ljust(self._length))
        sys.stderr.flush()
        self._length = len(text)

    def end(self) -> None:
        """Ends the line, so that further output is on a new line."""
        if self._length:
            sys.stderr.write("\n")
            sys.stderr.flush()
        self._length = 0


class Document(NamedTuple):
    """A plan, an instance or a state that is not a file: a name for messages, and TOML. Relative paths in it begin at the folder of the name."""

    name: str
    text: str


def call(command: str, given: Mapping[str, Any], options: Mapping[str, Any] | None = None, frames: Frames | None = None) -> str:
    """Runs a command and returns its output. `given` are the arguments of the calling function, and `options` those of its caller; values None
    of these are omitted.

    Warns with `plimsoll.Warning`, attributed to the caller's caller. Raises TypeError for an argument that the command does not have or of
    another type, and `plimsoll.Error`; its cause is the exception of the user's own policy or metric, if there is one.
    """
    frames = frames or Frames()
    chosen = {name: value for name, value in (options or {}).items() if value is not None}
    # Without a terminal there are no progress bars; a notebook shows a line that is overwritten.
    line = Line() if "ipykernel" in sys.modules and not given.get("quiet") else None
    try:
        code, printed, problem, noted, raised = _plimsoll.call(command, dict(given), chosen, frames.own, line)
    finally:
        if line:
            line.end()
    for note in noted:
        warnings.warn(frames.told(note), Warning, stacklevel=3)
    if code or raised:
        # A policy may have failed in the last round, after the last check for errors: then the exit code is 0.
        raise (InputError if code == 2 else RunError)(frames.told(problem or str(raised))) from raised
    return printed


def named(policies: Any, frames: Frames) -> list[str]:
    """Returns the names of policies; a single policy may be given without a list. Raises TypeError for anything else."""
    given = list(policies) if isinstance(policies, (list, tuple)) else [policies]
    if all(isinstance(one, (str, Policy)) for one in given):
        return names_of(given, frames.own)
    wrong = next(type(one).__name__ for one in given if not isinstance(one, (str, Policy)))
    raise TypeError(f"policies: a value of type {wrong} is not accepted; expected a name such as 'drf', a plimsoll.policy(...), or a list of them")


def given(what: Any, kind: str, frames: Frames) -> Path | Document:
    """Returns a plan or an instance as an argument."""
    if isinstance(what, Mapping):
        try:
            return Document(GIVEN, _plimsoll.toml(json.dumps(framed(what, frames, ""), default=plain)))
        except (TypeError, ValueError) as error:
            raise InputError(f"{kind}: {error}") from error
    if isinstance(what, (str, os.PathLike)):
        path = Path(what)
        names, metrics = registered_names(), registered_names(METRICS)
        if names or metrics:
            text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() and path.suffix == ".toml" else ""
            listed = "".join(re.findall(r"^\s*policies\s*=\s*\[(.*?)\]", text, re.DOTALL | re.MULTILINE))
            names_of([name for name in sorted(names) if f'"{name}"' in listed], frames.own)
            registered_functions(text, frames)
        return path
    raise TypeError(f"{kind}: a value of type {type(what).__name__} is not accepted; expected a path or a dict")


def registered_functions(plan: str, frames: Frames) -> None:
    """Adds the metrics of installed packages that the text of a plan names to those of the call."""
    functions = {name for _, name in re.findall(r"""\bfunction\s*=\s*(["'])(.*?)\1""", plan)}
    for name in sorted(registered_names(METRICS) & functions):
        metric_of(name, frames)


def framed(value: Any, frames: Frames, key: str) -> Any:
    """Returns a value of a plan with a file path in place of each frame, and a name in place of each policy."""
    if isinstance(value, Mapping):
        # The names of policies may be those of installed packages.
        listed = value.get("policies") if not key else None
        if isinstance(listed, (list, tuple)) and all(isinstance(one, (str, Policy)) for one in listed):
            value = {**value, "policies": names_of(listed, frames.own)}
        return {name: framed(of, frames, f"{key}.{name}".lstrip(".")) for name, of in value.items()}
    if isinstance(value, (list, tuple)):
        return [framed(of, frames, key) for of in value]
    if isinstance(value, Policy):
        return names_of([value], frames.own)[0]
    if isinstance(value, Metric):
        return {"function": metric_of(value, frames), "unit": value.unit, "better": value.better}
    if isinstance(value, str) and re.fullmatch(r"metric\.\w+\.function", key):
        return metric_of(value, frames)
    if value is None:
        raise InputError(f"{key}: None is not accepted; leave the key out")
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{key}: {value} is not accepted; expected a finite number")
    if not hasattr(value, "__arrow_c_stream__"):
        return value
    if hasattr(value, "to_list"):
        return value.to_list()
    if not key.endswith("workload.trace"):
        raise InputError(f"{key}: a {type(value).__name__} is not accepted; only workload.trace may be a frame")
    return frames.file(value, key)


def metric_of(value: str | Metric, frames: Frames) -> str:
    """Returns the name of a metric, and adds a user-defined one or that of an installed package to those of the call. Raises InputError if
    two metrics have the same name."""
    found = value if isinstance(value, Metric) else registered_metric(value)
    if found is not None and found not in frames.own:
        if any(isinstance(other, Metric) and other.name == found.name for other in frames.own):
            raise InputError(f"metric: '{found.name}' is the name of two functions; give one of them another name")
        frames.own.append(found)
    return value if isinstance(value, str) else value.name


def plain(value: Any) -> Any:
    """Converts a value that JSON cannot represent: paths to text, numbers and arrays of NumPy to numbers and lists."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{value!r} is not accepted; expected text, a number, a truth value, a list or a dict")


def literal(value: Any) -> str:
    """Returns a value in the syntax of a plan."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(name)} = {literal(of)}" for name, of in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(literal, value)) + "]"
    return json.dumps(value, default=plain, ensure_ascii=False)


def changes(given: Mapping[str, Any], frames: Frames) -> list[str]:
    """Returns ``KEY=VALUE`` for each change of a plan."""
    try:
        return [f"{key}={literal(framed(value, frames, key))}" for key, value in given.items()]
    except TypeError as error:
        raise InputError(f"changes: {error}") from error


def folder(out: str | os.PathLike | None) -> tuple[Path, Kept | None]:
    """Returns the folder for results and its owner: if `out` is None, a temporary folder that is deleted with the results."""
    if out is not None:
        return Path(out), None
    kept = Kept()
    return kept.path / "results", kept
