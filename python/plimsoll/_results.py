"""Results: tables, figures and the summary of the program."""

from __future__ import annotations

import html
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _plimsoll
from ._call import Frames, Kept, call, registered_functions
from ._declared import ResultTables
from ._errors import InputError
from ._metrics import Metric
from ._policies import Policy, names_of


class Figure:
    """A figure of the results, which a notebook displays.

    Attributes:
        path: The SVG file. Its folder may also have files of the same name that end in ``.png`` and ``.pdf``.
    """

    def __init__(self, path: Path, kept: Kept | None = None) -> None:
        self.path = path
        self._kept = kept

    def _repr_svg_(self) -> str:
        return self.path.read_text(encoding="utf-8")

    def __repr__(self) -> str:
        return f"<plimsoll.Figure {self.path.stem}>"


def results_folder(results: Results | str | os.PathLike[str], name: str) -> Path:
    """Returns the folder of results. Raises TypeError with the name of the argument for a value of another type."""
    if isinstance(results, Results):
        return results.folder
    if isinstance(results, (str, os.PathLike)):
        return Path(results)
    raise TypeError(f"{name}: a value of type {type(results).__name__} is not accepted; expected results or the path of their folder")


def without_runs(folder: Path) -> dict[str, Any] | None:
    """Returns the description of results of a plan without runs (``[solve]``, ``[check]``, ``[failover]``), or None for other results."""
    try:
        return json.loads((folder / "made.json").read_text(encoding="utf-8")).get("about")
    except (OSError, ValueError):
        return None


class Results(ResultTables):
    """A results folder, as returned by `plimsoll.run`, `plimsoll.replay`, `plimsoll.study` and `plimsoll.read`.

    Every table is an attribute (``results.runs``, ``results.users``, ``results.jobs``, ...; `tables` lists the existing ones). Every
    library that accepts Arrow's ``__arrow_c_stream__`` can read it: ``polars.DataFrame(results.runs)``, ``pyarrow.table(results.runs)``,
    ``pandas.DataFrame.from_arrow(results.runs)``, and DuckDB as a variable in a query. Rows are ordered by policy, then by seed. Columns
    have their unit in their name; ``plimsoll schema`` describes them. A plan without runs has figures and a report, but no tables.

    Attributes:
        folder: The folder of the results. A temporary folder is deleted with this object: see `save`.
        summary: The output of the command line, or None if the results were read.
    """

    def __init__(self, folder: str | os.PathLike, summary: str | None = None, kept: Kept | None = None) -> None:
        self.folder = Path(folder)
        self.summary = summary
        self._kept = kept
        self._opened: dict[str, _plimsoll.Table] = {}
        self._without_runs = without_runs(self.folder)
        if self._without_runs is not None:
            self._files: dict[str, list[Path]] = {}
            return
        try:
            self._files = dict(_plimsoll.tables(self.folder))
        except ValueError as error:
            raise InputError(str(error)) from error

    @property
    def tables(self) -> list[str]:
        """The names of the existing tables."""
        return list(self._files)

    def table(self, name: str) -> _plimsoll.Table:
        """Returns the table of this name. Raises AttributeError if it was not written."""
        if name not in self._files:
            there = ", ".join(self._files)
            raise AttributeError(f"these results have no table '{name}'; they have {there} (docs/formats.md describes how to get others)")
        if name not in self._opened:
            self._opened[name] = _plimsoll.Table(name, self._files[name], self._kept)
        return self._opened[name]

    # For type checkers, the attributes are those of `ResultTables`.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> _plimsoll.Table:
            if name.startswith("_"):
                raise AttributeError(name)
            return self.table(name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._files]

    @property
    def about(self) -> dict[str, Any]:
        """The description of the results: name, policies, seeds, version, and the plan as text."""
        if self._without_runs is not None:
            return self._without_runs
        study = self.folder / "study.json"
        return json.loads((study if study.exists() else self.folder / "experiment.json").read_text(encoding="utf-8"))

    @property
    def plan(self) -> str:
        """The plan with all of its settings, as TOML."""
        return self.about["plan"]

    @property
    def figures(self) -> dict[str, Figure]:
        """The figures by name, in the order of their names; empty for a replay before `draw`."""
        paths = sorted((self.folder / "figures").glob("*.svg"))
        return {path.stem: Figure(path, self._kept) for path in paths}

    @property
    def report(self) -> Path | None:
        """The page with tables and figures, or None if it was not drawn."""
        page = self.folder / "report.html"
        return page if page.exists() else None

    def why(
        self,
        job: str,
        *,
        policy: str | None = None,
        run: int = 0,
        cell: str | None = None,
        own: Policy | Metric | Sequence[Policy | Metric] = (),
        without: str | Sequence[str] = (),
        shakes: int | None = None,
        shake: float | None = None,
    ) -> dict[str, Any]:
        """Explains why a job waited, by repeating its run.

        Args:
            job: The name of the job, as in the table `jobs`.
            policy: The policy; may be absent if there is one.
            run: The number of the run among those of the policy.
            cell: The cell of a sweep.
            own: The user-defined policies and metrics of the run, as they were given to `run` or `replay`.
            without: Causes that are removed in further runs, such as ``["user=alice", "machines=+1"]``.
            shakes: The number of perturbed pairs of runs for each cause.
            shake: The largest perturbation of a duration in percent.

        Returns:
            The JSON document of ``plimsoll why --format json``: the sentences in ``jobs[0]["explanation"]``, the intervals in
            ``jobs[0]["before_start"]`` with times in microseconds, and ``attribution``.

        Raises:
            InputError: There is no such job or run, the plan has changed, or the repeated run has other values than the stored one.
        """
        if not isinstance(job, str):
            raise TypeError(f"job: a value of type {type(job).__name__} is not accepted; expected text")
        options = {"policy": policy, "run": run, "cell": cell, "without": without, "shakes": shakes, "shake": shake}
        frames = Frames()
        given_own = [own] if isinstance(own, (Policy, Metric)) else list(own)
        names_of([one for one in given_own if not isinstance(one, Metric)], frames.own)
        known = {one.name for one in frames.own}
        frames.own += [one for one in given_own if isinstance(one, Metric)]
        registered_functions(self.about.get("plan", ""), frames)
        # Policies of installed packages are known by their names.
        names_of([name for name in self.about.get("policies", []) if name not in known], frames.own)
        args = {"source": self.folder, "jobs": [job], "format": "json", "quiet": True}
        return json.loads(call("why", args, options, frames))

    def draw(self) -> Results:
        """Draws figures and the report of a replay, or draws existing ones again. Returns these results."""
        call("report", {"folder": self.folder})
        return self

    def save(self, folder: str | os.PathLike) -> Results:
        """Copies the results to a new folder, which then has the content that the command line would have written. Returns the results in
        that folder. Raises `plimsoll.InputError` if a file or folder of this name exists."""
        folder = Path(folder)
        if folder.exists():
            raise InputError(f"{folder}: a file or folder of this name exists; expected a new folder")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".plimsoll-") as beside:
            os.rename(shutil.copytree(self.folder, Path(beside) / "results"), folder)
        _plimsoll.moved(self.folder, folder)
        return Results(folder, self.summary)

    def __repr__(self) -> str:
        return f"<plimsoll.Results in {self.folder}: {', '.join(self._files)}>"

    def __str__(self) -> str:
        return self.summary if self.summary is not None else repr(self)

    def _repr_html_(self) -> str:
        figures = "".join(figure._repr_svg_() for figure in self.figures.values())
        return f"<pre>{html.escape(str(self))}</pre>{figures}"
