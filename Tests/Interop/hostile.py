#!/usr/bin/env python3
"""Sends hostile requests: each must get the right answer, and leave the server healthy and small, without disclosing other accounts' data."""

import gzip
import hashlib
import json
import os
import pathlib
import select
import socket
import ssl
import sys
import threading
import time
import urllib.parse

import patience
from steps import Client, Steps, arguments, check, equal, healthy, index, memory, only, refused, web_token

# The server's limit of memory in MB; if other programs use the machine, too, only twice as much is a failure.
MEMORY_TARGET = 300
STRICT = "--strict" in sys.argv
MEMORY_MAX = MEMORY_TARGET if STRICT else 2 * MEMORY_TARGET
# Seconds for a well-formed request while others are slow, and for a head that does not arrive.
HEALTHY_MAX, HEAD_MAX = (2, 15) if STRICT else (30, 60)
LARGEST_BODY = 8 << 20


class Raw:
    """A connection that sends any bytes."""

    def __init__(self, client, timeout=30):
        parts = urllib.parse.urlsplit(client.url)
        self.host, self.socket = parts.netloc, socket.create_connection((parts.hostname, parts.port), timeout=timeout)
        if parts.scheme == "https":
            context = ssl.create_default_context(cafile=client.given.get("certificate"))
            self.socket = context.wrap_socket(self.socket, server_hostname=parts.hostname)

    def send(self, data):
        self.socket.sendall(data.encode("latin-1") if isinstance(data, str) else data)
        return self

    def answer(self):
        """The status and the beginning of the answer; status 0 if the connection ends without one."""
        got = b""
        try:
            while b"\r\n\r\n" not in got and len(got) < 1 << 20:
                some = self.socket.recv(65536)
                if not some:
                    break
                got += some
        except (ConnectionError, ssl.SSLError):
            pass
        try:
            return int(got.split(b" ", 2)[1]), got
        except (IndexError, ValueError):
            return 0, got

    def until_closed(self, limit, sending=b"", every=1.0):
        """Seconds until the other side closes; meanwhile `sending` is sent again and again."""
        began, status = time.monotonic(), b""
        self.socket.settimeout(every)
        while time.monotonic() - began < limit:
            try:
                some = self.socket.recv(4096)
                if not some:
                    return time.monotonic() - began, status
                status += some
            except TimeoutError:
                pass
            except OSError:
                return time.monotonic() - began, status
            try:
                if sending:
                    self.socket.sendall(sending)
            except OSError:
                return time.monotonic() - began, status
        return None, status

    def close(self):
        self.socket.close()


class Hostile:
    def __init__(self, given):
        self.given, self.client, self.steps = given, Client(given), Steps("hostile", least=60)
        self.anna, self.ben = (given["accounts"][name]["token"] for name in ("anna", "ben"))
        self.base = self.client.base()
        self.path = self.base[len(self.client.url):]
        self.most = self.last = 0.0

    def step(self, title):
        return Watched(self, title)

    def post(self, operation, body=None, bearer=None, **more):
        return self.client.post(self.base + operation, body, bearer=bearer or self.anna, **more)

    def raw(self, request):
        until = time.monotonic() + patience.PATIENCE
        while True:
            connection = Raw(self.client)
            try:
                connection.send(request)
                status, got = connection.answer()
            except OSError:
                return 0, b""
            finally:
                connection.close()
            if status != 503 or not patience.is_needed() or time.monotonic() > until:
                return status, got
            time.sleep(1)

    def files(self):
        """All files of the server, except a database's temporary ones."""
        return {(root.name, str(path.relative_to(root.parent))) for root in map(pathlib.Path, self.given["folders"]) for path in root.parent.rglob("*")
                if not path.name.endswith(("-wal", "-shm", "-journal"))}


class Watched:
    """A step, after which the server must be healthy and within its limit of memory."""

    def __init__(self, hostile, title):
        self.hostile, self.step = hostile, hostile.steps(title)

    def __enter__(self):
        return self.step.__enter__()

    def __exit__(self, kind, error, trace):
        now = memory(self.hostile.given["pids"])
        # The growth that an earlier step has caused was reported there.
        before, self.hostile.last, self.hostile.most = self.hostile.last, now, max(self.hostile.most, now)
        if kind is None:
            try:
                healthy(self.hostile.client)
                check(now <= max(MEMORY_MAX, before + 10), f"the server has {now:.0f} MB")
            except Exception as found:
                kind, error = type(found), found
        return self.step.__exit__(kind, error, trace)


def wait_readable(connections, limit=60):
    """Waits until each connection has received something, or the time is over."""
    waiting, until = {connection.socket for connection in connections}, time.monotonic() + limit
    while waiting and time.monotonic() < until:
        # The received bytes stay unread.
        waiting -= set(select.select(list(waiting), [], [], 0.5)[0])


