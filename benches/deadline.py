"""How long after its deadline a run is over, with all processes that it left, and that none of them lives on."""

import pathlib
import time

from measure import ROUNDS, Figures, Server, text_of

# A tree of processes, each a session of its own, started by a parent that is gone: no group and no parent leads to them.
CODE = """
import os, time

def fork():
    # Those that are about to leave count against the limit of processes.
    while True:
        try:
            return os.fork()
        except BlockingIOError:
            time.sleep(0.001)

def main(children: int):
    for _ in range(children):
        if fork() == 0:
            if fork() == 0:
                os.setsid()
                with open("/proc/self/comm", "w") as name:
                    name.write("%s")
                time.sleep(600)
            os._exit(0)
    while children:
        try:
            os.wait()
        except ChildProcessError:
            break
    time.sleep(600)
"""
MARK = "bench-left-over"
SECONDS = 1
MOST_MILLISECONDS = 50


def left_over():
    """The processes of a run that are still there."""
    found = []
    for name in pathlib.Path("/proc").glob("[0-9]*/comm"):
        try:
            if name.read_text().strip() == MARK:
                found.append(name.parent.name)
        except OSError:
            pass
    return found


def main():
    server, figures = Server(), Figures()
    server.save("deadline", CODE % MARK, timeout_seconds=SECONDS)
    over = {1: [], 16: [], 60: []}
    for _ in range(max(3, ROUNDS // 20)):
        for children, samples in over.items():
            started = time.perf_counter()
            result, _ = server.call("deadline", children=children - 1)
            # From the request to the whole answer, so the figure holds the way there and back as well.
            samples.append((time.perf_counter() - started - SECONDS) * 1000)
            alive = left_over()
            if alive or "[timeout]" not in text_of(result):
                raise SystemExit(f"{len(alive)} processes outlived their run, which ended as {result}")
    for children, samples in over.items():
        figures.milliseconds(f"deadline passed, {children} processes: answered after", samples, MOST_MILLISECONDS)
        figures.milliseconds(f"deadline passed, {children} processes: the latest", [max(samples)])
    figures.exit()


if __name__ == "__main__":
    main()
