"""Devices of a cloud that is restored to a moment, and the edits that they must have afterwards."""

import hashlib
import json
import shutil
import zlib

import killing
import sync
from acknowledged import BASE, Wrong

ZONE = {"zoneName": "TidemarkZone"}


class Unsent(Wrong):
    """A device has something that the cloud had acknowledged and has lost, and does not send it again."""


def modify(link, zone, operations):
    """Changes records, none of which may fail, and returns them."""
    records = link.post(BASE + "/records/modify", {"zoneID": zone, "operations": operations})["records"]
    failed = [it for it in records if "serverErrorCode" in it]
    if failed:
        raise Wrong(f"{len(failed)} of {len(records)} operations failed: {failed[0]}")
    return records


class Devices:
    """Three devices of anna and one of cara. One of anna's is offline since before the moment, and one is new after it. Cara's device only sends.

    | record | before the moment | after it | has to be |
    |---|---|---|---|
    | r1 | edited | | as edited |
    | r2 | | edited on the second device, which does not synchronise | as edited |
    | r3, r4 (with a picture) | | deleted by another client | there |
    | r5 | | edited | as edited: the later edit stays |
    | r6 | | deleted on the first device | deleted |
    | n1 | made, with a picture | | there |
    | n2 | | made, with a picture | there: the device sends it again |
    | c1, of cara | | made, with a picture, and sent | there: the device sends it again |
    """

    def __init__(self, proof):
        self.proof, self.moves = proof, sync.load("move-cloud.py")
        self.first, self.second, self.third, self.lonely = (
            self.moves.Device(proof.options.tidemark, proof.folder, name) for name in ("first", "second", "third", "lonely"))

    def sync(self, *devices):
        for device in devices:
            device.run("sync")

    def edit(self, device, name, caption):
        device.run("records set", f"Destination:{name}", f"caption={caption}")

    def add(self, device, name):
        """Adds a record with a picture."""
        folder = self.proof.folder / f"added-{name}"
        folder.mkdir()
        (folder / "picture.png").write_bytes(killing.picture(zlib.crc32(name.encode()), 50_000))
        (folder / "journal.jsonl").write_text(json.dumps({"id": name, "caption": f"made {name}", "image": "picture.png"}) + "\n")
        self.take_in(device, folder / "journal.jsonl")

    def take_in(self, device, manifest):
        killing.finish([device.tidemark, "import", manifest, "--into", device.container, "--type", "Destination", "--id", "id", "--asset", "image"])

    def begin(self):
        proof, options = self.proof, self.proof.options
        manifest = proof.folder / "manifest"
        manifest.mkdir()
        written = self.moves.write_manifest(manifest, options.records, options.pictures)
        for device, account in ((self.first, "anna"), (self.second, "anna"), (self.lonely, "cara")):
            if device is not self.second:
                self.take_in(device, written)
            device.sign_in(proof.servers["a"], proof.accounts[account])
        self.sync(self.first, self.second, self.lonely)
        self.web = proof.link("b", "anna")

    def before(self):
        """Makes the edits between the backup and the moment."""
        self.edit(self.first, "r1", "before the moment")
        self.add(self.first, "n1")
        self.sync(self.first, self.second, self.lonely)
        self.edit(self.second, "r2", "waits on the second device")

    def after(self):
        """Makes the edits after the moment."""
        captions = {"Place 3", "Place 4"}
        gone = [name for name, record in self.records(self.web).items() if record["fields"].get("caption", {}).get("value") in captions]
        modify(self.web, ZONE, [{"operationType": "forceDelete", "record": {"recordName": name}} for name in gone])
        self.sync(self.first)
        if {"r3", "r4"} & self.rows(self.first).keys():
            raise Wrong("the first device still has what another client has deleted")
        self.edit(self.first, "r5", "after the moment")
        self.add(self.first, "n2")
        self.first.run("records delete", "Destination:r6")
        self.add(self.lonely, "c1")
        self.sync(self.first, self.lonely)

    def compare(self):
        """Compares the devices. The lonely device synchronises first: it fetches nothing that could tell the cloud of its loss."""
        self.sync(self.lonely)
        kept = self.records(self.proof.link("b", "cara"))
        if not any(record["fields"].get("caption", {}).get("value") == "made c1" for record in kept.values()):
            raise Unsent("a device has sent a record after the moment, and the cloud lacks it although the device has synchronised since")
        self.third.sign_in(self.proof.servers["b"], self.proof.accounts["anna"])
        self.sync(self.first, self.second, self.third, self.first, self.second)
        rows = [self.rows(device) for device in (self.first, self.second, self.third)]
        for other in rows[1:]:
            if other != rows[0]:
                strange = sorted({name for name, _ in set(other.items()) ^ set(rows[0].items())})
                raise Wrong(f"devices differ: {[(name, rows[0].get(name), other.get(name)) for name in strange[:3]]}")
        found = {name: caption for name, (caption, _) in rows[0].items()}
        wanted = {f"r{number}": f"Place {number}" for number in range(self.proof.options.records)}
        wanted |= {"r1": "before the moment", "r2": "waits on the second device", "r5": "after the moment", "n1": "made n1", "n2": "made n2"}
        del wanted["r6"]
        if found != wanted:
            raise Wrong(f"devices have other records than they have to: {sorted(set(found.items()) ^ set(wanted.items()))[:10]}")
        pictures = sum(picture is not None for _, picture in rows[0].values())
        # The deleted r6 had a picture, and n1 and n2 were added with one each.
        if pictures != self.proof.options.pictures + 1:
            raise Wrong(f"devices have {pictures} pictures")
        for device in (self.first, self.second, self.third, self.lonely):
            device.run("verify")
        self.proof.operator.note(f"three devices have the same {len(found):,} records and {pictures} pictures, with all that they have edited; "
                                 "what another client has deleted is back, what a device has deleted is not")

    def rows(self, device):
        """Returns each record's caption and the digest of its picture."""
        folder = device.container.with_suffix(".exported")
        device.run("export", "--type", "Destination", "--to", folder / "records.jsonl", "--assets", folder / "assets", "--asset-names", "identifier")
        found = {}
        for line in (folder / "records.jsonl").read_text().splitlines():
            row = json.loads(line)
            name = row.get("id") or row["_name"].removeprefix("Destination:")
            picture = row.get("image") and hashlib.sha256((folder / row["image"]).read_bytes()).hexdigest()
            found[name] = (row.get("caption"), picture)
        shutil.rmtree(folder)
        return found

    def records(self, link):
        """Returns all records of an account's zone, by their names in the cloud."""
        found, token = {}, None
        while True:
            zone = link.post(BASE + "/changes/zone", {"zones": [{"zoneID": ZONE} | ({"syncToken": token} if token else {})]})["zones"][0]
            found |= {record["recordName"]: None if record.get("deleted") else record for record in zone["records"]}
            token = zone["syncToken"]
            if not zone["moreComing"]:
                return {name: record for name, record in found.items() if record}
