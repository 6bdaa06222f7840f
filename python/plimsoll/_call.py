"""Calls of the command line from Python: arguments, errors and warnings."""

from __future__ import annotations

import atexit
import json
import keyword
import math
import numbers
import os
import re
import shutil
import sys
import tempfile
import warnings
import weakref
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

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
        """Returns a message with the names of frames in place of their files."""
        for path, name in self._names.items():
            # In a file, line 1 has the names of the columns; a frame has no lines.
            message = message.replace(f"{path}, line 1,", f"{name},")
            # A path without a comma or colon after it is the value of a key of a plan, and remains.
            message = message.replace(f"{path},", f"{name},").replace(f"{path}:", f"{name}:")
            # The advice for a file in another format is of no use for a frame.
            message = re.sub(f"; other logs are imported with a mapping, and `plimsoll trace guess '?{re.escape(path)}'?` writes a first one", "", message)
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


def call(args: Iterable[Any], text: tuple[str, str] | None = None, frames: Frames | None = None) -> str:
    """Runs the program with these arguments and returns its output.

    Warns with `plimsoll.Warning`, attributed to the caller's caller. Raises `plimsoll.Error`; its cause is the exception of the user's own
    policy or metric, if there is one.
    """
    own = frames.own if frames else []
    args = [os.fspath(arg) for arg in args]
    # Without a terminal there are no progress bars; a notebook shows a line that is overwritten.
    line = Line() if "ipykernel" in sys.modules and "--quiet" not in args else None
    try:
        code, printed, problem, noted, raised = _plimsoll.call(args, text, own, line)
    finally:
        if line:
            line.end()
    told = telling("trace_stats" if args[0] == "trace" else args[0], text, frames)
    for note in noted:
        warnings.warn(told(note), Warning, stacklevel=3)
    if code or raised:
        # A policy may have failed in the last round, after the last check for errors: then the exit code is 0.
        raise (InputError if code == 2 else RunError)(told(problem or str(raised))) from raised
    return printed


#: The message about an option that the command does not have, with the most similar option.
UNKNOWN = re.compile(r"unexpected argument '--(\S+)' found(?:.*?a similar argument exists: '--([^']+)')?", re.DOTALL)

#: An option of the command line in a message.
OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*[a-z])")


def argument(option: str) -> str:
    """Returns the keyword of an option: ``on_blocked`` for ``on-blocked``, and ``from_`` for ``from``."""
    return f"{option}_" if keyword.iskeyword(option) else option.replace("-", "_")


def telling(command: str, text: tuple[str, str] | None, frames: Frames | None) -> Callable[[str], str]:
    """Returns a function that translates the messages of a command into the terms of this package: arguments for options, keys for places
    in a dict, and the names of frames for their files. The function raises TypeError for an option that the command does not have."""

    def told(message: str) -> str:
        if unknown := UNKNOWN.search(message):
            name, near = unknown.groups()
            hint = f"; did you mean '{argument(near)}'?" if near else ""
            raise TypeError(f"{command}() got an unexpected keyword argument '{argument(name)}'{hint}")
        # Removes the usage of the command line.
        message = message.split("\n\nUsage: ")[0]
        message = frames.told(message) if frames else message
        if text:
            message = by_key(message, text)
        return OPTION.sub(lambda option: argument(option[1]), message)

    return told


