"""
A Strands agent whose model streams its answer. At the port of a third argument it streams as A2A means it, in one artifact: one process, because the import
of Strands takes 4 CPU seconds. "fail" makes its model fail, "wait"
makes it wait for the server of its second argument, "ask" makes it call a tool that asks a question, and the text of a document is its answer.
"""

import asyncio
import logging
import sys

import httpx
import uvicorn
from strands import Agent, ToolContext, tool
from strands.models import Model
from strands.multiagent.a2a import A2AServer

logging.disable(logging.CRITICAL)
PORT, HELD_URL = int(sys.argv[1]), sys.argv[2]
WORDS = ["The", " answer", ":", " ", "ha", "ha", "\r\n\r\n", "**bold**", " ✅ done", " 👩‍👩‍👧"]


@tool(context=True)
def choose_color(tool_context: ToolContext) -> str:
    """Asks a person for a color."""
    return tool_context.interrupt("color", reason="Which color?")


class Streaming(Model):
    def update_config(self, **model_config):
        pass

    def get_config(self):
        return {}

    async def structured_output(self, output_model, prompt, system_prompt=None, **kwargs):
        raise NotImplementedError
        yield

    async def stream(self, messages, tool_specs=None, system_prompt=None, **kwargs):
        blocks = messages[-1]["content"]
        text = "".join(block.get("text", "") for block in blocks)
        yield {"messageStart": {"role": "assistant"}}
        if "ask" in text:
            yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": "call-1", "name": "choose_color"}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": "{}"}}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "tool_use"}}
            return
        words = WORDS
        for block in blocks:
            if "toolResult" in block:
                words = ["You chose ", block["toolResult"]["content"][0]["text"], "."]
            elif "document" in block:
                words = [block["document"]["name"], ": ", block["document"]["source"]["bytes"].decode()]
        yield {"contentBlockStart": {"start": {}}}
        if "fail" in text or "wait" in text:
            yield {"contentBlockDelta": {"delta": {"text": "Let"}}}
            if "fail" in text:
                raise RuntimeError("no oven")
            async with httpx.AsyncClient(timeout=None) as client:
                await client.get(HELD_URL)
        for word in words:
            yield {"contentBlockDelta": {"delta": {"text": word}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


def served(port: int, compliant: bool) -> uvicorn.Server:
    agent = Agent(model=Streaming(), tools=[choose_color], name="streaming", description="Streams", callback_handler=None)
    server = A2AServer(agent, host="127.0.0.1", port=port, enable_a2a_compliant_streaming=compliant)
    return uvicorn.Server(uvicorn.Config(server.to_starlette_app(), host="127.0.0.1", port=port, log_level="critical"))


async def serve() -> None:
    # The test waits for the card of the first port.
    compliant = [served(int(port), True) for port in sys.argv[3:]]
    tasks = [asyncio.create_task(one.serve()) for one in compliant]
    while not all(one.started for one in compliant):
        await asyncio.sleep(0.01)
    await asyncio.gather(served(PORT, False).serve(), *tasks)


if __name__ == "__main__":
    asyncio.run(serve())
