"""The part of the package that is in Rust."""

from os import PathLike
from typing import Any, Callable, Sequence

def call(
    name: str,
    given: dict[str, Any],
    options: dict[str, Any],
    own: Sequence[Any] = [],
    tell: Callable[[str], None] | None = None,
) -> tuple[int, str, str, list[str], BaseException | None]:
    """Runs a command with arguments of the calling function and options of its caller; returns exit code, output, problem, warnings, and the
    exception of a policy or metric in Python. Raises TypeError for an unknown argument or a value of another type.

    `tell` receives the progress.
    """

def check_policy(policy: Any) -> None:
    """Checks whether a policy is valid, as far as possible without a run."""

def is_policy(name: str) -> bool:
    """Returns whether a built-in policy has this name."""

def end_calls() -> None:
    """Ends all calls in progress, and waits for their end."""

def main(args: Sequence[str]) -> int:
    """Runs the program with these arguments, its name first; returns the exit code."""

def toml(json: str) -> str:
    """Converts a plan or an instance from JSON to TOML."""

def version() -> tuple[str, str | None]:
    """Returns the version, and the commit of the sources."""

def tables(folder: str | PathLike[str]) -> list[tuple[str, list[PathLike[str]]]]:
    """Returns the tables of a results folder, and the files of each."""

def moved(from_: str | PathLike[str], to: str | PathLike[str]) -> None:
    """Updates the record of copied results, so that its path of the plan is valid in the new folder."""

def write_frame(frame: Any, name: str, path: str | PathLike[str]) -> str:
    """Writes a frame to a Parquet file; returns its digest."""

class Table:
    """A table of results, for consumers of Arrow streams."""

    def __init__(self, name: str, paths: Sequence[str | PathLike[str]], kept: object | None = None) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def columns(self) -> list[tuple[str, str]]: ...
    def head(self, rows: int = 5) -> Table: ...
    def to_polars(self) -> Any: ...
    def to_pandas(self) -> Any: ...
    def __len__(self) -> int: ...
    def __repr__(self) -> str: ...
    def _repr_html_(self) -> str: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class Simulations:
    """Simulations of one setting, stepped together on threads."""

    def __init__(self, setting: str, count: int, begins_anew: bool) -> None: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def actions(self) -> int: ...
    def reset(self, seeds: Sequence[int | None]) -> tuple[bytearray, bytearray, bytearray, bytearray]: ...
    def step(self, actions: Sequence[int]) -> tuple[bytearray, bytearray, bytearray, bytearray]: ...
    def metrics(self, number: int) -> list[tuple[str, float]]: ...
    def jobs(self, number: int) -> list[tuple[str, str, float | None, float | None, float | None]]: ...
