"""Counts the consecutive tries of one call without progress, and computes delays."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from math import inf

from .errors import FailedTry
from .limits import STEADY_SECONDS, RetryLimits

_log = logging.getLogger("hopline")


class Tries:
    """Times are arguments, seconds of any clock."""

    def __init__(self, limits: RetryLimits, draw: Callable[[], float] = random.random) -> None:
        self._limits = limits
        self._draw = draw
        self.failed = 0
        """Failed tries since the last progress."""
        self._failing_since = 0.0
        self._opened_at = inf
        self._progressed = False
        self._reached = False

    def opened(self, now: float) -> None:
        self._opened_at = now

    def progress(self) -> None:
        self._progressed = True

    def stood_still(self, seconds: float) -> None:
        """Excludes a time in which the process stood still from the time of its tries."""
        self._failing_since += seconds

    def wait_seconds(self, failed: FailedTry, now: float) -> float:
        """Seconds before the next try, with full jitter. Raises the error if no further try is allowed."""
        self._reached = self._reached or failed.reached
        if self._progressed or now - self._opened_at >= STEADY_SECONDS:
            self.failed = 0
        self._progressed = False
        self._opened_at = inf
        if self.failed == 0:
            self._failing_since = now
        self.failed += 1
        limits = self._limits
        bound = min(limits.wait_seconds_max, limits.base_seconds * 2.0 ** min(self.failed - 1, 30))
        wait = failed.delay_seconds + self._draw() * bound
        tries_max = limits.tries_max if self._reached else limits.unreached_tries_max
        is_last = self.failed >= tries_max or now + wait - self._failing_since > limits.total_seconds_max
        if is_last or not failed.error.retryable:
            raise failed.error from failed.__cause__
        return wait

    async def pause(self, failed: FailedTry) -> None:
        """Waits until the next try may start."""
        began = time.monotonic()
        wait = self.wait_seconds(failed, began)
        _log.info("try %d failed (%s); the next one starts in %.2f s", self.failed, failed.error, wait)
        await asyncio.sleep(wait)
        # A machine that sleeps had no time for tries.
        self.stood_still(max(0.0, time.monotonic() - began - wait))
