"""Isolated calls (a fresh process in the full sandbox each) over HTTP, beside peers that call a function inside their own
process: paced, by one client after the other, and by 8 and 32 at once."""

import contextlib

from measure import Figures, Server, interpreter, spawn
from measure.figures import median
from measure.load import SECONDS, in_turn, ours
from measure.peers import fastmcp, nanohub, sdk, typescript

CODE = 'def main(text: str) -> str:\n    """Gives the text back."""\n    return text\n'
RATE = 50
# What the other peers are given, so that the run ends some day.
BESIDE = max(SECONDS / 3, 1)


def of(reports, name, figure):
    """One figure of each turn."""
    return [report[figure] for report in reports[name]]


def paced(figures, targets, machine):
    reports = in_turn(targets, lambda target: target.call(rate=RATE, seconds=BESIDE))
    name = f"isolated call, paced at {RATE}/s"
    figures.milliseconds(f"{name}: p50", of(reports, "OmniForge", "p50"), at_most=1.5, machine=machine)
    figures.milliseconds(f"{name}: p99", of(reports, "OmniForge", "p99"), at_most=6, machine=machine)
    pair = [of(reports, who, "p50") for who in ("OmniForge", "FastMCP")]
    figures.compare(f"{name}: p50", *pair, "ms", "FastMCP", aim="at most 1 ×")


def one_client(figures, targets, machine):
    reports = in_turn(targets, lambda target: target.call(seconds=BESIDE))
    name = "isolated call, 1 client: mean"
    figures.milliseconds(name, of(reports, "OmniForge", "mean"), at_most=4, machine=machine)
    pair = [of(reports, who, "mean") for who in ("OmniForge", "FastMCP")]
    figures.compare(name, *pair, "ms", "FastMCP", aim="at most 1 ×")


def sustained(figures, targets, clients):
    reports = in_turn(targets, lambda target: target.call(clients=clients))
    pair = [of(reports, who, "rate") for who in ("OmniForge", "FastMCP")]
    name = f"isolated calls a second, {clients} clients, {SECONDS:g} s"
    figures.compare(name, *pair, "calls/s", "FastMCP", at_least=0.6, aim="at least 1.2 ×")
    figures.milliseconds(f"isolated call, {clients} clients: p99", of(reports, "OmniForge", "p99"))


def beside(figures, own, peers):
    """The peers that no promise names."""
    reports = in_turn([own, *peers], lambda target: target.call(clients=8, seconds=BESIDE))
    for peer in peers:
        pair = [of(reports, who, "rate") for who in ("OmniForge", peer.name)]
        figures.compare("isolated calls a second, 8 clients", *pair, "calls/s", peer.name)


def main():
    server, figures = Server(), Figures()
    server.save("echo", CODE)
    python = interpreter("python3")
    machine = median([spawn(python, "-I", "-S", "-c", "pass") for _ in range(40)])
    own = ours()
    own.call(seconds=2)
    with fastmcp() as fast:
        fast.call(seconds=1)
        paced(figures, [own, fast], machine)
        one_client(figures, [own, fast], machine)
        for clients in (8, 32):
            sustained(figures, [own, fast], clients)
    with contextlib.ExitStack() as stack:
        beside(figures, own, [stack.enter_context(peer()) for peer in (sdk, nanohub, typescript)])
    figures.exit()


if __name__ == "__main__":
    main()
