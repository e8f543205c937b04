"""An agent whose turns take a while and write what happens to them into the file WALKER_FILE."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

from hopline.agent import Agent, AgentEvent, Turn, agent_app


async def walk(turn: Turn) -> AsyncIterator[AgentEvent]:
    """The message is the number of steps, 0.1 s each."""
    file = Path(os.environ["WALKER_FILE"])

    def note(what: str) -> None:
        with file.open("a") as lines:
            lines.write(f"{what}\n")

    try:
        for step in range(int(turn.text)):
            yield f"{step} "
            await asyncio.sleep(0.1)
        note("arrived")
    finally:
        await asyncio.sleep(0)
        note("cleaned up")


walker = Agent(name="walker", description="Walks", run=walk)
URL = os.environ.get("WALKER_URL", "http://agent.invalid/")
app = agent_app(walker, URL, drain_seconds=float(os.environ.get("WALKER_DRAIN", "20")))
