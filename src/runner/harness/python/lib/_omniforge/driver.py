"""Runs a tool: reads the request, runs the code in its style, sends back what came of it."""

import sys
import posix

from _omniforge import channel

FILE = "/tool/main.py"

# Set once by `serve`: the request, and its text (where numbers stand as they were written).
request = {}
request_text = ""

_PLAIN = (str, int, float, bool, list, dict, None, type(None))
_PLAIN_NAMES = ("str", "int", "float", "bool", "list", "dict", "None")


class _Source:
    """Shows the tool's code to `linecache`, `traceback` and `inspect`."""

    def __init__(self, code):
        self._code = code

    def get_source(self, _name):
        return self._code


def serve():
    """Serves one request and ends the process (function style) or lets it end as a program does."""
    global request, request_text
    request_text = channel.receive()
    waits = request_text.startswith('{"preload":')
    if waits:
        request_text = _wait(channel.decode(request_text))
    try:
        request = channel.decode(request_text)
    except (ValueError, RecursionError) as error:
        _finish(_exception("ValueError", "the arguments can't be read: %s" % error))
    if request.get("inspect"):
        from _omniforge import inspector

        _finish(inspector.frame(request["code"]))
    if not waits:
        prepare()
    if request["style"] == "script":
        from _omniforge import program

        program.run(request["code"])
    else:
        _finish(_run_function(request["code"], request["arguments"]))


def _wait(plan):
    """Gets ready for a call that is not there yet; its request, once it is. Nothing else remembers the wait."""
    from _omniforge import waiting

    text = waiting.until_called(plan)
    del sys.modules["_omniforge.waiting"], sys.modules["_omniforge"].waiting
    return text


def prepare():
    """Makes the process what the code of a tool finds."""
    posix.set_inheritable(channel.DESCRIPTOR, False)
    environment = posix.environ.get(b"OMNIFORGE_ENVIRONMENT")
    if environment:
        sys.path.append(environment.decode())
    sys.argv = [FILE]
    if sys.stdout is not None:
        sys.stdout.reconfigure(line_buffering=True)
    # What `site` would have put there.
    import builtins

    builtins.exit = builtins.quit = _exit
    builtins.help = _help


def _exit(code=None):
    raise SystemExit(code)


def _help(*request):
    import pydoc

    pydoc.help(*request)


def new_module(name, code):
    """A module for the tool's code, known under `name`: the one that was made while the call was waited for, or a fresh one."""
    module = sys.modules.get(name)
    if not (module and type(module.__loader__) is _Source):
        module = type(sys)(name)
    module.__file__ = FILE
    module.__loader__ = _Source(code)
    module.__builtins__ = sys.modules["builtins"]
    sys.modules[name] = module
    return module


class _Seen(BaseException):
    """Ends the execution of code that was only to be compiled."""


def compiled(code):
    """The code object of a module.

    The first `compile` of a process makes all the types of the syntax tree, which takes longer than everything else here;
    `exec` of a text makes none. So the code object is taken from the frame of an execution that ends before it begins.
    From Python 3.12 on, profiling leaves traces, and only `compile` will do.
    """
    seen = []

    def see(frame, event, _argument):
        found = frame.f_code
        if event == "call" and (found.co_name, found.co_filename) == ("<module>", "<string>"):
            seen.append(found)
            raise _Seen

    if sys.version_info < (3, 12):
        sys.setprofile(see)
        try:
            exec(code, {})
        except BaseException:  # Whatever else is wrong with the code, `compile` says it better.
            pass
        finally:
            sys.setprofile(None)
    if not seen:
        return compile(code, FILE, "exec", 0, True)
    import _imp

    _imp._fix_co_filename(seen[0], FILE)
    return seen[0]


def _run_function(code, arguments):
    try:
        module = new_module("tool", code)
        exec(compiled(code), module.__dict__)
        main = module.__dict__.get("main")
        if main is None:
            return _exception("NameError", "the code defines no function `main`")
        result = _call(main, arguments)
        if hasattr(result, "__await__"):
            from _omniforge import coroutine

            result = coroutine.run(result)
        return _result(result)
    except BaseException as error:
        from _omniforge import failure

        if isinstance(error, SystemExit) and error.code in (None, 0) and channel.is_tool_process():
            return '{"type":"return","kind":"nothing"}'
        return failure.frame(error, code)


