"""Script style: runs the code as a program, `__main__`, as `python /tool/main.py` would."""

import sys
import posix

from _omniforge import channel, driver


def run(code):
    """Runs it; raises SystemExit with the program's status, so that the interpreter ends as always."""
    module = driver.new_module("__main__", code)
    try:
        exec(driver.compiled(code), module.__dict__)
    except SystemExit as stop:
        raise SystemExit(stop.code) from None
    except BaseException as error:
        _send_asked_for(error)
        _report(error)
        raise SystemExit(1) from None


def _send_asked_for(error):
    from _omniforge import failure

    frame = failure.asked_for(error)
    if frame is None or not channel.is_tool_process():
        return
    channel.flush_output()
    try:
        channel.send(channel.to_bytes(frame))
    except OSError:
        return
    posix._exit(0)


def _report(error):
    """Prints the traceback without the frames of the harness."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != driver.FILE:
        trace = trace.tb_next
    error.__traceback__ = trace
    channel.flush_output()
    if sys.excepthook is not sys.__excepthook__:
        sys.excepthook(type(error), error, trace)
        return
    import traceback

    traceback.print_exception(type(error), error, trace)
