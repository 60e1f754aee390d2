"""What the sandbox adds to a bare spawn: `benches/sandbox.rs`, which uses the runner itself. The server isn't needed."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent

if __name__ == "__main__":
    command = ["cargo", "bench", "--quiet", "--locked", "--bench", "sandbox"]
    raise SystemExit(subprocess.run(command, cwd=ROOT, env=os.environ, check=False).returncode)
