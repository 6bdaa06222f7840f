"""Results: tables, figures and the words in which the program sums them up."""

from __future__ import annotations

import html
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from . import _plimsoll
from ._call import Kept, call
from ._errors import InputError


class Figure:
    """A figure of the results; a notebook shows it.

    Attributes:
        path: The SVG file. Files of the same name that end in ``.png`` and ``.pdf`` may stand beside it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def _repr_svg_(self) -> str:
        return self.path.read_text(encoding="utf-8")

    def __repr__(self) -> str:
        return f"<plimsoll.Figure {self.path.stem}>"


def without_runs(folder: Path) -> dict[str, Any] | None:
    """The description of the results of a plan without runs (``[solve]``, ``[check]``, ``[failover]``); None of others."""
    try:
        return json.loads((folder / "made.json").read_text(encoding="utf-8")).get("about")
    except (OSError, ValueError):
        return None


class Results:
    """A results folder: what `plimsoll.run`, `plimsoll.replay` and `plimsoll.read` return.

    Every table is an attribute (``results.runs``, ``results.users``, ``results.jobs``, ...; `tables` lists those that are there) and can
    be given to whatever takes Arrow's ``__arrow_c_stream__``: ``polars.DataFrame(results.runs)``, ``pyarrow.table(results.runs)``,
    ``pandas.DataFrame.from_arrow(results.runs)``, and as a variable in a query of DuckDB. Rows stand by policy, then by seed; columns have
    their unit in their name and are described by ``plimsoll schema``. A plan without runs has figures and a report, but no tables.

    Attributes:
        folder: Where they are. Without a folder of their own, they go away with this object: see `save`.
        summary: What the command line prints, or None if the results were read.
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
        """The names of the tables that are there."""
        return list(self._files)

    def table(self, name: str) -> _plimsoll.Table:
        """The table of this name. Raises AttributeError if it was not written."""
        if name not in self._files:
            there = ", ".join(self._files)
            raise AttributeError(f"these results have no table '{name}'; they have {there} (docs/formats.md says how to get others)")
        if name not in self._opened:
            self._opened[name] = _plimsoll.Table(name, self._files[name], self._kept)
        return self._opened[name]

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
        """The figures by name, in the order of their names; none before `draw` or of a replay."""
        paths = sorted((self.folder / "figures").glob("*.svg"))
        return {path.stem: Figure(path) for path in paths}

    @property
    def report(self) -> Path | None:
        """The page with tables and figures, or None if it was not drawn."""
        page = self.folder / "report.html"
        return page if page.exists() else None

    def draw(self) -> Results:
        """Draws figures and the report of a replay, or anew. Returns these results."""
        call(["report", self.folder])
        return self

    def save(self, folder: str | os.PathLike) -> Results:
        """Copies the results to a folder that is not there yet, which is then what the command line would have written. Returns them as
        they stand there. Raises `plimsoll.InputError` if something is in the way."""
        folder = Path(folder)
        if folder.exists():
            raise InputError(f"{folder}: something of this name is there; expected a folder that is not")
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
