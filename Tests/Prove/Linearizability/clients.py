"""Clients that change and read a few records of a few zones at the same time, over HTTP, and record their requests and the answers."""

import collections
import http.client
import json
import pathlib
import random
import sys
import threading
import time

from history import DELETIONS, Operation, Zone

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "Interop"))
import start_server  # noqa: E402

CONTAINER = start_server.CONTAINER
TYPE = "Counter"
NO_ANSWER = (OSError, http.client.HTTPException)
# Error codes of single records that say whether the operation was done. All other codes leave that open.
CODES = {"CONFLICT", "NOT_FOUND", "ATOMIC_ERROR", "ACCESS_DENIED"}


class Unexpected(Exception):
    """An answer that no rule allows."""


class Lost(Exception):
    """There is no answer, or none that says what was done."""


class NotDone(Exception):
    """The server has refused to handle a request, so nothing was done."""


class SignedOut(Exception):
    """The session has ended, or never existed."""


class Link:
    """A connection to an address of the cloud. All connections of an account share a session. When the session has ended, they sign in again."""

    # The server hashes passwords one after the other, which takes long on a busy machine.
    SIGN_IN_TIMEOUT = 30

    def __init__(self, address, account, timeout):
        self.address, self.account, self.timeout, self.connection = address, account, timeout, None
        self.signing_in = account.setdefault("lock", threading.Lock())

    def ask(self, path, body):
        """Sends a request, and returns the status and the body of the answer."""
        token = self.account.get("token") or self.sign_in()
        if self.connection is None:
            self.connection = http.client.HTTPConnection(*self.address, timeout=self.timeout)
        try:
            return self.exchange(self.connection, path, body, {"Authorization": f"Bearer {token}", "X-Tidemark-Extensions": "1"})
        except Lost:
            self.close()
            raise
        except SignedOut as error:
            if self.account.get("token") == token:
                self.account["token"] = None
            raise NotDone(str(error)) from error

    @staticmethod
    def exchange(connection, path, body, headers):
        try:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"} | headers)
            answer = connection.getresponse()
            status, data = answer.status, answer.read()
        except NO_ANSWER as error:
            raise Lost(repr(error)) from error
        if status >= 500:
            raise Lost(f"{status} {data[:200]!r}")
        if status in (401, 421):
            raise SignedOut(f"{status} {data[:200]!r}")
        if status in (408, 429):
            raise NotDone(str(status))
        return status, json.loads(data)

    def sign_in(self):
        """Returns the token of the account's session, and signs in if there is none."""
        with self.signing_in:
            if self.account.get("token"):
                return self.account["token"]
            given = {"email": self.account["email"], "password": self.account["password"]}
            connection = http.client.HTTPConnection(*self.address, timeout=self.SIGN_IN_TIMEOUT)
            try:
                status, answer = self.exchange(connection, f"/tidemark/1/{CONTAINER}/development/session", given, {})
            except (Lost, SignedOut) as error:
                raise NotDone(str(error)) from error
            finally:
                connection.close()
            if status != 200:
                raise NotDone(f"{status} {answer}")
            self.account["user"], self.account["token"] = answer["userRecordName"], answer["token"]
            return self.account["token"]

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None


class Place:
    """A zone that clients use: its owner, its records, its participants, and the operations so far."""

    def __init__(self, name, owner, records, participants=()):
        self.name, self.owner, self.records, self.participants = name, owner, records, list(participants)
        self.share = None
        self.participant_ids = {}
        self.lock, self.operations = threading.Lock(), []
        # For each record, the last value and tag that a client has seen, and some earlier ones. Updates use these.
        self.known, self.seen = {}, {}

    def note(self, operation):
        with self.lock:
            self.operations.append(operation)

    def saw(self, name, value, tag):
        self.known[name] = (value, tag)
        self.seen.setdefault(name, collections.deque(maxlen=6)).append((value, tag))

    def history(self, seed):
        return Zone(self.name, self.owner, {account: "readWrite" for account in self.participants}, self.operations, seed).numbered()


class Values:
    """Numbers that are used as values, each only once."""

    def __init__(self):
        self.lock, self.last = threading.Lock(), 0

    def next(self):
        with self.lock:
            self.last += 1
            return self.last


