"""Scenarios for faults of files: each has a beginning, commands, the results that these acknowledge, and an end.

A scenario works in the folder `work`, which is copied from its `template` each time. `run` does the work in an environment in which the preloaded
library makes calls fail or logs them. `repeat` does the work again without the library. `state` is a digest of all that a reader can see.
"""

import hashlib
import json
import pathlib
import re
import shutil
import subprocess

import preload
from acknowledged import Wrong

JOURNAL = pathlib.Path(__file__).resolve().parents[2] / "Examples/journal/journal.jsonl"
TYPE = "Destination"
# Two records of the journal.
NAMES = ["c71054b9-8c7a-4910-b202-192af0305268", "36841ff0-a9a3-4f27-b622-58338cbc2c0a"]
# Mapped files are written without a call. They are logged with the next call, so their last changes are missing from a log.
UNLOGGED = ("-shm",)
# The seconds within which a command must end.
LONGEST = 90


class Ended:
    """How a process has ended."""

    def __init__(self, command, code, output, errors):
        self.command, self.code, self.output, self.errors = command, code, output, errors

    @property
    def shown(self):
        return " ".join(str(word) for word in self.command)

    def __str__(self):
        return f"{self.shown} ended with {self.code}\n{self.output[-1500:]}{self.errors[-1500:]}"


def run(command, added=None, given=None):
    """Runs a command until it ends, with any exit code."""
    command = [str(word) for word in command]
    try:
        ended = subprocess.run(command, input=given, capture_output=True, text=True, errors="replace", env=preload.environment(added or {}), timeout=LONGEST)
    except subprocess.TimeoutExpired as error:
        raise Wrong(f"{' '.join(command)} did not end within {LONGEST} s: {(error.stderr or b'')[-500:]}") from None
    return Ended(command, ended.returncode, ended.stdout, ended.stderr)


def well(command, given=None, codes=(0,)):
    """Runs a command that must end with one of some codes, and returns what it prints."""
    ended = run(command, given=given)
    if ended.code not in codes:
        raise Wrong(str(ended))
    return ended.output


