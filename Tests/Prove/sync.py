#!/usr/bin/env python3
"""Synchronises two containers through one cloud, each in processes of its own, while both are edited, and checks that they end equal.

First the records and pictures of one container are fetched by the other, and the digests of all records are compared. Then both are edited at the
same time and synchronised, under each merge policy. The stores must end equal. At last the same is done with a cloud that fails, and with both
syncing processes killed at random moments. Each durable edit must be there, unless another edit of that field came after or beside it. Nothing may
be there twice, the stores must end equal, and `tidemark verify` must find nothing.

With --server the cloud is behind a server on this machine. The server is sometimes killed as well, and started again on the same port. Each device
has a session of its own, in its container.
"""

import importlib.util
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import killing
from killing import fail, finish

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "Interop"))
import signals  # noqa: E402
import start_server  # noqa: E402

POLICIES = ["mergeByPropertyObjectTrump", "mergeByPropertyStoreTrump", "overwrite", "rollback", "latestEdit"]


def load(name):
    path = pathlib.Path(__file__).with_name(name)
    spec = importlib.util.spec_from_file_location(path.stem.replace("-", "_"), path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Directory:
    """A cloud in a directory that both devices open."""

    def __init__(self, options, folder):
        self.tidemark, self.place = options.tidemark, folder / "cloud"

    def sign_in(self, devices):
        # The probe needs no sign-in. This command also makes the other container.
        finish([self.tidemark, "account", "sign-in", devices.containers["b"], "--cloud", self.place, "--email", "anna@example.org", "--create"])

    def words(self, container):
        return ["--cloud", self.place]

    def stop(self):
        pass


def sign_in(tidemark, devices, url, account, *more):
    """Signs both devices in to an account of a server."""
    for container in devices.containers.values():
        killing.finish_with(
            [tidemark, "account", "sign-in", container, "--server", url, "--email", account["email"], "--container", start_server.CONTAINER,
             "--password-stdin", *more], account["password"] + "\n")


class Served:
    """A cloud behind a server. The devices know its address and have sessions."""

    def __init__(self, options, folder):
        self.options, self.folder, self.kills = options, folder, 0
        self.cloud = start_server.Cloud(options.tidemark, folder)
        self.cloud.add_container(start_server.CONTAINER)
        self.account = self.cloud.add_account("anna")
        self.server = self.start()

    def start(self, port=0):
        return start_server.Server(self.options.server, self.folder, self.cloud.data, *start_server.UNLIMITED, "--log-level", "warning", port=port)

    def sign_in(self, devices):
        sign_in(self.options.tidemark, devices, self.server.url, self.account)

    def words(self, container):
        return ["--server", self.server.url, "--session", container / "cloud-session", "--cloud-container", start_server.CONTAINER]

    def restart(self, pause):
        """Kills the server, and starts it again at the same address after a pause."""
        if self.server.process.poll() is not None:
            fail(f"the server fell by itself: {self.server.process.returncode}\n{self.server.log.read_text(errors='replace')[-2000:]}")
        port = self.server.port
        self.server.kill()
        self.kills += 1
        time.sleep(pause)
        self.server = self.start(port)

    def stop(self):
        if self.server.stop() != 0:
            fail(f"the server ended with {self.server.process.returncode}")


class Devices:
    def __init__(self, options, folder, cloud):
        self.probe, self.tidemark, self.cloud = options.probe, options.tidemark, cloud
        self.containers = {name: folder / f"{name}.tidemark" for name in "ab"}

    def sync(self, name, policy, faults=0.0, seed=1, forever=False):
        container = self.containers[name]
        command = [self.probe, "sync", container, *self.cloud.words(container), "--policy", policy, "--faults", str(faults), "--seed", str(seed)]
        return command + (["--forever"] if forever else [])

    def edit(self, name, count, seed, pause=0):
        return [self.probe, "edit", self.containers[name], "--count", str(count), "--seed", str(seed), "--device", name,
                "--pause", str(pause)]

    def digest(self, name):
        text = finish([self.probe, "digest", self.containers[name]]).strip()
        if not text.endswith(" 0 pending"):
            fail(f"{name} has something left to send: {text}")
        return text

    def sync_all(self, policy):
        """Synchronises both devices in turn until neither fetches anything."""
        for _ in range(10):
            outputs = [finish(self.sync(name, policy)).split() for name in "ab"]
            if all(output[1:3] == ["0", "0"] for output in outputs):
                return
        fail(f"they do not come to rest: {outputs}")

    def compare(self, what):
        digests = {name: self.digest(name) for name in "ab"}
        if digests["a"] != digests["b"]:
            fail(f"{what}: the stores differ: {digests}")
        return digests["a"]

    def verify(self):
        for name in "ab":
            finish([self.tidemark, "verify", self.containers[name]])


class Editors:
    """A process for each device that edits, and writes what it does into a file. A pipe would stop the process as soon as it is full."""

    def __init__(self, devices, count, seed, pause=0):
        self.outputs = {name: tempfile.TemporaryFile("w+") for name in "ab"}
        self.processes = {name: subprocess.Popen(devices.edit(name, count, seed + index, pause), stdout=self.outputs[name])
                          for index, name in enumerate("ab")}

    def are_running(self):
        return any(process.poll() is None for process in self.processes.values())

    def edits(self):
        """Returns for each device the last durable value of each field, and the last value that may be durable."""
        return {name: self.read(name) for name in self.processes}

    def interrupt(self):
        """Kills both processes, which must still be editing, and returns the same as ``edits()``."""
        for name, process in self.processes.items():
            if process.poll() is not None:
                fail(f"the editor of {name} ended before its time with {process.returncode}")
        self.end()
        return {name: self.read(name, expected=-signal.SIGKILL) for name in self.processes}

    def end(self):
        for process in self.processes.values():
            process.kill()
            process.wait()

    def read(self, name, expected=0):
        if self.processes[name].wait() != expected:
            fail(f"the editor of {name} ended with {self.processes[name].returncode}")
        with self.outputs[name] as output:
            output.seek(0)
            text = output.read()
        durable, begun = {}, {}
        for kind, record, field, number in re.findall(r"^(try|done) (\S+) (\S+) (\d+)$", text, re.M):
            (begun if kind == "try" else durable)[record, field] = int(number)
        return durable, begun


def check_edits(devices, told):
    """Checks that each field has the last durable value of one of the devices, or a later one that may be durable. Returns the number of fields."""
    values = finish([devices.probe, "digest", devices.containers["a"], "--values"])
    found = {}
    for line in values.splitlines():
        parts = line.split("\t")
        if len(parts) == 3:
            if parts[0] in found:
                fail(f"{parts[0]} is there twice")
            found[parts[0]] = {"caption": parts[1], "rating": parts[2]}
    fields = {key for durable, _ in told.values() for key in durable}
    for name, field in fields:
        allowed = set()
        for device, (durable, begun) in told.items():
            for numbers in (durable, begun):
                number = numbers.get((name, field))
                if number is not None:
                    allowed.add(f"{device} {number}" if field == "caption" else str(number))
        if name not in found or found[name][field] not in allowed:
            fail(f"an edit was lost: {name} {field} is {found.get(name)}, and the last ones were {allowed}")
    return len(fields)


def main():
    found = killing.parser(__doc__, kills=100, records=50_000, pictures=500)
    found.add_argument("--probe", required=True, type=lambda path: pathlib.Path(path).resolve(), help="the program sync-probe")
    found.add_argument("--server", type=lambda path: pathlib.Path(path).resolve(), help="the program tidemark-server: has the cloud behind it")
    found.add_argument("--edits", type=int, default=1000, help="edits on each side (1,000)")
    found.add_argument("--faults", type=float, default=0.2, help="of all requests, how many go wrong (0.2)")
    options = found.parse_args()
    signals.end_in_order()
    seed, drawn = killing.draw(options)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tidemark-sync-", dir=options.folder))
    cloud = None
    try:
        cloud = Served(options, folder) if options.server else Directory(options, folder)
        run(options, folder, drawn, cloud)
        cloud.stop()
    finally:
        if options.server and cloud is not None and cloud.server.process.poll() is None:
            cloud.server.kill()
        shutil.rmtree(folder, ignore_errors=True)


def run(options, folder, drawn, cloud):
    devices = Devices(options, folder, cloud)
    manifest = load("kill-import.py").make_data(folder, options.records, options.pictures)
    finish([options.tidemark, "import", manifest, "--into", devices.containers["a"], "--type", "Destination", "--id", "id", "--asset", "image"])
    cloud.sign_in(devices)
    start = time.monotonic()
    finish(devices.sync("a", POLICIES[0]))
    sent = time.monotonic()
    finish(devices.sync("b", POLICIES[0]))
    print(f"{options.records:,} records and {options.pictures:,} pictures: sent in {sent - start:.1f} s, fetched in "
          f"{time.monotonic() - sent:.1f} s; {devices.compare('after the first sync')}", flush=True)

    for policy in POLICIES:
        editors = Editors(devices, options.edits, drawn.getrandbits(32))
        # Both synchronise again and again during the edits.
        while editors.are_running():
            for name in "ab":
                killing.kill_after(devices.sync(name, policy), 60)
        told = editors.edits()
        devices.sync_all(policy)
        devices.compare(policy)
        counted = check_edits(devices, told) if policy in ("mergeByPropertyObjectTrump", "latestEdit") else 0
        print(f"{options.edits:,} edits on each side under {policy}: equal" + (f", {counted} fields as edited last" if counted else ""), flush=True)

    kills = {"a": 0, "b": 0}
    told = {}
    policy = POLICIES[0]
    rounds = 0
    while min(kills.values()) < options.kills:
        rounds += 1
        editors = Editors(devices, options.edits, drawn.getrandbits(32), pause=2)
        running = {}
        while editors.are_running():
            for name in "ab":
                running[name] = killing.start(devices.sync(name, policy, options.faults, drawn.getrandbits(32), forever=True))
            time.sleep(drawn.uniform(0.02, 0.6))
            for name in drawn.sample("ab", 2):
                running[name].kill()
                running[name].communicate()
                kills[name] += 1
                time.sleep(drawn.uniform(0, 0.05))
                # The other device may still be syncing, or may have been killed already.
                if options.server and drawn.random() < 0.1:
                    cloud.restart(drawn.uniform(0, 0.3))
        told = editors.edits()
        devices.sync_all(policy)
        devices.compare("after kills and faults")
        counted = check_edits(devices, told)
        print(f"round {rounds}: {kills['a']} and {kills['b']} kills, {counted} fields as edited last, equal", flush=True)
    devices.verify()
    fallen = f" and {cloud.kills} of the server" if options.server else ""
    print(f"{sum(kills.values())} kills{fallen}, {options.faults:.0%} of requests gone wrong: no edit lost, nothing twice, {devices.compare('at the end')}")


if __name__ == "__main__":
    main()
