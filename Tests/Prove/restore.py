#!/usr/bin/env python3
"""Restores a cloud over PostgreSQL and a bucket to a moment, by the commands of the operators' guide, and checks that all is as it was then.

PostgreSQL has a replica and archives its log, and the bucket keeps versions, as in Documentation/Guides/Cluster.md. The proof reads and runs the code
blocks of that guide. Writers save, change and delete records and send assets through one of two servers, before, during and after a base backup of
the replica. The moment is a whole second during these writes. Then comes the damage: a client deletes records, and contents are removed from the
bucket, some of them twice. Then database and bucket are restored.

Each batch that was acknowledged before the moment must be there, with its tags. No batch that was sent after the moment may be there. A batch without
an answer at the moment must be there as a whole or not at all. Contents must be whole. `tidemark admin verify` must find nothing, but must find the
missing contents before the bucket is restored. Sessions must be those of the moment, and tokens and tags of the lost time must be refused.

Devices that were ahead of the moment must lose none of their own edits, get back what others had deleted, delete again what they had deleted
themselves, and end equal to a device that began afterwards. Then writers continue. At last everything is restored once more, to a later moment of
the first history.

All of this is done twice: with all servers stopped meanwhile, as the guide says, and with one that keeps running.
"""

import argparse
import json
import pathlib
import random
import shutil
import sys
import tempfile
import threading
import time
import types

import killing
import seaweed
from acknowledged import BASE, OWN, ZONE, Link, Wrong, all_changes, check_assets
from dated import Dated, DatedSender, DatedWriter, state_at
from guide_blocks import GuideChanged
from guided_operator import Operator
from killing import fail
from restored_devices import Devices, Unsent, modify
from seaweed import wait_until

TOP = pathlib.Path(__file__).resolve().parent.parent
sys.path += [str(TOP / "Interop"), str(TOP.parent / "Benchmarks")]
import signals  # noqa: E402
import start_server  # noqa: E402
from runner.measuring import Failure  # noqa: E402


