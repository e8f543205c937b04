"""Keeps the tasks of an agent in memory, and forgets old ones."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import groupby

from a2a.server.context import ServerCallContext
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import Part, Task, TaskState

# A client whose stream broke reads the end of its task within minutes.
ENDED_SECONDS_MAX = 60 * 60
ENDED_TASKS_MAX = 1_000
# For as long as Hopline keeps a task.
WAITING_SECONDS_MAX = 7 * 24 * 60 * 60

_WAITING = (TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED)
_RUNNING = (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING)

_Kept = dict[str, tuple[float, ServerCallContext]]


class RecentTasks(InMemoryTaskStore):
    """All running tasks, those that wait for an answer for a week, and ended ones for an hour, at most 1,000 of them."""

    def __init__(self, forgotten: Callable[[str], None], now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._forgotten = forgotten
        self._now = now
        # Keyed by id, in the order in which they ended or began to wait.
        self._ended: _Kept = {}
        self._waiting: _Kept = {}

    async def save(self, task: Task, context: ServerCallContext) -> None:
        state = task.status.state
        await super().save(task if state in _RUNNING else _joined(task), context)
        self._ended.pop(task.id, None)
        self._waiting.pop(task.id, None)
        if state not in _RUNNING:
            kept = self._waiting if state in _WAITING else self._ended
            # A new context, because the state of this one has the headers of its request.
            kept[task.id] = (self._now(), ServerCallContext(user=context.user))
        await self._forget(self._ended, ENDED_SECONDS_MAX, ENDED_TASKS_MAX)
        await self._forget(self._waiting, WAITING_SECONDS_MAX, None)

    async def _forget(self, kept: _Kept, seconds_max: float, count_max: int | None) -> None:
        oldest = self._now() - seconds_max
        while kept:
            task_id, (since, context) = next(iter(kept.items()))
            if since > oldest and (count_max is None or len(kept) <= count_max):
                return
            del kept[task_id]
            await self.delete(task_id, context)
            self._forgotten(task_id)


def _joined(task: Task) -> Task:
    """A copy with each text in one part. The SDK keeps a part for each token, which has several times the size of its text."""
    joined = Task()
    joined.CopyFrom(task)
    for artifact in joined.artifacts:
        parts: list[Part] = []
        for is_plain, group in groupby(artifact.parts, _is_plain):
            same = list(group)
            parts += [Part(text="".join(part.text for part in same))] if is_plain else same
        del artifact.parts[:]
        artifact.parts.extend(parts)
    return joined


def _is_plain(part: Part) -> bool:
    return part.HasField("text") and len(part.ListFields()) == 1
