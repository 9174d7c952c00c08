#!/usr/bin/env python3
"""Makes each call of a program that changes a file fail, alone or with all later ones, and checks what the program does.

For each scenario the calls of an undisturbed run are counted (write, sync, truncate, rename, open for writing, map, copy, link, unlink, make a
folder). Then the n-th call fails with EIO, ENOSPC or EDQUOT, or writes only half: for all n with --all, otherwise for some that a seed draws.

Each time the program must end with a code of sysexits and name the file or the cause. Everything that it had acknowledged must be there. Every
command must open what is left. The same commands, repeated without a fault, must end with the state of an undisturbed run.
"""

import argparse
import collections
import pathlib
import random
import re
import shutil
import tempfile
import time

import preload  # Adds the folders of the next imports to sys.path.
import killing
import scenarios
import served
from scenarios import Wrong

ALL = [scenarios.Import, scenarios.ScaledImport, scenarios.Save, scenarios.Delete, scenarios.Backup, scenarios.PlainBackup, scenarios.Restore,
       scenarios.Replace, scenarios.Move, scenarios.MoveKeeping, scenarios.MoveBack, scenarios.DamagedLog, scenarios.Export, scenarios.DirectorySync,
       scenarios.Download, scenarios.SignOut, *served.ALL]
CODES = {0, 65, 66, 69, 71, 73, 74, 75}
CAUSE = re.compile(r"No space left|enough space|Input/output error|disk I/O error|is full|uota|unable to open|no space is left|annot allocate|out of memory|I/O", re.I)
# Commands that must open whatever is left. verify and the like are treated separately.
COMMANDS = [["records"], ["records", "--type", scenarios.TYPE], ["history"], ["store", "info"], ["status"], ["schema", "show"], ["assets", "list"], ["events"],
            ["conflicts"], ["quarantine", "list"], ["permissions"], ["index", "list"], ["refused"], ["export", "--type", scenarios.TYPE, "--to", "-"], ["assets", "clean", "--dry-run"]]


def command(tidemark, words, container):
    verb = 2 if words[0] in ("store", "assets", "schema", "quarantine", "index") else 1
    return [tidemark, *words[:verb], container, *words[verb:]]


