"""The import that the proofs by killing share: its source, its options, and the state that it must leave."""

import hashlib
import json
import random
import subprocess

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
        """Returns a digest of all that a reader can see: the records, and the assets by name and content. Checks that the history adds up to the records."""
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
