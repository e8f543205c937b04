"""The agent of the README."""

from collections.abc import AsyncIterator

from hopline.agent import Agent, AgentEvent, Turn, artifact, needs_input, notice


async def greet(turn: Turn) -> AsyncIterator[AgentEvent]:
    if turn.text == "who":
        yield needs_input("Who should I greet?")
        return
    yield notice("Choosing a greeting")
    for word in ["Hello", ", ", turn.text, "!\n"]:
        yield word
    yield artifact("card.md", text=f"# For {turn.text}\n")


greeter = Agent(name="greeter", description="Greets people by name", skills=["Greet a person"], run=greet)
