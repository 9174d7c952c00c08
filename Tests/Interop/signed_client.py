#!/usr/bin/env python3
"""A program with a key of its own (server to server): what it may do, and that altered, old, replayed and foreign signatures are refused."""

import base64
import datetime
import hashlib
import json
import pathlib

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

from steps import Client, Steps, arguments, check, equal, only, refused

EMPTY = base64.b64encode(hashlib.sha256(b"").digest()).decode()


def load(path):
    return serialization.load_pem_private_key(pathlib.Path(path).read_bytes(), None)


class Signer:
    def __init__(self, client, key_id, key):
        self.client, self.key_id, self.key = client, key_id, key

    def headers(self, path, body, date=None, digest=None, key_id=None):
        """The three headers. `digest` replaces the digest of the body, and `date` the current time."""
        date = date or moment()
        digest = base64.b64encode(hashlib.sha256(body).digest()).decode() if digest is None else digest
        signature = self.key.sign(f"{date}:{digest}:{path}".encode(), ec.ECDSA(hashes.SHA256()))
        return {"X-Apple-CloudKit-Request-KeyID": key_id or self.key_id, "X-Apple-CloudKit-Request-ISO8601Date": date,
                "X-Apple-CloudKit-Request-SignatureV1": base64.b64encode(signature).decode()}

    def path(self, operation, database="public"):
        return self.client.base(database)[len(self.client.url):] + operation

    def post(self, operation, body, database="public", params=None, **more):
        data, path = json.dumps(body).encode(), self.path(operation, database)
        return self.client.post(self.client.url + path, data=data, headers=self.headers(path, data, **more), params=params)

    def get(self, operation, database="public", params=None, **more):
        path = self.path(operation, database)
        return self.client.get(self.client.url + path, headers=self.headers(path, b"", **more), params=params)


def moment(**shifted):
    now = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(**shifted)
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def create(record_name, kind="create", **fields):
    return {"operationType": kind, "record": {"recordName": record_name, "recordType": "City", "fields": {key: {"value": value} for key, value in fields.items()}}}


