"""Compiles the harness for the interpreter that runs this file, into `__pycache__` beside each source.

The files are trusted never to change after that (unchecked-hash bytecode), so their times don't matter.
"""

import os
import py_compile
import sys


def compile_all(root):
    for folder, _, names in os.walk(os.path.join(root, "lib")):
        for name in sorted(names):
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                shown = "/omniforge/python" + path[len(root) :]
                py_compile.compile(
                    path, dfile=shown, doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
                )


if __name__ == "__main__":
    if sys.version_info < (3, 9):
        sys.exit("OmniForge needs Python 3.9 or newer; this is " + sys.version.split()[0])
    compile_all(os.path.dirname(os.path.abspath(__file__)))
