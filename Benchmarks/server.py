#!/usr/bin/env python3
"""Measures a served cloud: client and server on the same cores, over loopback, TLS off. See README.md."""

import argparse
import json
import pathlib
import random
import shutil
import sqlite3
import subprocess
import sys
import time

from runner import preparing
from runner.goals import Goals
from runner.measuring import Failure

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "Tests" / "Interop"))
import signals  # noqa: E402
import start_server  # noqa: E402

BATCH = 200
ZONES = ["load", "shown"]
MODES = "modify,lookup,rates,idle,slow,assets,floor"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tidemark", required=True, type=lambda path: pathlib.Path(path).resolve(), help="the command-line tool, release build")
    parser.add_argument("--server", required=True, type=lambda path: pathlib.Path(path).resolve(), help="the server, release build")
    parser.add_argument("--data", required=True, type=pathlib.Path, help="where clouds and programs go")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="rounds, each with a fresh cloud (5)")
    parser.add_argument("--seconds", type=float, default=8, metavar="N", help="of each measurement (8)")
    parser.add_argument("--records", type=int, default=100_000, metavar="N", help="records that are looked up (100,000)")
    parser.add_argument("--idle", type=int, default=5_000, metavar="N", help="connections that stay (5,000)")
    parser.add_argument("--slow", type=int, default=3_000, metavar="N", help="connections that are slow (3,000)")
    parser.add_argument("--bytes", type=int, default=200_000_000, metavar="N", help="of assets (200,000,000)")
    parser.add_argument("--only", default=MODES, metavar="NAME,...", help=MODES)
    parser.add_argument("--smoke", action="store_true", help="measure everything once with little, and print no figures")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write everything measured to FILE")
    options = parser.parse_args()
    if options.smoke:
        options.runs, options.seconds, options.records = 1, 1, 1_000
        options.idle, options.slow, options.bytes = 50, 20, 20_000_000
    return options


def build(binaries):
    """Builds the load driver, unless it exists and is newer than its source. Returns its path."""
    source, target = HERE / "server" / "load.c", binaries / "load"
    binaries.mkdir(parents=True, exist_ok=True)
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        preparing.compile_step(["cc", "-std=gnu17", "-O2", "-march=native", "-Wall", "-Wextra", source, "-lcrypto", "-lm", "-o", target])
    return target