def bad_json(it):
    def bad(title, data, status=400, operation="/records/query", headers=None):
        with it.step(title):
            refused(it.post(operation, data=data, headers=headers), status, "BAD_REQUEST")

    query = {"query": {"recordType": "Place"}, "zoneID": {"zoneName": "hostile"}}
    text = json.dumps(query)
    for title, data in {
        "no body": b"", "blanks": b"  \n ", "half an object": b"{", "half a word": b"nul", "no value": b'{"query":}', "a comma too many": b'{"query":{"recordType":"Place"},}',
        "single quotes": b"{'query':{'recordType':'Place'}}", "not a number": b'{"query":NaN}', "a number beyond all": b'{"resultsLimit":1e999,"query":{"recordType":"Place"}}',
        "an integer of 400 digits": b'{"query":{"recordType":"Place"},"resultsLimit":' + b"9" * 400 + b"}", "bytes that are no UTF-8": b'{"query":{"recordType":"Pl\xff\xfe"}}',
        "half a pair of UTF-16": b'{"query":{"recordType":"\\ud800"}}', "more after the end": text.encode() + b"{}", "a bare line break in a text": b'{"query":{"recordType":"a\nb"}}',
        "zeros": b"\0" * 100, "a page": b"<html></html>", "a comment": b'{/*x*/"query":{"recordType":"Place"}}', "cut off within a text": text[:-20].encode(),
        "an escape that is none": b'{"query":{"recordType":"\\x41"}}', "a leading zero": b'{"query":{"recordType":"Place"},"resultsLimit":01}',
    }.items():
        bad(f"JSON: {title}", data)
    for data in (b"[]", b'"text"', b"1", b"null", b"true", b'[{"query":{"recordType":"Place"}}]'):
        bad(f"JSON: {data.decode()[:12]} is no object", data)
    for depth in (33, 1000, 100_000, 2_000_000):
        bad(f"JSON: {depth:,} arrays within each other", b'{"query":{"recordType":"Place"},"x":' + b"[" * depth + b"]" * depth + b"}")
    bad("JSON: 500,000 objects within each other", b'{"a":' * 500_000 + b"1" + b"}" * 500_000)
    bad("JSON: half of 1,000,000 arrays", b"[" * 1_000_000)
    bad("JSON: a member twice", b'{"query":{"recordType":"Place"},"query":{"recordType":"Other"}}')
    bad("JSON: a member twice, once escaped", b'{"query":{"recordType":"Place"},"qu\\u0065ry":{"recordType":"Other"}}')
    bad("JSON: a member twice, further in", b'{"query":{"recordType":"Place","recordType":"Other"}}')
    bad("JSON: a member twice that nobody reads", b'{"query":{"recordType":"Place"},"x":{"y":1,"y":2}}')
    bad("more than a body may have", b'{"x":"' + b"a" * LARGEST_BODY + b'"}', status=413)
    bad("a body of 64 MB", b'{"x":"' + b"a" * (64 << 20) + b'"}', status=413)
    bomb = gzip.compress(b'{"x":"' + b"a" * (512 << 20) + b'"}', 9)
    with it.step("512 MB packed into half a megabyte"):
        answer = it.post("/records/query", data=bomb, headers={"Content-Encoding": "gzip"})
        refused(answer, answer.status_code if answer.status_code in (400, 413, 415) else 413, "BAD_REQUEST")
    with it.step("what calls itself packed and is not"):
        answer = it.post("/records/query", data=text.encode(), headers={"Content-Encoding": "gzip"})
        refused(answer, answer.status_code if answer.status_code in (400, 415) else 400, "BAD_REQUEST")
    with it.step("a packing that nobody knows"):
        answer = it.post("/records/query", data=text.encode(), headers={"Content-Encoding": "x-unknown"})
        check(answer.status_code in (400, 415), f"{answer.status_code} {answer.text[:200]}")
    with it.step("a body that says it has a terabyte"):
        head = f"POST {it.path}/records/query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {it.anna}\r\n"
        status, got = it.raw(head + "Content-Length: 1000000000000\r\n\r\n{")
        check(status in (0, 400, 413), got[:200])
    with it.step("chunks without an end"):
        connection = Raw(it.client)
        connection.send(head + "Transfer-Encoding: chunked\r\n\r\n")
        chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
        sent = 0
        try:
            for _ in range(128):
                connection.send(chunk)
                sent += len(chunk)
        except OSError:
            pass
        status, got = connection.answer()
        connection.close()
        check(status in (0, 400, 413), got[:200])
        check(status or sent < 128 * len(chunk), "it took 128 MB")


