"""Puts what a run of `scripts/bench` measured into a document, between its two marks.

usage: table.py DOCUMENT RESULTS NAMES
"""

import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys

BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"


def machine():
    """What was measured on, without its name."""
    facts = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":", 1)[1].strip() for line in facts if line.startswith("model name")), platform.machine())
    memory = int(pathlib.Path("/proc/meminfo").read_text().split()[1]) / (1 << 20)
    kernel = platform.release().split("-")[0]
    return f"{os.cpu_count()} cores ({model}), {memory:.0f} GiB, Linux {kernel}"


def peers():
    """The peers' versions."""
    folder = pathlib.Path(__file__).resolve().parent.parent / "peers"
    python = [line.strip() for line in (folder / "requirements.in").read_text().splitlines() if "==" in line]
    node = json.loads((folder / "package.json").read_text())["dependencies"]
    shown = [line.replace("==", " ") for line in python]
    shown += [f"{name} {version}" for name, version in node.items() if name.startswith("@modelcontextprotocol/server")]
    return ", ".join(shown)


def commit():
    """The sources that were measured."""
    return subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()


def table(rows):
    """The figures as a table, a bench after the other."""
    yield "| figure | measured | spread, or both sides | promised | aimed at |"
    yield "| --- | --- | --- | --- | --- |"
    for row in rows:
        promise = row.get("promise") or ""
        if promise and not row.get("held"):
            promise += " (**missed**)"
        yield f"| {row['figure']} | {row['value']} | {row.get('spread') or ''} | {promise} | {row.get('aim') or ''} |"


def main():
    document, results, names = sys.argv[1:]
    path = pathlib.Path(document)
    text = path.read_text(encoding="utf-8")
    if BEGIN not in text or END not in text:
        raise SystemExit(f"{document} has no place for figures: it needs the lines `{BEGIN}` and `{END}`")
    rows = [json.loads(line) for line in pathlib.Path(results).read_text(encoding="utf-8").splitlines()]
    given = " ".join(f"{name}={os.environ[name]}" for name in sorted(os.environ) if name in SHORTER)
    command = f"{given} scripts/bench --write docs/benchmarks.md {names}".strip()
    today = datetime.date.today().isoformat()
    before, rest = text.split(BEGIN, 1)
    _, after = rest.split(END, 1)
    lines = [
        BEGIN,
        "",
        f"Measured on {today}, commit {commit()}, on {machine()}; load averages before the start: {os.environ['BENCH_LOAD']}.",
        f"Peers: {peers()}. The command:",
        "",
        f"    {command}",
        "",
        *table(rows),
        "",
        END,
    ]
    path.write_text(before + "\n".join(lines) + after, encoding="utf-8")


SHORTER = ("BENCH_ROUNDS", "BENCH_SECONDS", "BENCH_TURNS")

if __name__ == "__main__":
    main()