class Proof:
    """One run: the parts of the cloud, the events, and the checks."""

    def __init__(self, options, folder, drawn, keeps_server=False):
        self.options, self.folder, self.drawn, self.keeps_server = options, folder, drawn, keeps_server
        self.servers, self.bucket, self.operator = {}, None, None

    def begin(self):
        options, folder = self.options, self.folder
        self.bucket = seaweed.start_bucket(folder)
        self.operator = Operator(options, folder, self.bucket)
        self.operator.begin()
        self.cloud = start_server.Cloud(options.tidemark, folder, self.operator.place, self.bucket.environment)
        self.cloud.add_container(start_server.CONTAINER)
        self.accounts = {name: self.cloud.add_account(name) for name in ("anna", "ben", "cara")}
        for name in "ab":
            self.serve(name)
        self.log, self.pause = Dated(), threading.Event()
        self.pause.set()
        self.ben = self.link("a", "ben")
        self.ben.post(BASE + "/zones/modify", {"operations": [{"operationType": "create", "zone": {"zoneID": ZONE}}]})

    def serve(self, name, port=0):
        folder = self.folder / f"server-{name}"
        folder.mkdir(exist_ok=True)
        self.servers[name] = start_server.Server(
            self.options.server, folder, self.operator.place, *start_server.UNLIMITED, "--log-level", "warning", port=port, environment=self.bucket.environment)

    def link(self, server, account):
        """Signs in at a server, and returns a connection with a session of its own."""
        return Link(self.servers[server].port, self.servers[server].sign_in(self.accounts[account])["token"])

    def end(self):
        for server in self.servers.values():
            server.kill()
        if self.operator:
            self.operator.end()
        if self.bucket:
            self.bucket.end(kills=True)

    # What people do

    def start_writers(self, server, prefix, count):
        kinds = [(DatedWriter, f"{prefix}{number}") for number in range(count)] + [(DatedSender, f"{prefix}-assets")]
        writers = [kind(name, Link(self.servers[server].port, self.ben.token), self.drawn.getrandbits(64), self.options, self.log, self.pause) for kind, name in kinds]
        for writer in writers:
            writer.start()
        return writers

    def end_writers(self, writers):
        for writer in writers:
            writer.is_over = True
        for writer in writers:
            writer.join(120)
            if writer.error is not None or writer.is_alive():
                raise Wrong(f"{writer.name}: {writer.error or 'gets no answer'}")

    def run(self):
        options = self.options
        devices = Devices(self)
        devices.begin()
        self.operator.remove_early()
        writers = self.start_writers("a", "w", options.writers)
        time.sleep(options.seconds)
        self.operator.back_up()
        time.sleep(options.seconds)
        devices.before()
        ended = self.link("a", "ben")
        moment = int(time.time()) + 2
        while time.time() < moment:
            time.sleep(0.01)
        position, later_moment = self.operator.database.sql("SELECT pg_current_wal_lsn()"), moment + max(1, int(options.seconds / 2))
        time.sleep(options.seconds)
        self.end_writers(writers)
        history = list(self.log.log)
        self.operator.note(f"{len(self.log.log):,} batches acknowledged, {self.log.count_before(moment):,} of them before {self.operator.text(moment)}, at {position}")
        devices.after()
        later = self.link("b", "ben")
        ended.post(OWN.removesuffix("/private") + "/session/end", {})
        stale = self.damage()
        self.put_back(moment)
        self.compare(moment, history)
        self.compare_sessions(ended, later)
        devices.compare()
        self.refuse(stale)
        self.go_on()
        self.put_back(later_moment, timeline="'1'")
        self.compare(later_moment, history)
        devices.compare()
        self.operator.guide.check_all_used()

    def damage(self):
        """Deletes records, and removes contents from the bucket. Returns a sync token of the time that will be lost, and a record with a tag of that time."""
        alive = sorted(name for name, value in self.log.records.items() if value is not None)
        pictures = [name for name in alive if name in self.options.assets]
        deleted = set(self.drawn.sample(alive, len(alive) // 2)) | set(pictures[::2])
        names = sorted(deleted)
        for first in range(0, len(names), 200):
            modify(self.ben, ZONE, [{"operationType": "forceDelete", "record": {"recordName": name}} for name in names[first:first + 200]])
        removed = [name for name in pictures if name not in deleted]
        self.operator.remove([self.options.assets[name][0] for name in removed])
        left = next(name for name in alive if name not in deleted and name not in self.options.assets)
        changed, = modify(self.ben, ZONE, [{"operationType": "forceUpdate", "record": {
            "recordName": left, "recordType": "Proof", "fields": {"number": {"value": -1, "type": "INT64"}}}}])
        token, found = None, {}
        while not found or found["moreComing"]:
            found = self.ben.post(BASE + "/changes/zone", {"zones": [{"zoneID": ZONE, "desiredKeys": []} | ({"syncToken": token} if token else {})]})["zones"][0]
            token = found["syncToken"]
        problems = self.operator.verify()
        if problems < len(removed):
            raise Wrong(f"verify finds {problems} problems, and {len(removed)} contents were removed")
        self.operator.note(f"damage: {len(deleted):,} records deleted, {len(removed)} contents removed, for which verify finds {problems} problems")
        return token, changed

    def put_back(self, moment, timeline=None):
        """Restores the cloud to a moment, as the guide says."""
        began = time.monotonic()
        going = {"b"} if self.keeps_server else set()
        for name in self.servers.keys() - going:
            self.servers[name].stop()
        self.operator.restore_database(moment, timeline)
        missing = self.operator.verify()
        if not missing and not timeline:
            raise Wrong("verify finds nothing although no content was put back yet")
        removed = self.operator.restore_bucket(moment)
        if not self.options.control:
            self.operator.resync()
        found = self.operator.verify()
        if found:
            raise Wrong(f"verify finds {found} problems in what was put back")
        for name in sorted(self.servers.keys() - going):
            self.serve(name, self.servers[name].port)
        for server in self.servers.values():
            wait_until("a server that is ready", 60, lambda: seaweed.clusters.fetch(f"{server.url}/ready") == 200)
        self.operator.note(f"put back in {time.monotonic() - began:.0f} s: {self.operator.stopped()}; {missing} problems before the bucket was put back, where "
                           f"{removed} delete markers went; none then")

    # What has to be

    def compare(self, moment, history):
        for server in self.servers.values():
            link = Link(server.port, self.ben.token)
            found = all_changes(link)
            wanted, halfway = state_at(history, moment, found)
            if found != wanted:
                strange = sorted(set(found.items()) ^ set(wanted.items()))
                raise Wrong(f"the zone has {len(found):,} records, and {len(wanted):,} were acknowledged before the moment; the first that differ: {strange[:5]}")
            assets = check_assets(link, types.SimpleNamespace(records=wanted), self.options.assets)
        self.operator.note(f"{len(found):,} records as acknowledged before the moment, none of after it, on each of {len(self.servers)} servers "
                           f"({halfway} batches were on their way); {assets} contents came whole")
        self.log.records = wanted

    def compare_sessions(self, ended, later):
        """Checks that sessions are those of the moment: a session that ended later works again, and one that began later is refused."""
        for server in self.servers.values():
            for link, wanted, what in ((ended, 200, "ended since"), (later, 401, "begun since")):
                status, _ = Link(server.port, link.token).ask("POST", BASE + "/zones/list", "{}")
                if status != wanted:
                    raise Wrong(f"a session that was {what} is answered {status}, and not {wanted}")

    def refuse(self, stale):
        """Checks that tokens and tags of the lost time are refused, with a code that tells clients so."""
        token, record = stale
        for server in self.servers.values():
            link = Link(server.port, self.ben.token)
            found = link.post(BASE + "/changes/zone", {"zones": [{"zoneID": ZONE, "syncToken": token}]})["zones"][0]
            if found.get("tidemark", {}).get("code") != "changeTokenExpired":
                raise Wrong(f"a token of the lost time is answered {json.dumps(found)[:300]}")
            update = {"zoneID": ZONE, "operations": [{"operationType": "update", "record": {
                "recordName": record["recordName"], "recordType": "Proof", "recordChangeTag": record["recordChangeTag"],
                "fields": {"number": {"value": -2, "type": "INT64"}}}}]}
            status, answer = link.ask("POST", BASE + "/records/modify", json.dumps(update))
            if status != 400 or json.loads(answer).get("tidemark", {}).get("code") != "changeTokenExpired":
                raise Wrong(f"an update with a tag of the lost time is answered {status} {answer[:300]!r}")

    def go_on(self):
        for server in self.servers:
            writers = self.start_writers(server, f"later-{server}", 1)
            time.sleep(self.options.seconds / 2)
            self.end_writers(writers)
        wanted = {name: value for name, value in self.log.records.items() if value is not None}
        link = Link(self.servers["a"].port, self.ben.token)
        found = all_changes(link)
        if found != wanted:
            strange = sorted(set(found.items()) ^ set(wanted.items()))
            raise Wrong(f"after it went on the zone has {len(found):,} records, and {len(wanted):,} were acknowledged; the first that differ: {strange[:5]}")
        assets = check_assets(link, self.log, self.options.assets)
        problems = self.operator.verify()
        if problems:
            raise Wrong(f"verify finds {problems} problems at the end")
        self.operator.look_at_replica()
        self.operator.note(f"writers went on: {len(found):,} records and {assets} contents as acknowledged, verify finds nothing, a new replica has all of it")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tidemark", required=True, type=lambda path: pathlib.Path(path).resolve(), help="the command-line tool")
    parser.add_argument("--server", required=True, type=lambda path: pathlib.Path(path).resolve(), help="the server")
    parser.add_argument("--seconds", type=float, default=10, help="how long writers go on before the backup, up to the moment, and after it, each (10)")
    parser.add_argument("--writers", type=int, default=3, help="how many write at once, and one more sends assets (3)")
    parser.add_argument("--batch", type=int, default=20, help="operations of a batch (20)")
    parser.add_argument("--records", type=int, default=500, help="records of a device (500)")
    parser.add_argument("--pictures", type=int, default=20, help="pictures of theirs (20)")
    parser.add_argument("--control", action="store_true", help="leave out `resync`, which has to be found out by a device that has only sent")
    parser.add_argument("--folder", type=pathlib.Path, help="where to work; emptied at the end (a temporary folder)")
    parser.add_argument("--seed", type=int, help="draws the same again")
    options = parser.parse_args()
    signals.end_in_order()
    seed, drawn = killing.draw(options)
    for keeps_server in (False,) if options.control else (False, True):
        options.assets = {}
        folder = pathlib.Path(tempfile.mkdtemp(prefix="tidemark-restore-", dir=options.folder))
        # The user who runs the database and the bucket has to reach their files below this folder.
        folder.chmod(0o755)
        proof = Proof(options, folder, random.Random(drawn.getrandbits(64)), keeps_server)
        print(f"{'one server goes on' if keeps_server else 'all servers are stopped'}:", flush=True)
        try:
            proof.begin()
            proof.run()
        except Unsent as error:
            if not options.control:
                fail(f"{error} (seed {seed})")
            print(f"the control was found out: {error}")
            continue
        except (Wrong, GuideChanged, Failure) as error:
            fail(f"{error} (seed {seed})")
        finally:
            proof.end()
            shutil.rmtree(folder, ignore_errors=True)
        if options.control:
            fail(f"the control was not found out (seed {seed})")


if __name__ == "__main__":
    main()
