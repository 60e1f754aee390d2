"""Servers of a bench's own, where the one beside it does not do: filled beforehand, or started again and again."""

import contextlib
import importlib.machinery
import importlib.util
import os
import pathlib
import subprocess
import tempfile
import time

from .load import Target

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def _with_server():
    """`scripts/with-server`, which is a program without an ending, as a module."""
    loader = importlib.machinery.SourceFileLoader("with_server", str(ROOT / "scripts/with-server"))
    spec = importlib.util.spec_from_loader("with_server", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


WITH_SERVER = _with_server()


class Own:
    """A running server with its facts."""

    def __init__(self, folder, options):
        self.began = time.perf_counter()
        self.server = WITH_SERVER.Server(list(options), pathlib.Path(folder))
        self.facts = self.server.ready()
        self.ready_after = (time.perf_counter() - self.began) * 1000
        self.pid = self.server.process.pid

    def target(self, name="OmniForge"):
        """It, as what is loaded."""
        return Target(name, self.facts["mcp"], {"Authorization": f"Bearer {self.facts['token']}"})


@contextlib.contextmanager
def server(*options, tools=0):
    """A server on a fresh data directory with that many tools, until the end of the block."""
    with tempfile.TemporaryDirectory(prefix="omniforge-bench-") as folder:
        if tools:
            fill(pathlib.Path(folder) / "data", tools)
        with started(folder, *options) as own:
            yield own


@contextlib.contextmanager
def started(folder, *options):
    """A server on the data directory below this folder, until the end of the block."""
    own = Own(folder, options)
    try:
        yield own
        own.server.stop()
    finally:
        own.server.kill()


def fill(data_dir, tools):
    """Puts tools into a data directory as saves would have left them (`benches/fill.rs`)."""
    subprocess.run([os.environ["OMNIFORGE_FILL"], str(data_dir), str(tools)], check=True)