def wrong_types(it):
    wrong = [None, True, 0, -1, 1.5, 2**63, "", "x", [], [[]], {}, {"x": 1}, [None], ["x"], [1], "\0", "a" * 100_000]
    requests = {
        "/records/query": {"zoneID": {"zoneName": "hostile", "ownerRecordName": "_x"}, "query": {"recordType": "Place", "filterBy": [
            {"fieldName": "name", "comparator": "EQUALS", "fieldValue": {"value": "x", "type": "STRING"}}], "sortBy": [{"fieldName": "name", "ascending": True}]},
            "resultsLimit": 10, "desiredKeys": ["name"], "continuationMarker": "x", "zoneWide": False, "numbersAsStrings": False},
        "/records/lookup": {"zoneID": {"zoneName": "hostile"}, "records": [{"recordName": "x"}], "desiredKeys": ["a"]},
        "/records/modify": {"zoneID": {"zoneName": "hostile"}, "atomic": False, "desiredKeys": [], "operations": [{"operationType": "forceUpdate", "record": {
            "recordName": "typed", "recordType": "Place", "recordChangeTag": "1", "fields": {"name": {"value": "x", "type": "STRING"}}, "parent": {"recordName": "x"}}}]},
        "/changes/zone": {"zones": [{"zoneID": {"zoneName": "hostile"}, "syncToken": "x", "resultsLimit": 1, "desiredKeys": ["a"], "desiredRecordTypes": ["a"], "reverse": False}]},
        "/changes/database": {"syncToken": "x", "resultsLimit": 1},
        "/zones/lookup": {"zones": [{"zoneName": "x"}]},
        "/zones/modify": {"operations": [{"operationType": "create", "zone": {"zoneID": {"zoneName": "typed"}}}]},
        "/subscriptions/modify": {"operations": [{"operationType": "create", "subscription": {"subscriptionID": "s", "subscriptionType": "query", "zoneID": {"zoneName": "hostile"},
            "query": {"recordType": "Place", "filterBy": []}, "firesOn": ["create"], "firesOnce": False, "notificationInfo": {"alertBody": "x"}}}]},
        "/assets/upload": {"zoneID": {"zoneName": "hostile"}, "tokens": [{"recordName": "x", "recordType": "Place", "fieldName": "image"}]},
    }
    for operation, request in requests.items():
        with it.step(f"values of other types in {operation}"):
            tried = 0
            for place in places(request):
                for value in wrong:
                    answer = it.post(operation, replaced(request, place, value))
                    tried += 1
                    check(answer.status_code < 500, f"{place} = {str(value)[:40]!r}: {answer.status_code} {answer.text[:300]}")
                    if answer.status_code != 200:
                        check(answer.json().get("serverErrorCode"), answer.text[:200])
                    check("INTERNAL_ERROR" not in answer.text, f"{place} = {str(value)[:40]!r}: {answer.text[:300]}")
            check(tried > 10, "nothing was tried")
            # Zones that the request has made are deleted.
            it.post("/zones/modify", {"operations": [{"operationType": "delete", "zone": {"zoneID": {"zoneName": "typed"}}}]})
    kinds = {"STRING": 1, "INT64": "x", "DOUBLE": "x", "TIMESTAMP": 1.5, "BYTES": "***", "LOCATION": {"latitude": 91, "longitude": 0}, "REFERENCE": "x", "ASSETID": {"fileChecksum": "x", "size": -1},
             "STRING_LIST": ["x", None], "INT64_LIST": [1, 1.5], "BYTES_LIST": "AAE=", "LOCATION_LIST": [{}], "REFERENCE_LIST": [{"recordName": 1}], "ASSETID_LIST": [{}], "NONSENSE": 1}
    with it.step("values that are not of the type that they say"):
        for kind, value in kinds.items():
            answer = it.post("/records/modify", {"zoneID": {"zoneName": "hostile"}, "atomic": False, "operations": [
                {"operationType": "forceUpdate", "record": {"recordName": f"kind-{kind}", "recordType": f"Kind{kind}", "fields": {"value": {"value": value, "type": kind}}}}]})
            if answer.status_code == 200:
                only(answer.json()["records"], "BAD_REQUEST")
            else:
                refused(answer, 400, "BAD_REQUEST")
    for title, operation, request in (
        ("201 operations", "/records/modify", {"zoneID": {"zoneName": "hostile"}, "operations": [{"operationType": "forceDelete", "record": {"recordName": str(number)}} for number in range(201)]}),
        ("201 names", "/records/lookup", {"zoneID": {"zoneName": "hostile"}, "records": [{"recordName": str(number)} for number in range(201)]}),
        ("201 tokens", "/assets/upload", {"tokens": [{"recordName": str(number), "recordType": "Place", "fieldName": "image"} for number in range(201)]}),
        ("an operation that there is not", "/records/modify", {"zoneID": {"zoneName": "hostile"}, "operations": [{"operationType": "drop", "record": {"recordName": "x"}}]}),
        ("a comparison that there is not", "/records/query", {"zoneID": {"zoneName": "hostile"}, "query": {"recordType": "Place", "filterBy": [
            {"fieldName": "name", "comparator": "'; DROP TABLE records; --", "fieldValue": {"value": "x"}}]}}),
        ("atomic in the default zone", "/records/modify", {"atomic": True, "operations": [{"operationType": "create", "record": {"recordType": "Place"}}]}),
    ):
        with it.step(title):
            refused(it.post(operation, request), 400, "BAD_REQUEST")
    with it.step("100,000 filters"):
        filters = [{"fieldName": "name", "comparator": "EQUALS", "fieldValue": {"value": "x"}}] * 100_000
        refused(it.post("/records/query", {"zoneID": {"zoneName": "hostile"}, "query": {"recordType": "Place", "filterBy": filters}}), 400, "BAD_REQUEST")
    with it.step("a record larger than one may be"):
        answer = it.post("/records/modify", {"zoneID": {"zoneName": "hostile"}, "atomic": False, "operations": [
            {"operationType": "create", "record": {"recordName": "large", "recordType": "Place", "fields": {"text": {"value": "x" * 2_000_000}}}}]})
        if answer.status_code == 200:
            check(answer.json()["records"][0].get("serverErrorCode") in ("BAD_REQUEST", "QUOTA_EXCEEDED"), answer.text[:200])
        else:
            check(answer.status_code in (400, 413), f"{answer.status_code} {answer.text[:200]}")
    with it.step("names with SQL in them are names"):
        for name in ("'; DROP TABLE records; --", "\" OR 1=1 --", "%", "_"):
            answer = it.post("/records/query", {"zoneID": {"zoneName": "hostile"}, "query": {"recordType": name, "filterBy": [
                {"fieldName": name, "comparator": "EQUALS", "fieldValue": {"value": name}}]}})
            check(answer.status_code in (200, 400, 404), f"{name}: {answer.status_code} {answer.text[:200]}")
            check(not answer.json().get("records"), f"{name}: {answer.text[:200]}")


def places(value, prefix=()):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield prefix + (key,)
            yield from places(inner, prefix + (key,))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield prefix + (index,)
            yield from places(inner, prefix + (index,))


def replaced(value, place, other):
    if not place:
        return other
    copy = value.copy()
    copy[place[0]] = replaced(value[place[0]], place[1:], other)
    return copy


