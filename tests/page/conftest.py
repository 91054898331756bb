"""What Gradio leaves behind in a process."""

import asyncio

import pytest


@pytest.fixture(scope="module", autouse=True)
def thread_loop():
    """The loop of this thread, else made by Gradio and dropped by whoever runs another one."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()
