"""nanoHUB's server with the bench's tool in its own process. Usage: nanohub_server.py PORT."""

import sys

from nanohubmcp import MCPServer

server = MCPServer("peer")


@server.tool()
def echo(text: str) -> str:
    """Gives the text back."""
    return text


server.run(host="127.0.0.1", port=int(sys.argv[1]))
