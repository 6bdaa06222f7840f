"""A study's runs as shards for an executor: processes of this machine, or the workers of a cluster."""

from __future__ import annotations

import concurrent.futures
import json
import os
import platform
import sys
import uuid
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import _call, _plimsoll
from ._call import Frames, call, given, options
from ._errors import InputError, RunError, Warning
from ._policies import Policy
from ._results import Results

#: Shards for each worker, so that one which gets long runs does not keep the others waiting.
PER_WORKER = 4

#: Seconds between two looks at whether Ctrl-C was pressed: one just before a thread waits does not wake it.
LOOK = 1

#: Shards where it cannot be told how many workers there are.
UNTOLD = 16


class NoFrames(Frames):
    """The frames of a study: there are none, since a file of this process is none of its workers."""

    def file(self, rows: Any, name: str) -> str:
        raise InputError(f"{name}: a frame is not accepted where workers run the study; expected the path of a file that all of them see")


def study(
    plan: str | os.PathLike | Mapping[str, Any],
    out: str | os.PathLike | None = None,
    executor: Any = None,
    *,
    shards: int | None = None,
    changes: Mapping[str, Any] | None = None,
    retries: int = 2,
    quiet: bool = False,
    **more: Any,
) -> Results:
    """Runs an experiment on the workers of an executor, each run on one thread, and sums it up in this process.

    Runs are dealt out as the shards of ``plimsoll run --shard`` and summed up as by ``--gather``: the tables are those of `plimsoll.run`,
    byte for byte. Runs that are in `out` already and belong to this plan are kept, so that a call after one that was interrupted makes
    only what is missing.

    Args:
        plan: The path of a plan in TOML, or a dict with the same keys, in which ``policies`` may have some of your own (`policy`) that
            the executor can hand to its workers: for a process pool a function that stands in a module. Paths in a dict are relative to
            the working directory of this process, and all workers must see the files of these names. No trace may be a frame.
        out: The folder for the results, which this process and all workers see under the same path.
        executor: An executor of the kind of ``concurrent.futures``, or a client of Dask. None: threads of this process, as
            `plimsoll.run`.
        shards: How many tasks for the executor; 4 for each worker if it is None, or 16 where it cannot be told how many workers there
            are, and no more than there are runs.
        changes: Keys of the plan and their values, such as ``{"workload.load": 0.7}``.
        retries: How many times a shard is submitted again if its worker dies.
        quiet: Show no progress.
        **more: Further changes: ``seeds=2`` is ``changes={"seeds": 2}``.

    Returns:
        `Results`, as they stand in `out`.

    Raises:
        InputError: The plan is not accepted, which is told before a shard is submitted, or a worker does not find its files.
        RunError: A shard has no result however many times it was submitted, or no task of a run started.
        TypeError: The executor is none.
        KeyboardInterrupt: Ctrl-C; shards that have not begun are cancelled, and runs that had ended are kept in `out`.
    """
    if out is None:
        raise InputError("out: is missing; expected a folder that this process and all workers see")
    out = Path(out)
    frames = NoFrames()
    name, text = given(plan, "plan", frames)
    changed = _call.changes({**(changes or {}), **more}, frames)
    if executor is None:
        return Results(out, call(["run", name, f"--output={out}", *options({"quiet": quiet}), *changed], text, frames))
    executor = checked(executor, shards, retries)
    listed = call(["run", name, f"--output={out}", "--dry-run", "--format=json", "--quiet", *changed], text, frames)
    if not listed:
        raise InputError("plan: has no runs to deal out; expected one with policies (plimsoll.run runs a plan of another kind)")
    missing = sum(not run["there"] for run in json.loads(listed))
    # Workers may have other working directories. Relative paths in a plan begin at the folder of its name.
    name = Path.cwd() / name
    text = text and (os.fspath(name), text[1])
    args = [os.fspath(arg) for arg in ["run", name, f"--output={out.absolute()}", "--jobs=1", "--quiet", *changed]]
    problems, noted = [], []
    if missing:
        of = shards or min(PER_WORKER * workers(executor) or UNTOLD, missing)
        problems, noted = Shards(executor, args, text, frames.policies, of, retries, Told(quiet)).run()
    for note in noted:
        warnings.warn(note, Warning, stacklevel=2)
    try:
        return Results(out, call([*args, "--gather"], text, frames))
    except InputError as error:
        # Runs are missing.
        why = problems or [f"All shards have ended: do all workers see {out.absolute()}?"]
        raise RunError("\n".join([str(error), *why])) from error


