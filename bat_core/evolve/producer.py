"""The producer: makes the bank's next generations beside training, a bounded number ahead, and ends when told to."""

from __future__ import annotations

import threading
from collections.abc import Callable

from bat_core.model.run import BankReport

Progress = Callable[[int, int], None]
Make = Callable[[int, Progress], BankReport]


class Ended(Exception):
    """The run is over: what is half made stays for the next time, or is discarded."""


class Producer:
    """Makes generations in a thread, one after the other. What they hold follows from their number alone.

    Args:
        make: Makes the generation of a number; calls its progress between tasks. It runs in the thread.
        first: The first one to make.
        last: The last one.
        ahead: How many may be complete before they are asked for; then the producer waits.
    """

    def __init__(self, make: Make, first: int, last: int, ahead: int = 1) -> None:
        self._make, self._next, self._last, self._ahead = make, first, last, ahead
        self._asked = first - 1
        self._made: dict[int, BankReport] = {}
        self._failed: BaseException | None = None
        self._ending = False
        self._turn = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="bank", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def take(self, number: int) -> BankReport:
        """Return the report of a generation, waiting for it; what went wrong in the thread is raised here."""
        with self._turn:
            self._asked = max(self._asked, number)
            self._turn.notify_all()
            while number not in self._made:
                if self._failed is not None:
                    raise self._failed
                assert self._thread.is_alive() and number <= self._last, f"nobody makes generation {number}"
                self._turn.wait(1.0)
            return self._made.pop(number)

    def close(self) -> None:
        """End after the task at hand. Idempotent."""
        with self._turn:
            self._ending = True
            self._turn.notify_all()
        if self._thread.is_alive():
            self._thread.join()

    def _work(self) -> None:
        try:
            while self._may_go_on():
                report = self._make(self._next, self._progress)
                with self._turn:
                    self._made[self._next] = report
                    self._next += 1
                    self._turn.notify_all()
        except Ended:
            pass
        except BaseException as error:  # noqa: BLE001  # boundary: it is raised where the work is asked for
            with self._turn:
                self._failed = error
                self._turn.notify_all()

    def _may_go_on(self) -> bool:
        with self._turn:
            while not self._ending and self._next <= self._last and self._next > self._asked + self._ahead:
                self._turn.wait()
            return not self._ending and self._next <= self._last

    def _progress(self, done: int, total: int) -> None:
        if self._ending:
            raise Ended