def _call(main, arguments):
    function = main
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = getattr(function, "__code__", None)
    annotations = _annotations(function)
    if code is None or code.co_posonlyargcount or _takes_work(function, annotations, arguments):
        from _omniforge import conversion

        return conversion.call(main, function, arguments)
    for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        if takes_context(name, annotations.get(name)):
            arguments[name] = _context()
        elif type(arguments.get(name)) is float and annotations.get(name) in (int, "int"):
            arguments[name] = whole(arguments[name])
    return main(**arguments)


def _annotations(function):
    try:
        return function.__annotations__
    except Exception:  # Python 3.14 evaluates them here, and a name may be missing.
        return {}


def whole(number):
    """The int that a float such as 3.0 stands for (JSON Schema calls it an integer); any other float as it is."""
    return int(number) if number.is_integer() else number


def takes_context(name, annotation):
    """Whether a parameter gets the context instead of an argument."""
    if name in ("ctx", "context"):
        return True
    if isinstance(annotation, str):
        words = annotation.strip("\"' ").replace("]", " ").replace("|", " ").replace(",", " ").replace("[", " ").split()
        words = [word.rpartition(".")[2] for word in words]
        return "Context" in words[:2] and (words[0] in ("Context", "Optional", "Annotated") or "None" in words)
    if getattr(annotation, "__name__", None) == "Context":
        return getattr(annotation, "__module__", None) != "tool"
    if is_union(annotation):
        return any(takes_context("", one) for one in annotation.__args__)
    return hasattr(annotation, "__metadata__") and takes_context("", annotation.__origin__)


def is_union(annotation):
    """Whether it is a union of types, by whatever name Python has for that."""
    return type(annotation).__name__ in ("UnionType", "Union", "_UnionGenericAlias")


def _context():
    import omniforge

    return omniforge.ctx


def _takes_work(function, annotations, arguments):
    for name, annotation in annotations.items():
        if not _plain(annotation) and name != "return" and not takes_context(name, annotation):
            return True
    for default in getattr(function, "__defaults__", None) or ():
        if type(default).__name__ == "FieldInfo":
            return True
    return False


def _plain(annotation):
    """Whether values of this type are what JSON gives anyway."""
    if isinstance(annotation, str):
        return annotation in _PLAIN_NAMES
    if annotation in _PLAIN:
        return True
    inner = getattr(annotation, "__args__", None)
    if not inner:
        return False
    origin = getattr(annotation, "__origin__", None)
    if origin is dict and inner[0] is not str:
        return False
    if origin in (list, dict) or hasattr(annotation, "__metadata__") or is_union(annotation):
        return all(map(_plain, inner))
    return str(origin) == "typing.Literal" and all(type(value) in (str, int, bool, type(None)) for value in inner)


def _result(result):
    if result is None:
        return '{"type":"return","kind":"nothing"}'
    expects = request.get("context", {}).get("expects")
    if expects is not None:
        from _omniforge import shapes

        return _limited("value", {"value": shapes.payload(result, expects)})
    omniforge = sys.modules.get("omniforge")
    if omniforge is not None:
        if isinstance(result, omniforge.Result):
            return _limited("result", result._members())
        content = omniforge.content_blocks(result)
        if content is not None:
            return _limited("content", {"content": channel.encode(content)})
    if isinstance(result, str):
        return _limited("text", {"text": channel.encode(result)})
    try:
        payload = channel.encode(result)
        usable = not channel.is_too_deep(result, payload)
    except (TypeError, ValueError, RecursionError):
        usable = False
    if not usable:
        from _omniforge import results

        payload = channel.encode(results.plain(result))
    return _limited("value", {"value": payload})


def result_limit():
    """The most bytes that a frame may carry."""
    return request.get("result_limit") or 4 << 20


def _limited(kind, members):
    """The frame of a result with these members, each JSON already."""
    limit = result_limit()
    size = sum(len(text) if text.isascii() else len(channel.to_bytes(text)) for text in members.values())
    if size > limit:
        message = "the result is %d bytes of JSON; the limit is %d bytes (result_limit)" % (size, limit)
        return _exception("ResultTooLarge", message)
    parts = ['{"type":"return","kind":"%s"' % kind, *('"%s":%s' % member for member in members.items())]
    return ",".join(parts) + "}"


def _exception(kind, message, traceback=""):
    return channel.encode(
        {"type": "return", "kind": "exception", "exception": kind, "message": message, "traceback": traceback}
    )


def _finish(frame):
    """Sends the last frame and ends the process at once, whatever threads still run."""
    channel.flush_output()
    if not channel.is_tool_process():
        posix._exit(0 if frame is None or '"kind":"exc' not in frame[:40] else 1)
    try:
        channel.send(channel.to_bytes(frame))
    except OSError:
        posix._exit(1)
    posix._exit(0)
