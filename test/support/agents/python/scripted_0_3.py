"""The agent of scripted_1.py, written with a2a-sdk 0.3.x."""

import asyncio
import json
import logging
import sys

import uvicorn
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.apps import A2AStarletteApplication
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentSkill, Part, TaskState, TextPart
from a2a.utils import new_task
from sse_starlette import EventSourceResponse

EventSourceResponse.DEFAULT_PING_INTERVAL = 0.2
PORT = int(sys.argv[1])
# A script may raise.
logging.disable(logging.CRITICAL)
FINAL = ("completed", "failed", "rejected", "canceled", "input_required")


class Scripted(AgentExecutor):
    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        task = new_task(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        for name, *args in json.loads(context.get_user_input()):
            if name == "status":
                state, *text = args
                message = updater.new_agent_message([Part(root=TextPart(text=text[0]))]) if text else None
                await updater.update_status(TaskState[state], message, final=state in FINAL)
            elif name == "artifact":
                artifact_id, text, append, last = args
                parts = [Part(root=TextPart(text=text))]
                await updater.add_artifact(parts, artifact_id=artifact_id, append=append, last_chunk=last)
            elif name == "pause":
                await asyncio.sleep(args[0])
            elif name == "raise":
                raise RuntimeError("a secret of the agent")

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


card = AgentCard(
    name="Scripted",
    description="Plays a script",
    version="1.0.0",
    url=f"http://127.0.0.1:{PORT}/",
    capabilities=AgentCapabilities(streaming=True),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[AgentSkill(id="play", name="Play", description="Plays a script", tags=["play"])],
)
handler = DefaultRequestHandler(agent_executor=Scripted(), task_store=InMemoryTaskStore())
app = A2AStarletteApplication(agent_card=card, http_handler=handler).build()

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=PORT, log_level="critical")
