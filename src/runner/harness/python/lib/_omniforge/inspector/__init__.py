"""Tells from a tool's syntax tree what it is: style, schemas, description, dependencies. Never runs the code."""

from _omniforge import channel
from _omniforge.inspector.problem import CodeError


def frame(code):
    """The inspector's answer as JSON text: `inspected` or `code_error`."""
    from _omniforge.inspector import analysis

    try:
        answer = analysis.inspect(code)
    except CodeError as error:
        answer = error.frame(code)
    except (RecursionError, MemoryError):
        answer = CodeError("the code is nested too deeply", 1, 1).frame(code)
    return channel.encode(answer)
