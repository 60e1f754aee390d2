"""The official Python SDK with the bench's tool in its own process. Usage: sdk_server.py PORT."""

import sys

from mcp.server import MCPServer

server = MCPServer("peer", log_level="ERROR")


@server.tool()
def echo(text: str) -> str:
    """Gives the text back."""
    return text


server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]), json_response=True)
