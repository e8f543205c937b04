import unittest

from hopline import A2AError, RetryLimits
from hopline.errors import FailedTry
from hopline.limits import STEADY_SECONDS
from hopline.tries import Tries

LIMITS = RetryLimits(tries_max=4, unreached_tries_max=2, total_seconds_max=100, base_seconds=1, wait_seconds_max=3)


def failed(**options: object) -> FailedTry:
    return FailedTry(A2AError("UNAVAILABLE"), **options)  # type: ignore[arg-type]


class TriesTest(unittest.TestCase):
    def test_delays_double_up_to_their_bound_and_add_what_the_server_requests(self) -> None:
        tries = Tries(LIMITS, draw=lambda: 1)
        self.assertEqual([tries.wait_seconds(failed(), now) for now in range(3)], [1, 2, 3])
        self.assertEqual(Tries(LIMITS, draw=lambda: 0).wait_seconds(failed(delay_seconds=7), 0), 7)

    def test_the_last_try_raises_its_error(self) -> None:
        tries = Tries(LIMITS, draw=lambda: 0)
        for now in range(3):
            tries.wait_seconds(failed(), now)
        with self.assertRaises(A2AError):
            tries.wait_seconds(failed(), 3)

    def test_an_address_without_a_server_fails_sooner(self) -> None:
        tries = Tries(LIMITS, draw=lambda: 0)
        tries.wait_seconds(failed(reached=False), 0)
        with self.assertRaises(A2AError):
            tries.wait_seconds(failed(reached=False), 1)

    def test_the_time_of_all_tries_is_bounded_at_its_edge(self) -> None:
        tries = Tries(LIMITS, draw=lambda: 0)
        tries.wait_seconds(failed(), 0)
        self.assertEqual(tries.wait_seconds(failed(), 100), 0)
        with self.assertRaises(A2AError):
            tries.wait_seconds(failed(), 100.001)

    def test_progress_and_a_steady_connection_begin_the_count_again(self) -> None:
        for steady in (False, True):
            tries = Tries(LIMITS, draw=lambda: 0)
            for now in range(3):
                tries.wait_seconds(failed(), now)
            if steady:
                tries.opened(10)
            else:
                tries.progress()
            tries.wait_seconds(failed(), 10 + STEADY_SECONDS)
            self.assertEqual(tries.failed, 1)

    def test_the_time_in_which_the_machine_sleeps_does_not_count(self) -> None:
        tries = Tries(LIMITS, draw=lambda: 0)
        tries.wait_seconds(failed(), 0)
        tries.stood_still(3_600)
        tries.wait_seconds(failed(), 3_700)
        with self.assertRaises(A2AError):
            tries.wait_seconds(failed(), 3_700.001)

    def test_an_error_that_is_not_retryable_is_raised_at_once(self) -> None:
        with self.assertRaises(A2AError):
            Tries(LIMITS).wait_seconds(FailedTry(A2AError("TASK_NOT_FOUND")), 0)
