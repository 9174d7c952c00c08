"""Writers that record what a server acknowledges, and comparisons of that with the server's records: for proofs that kill servers."""

import hashlib
import http.client
import json
import pathlib
import random
import re
import sys
import threading
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "Interop"))
import start_server  # noqa: E402

ZONE = {"zoneName": "proof"}
BASE = f"/database/1/{start_server.CONTAINER}/development/private"
OWN = f"/tidemark/1/{start_server.CONTAINER}/development/private"
BROKEN = (OSError, http.client.HTTPException)


class Wrong(Exception):
    """The server has lost or changed something that it had acknowledged."""


class Later(ConnectionError):
    """The answer was 503: the client has to try again later."""


class Link:
    """A connection that is opened at the first request."""

    def __init__(self, port, token, host="127.0.0.1", has_proxy=False):
        self.host, self.port, self.token, self.has_proxy, self.connection = host, port, token, has_proxy, None

    def ask(self, method, path, body=None, headers=None):
        """Returns an answer's status and body. Raises one of BROKEN when there is no answer, or when it is 503."""
        headers = {"Authorization": f"Bearer {self.token}", "X-Tidemark-Extensions": "1", "Content-Type": "application/json"} | (headers or {})
        try:
            if self.connection is None:
                self.connection = http.client.HTTPConnection(self.host, self.port, timeout=30)
            self.connection.request(method, path, body, headers)
            answer = self.connection.getresponse()
            status, data = answer.status, answer.read()
        except BROKEN:
            self.close()
            raise
        if status == 503:
            if answer.headers.get("Retry-After") is None:
                raise Wrong(f"{path}: 503 without Retry-After: {data[:300]!r}")
            raise Later(f"{path}: 503")
        # The proxy has no server behind it.
        if self.has_proxy and status in (502, 504):
            raise ConnectionError(f"{path}: {status}")
        return status, data

    def post(self, path, body):
        status, data = self.ask("POST", path, json.dumps(body))
        if status != 200:
            raise Wrong(f"{path}: {status} {data[:500]!r}")
        return json.loads(data)

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None


class Acknowledged:
    """The acknowledged state of each record: its tag and number, or `None` where it is deleted."""

    def __init__(self):
        self.lock, self.records, self.fresh, self.batches, self.repeated, self.done_before = threading.Lock(), {}, set(), 0, 0, 0

    def note(self, changes, was_repeated, was_done=False):
        """Records an acknowledged batch. `was_repeated`: it was sent more than once. `was_done`: it was found done before an answer came."""
        with self.lock:
            self.records.update(changes)
            self.fresh.update(changes)
            self.batches += 1
            self.repeated += was_repeated
            self.done_before += was_done

    def take_fresh(self):
        with self.lock:
            fresh, self.fresh = self.fresh, set()
            return {name: self.records[name] for name in fresh}


class Writer(threading.Thread):
    """Sends atomic batches that create, update and delete its own records. Repeats each batch until it is answered, and records what is acknowledged.

    `options` has `batch`, the number of operations in a batch, and `assets`, to which a ``Sender`` adds. Nothing is sent while `pause` is cleared.
    """

    def __init__(self, name, link, seed, options, acknowledged, pause):
        super().__init__(name=name, daemon=True)
        self.link, self.drawn, self.options, self.acknowledged, self.pause = link, random.Random(seed), options, acknowledged, pause
        self.error, self.is_over, self.own, self.next = None, False, {}, 0
        # The records of the unanswered batch, as they are once it is done.
        self.pending = {}

    def run(self):
        try:
            while not self.is_over:
                self.write(f"{self.name}-{self.acknowledged.batches}-{self.drawn.getrandbits(64):016x}", *self.batch())
        except Exception as error:
            self.error = error

    def batch(self):
        """Returns operations, and the records' numbers after them: `None` for a deleted record."""
        operations, after = [], {}
        for _ in range(self.options.batch):
            kind = self.drawn.random()
            if kind < 0.6 or not self.own:
                name, number, operation, tag = f"{self.name}-{self.next}", 0, "create", None
                self.next += 1
            else:
                name = self.drawn.choice(list(self.own)[-500:])
                if name in after:
                    continue
                tag, number = self.own[name]
                number += 1
                operation = "update" if kind < 0.9 else "delete"
            record = {"recordName": name, "recordType": "Proof"}
            if tag:
                record["recordChangeTag"] = tag
            if operation != "delete":
                record["fields"] = {"number": {"value": number, "type": "INT64"}, "text": {"value": f"{name} {number} " + "x" * self.drawn.randrange(200, 2000), "type": "STRING"}}
            operations.append({"operationType": operation, "record": record})
            after[name] = None if operation == "delete" else number
        return operations, after

    def write(self, token, operations, after):
        body = {"zoneID": ZONE, "atomic": True, "tidemark": {"clientToken": token}, "operations": operations}
        was_repeated, was_done, self.pending = False, False, after
        while True:
            # The pause lasts from a kill to the next start of the server.
            self.pause.wait()
            try:
                # Half of the repetitions first check whether the batch was done. The others follow at once, like those of a real client.
                if was_repeated and not was_done and self.drawn.random() < 0.5:
                    was_done = self.is_done(operations[0]["record"]["recordName"], after)
                outcomes = self.link.post(BASE + "/records/modify", body)["records"]
                break
            except BROKEN:
                was_repeated = True
                if self.is_over and not self.pause.is_set():
                    return
                time.sleep(0.01)
        changes = {}
        for operation, outcome in zip(operations, outcomes, strict=True):
            name = operation["record"]["recordName"]
            if "serverErrorCode" in outcome:
                raise Wrong(f"{token}{', sent again' if was_repeated else ''}: {operation['operationType']} of {name}: {outcome}")
            number = after[name]
            changes[name] = None if number is None else (outcome["recordChangeTag"], number)
            if number is None:
                self.own.pop(name, None)
            else:
                self.own[name] = changes[name]
        self.acknowledged.note(changes, was_repeated, was_done)
        self.pending = {}

    def is_done(self, name, after):
        """Whether an unanswered batch was done: the record `name` of it then is as in `after`."""
        answer = self.link.post(BASE + "/records/lookup", {"zoneID": ZONE, "desiredKeys": ["number"], "records": [{"recordName": name}]})
        record, = answer["records"]
        if after[name] is None:
            return record.get("serverErrorCode") == "NOT_FOUND"
        return record.get("fields", {}).get("number", {}).get("value") == after[name]


