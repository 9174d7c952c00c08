"""Scenarios with a server: devices whose files fail while they synchronise through it, and a server whose own files fail."""

import hashlib
import json
import random
import signal
import urllib.parse

import scenarios
import start_server
from acknowledged import BASE, BROKEN, OWN, Link
from scenarios import Ended, Scenario, Wrong, well

OPTIONS = [*start_server.UNLIMITED, "--log-level", "warning"]
ZONE = {"zoneName": "proof"}


class Server(start_server.Server):
    """A server that may end before it listens. Its port is then `None`."""

    def wait_for_port(self):
        try:
            return super().wait_for_port()
        except SystemExit:
            if self.process.poll() is None:
                self.kill()
                raise Wrong("the server neither ended nor listens") from None
            return None


class Served(Scenario):
    """A scenario with a cloud behind a server. The port is always the same, because the containers know it."""

    def __init__(self, tools, folder):
        super().__init__(tools, folder)
        self.port, self.server = start_server.free_port(), None

    def serve(self, added=None):
        # The server's log and the file with its port are outside of `work`, so that no fault meets them.
        self.server = Server(self.tools.server, self.work.parent, self.work / "data", *OPTIONS, port=self.port, environment=added)

    def finish(self):
        if self.server is not None:
            server, self.server = self.server, None
            if server.process.poll() is None and server.stop() != 0:
                raise Wrong(f"the server ended with {server.process.returncode}: {server.log.read_text(errors='replace')[-1500:]}")

    def fill(self):
        cloud = start_server.Cloud(self.tidemark, self.work)
        cloud.add_container(start_server.CONTAINER)
        self.account = cloud.add_account("anna")
        self.serve()
        try:
            self.fill_served()
        finally:
            self.finish()

    def sign_in(self, name):
        well([self.tidemark, "account", "sign-in", self.work / name, "--server", f"http://127.0.0.1:{self.port}", "--email", self.account["email"],
              "--container", start_server.CONTAINER, "--password-stdin"], self.account["password"] + "\n")

    def sync(self, name):
        return [self.tidemark, "sync", self.work / name, "--patience", "1"]

    def well_synced(self, *names):
        for name in names:
            well([self.tidemark, "sync", self.work / name])


class Sending(Served):
    name, about = "sync-send", "sends a container's records and pictures to a server"

    def fill_served(self):
        well(self.imported(self.work / "a.tidemark"))
        self.sign_in("a.tidemark")
        self.sign_in("b.tidemark")

    def commands(self):
        return [self.sync("a.tidemark")]

    def run(self, added):
        self.serve()
        return super().run(added)

    def run_until_killed(self, added):
        self.serve()
        return super().run_until_killed(added)

    # Only the device loses its power. The server keeps the state of one moment, so each run gives one disk.
    disks_of_run = 1

    def root(self):
        return self.work / self.cut_off

    cut_off = "a.tidemark"

    def finish_cut(self):
        pass

    def state_after_cut(self):
        return None

    def states_of_steps(self):
        return [None, None]

    def repeat(self):
        if self.server is None:
            self.serve()
        self.well_synced("a.tidemark", "b.tidemark", "a.tidemark")

    def state_at_once(self):
        return self.content(self.work / "a.tidemark")

    def state(self):
        return self.common(self.containers())


class BothWays(Sending):
    cut_off = "b.tidemark"
    name, about = "sync-both", "fetches records, edits and pictures from a server, and sends edits of its own"

    def fill_served(self):
        super().fill_served()
        self.well_synced("a.tidemark", "b.tidemark")
        for name, words in {"a.tidemark": ["caption=Of the other", "rating=1"], "b.tidemark": ["details=Of this one", "elevation=7.5"]}.items():
            first, second = scenarios.NAMES
            picture = scenarios.JOURNAL.parent / "pictures" / ("baobabs.jpg" if name[0] == "a" else "bromo.jpg")
            well([self.tidemark, "records", "set", self.work / name, first, *words])
            well([self.tidemark, "records", "set", self.work / name, second, *words, f"image={picture}"])
            well([self.tidemark, "records", "set", self.work / name, f"new-{name[0]}", "--type", scenarios.TYPE, "caption=New", f"image={picture}"])
        well([self.tidemark, "records", "delete", self.work / "a.tidemark", "--type", scenarios.TYPE, "--where", "rating = 4", "--yes"])
        self.well_synced("a.tidemark")

    def commands(self):
        return [self.sync("b.tidemark")]

    def state_at_once(self):
        return self.content(self.work / "b.tidemark")


class Fetching(BothWays):
    name, about = "sync-fetch", "fetches all records and pictures from a server into a new container"

    def fill_served(self):
        Sending.fill_served(self)
        self.well_synced("a.tidemark")


