#!/usr/bin/env python3
"""Damages one file of a container or of a cloud, and checks that the damage is noticed before any of it spreads.

A server has a cloud, and two devices have a container each, which are synchronised; one has unsent edits. A third container is in the middle of a
move. At each point a seed draws a file and damages it: flips a bit, zeroes a sector, cuts the file, or exchanges two pages, two sectors or two files.
Then one command reads the damaged file: an export, a backup, a move, a synchronisation, or a backup of the cloud.

However the command ends, its result must have only content that was there before: this holds for the other device, the copy and the export. `verify`
(for the cloud: `admin verify`) must find the damage. If it finds none, all content must be as before: then the damage hit bytes that nothing needs.
"""

import argparse
import json
import pathlib
import random
import re
import shutil
import sqlite3
import tempfile
import time

import preload
import killing
import scenarios
import served
from scenarios import TYPE, Wrong, run, well

DOCUMENTED = {0, 1, 64, 65, 66, 69, 73, 74, 75, 77, 130}
EDITED = "c71054b9-8c7a-4910-b202-192af0305268"
OTHERS = ["36841ff0-a9a3-4f27-b622-58338cbc2c0a"]

# The kinds of file, each with its files and the commands that read them.
FILES = {
    "store": (["a.tidemark/private.sqlite"], ["export", "backup", "move", "sync"]),
    "log": (["a.tidemark/private.sqlite-wal"], ["export", "backup", "move", "sync"]),
    "content": (["a.tidemark/assets/*/*"], ["export", "backup", "move", "sync"]),
    "session": (["a.tidemark/*session*", "a.tidemark/account*"], ["sync"]),
    "note": (["moving.tidemark/moving-from.json", "moved.tidemark/moving-to.json", "moved.tidemark/moving-from.json"], ["move-on"]),
    "cloud": (["data/**/records.sqlite"], ["sync", "fetch", "admin-backup"]),
    "cloud-log": (["data/**/records.sqlite-wal"], ["sync", "fetch", "admin-backup"]),
    "cloud-content": (["data/**/assets/**/*"], ["fetch", "admin-backup"]),
    "accounts": (["data/accounts.sqlite"], ["sync", "admin-backup"]),
    "access": (["data/access.sqlite"], ["sync", "admin-backup"]),
}
# "payload" flips a bit of a record's text, in any of its copies.
DAMAGES = ["bit", "payload", "payload", "payload", "zeros", "cut", "pages", "sectors", "files"]


