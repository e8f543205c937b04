"""
A Google ADK agent that streams: partial events, then one with the whole text. "steps" makes it call a tool in between, "fail" makes it fail, "wait"
makes it wait for the server of its second argument, "ask" makes it ask a question, "refund" makes it ask for a confirmation, and a file makes it send one.
"""

import logging
import sys

import httpx
import uvicorn
from google.adk.a2a.utils.agent_to_a2a import to_a2a
from google.adk.agents import BaseAgent, LlmAgent
from google.adk.events import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.genai import types

logging.disable(logging.CRITICAL)
PORT, HELD_URL = int(sys.argv[1]), sys.argv[2]
WORDS = ["The", " answer", ":", " ", "ha", "ha", "\r\n\r\n", "**bold**", " ✅ done", " 👩‍👩‍👧"]
STEP = ["Let", " me", " look", " it", " up", ".\n"]


def choose_color() -> None:
    """Asks a person for a color, who answers later."""


class Asking(BaseLlm):
    """A model that calls the tool, and reads the answer from its result."""

    async def generate_content_async(self, llm_request, stream=False):
        parts = [part for content in llm_request.contents for part in content.parts or []]
        answers = [part.function_response.response for part in parts if part.function_response]
        call = types.FunctionCall(id="call-1", name="choose_color", args={})
        part = types.Part(text=f"You chose {answers[-1]['result']}.") if answers else types.Part(function_call=call)
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def refund(order: str) -> dict:
    """Pays an order back."""
    return {"paid": order}


class Refunding(BaseLlm):
    """A model that calls the tool, and answers with the result of the call."""

    async def generate_content_async(self, llm_request, stream=False):
        last = llm_request.contents[-1].parts[-1]
        call = types.FunctionCall(id="call-2", name="refund", args={"order": "17"})
        answer = types.Part(text=str(last.function_response.response)) if last.function_response else types.Part(function_call=call)
        yield LlmResponse(content=types.Content(role="model", parts=[answer]))


class Streaming(BaseAgent):
    async def _run_async_impl(self, ctx):
        event = lambda parts, partial: Event(
            author=self.name, invocation_id=ctx.invocation_id, partial=partial, content=types.Content(role="model", parts=parts)
        )
        text = ctx.user_content.parts[0].text or ""
        files = [part.inline_data for part in ctx.user_content.parts if part.inline_data]
        if "ask" in text:
            async for asked in self.sub_agents[0].run_async(ctx):
                yield asked
            return
        if "refund" in text:
            async for asked in self.sub_agents[1].run_async(ctx):
                yield asked
            return
        if files:
            turned = types.Blob(data=files[0].data[::-1], mime_type=files[0].mime_type, display_name="turned.bin")
            yield event([types.Part(text=f"Turned {files[0].display_name}."), types.Part(inline_data=turned)], False)
            return
        if "fail" in text or "wait" in text:
            yield event([types.Part(text=STEP[0])], True)
            if "fail" in text:
                raise RuntimeError("no oven")
            async with httpx.AsyncClient(timeout=None) as client:
                await client.get(HELD_URL)
        if "steps" in text:
            for word in STEP:
                yield event([types.Part(text=word)], True)
            call = types.FunctionCall(id="1", name="look", args={})
            yield event([types.Part(text="".join(STEP)), types.Part(function_call=call)], False)
            answer = types.FunctionResponse(id="1", name="look", response={"found": True})
            yield event([types.Part(function_response=answer)], False)
        for word in WORDS:
            yield event([types.Part(text=word)], True)
        yield event([types.Part(text="".join(WORDS))], False)


asker = LlmAgent(name="asker", model=Asking(model="stand-in"), tools=[LongRunningFunctionTool(choose_color)])
refunder = LlmAgent(name="refunder", model=Refunding(model="stand-in"), tools=[FunctionTool(refund, require_confirmation=True)])
app = to_a2a(Streaming(name="streaming", description="Streams", sub_agents=[asker, refunder]), host="127.0.0.1", port=PORT)

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=PORT, log_level="critical")
