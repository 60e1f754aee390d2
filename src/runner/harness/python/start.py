"""Starts the harness, as the first code in `start.bin`: makes modules of the others. `command.py` has read them all into
`codes`. The import system would search longer for each module than it takes to run it.
"""

if __name__ == "__main__":
    import sys

    root = sys.argv[1].rpartition("/")[0] + "/lib"
    sys.path.append(root)
    for name, code in codes[1:]:  # noqa: F821
        module = sys.modules[name] = type(sys)(name)
        module.__file__ = code.co_filename
        if "." not in name:
            module.__path__ = [root + "/" + name]
        exec(code, module.__dict__)
    sys.modules["_omniforge.driver"].serve()
