"""Compiles the harness for the interpreter that runs this file: each module into `__pycache__` beside its source, and those
that every call needs into `start.bin`.

The files are trusted never to change after that (unchecked-hash bytecode), so their times don't matter.
"""

import marshal
import os
import py_compile
import sys

SHOWN = "/omniforge/python"
# Each after those that it imports.
NEEDED = {
    "_omniforge": "/lib/_omniforge/__init__.py",
    "_omniforge.channel": "/lib/_omniforge/channel.py",
    "_omniforge.driver": "/lib/_omniforge/driver.py",
}


def compile_all(root):
    for folder, _, names in os.walk(os.path.join(root, "lib")):
        for name in sorted(names):
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                shown = SHOWN + path[len(root) :]
                py_compile.compile(
                    path, dfile=shown, doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
                )


def write_start(root):
    codes = [code_of(root, "/start.py"), *((name, code_of(root, path)) for name, path in NEEDED.items())]
    with open(os.path.join(root, "start.bin"), "wb") as file:
        file.write(marshal.dumps(codes))


def code_of(root, path):
    with open(root + path, "rb") as file:
        return compile(file.read(), SHOWN + path, "exec", 0, True)


if __name__ == "__main__":
    if sys.version_info < (3, 9):
        sys.exit("OmniForge needs Python 3.9 or newer; this is " + sys.version.split()[0])
    root = os.path.dirname(os.path.abspath(__file__))
    compile_all(root)
    write_start(root)