def main():
    given = arguments(__doc__)
    step, client = Steps("signed", least=20), Client(given)
    key = load(given["key"]["privateKey"])
    signer = Signer(client, given["key"]["id"], key)
    lookup = {"records": [{"recordName": "se-sto"}]}

    with step("a signed request writes into the public database"):
        answer = signer.post("/records/modify", {"operations": [create("se-sto", "forceUpdate", name="Stockholm", pop=984748)]})
        equal(answer.status_code, 200, answer.text[:300])
        record = only(answer.json()["records"])
        equal(record["fields"]["pop"], {"value": 984748, "type": "INT64"})
        creator = record["created"]["userRecordName"]
        check(creator.startswith("_"), creator)

    with step("the key has a user of its own"):
        check(creator != given["accounts"]["anna"].get("userRecordName"), "it is somebody's")

    with step("everybody reads what it has written"):
        answer = client.post(client.base("public") + "/records/lookup", lookup, api=given["apiToken"])
        equal(only(answer.json()["records"])["fields"]["name"]["value"], "Stockholm")

    with step("a request without a body, signed with the digest of nothing"):
        answer = signer.get("/zones/list", digest=EMPTY)
        equal(answer.status_code, 200, answer.text[:300])

    with step("a request without a body, signed with nothing in the digest's place"):
        answer = signer.get("/zones/list", digest="")
        equal(answer.status_code, 200, answer.text[:300])

    with step("nothing in the digest's place does not do for a body"):
        refused(signer.post("/records/lookup", lookup, digest=""), 401, "AUTHENTICATION_FAILED")

    with step("what follows the question mark is not signed"):
        answer = signer.post("/records/lookup", lookup, params={"remapEnums": "true", "clientId": "a b/c"})
        equal(answer.status_code, 200, answer.text[:300])

    with step("the private and the shared database are not for keys"):
        for database in ("private", "shared"):
            answer = signer.post("/records/query", {"query": {"recordType": "City"}}, database=database)
            check(answer.status_code in (400, 401, 403, 421), f"{database}: {answer.status_code} {answer.text[:200]}")

    with step("nor is it to look for people"):
        refused(signer.post("/users/discover", {"lookupInfos": [{"emailAddress": given["accounts"]["anna"]["email"]}]}), 401, "AUTHENTICATION_FAILED")

    with step("an altered body is refused"):
        data, path = json.dumps(lookup).encode(), signer.path("/records/lookup")
        headers = signer.headers(path, data)
        refused(client.post(client.url + path, data=data.replace(b"se-sto", b"se-got"), headers=headers), 401, "AUTHENTICATION_FAILED")

    with step("a signature is for its path"):
        data = json.dumps({"operations": [create("se-got", "forceUpdate", name="Göteborg")]}).encode()
        headers = signer.headers(signer.path("/records/lookup"), data)
        refused(client.post(client.url + signer.path("/records/modify"), data=data, headers=headers), 401, "AUTHENTICATION_FAILED")

    with step("a signature is for its date"):
        data, path = json.dumps(lookup).encode(), signer.path("/records/lookup")
        headers = signer.headers(path, data) | {"X-Apple-CloudKit-Request-ISO8601Date": moment(seconds=-5)}
        refused(client.post(client.url + path, data=data, headers=headers), 401, "AUTHENTICATION_FAILED")

    with step("a signature's own bytes can't be others"):
        data, path = json.dumps(lookup).encode(), signer.path("/records/lookup")
        good = base64.b64decode(signer.headers(path, data)["X-Apple-CloudKit-Request-SignatureV1"])
        for index in range(0, len(good), 7):
            bad = bytearray(good)
            bad[index] ^= 1
            headers = signer.headers(path, data) | {"X-Apple-CloudKit-Request-SignatureV1": base64.b64encode(bad).decode()}
            refused(client.post(client.url + path, data=data, headers=headers), 401, "AUTHENTICATION_FAILED")

    with step("signatures that are none are refused"):
        data, path = json.dumps(lookup).encode(), signer.path("/records/lookup")
        for bad in ("", "A", "!!!!", base64.b64encode(b"\x30\x00").decode(), base64.b64encode(b"\0" * 64).decode(), base64.b64encode(b"\x30\x82\xff\xff" + b"\1" * 200).decode(),
                    base64.b64encode(utils.encode_dss_signature(0, 0)).decode(), "A" * 5000):
            headers = signer.headers(path, data) | {"X-Apple-CloudKit-Request-SignatureV1": bad}
            refused(client.post(client.url + path, data=data, headers=headers), 401, "AUTHENTICATION_FAILED")

    with step("an old signature is refused, and one from the future"):
        for shift in (-11, 11, -60 * 24 * 400, 60 * 24 * 400):
            refused(signer.post("/records/lookup", lookup, date=moment(minutes=shift)), 401, "AUTHENTICATION_FAILED")

    with step("a clock that is some minutes off is well"):
        for shift in (-9, 9):
            answer = signer.post("/records/lookup", lookup, date=moment(minutes=shift))
            equal(answer.status_code, 200, f"{shift} minutes: {answer.text[:200]}")

    with step("dates that are none are refused"):
        for date in ("now", "0", "2026-13-41T99:99:99Z", "9" * 4000, "-1", "2026-11-21"):
            refused(signer.post("/records/lookup", lookup, date=date), 401, "AUTHENTICATION_FAILED")

    with step("a request that is sent again is either refused, or does nothing new"):
        data, path = json.dumps({"operations": [create("once", name="Once")]}).encode(), signer.path("/records/modify")
        signer.post("/records/modify", {"operations": [create("once", "forceDelete")]})
        headers = signer.headers(path, data)
        only(client.post(client.url + path, data=data, headers=headers).json()["records"])
        again = client.post(client.url + path, data=data, headers=headers)
        if again.status_code == 401:
            refused(again, 401, "AUTHENTICATION_FAILED")
        else:
            only(again.json()["records"], "CONFLICT")

    with step("another's key does not sign for this one"):
        other = Signer(client, given["key"]["id"], ec.generate_private_key(ec.SECP256R1()))
        refused(other.post("/records/lookup", lookup), 401, "AUTHENTICATION_FAILED")

    with step("a key that nobody knows is refused"):
        for key_id in ("0" * 64, "x", "../../etc/passwd", "f" * 4000):
            refused(signer.post("/records/lookup", lookup, key_id=key_id), 401, "AUTHENTICATION_FAILED")

    with step("the key of another container is refused"):
        foreign = Signer(client, given["foreignKey"]["id"], load(given["foreignKey"]["privateKey"]))
        refused(foreign.post("/records/lookup", lookup), 401, "AUTHENTICATION_FAILED")

    with step("a key that was revoked is refused"):
        revoked = Signer(client, given["revokedKey"]["id"], load(given["revokedKey"]["privateKey"]))
        refused(revoked.post("/records/lookup", lookup), 401, "AUTHENTICATION_FAILED")

    with step("with an API token besides, it is refused"):
        data, path = json.dumps(lookup).encode(), signer.path("/records/lookup")
        refused(client.post(client.url + path, data=data, headers=signer.headers(path, data), api=given["apiToken"]), 401, "AUTHENTICATION_FAILED")

    with step("one of the three headers is not enough"):
        data, path = json.dumps(lookup).encode(), signer.path("/records/lookup")
        for name in signer.headers(path, data):
            headers = signer.headers(path, data)
            del headers[name]
            refused(client.post(client.url + path, data=data, headers=headers), 401, "AUTHENTICATION_FAILED")

    step.end()


if __name__ == "__main__":
    main()
