"""`tools/list` of 100 tools by 32 clients, beside FastMCP with 100 tools and beside axum serving the same bytes as they are."""

import contextlib
import json
import os
import pathlib
import subprocess
import tempfile

from measure import Figures, Server
from measure.load import SECONDS, Target, in_turn
from measure.own import server
from measure.peers import fastmcp

TOOLS = 100
CLIENTS = 32
# In turns of this length: what is measured doesn't tire.
BESIDE = max(SECONDS / 6, 1)


@contextlib.contextmanager
def static(body):
    """axum, and nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "body.json"
        path.write_bytes(body)
        process = subprocess.Popen([os.environ["OMNIFORGE_STATIC"], str(path)], stdout=subprocess.PIPE, text=True)
        try:
            yield Target("static body", process.stdout.readline().strip())
        finally:
            process.kill()
            process.wait()


def listed(target):
    """Load of `tools/list`."""
    return target.load("tools/list", {}, '"tools":[{', clients=CLIENTS, seconds=BESIDE)


def main():
    figures = Figures()
    # The built-in tools are listed too.
    with server(tools=TOOLS) as own, fastmcp(tools=TOOLS) as fast:
        result, _ = Server(own.facts["url"], own.facts["token"]).ask("tools/list")
        answer = json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}, separators=(",", ":"), ensure_ascii=False)
        with static(answer.encode()) as least:
            reports = in_turn([own.target(), fast, least], listed, turns=5)
    rates = {who: [report["rate"] for report in turns] for who, turns in reports.items()}
    name = f"tools/list, {TOOLS} tools, {CLIENTS} clients"
    figures.compare(name, rates["OmniForge"], rates["FastMCP"], "answers/s", "FastMCP", at_least=50)
    figures.compare(name, rates["OmniForge"], rates["static body"], "answers/s", "a static body", aim="at least 0.9 ×")
    figures.exit()


if __name__ == "__main__":
    main()
