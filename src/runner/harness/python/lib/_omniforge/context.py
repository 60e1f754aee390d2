"""The context of a call: `omniforge.ctx`, or the parameter `ctx` of `main`."""

from _omniforge import channel, driver

_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_ALIASES = {"warn": "warning", "fatal": "critical", "err": "error", "trace": "debug"}
_OFFERS = (
    "log, debug, info, warning, error, progress, report_progress, "
    "tool, version, run_id, request_id, meta, caller, client_capabilities"
)


class _Done:
    """What the methods return: nothing, which may also be awaited (`await ctx.info(…)`)."""

    def __await__(self):
        return iter(())

    def __repr__(self):
        return "None"

    def __bool__(self):
        return False


_DONE = _Done()


class Context:
    """Facts about the call, and live messages to its caller."""

    @property
    def tool(self):
        """The tool's name."""
        return _fact("tool")

    @property
    def version(self):
        """The number of the tool's version."""
        return _fact("version")

    @property
    def run_id(self):
        """The run's id."""
        return _fact("run_id")

    @property
    def request_id(self):
        """The id of the client's request."""
        return _fact("request_id")

    @property
    def meta(self):
        """The `_meta` of the request."""
        return _fact("meta") or {}

    @property
    def caller(self):
        """Who calls."""
        return _fact("caller")

    @property
    def client_capabilities(self):
        """What the calling client can do."""
        return _fact("client_capabilities") or {}

    def log(self, level, data, logger=None):
        """Sends a log message; `level` is one of MCP's eight."""
        level = _ALIASES.get(str(level).lower(), str(level).lower())
        if level not in _LEVELS:
            raise ValueError("the log level must be one of %s, not %r" % (", ".join(_LEVELS), level))
        frame = {"type": "log", "level": level, "data": data}
        if logger is not None:
            frame["logger"] = str(logger)
        return _send(frame, "data")

    def debug(self, data, logger=None):
        """Logs a detail."""
        return self.log("debug", data, logger)

    def info(self, data, logger=None):
        """Logs what happens."""
        return self.log("info", data, logger)

    def warning(self, data, logger=None):
        """Logs that something may be wrong."""
        return self.log("warning", data, logger)

    def error(self, data, logger=None):
        """Logs that something went wrong."""
        return self.log("error", data, logger)

    def progress(self, done, total=None, message=None):
        """Tells how far the call is."""
        frame = {"type": "progress", "progress": _number("progress", done)}
        if total is not None:
            frame["total"] = _number("total", total)
        if message is not None:
            frame["message"] = str(message)
        return _send(frame, "message")

    def report_progress(self, progress, total=None, message=None):
        """The same as `progress`."""
        return self.progress(progress, total, message)

    def __getattr__(self, name):
        raise AttributeError("the context has no %r; it has %s" % (name, _OFFERS))


def _fact(name):
    return driver.request.get("context", {}).get(name)


def _number(name, value):
    number = float(value)
    if number != number or number in (float("inf"), float("-inf")):
        raise ValueError("%s must be a finite number, not %r" % (name, value))
    return int(value) if number.is_integer() else number


def _send(frame, field):
    try:
        text = channel.encode(frame)
    except (TypeError, ValueError, RecursionError):
        frame[field] = _readable(frame[field])
        text = channel.encode(frame)
    limit = driver.request.get("result_limit") or 4 << 20
    if len(text) > limit:
        whole = text if not isinstance(frame[field], str) else frame[field]
        frame[field] = whole[: limit // 8] + "… [truncated]"
        text = channel.encode(frame)
    try:
        channel.send(channel.to_bytes(text))
    except OSError:
        pass  # The tool closed the descriptor, or the server is gone: nobody to tell.
    return _DONE


def _readable(value):
    """The value with a text in place of each part that JSON has no form for."""
    from _omniforge import results
    from _omniforge.failure import Refusal

    try:
        return results.plain(value)
    except Refusal:
        pass
    if isinstance(value, dict):
        return {str(key): _readable(item) for key, item in value.items() if item is not value}
    if isinstance(value, (list, tuple)):
        return [_readable(item) for item in value if item is not value]
    return str(value)