def checked(executor: Any, shards: Any, retries: Any) -> Any:
    """An executor of the kind of ``concurrent.futures``; for Dask's client the one that it gives. Raises TypeError for anything else,
    and InputError for numbers that are none."""
    if shards is not None and shards < 1:
        raise InputError(f"shards: {shards} is not accepted; expected at least 1")
    if retries < 0:
        raise InputError(f"retries: {retries} is not accepted; expected 0 or more")
    if hasattr(executor, "get_executor"):
        return executor.get_executor()
    if not hasattr(executor, "submit"):
        raise TypeError(f"executor: a value of type {type(executor).__name__} is not accepted; expected one as in concurrent.futures, or a client of Dask")
    return executor


def workers(executor: Any) -> int:
    """How many calls an executor makes at a time; 0 where it cannot be told."""
    client = getattr(executor, "_client", None)
    if hasattr(client, "nthreads"):
        return sum(client.nthreads().values())
    return getattr(executor, "_max_workers", None) or 0


def shard(args: list[str], text: tuple[str, str] | None, policies: list[Policy], token: str) -> tuple[int, str, list[str], str]:
    """Makes the runs of a shard, in a worker. Returns the exit code, what is wrong if it is not 0, warnings, and the name of the machine.

    `token` is another one in every call: Dask takes calls with equal arguments for one call.
    """
    del token
    code, _, problem, noted, _ = _plimsoll.call(args, text, policies)
    return code, problem, noted, platform.node()


class Told:
    """How far a study is, on standard error: a line that changes on a terminal and in a notebook, lines elsewhere."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.changes = sys.stderr.isatty() or "ipykernel" in sys.modules

    def __call__(self, ended: int, of: int) -> None:
        line = f"{ended} of {of} shards have ended"
        self._print(f"\r{line}{'' if ended < of else chr(10)}" if self.changes else f"{line}\n")

    def note(self, line: str) -> None:
        """Prints a line that stays."""
        self._print(f"\n{line}\n" if self.changes else f"{line}\n")

    def _print(self, text: str) -> None:
        if not self.quiet:
            sys.stderr.write(text)
            sys.stderr.flush()


class Shards:
    """The shards of a study, with an executor."""

    def __init__(
        self,
        executor: Any,
        args: list[str],
        text: tuple[str, str] | None,
        policies: list[Policy],
        of: int,
        retries: int,
        told: Told,
    ) -> None:
        self.executor, self.args, self.text, self.policies, self.of, self.told = executor, args, text, policies, of, told
        self.left = [retries] * of
        self.waiting: dict[concurrent.futures.Future, int] = {}
        self.problems: list[str] = []
        self.noted: list[str] = []

    def run(self) -> tuple[list[str], list[str]]:
        """Has all shards run. Returns the problems of those that have ended, which may miss runs, and the warnings.

        Raises:
            InputError: A shard did not accept its input.
            RunError: A shard has failed more times than it may.
        """
        try:
            for index in range(self.of):
                self.submit(index)
            self.told(0, self.of)
            while self.waiting:
                ended, _ = concurrent.futures.wait(self.waiting, LOOK, concurrent.futures.FIRST_COMPLETED)
                for future in ended:
                    self.take(self.waiting.pop(future), future)
        finally:
            for future in self.waiting:
                future.cancel()
        return self.problems, self.noted

    def submit(self, index: int) -> None:
        """Hands a shard to the executor. Raises `plimsoll.RunError` if that takes none any more."""
        args = [*self.args, f"--shard={index}/{self.of}"]
        try:
            future = self.executor.submit(shard, args, self.text, self.policies, uuid.uuid4().hex)
        except RuntimeError as error:
            again = "call again with another one: runs that have ended are kept"
            raise RunError(f"shard {index}/{self.of}: the executor takes no more tasks ({error}); {again}") from error
        if not isinstance(future, concurrent.futures.Future):
            kind = f"{type(future).__module__}.{type(future).__name__}"
            raise TypeError(f"executor: its futures, of type {kind}, are not accepted; expected concurrent.futures.Future")
        self.waiting[future] = index

    def take(self, index: int, future: concurrent.futures.Future) -> None:
        """Takes what became of a shard; submits it again if its worker died. Raises as `run`."""
        name = f"shard {index}/{self.of}"
        try:
            code, problem, noted, machine = future.result()
        # Not KeyboardInterrupt, which a process of this machine hears as well as this one.
        except Exception as error:
            why = f"{name}: {type(error).__name__}: {error}"
            if self.left[index] == 0:
                raise RunError(f"{why}\nRuns that have ended are kept for the next call") from error
            self.left[index] -= 1
            self.told.note(f"{why}; it is submitted again")
            return self.submit(index)
        if code == InputError.exit_code:
            raise InputError(f"{name}, on {machine}: {problem}")
        self.problems += [f"{name}, on {machine}: {problem}"] if code else []
        self.noted += noted
        self.told(self.of - len(self.waiting), self.of)