def by_key(message: str, text: tuple[str, str]) -> str:
    """Returns a message with keys in place of positions in a text that was generated from a dict, which the caller has never seen:
    ``workload.class[0].demand`` for a line and a column."""
    name, lines = text[0], text[1].splitlines()

    def key(place: re.Match[str]) -> str:
        counts: dict[str, int] = {}
        table = ""
        for line in lines[: int(place[1])]:
            if header := re.fullmatch(r"(\[\[?)(.+?)\]\]?", line):
                table = header[2]
                if header[1] == "[[":
                    counts[table] = counts.get(table, -1) + 1
                    counts = {known: count for known, count in counts.items() if not known.startswith(f"{table}.")}
        parts = table.split(".") if table else []
        path = [part + (f"[{counts['.'.join(parts[: at + 1])]}]" if ".".join(parts[: at + 1]) in counts else "") for at, part in enumerate(parts)]
        found = re.match(r'("[^"]*"|[\w-]+) = ', (lines[int(place[1]) - 1 :] or [""])[0])
        return ".".join([*path, *([found[1]] if found else [])]) or "the dict"

    marked = re.compile(re.escape(name) + r": line (\d+), column \d+")
    # Removes the quoted line, which the caller did not write.
    return re.sub(r"\n *\|\n *\d+ \|.*\n *\|.*(?=\n|$)", "", marked.sub(key, message)).rstrip()


def options(given: Mapping[str, Any]) -> list[str]:
    """Returns options of the command line for keywords: ``on_blocked="stop"`` is ``--on-blocked stop``, ``tasks=True`` is ``--tasks``,
    ``from_="swf"`` is ``--from swf``, and a list repeats its option. Values None and False are omitted. Raises TypeError for a value of a type that `WORDS` does not have."""
    args = []
    for name, value in given.items():
        option = name[:-1] if name.endswith("_") and keyword.iskeyword(name[:-1]) else name
        flag = "--" + option.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            args.append(flag)
        else:
            values = value if isinstance(value, (list, tuple)) else [value]
            # As one argument, so that a value with a leading hyphen is not an option.
            args.extend(f"{flag}={word(one, name)}" for one in values)
    return args


#: The types of the values of command-line options.
WORDS = (str, numbers.Number, os.PathLike)


def word(value: Any, name: str, example: str = "") -> str:
    """Returns the value of an option as text for the command line. Raises TypeError with the name of the argument unless the value is text,
    a number or a path; a dict or a frame is not accepted."""
    if isinstance(value, bool) or not isinstance(value, WORDS):
        expected = "text, a number or the path of a file" + (f", such as {example}" if example else "")
        raise TypeError(f"{name}: a value of type {type(value).__name__} is not accepted; expected {expected}")
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def text(value: Any, name: str) -> str:
    """Returns a text. Raises TypeError with the name of the argument for a value of another type."""
    if isinstance(value, str):
        return value
    raise TypeError(f"{name}: a value of type {type(value).__name__} is not accepted; expected text")


def named(policies: Any, frames: Frames) -> list[str]:
    """Returns the names of policies; a single policy may be given without a list. Raises TypeError for anything else."""
    given = list(policies) if isinstance(policies, (list, tuple)) else [policies]
    if all(isinstance(one, (str, Policy)) for one in given):
        return names_of(given, frames.own)
    wrong = next(type(one).__name__ for one in given if not isinstance(one, (str, Policy)))
    raise TypeError(f"policies: a value of type {wrong} is not accepted; expected a name such as 'drf', a plimsoll.policy(...), or a list of them")


def given(what: Any, kind: str, frames: Frames) -> tuple[str | Path, tuple[str, str] | None]:
    """Returns a plan or an instance as an argument, and its name and text if it is not a file."""
    if isinstance(what, Mapping):
        try:
            return GIVEN, (GIVEN, _plimsoll.toml(json.dumps(framed(what, frames, ""), default=plain)))
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
        return path, None
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
    """Returns ``--set=KEY=VALUE`` for each change of a plan."""
    try:
        return [f"--set={key}={literal(framed(value, frames, key))}" for key, value in given.items()]
    except TypeError as error:
        raise InputError(f"changes: {error}") from error


def folder(out: str | os.PathLike | None) -> tuple[Path, Kept | None]:
    """Returns the folder for results and its owner: if `out` is None, a temporary folder that is deleted with the results."""
    if out is not None:
        return Path(out), None
    kept = Kept()
    return kept.path / "results", kept
