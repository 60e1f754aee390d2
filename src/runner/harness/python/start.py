"""Starts the harness. Compiled anew at every call, so it stays this short."""

import sys

if __name__ == "__main__":
    sys.path.append(__file__[: -len("run.py")] + "lib")
    from _omniforge.driver import serve

    serve()
