"""How soon a device that waits at one server hears of what was saved through another one over the same database."""

import math
import random
import select
import time
import urllib.parse

from runner.asking import Asker
from runner.measuring import Failure

# Seconds from a waking to the next save: by then the server has the request that waits.
PAUSE = (0.05, 0.15)
# A notification that was lost is made up for by a look each 15 seconds, and that has to be seen.
LONGEST = 40


def percentile(values, share):
    """The value that so large a share of some values does not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


class Wakings:
    """Saves through one server, while a device waits for changes at another one, as ``HTTPDatabase.notifications()`` does."""

    def __init__(self, saving, waiting, base, token):
        """`saving` and `waiting` are the ports of the two servers, `base` is where the database is in addresses of the protocol: `/container/…`."""
        self.token, self.in_vain = token, 0
        self.saving, self.looking = Asker(saving, "/database/1" + base), Asker(waiting, "/database/1" + base)
        self.waiting = Asker(waiting, "/tidemark/1" + base)
        found, _ = self.waiting.ask("/notifications", None, token)
        self.cursor = found["cursor"]

    def measure(self, count, body, seed=1):
        """Saves `body` so often; the milliseconds from each save's answer, and from its sending, until the request that waited was answered."""
        drawn, answered, sent = random.Random(seed), [], []
        while len(answered) < count:
            since_answer, since_sending, is_of_the_save = self.wake(drawn.uniform(*PAUSE), body)
            if is_of_the_save:
                answered.append(since_answer * 1e3)
                sent.append(since_sending * 1e3)
                continue
            self.in_vain += 1
            if self.in_vain > count:
                raise Failure(f"who waits was woken {self.in_vain} times before anything was saved")
        return answered, sent

    def wake(self, pause, body):
        """One save. The seconds from its answer and from its sending until the waiting request was answered, and whether that was due to this save."""
        self.wait()
        # The slow look behind the notifications answers, too.
        while select.select([self.waiting.socket], [], [], pause)[0]:
            self.hear()
            self.wait()
        moments, began = {}, time.perf_counter()
        self.saving.socket.sendall(self.saving.request("/records/modify", body, self.token))
        open_ones = {self.saving.socket, self.waiting.socket}
        while open_ones:
            ready, _, _ = select.select(list(open_ones), [], [], LONGEST)
            now = time.perf_counter()
            if not ready:
                raise Failure(f"a save through another server was not heard within {LONGEST} s")
            moments |= {it: now for it in ready}
            open_ones -= set(ready)
        self.saving.checked("/records/modify", *self.saving.receive())
        self.hear()
        # Who was woken before the commit has a cursor after which there is a change.
        found, _ = self.looking.ask("/changes/database", {"syncToken": self.cursor}, self.token)
        heard = moments[self.waiting.socket]
        return heard - moments[self.saving.socket], heard - began, not found["zones"]

    def wait(self):
        """Sends the request that waits."""
        self.waiting.socket.sendall(self.waiting.request(f"/notifications?cursor={urllib.parse.quote(self.cursor, safe='')}", None, self.token))

    def hear(self):
        """Reads its answer."""
        found = self.waiting.checked("/notifications", *self.waiting.receive())
        self.cursor = found["cursor"]
