#!/usr/bin/env python3
"""Makes a server's bucket fail, and checks what the server's clients get.

One server runs over PostgreSQL and a bucket of SeaweedFS, with a proxy between server and bucket. The bucket answers 500, 503 SlowDown and 403, cuts
connections, and sends half of a content or an older one. A fault that passes after one or two requests must not reach clients. During a fault that
lasts longer than the server's retries, clients must get 503 with Retry-After, /ready must name the missing part, saves of records must go on, and no
client may take half a content or a wrong one for a whole one.

Afterwards nothing may be written by half: `tidemark admin verify` finds no problem, and each object is the content that its name says. When the
bucket works again, the server must work again. The requests to the bucket for an asset are counted. At last a second server sends clients to the
bucket itself.

--short, for CI, leaves out the contents of 20 MB, and lets only one of the passing faults meet an upload in pieces.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shutil
import sys
import tempfile
import time

import faulty_bucket
import seaweed
from faulty_bucket import FaultyBucket
from seaweed import wait_until

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path += [str(ROOT / "Tests" / "Interop"), str(ROOT / "Benchmarks")]
import requests  # noqa: E402
import signals  # noqa: E402
import start_server  # noqa: E402
import steps  # noqa: E402
from runner.measuring import Failure  # noqa: E402
from runner.postgres import Postgres  # noqa: E402
from steps import check, equal, only  # noqa: E402

ZONE = {"zoneName": "pictures"}
SMALL, PIECE = 300_000, 4_000_000
# Seconds within which an answer must come. The server retries for 30 at most, and a client gives up after 60 without a byte.
LONGEST = 75
# Seconds within which /ready must be right. It is polled, and each answer takes some seconds while the bucket fails.
READY = 60
# Seconds that a save may take while the bucket fails. On a busy machine it may take TIMES as long as a save before.
SAVE, TIMES = 5, 10


class Proof:
    def __init__(self, options, folder):
        self.options, self.folder, self.is_short = options, folder, options.short
        self.step = steps.Steps("bucket", least=50 if self.is_short else 54)
        self.database = Postgres(folder / "postgresql")
        self.bucket = seaweed.start_bucket(folder)
        self.faulty = FaultyBucket(self.bucket.bucket_endpoint)
        place = ["--database", self.database.address, "--assets", f"s3://{seaweed.BUCKET}", "--s3-endpoint", self.faulty.url]
        environment, self.place = self.bucket.environment, place
        self.cloud = start_server.Cloud(options.tidemark, folder, place, environment)
        given = start_server.fill(self.cloud)
        self.server = start_server.Server(
            options.server, folder, place, "--data", str(folder / "data"), *start_server.UNLIMITED, "--log-level", "warning", environment=environment)
        start_server.enter(self.server, self.cloud, given)
        self.client = steps.Client(given)
        self.token = given["accounts"]["anna"]["token"]
        self.client.as_anna("/zones/modify", {"operations": [{"operationType": "create", "zone": {"zoneID": ZONE}}]})
        self.pool = concurrent.futures.ThreadPoolExecutor(8)
        # How many contents were sent, and how many of them records name.
        self.number = self.named = 0

    def end(self):
        self.server.stop()
        self.faulty.end()
        self.bucket.end(kills=True)
        self.database.stop()

    # What clients do

    def send(self, data):
        """Sends a content like CloudKit's clients do, and returns the record's name and the answer."""
        self.number += 1
        name = f"picture-{self.number}"
        reserved = self.client.as_anna("/assets/upload", {"zoneID": ZONE, "tokens": [{"recordName": name, "recordType": "Picture", "fieldName": "image"}]})
        return name, self.fresh().post(reserved["tokens"][0]["url"], data=data)

    def attach(self, name, answer):
        made = self.client.as_anna("/records/modify", {"zoneID": ZONE, "operations": [
            {"operationType": "forceUpdate", "record": {"recordName": name, "recordType": "Picture", "fields": {"image": {"value": answer.json()["singleFile"], "type": "ASSETID"}}}}]})
        return only(made["records"])["fields"]["image"]["value"]["downloadURL"].replace("${f}", "x")

    def fresh(self):
        """Returns a new client, since a session of `requests` is for one thread."""
        return steps.Client(self.client.given)

    def add(self, data):
        """Sends a content, saves a record that names it, and returns its address."""
        name, answer = self.send(data)
        equal(answer.status_code, 200, answer.text[:300])
        address = self.attach(name, answer)
        self.named += 1
        return address

    def save(self, text):
        """Saves a record without a content, and returns how many seconds that took."""
        began = time.monotonic()
        self.client.as_anna("/records/modify", {"zoneID": ZONE, "operations": [
            {"operationType": "forceUpdate", "record": {"recordName": "note", "recordType": "Note", "fields": {"text": {"value": text}}}}]})
        return time.monotonic() - began

    def pieces(self, data):
        """Sends a content in pieces, and returns the last answer."""
        digest = hashlib.sha256(data).hexdigest()
        for offset in range(0, len(data), PIECE):
            answer = self.fresh().post(self.client.own(f"/private/assets/{digest}-{len(data)}"), data=data[offset:offset + PIECE],
                                       params={"zone": ZONE["zoneName"], "offset": offset}, bearer=self.token, method="PUT")
            if answer.status_code != 200:
                return answer
        return answer

    def fetch(self, address, wanted, bounds=None):
        """Returns how a download ends: `whole`, `cut` where the client sees that something is missing, or the answer's status."""
        headers = {"Range": f"bytes={bounds[0]}-{bounds[1] - 1}"} if bounds else {}
        try:
            answer = self.fresh().get(address, headers=headers)
        except (requests.exceptions.ChunkedEncodingError, requests.exceptions.ConnectionError):
            return "cut"
        if answer.status_code == 503:
            check(answer.headers.get("Retry-After", "").isdigit(), f"503 without Retry-After: {dict(answer.headers)}")
            return 503
        check(answer.status_code in (200, 206), f"{answer.status_code} {answer.text[:200]}")
        told = int(answer.headers["Content-Length"])
        if len(answer.content) < told:
            return "cut"
        check(answer.content == (wanted[slice(*bounds)] if bounds else wanted), "a content came that is another")
        return "whole"

    def refused(self, answer):
        steps.refused(answer, 503, "TRY_AGAIN_LATER")
        check(answer.headers.get("Retry-After", "").isdigit(), f"503 without Retry-After: {dict(answer.headers)}")

    def is_ready(self):
        answer = self.fresh().get(self.client.url + "/ready")
        return answer.status_code == 200, answer

    def wait_until_ready(self):
        wait_until("a server that is ready", READY, lambda: self.is_ready()[0])

    def check_contents(self):
        """Checks that nothing was written by half, neither in the cloud nor in the bucket."""
        try:
            report = json.loads(self.cloud.admin("verify", "--json"))
        except SystemExit as ended:
            raise AssertionError(f"{ended}") from ended
        equal(report["problems"], [], "what verify finds")
        check(report["assets"] >= self.named, f"verify knows {report['assets']} contents of {self.named}")
        # /ready stores such an object to test the bucket. It remains where the bucket fails before it is removed.
        keys = [key for key in self.bucket.keys() if not key.startswith("check-")]
        check(len(keys) >= self.named, f"the bucket has {len(keys)} contents of {self.named}")
        for key in keys:
            equal(hashlib.sha256(self.bucket.get(key)).hexdigest(), key.rsplit("/", 1)[-1], key)
        check(b"<Upload>" not in self.bucket.get("", "?uploads="), "an upload in parts was left")

    # What is proved

    def run(self):
        self.count()
        data = os.urandom(SMALL)
        address = self.add(data)
        faults = {"500": faulty_bucket.internal, "503 SlowDown": faulty_bucket.slow_down, "connections that are cut": faulty_bucket.cut}
        for title, fault in faults.items():
            with self.step(f"{title}, twice: an upload goes well"):
                self.faulty.fail(fault, times=2)
                self.add(os.urandom(SMALL))
                equal(self.faulty.left, 0, "faults that are left")
            if not self.is_short or fault == faulty_bucket.slow_down:
                with self.step(f"{title}, twice: an upload in pieces goes well"):
                    self.faulty.fail(fault, times=2, only=("PUT", "POST"))
                    equal(self.pieces(os.urandom(3 * PIECE)).status_code, 200)
                    equal(self.faulty.left, 0, "faults that are left")
            with self.step(f"{title}, twice: a download goes well"):
                self.faulty.fail(fault, times=2, only=("GET",))
                equal(self.fetch(address, data), "whole")
                equal(self.faulty.left, 0, "faults that are left")
            self.faulty.heal()
        for title, fault in {"half a content": faulty_bucket.half, "half a content that claims to be all": faulty_bucket.half_in_full, "an older content": faulty_bucket.old}.items():
            with self.step(f"{title}, once: a download goes well"):
                self.faulty.fail(fault, times=1, only=("GET",))
                equal(self.fetch(address, data), "whole")
                equal(self.faulty.left, 0, "faults that are left")
            self.faulty.heal()
            with self.step(f"{title}, always: nobody takes it for the content"):
                self.faulty.fail(fault, only=("GET",))
                check(self.fetch(address, data) in ("cut", 503), "it was handed out")
            self.faulty.heal()
            with self.step(f"{title}, over: the content is there"):
                equal(self.fetch(address, data), "whole")
        with self.step("half of a range that claims to be all, always: nobody takes it for the range"):
            self.faulty.fail(faulty_bucket.half_in_full, only=("GET",))
            check(self.fetch(address, data, (1000, 200_000)) in ("cut", 503), "it was handed out")
        self.faulty.heal()
        for title, fault in (faults | {"403": faulty_bucket.denied}).items():
            self.outage(title, fault, address, data)
        self.read_signed(address, data)

    def read_signed(self, address, data):
        """Checks a second server over the same cloud, which sends clients to the bucket with signed addresses."""
        folder = self.folder / "signed"
        folder.mkdir()
        server = start_server.Server(
            self.options.server, folder, self.place, "--data", str(folder / "data"), *start_server.UNLIMITED, "--log-level", "warning",
            "--asset-reads", "signed", "--s3-public-endpoint", self.bucket.bucket_endpoint, environment=self.bucket.environment)
        try:
            address = address.replace(self.client.url, f"http://127.0.0.1:{server.port}")
            session = requests.Session()
            session.trust_env = False
            with self.step("a signed address: the client is sent to the bucket, and none of its bytes pass the server"):
                answer = session.get(address, allow_redirects=False, timeout=LONGEST)
                equal(answer.status_code, 307, answer.text[:200])
                signed = answer.headers["Location"]
                check(signed.startswith(self.bucket.bucket_endpoint + "/"), signed)
                asked = self.faulty.asked_during(lambda: equal(session.get(address, timeout=LONGEST).content, data))
                # Both servers also ask for lists, whenever they look for what was left over.
                digest = hashlib.sha256(data).hexdigest()
                equal([request for request in asked if request.startswith("GET") and digest in request], [], "what the server has read")
                equal(session.get(address, headers={"Range": "bytes=1000-1999"}, timeout=LONGEST).content, data[1000:2000])
            with self.step("a signed address is good for its content alone, and for reading"):
                other = signed.replace(hashlib.sha256(data).hexdigest(), hashlib.sha256(b"another").hexdigest())
                check(other != signed, "the address does not name the content")
                equal(session.get(other, timeout=LONGEST).status_code, 403)
                equal(session.put(signed, data=b"x", timeout=LONGEST).status_code, 403)
                equal(session.get(signed.split("?")[0], timeout=LONGEST).status_code, 403)
            with self.step("an address with another token is not answered with a signed one"):
                broken = session.get(address[:-20] + address[-20:].swapcase(), allow_redirects=False, timeout=LONGEST)
                check(broken.status_code in (400, 401, 403, 404), f"{broken.status_code} {broken.headers.get('Location')}")
        finally:
            server.stop()

    def count(self):
        """Counts the requests to the bucket for an asset."""
        self.counts = {}
        for title, size in [("of 300 KB", SMALL)] + [("of 20 MB", 20_000_000)] * (not self.is_short):
            data, kept = os.urandom(size), {}
            with self.step(f"an asset {title} is sent at once, and fetched"):
                asked = self.faulty.counted(lambda: kept.update(address=self.add(data)))
                self.note(f"{title}, sent at once", asked)
                asked = self.faulty.counted(lambda: equal(self.fetch(kept["address"], data), "whole"))
                self.note(f"{title}, fetched", asked)
            data = os.urandom(size)
            with self.step(f"an asset {title} is sent in pieces of 4 MB"):
                asked = self.faulty.counted(lambda: equal(self.pieces(data).status_code, 200))
                self.note(f"{title}, sent in pieces", asked)

    def note(self, what, asked):
        self.counts[what] = asked
        print(f"    {what}: {asked}")

    def outage(self, title, fault, address, data):
        """Checks a fault of the bucket that lasts longer than the server's retries."""
        sent, usual = os.urandom(SMALL), self.save("before")
        self.faulty.fail(fault)
        began = time.monotonic()
        try:
            upload = self.pool.submit(self.send, sent)
            pieces = self.pool.submit(self.pieces, sent)
            download = self.pool.submit(self.fetch, address, data)
            with self.step(f"{title}, always: /ready says that the bucket is missing, /health does not"):
                wait_until("/ready says so", READY, lambda: not self.is_ready()[0])
                answer = self.is_ready()[1]
                equal((answer.status_code, answer.text.strip()), (503, "the place of the assets can't be reached or used"))
                check(answer.headers.get("Retry-After"), "503 without Retry-After")
                equal(self.fresh().get(self.client.url + "/health").status_code, 200)
            with self.step(f"{title}, always: records go on"):
                took = self.save(title)
                check(took < max(SAVE, TIMES * usual), f"a save took {took:.1f} s, and {usual:.1f} s before")
            with self.step(f"{title}, always: an upload is answered 503, and when to come again"):
                self.refused(upload.result(LONGEST)[1])
            with self.step(f"{title}, always: so is one in pieces"):
                self.refused(pieces.result(LONGEST))
            with self.step(f"{title}, always: a download is answered 503, or seen to be cut"):
                check(download.result(LONGEST) in ("cut", 503), "it came")
            print(f"    after {time.monotonic() - began:.0f} s")
        finally:
            self.faulty.heal()
        with self.step(f"{title}, over: nothing was written by half"):
            self.wait_until_ready()
            self.check_contents()
        with self.step(f"{title}, over: all is as it was"):
            equal(self.fetch(address, data), "whole")
            equal(self.fetch(self.add(sent), sent), "whole")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, about in [("--tidemark", "the command-line tool"), ("--server", "the server")]:
        parser.add_argument(name, required=True, type=lambda path: pathlib.Path(path).resolve(), help=about)
    parser.add_argument("--folder", type=pathlib.Path, help="where to work; emptied at the end (a temporary folder)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write what assets ask of the bucket to FILE")
    parser.add_argument("--short", action="store_true", help="let the same go wrong in fewer steps")
    options = parser.parse_args()
    signals.end_in_order()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tidemark-bucket-", dir=options.folder))
    # The user who runs the database and the bucket has to reach their files below this folder.
    folder.chmod(0o755)
    proof = None
    try:
        proof = Proof(options, folder)
        proof.run()
        if options.json:
            options.json.write_text(json.dumps(proof.counts, indent=1))
        fell = proof.server.process.poll()
    except (seaweed.clusters.ClusterError, Failure) as error:
        sys.exit(f"bucket: {error}")
    finally:
        if proof:
            proof.end()
        shutil.rmtree(folder, ignore_errors=True)
    if fell is not None:
        sys.exit(f"the server fell with {fell}")
    proof.step.end()


if __name__ == "__main__":
    main()