class Serving(Served):
    """Requests one after the other. Acknowledged changes are compared afterwards, and at the end all requests must have been done."""

    name, about = "serve", "a server answers requests that save records and assets"

    def fill_served(self):
        self.token = self.server.sign_in(self.account)["token"]

    def steps(self):
        """Returns requests that may be repeated, as (name, function of a link, numbers of the records afterwards)."""
        drawn = random.Random(5)
        records = [f"r{number}" for number in range(12)]

        def modify(token, operations):
            body = {"zoneID": ZONE, "atomic": True, "tidemark": {"clientToken": token}, "operations": operations}
            return lambda link: self.demand(link, "POST", BASE + "/records/modify", json.dumps(body))

        def change(kind, name, number, **more):
            fields = {"number": {"value": number, "type": "INT64"}, "text": {"value": f"{name} {number} " + "x" * 900, "type": "STRING"}} | more
            return {"operationType": kind, "record": {"recordName": name, "recordType": "Proof"} | ({"fields": fields} if kind != "forceDelete" else {})}

        # One content is sent like devices do. The other is sent like browsers do, to an address that the server gives out.
        contents = {"image": drawn.randbytes(120_000), "photo": drawn.randbytes(40_000)}
        images, paths = {}, {}
        for field, content in contents.items():
            digest, size = hashlib.sha256(content).hexdigest(), len(content)
            images[field] = {"value": {"size": size, "tidemark": {"digest": digest}}, "type": "ASSETID"}
            paths[field] = f"{OWN}/assets/{digest}-{size}?zone={ZONE['zoneName']}"
        self.assets = [(paths[field], hashlib.sha256(content).hexdigest()) for field, content in contents.items()]
        zone = {"operations": [{"operationType": "create", "zone": {"zoneID": ZONE}}]}
        stream = {"Content-Type": "application/octet-stream"}

        def send(link):
            wanted = {"zoneID": ZONE, "tokens": [{"recordName": "picture", "recordType": "Proof", "fieldName": "photo"}]}
            status, data = link.ask("POST", BASE + "/assets/upload", json.dumps(wanted))
            if status != 200:
                return f"{status} {data[:300]!r}"
            return self.demand(link, "POST", urllib.parse.urlsplit(json.loads(data)["tokens"][0]["url"]).path, contents["photo"], stream)

        return [
            ("zone", lambda link: self.demand(link, "POST", BASE + "/zones/modify", json.dumps(zone)), {}),
            ("make", modify("t-make", [change("forceUpdate", name, 0) for name in records]), {name: 0 for name in records}),
            ("change", modify("t-change", [change("forceUpdate", name, 1) for name in records[:6]]), {name: 1 for name in records[:6]}),
            ("asset", lambda link: self.demand(link, "PUT", paths["image"] + "&offset=0", contents["image"], stream), {}),
            ("photo", send, {}),
            ("picture", modify("t-picture", [change("forceUpdate", "picture", 0, **images)]), {"picture": 0}),
            ("delete", modify("t-delete", [change("forceDelete", name, 0) for name in records[9:]]), {name: None for name in records[9:]}),
        ]

    def demand(self, link, method, path, body, headers=None):
        """Sends a request. Returns `None` if the server acknowledges it, otherwise the refusal."""
        status, data = link.ask(method, path, body, headers)
        if status != 200:
            return f"{status} {data[:300]!r}"
        answer = json.loads(data)
        refused = [each for each in answer.get("records", answer.get("zones", [])) if isinstance(each, dict) and "serverErrorCode" in each]
        return f"{refused[0]}" if refused else None

    def link(self):
        return Link(self.port, self.token)

    def run(self, added):
        self.acknowledged, self.named = {}, set()
        (self.work.parent / "server.log").unlink(missing_ok=True)
        self.serve(added)
        shown = ["tidemark-server"]
        if self.server.port is None:
            server, self.server = self.server, None
            return Ended(shown, server.process.returncode, "", server.log.read_text(errors="replace"))
        link, refusal = self.link(), ""
        for name, step, after in self.steps():
            # A failed request is repeated, twice at most. If that does not help, the run ends.
            for _ in range(3):
                found = self.attempt(link, step)
                if found is None:
                    break
                refusal = refusal or f"{name}: {found}"
                if found.startswith("4") and not found.startswith(("404", "409", "413", "429")) or "BAD_REQUEST" in found:
                    raise Wrong(f"the client is blamed: {name}: {found}")
            if found is not None:
                break
            self.acknowledged |= after
            self.named.add(name)
        link.close()
        fell = self.server.process.poll()
        if fell == -signal.SIGKILL:
            self.server = None
            return Ended(shown, fell, "", "")
        if fell is not None:
            raise Wrong(f"the server fell by itself: {fell}: {self.server.log.read_text(errors='replace')[-1500:]}")
        code = self.server.stop()
        log = self.server.log.read_text(errors="replace")
        self.server = None
        if code == -signal.SIGKILL:
            return Ended(shown, code, "", "")
        if code not in (0, 74):
            raise Wrong(f"the server ended with {code}: {log[-1500:]}")
        return Ended(shown, 75 if refusal else 0, "", f"{refusal}\n{log}")

    @staticmethod
    def attempt(link, step):
        try:
            return step(link)
        except BROKEN as error:
            link.close()
            return f"no answer: {error!r}"

    def check(self):
        """Starts the server again, and compares its records with the acknowledged ones."""
        self.serve()
        if self.server.port is None:
            raise Wrong(f"the server does not start any more: {self.server.log.read_text(errors='replace')[-1500:]}")
        link = self.link()
        try:
            found = self.numbers(link) if self.acknowledged else {}
        except Wrong as error:
            raise Wrong(f"{len(self.acknowledged)} records were acknowledged: {error}") from None
        for name, number in self.acknowledged.items():
            if found.get(name) != number and not (number is not None and self.was_overtaken(name, found.get(name))):
                raise Wrong(f"{name} was acknowledged as {number} and is {found.get(name)}")
        if "picture" in self.named:
            self.check_assets(link)
        link.close()

    def was_overtaken(self, name, number):
        """Whether a later request without an answer has been done and explains the number."""
        return any(name in after and after[name] == number for step, _, after in self.steps() if step not in self.named)

    def numbers(self, link):
        names = [f"r{number}" for number in range(12)] + ["picture"]
        answer = link.post(BASE + "/records/lookup", {"zoneID": ZONE, "desiredKeys": ["number"], "records": [{"recordName": name} for name in names]})
        return {name: record.get("fields", {}).get("number", {}).get("value") for name, record in zip(names, answer["records"], strict=True)}

    def check_assets(self, link):
        for path, digest in self.assets:
            status, data = link.ask("GET", path)
            if status != 200 or hashlib.sha256(data).hexdigest() != digest:
                raise Wrong(f"the asset {path} came back with {status}, {len(data):,} bytes")

    def repeat(self):
        if self.server is None:
            self.serve()
        link = self.link()
        for name, step, _ in self.steps():
            found = step(link)
            # A zone or a record may exist already, from before the fault.
            if found is not None and not any(word in found for word in ("EXISTS", "CONFLICT", "already")):
                raise Wrong(f"repeated, {name} ends with {found}")
        link.close()

    disks_of_run = 2

    def root(self):
        return self.work / "data"

    def run_until_killed(self, added):
        self.run(added)
        return len(self.named)

    def states_of_steps(self):
        return [None] * (len(self.steps()) + 1)

    def state_after_cut(self):
        return None

    def state_at_once(self):
        return ""

    def state(self):
        if self.server is None:
            self.serve()
        link = self.link()
        found = self.numbers(link)
        self.check_assets(link)
        link.close()
        self.finish()
        well([self.tidemark, "admin", "verify", "--data", self.work / "data"])
        return json.dumps(found)

    def containers(self):
        return []


