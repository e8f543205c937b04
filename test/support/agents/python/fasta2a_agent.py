"""
A Pydantic AI agent behind fasta2a whose model streams its answer. "fail" makes its model fail, "wait" makes it wait for the server of its second
argument, and the text of a file is its answer.
"""

import asyncio
import sys
from urllib.request import urlopen

import uvicorn
from fasta2a.pydantic_ai import agent_to_a2a
from pydantic_ai import Agent, BinaryContent
from pydantic_ai.models.function import FunctionModel

PORT, HELD_URL = int(sys.argv[1]), sys.argv[2]
WORDS = ["The", " answer", ":", " ", "ha", "ha", "\r\n\r\n", "**bold**", " ✅ done", " 👩‍👩‍👧"]


async def words(messages, _info):
    contents = [part.content for part in messages[-1].parts]
    text = "".join(content for content in contents if isinstance(content, str))
    files = [file for content in contents if isinstance(content, list) for file in content if isinstance(file, BinaryContent)]
    if "fail" in text or "wait" in text:
        yield "Let"
        if "fail" in text:
            raise RuntimeError("no oven")
        await asyncio.to_thread(urlopen, HELD_URL)
    for word in [f"{files[0].media_type}: ", files[0].data.decode()] if files else WORDS:
        yield word


app = agent_to_a2a(Agent(FunctionModel(stream_function=words)), url=f"http://127.0.0.1:{PORT}")

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=PORT, log_level="critical")