class Sender(Writer):
    """Sends assets in pieces, continues each where the server says that it has stopped, and then saves a record that names the asset."""

    def batch(self):
        content = self.drawn.randbytes(self.drawn.randrange(100_000, 2_000_000))
        digest, size = hashlib.sha256(content).hexdigest(), len(content)
        name = f"{self.name}-{digest[:16]}"
        path = f"{OWN}/assets/{digest}-{size}?zone={ZONE['zoneName']}"
        while True:
            self.pause.wait()
            try:
                missing = self.link.post(OWN + "/assets/missing", {"zoneID": ZONE, "assets": [{"digest": digest, "size": size}]})["assets"]
                if not missing:
                    break
                received = missing[0]["received"]
                # If all bytes have arrived and the asset is still missing, the server expects a last piece without bytes.
                while True:
                    status, data = self.link.ask("PUT", f"{path}&offset={received}", content[received:received + 300_000], {"Content-Type": "application/octet-stream"})
                    if status != 200:
                        raise Wrong(f"a piece at {received} of {digest}: {status} {data[:300]!r}")
                    received = json.loads(data)["received"]
                    if received == size:
                        break
            except BROKEN:
                if self.is_over and not self.pause.is_set():
                    break
                time.sleep(0.01)
        value = {"size": size, "tidemark": {"digest": digest}}
        self.options.assets[name] = (digest, size)
        return [{"operationType": "create", "record": {"recordName": name, "recordType": "Picture", "fields": {
            "number": {"value": 0, "type": "INT64"}, "image": {"value": value, "type": "ASSETID"}}}}], {name: 0}


def has_its_text(record, name, number):
    """Whether a record's text was saved with its number. Records of a ``Sender`` have no text."""
    text = record.get("fields", {}).get("text", {}).get("value")
    return text is None if record.get("recordType") == "Picture" else text is not None and re.fullmatch(f"{re.escape(name)} {number} x{{200,1999}}", text) is not None


def compare(link, wanted, pending, with_texts=False):
    """Looks records up, compares their tags and numbers, and their texts if asked to, and returns how many there were. The changes of an unanswered batch, `pending`, may be done or not."""
    names = sorted(wanted)
    keys = ["number", "text"] if with_texts else ["number"]
    for first in range(0, len(names), 200):
        some = names[first:first + 200]
        answer = link.post(BASE + "/records/lookup", {"zoneID": ZONE, "desiredKeys": keys, "records": [{"recordName": name} for name in some]})
        for name, record in zip(some, answer["records"], strict=True):
            number = record.get("fields", {}).get("number", {}).get("value")
            if name in pending and (record.get("serverErrorCode") == "NOT_FOUND" if pending[name] is None else number == pending[name]):
                continue
            if wanted[name] is None:
                if record.get("serverErrorCode") != "NOT_FOUND":
                    raise Wrong(f"{name} was deleted and is there: {record}")
            elif (record.get("recordChangeTag"), number) != wanted[name]:
                raise Wrong(f"{name} was acknowledged as {wanted[name]} and is {json.dumps(record)[:500]}")
            elif with_texts and not has_its_text(record, name, number):
                raise Wrong(f"{name} has a text that was not saved with its number {number}: {json.dumps(record)[:500]}")
    return len(names)


def all_changes(link):
    found, token = {}, None
    while True:
        zone = link.post(BASE + "/changes/zone", {"zones": [{"zoneID": ZONE, "desiredKeys": ["number"]} | ({"syncToken": token} if token else {})]})["zones"][0]
        for record in zone["records"]:
            if record["recordName"] in found:
                raise Wrong(f"{record['recordName']} comes twice among the changes")
            found[record["recordName"]] = None if record.get("deleted") else (record["recordChangeTag"], record["fields"]["number"]["value"])
        token = zone["syncToken"]
        if not zone["moreComing"]:
            return {name: value for name, value in found.items() if value is not None}


def check_assets(link, acknowledged, assets):
    count = 0
    for name, (digest, size) in assets.items():
        if acknowledged.records.get(name) is None:
            continue
        status, data = link.ask("GET", f"{OWN}/assets/{digest}-{size}?zone={ZONE['zoneName']}")
        if status != 200 or hashlib.sha256(data).hexdigest() != digest:
            raise Wrong(f"the asset of {name} came back with {status}, {len(data):,} of {size:,} bytes")
        count += 1
    return count