class Sweep:
    def __init__(self, options, scenario, library, drawn, seed):
        self.options, self.scenario, self.drawn, self.seed = options, scenario, drawn, seed
        self.preload = preload.Preload(library, scenario.root(), scenario.work.parent)
        self.classes, self.kinds_of_fault = (["read"], ["EIO"]) if options.reads else (["write"], ["LIE"]) if options.control else (None, preload.KINDS["write"])
        self.points = self.survived = self.missed = 0
        self.wrong, self.kinds = [], collections.Counter()

    def measure(self):
        """Counts the calls of an undisturbed run by class, and keeps its final state."""
        self.scenario.start()
        ended = self.scenario.run(self.preload.environment(classes=self.classes))
        self.calls, self.counts, _ = self.preload.read()
        if ended.code != 0:
            raise Wrong(f"undisturbed: {ended}")
        self.wanted_at_once = self.scenario.state_at_once()
        self.scenario.finish()
        if self.scenario.is_repeatable:
            self.scenario.repeat()
        self.wanted = self.scenario.state()
        self.scenario.finish()

    def all_points(self):
        # The class of the n-th call is unknown until it fails. A kind of fault that the class does not have is then not reached.
        return [(at, kind, sticky) for at in range(1, self.calls + 1) for kind in self.kinds_of_fault for sticky in (False, True)]

    def some_points(self, count):
        return self.drawn.sample(self.all_points(), min(count, 10 * self.calls))

    def try_point(self, at, kind, sticky):
        scenario = self.scenario
        scenario.start()
        try:
            ended = scenario.run(self.preload.environment(at, kind, sticky, self.classes))
            _, _, failed = self.preload.read()
            if failed is None:
                self.missed += 1
                return
            self.points += 1
            self.where = f"{failed[1]} of {failed[2]}"
            self.check_end(ended)
            scenario.finish()
            scenario.check()
            self.open(ended)
            is_whole = ended.code == 0
            if is_whole and scenario.state_at_once() != self.wanted_at_once:
                raise Wrong(f"it ended well with {scenario.state_at_once()}, undisturbed with {self.wanted_at_once}")
            if not is_whole or scenario.is_repeatable:
                scenario.repeat()
            found = scenario.state()
            if found != self.wanted:
                raise Wrong(f"repeated, it ends with {found}, undisturbed with {self.wanted}")
        finally:
            scenario.finish()

    def check_end(self, ended):
        if ended.code not in CODES:
            raise Wrong(f"no proper end: {ended}")
        if ended.code == 0:
            self.survived += 1
            return
        text = ended.errors + ended.output
        names = [part for part in pathlib.Path(self.where.split(" of ", 1)[1]).parts[-2:]]
        if "'tidemark status' says why" in text:
            text += "".join(scenarios.run([self.options.tidemark, "status", container]).output for container, _ in self.scenario.containers())
        if not (CAUSE.search(text) or any(name in text for name in names)):
            raise Wrong(f"the message names neither file nor cause: {ended}")

    def open(self, ended):
        """Opens what is left with some commands, in an order that differs between points."""
        words = list(COMMANDS)
        self.drawn.shuffle(words)
        for container, was_there in self.scenario.containers():
            allowed = (0,) if was_there else (0, 64, 66, 73)
            for each in words if self.options.all_commands else words[:2]:
                opened = scenarios.run(command(self.options.tidemark, each, container))
                # `status` ends with 75 where something is not in sync.
                if opened.code not in allowed and not (each == ["status"] and opened.code == 75) and "has no record type" not in opened.errors:
                    raise Wrong(f"after it ended with {ended.code} ({ended.errors.strip()[-300:]}), {opened}")
            examined = scenarios.run([self.options.tidemark, "verify", container])
            if examined.code not in allowed and not (examined.code == 1 and self.scenario.only_strays(examined.output + examined.errors)):
                raise Wrong(f"after it ended with {ended.code} ({ended.errors.strip()[-300:]}), {examined}")

    def run(self, points):
        began = last = time.monotonic()
        for number, (at, kind, sticky) in enumerate(points, 1):
            self.where = ""
            try:
                self.try_point(at, kind, sticky)
            except Wrong as error:
                replay = f"--scenario {self.scenario.name} --at {at} --kind {kind}{' --sticky' if sticky else ''}"
                self.wrong.append((self.where, replay, str(error)))
                # Repeated problems are only counted, and shown at the end.
                kind_of = re.sub(r"[0-9a-f]{4,}|[0-9]+|/\S*/|--\S+", "", str(error).splitlines()[-1] if "ended with 0" not in str(error) else str(error)[:80])[:120]
                self.kinds[kind_of] += 1
                if self.kinds[kind_of] > 3 or (self.options.control and len(self.wrong) > 1):
                    continue
                print(f"{'found out, as it has to be:' if self.options.control else 'WRONG'} {replay} (seed {self.seed}; {self.where}): {error}", flush=True)
                if self.options.keep:
                    shutil.copytree(self.scenario.work, self.options.keep / f"{self.scenario.name}-{at}-{kind}-{sticky:d}", symlinks=True, dirs_exist_ok=True)
            if time.monotonic() - last > 20:
                last = time.monotonic()
                print(f"  {self.scenario.name}: {number} of {len(points)} points, {len(self.wrong)} wrong, {last - began:.0f} s", flush=True)
        shown = ", ".join(f"{count} {name}" for name, count in self.counts.items() if count)
        print(f"{self.scenario.name}: {self.calls} calls ({shown}); {self.points} points, {self.survived} of them ended well, {self.missed} not reached; "
              f"{len(self.wrong)} wrong; {time.monotonic() - began:.0f} s", flush=True)
        for text, count in [] if self.options.control else self.kinds.most_common():
            print(f"  {count} times: {text.strip()}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    path = lambda text: pathlib.Path(text).resolve()  # noqa: E731
    parser.add_argument("--tidemark", required=True, type=path, help="the command-line tool")
    parser.add_argument("--server", required=True, type=path, help="the server")
    parser.add_argument("--scenario", action="append", choices=[scenario.name for scenario in ALL], help="one scenario; may be repeated (all)")
    parser.add_argument("--points", type=int, default=200, help="points in all, drawn by the seed (200)")
    parser.add_argument("--all", action="store_true", help="all points")
    parser.add_argument("--at", type=int, help="one point: the number of the call")
    parser.add_argument("--kind", default="EIO", choices=preload.KINDS["write"], help="how it fails (EIO)")
    parser.add_argument("--sticky", action="store_true", help="all calls from then on fail")
    parser.add_argument("--reads", action="store_true", help="lets calls fail that open files for reading and read, in place of those that change files")
    parser.add_argument("--control", action="store_true", help="lets writes say that they are done, and do nothing: this has to be found out")
    parser.add_argument("--all-commands", action="store_true", help="opens what is left by every command, each time")
    parser.add_argument("--folder", type=path, help="where to work; emptied at the end (a temporary folder)")
    parser.add_argument("--keep", type=path, help="a folder that gets what is left of each point that went wrong")
    parser.add_argument("--seed", type=int, help="draws the same points again")
    options = parser.parse_args()
    seed, drawn = killing.draw(options)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tidemark-faults-", dir=options.folder))
    chosen = [scenario for scenario in ALL if options.scenario is None or scenario.name in options.scenario]
    points = survived = 0
    wrong = []
    try:
        library = preload.build(folder)
        preload.skip_syncs(library, folder)
        for scenario in chosen:
            (folder / scenario.name).mkdir()
            made = scenario(options, folder / scenario.name)
            made.prepare()
            sweep = Sweep(options, made, library, drawn, seed)
            sweep.measure()
            if options.at:
                sweep.run([(options.at, options.kind, options.sticky)])
            else:
                sweep.run(sweep.all_points() if options.all else sweep.some_points(max(1, options.points // len(chosen))))
            points, survived, wrong = points + sweep.points, survived + sweep.survived, wrong + sweep.wrong
            shutil.rmtree(folder / scenario.name)
    except Wrong as error:
        killing.fail(f"{error} (seed {seed})")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{points} points in {len(chosen)} scenarios; {survived} ended well in spite of the fault; {len(wrong)} wrong")
    if options.control:
        return None if wrong else killing.fail(f"writes that were not done have not been found out (seed {seed})")
    if wrong:
        killing.fail(f"{len(wrong)} points went wrong, above (seed {seed})")


if __name__ == "__main__":
    main()
