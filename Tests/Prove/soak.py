#!/usr/bin/env python3
"""Lets a served cloud and three devices of two people work for hours under faults, and checks that nothing grows or is lost.

Two devices of Anna and one of Ben run `tidemark sync --watch`. The people edit records, exchange pictures, delete records and make them again, and
both change the records of a share, while Ben's permission changes. All the while watchers and the server are killed, connections are cut, clocks
jump, and the disk of the server or of the devices is full for some seconds. Now and then history older than three minutes is purged, and contents
that nothing names any more are removed.

At intervals the memory, descriptors and threads of each process and the bytes of each folder are recorded. The number of records and pictures that
exist at once stays the same, so nothing may grow: the median of the last quarter is compared with that of the second. At the end all faults stop.
The devices must then finish with equal content. Each durable edit must be there, unless another edit of that field came after or beside it. The
containers and the cloud must be whole.

A full disk needs the right to mount a file system, and jumping clocks need libfaketime. A fault that is not possible is named and left out.

Examples:
  soak.py --tidemark T --server S --probe P --minutes 240
  soak.py --tidemark T --server S --probe P --minutes 10 --only disk --only kill --seed 7
"""

import argparse
import collections
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import killing
from killing import fail
from sync import load

sys.path.append(str(pathlib.Path(__file__).resolve().parent / "Linearizability"))
import signals  # noqa: E402
from disturbances import FAKETIME, Clock, LocalServer, start_server  # noqa: E402

# Exit codes that a command may have during a fault: see Documentation/Reference/ExitCodes.md.
TROUBLE = {69, 71, 73, 74, 75, 77}
SHARED, EXTRAS, EDITED = 10, 100, 200
# The faults, and their weights.
ACTS = {"kill": 4, "server": 2, "cut": 2, "hold": 1, "clock": 2, "disk": 2}
MEGABYTE = 1 << 20
# How much the last quarter may exceed the second: a factor, and a further amount.
GROWTH = {"memory": (1.25, 20 * MEGABYTE), "descriptors": (1.25, 16), "threads": (1.25, 8), "disk": (1.25, 16 * MEGABYTE)}


class Wrong(Exception):
    """Something has happened that must not happen."""


class Disk:
    """A folder that can become full: a file system of its own where that can be mounted."""

    def __init__(self, folder, megabytes):
        folder.mkdir()
        self.folder, self.filler = folder, folder / "filler"
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", folder], capture_output=True)
        self.is_mounted = mounted.returncode == 0

    def fill(self):
        """Writes a file until the disk is full."""
        with open(self.filler, "wb", buffering=0) as file:
            for size in (MEGABYTE, 4096):
                try:
                    while file.write(b"\0" * size) == size:
                        pass
                except OSError:
                    pass

    def clear(self):
        self.filler.unlink(missing_ok=True)

    def end(self):
        if self.is_mounted:
            subprocess.run(["umount", "-l", self.folder], check=False)


