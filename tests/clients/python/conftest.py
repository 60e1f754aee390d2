"""What the tests with the official Python client share."""

import pytest

from harness import MODES, running


@pytest.fixture(scope="session")
def anyio_backend():
    """The client's tests run on asyncio."""
    return "asyncio"


@pytest.fixture(params=MODES)
def mode(request):
    """Both ways of the official client: 2026-07-28 with fallback, and the handshake of 2025-11-25."""
    return request.param


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server of the test file's own."""
    with running(tmp_path_factory.mktemp("server")) as server:
        yield server
