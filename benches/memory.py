"""What an idle server and an open session hold in memory."""

import http.client
import json
import pathlib
import time
import urllib.parse

from measure import Figures
from measure.load import INITIALIZE
from measure.own import server

SESSIONS = 90


def resident_kib(pid):
    """The memory that a process holds, in KiB."""
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS:")).split()[1])


def children(pid):
    """The processes that a process has started."""
    return [int(number) for number in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def unique_kib(pid):
    """The memory that no other process shares, in KiB."""
    lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(("Private_Clean:", "Private_Dirty:")))


def open_session(address, token):
    """Opens a session on a connection of its own, which stays open."""
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=30)
    headers = {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "Authorization": f"Bearer {token}",
    }
    connection.request("POST", "/mcp", json.dumps(INITIALIZE), headers)
    response = connection.getresponse()
    response.read()
    headers["Mcp-Session-Id"] = response.headers["Mcp-Session-Id"]
    headers["MCP-Protocol-Version"] = "2025-11-25"
    told = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"})
    connection.request("POST", "/mcp", told, headers)
    connection.getresponse().read()
    return connection


def main():
    figures = Figures()
    with server() as own:
        time.sleep(2)
        address = urllib.parse.urlsplit(own.facts["url"])
        idle = resident_kib(own.pid)
        figures.amount("idle server, resident", idle / 1024, "MiB", at_most=40, aim="at most 20 MiB")
        for child in children(own.pid):
            figures.amount("a process that the idle server keeps, its own memory", unique_kib(child) / 1024, "MiB")
        # What the first ones make the server allocate once is not theirs.
        held = [open_session(address, own.facts["token"]) for _ in range(5)]
        time.sleep(1)
        before = resident_kib(own.pid)
        held += [open_session(address, own.facts["token"]) for _ in range(SESSIONS)]
        time.sleep(1)
        grown = (resident_kib(own.pid) - before) / SESSIONS
        figures.amount("open session with its connection", grown, "KiB", at_most=100, aim="at most 50 KiB")
        for connection in held:
            connection.close()
    figures.exit()


if __name__ == "__main__":
    main()
