"""Measures how soon a device that waits at one server hears of a save through another server over the same database."""

import math
import random
import select
import time
import urllib.parse

from runner.asking import Asker
from runner.measuring import Failure

# Seconds between a waking and the next save, in which the server gets the next waiting request.
PAUSE = (0.05, 0.15)
# Seconds after which a save counts as not heard. A lost notification is made up for by a check every 15 seconds, which must still be counted.
LONGEST = 40


def percentile(values, share):
    """Returns the smallest value that at least `share` of the values does not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


class Wakings:
    """Saves through one server while a device waits for changes at another one, like ``HTTPDatabase.notifications()``."""

    def __init__(self, saving, waiting, base, token):
        """`saving` and `waiting` are the ports of the two servers. `base` is the database's path in addresses of the protocol: `/container/…`."""
        self.token, self.in_vain = token, 0
        self.saving, self.looking = Asker(saving, "/database/1" + base), Asker(waiting, "/database/1" + base)
        self.waiting = Asker(waiting, "/tidemark/1" + base)
        found, _ = self.waiting.ask("/notifications", None, token)
        self.cursor = found["cursor"]

    def measure(self, count, body, seed=1):
        """Saves `body` `count` times. Returns the milliseconds from each save's answer, and from its sending, until the waiting request was answered."""
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
        """Saves once. Returns the seconds from the answer and from the sending until the waiting request was answered, and whether this save has caused that."""
        self.wait()
        # The regular check behind the notifications also answers the waiting request.
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
        # If the request was answered before the commit, there is a change after its cursor.
        found, _ = self.looking.ask("/changes/database", {"syncToken": self.cursor}, self.token)
        heard = moments[self.waiting.socket]
        return heard - moments[self.saving.socket], heard - began, not found["zones"]

    def wait(self):
        """Sends the waiting request."""
        self.waiting.socket.sendall(self.waiting.request(f"/notifications?cursor={urllib.parse.quote(self.cursor, safe='')}", None, self.token))

    def hear(self):
        """Reads the answer to the waiting request."""
        found = self.waiting.checked("/notifications", *self.waiting.receive())
        self.cursor = found["cursor"]
