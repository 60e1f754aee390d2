"""A catalogue of 10,000 tools beside one of 100: the first page of `tools/list`, a search, a save."""

from measure import ROUNDS, Figures, Server, interpreter, spawn
from measure.figures import median
from measure.own import server

SMALL, LARGE = 100, 10_000
CODE = 'def main(text: str) -> str:\n    """Gives the text back, number {number}."""\n    return text\n'
# In milliseconds, for 10,000 tools.
PROMISED = {"list after a save": 5, "list": 5, "search": 10, "save": 20}


def measure(client, number):
    """One round: what each took."""
    took = {}
    reply, took["save"] = client.call(
        "omniforge_create_tool", name="saved", code=CODE.format(number=number), replace=True
    )
    if reply.get("isError"):
        raise SystemExit(f"the save was refused: {reply}")
    page, took["list after a save"] = client.ask("tools/list")
    page, took["list"] = client.ask("tools/list")
    if "saved" not in [tool["name"] for tool in page["tools"]]:
        raise SystemExit("the first page does not show what was saved last")
    found, took["search"] = client.call("omniforge_list_tools", query=f"genome {number % 100}", limit=20)
    if found.get("isError"):
        raise SystemExit(f"the search was refused: {found}")
    return took


def main():
    figures = Figures()
    samples = {SMALL: [], LARGE: []}
    machine = []
    python = interpreter("python3")
    with server(tools=SMALL) as small, server(tools=LARGE) as large:
        clients = {count: Server(own.facts["url"], own.facts["token"]) for count, own in ((SMALL, small), (LARGE, large))}
        for number in range(max(20, ROUNDS // 2) + 3):
            machine.append(spawn(python, "-I", "-S", "-c", "pass"))
            for count, client in clients.items():
                taken = measure(client, number)
                # The first ones warm the machine's caches.
                if number >= 3:
                    samples[count].append(taken)
    for what, promised in PROMISED.items():
        few, many = ([taken[what] for taken in samples[count]] for count in (SMALL, LARGE))
        figures.milliseconds(f"{LARGE} tools: {what}", many, at_most=promised, machine=median(machine))
        figures.compare(f"{LARGE} tools: {what}", [median(many)], [median(few)], "ms", f"{SMALL} tools", aim="flat")
    figures.exit()


if __name__ == "__main__":
    main()
