"""From the start of the program to the first answer, with 1,000 tools in its catalogue."""

import pathlib
import tempfile

from measure import ROUNDS, Figures, Server, interpreter, spawn
from measure.figures import median
from measure.own import fill, started

TOOLS = 1000


def main():
    figures = Figures()
    python = interpreter("python3")
    ready, answered, machine = [], [], []
    with tempfile.TemporaryDirectory(prefix="omniforge-bench-") as folder:
        fill(pathlib.Path(folder) / "data", TOOLS)
        for _ in range(max(5, ROUNDS // 20)):
            machine.append(spawn(python, "-I", "-S", "-c", "pass"))
            with started(folder) as own:
                client = Server(own.facts["url"], own.facts["token"])
                page, took = client.ask("tools/list")
                if len(page["tools"]) < 100:
                    raise SystemExit(f"the first page has {len(page['tools'])} tools")
                ready.append(own.ready_after)
                answered.append(own.ready_after + took)
    figures.milliseconds(f"server start until it listens, {TOOLS} tools", ready)
    name = f"server start to the first answer, {TOOLS} tools"
    figures.milliseconds(name, answered, at_most=300, aim="at most 100 ms", machine=median(machine))
    figures.exit()


if __name__ == "__main__":
    main()
