"""Figures: printed, held against their promises, and kept for the table of docs/benchmarks.md."""

import json
import math
import os

# What `python3 -I -S -c pass` took, in milliseconds, on the machine for which promises in milliseconds were made.
REFERENCE_START = 6.33


def quantile(samples, part):
    """The value below which that part of the samples lies."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, math.floor(part * len(ordered)))]


def median(samples):
    """The middle one."""
    return quantile(samples, 0.5)


def written(value):
    """A number with as many places as it needs."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


class Figures:
    """Prints figures and remembers whether all promises held."""

    def __init__(self):
        self.held = True

    def milliseconds(self, name, samples, at_most=None, aim=None, machine=None):
        """A median with its spread; with `at_most`, a promise, made for a machine on which a bare start takes
        `REFERENCE_START` where `machine` says what one takes here. Returns the median."""
        middle = median(samples)
        spread = f"quartiles {quantile(samples, 0.25):.2f} to {quantile(samples, 0.75):.2f}, n = {len(samples)}"
        factor = machine / REFERENCE_START if machine else 1
        held = at_most is None or middle <= at_most * factor
        promise = at_most and f"at most {at_most} ms" + (f" × {factor:.2f} for this machine" if machine else "")
        self._print(name, f"{middle:8.2f} ms", spread, held, promise, aim)
        return middle

    def amount(self, name, value, unit, at_most=None, aim=None):
        """Something counted once; with `at_most`, a promise."""
        held = at_most is None or value <= at_most
        self._print(name, f"{written(value):>8} {unit}", None, held, at_most and f"at most {at_most} {unit}", aim)

    def ratio(self, name, value, at_most=None, aim=None):
        """How often one figure goes into another; with `at_most`, a promise."""
        promise = at_most and f"at most {at_most:.2f} ×"
        self._print(name, f"{value:8.2f} ×", None, at_most is None or value <= at_most, promise, aim)

    def compare(self, name, ours, theirs, unit, against, at_least=None, at_most=None, aim=None):
        """Ours beside theirs, both from each turn of one run: the ratio's median with its least and most; a promise with
        `at_least` or `at_most`."""
        ratios = [mine / other for mine, other in zip(ours, theirs, strict=True)]
        middle = median(ratios)
        held = (at_least is None or middle >= at_least) and (at_most is None or middle <= at_most)
        promise = at_least and f"at least {at_least} ×" or at_most and f"at most {at_most} ×"
        spread = f"{min(ratios):.2f} to {max(ratios):.2f} in {len(ratios)} turns"
        spread += f"; {written(median(ours))} and {written(median(theirs))} {unit}"
        self._print(f"{name} ÷ {against}", f"{middle:8.2f} ×", spread, held, promise, aim)
        return middle

    def missing(self, name, why):
        """Something that can't be measured yet, and why."""
        print(f"{name:<60} not measured: {why}", flush=True)
        self._keep({"figure": name, "value": "not measured", "spread": why})

    def _print(self, name, value, spread, held, promise, aim=None):
        facts = [spread] if spread else []
        if promise:
            facts.append(f"promised: {promise}" + ("" if held else ", BROKEN"))
        if aim:
            facts.append(f"aimed at: {aim}")
        print(f"{name:<60} {value}" + (f"  ({'; '.join(facts)})" if facts else ""), flush=True)
        self.held = self.held and held
        self._keep(
            {"figure": name, "value": value.strip(), "spread": spread, "promise": promise, "held": held, "aim": aim}
        )

    @staticmethod
    def _keep(row):
        """For the table."""
        if path := os.environ.get("BENCH_RESULTS"):
            with open(path, "a", encoding="utf-8") as results:
                results.write(json.dumps({"bench": os.environ.get("BENCH_NAME"), **row}) + "\n")

    def exit(self):
        """Ends the program: 1 when a promise was broken."""
        raise SystemExit(0 if self.held else 1)
