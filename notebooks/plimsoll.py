"""Reads the results of Plimsoll and gives all figures the same style, for the notebooks beside this file. It needs polars
and altair.

    import plimsoll
    runs = plimsoll.table("facebook", "runs")
"""

import os
from pathlib import Path

import polars as pl

#: The folder of results: the environment's PLIMSOLL_RESULTS, or the repository's folder.
RESULTS = Path(os.environ.get("PLIMSOLL_RESULTS", Path(__file__).resolve().parent.parent / "results"))

#: Colours that people with any colour vision can tell apart (Okabe and Ito), without yellow, which no printer likes.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000"]

#: Dashes, so that lines differ in black and white, too: altair's, and matplotlib's of the same place.
DASHES = [[1, 0], [6, 2], [2, 2], [8, 2, 2, 2], [4, 4], [10, 3], [1, 3]]
LINES = ["-", "--", ":", "-.", (0, (4, 4)), (0, (10, 3)), (0, (1, 3))]


def folder(name):
    """The folder of an experiment's results. Raises FileNotFoundError with the command that makes them if there are none."""
    path = RESULTS / name
    if not (path / "experiment.json").exists() and not (path / "study.json").exists():
        raise FileNotFoundError(f"no results in {path}: run `plimsoll run experiments/{name}.toml` first")
    return path


def table(name, table):
    """One table of all runs of an experiment, with a column for every axis of its sweep."""
    path = folder(name)
    cells = "cell=*/" if (path / "study.json").exists() else ""
    return pl.read_parquet(f"{path}/{cells}{table}/**/*.parquet", hive_partitioning=False)


def estimates(name):
    """Means with their 95 % confidence intervals: a row for every cell, policy and metric."""
    return pl.read_parquet(folder(name) / "statistics" / "estimates.parquet")


def differences(name):
    """Differences from the baseline, paired by seed: a row for every cell, policy and metric."""
    return pl.read_parquet(folder(name) / "statistics" / "differences.parquet")


def metric(frame, name):
    """The rows of one metric, those without an interval left out."""
    return frame.filter(pl.col("metric") == name).drop_nulls(["low", "high"])


def policies(frame):
    """The policies of a table, in the order in which they first appear: the colours follow it."""
    return frame["policy"].unique(maintain_order=True).to_list()


def provenance(name):
    """The provenance in the first table of an experiment: version, plan, digests."""
    path = sorted(folder(name).glob("**/runs/**/*.parquet"))[0]
    metadata = pl.read_parquet_metadata(path)
    return {key.removeprefix("plimsoll."): value for key, value in metadata.items() if key.startswith("plimsoll.")}


def theme(alt, width=320, height=200):
    """Makes altair draw in the style of the paper figures of `plimsoll run`: light axes, small text, these colours."""

    @alt.theme.register("plimsoll", enable=True)
    def _():
        axis = {"grid": True, "gridColor": "#e6e6e6", "labelFontSize": 10, "titleFontSize": 10, "titleFontWeight": "normal"}
        return {
            "config": {
                "view": {"continuousWidth": width, "continuousHeight": height, "stroke": None},
                "axis": axis,
                "legend": {"labelFontSize": 10, "titleFontSize": 10},
                "range": {"category": COLOURS},
                "line": {"strokeWidth": 2},
            }
        }


def colours(alt, frame):
    """Colour by policy, the same one in every figure of a table."""
    return alt.Color("policy:N", sort=policies(frame), scale=alt.Scale(domain=policies(frame), range=COLOURS))


def dashes(alt, frame):
    """Dashes by policy, for figures that are printed without colours."""
    names = policies(frame)
    return alt.StrokeDash("policy:N", sort=names, scale=alt.Scale(domain=names, range=DASHES[: len(names)]))
