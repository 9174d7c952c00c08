"""Rounds: in each, clients use new zones for some seconds during faults, and read everything at the end.

Histories of rounds are short, so that they can be checked: a write without an answer may be done at any later time.
"""

import threading
import time

from clients import Client, Place, Unexpected, Values

# The accounts, and the number of clients of each. The first account owns a zone that it shares with the second and the third.
OWNER, PARTICIPANTS = "anna", ("ben", "carla")
CLIENTS = {"anna": 3, "ben": 2, "carla": 1}
LEVELS = ("none", "readOnly", "readWrite")


class Worker(threading.Thread):
    """A client that sends one request after the other until the round is over."""

    def __init__(self, client, places, pause, stop):
        super().__init__(name=client.name, daemon=True)
        self.client, self.places, self.pause, self.stop, self.error = client, places, pause, stop, None

    def run(self):
        try:
            while not self.stop.is_set():
                self.work()
                if self.pause:
                    time.sleep(self.client.drawn.uniform(0, self.pause))
        except Exception as error:
            self.error = error

    def work(self):
        client, place = self.client, self.client.drawn.choice(self.places)
        kind = client.drawn.random()
        if kind < 0.5:
            client.modify(place)
        elif kind < 0.72:
            client.look_up(place)
        elif kind < 0.82:
            client.query(place)
        else:
            client.fetch_changes(place)


class Changer(Worker):
    """The owner's client that changes permissions. `participants` are clients that accept invitations, one of each account."""

    def __init__(self, client, participants, *arguments):
        super().__init__(client, *arguments)
        self.participants = participants

    def work(self):
        client, place, participant = self.client, self.places[0], self.client.drawn.choice(self.participants)
        if client.drawn.random() < 0.2:
            client.remove(place, participant)
        else:
            client.let(place, participant, client.drawn.choices(LEVELS, [1, 1, 2])[0])
        # The pause lets many reads and writes meet a permission, or few.
        self.stop.wait(client.drawn.choice([0.01, 0.1, 0.5, 1.0]))


class Rounds:
    """The clients of a served cloud, and their rounds."""

    # Seconds within which a zone must be readable at the end. A database may have to elect a new primary.
    READING = 180

    def __init__(self, accounts, addresses, drawn, timeout, pause):
        self.drawn, self.pause, self.values, self.count = drawn, pause, Values(), 0
        self.clients = [
            Client(f"{account}-{number}", account, accounts, addresses, self.values, drawn.getrandbits(64), timeout)
            for account, count in CLIENTS.items() for number in range(1, count + 1)]
        self.changer = Client("anna-shares", OWNER, accounts, addresses, self.values, drawn.getrandbits(64), timeout)
        # These clients only accept invitations.
        self.guests = [
            Client(f"{account}-accepts", account, accounts, addresses, self.values, drawn.getrandbits(64), timeout)
            for account in PARTICIPANTS]
        self.places = []
        for account in accounts:
            self.client(account).links[0].sign_in()

    def set_deadline(self, deadline):
        for client in [*self.clients, self.changer, *self.guests]:
            client.deadline = deadline

    def client(self, account):
        return next(client for client in self.clients if client.account == account)

    def prepare(self):
        """Makes a round's zones: one that is shared, and one of a participant."""
        self.count += 1
        self.set_deadline(None)
        shared = Place(f"shared-{self.count}", OWNER, ["a", "b", "c"], PARTICIPANTS)
        own = Place(f"own-{self.count}", PARTICIPANTS[0], ["a", "b", "c"])
        for place in (shared, own):
            self.client(place.owner).make_zone(place)
        self.changer.share_with(shared, [self.client(account) for account in PARTICIPANTS])
        return shared, own

    def run(self, seconds, disturb):
        """Runs a round, and returns its zones. `disturb` is called with the moment at which faults must end, and ends them before it returns."""
        shared, own = self.prepare()
        stop = threading.Event()
        workers = [Worker(client, [shared, own] if client.account == own.owner else [shared], self.pause, stop) for client in self.clients]
        workers.append(Changer(self.changer, self.guests, [shared], 0, stop))
        for worker in workers:
            worker.start()
        disturb(time.monotonic() + seconds)
        stop.set()
        self.set_deadline(time.monotonic() + 20)
        for worker in workers:
            worker.join(180)
            if worker.is_alive():
                raise Unexpected(f"{worker.name} does not end")
        for worker in workers:
            if worker.error is not None:
                raise worker.error
        for place in (shared, own):
            self.read_all(place)
        self.places += [shared, own]
        return shared, own

    def read_all(self, place):
        """Reads the whole zone, repeatedly until there are answers."""
        client = self.client(place.owner)
        client.deadline = time.monotonic() + self.READING
        for read in (lambda: client.look_up(place, place.records), lambda: client.query(place), lambda: client.fetch_changes(place)):
            count = len(place.operations)
            while len(place.operations) == count:
                if client.is_late():
                    raise Unexpected(f"{place.name} can't be read at the end")
                read()

    def read_again(self):
        """Looks up all records of all zones once more, and returns the zones that have changed since the end of their rounds."""
        changed = []
        for place in self.places:
            before = next(
                operation for operation in reversed(place.operations)
                if operation.kind == "lookup" and set(operation.given["records"]) == set(place.records))
            count, client = len(place.operations), self.client(place.owner)
            client.deadline = time.monotonic() + self.READING
            while len(place.operations) == count:
                if client.is_late():
                    raise Unexpected(f"{place.name} can't be read at the end")
                client.look_up(place, place.records)
            if place.operations[-1].answer != before.answer:
                changed.append(place)
        return changed
