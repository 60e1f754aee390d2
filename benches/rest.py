"""The first call after two seconds of rest, of tools that import httpx, numpy and pandas."""

import time

from measure import ROUNDS, Figures, Server, interpreter, spawn, text_of
from measure.figures import median

MODULES = {"httpx": "httpx.codes.OK", "numpy": "numpy.zeros(3).sum()", "pandas": "pandas.Series([1, 2]).sum()"}
CODE = "import {module}\n\ndef main() -> str:\n    return str({expression} is not None)\n"
REST = 2
# As long as installing may take on a slow line.
PATIENCE = 300


def installed(server, name):
    """Waits until the tool's dependencies are there."""
    until = time.monotonic() + PATIENCE
    while True:
        result, _ = server.call(name)
        if text_of(result) == "True":
            return
        if time.monotonic() > until:
            raise SystemExit(f"the tool {name} answered {result}")
        time.sleep(1)


def main():
    server, figures = Server(), Figures()
    for module, expression in MODULES.items():
        code = CODE.format(module=module, expression=expression)
        server.save(f"rested_{module}", code, dependencies=[module])
    for module in MODULES:
        installed(server, f"rested_{module}")
    python = interpreter("python3")
    machine, samples = [], {module: [] for module in MODULES}
    for _ in range(max(5, ROUNDS // 10)):
        for module, taken in samples.items():
            machine.append(spawn(python, "-I", "-S", "-c", "pass"))
            time.sleep(REST)
            result, took = server.call(f"rested_{module}")
            if text_of(result) != "True":
                raise SystemExit(f"the tool answered {result}")
            taken.append(took)
    for module, taken in samples.items():
        name = f"first call after {REST} s of rest, imports {module}"
        figures.milliseconds(name, taken, at_most=3, aim="at most 1 ms", machine=median(machine))
    figures.exit()


if __name__ == "__main__":
    main()
