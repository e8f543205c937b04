"""Bounds of requests and of their retries."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ClientLimits:
    """Bounds of single requests."""

    silence_seconds_max: float = 60
    """A stream that is silent for this long counts as broken. Hopline sends a comment every 15 s."""
    call_seconds_max: float = 30
    """
    Bound of each connection, and of each wait for bytes of `get`, `list` and `cancel`: the whole of a large task may take longer on a slow network.
    Cancel waits up to 10 s for the agent.
    """
    response_bytes_max: int = 64 * 1024 * 1024
    """Largest response body: Hopline sends tasks with artifacts of up to 64 MiB."""
    event_bytes_max: int = 16 * 1024 * 1024
    """Largest event of a stream."""


@dataclass(frozen=True)
class RetryLimits:
    """Bounds of the retries of one call. Twenty tries take about two minutes: enough for a restart behind a load balancer."""

    tries_max: int = 20
    """Consecutive tries without progress before the last error is raised."""
    unreached_tries_max: int = 5
    """The same limit while no server has ever responded, because a wrong address must fail soon."""
    total_seconds_max: float = 120
    """Time from the first consecutive failure to the start of the last try. The time in which the machine sleeps does not count."""
    base_seconds: float = 0.25
    """Upper bound of the delay after the first failure, doubled after each further one."""
    wait_seconds_max: float = 15
    """Upper bound of every delay, to which the delay that a server requests is added."""


STEADY_SECONDS = 10.0
"""A stream that stays open this long counts as progress even without an event, because a task may wait for days."""
