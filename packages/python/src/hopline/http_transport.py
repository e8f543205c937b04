"""Single JSON-RPC requests to one server, without retries. Failures are FailedTry."""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from .client_view import Json
from .errors import A2AError, FailedTry, error_of, not_a2a
from .limits import ClientLimits

ERROR_BYTES_MAX = 64 * 1024
"""Largest error body that is read."""

# Request timeout, too early, too many requests; in addition to all 5xx.
_RETRYABLE_STATUSES = (408, 425, 429)
# Errors of a proxy in front of the server have no JSON-RPC code.
_CODES_OF_STATUSES = {401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 413: "REQUEST_TOO_LARGE"}


_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"([!-~]([\t -~]*[!-~])?)?")


class HttpTransport:
    def __init__(self, http: httpx.AsyncClient, url: str, headers: Mapping[str, str], limits: ClientLimits) -> None:
        self.url = httpx.URL(url)
        if self.url.scheme not in ("http", "https"):
            raise ValueError("the URL of a server must begin with http: or https:")
        for name, value in headers.items():
            # The message must not show the value, which may be a secret.
            if not isinstance(value, str) or not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
                raise ValueError(f"header {name!r} must be a string of ASCII, without line ends and without spaces at its ends")
        self._http = http
        self._headers = dict(headers)
        self.limits = limits

    @asynccontextmanager
    async def post(
        self, method: str, params: Json, *, accept: str, read_seconds_max: float, cursor: str | None = None
    ) -> AsyncIterator[httpx.Response]:
        """Yields a successful response whose body is not read yet. `read_seconds_max` bounds each wait for bytes."""
        headers: dict[str, Any] = {**self._headers, "content-type": "application/json", "accept": accept, "a2a-version": "1.0"}
        if cursor is not None:
            # UTF-8 (WHATWG HTML 9.2.2). HTTP allows no spaces at the ends.
            headers["last-event-id"] = cursor.strip().encode()
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        timeout = httpx.Timeout(self.limits.call_seconds_max, read=read_seconds_max)
        request = self._http.build_request("POST", self.url, headers=headers, content=body, timeout=timeout)
        try:
            # A redirect would send the caller's headers and message to an address of the server's choice.
            response = await self._http.send(request, stream=True, follow_redirects=False)
        except httpx.TimeoutException as thrown:
            raise self._unreached("did not respond in time") from thrown
        except httpx.TransportError as thrown:
            # The text of an error of TLS or of a proxy has its reason. The text of others may have parts of the request.
            reason = f": {thrown}" if isinstance(thrown, (httpx.ConnectError, httpx.ProxyError)) else ""
            raise self._unreached(f"cannot be reached ({type(thrown).__name__}{reason})") from thrown
        try:
            if not response.is_success:
                raise await _failure_of(response)
            yield response
        finally:
            await response.aclose()

    async def call(self, method: str, params: Json) -> Any:
        """The `result` of a response."""
        limits = self.limits
        async with self.post(method, params, accept="application/json", read_seconds_max=limits.call_seconds_max) as response:
            return result_of(await read_body(response, limits.response_bytes_max))

    def _unreached(self, detail: str) -> FailedTry:
        address = f"{self.url.scheme}://{self.url.netloc.decode()}{self.url.path}"
        return FailedTry(A2AError("UNAVAILABLE", f"{address} {detail}"), reached=False)


async def chunks_of(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    try:
        async for chunk in response.aiter_bytes():
            yield chunk
    except httpx.ReadTimeout as thrown:
        raise FailedTry(A2AError("UNAVAILABLE", "the server was silent for too long")) from thrown
    except (httpx.TransportError, httpx.DecodingError) as thrown:
        raise FailedTry(A2AError("UNAVAILABLE", "the connection broke")) from thrown


async def read_body(response: httpx.Response, bytes_max: int) -> bytes:
    body = bytearray()
    async for chunk in chunks_of(response):
        body += chunk
        if len(body) > bytes_max:
            raise not_a2a(f"the response is larger than {bytes_max} bytes")
    return bytes(body)


def result_of(body: bytes) -> Any:
    """The `result` of a JSON-RPC response. Raises FailedTry with the response's error."""
    found = parse_json(body)
    if isinstance(found, dict) and isinstance(found.get("error"), dict):
        raise FailedTry(error_of(found["error"]))
    if isinstance(found, dict) and "result" in found:
        return found["result"]
    raise not_a2a("the body is not a JSON-RPC response")


def parse_json(text: str | bytes) -> Any:
    """None for text that is not JSON. Deep nesting is not JSON that a server may send."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


async def _failure_of(response: httpx.Response) -> FailedTry:
    status = response.status_code
    retryable = status >= 500 or status in _RETRYABLE_STATUSES
    delay_seconds = _retry_after_seconds(response.headers)
    try:
        body = parse_json(await read_body(response, ERROR_BYTES_MAX))
    except FailedTry:
        body = None
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        return FailedTry(error_of(body["error"], retryable_default=retryable), delay_seconds=delay_seconds)
    code = "UNAVAILABLE" if retryable else _CODES_OF_STATUSES.get(status, "INVALID_AGENT_RESPONSE")
    error = A2AError(code, f"the server responded with HTTP {status}", retryable=retryable)
    return FailedTry(error, delay_seconds=delay_seconds, status=status)


def _retry_after_seconds(headers: httpx.Headers) -> float:
    """Seconds, or a date (RFC 9110 10.2.3): of the server's clock, from which the clock of this machine may differ by hours."""
    header = headers.get("retry-after", "")
    if header.isascii() and header.isdigit():
        return float(header)
    until = _seconds_of(header)
    if until is None:
        return 0
    now = _seconds_of(headers.get("date", ""))
    return max(0.0, until - (time.time() if now is None else now))


def _seconds_of(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        return None
