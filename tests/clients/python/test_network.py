"""What a tool with an installed library reaches: the host it names, and no other."""

import contextlib
import http.server
import shutil
import socket
import subprocess
import threading

import pytest

from harness import eventually, free_name, running

CODE = """
import httpx

def main(url: str) -> dict:
    answer = httpx.get(url, timeout=10)
    return {"status": answer.status_code, "text": answer.text}
"""


class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = f"hello from {self.headers['Host'].split(':')[0]}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def outside():
    """A web server on this machine; its port."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hello) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        yield web.server_address[1]
        web.shutdown()


@pytest.mark.parametrize("beside", [[], ["*.example.org"]], ids=["by its own listener", "through the proxy"])
def test_httpx_reaches_what_is_granted(tmp_path, beside):
    options = ["--approval", "never", "--network-private-allow", "127.0.0.0/8"]
    options += ["--network-hosts", "a.test=127.0.0.1,b.test=127.0.0.1"]
    with outside() as port, running(tmp_path, *options) as server:
        tool = free_name("fetch")
        server.create(tool, CODE, dependencies=["httpx>=0.27,<1"], network=[f"a.test:{port}", *beside])
        reached = server.call(tool, {"url": f"http://a.test:{port}/"})
        assert reached.structured == {"status": 200, "text": "hello from a.test"}, reached.text
        refused = server.call(tool, {"url": f"http://b.test:{port}/"})
        assert f"[network] refused b.test:{port}: not granted" in refused.text


DATABASE = """
import redis

def main(host: str, port: int) -> str:
    with redis.Redis(host=host, port=port, socket_timeout=10) as database:
        database.set("greeting", "hello")
        return database.get("greeting").decode()
"""


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def database(folder):
    """A Redis server on a port of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--dir", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        eventually(lambda: answers(port), "the database answers")
        yield port
    finally:
        process.terminate()
        process.wait()


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server can't be installed here")
def test_a_database_driver_reaches_its_database(tmp_path):
    """Neither HTTP nor TLS: bytes go through as they are."""
    options = ["--approval", "never", "--network-private-allow", "127.0.0.0/8"]
    options += ["--network-hosts", "db.test=127.0.0.1,other.test=127.0.0.1"]
    with database(tmp_path) as port, running(tmp_path, *options) as server:
        tool = free_name("store")
        server.create(tool, DATABASE, dependencies=["redis>=5"], network=[f"db.test:{port}"])
        assert server.call(tool, {"host": "db.test", "port": port}).text == "hello"
        refused = server.call(tool, {"host": "other.test", "port": port})
        assert refused.is_error and f"[network] refused other.test:{port}: not granted" in refused.text