class Device:
    """A container with a process that synchronises it. Its commands have a wall clock of their own."""

    def __init__(self, name, options, folder, place):
        self.name, self.container, self.log = name, place / f"{name}.tidemark", folder / f"{name}.log"
        (folder / name).mkdir()
        self.clock = Clock(folder / name / "clock") if FAKETIME else None
        programs = {"tidemark": options.tidemark, "sync-probe": options.probe}
        self.programs = {key: self.clock.wrap(path) if self.clock else path for key, path in programs.items()}
        self.environment = os.environ | (self.clock.environment if self.clock else {}) | {"SWIFT_BACKTRACE": "enable=no"}
        self.watcher, self.lock, self.batch, self.told, self.codes = None, threading.Lock(), 0, [{}, {}], collections.Counter()

    def run(self, program, *arguments, given=None, fine=()):
        """Runs a command, and returns what it prints, or `None` where it ended with one of the codes in `fine`."""
        ended = subprocess.run([self.programs[program], *map(str, arguments)], input=given, capture_output=True, text=True, env=self.environment)
        if ended.returncode not in (0, *fine):
            raise Wrong(f"{self.name}: {program} {' '.join(map(str, arguments[:3]))} ended with {ended.returncode}: {ended.stderr[-2000:]}")
        self.codes[ended.returncode] += 1
        return ended.stdout if ended.returncode == 0 or program == "sync-probe" else None

    def watch(self):
        with open(self.log, "ab") as log:
            self.watcher = subprocess.Popen(
                [self.programs["tidemark"], "sync", self.container, "--watch", "--json"], stdout=subprocess.DEVNULL, stderr=log,
                stdin=subprocess.DEVNULL, env=self.environment)
        self.began = time.monotonic()

    def look(self):
        """Starts the watcher again if a fault has ended it, and returns whether it did."""
        code = self.watcher.poll()
        if code is not None:
            if code not in TROUBLE:
                raise Wrong(f"the watcher of {self.name} ended with {code}: {self.log.read_text(errors='replace')[-2000:]}")
            self.watch()
            return True
        return False

    def kill(self):
        self.watcher.kill()
        self.watcher.wait()
        if self.clock:
            Clock.clean(self.watcher.pid)
        self.watch()

    def end(self):
        """Interrupts the watcher, so that it ends by itself."""
        if self.watcher and self.watcher.poll() is None:
            self.watcher.send_signal(signal.SIGINT)
            try:
                self.watcher.wait(60)
            except subprocess.TimeoutExpired:
                self.watcher.kill()
                raise Wrong(f"the watcher of {self.name} does not end") from None

    def edit(self, seed):
        """Edits records, and records which edits are durable, and which may be."""
        self.batch += 1
        by = f"{self.name}{self.batch}"
        output = self.run("sync-probe", "edit", self.container, "--count", 20, "--seed", seed, "--device", by, "--records", EDITED, fine=(1, *TROUBLE))
        for kind, record, field, number in re.findall(r"^(try|done) (\S+) (\S+) (\d+)$", output, re.M):
            self.told[kind == "done"][record, field] = f"{by} {number}" if field == "caption" else number


