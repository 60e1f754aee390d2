"""Runs an asynchronous `main`."""

import asyncio


def run(awaitable):
    """What it returns. Like `asyncio.run`, but without waiting for threads that still work."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(_await(awaitable))
    finally:
        rest = asyncio.all_tasks(loop)
        for task in rest:
            task.cancel()
        if rest:
            loop.run_until_complete(asyncio.gather(*rest, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())


async def _await(awaitable):
    return await awaitable
