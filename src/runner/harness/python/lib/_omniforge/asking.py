"""Requests of the script to the server, and through it to the client: sent in frames, answered in frames."""

import threading

from _omniforge import channel

_state = threading.Condition()
_answers = {}
_count = 0
_reading = False


def request(method, params):
    """Sends a request and waits for its answer's value; other threads may ask at the same time.

    Raises ToolError where the server refuses, MissingCapability where the client can't, TypeError where `params` can't be JSON, OSError where the descriptor is closed.
    """
    global _count
    if not channel.is_tool_process():
        raise OSError("only the process that OmniForge started can ask the server, not one that it forked")
    with _state:
        _count += 1
        number = _count
    frame = {"type": "request", "id": number, "method": method, "params": params}
    text = channel.encode(frame)
    if channel.is_too_deep(frame, text):
        raise ValueError("the request is nested more than %d levels deep" % channel.DEPTH_LIMIT)
    channel.flush_output()
    channel.send(channel.to_bytes(text))
    answer = _wait_for(number)
    if "error" in answer:
        import omniforge

        missing = answer["error"]["kind"] == "missing_capability"
        raise (omniforge.MissingCapability if missing else omniforge.ToolError)(answer["error"]["message"])
    return answer.get("result")


def _wait_for(number):
    """Whoever waits first reads for all."""
    global _reading
    with _state:
        while number not in _answers:
            if _reading:
                _state.wait()
                continue
            _reading = True
            _state.release()
            try:
                answer = channel.decode(channel.receive())
            finally:
                _state.acquire()
                _reading = False
                _state.notify_all()
            _answers[answer["id"]] = answer
        return _answers.pop(number)
