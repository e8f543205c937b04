"""Single JSON-RPC requests to one server, without retries. Failures are FailedTry."""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from inspect import isawaitable
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
_MEDIA_TYPE = re.compile(r"[\w.+-]{1,64}/[\w.+-]{1,64}", re.ASCII)

Headers = Mapping[str, str]
HeadersFunction = Callable[[A2AError | None], Headers | Awaitable[Headers]]
"""The argument is the UNAUTHENTICATED error of the server for the headers that the function returned before, else None."""


class HttpTransport:
    def __init__(self, http: httpx.AsyncClient, url: str, headers: Headers | HeadersFunction, limits: ClientLimits) -> None:
        self.url = httpx.URL(url)
        if self.url.scheme not in ("http", "https"):
            raise ValueError("the URL of a server must begin with http: or https:")
        self._http = http
        self._headers: dict[str, str] | HeadersFunction = _checked(headers) if isinstance(headers, Mapping) else headers
        self.limits = limits

    @asynccontextmanager
    async def post(
        self,
        method: str,
        params: Json,
        *,
        accept: str,
        read_seconds_max: float,
        cursor: str | None = None,
        has_answered: bool = False,
    ) -> AsyncIterator[httpx.Response]:
        """
        Yields a successful response whose body is not read yet. `read_seconds_max` bounds each wait for bytes. `has_answered`: the server has answered
        this call before, so an answer that is not of A2A comes from a proxy, and the next one may not.
        """
        headers: dict[str, Any] = {"content-type": "application/json", "accept": accept, "a2a-version": "1.0"}
        if cursor is not None:
            # UTF-8 (WHATWG HTML 9.2.2). HTTP allows no spaces at the ends.
            headers["last-event-id"] = cursor.strip().encode()
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        timeout = httpx.Timeout(self.limits.call_seconds_max, read=read_seconds_max)
        try:
            response = await self._open(headers, body, timeout, has_answered)
        except httpx.TimeoutException as thrown:
            raise self._unreached("did not respond in time") from thrown
        except httpx.TransportError as thrown:
            # The text of an error of TLS or of a proxy has its reason. The text of others may have parts of the request.
            reason = f": {thrown}" if isinstance(thrown, (httpx.ConnectError, httpx.ProxyError)) else ""
            raise self._unreached(f"cannot be reached ({type(thrown).__name__}{reason})") from thrown
        try:
            yield response
        finally:
            await response.aclose()

    async def _open(self, headers: dict[str, Any], body: str, timeout: httpx.Timeout, has_answered: bool) -> httpx.Response:
        own = await self._own_headers(None)
        is_renewed = False
        while True:
            request = self._http.build_request("POST", self.url, headers={**own, **headers}, content=body, timeout=timeout)
            # A redirect would send the caller's headers and message to an address of the server's choice.
            response = await self._http.send(request, stream=True, follow_redirects=False)
            if response.is_success:
                return response
            try:
                failed = await _failure_of(response, has_answered)
            finally:
                await response.aclose()
            if is_renewed or failed.error.code != "UNAUTHENTICATED":
                raise failed
            # A token may expire on the way, or be revoked. A refused request had no effect, so it may be sent again.
            renewed = await self._own_headers(failed.error)
            if renewed == own:
                raise failed
            own, is_renewed = renewed, True

    async def _own_headers(self, refused: A2AError | None) -> dict[str, str]:
        if isinstance(self._headers, dict):
            return self._headers
        try:
            headers = self._headers(refused)
            return _checked(await headers if isawaitable(headers) else headers)
        except A2AError as error:
            raise FailedTry(error, reached=False) from error.__cause__
        except Exception as thrown:
            failure = A2AError("UNAVAILABLE", f"the function for the headers failed: {thrown}")
            raise FailedTry(failure, reached=False) from thrown

    async def call(self, method: str, params: Json) -> Any:
        """The `result` of a response."""
        limits = self.limits
        async with self.post(method, params, accept="application/json", read_seconds_max=limits.call_seconds_max) as response:
            return result_of(await read_body(response, limits.response_bytes_max), response)

    def _unreached(self, detail: str) -> FailedTry:
        address = f"{self.url.scheme}://{self.url.netloc.decode()}{self.url.path}"
        return FailedTry(A2AError("UNAVAILABLE", f"{address} {detail}"), reached=False)


def _checked(headers: Headers) -> dict[str, str]:
    for name, value in headers.items():
        # The message must not show the value, which may be a secret.
        if not isinstance(value, str) or not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise ValueError(f"header {name!r} must be a string of ASCII, without line ends and without spaces at its ends")
    return dict(headers)


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


def result_of(body: bytes, response: httpx.Response) -> Any:
    """The `result` of a JSON-RPC response. Raises FailedTry with the response's error."""
    found = parse_json(body)
    if isinstance(found, dict) and isinstance(found.get("error"), dict):
        raise FailedTry(error_of(found["error"]))
    if isinstance(found, dict) and "result" in found:
        return found["result"]
    raise not_a2a(f"the body is not a JSON-RPC response{sender_of(response)}")


def sender_of(response: httpx.Response) -> str:
    """Names the media type of a response that A2A does not have, and who sends pages."""
    media_type = _MEDIA_TYPE.match(response.headers.get("content-type", ""))
    if media_type is None:
        return ""
    who = ": a proxy, or the login page of the network, may have sent it" if media_type[0] == "text/html" else ""
    return f", but {media_type[0]}{who}"


def parse_json(text: str | bytes) -> Any:
    """None for text that is not JSON. Deep nesting is not JSON that a server may send."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


async def _failure_of(response: httpx.Response, has_answered: bool) -> FailedTry:
    status = response.status_code
    is_busy = status >= 500 or status in _RETRYABLE_STATUSES
    asked = _retry_after_seconds(response.headers)
    challenge = response.headers.get("www-authenticate")
    try:
        body = parse_json(await read_body(response, ERROR_BYTES_MAX))
    except FailedTry:
        body = None
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        error = error_of(body["error"], retryable_default=is_busy, retry_after_seconds=asked, challenge=challenge)
        return FailedTry(error, delay_seconds=asked or 0)
    refusal = _CODES_OF_STATUSES.get(status)
    error = A2AError(
        "UNAVAILABLE" if is_busy else refusal or "INVALID_AGENT_RESPONSE",
        f"the server responded with HTTP {status}",
        retryable=is_busy or (has_answered and refusal is None),
        retry_after_seconds=asked,
        challenge=challenge,
    )
    return FailedTry(error, delay_seconds=asked or 0, status=status)


def _retry_after_seconds(headers: httpx.Headers) -> float | None:
    """Seconds, or a date (RFC 9110 10.2.3): of the server's clock, from which the clock of this machine may differ by hours."""
    header = headers.get("retry-after", "")
    if header.isascii() and header.isdigit():
        return float(header)
    until = _seconds_of(header)
    if until is None:
        return None
    now = _seconds_of(headers.get("date", ""))
    return max(0.0, until - (time.time() if now is None else now))


def _seconds_of(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        return None
