"""What the server is told of an exception: its type, its message and the frames of the tool's own code."""

import sys

from _omniforge import channel, driver

_MESSAGE_LIMIT = 64 << 10
_TRACEBACK_LIMIT = 16 << 10


class Refusal(Exception):
    """A value that can't be passed on; shown to the caller as `kind: message`, without frames."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


def frame(error, code):
    """The last frame for an exception that left the tool's code."""
    asked = asked_for(error)
    if asked is not None:
        return asked
    if isinstance(error, MemoryError):
        _release(error.__traceback__)
    if isinstance(error, Refusal):
        kind, message, traceback = error.kind, str(error), ""
    else:
        kind, message, traceback = _kind(error), _message(error), _frames(error, code.splitlines(), set())
    if not channel.is_tool_process():
        channel.flush_output()
        print("%s: %s" % (kind, message), file=sys.stderr)
    return channel.encode(
        {
            "type": "return",
            "kind": "exception",
            "exception": kind,
            "message": _cut(message, _MESSAGE_LIMIT),
            "traceback": _cut(traceback, _TRACEBACK_LIMIT),
        }
    )


def asked_for(error):
    """The frame of a ToolError or ProtocolError, also of one alone in an exception group; None for any other."""
    while isinstance(getattr(error, "exceptions", None), tuple) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    omniforge = sys.modules.get("omniforge")
    if omniforge is None:
        return None
    if isinstance(error, omniforge.ProtocolError):
        return channel.encode(
            {"type": "return", "kind": "protocol_error", "code": error.code, "text": error.text}
        )
    if isinstance(error, omniforge.ToolError):
        return channel.encode(
            {"type": "return", "kind": "tool_error", "text": error.text, "data": _data(error.data)}
        )
    return None


def _data(data):
    from _omniforge import results

    try:
        return results.plain(data)
    except Refusal:
        return str(data)


def _release(trace):
    """Lets go of the memory that the frames hold, so that there is some to report with."""
    while trace is not None:
        try:
            trace.tb_frame.clear()
        except RuntimeError:
            pass
        trace = trace.tb_next


def _kind(error):
    kind = type(error)
    name = kind.__qualname__
    return name if kind.__module__ in ("builtins", "tool", "__main__") else "%s.%s" % (kind.__module__, name)


def _message(error):
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, str) else "the tool left with exit status %r" % (error.code,)
    if isinstance(error, MemoryError) and not error.args:
        return "out of memory: the tool reached its memory limit"
    try:
        message = str(error)
        notes = getattr(error, "__notes__", None)
        return "\n".join([message, *map(str, notes)]) if isinstance(notes, list) else message
    except BaseException:  # noqa: BLE001: the tool's own __str__
        return "<the message of this %s can't be shown>" % type(error).__name__


def _frames(error, lines, seen):
    seen.add(id(error))
    shown = []
    trace = error.__traceback__
    while trace is not None:
        where = trace.tb_frame.f_code
        if where.co_filename == driver.FILE:
            shown.append(_line(trace.tb_lineno, where.co_name, lines))
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename == driver.FILE and error.lineno:
        shown.append(_line(error.lineno, None, lines))
    text = "".join(_fold(shown))
    for inner in getattr(error, "exceptions", None) or ():
        if isinstance(inner, BaseException) and id(inner) not in seen:
            text += "In the group: %s: %s\n%s" % (_kind(inner), _message(inner), _frames(inner, lines, seen))
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and id(cause) not in seen:
        link = "Caused by" if error.__cause__ is not None else "While handling"
        text += "%s %s: %s\n%s" % (link, _kind(cause), _message(cause), _frames(cause, lines, seen))
    return text


def _line(number, function, lines):
    where = '  File "%s", line %d' % (driver.FILE, number)
    if function is not None:
        where += ", in " + function
    code = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    return where + "\n" + ("    %s\n" % code if code else "")


def _fold(shown):
    """The frames, a long recursion shortened to its ends."""
    if len(shown) <= 30:
        return shown
    return [*shown[:10], "  … %d more frames …\n" % (len(shown) - 20), *shown[-10:]]


def _cut(text, limit):
    return text if len(text) <= limit else text[:limit] + "… [%d more characters]" % (len(text) - limit)
