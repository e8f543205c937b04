"""The events of a task, each once over any number of connections."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass

import httpx

from .a2a_events import TERMINAL_STATES, decode_event
from .client_view import Json
from .errors import A2AError, FailedTry, error_of, not_a2a
from .event_stream import EventStreamDecoder
from .http_transport import HttpTransport, chunks_of, parse_json, read_body, result_of, sender_of
from .limits import RetryLimits
from .stream_position import StreamEvent, StreamGap, StreamItem, StreamPosition
from .tries import Tries

_JSON = re.compile(r"application/([\w.-]+\+)?json\b", re.IGNORECASE)


@dataclass(frozen=True)
class Begin:
    """Exactly one of `message` and `task_id`. The params of a message are sent again unchanged until the first event of its task arrives."""

    message: Json | None = None
    task_id: str | None = None
    cursor: str | None = None


async def resuming_stream(
    transport: HttpTransport, begin: Begin, retry: RetryLimits, get: Callable[[str], Awaitable[Json]]
) -> AsyncGenerator[StreamItem, None]:
    """
    Yields until the task ends. A stream that began with a message also ends when the task waits for input. `get` requests the current task,
    without retries. Raises A2AError when the server rejects the request, or when the tries are used up.
    """
    position = StreamPosition(begin.task_id, begin.cursor, ends_at_input_required=begin.message is not None)
    tries = Tries(retry)
    while True:
        try:
            frames = 0
            async with aclosing(_frames(transport, begin, position, tries)) as connection:
                async for frame in connection:
                    frames += 1
                    if isinstance(frame, StreamGap):
                        position.gap(frame)
                        continue
                    items = position.accept(*frame)
                    # A snapshot after an unknown gap does not count as progress, because a server without cursors sends one on every
                    # connection.
                    if items and items[0] != StreamGap(None):
                        tries.progress()
                    for item in items:
                        yield item
                    if position.ended:
                        return
            if frames == 0 and await _has_ended(get, position):
                return
            raise FailedTry(A2AError("UNAVAILABLE", "the stream ended before the task did"))
        except FailedTry as thrown:
            failed = thrown
            if position.seen and position.cursor is not None and failed.error.code == "INVALID_PARAMS":
                # The server has sent this cursor, and an earlier state of its log was restored since: the stream continues with the current task.
                position.cursor = None
                failed = FailedTry(A2AError("UNAVAILABLE", "the server no longer knows the cursor of the last event"))
            ended = await _ended_task(get, position, failed)
            if ended is None:
                await tries.pause(failed)
                continue
            yield StreamGap(None)
            yield StreamEvent({"task": ended}, None)
            return


Frame = tuple[Json | None, str | None]


async def _frames(
    transport: HttpTransport, begin: Begin, position: StreamPosition, tries: Tries
) -> AsyncGenerator[Frame | StreamGap, None]:
    """The frames of one connection until it ends. Raises FailedTry even when the server drains, and for an error instead of an event."""
    limits = transport.limits
    cursor = position.cursor
    position.connect()
    if begin.message is not None and not position.seen:
        method, params = "SendStreamingMessage", begin.message
    elif position.task_id is not None:
        method, params = "SubscribeToTask", {"id": position.task_id}
    else:
        raise not_a2a("the stream broke before an event with a task id")
    accept = "text/event-stream, application/json"
    has_answered = position.seen
    async with transport.post(
        method,
        params,
        accept=accept,
        read_seconds_max=limits.silence_seconds_max,
        cursor=cursor,
        has_answered=has_answered,
    ) as response:
        tries.opened(time.monotonic())
        content_type = response.headers.get("content-type", "")
        if _JSON.match(content_type):
            yield decode_event(result_of(await read_body(response, limits.response_bytes_max), response)), None
            return
        if not content_type.lower().startswith("text/event-stream"):
            raise not_a2a(f"the response is not an event stream{sender_of(response)}", retryable=has_answered)
        async with aclosing(_sse_frames(response, limits.event_bytes_max)) as frames:
            async for frame in frames:
                yield frame


async def _sse_frames(response: httpx.Response, event_bytes_max: int) -> AsyncGenerator[Frame | StreamGap, None]:
    decoder = EventStreamDecoder(event_bytes_max)
    async with aclosing(chunks_of(response)) as chunks:
        async for chunk in chunks:
            for sse in decoder.feed(chunk):
                if sse.event == "gap":
                    yield _gap_of(parse_json(sse.data))
                if sse.event not in ("message", "drain"):
                    continue
                content = parse_json(sse.data)
                if not isinstance(content, dict):
                    raise FailedTry(A2AError("INVALID_AGENT_RESPONSE", "a frame is not JSON"))
                if isinstance(content.get("error"), dict):
                    raise FailedTry(error_of(content["error"]), delay_seconds=decoder.retry_seconds)
                yield decode_event(content.get("result")), sse.id


def _gap_of(data: object) -> StreamGap:
    missing = data.get("missing") if isinstance(data, dict) else None
    if isinstance(missing, dict) and isinstance(missing.get("from"), int) and isinstance(missing.get("to"), int):
        return StreamGap((missing["from"], missing["to"]))
    return StreamGap(None)


async def _ended_task(get: Callable[[str], Awaitable[Json]], position: StreamPosition, failed: FailedTry) -> Json | None:
    """A server without cursors rejects a subscription to an ended task ([A2A 1.0] 3.1.6): the final task is requested instead."""
    is_refused = failed.error.code == "UNSUPPORTED_OPERATION" and position.seen and position.cursor is None
    if not is_refused or position.task_id is None:
        return None
    try:
        task = await get(position.task_id)
    except FailedTry:
        # The original error is reported.
        return None
    return task if task["status"]["state"] in TERMINAL_STATES else None


async def _has_ended(get: Callable[[str], Awaitable[Json]], position: StreamPosition) -> bool:
    """A subscription after the last event of a task ends without events."""
    if position.task_id is None:
        return False
    return (await get(position.task_id))["status"]["state"] in TERMINAL_STATES
