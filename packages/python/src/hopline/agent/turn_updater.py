"""Publishes the events of a turn."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any

from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater

# Number of events by which a reader of the turn may lag. The SDK keeps a copy of the whole task with each of them, and drops a reader that
# lags by 1,024.
BEHIND_MAX = 8
# How long a turn waits for a reader that has stopped reading: longer than Hopline waits for its log.
READER_SECONDS_MAX = 330.0


class TurnReaders:
    """The streams that read the events of one turn."""

    def __init__(self) -> None:
        self.published = 0
        self._taken: dict[object, int] = {}
        self._moved = asyncio.Event()

    def join(self, reader: object, taken: int) -> None:
        """`taken`: the events that the reader has, or does not get."""
        self._taken[reader] = taken
        self._moved.set()

    def leave(self, reader: object) -> None:
        self._taken.pop(reader, None)
        self._moved.set()

    async def room(self) -> None:
        """Waits until no reader is too far behind. One that has stopped is waited for once."""
        while behind := [reader for reader, taken in self._taken.items() if self.published - taken > BEHIND_MAX]:
            self._moved.clear()
            try:
                await asyncio.wait_for(self._moved.wait(), READER_SECONDS_MAX)
            except asyncio.TimeoutError:
                for reader in behind:
                    self._taken.pop(reader, None)


# The SDK runs a turn in the context of the request that began it. So the turn finds the stream of its request before its first event.
STREAM: ContextVar[TurnReaders | None] = ContextVar("hopline.stream", default=None)


class TurnUpdater(TaskUpdater):
    """
    Publishes nothing after the end of the turn. Code of the agent may continue after it: in a task of its own, or because it has caught the
    cancellation.
    """

    def __init__(self, event_queue: EventQueue, task_id: str, context_id: str) -> None:
        super().__init__(event_queue, task_id, context_id)
        self.readers = STREAM.get() or TurnReaders()
        # Requests that the agent itself makes have other streams.
        STREAM.set(None)
        self.is_canceled = False
        self._has_ended = False

    def end(self) -> None:
        self._has_ended = True

    def assert_open(self) -> None:
        if self.is_canceled:
            raise asyncio.CancelledError("the task was canceled")
        if self._has_ended:
            raise RuntimeError("the turn has ended")

    async def update_status(self, *args: Any, **members: Any) -> None:
        self.assert_open()
        self.readers.published += 1
        await super().update_status(*args, **members)

    async def add_artifact(self, *args: Any, **members: Any) -> None:
        self.assert_open()
        self.readers.published += 1
        await super().add_artifact(*args, **members)
        await self.readers.room()
