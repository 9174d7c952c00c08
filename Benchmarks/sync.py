#!/usr/bin/env python3
"""Measures the synchronisation beside what SQLite alone would take, and how soon edits arrive. See README.md."""

import argparse
import json
import math
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import time

from runner import preparing
from runner.goals import Goals

BATCH = 400


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tidemark", required=True, type=pathlib.Path, help="the command-line tool, release build")
    parser.add_argument("--data", required=True, type=pathlib.Path, help="where data, programs and databases go")
    parser.add_argument("--records", type=int, default=200_000, metavar="N", help="records (200,000)")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="rounds (5)")
    parser.add_argument("--edits", type=int, default=300, metavar="N", help="edits that travel from one process to another (300)")
    parser.add_argument("--large", type=int, default=0, metavar="N", help="records of one more upload and fetch, for the memory (none)")
    parser.add_argument("--program", type=pathlib.Path, metavar="FILE", help="the program sync-bench, if it is built already")
    parser.add_argument("--only", metavar="NAME,...", default="floor,edits,wait,merge", help="floor, edits, wait, merge")
    parser.add_argument("--smoke", action="store_true", help="measure everything once with little, and print no figures")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write everything measured to FILE")
    options = parser.parse_args()
    if options.smoke:
        # These are few enough to be sent soon, and enough for edits during the upload.
        options.records, options.runs, options.edits, options.large = 4_000, 1, 5, 400
    return options


def build(data):
    scratch = data / "store-bench"
    folder = pathlib.Path(__file__).resolve().parent
    subprocess.run(["swift", "build", "-c", "release", "--product", "sync-bench", "--scratch-path", scratch],
                   cwd=folder, check=True, stdout=sys.stderr)
    return scratch / "release" / "sync-bench"


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def timed(command):
    """Runs a command, and returns its seconds, its processor seconds and its peak memory in MB."""
    start = time.monotonic()
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{command} ends with {process.returncode}")
    return {"seconds": time.monotonic() - start, "processor": usage.ru_utime + usage.ru_stime, "MB": usage.ru_maxrss / 1024}


class Bench:
    def __init__(self, options):
        self.tidemark = options.tidemark.resolve()
        self.place = options.data.resolve() / "sync"
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir(parents=True)

    def run(self, *arguments):
        subprocess.run(list(map(str, [self.tidemark, *arguments])), check=True, stdout=subprocess.DEVNULL)

    def make(self, manifest, name):
        container = self.place / f"{name}.tidemark"
        self.run("import", manifest, "--into", container, "--type", "Destination", "--id", "id")
        return container

    def devices(self, template=None):
        """Returns two containers that are signed in with a new cloud, one with the template's records and one empty, and the cloud's place."""
        for name in ("A.tidemark", "B.tidemark", "cloud"):
            shutil.rmtree(self.place / name, ignore_errors=True)
        one, other, cloud = self.place / "A.tidemark", self.place / "B.tidemark", self.place / "cloud"
        if template:
            shutil.copytree(template, one)
        for container in (one, other):
            self.run("account", "sign-in", container, "--cloud", cloud, "--email", "anna@example.org", "--create")
        os.sync()
        return one, other, cloud

    def sync(self, container):
        return timed([self.tidemark, "sync", container])

    def check(self, container, records):
        with sqlite3.connect(f"file:{container}/private.sqlite?mode=ro", uri=True) as database:
            count, = database.execute("SELECT count(*) FROM Destination WHERE _tag IS NOT NULL AND _pending IS NULL").fetchone()
        if count != records:
            sys.exit(f"{container} has {count} records that the cloud has as they are, not {records}")


def measure_floor(program, place, records):
    folder = place / "floor"
    shutil.rmtree(folder, ignore_errors=True)
    os.sync()
    lines = subprocess.run([program, "sync", folder, "--records", str(records)], check=True, capture_output=True, text=True).stdout
    shutil.rmtree(folder)
    return {line.split()[0]: float(line.split()[1]) for line in lines.splitlines()}


