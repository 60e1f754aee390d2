"""FastMCP with the bench's tool in its own process. Usage: fastmcp_server.py PORT TOOLS."""

import sys

from fastmcp import FastMCP

server = FastMCP("peer")


@server.tool
def echo(text: str) -> str:
    """Gives the text back."""
    return text


def add(number):
    """One of the tools that are there to be listed."""

    def listed(text: str, count: int = number) -> str:
        return text * count

    server.tool(listed, name=f"tool_{number:05}", description=f"Gives back a text. One of many, number {number}.")


for number in range(int(sys.argv[2]) - 1):
    add(number)

# Without events, without its log: as lean as it can be asked to be.
server.run(
    transport="http",
    host="127.0.0.1",
    port=int(sys.argv[1]),
    stateless_http="stateless" in sys.argv[3:],
    json_response=True,
    show_banner=False,
    log_level="error",
    uvicorn_config={"access_log": False},
)