class Client:
    """A program of an account that sends one request after the other."""

    def __init__(self, name, account, accounts, addresses, values, seed, timeout):
        self.name, self.account, self.accounts, self.values = name, account, accounts, values
        self.links = [Link(address, accounts[account], timeout) for address in addresses]
        self.drawn, self.timeout = random.Random(seed), timeout
        self.tokens = {}
        # The time until which requests without an answer are repeated.
        self.deadline = None

    def close(self):
        for link in self.links:
            link.close()

    # Requests

    def zone_id(self, place):
        return {"zoneName": place.name} | ({} if place.owner == self.account else {"ownerRecordName": self.accounts[place.owner]["user"]})

    def path(self, place, operation, own=False):
        database = "private" if place.owner == self.account else "shared"
        return f"/{'tidemark' if own else 'database'}/1/{CONTAINER}/development/{database}/{operation}"

    def ask(self, place, operation, body, own=False):
        """Sends a request, and returns the answer. Repeats a request that was not handled, until the deadline."""
        while True:
            try:
                return self.drawn.choice(self.links).ask(self.path(place, operation, own), body)
            except NotDone:
                if self.is_late():
                    raise Lost("never let in") from None
                time.sleep(0.02)

    def rest(self):
        time.sleep(self.drawn.uniform(0, 0.3))

    def is_late(self):
        return self.deadline is not None and time.monotonic() > self.deadline

    def refusal(self, status, answer):
        """Returns the code with which a request was refused as a whole, if a rule allows that code."""
        code = answer.get("serverErrorCode")
        if status == 404 and code == "ZONE_NOT_FOUND" or status == 403 and code == "ACCESS_DENIED":
            return {"refused": code}
        raise Unexpected(f"{self.name}: {status} {json.dumps(answer)[:500]}")

    @staticmethod
    def value(record):
        """Returns a record's value. Both of its fields are always written together, and must be equal."""
        fields = record["fields"]
        value, again = fields["value"]["value"], fields["again"]["value"]
        if value != again:
            raise Unexpected(f"the record is of two writes: {json.dumps(record)[:500]}")
        return value

    # Reading

    def look_up(self, place, records=None):
        records = records or self.drawn.sample(place.records, self.drawn.randint(1, len(place.records)))
        self.read(place, "lookup", {"records": records}, "records/lookup",
                  {"zoneID": self.zone_id(place), "records": [{"recordName": name} for name in records]}, self.looked_up)

    def looked_up(self, place, given, answer):
        found = {"records": {}, "tags": {}}
        for name, record in zip(given["records"], answer["records"], strict=True):
            code = record.get("serverErrorCode")
            if code == "NOT_FOUND":
                found["records"][name] = None
            elif code is not None:
                raise self.said_nothing(code, record)
            else:
                self.see(place, found, record)
        return found

    @staticmethod
    def said_nothing(code, record):
        return Lost(code) if code in ("TRY_AGAIN_LATER", "INTERNAL_ERROR") else Unexpected(json.dumps(record)[:500])

    def see(self, place, found, record):
        name, value, tag = record["recordName"], self.value(record), record["recordChangeTag"]
        found["records"][name], found["tags"][name] = value, tag
        place.saw(name, value, tag)

    def query(self, place):
        above = self.drawn.choice([None, max(0, self.values.last - self.drawn.randint(0, 40))])
        wanted = {"fieldName": "value", "comparator": "GREATER_THAN", "fieldValue": {"value": above, "type": "INT64"}}
        filters = [] if above is None else [wanted]
        self.read(place, "query", {"above": above}, "records/query",
                  {"zoneID": self.zone_id(place), "query": {"recordType": TYPE, "filterBy": filters}}, self.queried)

    def queried(self, place, given, answer):
        found = {"records": {}, "tags": {}}
        for record in answer["records"]:
            self.see(place, found, record)
        if len(found["records"]) != len(answer["records"]) or "continuationMarker" in answer:
            raise Unexpected(f"a query finds a record twice: {json.dumps(answer)[:500]}")
        return found

    def fetch_changes(self, place):
        # The tokens of participants expire when they gain or lose access, and the record of the share can take a place on their pages.
        is_owner = place.owner == self.account
        since = self.drawn.choice(self.tokens.get(place.name, [None])[-3:]) if is_owner and self.drawn.random() < 0.9 else None
        limit = self.drawn.choice([None, 1, 2]) if is_owner and not place.participants else None
        zone = {"zoneID": self.zone_id(place)} | ({"syncToken": since} if since else {}) | ({"resultsLimit": limit} if limit else {})
        self.read(place, "changes", {"since": since, "limit": limit}, "changes/zone", {"zones": [zone]}, self.fetched)

    def fetched(self, place, given, answer):
        zone = answer["zones"][0]
        code = zone.get("serverErrorCode")
        if code == "ZONE_NOT_FOUND":
            return {"refused": code}
        if code is not None:
            raise self.said_nothing(code, zone)
        found = {"records": {}, "tags": {}}
        changed = []
        for record in zone["records"]:
            if record.get("recordType") == "cloudkit.share" or record["recordName"].startswith("cloudkit."):
                continue
            if record.get("deleted"):
                changed.append([record["recordName"], None])
            else:
                self.see(place, found, record)
                changed.append([record["recordName"], found["records"][record["recordName"]]])
        if place.owner == self.account:
            self.tokens.setdefault(place.name, []).append(zone["syncToken"])
        return {"changed": changed, "token": zone["syncToken"], "more": zone["moreComing"], "tags": found["tags"]}

    def read(self, place, kind, given, path, body, understand):
        operation = Operation(self.name, self.account, kind, given, time.monotonic_ns())
        try:
            status, answer = self.ask(place, path, body)
            end = time.monotonic_ns()
            found = understand(place, given, answer) if status == 200 else self.refusal(status, answer)
        except Lost:
            # A read without an answer shows nothing and changes nothing, so it is not recorded.
            self.rest()
            return
        operation.end, operation.answer = end, found
        place.note(operation)

    # Writing

    def item(self, place, name):
        """Draws an operation on a record, and returns it in the form of the history and in that of a request."""
        known = place.known.get(name)
        if known is None:
            do = self.drawn.choice(["create", "create", "forceUpdate", "forceDelete"])
        else:
            do = self.drawn.choices(["create", "update", "forceUpdate", "delete", "forceDelete"], [2, 8, 5, 2, 1])[0]
        if do in ("update", "delete") and self.drawn.random() < 0.1:
            known = self.drawn.choice(list(place.seen[name]))
        record = {"recordName": name}
        expected = value = None
        if do in ("update", "delete"):
            expected, record["recordChangeTag"] = known
        if do not in DELETIONS:
            value = self.values.next()
            field = {"value": value, "type": "INT64"}
            record |= {"recordType": TYPE, "fields": {"value": field, "again": field}}
        return [do, name, expected, value], {"operationType": do, "record": record}

    def modify(self, place):
        names = self.drawn.sample(place.records, 2 if self.drawn.random() < 0.35 else 1)
        items = [self.item(place, name) for name in names]
        body = {"zoneID": self.zone_id(place), "atomic": True, "operations": [item[1] for item in items]}
        repeats = self.drawn.random() < 0.5
        if repeats:
            body["tidemark"] = {"clientToken": f"{self.name}-{self.drawn.getrandbits(64):016x}"}
        given = {"items": [item[0] for item in items]}
        operation = Operation(self.name, self.account, "modify", given, time.monotonic_ns())
        while True:
            try:
                status, answer = self.ask(place, "records/modify", body)
                end = time.monotonic_ns()
                found = self.modified(place, given, answer, operation.repeated) if status == 200 else self.refusal(status, answer)
                # A client who has lost access is not told whether its earlier request was done.
                if "refused" not in found or not operation.repeated:
                    operation.end, operation.answer = end, found
                break
            except Lost:
                self.rest()
                if not repeats or self.is_late():
                    break
                operation.repeated = True
        place.note(operation)

    def modified(self, place, given, answer, repeated):
        outcomes = []
        for (do, name, _, value), record in zip(given["items"], answer["records"], strict=True):
            code = record.get("serverErrorCode")
            if code is not None and code not in CODES:
                raise self.said_nothing(code, record)
            if code is not None:
                outcome = {"error": code}
                current = record.get("tidemark", {}).get("serverRecord")
                # The answer to a repeated request has the record as it is now, and not as it was when the request was done.
                if current is not None and not repeated:
                    outcome["current"] = self.value(current)
                    place.saw(name, outcome["current"], current["recordChangeTag"])
            elif do in DELETIONS:
                if not record.get("deleted"):
                    raise Unexpected(f"a deletion was answered {json.dumps(record)[:500]}")
                outcome = {"done": True}
                place.known.pop(name, None)
            else:
                outcome = {"done": True, "tag": record["recordChangeTag"]}
                if not repeated and self.value(record) != value:
                    raise Unexpected(f"{value} was written and is answered {json.dumps(record)[:500]}")
                place.saw(name, value, record["recordChangeTag"])
            outcomes.append(outcome)
        return {"items": outcomes}

    # Sharing

    def make_zone(self, place):
        self.must(place, "zones/modify", {"operations": [{"operationType": "create", "zone": {"zoneID": {"zoneName": place.name}}}]})

    def share_with(self, place, participants):
        """Shares a zone as a whole. `participants` are clients, one of each account."""
        share = self.must(place, "shares/create", {"zoneID": {"zoneName": place.name}, "publicPermission": "NONE"}, True)
        place.share = {"recordName": share["recordName"], "zoneID": {"zoneName": place.name}}
        for participant in participants:
            share = self.must(place, "shares/change", place.share | {"changes": [self.invitation(participant.account)]}, True)
            place.participant_ids[participant.account] = share["participants"][-1]["participantId"]
            link = self.must(place, "links/make", place.share | {"participantId": place.participant_ids[participant.account]}, True)
            participant.must(place, "links/accept", {"token": link["token"]}, True)

    def invitation(self, account):
        lookup = {"emailAddress": self.accounts[account]["email"]}
        return {"change": "invite", "lookupInfo": lookup, "type": "USER", "permission": "READ_WRITE"}

    def let(self, place, participant, level):
        """Changes the permission of a participant, and invites a participant again who had been removed."""
        word = {"none": "NONE", "readOnly": "READ_ONLY", "readWrite": "READ_WRITE"}[level]
        change = {"change": "setPermission", "participantId": place.participant_ids[participant.account], "permission": word}
        body = place.share | {"changes": [change]}
        if self.change_access(place, participant.account, level, "shares/change", body) == "removed":
            self.invite(place, participant)

    def remove(self, place, participant):
        """Removes a participant, and invites the same person again, who accepts."""
        change = {"change": "remove", "participantId": place.participant_ids[participant.account]}
        if self.change_access(place, participant.account, "none", "shares/change", place.share | {"changes": [change]}):
            self.invite(place, participant)

    def invite(self, place, participant):
        try:
            self.ask(place, "shares/change", place.share | {"changes": [self.invitation(participant.account)]}, True)
        except Lost:
            pass
        # If there was no answer, the list still shows the invitation. A late removal may have ended it.
        share = self.must(place, "shares/list", {"zoneID": {"zoneName": place.name}}, True)["shares"][0]
        invited = [one for one in share["participants"] if one["acceptanceStatus"] == "INVITED"]
        if not invited:
            return
        name = participant.account
        place.participant_ids[name] = invited[-1]["participantId"]
        try:
            status, link = self.ask(place, "links/make", place.share | {"participantId": place.participant_ids[name]}, True)
        except Lost:
            return
        if status == 200:
            participant.change_access(place, name, "readWrite", "links/accept", {"token": link["token"]})

    def change_access(self, place, participant, level, path, body):
        """Sends a request that changes a participant's access to a level. Repeats it after a lost answer, each time as another operation.

        Returns "done", "removed" if the participant had been removed before, or `None`."""
        was_lost = False
        while True:
            given = {"participant": participant, "level": level}
            operation = Operation(self.name, self.account, "access", given, time.monotonic_ns())
            try:
                status, answer = self.ask(place, path, body, True)
                if status == 200:
                    operation.end, operation.answer = time.monotonic_ns(), {}
                    place.note(operation)
                    return "done"
                if "was removed" in answer.get("reason", ""):
                    return "removed"
                if was_lost or path == "links/accept":
                    # An earlier request without an answer was done, or has removed the participant.
                    return None
                raise Unexpected(f"{self.name}: {path} {status} {json.dumps(answer)[:500]}")
            except Lost:
                was_lost = True
                place.note(operation)
                if self.is_late():
                    return None
                time.sleep(0.05)

    def must(self, place, operation, body, own=False):
        """Repeats a request for the preparation of a round until it is answered, and returns the answer."""
        for _ in range(100):
            try:
                status, answer = self.ask(place, operation, body, own)
            except Lost:
                time.sleep(0.2)
                continue
            if status != 200:
                raise Unexpected(f"{operation}: {status} {json.dumps(answer)[:500]}")
            return answer
        raise Unexpected(f"{operation} gets no answer")
