"""A resident tool (one interpreter for many calls) by 8 clients, beside peers that call a function inside their own process."""

from measure import Figures, Server, text_of
from measure.load import in_turn, ours
from measure.peers import fastmcp, nanohub

CODE = 'def main(text: str) -> str:\n    """Gives the text back."""\n    return text\n'


def main():
    server, figures = Server(), Figures()
    name = "resident tool, calls a second, 8 clients"
    result, _ = server.call("omniforge_create_tool", name="echo", code=CODE, resident=True)
    if result.get("isError"):
        figures.missing(name, f"this build has no resident tools: {text_of(result).splitlines()[0]}")
        return
    own = ours()
    own.call(clients=8, seconds=2)
    with fastmcp() as fast, nanohub() as hub:
        reports = in_turn([own, fast, hub], lambda target: target.call(clients=8))
    rates = {who: [report["rate"] for report in turns] for who, turns in reports.items()}
    figures.compare(name, rates["OmniForge"], rates["FastMCP"], "calls/s", "FastMCP", at_least=3, aim="at least 10 ×")
    figures.compare(name, rates["OmniForge"], rates["nanoHUB"], "calls/s", "nanoHUB", at_least=1)
    figures.exit()


if __name__ == "__main__":
    main()