def measure_bulk(bench, floor, manifest, options, report):
    template = bench.make(manifest, "template")
    for _ in range(options.runs):
        plain = measure_floor(floor, bench.place, options.records)
        one, other, _ = bench.devices(template)
        sent, fetched = bench.sync(one), bench.sync(other)
        bench.check(one, options.records)
        bench.check(other, options.records)
        report["export ÷ floor"].append(sent["seconds"] / plain["export"])
        report["fetch ÷ floor"].append(fetched["seconds"] / plain["fetch"])
        report["export"].append(sent)
        report["fetch"].append(fetched)
        report["floor"].append(plain)


def measure_edits(bench, program, edits):
    """Returns the milliseconds from the return of a save in one process until another process hears of it, and how many were lost. A third and a
    fourth process synchronise the two containers."""
    one, other, _ = bench.devices()
    subprocess.run([program, "edit", one, "1", "0"], check=True, capture_output=True)
    bench.sync(one)
    bench.sync(other)
    watching = [subprocess.Popen([bench.tidemark, "sync", container, "--watch"], stdout=subprocess.DEVNULL) for container in (one, other)]
    listener = subprocess.Popen([program, "hear", other], stdout=subprocess.PIPE, text=True)
    listener.stdout.readline()
    time.sleep(1)
    told = subprocess.run([program, "edit", one, str(edits), "100"], check=True, capture_output=True, text=True).stdout
    saved = {line.split()[0]: int(line.split()[2]) for line in told.splitlines()}
    time.sleep(2)
    for process in (*watching, listener):
        process.terminate()
        process.wait()
    heard = {line.split()[0]: int(line.split()[1]) for line in listener.stdout}
    return [(heard[name] - saved[name]) / 1e6 for name in saved if name in heard], len(saved) - sum(name in heard for name in saved)


def measure_wait(bench, program, manifest_store, is_smoke):
    """Returns, for edits during a bulk upload, the batches that are sent between an edit's save and the batch with the edit, and the times of the saves."""
    one, _, cloud = bench.devices(manifest_store)
    records = next(cloud.glob("containers/*/development")) / "records.sqlite"
    upload = subprocess.Popen([bench.tidemark, "sync", one], stdout=subprocess.DEVNULL)
    # A smoke test has few records, which are sent soon.
    time.sleep(0.2 if is_smoke else 2)
    editing = subprocess.Popen([program, "edit", one, "1000", "20" if is_smoke else "300"], stdout=subprocess.PIPE, text=True)
    database = sqlite3.connect(f"file:{records}?mode=ro", uri=True, isolation_level=None)
    edits, times = {}, []
    while upload.poll() is None:
        name, start, end = editing.stdout.readline().split()
        edits[name], = database.execute("SELECT max(change) FROM owners").fetchone()
        times.append((int(end) - int(start)) / 1e6)
    editing.terminate()
    editing.wait()
    # Edits that are saved after the end of the upload need another synchronisation, and don't count.
    last, = database.execute("SELECT max(change) FROM owners").fetchone()
    bench.sync(one)
    changes = {
        name: row[0] for name in edits if (row := database.execute("SELECT changed FROM records WHERE name = ?", (name,)).fetchone())
    }
    waits = [math.ceil((changes[name] - 1 - change) / BATCH) for name, change in edits.items() if changes.get(name, last + 1) <= last]
    if not waits or len(changes) < len(edits):
        sys.exit(f"of {len(edits)} edits during a bulk upload {len(changes)} have reached the cloud, {len(waits)} of them with it")
    return waits, times


