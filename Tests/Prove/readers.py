#!/usr/bin/env python3
"""Lets processes read a store while another saves to it, and proves that readers change nothing, see whole states and block nobody.

1. A writer saves at a given rate, first without readers, then with several that read in a loop. One of them opens the store anew for each read. No
   reader may meet an error, or a state that no transaction left.
2. The writer runs under strace, beside readers: no lock that it needs may be refused.
3. A reader runs under strace: no system call of it may write to, create, remove, rename, lock for writing, or change the attributes of any file of
   the store.
4. The writer is killed with SIGKILL, again and again. After each kill a reader, once as root and once as nobody, must see what was acknowledged, and
   leave every file as it was.
5. Two writers save, each the records of its own lane, and each is killed again and again, while four readers read. Each state that they see must
   consist of whole saves. A writer that starts again must find what was acknowledged, and at most one save more.
6. A store of a given size is made, and opened many times.
"""

import argparse
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

# System calls that a reader may make with a descriptor of the store's files. Any other call is a finding.
HARMLESS = {"read", "pread64", "close", "fstat", "newfstatat", "statx", "lseek", "mmap", "getdents64", "statfs", "fstatfs",
            "faccessat", "faccessat2", "readlinkat", "access", "stat", "lstat", "readlink", "chdir", "fadvise64", "readv", "preadv"}


def fail(text):
    sys.exit(f"readers: {text}")


def state(folder):
    """Returns the names, attributes, times and contents of all files below a folder."""
    found = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        status = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path)] = (status.st_ino, status.st_mode, status.st_nlink, status.st_uid, status.st_size, status.st_mtime_ns,
                            status.st_ctime_ns, content)
    return found


def finish(process):
    output, errors = process.communicate()
    if process.returncode != 0:
        fail(f"{process.args} ended with {process.returncode}: {errors}")
    return json.loads(output.splitlines()[-1])


def finish_quietly(process):
    _, errors = process.communicate()
    if process.returncode != 0:
        fail(f"{process.args} ended with {process.returncode}: {errors}")


