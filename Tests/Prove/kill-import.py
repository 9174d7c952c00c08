#!/usr/bin/env python3
"""Kills imports of real size at random moments, resumes each, and compares the stores with that of an undisturbed run.

Every import is killed with SIGKILL at a moment drawn from its whole length, over and over, each time going on with --resume, until one
comes to its end. Then its export and its assets must be those of the undisturbed run, byte for byte, its history must add up to the
records, and `tidemark verify` must find nothing.
"""

import hashlib
import json
import pathlib
import random
import shutil
import subprocess
import tempfile
import time

import killing
from killing import fail

TYPE = "Destination"


def make_data(folder, records, pictures):
    (folder / "pictures").mkdir(parents=True)
    for number in range(pictures):
        (folder / "pictures" / f"{number}.png").write_bytes(killing.picture(number, 20_000 + number * 997 % 300_000))
    drawn = random.Random(records)
    manifest = folder / "records.jsonl"
    with open(manifest, "w") as lines:
        for number in range(records):
            row = {"id": f"{drawn.getrandbits(32):08x}-{number}", "caption": f"Place {number}",
                   "createdAt": f"2024-01-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z",
                   "details": "x" * drawn.randrange(100, 1500), "rating": number % 6}
            if pictures and number % (records // pictures) == 0:
                row["image"] = f"pictures/{number // (records // pictures) % pictures}.png"
            lines.write(json.dumps(row) + "\n")
    return manifest


class Run:
    def __init__(self, options, manifest):
        self.options, self.manifest = options, manifest

    def command(self, container):
        return [self.options.tidemark, "import", self.manifest, "--into", container, "--type", TYPE, "--id", "id", "--asset",
                "image", "--batch", str(self.options.batch), "--json", "--resume"]

    def finish(self, container):
        return json.loads(killing.finish(self.command(container)))

    def kill_after(self, container, delay):
        return killing.kill_after(self.command(container), delay)

    def state(self, container):
        """A digest of all that a reader can see: records, assets by name and content, and that history adds up."""
        tool = self.options.tidemark
        verify = subprocess.run([tool, "verify", container, "--json"], capture_output=True, text=True)
        if verify.returncode != 0:
            fail(f"verify of {container}: {verify.stdout}{verify.stderr}")
        lines = subprocess.run([tool, "export", container, "--type", TYPE, "--to", "-"], capture_output=True, check=True).stdout
        lines = sorted(lines.splitlines())
        history = subprocess.run([tool, "history", container, "--json"], capture_output=True, check=True).stdout
        history = json.loads(history)["transactions"]
        inserted = sum(transaction["inserted"] for transaction in history)
        touched = sum(transaction["updated"] + transaction["deleted"] for transaction in history)
        if (inserted, touched) != (len(lines), 0):
            fail(f"history of {container}: {inserted} insertions and {touched} other changes for {len(lines)} records")
        digest = hashlib.sha256(b"\n".join(lines))
        killing.add_assets(digest, container)
        return digest.hexdigest()


def main():
    parser = killing.parser(__doc__, kills=200, records=30_000, pictures=300)
    parser.add_argument("--batch", type=int, default=1000, help="rows of a batch (1,000)")
    parser.add_argument("--manifest", type=pathlib.Path, help="a manifest with fields id and image to take instead of a made one")
    options = parser.parse_args()
    seed, moments = killing.draw(options)
    with tempfile.TemporaryDirectory(prefix="tidemark-kill-", dir=options.folder) as name:
        folder = pathlib.Path(name)
        manifest = options.manifest or make_data(folder / "data", options.records, options.pictures)
        run = Run(options, manifest)
        began = time.monotonic()
        summary = run.finish(folder / "undisturbed")
        length = time.monotonic() - began
        wanted = run.state(folder / "undisturbed")
        print(f"undisturbed: {summary['read']} records, {summary['assets']['stored']} assets, {length:.1f} s", flush=True)
        kills = stores = 0
        while kills < options.kills:
            container = folder / f"killed-{stores}"
            before = kills
            while run.kill_after(container, length * moments.uniform(0.01, 1)):
                kills += 1
            stores += 1
            found = run.state(container)
            if found != wanted:
                fail(f"after {kills - before} kills the store is not that of the undisturbed run (seed {seed})")
            print(f"store {stores}: killed {kills - before} times, resumed, the same; {kills} kills so far", flush=True)
            shutil.rmtree(container)
    print(f"{kills} kills, {stores} stores, each the same as undisturbed")


if __name__ == "__main__":
    main()
