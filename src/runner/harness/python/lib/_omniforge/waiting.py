"""Gets ready for a call that is not there yet: imports what its code will, then takes the call's environment."""

import posix

from _omniforge import channel, driver


def until_called(plan):
    """The text of the call's request. What it returns to is as if the process had been started for the call."""
    driver.prepare()
    # Modules that look for the program that imports them find it.
    driver.new_module("__main__" if plan["style"] == "script" else "tool", "")
    fits = _import_all(plan["preload"])
    driver.compiled("pass\n")
    channel.flush_output()
    channel.send(b'{"type":"ready"}' if fits else b'{"type":"unfit"}')
    _set_environment(channel.decode(channel.receive()))
    return channel.receive()


def _import_all(modules):
    try:
        for name, names in modules:
            __import__(name, {}, {}, names, 0)
    except BaseException:  # It fails in the call again, and is told there.
        return False
    return True


def _set_environment(variables):
    """Makes these the variables, in this order, for C and for `os.environ`, which holds the same dictionary."""
    for name in list(posix.environ):
        posix.unsetenv(name)
    posix.environ.clear()
    for variable in variables:
        name, _, value = variable.encode().partition(b"=")
        posix.putenv(name, value)
        posix.environ[name] = value
