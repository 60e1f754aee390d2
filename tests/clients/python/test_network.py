"""What a tool with an installed library reaches: the host it names, and no other."""

import contextlib
import http.server
import threading

import pytest

from harness import free_name, running

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
