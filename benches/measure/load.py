"""A real HTTP load from a second process (`benches/load.rs`), the same for us and for the peers."""

import json
import os
import subprocess
from dataclasses import dataclass, field

# How long one server is loaded at once; shorter for a first look.
SECONDS = float(os.environ.get("BENCH_SECONDS", "30"))
# How often the servers take turns.
TURNS = int(os.environ.get("BENCH_TURNS", "3"))

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "omniforge-bench", "version": "1"},
    },
}


@dataclass
class Target:
    """A server under load."""

    name: str
    url: str
    headers: dict = field(default_factory=dict)
    # Whether each client opens a session first.
    session: bool = False

    def load(self, method, params, expect, clients=1, seconds=SECONDS, rate=None):
        """What `benches/load.rs` measured: times in milliseconds."""
        request = {"jsonrpc": "2.0", "id": "__ID__", "method": method, "params": params}
        # The number stands in the body without quotes.
        body = json.dumps(request).replace('"__ID__"', "__ID__")
        headers = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": "2025-11-25",
            **self.headers,
        }
        command = [os.environ["OMNIFORGE_LOAD"], "--url", self.url, "--body", body, "--expect", expect]
        command += ["--clients", str(clients), "--seconds", str(seconds)]
        for name, value in headers.items():
            command += ["--header", f"{name}: {value}"]
        if self.session:
            command += ["--initialize", json.dumps(INITIALIZE)]
        if rate:
            command += ["--rate", str(rate)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"the load on {self.name} failed: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def call(self, tool="echo", **how):
        """Load of calls of a tool that gives a text back."""
        params = {"name": tool, "arguments": {"text": "the text"}}
        return self.load("tools/call", params, '"the text"', **how)


def ours():
    """The server that `scripts/with-server` started."""
    token = os.environ["OMNIFORGE_TOKEN"]
    return Target("OmniForge", os.environ["OMNIFORGE_MCP"], {"Authorization": f"Bearer {token}"})


def in_turn(targets, measure, turns=TURNS):
    """Measures the targets one after the other, `turns` times: a list of reports for each, by name."""
    reports = {target.name: [] for target in targets}
    for turn in range(turns):
        # Who comes first takes turns too.
        for target in targets[turn % len(targets) :] + targets[: turn % len(targets)]:
            reports[target.name].append(measure(target))
    return reports