def main():
    options = parse_arguments()
    wanted = options.only.split(",")
    options.data.mkdir(parents=True, exist_ok=True)
    binaries = options.data.resolve() / "bin"
    preparing.build(binaries, ["floor", "generate"])
    program = options.program.resolve() if options.program else build(options.data.resolve())
    bench = Bench(options)
    folder = options.data.resolve() / f"{options.records // 1000}k-bare"
    preparing.make_data(binaries, folder, options.records, 0, bare=True)
    manifest = folder / "records-nopictures.jsonl"
    report = {name: [] for name in ("export ÷ floor", "fetch ÷ floor", "export", "fetch", "floor")}
    goals = Goals("sync.py", options.smoke)
    goals.heading()
    if "floor" in wanted:
        measure_bulk(bench, binaries / "floor", manifest, options, report)
        goals.line(f"{options.records:,} records exported ÷ floor", report["export ÷ floor"], "≤ 3", lambda it: it <= 3)
        goals.line("the same fetched ÷ floor", report["fetch ÷ floor"], "≤ 3", lambda it: it <= 3)
        for name in ("export", "fetch"):
            goals.line(f"peak memory, {name}", [it["MB"] for it in report[name]], "≤ 200 MB", lambda it: it <= 200, " MB")
            goals.line(f"processor time, {name}", [it["processor"] for it in report[name]], unit=" s")
            goals.line(f"time, {name}", [it["seconds"] for it in report[name]], unit=" s")
            goals.line(f"time, {name}, floor", [it[name] for it in report["floor"]], unit=" s")
    if "edits" in wanted:
        times, lost = measure_edits(bench, program, options.edits)
        report["edit, ms"] = {"p50": quantile(times, 0.5), "p99": quantile(times, 0.99), "lost": lost}
        goals.line("an edit on A visible on B, two processes, p50", [quantile(times, 0.5)], unit=" ms")
        goals.line("the same, p99", [quantile(times, 0.99)], "≤ 50 ms", lambda it: it <= 50, " ms")
        goals.line(f"of {options.edits:,} edits lost", [lost], "0", lambda it: it == 0)
    if "wait" in wanted:
        template = bench.place / "template.tidemark"
        waits, times = measure_wait(bench, program, template if template.exists() else bench.make(manifest, "template"), options.smoke)
        report["wait, batches"], report["save meanwhile, ms"] = waits, times
        goals.line(f"batches that {len(waits)} edits wait during a bulk upload, greatest", [max(waits)], "≤ 2", lambda it: it <= 2)
        goals.line("the same, median", waits, "≤ 2", lambda it: it <= 2)
        goals.line("a save meanwhile", times, unit=" ms")
    if "merge" in wanted:
        merges = subprocess.run([program, "merge", "9"], check=True, capture_output=True, text=True).stdout
        rounds = [list(map(float, it.split())) for it in merges.splitlines()]
        report["merges a second"], report["merges a second, by name"] = map(list, zip(*rounds))
        goals.line("merges of one record in memory, a second", report["merges a second"], "≥ 1,000,000", lambda it: it >= 1e6)
        goals.line("the same with values by name", report["merges a second, by name"])
    if options.large:
        folder = options.data.resolve() / f"{options.large // 1000}k-bare"
        preparing.make_data(binaries, folder, options.large, 0, bare=True)
        shutil.rmtree(bench.place / "template.tidemark", ignore_errors=True)
        one, other, _ = bench.devices(bench.make(folder / "records-nopictures.jsonl", "large"))
        for name, container in (("export", one), ("fetch", other)):
            report[f"large {name}"] = bench.sync(container)
            goals.line(f"peak memory, {name} of {options.large:,}", [report[f"large {name}"]["MB"]], "≤ 200 MB", lambda it: it <= 200, " MB")
            goals.line(f"time, {name} of {options.large:,}", [report[f"large {name}"]["seconds"]], unit=" s")
    if options.json:
        options.json.write_text(json.dumps(report, indent=1, sort_keys=True, ensure_ascii=False))
    shutil.rmtree(bench.place)
    goals.end()


if __name__ == "__main__":
    main()
