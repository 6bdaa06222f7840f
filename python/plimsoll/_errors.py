"""What goes wrong, as exceptions with the messages of the command line."""


class Error(Exception):
    """Something is wrong; ``exit_code`` is that of the command line."""

    exit_code = 1


class InputError(Error, ValueError):
    """A plan, a trace, an instance or an option is not accepted: the message has the place, and what would be."""

    exit_code = 2


class RunError(Error, RuntimeError):
    """The input was right, and there is no result: an output that cannot be written, runs in which no task could start."""


class Warning(UserWarning):  # noqa: A001 - plimsoll.Warning is what a filter names.
    """Something about the results that is easily missed, such as tasks that never started."""
