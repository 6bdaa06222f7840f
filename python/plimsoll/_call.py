"""A call of the command line from Python: arguments, errors and warnings."""

from __future__ import annotations

import atexit
import json
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
from ._policies import Policy, names_of

atexit.register(_plimsoll.end_calls)

#: The name of a plan or an instance that is no file. Relative paths in it are relative to the working directory.
GIVEN = "<plan>"


class Kept:
    """A folder that goes away with this object."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="plimsoll-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


class Frames:
    """The frames of a call, as files that live as long as its results, and policies of the user's own.

    Attributes:
        kept: The folder that holds the files, or None if there are none.
        policies: The policies.
    """

    def __init__(self, kept: Kept | None = None) -> None:
        self.kept = kept
        self.policies: list[Policy] = []
        self._names: dict[str, str] = {}

    def file(self, rows: Any, name: str) -> str:
        """Writes a frame to a file, by a name that says which rows it has. Messages call it `name`."""
        self.kept = self.kept or Kept()
        # The index of a pandas frame is no column; of other frames nothing is known by this name.
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
        """A message that calls frames by their names."""
        for path, name in self._names.items():
            # The names of columns stand in no line of a frame.
            message = message.replace(f"{path}, line 1,", f"{name},")
            # Not as the value of a key, which a plan has.
            message = message.replace(f"{path},", f"{name},").replace(f"{path}:", f"{name}:")
            if path in message:
                message += f"\n{name} is a frame, which is another file in every call. Where runs are to be kept, give the path of a file."
        return message


class Line:
    """A line on standard error that changes."""

    def __init__(self) -> None:
        self._length = 0

    def __call__(self, text: str) -> None:
        """Writes another text over the last one."""
        sys.stderr.write("\r" + text.ljust(self._length))
        sys.stderr.flush()
        self._length = len(text)

    def end(self) -> None:
        """What follows stands in a line of its own."""
        if self._length:
            sys.stderr.write("\n")
            sys.stderr.flush()
        self._length = 0


def call(args: Iterable[Any], text: tuple[str, str] | None = None, frames: Frames | None = None) -> str:
    """Runs the program with arguments for the caller's caller, and returns what it prints. Raises `plimsoll.Error`, of what a policy of
    the user's own has raised; warns with `plimsoll.Warning`."""
    policies = frames.policies if frames else []
    args = [os.fspath(arg) for arg in args]
    # Without a terminal there are no bars; a notebook shows a line that changes.
    line = Line() if "ipykernel" in sys.modules and "--quiet" not in args else None
    try:
        code, printed, problem, noted, raised = _plimsoll.call(args, text, policies, line)
    finally:
        if line:
            line.end()
    told = telling(args[0], text, frames)
    for note in noted:
        warnings.warn(told(note), Warning, stacklevel=3)
    if code or raised:
        # A policy may have failed in the very last round, after which nobody asked.
        raise (InputError if code == 2 else RunError)(told(problem or str(raised))) from raised
    return printed


#: The message for an option that the command does not have, and the nearest one.
UNKNOWN = re.compile(r"unexpected argument '--(\S+)' found(?:.*?a similar argument exists: '--([^']+)')?", re.DOTALL)

#: An option of the command line in a message.
OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*[a-z])")


def argument(option: str) -> str:
    """The keyword of an option: ``on_blocked`` of ``on-blocked``."""
    return option.replace("-", "_")


def telling(command: str, text: tuple[str, str] | None, frames: Frames | None) -> Callable[[str], str]:
    """A function that puts the messages of a command into the words of this package: arguments for options, keys for places in a dict, and
    the names of frames for their files. Raises TypeError for the message about an option that the command does not have."""

    def told(message: str) -> str:
        if unknown := UNKNOWN.search(message):
            name, near = unknown.groups()
            hint = f"; did you mean '{argument(near)}'?" if near else ""
            raise TypeError(f"{command}() got an unexpected keyword argument '{argument(name)}'{hint}")
        # How to call the command line is of no use here.
        message = message.split("\n\nUsage: ")[0]
        message = frames.told(message) if frames else message
        if text:
            message = by_key(message, text)
        return OPTION.sub(lambda option: argument(option[1]), message)

    return told