class CloudBackup(Scenario):
    """A cloud in a directory, without a server."""

    name, about, is_repeatable = "admin-backup", "backs up the directory of a cloud", False

    def fill(self):
        well(self.imported(self.work / "a.tidemark"))
        well([self.tidemark, "account", "sign-in", self.work / "a.tidemark", "--cloud", self.work / "data", "--email", "anna@example.org", "--create"])
        well([self.tidemark, "sync", self.work / "a.tidemark"])

    def commands(self):
        return [[self.tidemark, "admin", "backup", self.work / "backup", "--data", self.work / "data"]]

    def state(self):
        # The next backup removes what a killed one has left.
        places = [name for name in ("data", "backup", "restored") if (self.work / name).exists()]
        return f"{super().state()} " + ", ".join(f"{name}: {self.examined(name)}" for name in places)

    def examined(self, name):
        if name == "backup":
            self.compare_manifest(self.work / name)
        return well([self.tidemark, "admin", "verify", "--data", self.work / name]).strip()

    @staticmethod
    def compare_manifest(backup):
        """Compares the databases of a backup with the digests in its manifest."""
        try:
            for file in json.loads((backup / "backup.json").read_text())["files"]:
                if hashlib.sha256((backup / file["path"]).read_bytes()).hexdigest() != file["sha256"]:
                    raise Wrong(f"{file['path']} is not what was backed up")
        except (OSError, ValueError, KeyError) as error:
            raise Wrong(f"the backup can't be restored: {error!r}") from None


class CloudRestore(CloudBackup):
    name, about = "admin-restore", "restores the directory of a cloud from a backup"

    def fill(self):
        super().fill()
        well([self.tidemark, "admin", "backup", self.work / "backup", "--data", self.work / "data"])

    def commands(self):
        return [[self.tidemark, "admin", "restore", self.work / "backup", "--data", self.work / "restored"]]


ALL = [Sending, Fetching, BothWays, Serving, CloudBackup, CloudRestore]