class Scenario:
    """A scenario over containers. Its `commands` are run one after the other until one fails."""

    name, about = "", ""
    # The containers that the commands make. All others exist before and after each fault.
    made = ()
    # Whether the commands can be repeated after they have succeeded. A backup, for example, overwrites nothing.
    is_repeatable = True
    # Whether superfluous files are a problem.
    is_strict = True
    # The switch of the scenario: the name of a folder, and the number of its sync that makes the switch durable. The third value is how many
    # of its last syncs the repeated run lacks. With 0 the repeated run ends by itself.
    switch = None

    def __init__(self, tools, folder):
        self.tools, self.tidemark, self.template, self.work = tools, tools.tidemark, folder / "template", folder / "work"

    def prepare(self):
        """Fills the template. It is filled in `work`, and so at the path that containers have later."""
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        self.fill()
        shutil.rmtree(self.template, ignore_errors=True)
        self.work.rename(self.template)

    def root(self):
        """The folder whose files fail, or lose what was not synced."""
        return self.work

    def start(self):
        shutil.rmtree(self.work, ignore_errors=True)
        subprocess.run(["cp", "-a", self.template, self.work], check=True)

    def fill(self):
        pass

    def commands(self):
        raise NotImplementedError

    def run(self, added):
        """Runs the commands, and returns how the first failing one ended, or the last."""
        for command in self.commands():
            ended = run(command, added)
            if ended.code != 0:
                break
        return ended

    def repeat(self):
        for command in self.commands():
            well(command)

    def finish(self):
        """Stops what the scenario has started."""

    def check(self):
        """Compares what is left with what was acknowledged, in scenarios where that is known before the end."""

    def only_strays(self, text):
        """Whether the output of an examination names only superfluous files."""
        problems = [line for line in text.splitlines() if line.strip() and not line.startswith("Verified") and not line.startswith("tidemark:")]
        return all("staging" in line or "stray" in line.lower() or "no record" in line for line in problems)

    def containers(self):
        """Returns the existing containers, each with whether it existed before."""
        return [(path, path.name not in self.made) for path in sorted(self.work.glob("*.tidemark")) if path.name not in self.ignored()]

    def ignored(self):
        return ()

    def state(self):
        return " ".join(f"{path.name}={self.content(path)}" for path, _ in self.containers())

    # After a loss of power

    # How many disks are made from one run. With a server they are few, because its state is that of one moment.
    disks_of_run = 3

    def run_until_killed(self, added):
        """Returns the number of acknowledged commands: those that have succeeded, and one that had printed its result when it was killed."""
        for number, command in enumerate(self.commands()):
            ended = run(command, added)
            if ended.code != 0:
                return number + bool(ended.output.strip())
        return number + 1

    def finish_cut(self):
        """Stops processes while the files are exchanged, except those that did not lose their power."""
        self.finish()

    def states_of_steps(self):
        """Returns the states before the commands and after each of them."""
        self.start()
        found = [self.state_after_cut()]
        for command in self.commands():
            well(command)
            found.append(self.state_after_cut())
        return found

    def state_after_cut(self):
        """Returns the state, superfluous files included, or `None` where it can't be known before the end."""
        self.is_strict = False
        try:
            return self.state()
        finally:
            self.is_strict = True

    def is_possible(self, found, states, acknowledged):
        return found in states[acknowledged:acknowledged + 2]

    def repeat_after_cut(self, is_done):
        if not is_done or self.is_repeatable:
            self.repeat()

    def state_at_once(self):
        """Returns the state directly after the commands have succeeded."""
        return self.state()

    def content(self, container):
        """Returns a digest of a container's records and assets, which must be whole."""
        examined = run([self.tidemark, "verify", container])
        if examined.code != 0 and (self.is_strict or examined.code != 1 or not self.only_strays(examined.output + examined.errors)):
            raise Wrong(str(examined))
        # The name of an asset differs between containers if it came from the cloud.
        assets = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (container / "assets").glob("*/*")}
        lines = well([self.tidemark, "export", container, "--to", "-", "--type", TYPE]).splitlines()
        lines = [re.sub(r'"asset:([^"]+)"', lambda match: f'"{assets[match[1]]}"', line) for line in lines]
        records = sorted(json.dumps(self.named(json.loads(line)), sort_keys=True) for line in lines)
        shorten = lambda texts: hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]  # noqa: E731
        return f"{len(lines)}:{shorten(records)} {len(assets)}:{shorten(sorted(assets.values()))}"

    @staticmethod
    def named(record):
        """Returns a record with its name. Only the container that has imported the type has names in a field, and without the type."""
        name = record.pop("id", None) or record.pop("_name")
        return record | {"_name": name.removeprefix(f"{TYPE}:")}

    def common(self, containers):
        """Returns the records of all containers, which must be equal, with their current pictures. Older pictures may differ."""
        found = {path.name: self.content(path).split()[0] for path, _ in containers}
        if len(set(found.values())) != 1:
            raise Wrong(f"the containers differ: {found}")
        return str(found)

    def imported(self, container, *more):
        return [self.tidemark, "import", JOURNAL, "--into", container, "--type", TYPE, "--id", "id", "--asset", "image", "--batch", "8", *more]


    def imported_plain(self, container):
        """An import without pictures. Syncs of pictures would make everything else durable as well."""
        return [self.tidemark, "import", JOURNAL, "--into", container, "--type", TYPE, "--id", "id"]


class Import(Scenario):
    name, about, made = "import", "imports the sample journal with its pictures into a new container", ("a.tidemark",)

    def commands(self):
        return [self.imported(self.work / "a.tidemark", "--json", "--resume")]

    def state_after_cut(self):
        # A container that does not exist, or has no type yet, has no records.
        shown = run([self.tidemark, "records", self.work / "a.tidemark", "--type", TYPE])
        return super().state_after_cut() if shown.code == 0 else "none"

    def is_possible(self, found, states, acknowledged):
        """Whether only whole batches are there. That their pictures are there, verify has checked."""
        return found == states[-1] if acknowledged else found == "none" or int(re.search(r"=(\d+):", found)[1]) % 8 == 0


class ScaledImport(Import):
    name, about, made = "import-scaled", "imports it with scaled pictures and thumbnails", ("a.tidemark",)

    def commands(self):
        return [self.imported(self.work / "a.tidemark", "--json", "--resume", "--max-pixels", "200", "--thumbnails", "64")]


class Save(Scenario):
    name, about = "save", "makes, changes, renames and deletes records"

    def fill(self):
        well(self.imported(self.work / "a.tidemark"))

    def commands(self):
        container, names = self.work / "a.tidemark", NAMES
        picture = JOURNAL.parent / "pictures" / "baobabs.jpg"
        return [[self.tidemark, "records", "set", container, names[0], "caption=Changed once", "rating=1"],
                [self.tidemark, "records", "set", container, "new-one", "--type", TYPE, "caption=A new one", f"image={picture}"],
                [self.tidemark, "records", "set", container, names[1], "details=Changed, too", "elevation=12.5"]]