class Bench:
    """A server over a fresh cloud, and the load on it."""

    def __init__(self, options, load, place, cloud=None):
        """`cloud` must not have a container yet. By default it is a directory in `place`."""
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        self.options, self.load, self.place = options, load, place
        self.cloud = cloud = cloud or start_server.Cloud(options.tidemark, place)
        cloud.add_container(start_server.CONTAINER)
        account = cloud.add_account("anna")
        self.server = start_server.Server(
            options.server, place, cloud.place, *start_server.UNLIMITED, "--log-level", "warning", environment=cloud.environment)
        self.peak = 0.0
        self.enter(account, ZONES)

    def enter(self, account, zones):
        """Signs in to an account, and makes its zones."""
        self.token = self.server.sign_in(account)["token"]
        base = f"/{start_server.CONTAINER}/development/private"
        self.addresses = ["--port", str(self.server.port), "--base", "/database/1" + base, "--own", "/tidemark/1" + base, "--token", self.token]
        self.server.post("/database/1" + base + "/zones/modify", {"operations": [
            {"operationType": "create", "zone": {"zoneID": {"zoneName": name}}} for name in zones]}, {"Authorization": f"Bearer {self.token}"})

    def start(self, mode, **given):
        arguments = [part for name, value in given.items() for part in (f"--{name.replace('_', '-')}", str(value))]
        process = subprocess.Popen([self.load, mode, *self.addresses, *arguments], stdout=subprocess.PIPE, text=True)
        signals.kill_at_exit(process)
        return process

    def finish(self, process, mode):
        output, _ = process.communicate()
        if process.returncode != 0:
            raise Failure(f"load {mode} ended with {process.returncode}: {output[-500:]}\n{self.server.log.read_text(errors='replace')[-1500:]}")
        self.peak = max(self.peak, self.memory("VmHWM"))
        return json.loads(output.splitlines()[-1])

    def run(self, mode, **given):
        return self.finish(self.start(mode, **given), mode)

    def memory(self, name):
        """Returns a value of the kernel in megabytes: `VmRSS` is the memory now, `VmHWM` the peak so far."""
        for line in pathlib.Path(f"/proc/{self.server.process.pid}/status").read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1]) / 1024
        raise Failure("the server is gone")

    def processor(self):
        """Returns the processor seconds of the server so far."""
        fields = pathlib.Path(f"/proc/{self.server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / 100


def measure(bench, options, report):
    """Measures one round on a fresh cloud."""
    wanted, seconds = set(options.only.split(",")), options.seconds
    note = lambda name, value: report.setdefault(name, []).append(value)
    seeded = bench.run("modify", records=options.records, connections=4, zone="shown", answer="tags")
    note("seeding, records/s", seeded["records/s"])
    rates = {}
    if "modify" in wanted:
        first = 10_000_000
        for answer in ("all", "tags"):
            before = bench.processor()
            done = bench.run("modify", connections=4, seconds=seconds, first=first, answer=answer)
            first = done["next"]
            note(f"modify ({answer}), records/s", done["records/s"])
            note(f"modify ({answer}), µs of the server's processor a record", (bench.processor() - before) * 1e6 / max(1, done["records"]))
        rates["modify"] = done["next"]
    if "lookup" in wanted:
        before = bench.processor()
        done = bench.run("lookup", connections=16, seconds=seconds, zone="shown", records=options.records)
        note("lookup, requests/s", done["requests/s"])
        note("lookup, µs of the server's processor", (bench.processor() - before) * 1e6 / max(1, done["requests"]))
    if "rates" in wanted:
        # The rates are half of the goals, so that they are the same on faster machines.
        done = bench.run("lookup", connections=64, seconds=seconds, rate=3_000, zone="shown", records=options.records)
        for name in ("p50", "p99", "max"):
            note(f"lookup at 3,000/s, {name}", done[name])
        done = bench.run("modify", connections=16, seconds=seconds, rate=7_500 / BATCH, first=rates.get("modify", 20_000_000))
        for name in ("p50", "p99", "max"):
            note(f"modify at 7,500 records/s, {name}", done[name])
    if "idle" in wanted:
        before = bench.memory("VmRSS")
        idle = bench.start("idle", connections=options.idle, seconds=max(5, seconds), zone="shown", records=options.records)
        time.sleep(max(5, seconds) * 0.8)
        note("idle, MB more", bench.memory("VmRSS") - before)
        done = bench.finish(idle, "idle")
        note("idle, usable", done["usable"])
        note("idle, closed", done["closed"])
    if "slow" in wanted:
        quiet = bench.run("lookup", connections=16, seconds=seconds, rate=1_000, zone="shown", records=options.records)
        note("quiet, p99", quiet["p99"])
        for beat in ("apart", "together"):
            # This is long enough for the server to give up on unfinished heads, and for the clients to connect again.
            slow = bench.start("slow", connections=options.slow, seconds=4 if options.smoke else max(25, 2 * seconds + 4), zone="shown", beat=beat)
            slow.stdout.readline()
            time.sleep(2)
            busy = bench.run("lookup", connections=16, seconds=1 if options.smoke else max(12, seconds), rate=1_000, zone="shown", records=options.records)
            done = bench.finish(slow, "slow")
            note(f"among slow ones {beat}, p99", busy["p99"])
            note(f"among slow ones {beat} ÷ quiet, p99", busy["p99"] / quiet["p99"])
            note("slow heads, closed after", max(done["headers"]["longest"], done["headers"]["oldest open"]))
            note("slow bodies, closed after", max(done["body"]["longest"], done["body"]["oldest open"]))
    if "assets" in wanted:
        for mode in ("upload", "download"):
            done = bench.run(mode, connections=2, bytes=options.bytes)
            note(f"{mode}, MB/s", done["MB/s"])
    note("peak memory, MB", bench.peak)


def measure_floor(place, options, report):
    """Measures how fast SQLite alone saves such records: 1.1 KB each, in durable transactions of 200."""
    path = place / "floor.sqlite"
    path.unlink(missing_ok=True)
    database = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode = WAL", "synchronous = FULL"):
        database.execute("PRAGMA " + pragma)
    database.execute("CREATE TABLE records (id INTEGER PRIMARY KEY, name TEXT UNIQUE, fields BLOB, changed INTEGER)")
    drawn = random.Random(1)
    rows = [(f"{drawn.getrandbits(128):032x}", drawn.randbytes(drawn.randrange(250, 2050)), number) for number in range(40_000)]
    began = time.monotonic()
    for first in range(0, len(rows), BATCH):
        database.execute("BEGIN IMMEDIATE")
        database.executemany("INSERT INTO records (name, fields, changed) VALUES (?, ?, ?)", rows[first:first + BATCH])
        database.execute("COMMIT")
    report.setdefault("floor, records/s", []).append(len(rows) / (time.monotonic() - began))
    database.close()
    path.unlink()


def print_table(report, options):
    """Prints what was measured, and returns the goals."""
    goals = Goals("server.py", options.smoke)
    goals.heading()

    def row(key, name, *rest, **more):
        if key in report:
            goals.line(name, report[key], *rest, **more)

    for answer, words in (("all", "whole records answered"), ("tags", "only tags answered")):
        row(f"modify ({answer}), records/s", f"modify in batches of {BATCH}, {words}", "≥ 15,000 records/s", lambda it: it >= 15_000, unit="/s")
        row(f"modify ({answer}), µs of the server's processor a record", "  the server's processor, a record", unit=" µs")
    row("floor, records/s", "SQLite alone, from Python, in durable transactions as large", unit="/s")
    row("lookup, requests/s", "look-ups of one record", "≥ 6,000/s", lambda it: it >= 6_000, unit="/s")
    row("lookup, µs of the server's processor", "  the server's processor, a look-up", unit=" µs")
    for what, name in (("lookup at 3,000/s", "look-ups, 3,000/s"), ("modify at 7,500 records/s", "modify, 7,500 records/s")):
        row(f"{what}, p50", f"{name}, p50", unit=" ms")
        row(f"{what}, p99", f"{name}, p99", "≤ 20 ms", lambda it: it <= 20, unit=" ms")
        row(f"{what}, max", f"{name}, max", unit=" ms")
    row("idle, usable", f"of {options.idle:,} connections that rest, usable at the end", f"{options.idle:,}", lambda it: it == options.idle)
    row("idle, MB more", "  memory that they take", unit=" MB")
    row("quiet, p99", "look-ups, 1,000/s, p99", unit=" ms")
    row("among slow ones apart, p99", f"the same among {options.slow:,} slow connections, p99", unit=" ms")
    row("among slow ones apart ÷ quiet, p99", "  ÷ the same alone", "≤ 3", lambda it: it <= 3)
    row("among slow ones together, p99", "the same among as many that all send at one moment, p99", unit=" ms")
    row("among slow ones together ÷ quiet, p99", "  ÷ the same alone")
    row("slow heads, closed after", "  slow heads are closed after", "≤ 15 s", lambda it: it <= 15, unit=" s")
    row("slow bodies, closed after", "  slow bodies, closed after or oldest", unit=" s")
    for mode in ("upload", "download"):
        row(f"{mode}, MB/s", f"{options.bytes / 1e6:,.0f} MB of assets, {mode}", "≥ 300 MB/s", lambda it: it >= 300, unit=" MB/s")
    row("peak memory, MB", "peak memory of the server", "≤ 300 MB", lambda it: it <= 300, unit=" MB")
    return goals


def main():
    options = parse_arguments()
    signals.end_in_order()
    options.data.mkdir(parents=True, exist_ok=True)
    load, place, report = build(options.data.resolve() / "bin"), options.data.resolve() / "server", {}
    try:
        for round in range(options.runs):
            bench = Bench(options, load, place)
            try:
                measure(bench, options, report)
            finally:
                bench.server.stop()
            if "floor" in options.only:
                measure_floor(place, options, report)
            print(f"round {round + 1} of {options.runs}", file=sys.stderr, flush=True)
    except Failure as error:
        sys.exit(f"server.py: {error}")
    goals = print_table(report, options)
    if options.json:
        options.json.write_text(json.dumps(report, indent=1, sort_keys=True, ensure_ascii=False))
    shutil.rmtree(place)
    goals.end()


if __name__ == "__main__":
    main()