class Run:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder

    def start(self, *arguments, before=()):
        command = [*before, self.options.probe, *map(str, arguments)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def probe(self, *arguments):
        return finish(self.start(*arguments))

    def write(self, container):
        rate = self.options.rate / self.options.each
        count = int(rate * self.options.seconds)
        return self.start("write", container, "--count", count, "--rate", rate, "--each", self.options.each)

    def read(self, container, seconds):
        readers = [self.start("read", container, "--seconds", seconds, "--pause", self.options.pause,
                              *(["--reopens"] if number == 0 else [])) for number in range(self.options.readers)]
        found = [finish(reader) for reader in readers]
        for reader in found:
            if reader["problems"]:
                fail(f"a reader met {reader['problems']}")
        return found

    # While a writer saves

    def share(self):
        container = self.folder / "shared"
        self.probe("write", container, "--count", 1)
        alone = finish(self.write(container))
        writer = self.write(container)
        found = self.read(container, self.options.seconds - 1)
        beside = finish(writer)
        reads = sum(reader["reads"] for reader in found)
        print(f"{self.options.readers} readers: {reads} reads, no problem; slowest {max(r['slowest'] for r in found):.1f} ms")
        for name, writer in [("alone", alone), ("with readers", beside)]:
            rate = writer["saved"] / writer["seconds"]
            print(f"writer {name}: {rate * self.options.each:.0f} records in {rate:.0f} saves a second, "
                  f"p50 {writer['p50']:.2f} ms, p99 {writer['p99']:.2f} ms, slowest {writer['slowest']:.1f} ms", flush=True)

    # Under strace

    def watch_writer(self):
        """Checks that the writer gets each lock at once. Locks of read marks in use may be refused, because the writer does without them."""
        container = self.folder / "waiting"
        self.probe("write", container, "--count", 1)
        log = self.folder / "strace-writer"
        writer = self.start("write", container, "--count", 1500, "--checkpoints", before=[
            "strace", "-f", "-qq", "-e", "trace=fcntl,flock", "-o", str(log)])
        self.read(container, 2)
        finish(writer)
        lines = log.read_text(errors="replace").splitlines()
        asked = [line for line in lines if "F_SETLK" in line and "l_type=F_WRLCK" in line or "LOCK_EX" in line]
        refused = [line for line in asked if " = -1 " in line and not re.search(r"l_start=12[3-7]", line)]
        if refused:
            fail(f"the writer did not get a lock: {refused[0]}")
        print(f"strace: the writer asked for {len(asked)} exclusive locks, and got each but those of read marks in use", flush=True)

    def watch_reader(self):
        container = self.folder / "watched"
        self.probe("write", container, "--count", 200)
        calls = findings = 0
        # The steps: while a writer runs; with its index and log left behind; without the index; without index and log.
        for step in ["live", "left", "no index", "nothing"]:
            writer = None
            if step == "live":
                writer = self.write(container)
            if step == "no index":
                os.remove(container / "private.sqlite-shm")
            if step == "nothing":
                self.probe("write", container, "--count", 1, "--checkpoints")
                os.remove(container / "private.sqlite-shm")
                os.remove(container / "private.sqlite-wal")
            before = None if writer else state(container)
            log = self.folder / "strace"
            seconds = 2 if writer else 0.2
            reader = self.start("read", container, "--seconds", seconds, "--reopens", before=[
                "strace", "-f", "-y", "-qq", "-s", "8", "-e", "trace=%file,%desc", "-o", str(log)])
            found = finish(reader)
            if found["problems"]:
                fail(f"the watched reader met {found['problems']}")
            if writer:
                finish(writer)
            elif state(container) != before:
                fail(f"the watched reader changed a file of the store ({step})")
            lines = [line for line in log.read_text(errors="replace").splitlines() if str(container) in line]
            calls += len(lines)
            for line in lines:
                if not self.is_harmless(line):
                    findings += 1
                    print(f"  {line}")
        if findings:
            fail(f"{findings} system calls on files of the store that a reader has no business with")
        print(f"strace: {calls} system calls on files of the store; each reads, looks, or locks for reading", flush=True)

    @staticmethod
    def is_harmless(line):
        if "<... " in line and "resumed>" in line:
            return True
        call = re.match(r"(?:\d+ +)?(\w+)\((.*)", line)
        if not call:
            return line.split()[1:2] == ["+++"]
        name, rest = call.groups()
        if name in ("open", "openat"):
            return "O_RDONLY" in rest and not re.search(r"O_(WRONLY|RDWR|CREAT|TRUNC|APPEND|TMPFILE)", rest)
        if name == "fcntl":
            # F_GETLK only asks who holds a lock, although it names the type of a lock for writing.
            asks = re.search(r"F_(OFD_)?GETLK|F_GETFD|F_SETFD|F_GETFL|F_DUPFD", rest)
            return bool(asks) or ("SETLK" in rest and re.search(r"l_type=F_(RDLCK|UNLCK)", rest) is not None)
        if name == "mmap":
            return "PROT_WRITE" not in rest or "MAP_PRIVATE" in rest
        if name == "execve":
            return True
        return name in HARMLESS

    # After kills

    def kill(self, moments):
        container = self.folder / "killed"
        self.probe("write", container, "--count", 1)
        os.chmod(self.folder, 0o755)
        users = [[], ["--as-nobody"]] if os.geteuid() == 0 else [[]]
        for number in range(self.options.kills):
            writer = self.start("write", container, "--count", 1_000_000, "--acknowledges")
            for _ in range(moments.randrange(1, 400)):
                acknowledged = int(writer.stdout.readline())
            writer.kill()
            rest = writer.stdout.read().splitlines(keepends=True)
            writer.wait()
            whole = [int(line) for line in rest if line.endswith("\n")]
            acknowledged = whole[-1] if whole else acknowledged
            for path in container.rglob("*"):
                path.chmod(0o755 if path.is_dir() else 0o644)
            container.chmod(0o755)
            if number % 5 == 4:
                os.remove(container / "private.sqlite-shm")
            before = state(container)
            for user in users:
                found = self.probe("read", container, *user)
                if found["problems"] or found["rows"] not in (acknowledged, acknowledged + 1):
                    fail(f"after a kill at {acknowledged}: {found}")
            if state(container) != before:
                fail("a reader changed a file of the store")
        print(f"{self.options.kills} kills: each acknowledged save was seen, no file was changed", flush=True)

    # Several writers

    def write_lane(self, container, lane, commits, kills, moments, progress):
        """Runs a writer in a lane until `commits` saves are acknowledged, and kills it `kills` times meanwhile."""
        acknowledged, saved = 1, 0
        ends = sorted(moments.randrange(1, commits) for _ in range(kills)) + [commits]
        for number, end in enumerate(ends):
            writer = self.start("write-lane", container, lane, "--count", 1 << 40)
            try:
                begin = int(writer.stdout.readline() or -1)
                if begin not in (acknowledged, acknowledged + 1):
                    raise ValueError(f"lane {lane}, start {number}: {begin} was found, {acknowledged} acknowledged: {writer.poll()}")
                acknowledged = begin
                while saved < end:
                    line = writer.stdout.readline()
                    if not line.endswith("\n"):
                        raise ValueError(f"the writer of lane {lane} ended by itself: {writer.stderr.read()}")
                    acknowledged, saved = int(line), saved + 1
                    progress[lane] = saved
                # The random pause lets kills meet the writer at different points.
                time.sleep(moments.choice([0, 0, moments.uniform(0, 0.003)]))
            finally:
                writer.kill()
            whole = [int(line) for line in writer.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
            writer.wait()
            if whole:
                saved, acknowledged = saved + len(whole), whole[-1]
            progress[lane] = saved
            found = self.probe("read-lanes", container)
            if found["problems"] or found["lanes"][lane] not in (acknowledged, acknowledged + 1):
                raise ValueError(f"after a kill at {acknowledged} of lane {lane}: {found}")

    def several_writers(self, moments):
        container, lanes = self.folder / "lanes", ["a", "b"]
        for lane in lanes:
            finish_quietly(self.start("write-lane", container, lane, "--count", 1))
        wanted = self.folder / "reading"
        wanted.touch()
        readers = [self.start("read-lanes", container, "--while-there", wanted, "--pause", self.options.pause if number % 2 else 0,
                              *(["--reopens"] if number == 0 else [])) for number in range(self.options.readers)]
        progress, problems = dict.fromkeys(lanes, 0), []

        def write(lane, drawn):
            try:
                self.write_lane(container, lane, self.options.commits // 2, self.options.kills, drawn, progress)
            except (Exception, SystemExit) as error:  # fail() raises the latter, which would end this thread alone.
                problems.append(str(error))

        threads = [threading.Thread(target=write, args=(lane, random.Random(moments.getrandbits(64)))) for lane in lanes]
        began = told = time.monotonic()
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            threads[0].join(0.5)
            threads[1].join(0.5)
            if time.monotonic() - told > 30:
                told = time.monotonic()
                print(f"  {sum(progress.values()):,} of {self.options.commits:,} saves in {told - began:.0f} s", flush=True)
        seconds = time.monotonic() - began
        wanted.unlink()
        found = [finish(reader) for reader in readers]
        problems += [f"a reader met {problem}" for reader in found for problem in reader["problems"]]
        if any(reader["reads"] < 2 for reader in found):
            problems.append("a reader hardly read")
        if not problems:
            with sqlite3.connect(container / "private.sqlite") as database:
                whole = database.execute("PRAGMA integrity_check").fetchall()
            if whole != [("ok",)]:
                problems.append(f"integrity_check: {whole[:5]}")
        if problems:
            fail(f"two writers: {'; '.join(problems)}")
        print(f"2 writers: {sum(progress.values()):,} saves in {seconds:.0f} s, each killed {self.options.kills} times; {len(found)} readers: "
              f"{sum(reader['reads'] for reader in found):,} reads, no problem", flush=True)

    # Opening

    def open(self):
        container = self.folder / "large"
        self.probe("fill", container, "--megabytes", self.options.megabytes)
        size = (container / "private.sqlite").stat().st_size
        opened = self.probe("open", container)
        print(f"opening {size / 1e6:.0f} MB: first {opened['first']:.2f} ms, p50 {opened['p50']:.2f} ms, "
              f"p99 {opened['p99']:.2f} ms; with a first read p50 {opened['p50WithRead']:.2f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--probe", required=True, type=lambda path: pathlib.Path(path).resolve(), help="the program store-probe")
    parser.add_argument("--rate", type=float, default=2000, help="records that are saved a second (2,000)")
    parser.add_argument("--each", type=int, default=10, help="records of a save (10)")
    parser.add_argument("--seconds", type=float, default=10, help="how long the writer saves (10)")
    parser.add_argument("--readers", type=int, default=4, help="processes that read (4)")
    parser.add_argument("--pause", type=int, default=10, help="milliseconds from a read to the next (10)")
    parser.add_argument("--kills", type=int, default=50, help="how often to kill the writer, and each of two (50)")
    parser.add_argument("--commits", type=int, default=200_000, help="saves of two writers (200,000)")
    parser.add_argument("--megabytes", type=int, default=1000, help="size of the store to be opened (1,000); 0 for none")
    parser.add_argument("--folder", type=pathlib.Path, help="where to work; emptied at the end (a temporary folder)")
    parser.add_argument("--seed", type=int, help="draws the same moments again")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().getrandbits(32)
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="tidemark-readers-", dir=options.folder) as name:
        run = Run(options, pathlib.Path(name))
        run.share()
        if shutil.which("strace"):
            run.watch_writer()
            run.watch_reader()
        else:
            print("no strace here: system calls not looked at")
        run.kill(random.Random(seed))
        run.several_writers(random.Random(seed + 1))
        if options.megabytes:
            run.open()


if __name__ == "__main__":
    main()
