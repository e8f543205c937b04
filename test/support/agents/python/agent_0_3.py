"""The agent of infra/examples/python-a2a/agent.py, written with a2a-sdk 0.3.x."""

import asyncio
import sys

import uvicorn
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.apps import A2AStarletteApplication
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentSkill, Part, TaskState, TextPart
from a2a.utils import new_task

PORT = int(sys.argv[1])
WORDS = ["Python", " replies", ":", " ", "ha", "ha", "\n\n", "**bold**", " ✅ done", " 👩‍👩‍👧"]


class Echo(AgentExecutor):
    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        task = context.current_task
        if task is None:
            task = new_task(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        message = lambda text: updater.new_agent_message([Part(root=TextPart(text=text))])
        text = context.get_user_input()
        if "ask" in text and context.current_task is None:
            await updater.update_status(TaskState.input_required, message("Which one?"), final=True)
            return
        for word in [*WORDS, f" {text}"]:
            await updater.update_status(TaskState.working, message(word))
            await asyncio.sleep(0.05 if "slow" in text else 0.002)
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


card = AgentCard(
    name="Python Agent",
    description="Echoes the message",
    version="1.0.0",
    url=f"http://127.0.0.1:{PORT}/",
    capabilities=AgentCapabilities(streaming=True),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[AgentSkill(id="echo", name="Echo", description="Echoes the message", tags=["echo"])],
)
handler = DefaultRequestHandler(agent_executor=Echo(), task_store=InMemoryTaskStore())
app = A2AStarletteApplication(agent_card=card, http_handler=handler).build()

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=PORT, log_level="warning")