class Soak:
    def __init__(self, options, folder, drawn):
        self.options, self.folder, self.drawn = options, folder, drawn
        self.counts, self.samples, self.disks, self.devices = collections.Counter(), collections.defaultdict(list), {}, {}
        self.is_over, self.server = False, None

    # Preparing

    def prepare(self):
        options, folder = self.options, self.folder
        self.disks = {"server": Disk(folder / "cloud", 600), "devices": Disk(folder / "containers", 900)}
        cloud = start_server.Cloud(options.tidemark, self.disks["server"].folder)
        cloud.add_container(start_server.CONTAINER)
        accounts = {name: cloud.add_account(name) for name in ("anna", "ben")}
        self.cloud, self.server = cloud, LocalServer(options.server, folder / "server", cloud.data, self.drawn.getrandbits(32), True)
        self.url = f"http://127.0.0.1:{self.server.proxy.address[1]}"
        manifest = load("kill-import.py").make_data(folder, options.records, 100)
        for name in "abc":
            self.devices[name] = Device(name, options, folder, self.disks["devices"].folder)
        a, b, c = self.devices.values()
        a.run("tidemark", "import", manifest, "--into", a.container, "--type", "Destination", "--id", "id", "--asset", "image")
        for device, person in ((a, "anna"), (b, "anna"), (c, "ben")):
            self.sign_in(device, accounts[person])
        a.run("tidemark", "sync", a.container)
        self.names = names = sorted(json.loads(line)["id"] for line in manifest.read_text().splitlines())
        # The records that are edited come first in the list.
        self.shared, self.with_pictures = names[-SHARED:], names[EDITED:EDITED + 100]
        a.run("tidemark", "share", "create", a.container, *self.shared, "--type", "Destination", "--title", "Soak")
        invitation = a.run("tidemark", "share", "invite", a.container, "Soak", accounts["ben"]["email"], "--json")
        link = re.search(r'"(https?://[^"]+|tidemark://[^"]+)"', invitation)[1]
        c.run("tidemark", "share", "accept", c.container, link.replace("\\/", "/"))
        for device in self.devices.values():
            device.run("tidemark", "sync", device.container)
            device.watch()

    def sign_in(self, device, account):
        device.run("tidemark", "account", "sign-in", device.container, "--server", self.url, "--email", account["email"], "--container",
                   start_server.CONTAINER, "--password-stdin", given=account["password"] + "\n")

    # What people do

    def work(self, device, drawn):
        """Does one random act of a person with a device."""
        name = device.name
        picture = lambda: self.folder / "pictures" / f"{drawn.randrange(100)}.png"  # noqa: E731
        acts = {"edit": 6, "picture": 4, "extra": 4, "shared": 4, "purge": 1} | ({"permission": 2} if name == "a" else {})
        if name == "c":
            acts = {"shared": 10, "purge": 1}
        act = drawn.choices(list(acts), list(acts.values()))[0]
        tidemark = lambda *arguments, more=(): device.run("tidemark", *arguments, fine=(*TROUBLE, *more))  # noqa: E731
        done = True
        if act == "edit":
            device.edit(drawn.getrandbits(32))
        elif act == "picture":
            done = tidemark("records", "set", device.container, drawn.choice(self.with_pictures), f"image={picture()}")
        elif act == "extra":
            extra = f"extra-{drawn.randrange(EXTRAS)}"
            if drawn.random() < 0.5:
                done = tidemark("records", "delete", device.container, extra, more=(66,))
            else:
                done = tidemark("records", "set", device.container, extra, "--type", "Destination", f"caption=of {name}", f"image={picture()}")
        elif act == "shared":
            # The value is not the time, because clocks jump.
            done = tidemark("records", "set", device.container, drawn.choice(self.shared), f"caption={name} {drawn.getrandbits(32)}")
        elif act == "purge":
            device.run("sync-probe", "purge-history", device.container, "--minutes", 3, fine=(1, *TROUBLE))
            done = tidemark("assets", "clean", device.container)
        else:
            permission = drawn.choice(["read-only", "read-write"])
            done = tidemark("share", "set", device.container, "Soak", "ben@example.org", "--permission", permission, "--no-sync")
        self.counts[act if done is not None else f"{act}, refused"] += 1

    def person(self, device, seed):
        drawn = random.Random(seed)
        while not self.is_over:
            try:
                with device.lock:
                    self.work(device, drawn)
            except Exception as error:  # noqa: BLE001
                self.error = error if isinstance(error, Wrong) else Wrong(f"{device.name}: {error!r}")
                return
            time.sleep(drawn.uniform(0, 2 * self.options.pause))

    # Faults

    def disturb(self):
        drawn = self.drawn
        acts = dict(ACTS)
        if not FAKETIME:
            del acts["clock"]
        if not all(disk.is_mounted for disk in self.disks.values()):
            print("no disk is full: a file system can't be mounted", flush=True)
            del acts["disk"]
        if self.options.only:
            acts = {act: weight for act, weight in acts.items() if act in self.options.only}
        print(f"what goes wrong: {', '.join(acts)}", flush=True)
        end = time.monotonic() + self.options.minutes * 60
        while time.monotonic() < end:
            time.sleep(min(drawn.expovariate(1 / self.options.between), max(0, end - time.monotonic())))
            act = drawn.choices(list(acts), list(acts.values()))[0]
            self.counts[f"{act}!"] += 1
            if act == "kill":
                self.devices[drawn.choice("abc")].kill()
            elif act == "server":
                self.server.kill()
                time.sleep(drawn.uniform(0, 3))
                self.start_server()
            elif act == "cut":
                self.server.proxy.cut()
            elif act == "hold":
                self.server.proxy.hold("answers")
                time.sleep(drawn.uniform(1, 10))
                self.server.proxy.let_go()
            elif act == "clock":
                far = self.options.days * 86_400
                drawn.choice([self.server, *self.devices.values()]).clock.set(drawn.choice([0, round(drawn.uniform(-far, far))]))
            else:
                disk = self.disks[drawn.choice(list(self.disks))]
                disk.fill()
                time.sleep(drawn.uniform(2, 15))
                disk.clear()
            self.look()

    def start_server(self):
        """Starts the server. With a full disk that may fail, and is tried again when there is room."""
        self.server.start()
        self.server_began = time.monotonic()

    def look(self):
        if getattr(self, "error", None):
            raise self.error
        code = self.server.server.process.poll()
        if code is not None:
            raise Wrong(f"the server fell by itself: {code}\n{self.server.server.log.read_text(errors='replace')[-3000:]}")
        for device in self.devices.values():
            if device.look():
                self.counts["a watcher ended by itself, with a code for trouble"] += 1

    # Measurements

    def note(self):
        moment = time.monotonic() - self.began
        processes = {"server": (self.server.server.process.pid, self.server_began)}
        processes |= {f"watcher {name}": (device.watcher.pid, device.began) for name, device in self.devices.items()}
        for name, (process, began) in processes.items():
            # A young process is left out, because its caches still fill.
            if time.monotonic() - began < 60:
                continue
            try:
                status = pathlib.Path(f"/proc/{process}/status").read_text()
                self.samples[name, "memory"].append((moment, int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024))
                self.samples[name, "threads"].append((moment, int(re.search(r"Threads:\s+(\d+)", status)[1])))
                self.samples[name, "descriptors"].append((moment, len(os.listdir(f"/proc/{process}/fd"))))
            except (OSError, TypeError):
                continue
        folders = {"cloud": self.cloud.data} | {f"container {name}": device.container for name, device in self.devices.items()}
        for name, folder in folders.items():
            size = 0
            for path in folder.rglob("*"):
                try:
                    size += path.lstat().st_blocks * 512
                except OSError:
                    pass
            self.samples[name, "disk"].append((moment, size))

    def keep_noting(self):
        while not self.is_over:
            try:
                self.note()
            except OSError:
                pass
            time.sleep(self.options.every)

    def growth(self):
        """Prints the medians of the second quarter and of the last, and returns what has grown."""
        grown, length = [], time.monotonic() - self.began
        for (name, what), values in sorted(self.samples.items()):
            quarters = [[value for moment, value in values if part <= moment / length < part + 0.25] for part in (0.25, 0.75)]
            if not all(quarters):
                print(f"{name:14} {what:12} too few samples")
                if self.options.minutes >= 30:
                    grown.append(f"{name}: {what} (too few samples)")
                continue
            before, after = map(statistics.median, quarters)
            factor, more = GROWTH[what]
            unit, by = (" MB", MEGABYTE) if what in ("memory", "disk") else ("", 1)
            is_flat = after <= before * factor + more
            print(f"{name:14} {what:12} {before / by:8.1f}{unit} -> {after / by:8.1f}{unit}, {max(value for _, value in values) / by:8.1f}{unit} at the most"
                  f"{'' if is_flat else '   GROWS'}", flush=True)
            if not is_flat:
                grown.append(f"{name}: {what}")
        return grown

    # The end

    def run(self):
        self.began = self.server_began = time.monotonic()
        threads = [threading.Thread(target=self.person, args=(device, self.drawn.getrandbits(32)), daemon=True) for device in self.devices.values()]
        threads.append(threading.Thread(target=self.keep_noting, daemon=True))
        for thread in threads:
            thread.start()
        try:
            self.disturb()
        finally:
            self.is_over = True
            for disk in self.disks.values():
                disk.clear()
            self.server.proxy.let_go()
        for thread in threads:
            thread.join(300)
            if thread.is_alive():
                raise Wrong("a command does not end")
        self.look()
        missing = [act for act in ("edit", "picture", "extra", "shared", "permission", "purge") if not self.counts[act]]
        if missing and self.options.minutes >= 30:
            raise Wrong(f"never done: {', '.join(missing)}")
        print(", ".join(f"{count} {name}" for name, count in sorted(self.counts.items())), flush=True)
        codes = sum((device.codes for device in self.devices.values()), collections.Counter())
        print("commands ended with " + ", ".join(f"{code}: {count}" for code, count in sorted(codes.items())), flush=True)
        grown = self.growth()
        self.rest()
        if grown:
            raise Wrong(f"grows: {', '.join(grown)}")

    def rest(self):
        """Ends all faults, and compares the devices."""
        for clock in (self.server.clock, *(device.clock for device in self.devices.values())):
            if clock:
                clock.set(0)
        time.sleep(2)
        a, b, c = self.devices.values()
        a.run("tidemark", "share", "set", a.container, "Soak", "ben@example.org", "--permission", "read-write")
        for device in self.devices.values():
            device.end()
        digests = {}
        for _ in range(20):
            for device in (a, b, c):
                device.run("tidemark", "sync", device.container, fine=(75,))
            digests = {device.name: a.run("sync-probe", "digest", device.container).strip() for device in (a, b)}
            shared = {device.name: self.captions(device) for device in (a, c)}
            if len(set(digests.values())) == 1 and digests["a"].endswith(" 0 pending") and shared["a"] == shared["c"]:
                break
        else:
            raise Wrong(f"the devices do not come to rest: {digests}; shared {shared}")
        self.check_edits(a, b)
        self.check_records(a)
        for device in self.devices.values():
            device.run("tidemark", "verify", device.container)
        self.server.end()
        self.cloud.admin("verify")
        print(f"{(time.monotonic() - self.began) / 60:.0f} minutes: {digests['a']}; {SHARED} shared records are equal; nothing is damaged", flush=True)

    def captions(self, device):
        scope = "private" if device.name == "a" else "shared"
        rows = json.loads(device.run("tidemark", "records", device.container, "--type", "Destination", "--scope", scope, "--json"))
        # The store of another person's records has no name field, and its names begin with the type.
        names = [row.get("id") or row["_name"].removeprefix("Destination:") for row in rows]
        return {name: row.get("caption") for name, row in zip(names, rows) if name in self.shared}

    def check_edits(self, *devices):
        values = {}
        for line in devices[0].run("sync-probe", "digest", devices[0].container, "--values").splitlines():
            parts = line.split("\t")
            if len(parts) == 3:
                values[parts[0]] = {"caption": parts[1], "rating": parts[2]}
        keys = {key for device in devices for key in device.told[True]}
        if not keys:
            raise Wrong("no edit was told durable")
        for name, field in keys:
            allowed = {told[name, field] for device in devices for told in device.told if (name, field) in told}
            if values.get(name, {}).get(field) not in allowed:
                raise Wrong(f"an edit was lost: {name} {field} is {values.get(name)}, and the last ones were {allowed}")
        print(f"{len(keys)} fields as edited last", flush=True)

    def check_records(self, device):
        """Checks that no record is missing that nobody has deleted."""
        lines = device.run("sync-probe", "digest", device.container, "--values").splitlines()
        lost = set(self.names) - {line.split("\t")[0].removeprefix("Destination:") for line in lines if line.count("\t") == 2}
        if lost:
            raise Wrong(f"{len(lost)} records are gone that nobody has deleted: {sorted(lost)[:5]}")

    def end(self):
        for device in self.devices.values():
            if device.watcher and device.watcher.poll() is None:
                device.watcher.kill()
                device.watcher.wait()
        if self.server:
            self.server.end()
        for disk in self.disks.values():
            disk.end()