class Damaged(served.Served):
    name = "damage"

    def __init__(self, tools, folder, library):
        super().__init__(tools, folder)
        self.library = library

    def fill_served(self):
        well(self.imported(self.work / "a.tidemark"))
        for name in ("a.tidemark", "b.tidemark"):
            self.sign_in(name)
        self.well_synced("a.tidemark", "b.tidemark")
        # From here on both the databases and their logs have records.
        self.finish()
        for path in self.work.glob("**/*.sqlite"):
            connection = sqlite3.connect(path)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.close()
        self.serve()
        for name in OTHERS:
            well([self.tidemark, "records", "set", self.work / "a.tidemark", name, "elevation=4.5"])
        self.well_synced("a.tidemark", "b.tidemark")
        # A backup of the container, and its move, which is killed, so that the note of the move is left.
        well([self.tidemark, "store", "backup", self.work / "a.tidemark", self.work / "moving.tidemark"])
        well([self.tidemark, "records", "set", self.work / "a.tidemark", EDITED, "caption=An edit that waits", "rating=2"])
        self.interrupt_move()

    def interrupt_move(self):
        loaded = preload.Preload(self.library, self.work, self.work.parent)
        move = [self.tidemark, "store", "move", self.work / "moving.tidemark", self.work / "moved.tidemark"]
        for at in (150, 120, 90, 60, 40):
            shutil.copytree(self.work / "moving.tidemark", self.work.parent / "kept", symlinks=True)
            run(move, loaded.environment(at, "KILL"))
            if list(self.work.glob("mov*/moving-*.json")):
                shutil.rmtree(self.work.parent / "kept")
                return
            for name in ("moving.tidemark", "moved.tidemark"):
                shutil.rmtree(self.work / name, ignore_errors=True)
            (self.work.parent / "kept").rename(self.work / "moving.tidemark")
        raise Wrong("no note of a move was left")

    # Content before the damage

    def measure(self):
        self.start()
        self.serve()
        self.before = self.records("a.tidemark"), self.records("b.tidemark")
        self.lines = set(self.export("a.tidemark").splitlines())
        self.texts = [json.loads(line)["caption"].encode() for line in self.lines]
        well(self.sync("a.tidemark"))
        well(self.sync("b.tidemark"))
        self.after = self.records("b.tidemark")
        self.finish()
        self.pictures = {path.read_bytes() for path in (self.template / "a.tidemark/assets").glob("*/*")}
        self.moved = self.records_of(self.template / "b.tidemark")

    def export(self, name):
        return well([self.tidemark, "export", self.work / name, "--to", "-", "--type", TYPE])

    def records(self, name):
        return self.content(self.work / name).split()[0]

    def records_of(self, container):
        return self.content(container).split()[0]

    def same(self, container, allowed, what):
        """Checks that a container is whole and has one of the allowed contents."""
        found = self.records_of(container)
        if found not in allowed:
            raise Wrong(f"{what} has {found}, and {allowed} are possible")

    # Commands

    def do(self, operation):
        work, a = self.work, self.work / "a.tidemark"
        if operation == "export":
            out = work / "out"
            ended = run([self.tidemark, "export", a, "--type", TYPE, "--to", out / "journal.jsonl", "--assets", out / "pictures"])
            self.check_export(ended, out)
        elif operation == "backup":
            ended = run([self.tidemark, "store", "backup", a, work / "backup.tidemark"])
            self.check_copy(ended, work / "backup.tidemark", self.before[:1])
        elif operation == "move":
            ended = run([self.tidemark, "store", "move", a, work / "elsewhere.tidemark"])
            # A move takes a damaged record along. Then it must name the record, and verify must find it in the new place.
            told = ended.code == 0 and "damaged" in ended.output + ended.errors and run([self.tidemark, "verify", work / "elsewhere.tidemark"]).code == 1
            if not told:
                self.check_copy(ended, work / "elsewhere.tidemark", self.before[:1])
        elif operation == "move-on":
            ended = run([self.tidemark, "store", "move", work / "moving.tidemark", work / "moved.tidemark"])
            self.check_move(ended)
        elif operation == "admin-backup":
            ended = run([self.tidemark, "admin", "backup", work / "cloud-backup", "--data", work / "data"])
            if ended.code == 0 and run([self.tidemark, "admin", "verify", "--data", work / "cloud-backup"]).code != 0:
                raise Wrong(f"a backup that was announced as made is not whole: {ended}")
        else:
            ended = self.synchronise(operation)
        return ended

    def check_export(self, ended, out):
        manifest = out / "journal.jsonl"
        if not manifest.exists():
            if ended.code == 0:
                raise Wrong(f"no export: {ended}")
            return
        found = manifest.read_text(errors="replace").splitlines()
        plain = lambda line: re.sub(r'"(asset:|pictures/)[^"]*"', '"asset"', line)  # noqa: E731
        strange = set(map(plain, found)) - set(map(plain, self.lines))
        # If the log has lost the last saves, the rest may be exported, provided that the export reports the loss.
        is_told = ended.code == 65 and "what was saved last is lost" in ended.errors
        if strange and not is_told:
            raise Wrong(f"an export has what was never saved: {sorted(strange)[:2]}; {ended}")
        if ended.code == 0 and len(found) != len(self.lines):
            raise Wrong(f"an export that ended with 0 has {len(found)} of {len(self.lines)} records; {ended}")
        for picture in (out / "pictures").glob("*"):
            if picture.is_file() and not picture.name.startswith(".") and picture.read_bytes() not in self.pictures:
                raise Wrong(f"an export has a picture that was never saved: {picture.name}; {ended}")

    def check_copy(self, ended, copy, allowed):
        if ended.code == 0:
            self.same(copy, allowed, f"the copy of {ended.shown}")
        elif (copy / "private.sqlite").exists() and run([self.tidemark, "verify", copy]).code == 0:
            self.same(copy, allowed, f"the copy that {ended.shown} has left")

    def check_move(self, ended):
        whole = [path for path in (self.work / "moving.tidemark", self.work / "moved.tidemark")
                 if (path / "private.sqlite").exists() and run([self.tidemark, "verify", path]).code == 0]
        if not whole and ended.code == 0:
            raise Wrong(f"after the move nothing is there: {ended}")
        for path in whole:
            self.same(path, (self.moved,), f"{path.name}")

    def synchronise(self, operation):
        """Synchronises the damaged device, or one that fetches from a damaged cloud, and checks that no damage reaches another device."""
        self.serve()
        try:
            if self.server.port is None:
                log = self.server.log.read_text(errors="replace")
                ended = scenarios.Ended(["tidemark-server"], self.server.process.wait(), "", log)
                return ended
            ended = run(self.sync("a.tidemark" if operation == "sync" else "b.tidemark"))
            if operation == "fetch":
                # A new device fetches everything.
                self.sign_in_quietly("c.tidemark")
                ended = run(self.sync("c.tidemark"))
                if (self.work / "c.tidemark/private.sqlite").exists():
                    self.subset("c.tidemark", ended)
                return ended
            other = run(self.sync("b.tidemark"))
            if other.code not in DOCUMENTED:
                raise Wrong(str(other))
            self.same(self.work / "b.tidemark", (self.before[1], self.after), f"the other device, after {ended.shown} ended with {ended.code}")
            return ended
        finally:
            self.end_server()

    def sign_in_quietly(self, name):
        run([self.tidemark, "account", "sign-in", self.work / name, "--server", f"http://127.0.0.1:{self.port}", "--email", self.account["email"],
             "--container", served.start_server.CONTAINER, "--password-stdin"], given=self.account["password"] + "\n")

    def subset(self, name, ended):
        """Checks that a device that has fetched from a damaged cloud has no record and no picture that was never saved."""
        shown = run([self.tidemark, "export", self.work / name, "--to", "-", "--type", TYPE])
        if shown.code != 0:
            return
        def plain(line):
            record = self.named(json.loads(line))
            return json.dumps({key: value for key, value in record.items() if "asset:" not in str(value)}, sort_keys=True)
        strange = {plain(line) for line in shown.output.splitlines()} - {plain(line) for line in self.fetched}
        if strange:
            raise Wrong(f"a device has fetched what was never saved: {sorted(strange)[:2]}; {ended}")
        for path in (self.work / name / "assets").glob("*/*"):
            if path.read_bytes() not in self.pictures:
                raise Wrong(f"a device has fetched a picture that was never saved: {path.name}; {ended}")

    def end_server(self):
        if self.server is not None:
            server, self.server = self.server, None
            if server.process.poll() is None:
                server.stop()
            if server.process.returncode is not None and server.process.returncode < 0:
                raise Wrong(f"the server was ended by the signal {-server.process.returncode}: {server.log.read_text(errors='replace')[-1500:]}")

    # Damage

    def files(self, kind):
        return sorted({path for pattern in FILES[kind][0] for path in self.work.glob(pattern) if path.is_file() and path.stat().st_size > 0})

    def damage(self, kind, how, drawn):
        """Damages a file of a kind. Returns what was done, or `None` where there is no such file."""
        files = self.files(kind)
        if not files:
            return None
        path = drawn.choice(files)
        data = bytearray(path.read_bytes())
        page = {"pages": 16384 if kind in ("store", "log") else 4096, "sectors": 512}.get(how, 512)
        if how == "files" and len(files) > 1:
            other = drawn.choice([each for each in files if each != path])
            path.write_bytes(other.read_bytes())
            other.write_bytes(data)
            return f"{path.relative_to(self.work)} and {other.relative_to(self.work)} exchanged"
        if how in ("pages", "sectors") and len(data) >= 2 * page:
            first, second = drawn.sample(range(len(data) // page), 2)
            one, two = slice(first * page, (first + 1) * page), slice(second * page, (second + 1) * page)
            data[one], data[two] = data[two], data[one]
            done = f"{page} bytes at {one.start} and {two.start} exchanged"
        elif how == "zeros" and len(data) > 512:
            at = drawn.randrange(len(data) // 512) * 512
            data[at:at + 512] = bytes(min(512, len(data) - at))
            done = f"512 bytes at {at} zeroed"
        elif how == "payload" and kind in ("store", "log", "cloud", "cloud-log") and (places := self.places(data)):
            at, bit = drawn.choice(places), drawn.randrange(8)
            data[at] ^= 1 << bit
            done = f"bit {bit} of byte {at}, of a record's text, flipped"
        elif how == "cut":
            at = drawn.randrange(len(data))
            del data[at:]
            done = f"cut at {at}"
        else:
            at, bit = drawn.randrange(len(data)), drawn.randrange(8)
            data[at] ^= 1 << bit
            done = f"bit {bit} of byte {at} flipped"
        path.write_bytes(data)
        return f"{path.relative_to(self.work)}: {done}"

    def places(self, data):
        """Returns the positions of some bytes within records' texts in a file."""
        found = []
        for text in self.texts:
            at = data.find(text)
            while at >= 0:
                found += [at + len(text) // 3, at + len(text) // 2]
                at = data.find(text, at + 1)
        return found

    def examine(self, kind):
        """Examines what was damaged, and returns how the command ended. A container in which it finds nothing must have its old content."""
        if kind in ("cloud", "cloud-log", "cloud-content", "accounts", "access"):
            ended = run([self.tidemark, "admin", "verify", "--data", self.work / "data"])
        elif kind in ("session", "note"):
            return None
        else:
            ended = run([self.tidemark, "verify", self.work / "a.tidemark"])
            if ended.code == 0:
                self.same(self.work / "a.tidemark", self.before[:1], "a container that verify takes for whole")
        if ended.code not in DOCUMENTED:
            raise Wrong(str(ended))
        return ended


class Sweep:
    def __init__(self, scenario):
        self.scenario, self.counts, self.wrong, self.is_shown = scenario, {}, [], False

    def point(self, seed, kinds):
        drawn = random.Random(seed)
        kind, how = drawn.choice(kinds), drawn.choice(DAMAGES)
        operation = drawn.choice(FILES[kind][1])
        scenario = self.scenario
        scenario.start()
        done = scenario.damage(kind, how, drawn)
        count = self.counts.setdefault(kind, dict.fromkeys(["points", "found", "named", "harmless", "wrong"], 0))
        if done is None:
            return
        count["points"] += 1
        try:
            examined = scenario.examine(kind) if drawn.random() < 0.7 else None
            if examined is not None:
                count["found" if examined.code else "harmless"] += 1
                count["named"] += bool(re.search(TYPE + r"|[0-9a-f]{8}-[0-9a-f]{4}-", examined.output + examined.errors)) and examined.code != 0
                if self.is_shown:
                    print(f"{done}: {examined}")
            ended = scenario.do(operation)
            if ended.code not in DOCUMENTED:
                raise Wrong(str(ended))
            if ended.code and not (ended.output + ended.errors).strip():
                raise Wrong(f"it ended with {ended.code}, and said nothing")
        except Wrong as error:
            count["wrong"] += 1
            self.wrong.append(seed)
            print(f"WRONG --one {seed} ({done}; {operation}): {error}", flush=True)
        finally:
            scenario.end_server()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    path = lambda text: pathlib.Path(text).resolve()  # noqa: E731
    parser.add_argument("--tidemark", required=True, type=path, help="the command-line tool")
    parser.add_argument("--server", required=True, type=path, help="the server")
    parser.add_argument("--points", type=int, default=200, help="files that are damaged (200)")
    parser.add_argument("--kind", action="append", choices=list(FILES), help="one kind of file; may be repeated (all)")
    parser.add_argument("--shown", action="store_true", help="prints what verify says")
    parser.add_argument("--one", type=int, help="one point, by the number that is printed where it went wrong; with the same --kind")
    parser.add_argument("--folder", type=path, help="where to work; emptied at the end (a temporary folder)")
    parser.add_argument("--keep", type=path, help="a folder that gets what is left of each point that went wrong")
    parser.add_argument("--seed", type=int, help="draws the same points again")
    options = parser.parse_args()
    seed, drawn = killing.draw(options)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tidemark-damage-", dir=options.folder))
    began = last = time.monotonic()
    try:
        library = preload.build(folder)
        scenario = Damaged(options, folder / "damage", library)
        (folder / "damage").mkdir()
        scenario.prepare()
        scenario.measure()
        scenario.start()
        scenario.fetched = scenario.export("b.tidemark").splitlines() + scenario.export("a.tidemark").splitlines()
        sweep = Sweep(scenario)
        sweep.is_shown = options.shown
        for number in range(1 if options.one is not None else options.points):
            wrong = len(sweep.wrong)
            point = options.one if options.one is not None else drawn.getrandbits(32)
            sweep.point(point, options.kind or list(FILES))
            if options.keep and len(sweep.wrong) > wrong:
                shutil.copytree(scenario.work, options.keep / str(point), symlinks=True, dirs_exist_ok=True)
            if time.monotonic() - last > 30:
                last = time.monotonic()
                print(f"  {number + 1} of {options.points} points, {len(sweep.wrong)} wrong, {last - began:.0f} s", flush=True)
    except Wrong as error:
        killing.fail(f"{error} (seed {seed})")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for kind, count in sweep.counts.items():
        print(f"{kind}: {count['points']} points; verify found {count['found']}, {count['named']} with a record's name, and nothing in {count['harmless']}, "
              f"which were as before; {count['wrong']} wrong")
    print(f"{sum(count['points'] for count in sweep.counts.values())} points; {len(sweep.wrong)} wrong; {time.monotonic() - began:.0f} s")
    if sweep.wrong:
        killing.fail(f"{len(sweep.wrong)} points went wrong, above (seed {seed})")


if __name__ == "__main__":
    main()
