"""Exceptions with the messages of the command line."""


class Error(Exception):
    """The base class of errors; ``exit_code`` is the exit code of the command line."""

    exit_code = 1


class InputError(Error, ValueError):
    """A plan, a trace, an instance or an option is not accepted: the message has the place and the accepted values."""

    exit_code = 2


class RunError(Error, RuntimeError):
    """The input is valid but there is no result: an output cannot be written, or no task of a run could start."""


class Warning(UserWarning):  # noqa: A001 - plimsoll.Warning is what a filter names.
    """A property of the results that is easily missed, such as tasks that never started."""
