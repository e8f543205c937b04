"""A server with one task on a real socket, whose responses a test writes byte by byte."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
IDS = {"taskId": "task-1", "contextId": "context-1"}


@dataclass
class Request:
    method: str
    params: Json
    headers: dict[str, str]


@dataclass
class Response:
    """The bytes of a body after its head. `is_cut`: the connection breaks after them, and it stays open if `hangs`."""

    body: bytes = b""
    status: int = 200
    headers: Sequence[str] = ("content-type: application/json",)
    is_cut: bool = False
    hangs: bool = False


def status(state: str, text: str | None = None) -> Json:
    value: Json = {"state": f"TASK_STATE_{state}"}
    if text is not None:
        value["message"] = {"messageId": f"m-{text}", "role": "ROLE_AGENT", "parts": [{"text": text}]}
    return {"statusUpdate": {**IDS, "status": value}}


def chunk(text: str, *, append: bool = True) -> Json:
    artifact = {"artifactId": "a", "name": "streaming_result", "parts": [{"text": text}]}
    return {"artifactUpdate": {**IDS, "artifact": artifact, "append": append, "lastChunk": False}}


def task(state: str = "SUBMITTED", **members: Any) -> Json:
    return {"task": {"id": "task-1", "contextId": "context-1", "status": {"state": f"TASK_STATE_{state}"}, **members}}


def result(value: Any) -> Response:
    return Response(json.dumps({"jsonrpc": "2.0", "id": 1, "result": value}).encode())


def error(number: int, **data: Any) -> Response:
    found = {"code": number, "message": "Task not found: t", "data": [data]}
    return Response(json.dumps({"jsonrpc": "2.0", "id": 1, "error": found}).encode())


def frame(event: Any, generation: int | None, kind: str = "") -> bytes:
    cursor = "" if generation is None else f"id: {generation}.{generation + 100}\n"
    data = json.dumps(event if kind == "gap" else {"jsonrpc": "2.0", "id": 1, "result": event}, ensure_ascii=False)
    return f"{cursor}{kind and f'event: {kind}' + chr(10)}data: {data}\n\n".encode()


def stream(*frames: bytes, **options: Any) -> Response:
    return Response(b": ok\n\n" + b"".join(frames), headers=["content-type: text/event-stream"], **options)


class BrokenServer:
    """`respond` gives the response to the n-th request, counted from 0."""

    def __init__(self, respond: Callable[[int, Request], Response]) -> None:
        self._respond = respond
        self.requests: list[Request] = []
        self.closed = asyncio.Event()
        """Set when a client has closed a connection that hangs."""

    async def __aenter__(self) -> BrokenServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head.split("\r\n")[1:])}
            body = json.loads(await reader.readexactly(int(headers.get("content-length", "2"))) or "{}")
            request = Request(body["method"], body["params"], headers)
            self.requests.append(request)
            await self._send(writer, reader, self._respond(len(self.requests) - 1, request))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _send(self, writer: asyncio.StreamWriter, reader: asyncio.StreamReader, response: Response) -> None:
        # A body that ends before its length is a broken connection.
        length = len(response.body) + (1 if response.is_cut or response.hangs else 0)
        head = [f"HTTP/1.1 {response.status} Some", *response.headers, f"content-length: {length}"]
        lines = [*head, "connection: close", "", ""]
        writer.write("\r\n".join(lines).encode() + response.body)
        await writer.drain()
        if response.hangs:
            await reader.read()
            self.closed.set()
