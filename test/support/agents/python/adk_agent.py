"""A Google ADK agent that streams: partial events, then one with the whole text. "steps" makes it call a tool in between."""

import logging
import sys

import uvicorn
from google.adk.a2a.utils.agent_to_a2a import to_a2a
from google.adk.agents import BaseAgent
from google.adk.events import Event
from google.genai import types

logging.disable(logging.CRITICAL)
PORT = int(sys.argv[1])
WORDS = ["The", " answer", ":", " ", "ha", "ha", "\r\n\r\n", "**bold**", " ✅ done", " 👩‍👩‍👧"]
STEP = ["Let", " me", " look", " it", " up", ".\n"]


class Streaming(BaseAgent):
    async def _run_async_impl(self, ctx):
        event = lambda parts, partial: Event(
            author=self.name, invocation_id=ctx.invocation_id, partial=partial, content=types.Content(role="model", parts=parts)
        )
        if "steps" in ctx.user_content.parts[0].text:
            for word in STEP:
                yield event([types.Part(text=word)], True)
            call = types.FunctionCall(id="1", name="look", args={})
            yield event([types.Part(text="".join(STEP)), types.Part(function_call=call)], False)
            answer = types.FunctionResponse(id="1", name="look", response={"found": True})
            yield event([types.Part(function_response=answer)], False)
        for word in WORDS:
            yield event([types.Part(text=word)], True)
        yield event([types.Part(text="".join(WORDS))], False)


app = to_a2a(Streaming(name="streaming", description="Streams"), host="127.0.0.1", port=PORT)

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=PORT, log_level="critical")