def main():
    program = lambda path: pathlib.Path(path).resolve()  # noqa: E731
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tidemark", required=True, type=program, help="the command-line tool")
    parser.add_argument("--server", required=True, type=program, help="the server")
    parser.add_argument("--probe", required=True, type=program, help="the program sync-probe")
    parser.add_argument("--minutes", type=float, default=240, help="how long to go on (240)")
    parser.add_argument("--records", type=int, default=2000, help="records (2,000)")
    parser.add_argument("--pause", type=float, default=3, help="seconds between two acts of a person, on average (3)")
    parser.add_argument("--between", type=float, default=20, help="seconds between two troubles, on average (20)")
    parser.add_argument("--every", type=float, default=10, help="seconds between two notes of memory and disk (10)")
    parser.add_argument("--days", type=float, default=5, help="how far wall clocks jump, at the most (5)")
    parser.add_argument("--only", action="append", default=[], choices=ACTS, help="let only this go wrong")
    parser.add_argument("--folder", type=pathlib.Path, help="where to work; emptied at the end (a temporary folder)")
    parser.add_argument("--seed", type=int, help="draws the same acts again")
    options = parser.parse_args()
    signals.end_in_order()
    seed, drawn = killing.draw(options)
    if not FAKETIME:
        print("clocks don't jump: faketime is not installed", flush=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tidemark-soak-", dir=options.folder))
    soak, is_kept = Soak(options, folder, drawn), False
    try:
        soak.prepare()
        soak.run()
    except Wrong as error:
        is_kept = True
        if soak.disks and any(disk.is_mounted for disk in soak.disks.values()):
            # The files on a mounted file system would be lost when it is unmounted.
            for name, disk in soak.disks.items():
                shutil.copytree(disk.folder, folder / f"left-{name}", ignore_dangling_symlinks=True, dirs_exist_ok=True)
        log = folder / "server" / "server.log"
        fail(f"{error} (seed {seed}); what is left is in {folder}\n{log.read_text(errors='replace')[-2000:] if log.exists() else ''}")
    finally:
        soak.end()
        if not is_kept:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
