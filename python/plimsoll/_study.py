"""Runs of a study as shards on an executor: processes of this machine, or the workers of a cluster."""

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
from ._call import Document, Frames, call, given
from ._errors import InputError, RunError, Warning
from ._results import Results

#: Shards per worker: several, so that other workers are busy while one worker has a shard with long runs.
PER_WORKER = 4

#: Seconds between two checks for Ctrl-C: a Ctrl-C just before a thread waits does not wake it.
LOOK = 1

#: Shards if the number of workers is unknown.
UNTOLD = 16


class NoFrames(Frames):
    """The frames of a study, which accepts none: a temporary file of this process may not exist for its workers."""

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
    """Runs an experiment on the workers of an executor, each run on one thread, and summarises it in this process.

    Runs are distributed as the shards of ``plimsoll run --shard`` and combined as by ``--gather``: the tables equal the tables of
    `plimsoll.run`, byte for byte. Runs of this plan that are already in `out` are kept, so a call after an interrupted one makes only the
    missing runs.

    Args:
        plan: The path of a plan in TOML, or a dict with the same keys. ``policies`` may contain your own (`policy`) if the executor can
            send them to its workers: a process pool requires functions of a module. Paths in a dict are relative to the working
            directory of this process, and all workers must see the files under these names. A trace must not be a frame.
        out: The folder for the results, which this process and all workers see under the same path.
        executor: An executor as in ``concurrent.futures``, or a client of Dask. If None, threads of this process, as in
            `plimsoll.run`.
        shards: The number of tasks for the executor. If None, 4 for each worker, or 16 if the number of workers is unknown, and at most
            the number of missing runs.
        changes: Keys of the plan with their new values, such as ``{"workload.load": 0.7}``.
        retries: How many times a shard is submitted again if its worker dies.
        quiet: Whether to hide the progress.
        **more: Further changes: ``seeds=2`` is ``changes={"seeds": 2}``.

    Returns:
        The `Results` in `out`.

    Raises:
        InputError: The plan is not accepted, which is reported before any shard is submitted, or a worker does not find its files.
        RunError: A shard failed at every submission, or no task of a run started.
        TypeError: The executor is not accepted.
        KeyboardInterrupt: Ctrl-C; shards that have not begun are cancelled, and complete runs are kept in `out`.
    """
    if out is None:
        raise InputError("out: is missing; expected a folder that this process and all workers see")
    out = Path(out)
    frames = NoFrames()
    read = given(plan, "plan", frames)
    changed = _call.changes({**(changes or {}), **more}, frames)
    if executor is None:
        return Results(out, call("run", {"plans": [read], "output": out, "set": changed, "quiet": quiet}, frames=frames))
    executor = checked(executor, shards, retries)
    args = {"plans": [read], "output": out, "set": changed, "quiet": True}
    listed = call("run", {**args, "dry_run": True, "format": "json"}, frames=frames)
    if not listed:
        raise InputError("plan: has no runs to distribute; expected one with policies (plimsoll.run runs a plan of another kind)")
    missing = sum(not run["there"] for run in json.loads(listed))
    # Workers may have other working directories. Paths in a plan are relative to the folder in its name.
    read = read._replace(name=os.fspath(Path.cwd() / read.name)) if isinstance(read, Document) else Path.cwd() / read
    args = {**args, "plans": [read], "output": out.absolute(), "jobs": 1}
    problems, noted = [], []
    if missing:
        of = shards or min(PER_WORKER * workers(executor) or UNTOLD, missing)
        problems, noted = Shards(executor, args, frames.own, of, retries, Told(quiet)).run()
    for note in noted:
        warnings.warn(note, Warning, stacklevel=2)
    try:
        return Results(out, call("run", {**args, "gather": True}, frames=frames))
    except InputError as error:
        # Runs are missing.
        why = problems or [f"All shards have ended: do all workers see {out.absolute()}?"]
        raise RunError("\n".join([str(error), *why])) from error


def checked(executor: Any, shards: Any, retries: Any) -> Any:
    """Returns an executor as in ``concurrent.futures``; for a client of Dask, the executor of the client. Raises TypeError for other types,
    and InputError for invalid numbers."""
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
    """Returns how many calls an executor makes at a time, or 0 if this is unknown."""
    client = getattr(executor, "_client", None)
    if hasattr(client, "nthreads"):
        return sum(client.nthreads().values())
    return getattr(executor, "_max_workers", None) or 0


def shard(args: dict[str, Any], own: list[Any], token: str) -> tuple[int, str, list[str], str]:
    """Makes the runs of a shard, in a worker. Returns the exit code, the problem if it is not 0, warnings, and the name of the machine.

    `token` differs in every call, because Dask treats calls with equal arguments as one call.
    """
    del token
    code, _, problem, noted, _ = _plimsoll.call("run", args, {}, own)
    return code, problem, noted, platform.node()


class Told:
    """The progress of a study on standard error: a line that is overwritten on a terminal and in a notebook, otherwise new lines."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.changes = sys.stderr.isatty() or "ipykernel" in sys.modules

    def __call__(self, ended: int, of: int) -> None:
        line = f"{ended} of {of} shards have ended"
        self._print(f"\r{line}{'' if ended < of else chr(10)}" if self.changes else f"{line}\n")

    def note(self, line: str) -> None:
        """Prints a line that is not overwritten."""
        self._print(f"\n{line}\n" if self.changes else f"{line}\n")

    def _print(self, text: str) -> None:
        if not self.quiet:
            sys.stderr.write(text)
            sys.stderr.flush()


class Shards:
    """The shards of a study on an executor."""

    def __init__(
        self,
        executor: Any,
        args: dict[str, Any],
        own: list[Any],
        of: int,
        retries: int,
        told: Told,
    ) -> None:
        self.executor, self.args, self.own, self.of, self.told = executor, args, own, of, told
        self.left = [retries] * of
        self.waiting: dict[concurrent.futures.Future, int] = {}
        self.problems: list[str] = []
        self.noted: list[str] = []

    def run(self) -> tuple[list[str], list[str]]:
        """Runs all shards. Returns the problems that ended shards report, whose runs may be missing, and the warnings.

        Raises:
            InputError: A shard rejected its input.
            RunError: A shard failed more often than `retries` allows.
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
        """Submits a shard to the executor. Raises `plimsoll.RunError` if the executor accepts no more tasks."""
        args = {**self.args, "shard": f"{index}/{self.of}"}
        try:
            future = self.executor.submit(shard, args, self.own, uuid.uuid4().hex)
        except RuntimeError as error:
            again = "call again with another one: runs that have ended are kept"
            raise RunError(f"shard {index}/{self.of}: the executor accepts no more tasks ({error}); {again}") from error
        if not isinstance(future, concurrent.futures.Future):
            kind = f"{type(future).__module__}.{type(future).__name__}"
            raise TypeError(f"executor: its futures, of type {kind}, are not accepted; expected concurrent.futures.Future")
        self.waiting[future] = index

    def take(self, index: int, future: concurrent.futures.Future) -> None:
        """Processes the outcome of a shard; submits it again if its worker died. Raises as `run`."""
        name = f"shard {index}/{self.of}"
        try:
            code, problem, noted, machine = future.result()
        # Not KeyboardInterrupt: Ctrl-C interrupts worker processes of this machine as well as this process.
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
