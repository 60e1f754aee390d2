"""The descriptor to the server: JSON values in frames, each after its length as four big-endian bytes.

Uses the C parts of `json` directly: `import json` would pull in `re` and `enum`, which doubles the time of a start.
"""

import sys
import posix
import _json
from _thread import RLock

DESCRIPTOR = 3
# Levels of nesting in a value; the server's JSON reader stops at 128 with all that is around it.
DEPTH_LIMIT = 100

_process = posix.getpid()
_lock = RLock()


class NotPlain(TypeError):
    """A value that JSON has no form for."""


class _Reading:
    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float
    memo = {}


class _NumberText(float):
    """A number that still knows how it was written."""

    __slots__ = ("text",)

    def __new__(cls, text):
        number = float.__new__(cls, text)
        number.text = text
        return number


def decode(text, keep_number_text=False):
    """The value of a JSON text. With `keep_number_text`, numbers with a fraction carry their `text`."""
    settings = _Reading
    if keep_number_text:
        settings = type("_Exact", (_Reading,), {"parse_float": _NumberText})
    try:
        return _json.make_scanner(settings)(text, 0)[0]
    except StopIteration as stop:
        raise ValueError("the request is not JSON at character %s" % stop.value) from None


def _refuse(value):
    raise NotPlain(type(value).__name__)


def encode(value):
    """The JSON text of a plain value. Raises TypeError, ValueError or RecursionError for any other."""
    encoder = _json.make_encoder({}, _refuse, _json.encode_basestring, None, ":", ",", False, False, False)
    return "".join(encoder(value, 0))


def is_too_deep(value, text):
    """Whether a plain value, whose JSON is `text`, is nested beyond what the server reads."""
    if text.count("[") + text.count("{") <= DEPTH_LIMIT:
        return False
    level = [value]
    for _ in range(DEPTH_LIMIT):
        level = [
            item
            for outer in level
            if isinstance(outer, (dict, list, tuple))
            for item in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(item, (dict, list, tuple))
        ]
        if not level:
            return False
    return True


def to_bytes(text):
    """UTF-8; half of a surrogate pair becomes U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def is_tool_process():
    """Whether this is the process that the server started: a forked child must not answer for it."""
    return posix.getpid() == _process


def receive():
    """The text of the server's next frame. Ends the process when the server is gone."""
    size = int.from_bytes(_read(4), "big")
    return _read(size).decode()


def _read(count):
    parts = []
    while count:
        try:
            part = posix.read(DESCRIPTOR, min(count, 1 << 20))
        except BlockingIOError:
            _wait(writing=False)
            continue
        if not part:
            posix._exit(0)
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def send(data):
    """Writes one frame. Raises OSError where the tool closed the descriptor or the server is gone."""
    if not is_tool_process():
        return
    with _lock:
        rest = memoryview(len(data).to_bytes(4, "big") + data)
        while rest:
            try:
                rest = rest[posix.write(DESCRIPTOR, rest) :]
            except BlockingIOError:
                _wait(writing=True)


def _wait(writing):
    import select

    poll = select.poll()
    poll.register(DESCRIPTOR, select.POLLOUT if writing else select.POLLIN)
    poll.poll()


def flush_output():
    """Writes out what was printed; a closed stream is no error."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        try:
            stream.flush()
        except BaseException:  # The tool may have put anything there.
            pass
