"""A cold call of a trivial tool through HTTP, beside a bare start of the same interpreter that does nothing."""

from measure import REFERENCE_START, ROUNDS, Figures, Server, interpreter, spawn, text_of

TOOLS = {
    "python3": ("python", "def main():\n    return 'ok'\n", ["-c", "pass"]),
    "node": ("javascript", "exports.main = () => 'ok';\n", ["-e", "0"]),
}
# On a machine where `python3 -I -S -c pass` takes REFERENCE_START milliseconds; in proportion on any other.
MOST_MILLISECONDS = 15
MOST_RATIO = {"python": 1.3}


def main():
    server, figures = Server(), Figures()
    for program, (language, code, nothing) in TOOLS.items():
        path = interpreter(program)
        if path is None:
            continue
        name = f"cold_{language}"
        server.save(name, code, language=language)
        bare, bare_alone, cold = [], [], []
        for number in range(ROUNDS + 5):
            starts = [spawn(path, *nothing)]
            if language == "python":
                starts.append(spawn(path, "-I", "-S", *nothing))
            result, took = server.call(name)
            if text_of(result) != "ok":
                raise SystemExit(f"the tool answered {result}")
            # The first ones warm the machine's caches.
            if number >= 5:
                bare.append(starts[0])
                bare_alone.append(starts[-1])
                cold.append(took)
        print(f"# {path}")
        least = figures.milliseconds(f"{language}: bare start, {' '.join(nothing)}", bare)
        most = figures.milliseconds(f"{language}: cold call through HTTP", cold)
        figures.ratio(f"{language}: cold call ÷ bare start", most / least, MOST_RATIO.get(language))
        if language == "python":
            # What the machine's own `site-packages` does at each start (`*.pth`) is no tool's business.
            least = figures.milliseconds("python: bare start alone, -I -S -c pass", bare_alone)
            figures.ratio("python: cold call ÷ bare start alone", most / least, MOST_MILLISECONDS / REFERENCE_START)
            figures.milliseconds("python: cold call, on the reference machine", [most / least * REFERENCE_START])
    figures.exit()


if __name__ == "__main__":
    main()
