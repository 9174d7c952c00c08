"""Writers whose batches have times, and the records that must exist at a moment: for proofs that restore a cloud to a moment."""

import threading
import time

from acknowledged import Acknowledged, Sender, Writer


class Dated(Acknowledged):
    """Also records when each batch was sent and acknowledged."""

    def __init__(self):
        super().__init__()
        self.log = []

    def note(self, changes, was_repeated, was_done=False):
        super().note(changes, was_repeated, was_done)
        with self.lock:
            self.log.append((threading.current_thread().began, time.time(), changes))

    def count_before(self, moment):
        return sum(answered < moment for _, answered, _ in self.log)


class Dating:
    """Records when a batch is sent."""

    def write(self, *batch):
        self.began = time.time()
        super().write(*batch)


class DatedWriter(Dating, Writer):
    pass


class DatedSender(Dating, Sender):
    pass


def state_at(log, moment, found):
    """Returns the records that must exist at a moment, and the number of batches that were unanswered then.

    An unanswered batch may be done as a whole, as `found` shows, or not at all. No two writers have a record in common.
    """
    state, halfway = {}, 0
    for began, answered, changes in log:
        is_done = answered < moment
        if began < moment <= answered:
            halfway += 1
            is_done = all(found.get(name) == value for name, value in changes.items())
        if is_done:
            state.update(changes)
    return {name: value for name, value in state.items() if value is not None}, halfway
