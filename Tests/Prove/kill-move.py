#!/usr/bin/env python3
"""Kills moves of a container of real size at random moments, and checks after each kill that exactly one whole container exists.

The container moves to and fro between two places. Each move is killed with SIGKILL at a moment drawn from its whole length, again and again, until
one ends by itself. After each kill exactly one of the two places must open. Its digest must be the same as before the move: it covers all rows of
all tables of both stores, with history, pending changes and counters, the rows of an export, and the bytes of every asset. The other place must be
refused. Sometimes the move is undone instead of being continued. In the end the container must have moved, with the same digest.
"""

import hashlib
import json
import pathlib
import shutil
import sqlite3
import subprocess
import tempfile
import time

import killing
from killing import fail

TYPE = "Destination"
FLOOR = pathlib.Path(__file__).resolve().parent.parent.parent / "Benchmarks" / "Floor"
# The exit codes of `tidemark` where the container is missing, has moved, is an unfinished copy, or is no container.
ELSEWHERE = (66, 73)


def make_container(tidemark, folder, records, pictures):
    """Imports a journal twice, the second time with changes, and adds a second store to the container."""
    data, generator = folder / "data", folder / "generate"
    data.mkdir()
    subprocess.run(["cc", "-O2", "-o", generator, FLOOR / "generate.c", FLOOR / "journal.c"], check=True)
    changed = max(1, records // 10)
    arguments = [data, "--records", records, "--pictures", pictures, "--changed", changed]
    subprocess.run([generator, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)
    container = folder / "Journal.tidemark"
    for manifest in ("records.jsonl", "records-changed.jsonl"):
        subprocess.run([tidemark, "import", data / manifest, "--into", container, "--type", TYPE, "--id", "id", "--asset", "image",
                        "--json"], check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(data)
    # A store's file is valid for either scope.
    shutil.copy(container / "private.sqlite", container / "shared.sqlite")
    return container


class Moves:
    def __init__(self, options):
        self.tool = options.tidemark

    def digest(self, container):
        """Returns a digest of the whole container, or `None` where it can't be opened."""
        verify = subprocess.run([self.tool, "verify", container, "--json"], capture_output=True, text=True)
        if verify.returncode in ELSEWHERE:
            return None
        if verify.returncode != 0:
            fail(f"verify of {container}: {verify.returncode} {verify.stdout}{verify.stderr}")
        digest = hashlib.sha256(json.loads((container / "container.json").read_text())["identity"].encode())
        digest.update(subprocess.run([self.tool, "export", container, "--type", TYPE, "--to", "-"], capture_output=True,
                                     check=True).stdout)
        for name in ("private.sqlite", "shared.sqlite"):
            database = sqlite3.connect(f"file:{container / name}?mode=ro", uri=True)
            tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
            for row in database.execute("SELECT name, sql FROM sqlite_master ORDER BY name"):
                digest.update(repr(row).encode())
            for table in tables:
                digest.update(table.encode())
                for row in database.execute(f'SELECT * FROM "{table}"'):
                    digest.update(repr(row).encode())
            database.close()
        killing.add_assets(digest, container)
        return digest.hexdigest()

    def command(self, source, target, *options):
        return [self.tool, "store", "move", source, target, "--json", *options]

    def finish(self, source, target):
        return json.loads(killing.finish(self.command(source, target)))

    def check(self, places, wanted, after):
        """Returns the one place where the container is. Fails if there is not exactly one, or if its digest is wrong."""
        digests = {place: self.digest(place) for place in places}
        found = [place for place, digest in digests.items() if digest is not None]
        if len(found) != 1:
            fail(f"{after}, {len(found)} containers can be opened: {found}")
        if digests[found[0]] != wanted:
            fail(f"{after}, the container at {found[0]} is not what it was")
        return found[0]


def main():
    parser = killing.parser(__doc__, kills=100, records=50_000, pictures=500)
    parser.add_argument("--second", type=pathlib.Path, help="a folder, perhaps on another file system, of the other place")
    options = parser.parse_args()
    seed, drawn = killing.draw(options)
    with tempfile.TemporaryDirectory(prefix="tidemark-kill-", dir=options.folder) as name, \
            tempfile.TemporaryDirectory(prefix="tidemark-kill-", dir=options.second or name) as second:
        moves = Moves(options)
        source = make_container(options.tidemark, pathlib.Path(name), options.records, options.pictures)
        target = pathlib.Path(second) / "Moved.tidemark"
        wanted = moves.digest(source)
        began = time.monotonic()
        moves.finish(source, target)
        length = time.monotonic() - began
        if moves.check([source, target], wanted, "undisturbed") != target:
            fail("an undisturbed move has not moved the container")
        print(f"undisturbed: {options.records} records, {options.pictures} pictures, {length:.2f} s", flush=True)
        source, target = target, source
        kills = done = undone = 0
        while kills < options.kills:
            if killing.kill_after(moves.command(source, target), length * drawn.uniform(0.01, 1.2)):
                kills += 1
                there = moves.check([source, target], wanted, f"after {kills} kills (seed {seed})")
                if there == source and drawn.random() < 0.2:
                    # If the kill came before the move had begun, there is nothing to undo.
                    killing.start(moves.command(source, target, "--rollback")).communicate()
                    undone += 1
                    if target.exists() and any(path.name != "container.json" for path in target.iterdir()):
                        fail(f"after {kills} kills something is left of a move that was undone (seed {seed})")
                continue
            if moves.check([source, target], wanted, f"after {kills} kills and a whole move (seed {seed})") != target:
                fail(f"after {kills} kills a move has not moved the container (seed {seed})")
            if [path.name for path in source.iterdir()] != ["container.json"]:
                fail(f"after {kills} kills a move has left old files (seed {seed})")
            if not moves.finish(source, target)["alreadyMoved"]:
                fail(f"after {kills} kills a repeated move was not harmless (seed {seed})")
            done += 1
            print(f"move {done}: whole, the same; {kills} kills so far, {undone} undone", flush=True)
            source, target = target, source
        moves.finish(source, target)
        moves.check([source, target], wanted, f"at the end (seed {seed})")
    print(f"{kills} kills, {undone} moves undone, {done + 1} whole: one container each time, and the same")


if __name__ == "__main__":
    main()
