#!/usr/bin/env python3
"""Imports hostile sources, and proves that the imports read nothing outside of their folder and don't fill the memory.

1. Bombs: sources that expand, nest, repeat or lie about their size. Each import must end by itself, in time, with a code of sysexits. It may need at
   most 64 MB more than the import of a harmless source of the same kind (an interlaced picture that is scaled: 512 MB). Nothing may stay in the
   folder for temporary files, and the container, if there is one, must be whole.
2. A file that grows and a manifest that grows during their import: both imports must end.
3. A swapper: while imports run, one after the other, another process keeps exchanging files and folders of their source with symbolic links to a
   secret outside. Neither the secret nor its name may get into the container, the rejects file, or what the import prints. As a control the secret
   is copied into the source, which has to be detected.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import bombs
import killing
from killing import fail

CODES = {0, 65, 66, 74}
ALLOWANCE = 64 << 10  # kB
SECRET = b"what nobody may read"
SECRET_NAME = "of-nobody-else"
GOOD = 12


class Ended:
    def __init__(self, code, peak, seconds, text):
        self.code, self.peak, self.seconds, self.text = code, peak, seconds, text

# The problem that is reported where the secret has got in.
SECRET_FOUND = "the secret is in"


class Run:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.temporary = folder / "temporary"
        self.temporary.mkdir()

    def import_(self, source, container, options, seconds):
        """Runs an import, and returns its exit code, peak of memory (kB) and output. An import that does not end in time is killed, and has no code."""
        command = [self.options.tidemark, "import", source, "--into", container, "--id", "id", "--rejects", container.with_suffix(".rejects"), "--json", *options]
        began = time.monotonic()
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(list(map(str, command)), stdout=output, stderr=output, stdin=subprocess.DEVNULL,
                                       env={**os.environ, "TMPDIR": str(self.temporary), "SWIFT_BACKTRACE": "enable=no"})
            found = 0
            while not found and time.monotonic() - began < seconds:
                found, status, usage = os.wait4(process.pid, os.WNOHANG)
                time.sleep(0.01)
            if not found:
                process.kill()
                _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0)
            text = output.read().decode(errors="replace")
        return Ended(process.returncode, usage.ru_maxrss, time.monotonic() - began, text)

    # Bombs

    @staticmethod
    def made(make, folder):
        """Makes a source in a separate process. The peak memory of a process also counts for a program that it becomes, so this process must stay small."""
        folder.mkdir()
        place = folder / "source"
        child = os.fork()
        if child == 0:
            try:
                place.write_text(str(make(folder)))
            except BaseException as error:
                print(error, file=sys.stderr, flush=True)
                os._exit(1)
            os._exit(0)
        if os.waitpid(child, 0)[1] != 0:
            fail(f"{folder.name} could not be made")
        return pathlib.Path(place.read_text())

    def judge(self, name, ended, allowed, container):
        problems = []
        if ended.code not in CODES:
            problems.append(f"ended with {ended.code} after {ended.seconds:.0f} s: {ended.text[-400:]}")
        if ended.peak > allowed:
            problems.append(f"needed {ended.peak >> 10} MB, of {allowed >> 10}")
        left = os.listdir(self.temporary)
        if left:
            problems.append(f"left {left} in the folder for temporary files")
            shutil.rmtree(self.temporary, ignore_errors=True)
            self.temporary.mkdir(exist_ok=True)
        if container.exists():
            verify = subprocess.run([self.options.tidemark, "verify", container], capture_output=True, text=True)
            if verify.returncode != 0:
                problems.append(f"verify: {verify.stdout}{verify.stderr}"[:400])
        return [f"{name}: {problem}" for problem in problems]

    def bombs(self):
        kinds, problems, count, worst = {}, [], 0, (-(1 << 30), "")
        for number, (name, kind, is_long, make) in enumerate(bombs.BOMBS):
            if is_long and self.options.quick or self.options.only not in name:
                continue
            harmless, options = bombs.KINDS[kind]
            if kind not in kinds:
                folder = self.folder / f"harmless-{len(kinds)}"
                ended = self.import_(self.made(harmless, folder), folder / "C.tidemark", options, self.options.limit)
                if ended.code != 0:
                    fail(f"the harmless source '{kind}' ended with {ended.code}: {ended.text}")
                kinds[kind] = ended.peak
                shutil.rmtree(folder)
            folder = self.folder / f"bomb-{number}"
            source = self.made(make, folder)
            container = folder / "C.tidemark"
            ended = self.import_(source, container, options, self.options.limit * (20 if is_long else 1))
            found = self.judge(name, ended, kinds[kind] + bombs.LARGER.get(name, ALLOWANCE), container)
            more = (ended.peak - kinds[kind]) >> 10
            worst = max(worst, (more, name))
            print(f"{'WRONG' if found else 'ok'}: {name}: {ended.code}, {ended.seconds:.1f} s, {more:+d} MB", flush=True)
            problems += found
            count += 1
            shutil.rmtree(folder)
        if not count:
            fail(f"no bomb has '{self.options.only}' in its name")
        print(f"{count} bombs; the most was {worst[0]:+d} MB, of '{worst[1]}'", flush=True)
        return problems

    # Files that grow

    def grow(self):
        problems = []
        for name, text, options in [("asset", None, ["--asset", "image"]), ("manifest", b'{"id":"r%d","caption":"grown"}\n', [])]:
            folder = self.folder / f"growing-{name}"
            folder.mkdir()
            manifest, growing = folder / "rows.jsonl", folder / ("growing.bin" if text is None else "rows.jsonl")
            manifest.write_bytes(b'{"id":"a","image":"growing.bin"}\n{"id":"b"}\n')
            if text is None:
                growing.write_bytes(bytes(64 << 20))
            child = os.fork()
            if child == 0:
                with open(growing, "ab", buffering=0) as file:
                    for number in range(1 << 30):
                        file.write(bytes(4096) if text is None else text % number * 20)
                        time.sleep(0.0005)
            try:
                ended = self.import_(manifest, folder / "C.tidemark", options, self.options.limit)
            finally:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            found = self.judge(f"a growing {name}", ended, 1 << 30, folder / "C.tidemark")
            if text is None and '"code":"assetChanged"' not in (folder / "C.rejects").read_text():
                found.append("a growing asset was imported")
            print(f"{'WRONG' if found else 'ok'}: a growing {name}: {ended.code}, {ended.seconds:.1f} s", flush=True)
            problems += found
            shutil.rmtree(folder)
        return problems

    # The swapper

    @staticmethod
    def picture(number, comment):
        """Returns a picture with an unknown chunk, which readers keep and skip. Its noise makes reading it take a while."""
        noise = bombs.chunk(b"prVt", random.Random(number).randbytes(20_000))
        return bombs.png(64 + number, 64, bombs.chunk(b"tEXt", b"Comment\0" + comment), noise, bombs.pixels(64 + number, 64))

    def make_source(self, folder):
        """Makes a folder whose files and folders have counterparts outside, with other content."""
        ours, theirs = [[self.picture(number, comment) for number in range(GOOD)] for comment in (b"of everybody", SECRET)]
        places = {"": "", "deep/a/": "a/", "deep/b/c/": "b/c/", **{f"deep/many/{number}/": f"many/{number}/" for number in range(600)}}
        for place, twin in places.items():
            (folder / "in" / place).mkdir(parents=True, exist_ok=True)
            (folder / "secret" / twin).mkdir(parents=True, exist_ok=True)
            for number in range(1 if "many" in place else GOOD):
                (folder / "in" / f"{place}{number}.png").write_bytes(ours[number])
                for name in [f"{number}.png", f"{SECRET_NAME}-{number}.png"]:
                    (folder / "secret" / f"{twin}{name}").write_bytes(theirs[number])
        with open(folder / "in" / "rows.jsonl", "w") as file:
            for number in range(GOOD * 40):
                place = ["", "deep/a/", "deep/b/c/", "deep/../deep/a/"][number % 4]
                file.write(json.dumps({"id": f"r{number}", "image": f"{place}{number % GOOD}.png"}) + "\n")

    @staticmethod
    def swap(folder, moments):
        """Exchanges files and folders with links to their counterparts, and back, until the process is killed. Each rename is atomic."""
        files = [(f"{place}{number}.png", f"{twin}{number}.png") for number in range(GOOD) for place, twin in [("", ""), ("deep/a/", "a/"), ("deep/b/c/", "b/c/")]]
        folders = [("deep", "."), ("deep", "."), ("deep/many", "many"), ("deep/a", "a"), ("deep/b", "b"), ("deep/b/c", "b/c")]
        for turn in range(1 << 40):
            name, twin = moments.choice(folders if turn % 2 else files)
            path, aside, link = folder / "in" / name, folder / f"aside-{turn}", folder / f"link-{turn}"
            try:
                os.symlink(folder / "secret" / twin, link)
                os.rename(path, aside)
                os.rename(link, path)
                end = time.monotonic() + moments.choice([0, 0.0001, 0.001, 0.003])
                while time.monotonic() < end:
                    pass
                os.rename(path, link)
                os.rename(aside, path)
                os.unlink(link)
            except OSError as error:
                print(f"swapper: {error}", file=sys.stderr, flush=True)
                os._exit(1)
            if turn % 64 == 0:
                (folder / "turns").write_text(str(turn))

    @staticmethod
    def betrayed(place, text):
        """Returns the places where the secret, or its name, is found."""
        needles = [SECRET, SECRET_NAME.encode()]
        found = ["what the import prints"] if any(needle in text.encode() for needle in needles) else []
        for path in [place.with_suffix(".rejects"), *place.rglob("*")]:
            if path.is_file() and any(needle in path.read_bytes() for needle in needles):
                found.append(str(path.relative_to(place.parent)))
        return found

    def race(self, moments, seconds, control=False):
        folder = self.folder / ("control" if control else "swapped")
        self.make_source(folder)
        if control:
            for path in (folder / "in").rglob("*.png"):
                path.write_bytes((folder / "secret" / "0.png").read_bytes())
        seed = moments.getrandbits(32)
        child = os.fork()
        if child == 0:
            self.swap(folder, random.Random(seed))
        imports = refused = taken = 0
        problems, end = [], time.monotonic() + seconds
        try:
            while time.monotonic() < end and len(problems) < 5:
                container = folder / f"C{imports}.tidemark"
                is_folder = imports % 2 == 0
                source = folder / "in" if is_folder else folder / "in" / "rows.jsonl"
                # Pictures that are scaled go through another reader.
                options = ([] if is_folder else ["--asset", "image"]) + (["--max-pixels", "4096"] if imports % 6 == 4 else [])
                ended = self.import_(source, container, options, self.options.limit)
                imports += 1
                problems += self.judge(f"import {imports}", ended, 1 << 30, container)
                problems += [f"import {imports} of {source}: {SECRET_FOUND} {place}" for place in self.betrayed(container, ended.text)]
                for line in ended.text.splitlines():
                    if line.startswith("{"):
                        summary = json.loads(line)
                        refused, taken = refused + summary["rejected"], taken + summary["assets"]["referenced"]
                shutil.rmtree(container, ignore_errors=True)
                container.with_suffix(".rejects").unlink(missing_ok=True)
            if os.waitpid(child, os.WNOHANG)[0]:
                fail("the swapper ended")
        finally:
            try:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            except (ProcessLookupError, ChildProcessError):
                pass
        turns = (folder / "turns").read_text()
        print(f"{'control: ' if control else ''}{imports} imports while {turns} files and folders were exchanged: {taken} contents came, "
              f"{refused} rows were refused; {len(problems)} problems", flush=True)
        if not control and (not taken or not refused):
            problems.append("the swapper was never met, or always")
        shutil.rmtree(folder)
        return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tidemark", required=True, type=lambda path: pathlib.Path(path).resolve(), help="the program")
    parser.add_argument("--minutes", type=float, default=5, help="how long the swapper runs (5)")
    parser.add_argument("--quick", action="store_true", help="without the bombs that need minutes or gigabytes")
    parser.add_argument("--part", choices=["bombs", "growing", "swapper"], action="append", help="a part of it; can be repeated (all)")
    parser.add_argument("--only", default="", help="of the bombs, those whose names have this text")
    parser.add_argument("--limit", type=float, default=60, help="seconds in which an import has to end; a long one twenty times as many (60)")
    parser.add_argument("--folder", type=pathlib.Path, help="where to work; emptied at the end (a temporary folder)")
    parser.add_argument("--seed", type=int, help="draws the same exchanges again")
    options = parser.parse_args()
    seed, moments = killing.draw(options)
    with tempfile.TemporaryDirectory(prefix="tidemark-hostile-", dir=options.folder) as name:
        run = Run(options, pathlib.Path(name))
        parts, problems = options.part or ["bombs", "growing", "swapper"], []
        if "bombs" in parts:
            problems += run.bombs()
        if "growing" in parts:
            problems += run.grow()
        if "swapper" in parts:
            found = run.race(moments, 2, control=True)
            if not any(SECRET_FOUND in problem for problem in found):
                problems.append("the control was not found out")
            problems += [problem for problem in found if SECRET_FOUND not in problem]
            problems += run.race(moments, options.minutes * 60)
    if problems:
        fail("\n  ".join([f"{len(problems)} problems (seed {seed})", *problems]))


if __name__ == "__main__":
    main()