class Delete(Scenario):
    name, about = "delete", "deletes records, which a repetition doesn't find any more"

    fill = Save.fill

    def commands(self):
        return [[self.tidemark, "records", "delete", self.work / "a.tidemark", "--type", TYPE, "--where", "rating = 5", "--yes"]]


class Backup(Scenario):
    name, about, made = "backup", "backs a container up", ("backup.tidemark",)
    is_repeatable = False

    fill = Save.fill

    def commands(self):
        return [[self.tidemark, "store", "backup", self.work / "a.tidemark", self.work / "backup.tidemark"]]


class PlainBackup(Backup):
    name, about = "backup-plain", "backs a container up that has no pictures, whose files are made durable one by one"

    def fill(self):
        well(self.imported_plain(self.work / "a.tidemark"))


class Restore(Scenario):
    name, about, made = "restore", "makes a container from a backup", ("restored.tidemark",)
    is_repeatable = False

    def fill(self):
        well(self.imported(self.work / "b.tidemark"))
        well([self.tidemark, "store", "backup", self.work / "b.tidemark", self.work / "a.tidemark"])

    def commands(self):
        return [[self.tidemark, "store", "restore", self.work / "a.tidemark", self.work / "restored.tidemark"]]


class Replace(Scenario):
    name, about = "restore-replace", "restores a backup in the place of a container that was changed since"

    def fill(self):
        Restore.fill(self)
        well([self.tidemark, "records", "delete", self.work / "b.tidemark", "--type", TYPE, "--where", "rating = 5", "--yes"])

    def commands(self):
        return [[self.tidemark, "store", "restore", self.work / "a.tidemark", self.work / "b.tidemark", "--replace"]]


class Move(Scenario):
    name, about, made = "move", "moves a container to another folder", ("moved.tidemark",)
    is_repeatable = False

    fill = Save.fill

    def commands(self):
        return [[self.tidemark, "store", "move", self.work / "a.tidemark", self.work / "moved.tidemark"]]

    def containers(self):
        # The container is at its old place or at the new one. The old place may still have a folder with a note.
        found = super().containers()
        return [(path, False) for path, _ in found if (path / "private.sqlite").exists() or len(found) == 1]

    def state(self):
        if (self.work / "a.tidemark" / "private.sqlite").exists():
            return "not moved"
        return self.content(self.work / "moved.tidemark")


class MoveKeeping(Move):
    name, about = "move-keep", "moves a container to another folder, and keeps the old files"
    # In the old folder the first sync makes the notice durable that is to replace the description. The second makes the switch durable.
    switch = ("a.tidemark", 2, 0)

    def commands(self):
        return [[*super().commands()[0], "--keep-source"]]

    def containers(self):
        return [(self.work / name, False) for name in ("a.tidemark", "moved.tidemark") if (self.work / name).exists()]

    def state(self):
        """Returns the one place where the container is, with its content."""
        found = [path for path, _ in self.containers() if run([self.tidemark, "records", path]).code == 0]
        if len(found) != 1:
            raise Wrong(f"the container is at {len(found)} places: {[path.name for path in found]}")
        return f"{found[0].name}={self.content(found[0])}"


class MoveBack(MoveKeeping):
    name, about = "move-back", "undoes a move"
    switch = ("a.tidemark", 1, 1)

    def fill(self):
        super().fill()
        well(super().commands()[0])

    def commands(self):
        return [[*Move.commands(self)[0], "--rollback"]]


class DamagedLog(Scenario):
    name, about = "damaged-log", "saves records beside a log that is damaged, of which a copy is kept"
    # The second sync of the folder comes when the log is overwritten. The repeated run makes nothing durable.
    switch = ("a.tidemark", 2, 99)

    def save(self, number):
        return [self.tidemark, "records", "set", self.work / "a.tidemark", f"new-{number}", "--type", TYPE, "caption=A new one"]

    def fill(self):
        well(self.imported(self.work / "a.tidemark"))
        well(self.save(1))
        log = self.work / "a.tidemark" / "private.sqlite-wal"
        data = bytearray(log.read_bytes())
        # This byte is in the first page, after the headers of the log and of the frame.
        data[61] ^= 1
        log.write_bytes(data)

    def commands(self):
        # The first save is refused and reports the damage. The second continues with what is left.
        return [["/bin/sh", "-c", '"$@"; "$@"', "sh", *self.save(2)]]

    def containers(self):
        return []

    def state_after_cut(self):
        copies = (self.work / "a.tidemark").glob("damaged-log-of-*")
        return " ".join(f"{path.name}:{hashlib.sha256(path.read_bytes()).hexdigest()[:16]}" for path in sorted(copies))

    def state(self):
        # verify would report the copy of the log as a problem, so the records are read by an export.
        lines = sorted(well([self.tidemark, "export", self.work / "a.tidemark", "--to", "-", "--type", TYPE]).splitlines())
        return f"{len(lines)}:{hashlib.sha256(chr(10).join(lines).encode()).hexdigest()[:16]} {self.state_after_cut()}"