def credentials(it):
    given, client = it.given, it.client
    token = it.anna
    lookup = {"records": [{"recordName": "x"}]}

    def denied(title, codes=(401,), **more):
        with it.step(title):
            address = more.pop("address", it.base + "/records/lookup")
            answer = client.post(address, lookup, **more)
            check(answer.status_code in codes, f"{answer.status_code} {answer.text[:200]}")
            if answer.status_code in (401, 421):
                refused(answer, answer.status_code, "AUTHENTICATION_FAILED" if answer.status_code == 401 else "AUTHENTICATION_REQUIRED")

    denied("no credentials")
    for index in (0, len(token) // 3, len(token) // 2, len(token) - 2):
        denied(f"a forged session, place {index}", bearer=token[:index] + ("A" if token[index] != "A" else "B") + token[index + 1:])
    denied("half a session", bearer=token[:len(token) // 2])
    denied("a session and a half", bearer=token + token[:10])
    denied("a session of nonsense", bearer="!" * 40)
    denied("a session without an end", bearer="A" * 60_000, codes=(400, 401, 413, 431))
    denied("another way to say who one is", headers={"Authorization": "Basic YW5uYTpwYXNz"})
    denied("a forged API token", api="0" * 64)
    denied("an API token that is no number", api="../../access.sqlite")
    denied("the API token of another container", api=given["foreignAPIToken"])
    denied("a revoked API token", api=given["revokedAPIToken"])
    denied("a session of another container", bearer=given["foreignToken"])
    denied("a session in another environment", bearer=token, address=client.base(environment="production") + "/records/lookup")
    denied("a container that is not served", bearer=token, address=client.base(container="iCloud.org.example.none") + "/records/lookup", codes=(401, 404))
    with it.step("a device's session is not one of a browser's"):
        answer = client.post(it.base + "/records/lookup", lookup, api=given["apiToken"], web=token)
        check(answer.status_code in (200, 401, 421), f"{answer.status_code}")
    with it.step("a session that has ended"):
        account = given["accounts"]["ben"]
        made = client.post(client.own("/session"), {"email": account["email"], "password": account["password"]})
        equal(made.status_code, 200, made.text[:200])
        ending = made.json()["token"]
        equal(client.post(it.base + "/zones/list", {}, bearer=ending).status_code, 200)
        equal(client.post(client.own("/session/end"), {}, bearer=ending).status_code, 200)
        refused(client.post(it.base + "/zones/list", {}, bearer=ending), 401, "AUTHENTICATION_FAILED")
    with it.step("a wrong password, and an account that there is not, are told the same"):
        answers = [client.post(client.own("/session"), {"email": email, "password": "wrong"}) for email in (given["accounts"]["anna"]["email"], "nobody@example.org")]
        for answer in answers:
            refused(answer, 401, "AUTHENTICATION_FAILED")
        equal(answers[0].json()["reason"], answers[1].json()["reason"])
    with it.step("passwords of other kinds"):
        for body in ({}, {"email": 1, "password": 2}, {"email": "a\0b", "password": "x"}, {"email": given["accounts"]["anna"]["email"], "password": "x" * 1_000_000}, {"email": "x" * 1_000_000, "password": ""}):
            answer = client.post(client.own("/session"), body)
            check(answer.status_code in (400, 401, 413), f"{answer.status_code} {answer.text[:200]}")


def others(it):
    """An account can't see another account's data."""
    given, client = it.given, it.client
    caller = client.get(client.base("public") + "/users/caller", api=given["apiToken"], web=web_token(client)).json()["userRecordName"]
    it.client.as_anna("/records/modify", {"zoneID": {"zoneName": "hostile"}, "operations": [
        {"operationType": "forceUpdate", "record": {"recordName": "secret", "recordType": "Secret", "fields": {"text": {"value": "nobody's business"}}}}]})
    for database in ("private", "shared"):
        with it.step(f"somebody else's zone, by its owner's name, in the {database} database"):
            zone = {"zoneName": "hostile", "ownerRecordName": caller}
            none = {"zoneName": "no-such-zone", "ownerRecordName": caller}
            for operation, body in (("/records/lookup", lambda zone: {"zoneID": zone, "records": [{"recordName": "secret"}]}),
                                    ("/records/query", lambda zone: {"zoneID": zone, "query": {"recordType": "Secret"}}),
                                    ("/changes/zone", lambda zone: {"zones": [{"zoneID": zone}]}),
                                    ("/zones/lookup", lambda zone: {"zones": [zone]}),
                                    ("/records/modify", lambda zone: {"zoneID": zone, "operations": [{"operationType": "forceUpdate", "record": {"recordName": "secret", "recordType": "Secret", "fields": {}}}]})):
                answers = [client.post(client.base(database) + operation, body(which), bearer=it.ben) for which in (zone, none)]
                equal(answers[0].status_code, answers[1].status_code, operation)
                for answer in answers:
                    check("nobody's business" not in answer.text, "it was told")
                    check("ZONE_NOT_FOUND" in answer.text or answer.status_code in (400, 403), f"{operation}: {answer.status_code} {answer.text[:200]}")
    with it.step("a query over all zones finds none of others"):
        answer = it.post("/records/query", {"query": {"recordType": "Secret"}, "zoneWide": True}, bearer=it.ben)
        check(answer.status_code == 400 or not answer.json().get("records"), answer.text[:200])


def people(it):
    """Only people who have agreed are found, and a list of addresses can't be tried out."""
    base = it.client.base("public")
    with it.step("somebody who has not agreed to be found"):
        asked = {"users": [{"emailAddress": it.given["accounts"]["ben"]["email"]}]}
        answer = it.client.post(base + "/users/lookup/email", asked, bearer=it.anna)
        equal(answer.json()["users"][0]["serverErrorCode"], "NOT_FOUND")
        answer = it.client.post(base + "/users/discover", {"lookupInfos": asked["users"]}, bearer=it.anna)
        equal(answer.json()["users"], [])
    with it.step("a list of addresses"):
        statuses = []
        for part in range(4):
            asked = [{"emailAddress": f"p{part}-{number}@example.org"} for number in range(100)]
            statuses.append(it.client.post(base + "/users/lookup/email", {"users": asked}, bearer=it.anna).status_code)
        check(429 in statuses, f"{statuses}")


def private_files(it):
    with it.step("each file of the server is its user's alone"):
        opened = [str(path) for root in it.given["folders"] for path in pathlib.Path(root).rglob("*") if path.is_file() and path.stat().st_mode & 0o077]
        equal(opened, [])


def slow(it):
    head = f"POST {it.path}/records/query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {it.anna}\r\n"
    lasted = {}

    def measure(name, opening, sending, limit):
        connection = Raw(it.client)
        try:
            connection.send(opening)
            lasted.setdefault(name, []).append(connection.until_closed(limit, sending)[0])
        finally:
            connection.close()

    kinds = {"a head, a byte a second": (head + "X-Filler: ", b"a", 90), "half a head": (head, b"", 90), "a body, a byte a second": (head + "Content-Length: 100000\r\n\r\n{", b" ", 150),
             "half a body": (head + "Content-Length: 1000\r\n\r\n{", b"", 150), "chunks, a byte a second": (head + "Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n", 150)}
    with it.step("who is slow is closed, and nobody else waits for it"):
        threads = [threading.Thread(target=measure, args=(name, *kind)) for name, kind in kinds.items() for _ in range(20)]
        for thread in threads:
            thread.start()
        worst = 0.0
        while any(thread.is_alive() for thread in threads):
            began = time.monotonic()
            healthy(it.client)
            worst = max(worst, time.monotonic() - began)
            next((thread for thread in threads if thread.is_alive()), threads[0]).join(0.2)
        check(worst < HEALTHY_MAX + (patience.PATIENCE if patience.is_needed() else 0), f"a healthy request took {worst:.1f} s")
        for name, seconds in lasted.items():
            check(None not in seconds, f"{name}: still open")
            print(f"    {name}: closed after {min(seconds):.1f} to {max(seconds):.1f} s")
        for name in ("a head, a byte a second", "half a head"):
            check(max(lasted[name]) <= HEAD_MAX, f"{name}: {max(lasted[name]):.1f} s")


def answers(it):
    """Sends small requests whose answers would be large."""
    zone = {"zoneName": "hostile-large"}
    it.client.as_anna("/zones/modify", {"operations": [{"operationType": "create", "zone": {"zoneID": zone}}]})
    for first in range(0, 200, 10):
        it.client.as_anna("/records/modify", {"zoneID": zone, "desiredKeys": [], "operations": [
            {"operationType": "forceUpdate", "record": {"recordName": f"large-{number}", "recordType": "Large", "fields": {"text": {"value": "x" * 100_000}}}} for number in range(first, first + 10)]})
    index(it.given, "Large", "recordName")

    def ask(title, operation, body, times=1):
        with it.step(title):
            sizes, threads = [], []

            def once():
                answer = it.client.session.post(it.base + operation, json=body, headers={"Authorization": f"Bearer {it.anna}", "Accept-Encoding": "identity"}, stream=True, timeout=300)
                size = sum(len(part) for part in answer.iter_content(1 << 20))
                sizes.append((answer.status_code, size))

            for _ in range(times):
                threads.append(threading.Thread(target=once))
                threads[-1].start()
            most = 0.0
            while any(thread.is_alive() for thread in threads):
                most = max(most, memory(it.given["pids"]))
                time.sleep(0.02)
            check(len(sizes) == times and all(status in (200, 400, 413, 429, 503) for status, _ in sizes), str(sizes))
            print(f"    {max(size for _, size in sizes) / 1e6:.1f} MB an answer, the server {most:.0f} MB")
            it.most = max(it.most, most)
            check(most <= MEMORY_MAX, f"the server had {most:.0f} MB")

    query = {"zoneID": zone, "query": {"recordType": "Large"}}
    ask("all of 20 MB", "/records/query", query)
    ask("200 times the same record", "/records/lookup", {"zoneID": zone, "records": [{"recordName": "large-1"}] * 200})
    ask("200 times the changes of one zone", "/changes/zone", {"zones": [{"zoneID": zone}] * 200})
    ask("50 times the same query", "/internal/records/query/batch", {"batch": [query] * 50})
    ask("all of 20 MB, by 16 at once", "/records/query", query, times=16)
    with it.step("all of 20 MB, by 40 who read nothing"):
        data = json.dumps(query)
        head = f"POST {it.path}/records/query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {it.anna}\r\nContent-Length: {len(data)}\r\n\r\n{data}"
        connections, most = [Raw(it.client).send(head) for _ in range(40)], 0.0
        # Waits until each connection has the beginning of its answer, and the server has not grown for two seconds.
        wait_readable(connections)
        grown, until = time.monotonic(), time.monotonic() + 60
        while time.monotonic() < min(grown + 2, until):
            now = memory(it.given["pids"])
            if now > most:
                most, grown = now, time.monotonic()
            select.select([], [], [], 0.05)
        for connection in connections:
            connection.close()
        print(f"    the server {most:.0f} MB")
        it.most = max(it.most, most)
        check(most <= MEMORY_MAX, f"the server had {most:.0f} MB")
    it.post("/zones/modify", {"operations": [{"operationType": "delete", "zone": {"zoneID": zone}}]})


def uploads(it):
    client, zone = it.client, {"zoneName": "hostile"}
    data = os.urandom(200_000)

    def reserve(field="image", record="upload", bearer=None):
        answer = client.post(it.base + "/assets/upload", {"zoneID": zone, "tokens": [{"recordName": record, "recordType": "Picture", "fieldName": field}]}, bearer=bearer or it.anna)
        equal(answer.status_code, 200, answer.text[:300])
        return answer.json()["tokens"][0]["url"]

    def attach(value, field="image", record="upload", kind="Picture", bearer=None):
        answer = it.post("/records/modify", {"zoneID": zone, "atomic": False, "operations": [
            {"operationType": "forceUpdate", "record": {"recordName": record, "recordType": kind, "fields": {field: {"value": value, "type": "ASSETID"}}}}]}, bearer=bearer)
        return answer

    def bad(answer):
        if answer.status_code == 200:
            only(answer.json()["records"], "BAD_REQUEST")
        else:
            refused(answer, answer.status_code if answer.status_code in (400, 403, 404) else 400, "BAD_REQUEST", "ACCESS_DENIED", "NOT_FOUND", "ZONE_NOT_FOUND")

    with it.step("an upload that stops midway, and then goes well"):
        address = reserve()
        path = address[len(client.url):]
        for share in (0, 1000, 150_000):
            connection = Raw(client)
            connection.send(f"POST {path} HTTP/1.1\r\nHost: {connection.host}\r\nContent-Length: {len(data)}\r\n\r\n").send(data[:share])
            connection.close()
        # An address accepts one content at a time: the server makes a client wait until it has noticed that the other connections are closed.
        for _ in range(60):
            answer = client.post(address, data=data)
            if answer.status_code != 429:
                break
            time.sleep(answer.json()["retryAfter"])
        equal(answer.status_code, 200, answer.text[:200])
        file = answer.json()["singleFile"]
        equal(only(attach(file).json()["records"])["fields"]["image"]["value"]["size"], len(data))
    with it.step("an upload of nothing"):
        answer = client.post(reserve(), data=b"")
        check(answer.status_code in (200, 400), f"{answer.status_code} {answer.text[:200]}")
    with it.step("an upload larger than an asset may be"):
        path = reserve()[len(client.url):]
        status, got = it.raw(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000000\r\n\r\n" + "x" * 1000)
        check(status in (0, 400, 413), got[:200])
    with it.step("forms that are none"):
        for kind, body in (("multipart/form-data", b"x"), ("multipart/form-data; boundary=", b"--\r\n"), ("multipart/form-data; boundary=b", b"--b\r\nContent-Disposition: form-data\r\n\r\nno end"),
                           ("multipart/form-data; boundary=b", b"--b--\r\n"), ("multipart/form-data; boundary=" + "b" * 5000, b"x" * 6000), ("multipart/form-data; boundary=b", b"--b\r\n" + b"X: y\r\n" * 100_000)):
            answer = client.post(reserve(), data=body, headers={"Content-Type": kind})
            check(answer.status_code in (400, 413), f"{kind[:40]}: {answer.status_code} {answer.text[:200]}")
    with it.step("a form with one part is as its bytes"):
        boundary = "----tidemark"
        body = f"--{boundary}\r\nContent-Disposition: form-data; name=\"files\"; filename=\"file.file\"\r\nContent-Type: application/octet-stream\r\n\r\n".encode() + data + f"\r\n--{boundary}--\r\n".encode()
        answer = client.post(reserve(), data=body, headers={"Content-Type": f"multipart/form-data; boundary={boundary}"})
        equal(answer.json()["singleFile"]["fileChecksum"], file["fileChecksum"])
    with it.step("an address that is altered"):
        address = reserve()
        for place in (len(address) // 2, len(address) - 2):
            answer = client.post(address[:place] + ("A" if address[place] != "A" else "B") + address[place + 1:], data=data)
            check(answer.status_code in (400, 401, 403, 404), f"{answer.status_code} {answer.text[:200]}")
        answer = client.get(address.replace("/assets/upload/", "/assets/download/") + "/x")
        check(answer.status_code in (400, 401, 403, 404, 405), f"it downloads: {answer.status_code}")
    with it.step("a size that is another"):
        bad(attach(file | {"size": len(data) - 1}, record="lie-1"))
    with it.step("a checksum that is another"):
        bad(attach(file | {"fileChecksum": "AQ" + "A" * 26}, record="lie-2"))
    with it.step("a receipt that is altered"):
        receipt = file["receipt"]
        bad(attach(file | {"receipt": receipt[:10] + ("A" if receipt[10] != "A" else "B") + receipt[11:]}, record="lie-3"))
    with it.step("a receipt for another field, or another type"):
        bad(attach(file, field="other", record="lie-4"))
        bad(attach(file, kind="Other", record="lie-5"))
    with it.step("a checksum without a receipt, in a record that has not got it"):
        bad(attach({key: value for key, value in file.items() if key != "receipt"}, record="lie-6"))
    with it.step("somebody else's receipt"):
        client.post(it.base + "/zones/modify", {"operations": [{"operationType": "create", "zone": {"zoneID": zone}}]}, bearer=it.ben)
        bad(attach(file, record="stolen", bearer=it.ben))
    digest = hashlib.sha256(data).hexdigest()
    own = client.own("/private/assets/")
    with it.step("somebody else's asset, by its digest"):
        answer = client.get(own + f"{digest}-{len(data)}", params={"zone": "hostile"}, bearer=it.ben)
        check(400 <= answer.status_code < 500, f"{answer.status_code}")
        answer = client.post(client.own("/private/assets/missing"), {"zoneID": zone, "assets": [{"digest": digest, "size": len(data)}]}, bearer=it.ben)
        equal([one["received"] for one in answer.json()["assets"]], [0], "what is told of it")
        bad(attach({"size": len(data), "tidemark": {"digest": digest}}, record="stolen", bearer=it.ben))

    def put(name, body, offset=0, zone="hostile"):
        return client.post(own + name, data=body, params={"zone": zone, "offset": offset}, bearer=it.anna, method="PUT")

    other = os.urandom(5_000)
    name = f"{hashlib.sha256(other).hexdigest()}-{len(other)}"
    with it.step("a piece at a place that is not the next"):
        for offset in (1, 4999, 5000, 5001, 2**62, -1, "x"):
            answer = put(name, other[:100], offset)
            check(answer.status_code == 400, f"{offset}: {answer.status_code} {answer.text[:200]}")
    with it.step("more than an asset's size says"):
        check(put(name, other + b"x").status_code == 400, "it was taken")
    with it.step("bytes that are not what the digest says, and then those that are"):
        refused(put(name, bytes(5_000)), 400, "BAD_REQUEST")
        equal(put(name, other[:3_000]).json()["received"], 3_000)
        equal(put(name, other[3_000:], 3_000).json()["received"], 5_000)
    with it.step("a piece that stops midway, and goes on"):
        third = os.urandom(300_000)
        name = f"{hashlib.sha256(third).hexdigest()}-{len(third)}"
        connection = Raw(client)
        path = (own + name)[len(client.url):]
        connection.send(f"PUT {path}?zone=hostile&offset=0 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {it.anna}\r\nContent-Length: {len(third)}\r\n\r\n").send(third[:100_000])
        connection.close()
        missing = it.client.post(client.own("/private/assets/missing"), {"zoneID": zone, "assets": [{"digest": name.split("-")[0], "size": len(third)}]}, bearer=it.anna).json()["assets"]
        received = missing[0]["received"]
        check(0 <= received <= 100_000, str(received))
        equal(put(name, third[received:], received).json()["received"], len(third))


def paths(it):
    client, before = it.client, it.files()
    evil = ["..", ".", "%2e%2e", "%2e%2e%2f%2e%2e%2fetc", "..%2f..%2faccess.sqlite", "a%00b", "%00", "a" * 5000, "%c0%ae%c0%ae", "..%5c..", "%ff", "%", "%zz", "iCloud.org.example.journal%2f..%2fx", "-", "*", "~root", "%0d%0aX:y"]
    with it.step("containers that want to be somewhere else"):
        for name in evil:
            for method, body in (("POST", b"{}"), ("GET", b"")):
                status, got = it.raw(f"{method} /database/1/{name}/development/private/zones/list HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {it.anna}\r\nContent-Length: {len(body)}\r\n\r\n{body.decode()}")
                check(status == 0 or 400 <= status < 500, f"{name[:40]}: {got[:200]}")
    with it.step("paths that want to be somewhere else"):
        for path in ("/../../etc/passwd", "//etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/assets/download/../../access.sqlite", "/courier/../access.sqlite", "/signin/../../x", "/openapi.json/..", "http://evil.example.org/", "*", "", "/\0", "/" + "a/" * 20_000):
            status, got = it.raw(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")
            check(status == 0 or 300 <= status < 500, f"{path[:40]!r}: {got[:200]}")
            check(b"root:" not in got and b"SQLite format" not in got, f"{path[:40]!r} has a file")
    names = ["../up", "..", ".", "a/b", "/etc/passwd", "a\\b", "a\u0000b", "\u202e", "x" * 256, "x" * 10_000, " ", "%2e%2e", "-wal", "CON", "a\nb", "_x", "\U0001f30a"]
    with it.step("zones of such names are names, or are refused"):
        for name in names:
            answer = it.post("/zones/modify", {"operations": [{"operationType": "create", "zone": {"zoneID": {"zoneName": name}}}]})
            check(answer.status_code in (200, 400), f"{name[:20]!r}: {answer.status_code} {answer.text[:200]}")
            if answer.status_code == 200 and "serverErrorCode" not in answer.json()["zones"][0]:
                equal(answer.json()["zones"][0]["zoneID"]["zoneName"], name)
                it.post("/zones/modify", {"operations": [{"operationType": "delete", "zone": {"zoneID": {"zoneName": name}}}]})
            else:
                check("BAD_REQUEST" in answer.text, f"{name[:20]!r}: {answer.text[:200]}")
    with it.step("records of such names are names, or are refused"):
        for name in names:
            answer = it.post("/records/modify", {"zoneID": {"zoneName": "hostile"}, "atomic": False, "operations": [
                {"operationType": "forceUpdate", "record": {"recordName": name, "recordType": "Place", "fields": {"name": {"value": name}}}}]})
            check(answer.status_code in (200, 400), f"{name[:20]!r}: {answer.status_code} {answer.text[:200]}")
            if answer.status_code == 200 and "serverErrorCode" not in answer.json()["records"][0]:
                found = it.client.as_anna("/records/lookup", {"zoneID": {"zoneName": "hostile"}, "records": [{"recordName": name}]})
                equal(only(found["records"])["fields"]["name"]["value"], name)
            else:
                check("BAD_REQUEST" in answer.text, f"{name[:20]!r}: {answer.text[:200]}")
    with it.step("assets of such names are refused"):
        for name in ("..%2f..%2faccess.sqlite-1", "%2e%2e", "x", "0" * 63 + "-1", "0" * 64, "0" * 64 + "-", "0" * 64 + "--1", "0" * 64 + "-1x", "0" * 64 + "-99999999999999999999", "A" * 64 + "-1", "0" * 64 + "-1%00", "0" * 64 + "-1%2f..", "g" * 64 + "-1"):
            for method in ("GET", "PUT"):
                answer = client.post(client.own("/private/assets/") + name, data=b"x" if method == "PUT" else None, params={"zone": "hostile", "offset": 0}, bearer=it.anna, method=method)
                check(400 <= answer.status_code < 500, f"{method} {name[:70]}: {answer.status_code}")
    with it.step("what is downloaded is the asset, whatever name the address ends with"):
        asset = only(it.client.as_anna("/records/lookup", {"zoneID": {"zoneName": "hostile"}, "records": [{"recordName": "upload"}]})["records"])["fields"]["image"]["value"]
        for name in ("..%2f..%2f..%2fetc%2fpasswd", "%2e%2e", "a%0d%0aSet-Cookie:x=y", "\u00e5.jpg", "x" * 3000):
            answer = client.get(asset["downloadURL"].replace("${f}", name))
            check(answer.status_code == 200 and len(answer.content) == asset["size"] or 400 <= answer.status_code < 500, f"{name[:30]}: {answer.status_code}")
            check("Set-Cookie" not in answer.headers, "a header was made")
    with it.step("ranges that are none"):
        address = asset["downloadURL"].replace("${f}", "x")
        for text, statuses in (("bytes=0-0", (206,)), ("bytes=-5", (206,)), (f"bytes={asset['size'] - 1}-", (206,)), (f"bytes={asset['size']}-", (416,)), ("bytes=9-3", (200, 400, 416)), ("bytes=a-b", (200, 400, 416)),
                               ("bytes=-0", (200, 416)), ("bytes=" + ",".join("0-1" for _ in range(2000)), (200, 206, 400, 416, 431)), (f"bytes=0-{2**70}", (200, 206, 400, 416)), ("lines=1-2", (200, 400, 416))):
            answer = client.get(address, headers={"Range": text})
            check(answer.status_code in statuses, f"{text[:40]}: {answer.status_code}")
    with it.step("no file has come to be by a name"):
        new = {(root, path) for root, path in it.files() - before if "/assets/" not in path and "/uploads/" not in path}
        check(not any(".." in path or "etc" in path.split("/")[-1] or "passwd" in path for _, path in new), str(sorted(new))[:500])
        outside = {path for root, path in new if not path.startswith(root + "/")}
        check(not outside, f"outside of the data: {sorted(outside)[:10]}")


def http(it):
    head = f"POST {it.path}/records/query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {it.anna}\r\n"
    body = '{"query":{"recordType":"Place"}}'

    def odd(title, request, statuses):
        with it.step(title):
            status, got = it.raw(request)
            check(status in statuses, f"{status}: {got[:200]!r}")

    odd("two lengths", head + f"Content-Length: {len(body)}\r\nContent-Length: 5\r\n\r\n{body}", (0, 400))
    odd("a length and chunks", head + f"Content-Length: {len(body)}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /health HTTP/1.1\r\nHost: x\r\n\r\n", (0, 400))
    for length in ("-1", "x", "99999999999999999999999", "1,2"):
        odd(f"a length of {length}", head + f"Content-Length: {length}\r\n\r\n{body}", (0, 400, 413))
    odd("chunks of nonsense", head + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n", (0, 400))
    odd("a chunk larger than a number", head + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\n", (0, 400, 413))
    odd("a header of 200 KB", head + "X-Large: " + "a" * 200_000 + "\r\n\r\n", (0, 400, 413, 431))
    odd("20,000 headers", head + "".join(f"X-{number}: a\r\n" for number in range(20_000)) + "\r\n", (0, 400, 413, 431))
    odd("an address of 100 KB", "GET /" + "a" * 100_000 + " HTTP/1.1\r\nHost: x\r\n\r\n", (0, 400, 404, 414, 431))
    odd("a header with a zero in it", head + "X-Zero: a\0b\r\n\r\n", (0, 400))
    # A proxy uses its own version of HTTP to the servers, and merges two equal Host headers.
    proxied = (200,) if it.given.get("isProxied") else ()
    odd("a version that there is not", "GET /health HTTP/9.9\r\nHost: x\r\n\r\n", (0, 400, 505, *proxied))
    odd("HTTP/2 without having been asked", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (0, 400, 505))
    odd("noise", os.urandom(5_000), (0, 400))
    for title, hosts in (("no Host", ""), ("two Hosts", "Host: x\r\nHost: x\r\n"), ("two different Hosts", "Host: x\r\nHost: y\r\n"),
                         ("a Host with a path", "Host: x/y\r\n"), ("a Host with a user", "Host: a@x\r\n"), ("a Host of nothing", "Host: \r\n")):
        odd(title, f"GET /openapi.json HTTP/1.1\r\n{hosts}\r\n", (400, *(proxied if title == "two Hosts" else ())))
    with it.step("a sign-in form that another page has sent"):
        for origin in ("https://evil.example.org", "null"):
            answer = it.client.post(it.client.url + "/signin", data=b"form=x&email=anna@example.org&password=x", headers={"Origin": origin})
            check(answer.status_code == 403, f"{origin}: {answer.status_code}")
    with it.step("the server's figures, which are not for everybody"):
        for headers in ({}, {"Authorization": "Bearer x"}, {"X-Forwarded-For": "127.0.0.1"}):
            status, got = it.raw("GET /metrics HTTP/1.1\r\nHost: x\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items()) + "\r\n")
            check(status in (401, 403) and b"tidemark_requests_total" not in got, f"{status}: {got[:200]!r}")
    with it.step("methods that a path has not"):
        for method in ("DELETE", "PATCH", "PUT"):
            answer = it.client.post(it.base + "/records/query", {}, bearer=it.anna, method=method)
            check(answer.status_code == 405 and "POST" in answer.headers.get("Allow", ""), f"{method}: {answer.status_code}")
    with it.step("a path that leads nowhere"):
        error = refused(it.post("/records/nonsense", {}), 404, "NOT_FOUND")
        equal(error["reason"], "could not find handler for endpoint")
    with it.step("an operation in a database that it is not for"):
        answer = it.client.post(it.client.base("public") + "/changes/zone", {"zones": []}, bearer=it.anna)
        check("endpoint not applicable in the database type 'publicdb'" in refused(answer, 400, "BAD_REQUEST")["reason"], answer.text)
    with it.step("requests one upon the other are answered in order"):
        connection = Raw(it.client)
        connection.send("GET /health HTTP/1.1\r\nHost: x\r\n\r\n" * 500)
        got = b""
        connection.socket.settimeout(60)
        while got.count(b"HTTP/1.1 200") < 500:
            some = connection.socket.recv(65536)
            check(some, f"closed after {got.count(b'HTTP/1.1 200')}")
            got += some
        connection.close()
    with it.step("an answer that nobody takes"):
        connections = [Raw(it.client) for _ in range(50)]
        for connection in connections:
            connection.send("GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 200)
        wait_readable(connections)
        for connection in connections:
            connection.close()
    with it.step("2,000 connections that come and go"):
        for _ in range(2_000):
            Raw(it.client).close()


def main():
    # The other arguments are the same for all drivers.
    sys.argv = [word for word in sys.argv if word != "--strict"]
    it = Hostile(arguments(__doc__))
    it.client.as_anna("/zones/modify", {"operations": [{"operationType": "create", "zone": {"zoneID": {"zoneName": "hostile"}}}]})
    it.client.as_anna("/records/modify", {"zoneID": {"zoneName": "hostile"}, "operations": [
        {"operationType": "forceUpdate", "record": {"recordName": "first", "recordType": "Place", "fields": {"name": {"value": "x"}}}}]})
    index(it.given, "Place", "recordName", "name")
    for part in (bad_json, wrong_types, credentials, others, answers, uploads, paths, http, people, private_files, slow):
        part(it)
    print(f"the server had {it.most:.0f} MB at the most; it is to stay below {MEMORY_TARGET}")
    it.steps.end()


if __name__ == "__main__":
    main()
