"""The agent of the README: `python3 -m tests.agents.greeter PORT` serves it."""

import sys
from collections.abc import AsyncIterator

from hopline.agent import Agent, AgentEvent, Turn, agent_app, artifact, needs_input, notice


async def greet(turn: Turn) -> AsyncIterator[AgentEvent]:
    if turn.text == "who":
        yield needs_input("Who should I greet?")
        return
    yield notice("Choosing a greeting")
    for word in ["Hello", ", ", turn.text, "!\n"]:
        yield word
    yield artifact("card.md", text=f"# For {turn.text}\n")


greeter = Agent(name="greeter", description="Greets people by name", skills=["Greet a person"], run=greet)

if __name__ == "__main__":
    import uvicorn

    port = int(sys.argv[1])
    uvicorn.run(agent_app(greeter, f"http://127.0.0.1:{port}/"), host="127.0.0.1", port=port, log_level="warning")