class Export(Scenario):
    name, about = "export", "exports records and assets"

    fill = Save.fill

    def commands(self):
        out = self.work / "out"
        return [[self.tidemark, "export", self.work / "a.tidemark", "--type", TYPE, "--to", out / "journal.jsonl", "--assets", out / "pictures"]]

    def is_possible(self, found, states, acknowledged):
        # Before the export is complete, it may have any of its files.
        return found == states[-1] if acknowledged else found.split()[:2] == states[0].split()[:2]

    def state(self):
        digest = hashlib.sha256()
        for path in sorted((self.work / "out").glob("**/*")):
            # A file that is being written has such a name. It stays if nothing can be removed any more.
            if path.is_file() and not (path.name.startswith(".") and path.name.endswith(".tmp")):
                digest.update(str(path.relative_to(self.work)).encode() + path.read_bytes())
        return f"{super().state()} {digest.hexdigest()[:16]}"


class DirectorySync(Scenario):
    name, about = "sync-directory", "sends and fetches records by way of a cloud in a directory, whose files go wrong, too"

    def sign_in(self, name, *more):
        well([self.tidemark, "account", "sign-in", self.work / name, "--cloud", self.work / "cloud", "--email", "anna@example.org", *more])

    def sync(self, name):
        return [self.tidemark, "sync", self.work / name, "--patience", "1"]

    def fill(self):
        well(self.imported(self.work / "a.tidemark"))
        self.sign_in("a.tidemark", "--create")
        self.sign_in("b.tidemark")

    def commands(self):
        return [self.sync("a.tidemark"), self.sync("b.tidemark")]

    def repeat(self):
        for name in ["a.tidemark", "b.tidemark", "a.tidemark"]:
            well([self.tidemark, "sync", self.work / name])

    def state(self):
        well([self.tidemark, "admin", "verify", "--data", self.work / "cloud"])
        return self.common(self.containers())

    def state_after_cut(self):
        return None

    def states_of_steps(self):
        return [None] * (len(self.commands()) + 1)


class Download(DirectorySync):
    name, about = "assets-download", "fetches some of the contents that were left in the cloud"

    def fill(self):
        super().fill()
        well(self.sync("a.tidemark"))
        well([*self.sync("b.tidemark"), "--assets", "on-demand"])

    def commands(self):
        return [[self.tidemark, "assets", "download", self.work / "b.tidemark", name] for name in NAMES]

    def repeat(self):
        Scenario.repeat(self)

    def state(self):
        return self.state_after_cut()

    def states_of_steps(self):
        return Scenario.states_of_steps(self)

    def state_after_cut(self):
        """Returns the output of verify, which counts the contents. All must be as the container says."""
        examined = run([self.tidemark, "verify", self.work / "b.tidemark"])
        if examined.code != 0 and not (examined.code == 1 and self.only_strays(examined.output + examined.errors)):
            raise Wrong(str(examined))
        return examined.output


class SignOut(Scenario):
    name, about = "sign-out", "signs a container out, whose records, of which the cloud has none, are set aside"
    is_repeatable = False
    # The first sync of the container's folder makes the quarantine's folder durable.
    switch = ("a.tidemark", 1, 0)

    def fill(self):
        well(self.imported_plain(self.work / "a.tidemark"))
        well([self.tidemark, "account", "sign-in", self.work / "a.tidemark", "--cloud", self.work / "cloud", "--email", "anna@example.org", "--create"])

    def commands(self):
        return [[self.tidemark, "account", "sign-out", self.work / "a.tidemark"]]

    def state(self):
        """Returns the records of the container, and those that are set aside."""
        kept = sorted((self.work / "a.tidemark" / "quarantine").glob("*/quarantine.json"))
        before, self.is_strict = self.is_strict, False
        try:
            # Removed contents reappear if their removal was not synced. Nothing needs them.
            records = self.content(self.work / "a.tidemark").split()[0]
            # Records can be set aside twice if the first command did not end.
            return f"{records} {sorted({self.content(path.parent / 'records.tidemark') for path in kept})}"
        finally:
            self.is_strict = before

    def is_possible(self, found, states, acknowledged):
        # Until the command has ended, the records are in the container, whether or not they are also set aside.
        return found == states[-1] or not acknowledged and found.split()[0] == states[0].split()[0]
