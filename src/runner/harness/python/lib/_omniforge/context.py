"""The context of a call: `omniforge.ctx`, or the parameter `ctx` of `main`."""

from _omniforge import channel, driver

_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_ALIASES = {"warn": "warning", "fatal": "critical", "err": "error", "trace": "debug"}
_OFFERS = (
    "log, debug, info, warning, error, progress, report_progress, "
    "call, state, elicit, sample, roots, ask, elicitation, sampling, roots_request, start_task, close_stream, "
    "notify, resource_updated, "
    "tool, version, run_id, uri, request_id, meta, caller, client_capabilities"
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
    def uri(self):
        """The URI that is read, in the script of a resource."""
        return _fact("uri")

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

    def elicit(self, message, schema=None, *, key=None, url=None):
        """Asks the person behind the client to fill in a form (`schema`) or to visit `url`; waits for the answer."""
        return _questions().ask_one(self.elicitation(message, schema, url=url), key)

    def sample(self, messages, max_tokens=1024, *, key=None, **options):
        """Asks the client's model; waits for its message."""
        return _questions().ask_one(self.sampling(messages, max_tokens, **options), key)

    def roots(self, *, key=None):
        """Asks the client for its roots."""
        return _questions().ask_one(self.roots_request(), key)

    def ask(self, requests):
        """Asks for several things at once: {key: ctx.elicitation(…) | ctx.sampling(…) | ctx.roots_request()}."""
        return _questions().ask(requests)

    def elicitation(self, message, schema=None, *, url=None):
        """The request that `elicit` sends, for `ask`."""
        return _questions().elicitation(message, schema, url)

    def sampling(self, messages, max_tokens=1024, **options):
        """The request that `sample` sends, for `ask`."""
        return _questions().sampling(messages, max_tokens, **options)

    def roots_request(self):
        """The request that `roots` sends, for `ask`."""
        return _questions().roots()

    def call(self, tool, arguments=None, **more):
        """Calls another saved tool; gives its structured value, or its text. Raises ToolError where it fails."""
        answer = _asking().request("call", {"tool": str(tool), "arguments": dict(arguments or {}, **more)})
        return answer["text"] if answer["value"] is None else answer["value"]

    @property
    def state(self):
        """What the tool keeps for its caller from one call to the next: `get`, `set`, `delete`."""
        return _questions().STATE

    def start_task(self):
        """From here on the call is a task, or a handle for clients without tasks: nobody has to wait for it."""
        _asking().request("start_task", {})
        return _DONE

    def close_stream(self):
        """Ends the response stream early where the client can come back for the rest."""
        _asking().request("close_stream", {})
        return _DONE

    close_sse = close_stream

    def notify(self, kind):
        """Tells clients that a list has changed: "tools", "prompts" or "resources"."""
        _asking().request("notify", {"kind": str(kind)})
        return _DONE

    def resource_updated(self, uri):
        """Tells clients that follow this resource that what it holds has changed."""
        _asking().request("resource_updated", {"uri": str(uri)})
        return _DONE

    def __getattr__(self, name):
        raise AttributeError("the context has no %r; it has %s" % (name, _OFFERS))


def _questions():
    from _omniforge import questions

    return questions


def _asking():
    from _omniforge import asking

    return asking


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
        usable = not channel.is_too_deep(frame, text)
    except (TypeError, ValueError, RecursionError):
        usable = False
    if not usable:
        from _omniforge import results

        frame[field] = results.readable(frame[field])
        text = channel.encode(frame)
    data = channel.to_bytes(text)
    limit = driver.result_limit()
    if len(data) > limit:
        whole = text if not isinstance(frame[field], str) else frame[field]
        frame[field] = whole[: limit // 8] + "… [truncated]"
        data = channel.to_bytes(channel.encode(frame))
    try:
        channel.send(data)
    except OSError:
        pass  # The tool closed the descriptor, or the server is gone: nobody to tell.
    return _DONE