def by_key(message: str, text: tuple[str, str]) -> str:
    """A message in which places in a text that was made of a dict are keys: ``workload.class[0].demand`` for a line and a column, which
    nobody has seen."""
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
    # The line itself is not shown: it is none that the caller wrote.
    return re.sub(r"\n *\|\n *\d+ \|.*\n *\|.*(?=\n|$)", "", marked.sub(key, message)).rstrip()


def options(given: Mapping[str, Any]) -> list[str]:
    """Options of the command line from keywords: ``on_blocked="stop"`` is ``--on-blocked stop``, ``tasks=True`` is ``--tasks``, and
    a list gives an option several times. What is None or False is left out. Raises TypeError for a value that is no word."""
    args = []
    for name, value in given.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            args.append(flag)
        else:
            values = value if isinstance(value, (list, tuple)) else [value]
            # As one word, so that a value with a hyphen in front is no option.
            args.extend(f"{flag}={word(one, name)}" for one in values)
    return args


#: What an option of the command line may be.
WORDS = (str, numbers.Number, os.PathLike)


def word(value: Any, name: str, example: str = "") -> str:
    """The value of an option as a word of the command line. Raises TypeError, which names the argument, for anything but text, a number or
    a path, such as a dict or a frame."""
    if isinstance(value, bool) or not isinstance(value, WORDS):
        expected = "text, a number or the path of a file" + (f", such as {example}" if example else "")
        raise TypeError(f"{name}: a value of type {type(value).__name__} is not accepted; expected {expected}")
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def named(policies: Any, frames: Frames) -> list[str]:
    """The names of policies, of which one alone may be given without a list. Raises TypeError for anything else."""
    given = list(policies) if isinstance(policies, (list, tuple)) else [policies]
    if all(isinstance(one, (str, Policy)) for one in given):
        return names_of(given, frames.policies)
    wrong = next(type(one).__name__ for one in given if not isinstance(one, (str, Policy)))
    raise TypeError(f"policies: a value of type {wrong} is not accepted; expected a name such as 'drf', a plimsoll.policy(...), or a list of them")


def given(what: Any, kind: str, frames: Frames) -> tuple[str | Path, tuple[str, str] | None]:
    """A plan or an instance as an argument, and the text that stands for it if it is no file."""
    if isinstance(what, Mapping):
        try:
            return GIVEN, (GIVEN, _plimsoll.toml(json.dumps(framed(what, frames, ""), default=plain)))
        except (TypeError, ValueError) as error:
            raise InputError(f"{kind}: {error}") from error
    if isinstance(what, (str, os.PathLike)):
        return Path(what), None
    raise TypeError(f"{kind}: a value of type {type(what).__name__} is not accepted; expected a path or a dict")


def framed(value: Any, frames: Frames, key: str) -> Any:
    """A value of a plan in which each frame is the path of a file with its rows."""
    if isinstance(value, Mapping):
        return {name: framed(of, frames, f"{key}.{name}".lstrip(".")) for name, of in value.items()}
    if isinstance(value, (list, tuple)):
        return [framed(of, frames, key) for of in value]
    if isinstance(value, Policy):
        return names_of([value], frames.policies)[0]
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


def plain(value: Any) -> Any:
    """A value that JSON has no word for, in plain words: paths as text, numbers and arrays of NumPy as numbers and lists."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{value!r} is not accepted; expected text, a number, a truth value, a list or a dict")


def literal(value: Any) -> str:
    """A value as it stands in a plan."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(name)} = {literal(of)}" for name, of in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(literal, value)) + "]"
    return json.dumps(value, default=plain, ensure_ascii=False)


def changes(given: Mapping[str, Any], frames: Frames) -> list[str]:
    """Changes of a plan: ``--set KEY=VALUE`` for each."""
    try:
        return [f"--set={key}={literal(framed(value, frames, key))}" for key, value in given.items()]
    except TypeError as error:
        raise InputError(f"changes: {error}") from error


def folder(out: str | os.PathLike | None) -> tuple[Path, Kept | None]:
    """The folder for results, and what keeps it: one of its own that goes away with the results if `out` is None."""
    if out is not None:
        return Path(out), None
    kept = Kept()
    return kept.path / "results", kept
