#!/usr/bin/env python3
"""Simulates a loss of power at the n-th call of a program that changes a file, and checks what is found on the disk.

Each run is killed at a call that a seed draws, or runs to its end. All its calls are logged. From the log disks are made that have everything that
was synced. Of the other changes a disk has none, all, those before some moment with a torn last write, any sectors of 512 or 4096 bytes, names
without data, data without names, or lengths without data.

On each disk every command must open the containers, and `tidemark verify` must find them whole. Everything that was acknowledged must be there, and
each batch as a whole or not at all. The same commands, repeated, must end with the state of an undisturbed run.

With --ended, each scenario runs once to its end, and everything that was not synced is lost. The result then does not depend on a seed.

With --resumed, a scenario that has a switch is killed after the switch and before the switch is durable. The scenario is repeated with the power on.
Then everything is lost that neither of the two runs has synced.

With --control, syncs of the write-ahead log, of file systems or of folders do nothing on the disk, which has to be detected.
"""

import argparse
import pathlib
import random
import re
import shutil
import tempfile
import time

import disk
import faults
import preload
import killing
import scenarios
import served
from scenarios import Wrong

ALL = faults.ALL
# Each control: the syncs that it leaves out (by the path, whether it is syncfs, and whether it is a folder), the scenario that has to detect it, and
# the message that must appear.
CONTROLS = {
    "log": (lambda path, whole, is_folder: path.endswith("-wal"), scenarios.Save, "acknowledged"),
    "served-log": (lambda path, whole, is_folder: path.endswith("-wal"), served.Serving, "acknowledged"),
    "contents": (lambda path, whole, is_folder: whole, scenarios.Import, "assetDamaged|assetMissing"),
    "folders": (lambda path, whole, is_folder: is_folder, scenarios.Export, "acknowledged"),
}


class Cuts:
    def __init__(self, options, scenario, library, drawn, seed, ignores=None, finds=None):
        self.options, self.scenario, self.drawn, self.seed, self.ignores = options, scenario, drawn, seed, ignores
        self.preload = preload.Preload(library, scenario.root(), scenario.work.parent)
        self.finds = finds
        self.found = scenario.work.parent / "found"
        self.cuts = self.ended = 0
        self.wrong = []

    def measure(self):
        """Measures an undisturbed run: its calls, and the states after each command and at the end. Checks that the log has all changes."""
        scenario = self.scenario
        scenario.start()
        self.preload.log.unlink(missing_ok=True)
        found = disk.Disk(scenario.root())
        ended = scenario.run(self.preload.environment(logs=True))
        if ended.code != 0:
            raise Wrong(f"undisturbed: {ended}")
        self.calls = self.preload.read()[0]
        scenario.finish()
        entries = disk.read_log(self.preload.log)
        found.replay(entries)
        self.synced = [entry.name for entry in entries if entry.entry in (disk.SYNC_END, disk.SYNC_ALL_END)]
        self.compare(found.lose_power("kept", self.drawn), disk.read(scenario.root()), "")
        self.states = scenario.states_of_steps()
        scenario.finish()
        if scenario.is_repeatable:
            scenario.repeat()
        self.wanted = scenario.state()
        scenario.finish()

    def compare(self, logged, real, path):
        """Checks that a disk with all logged changes is equal to the real one. Otherwise the library has missed a call."""
        if sorted(logged) != sorted(real):
            raise Wrong(f"the log tells of other files than there are in {path or '.'}: {sorted(set(logged) ^ set(real))}")
        for name, one in logged.items():
            if isinstance(one, dict):
                self.compare(one, real[name], f"{path}/{name}")
            elif one != real[name] and not name.endswith(scenarios.UNLOGGED):
                raise Wrong(f"the log tells of another content of {path}/{name}: {len(one):,} and {len(real[name]):,} bytes")

    def run_one(self, at, modes):
        """Kills a run at a call, and checks some of the disks that may be left."""
        scenario = self.scenario
        scenario.start()
        self.preload.log.unlink(missing_ok=True)
        before = disk.Disk(scenario.root(), self.ignores)
        acknowledged = scenario.run_until_killed(self.preload.environment(at, "KILL", logs=True))
        self.look(before, acknowledged, modes)

    def resume(self, modes):
        """Kills a run between its switch and the switch's sync, repeats it, and checks some of the disks that may be left."""
        name, number, lacking = self.scenario.switch
        syncs = [index for index, path in enumerate(self.synced, 1) if pathlib.Path(path).name == name]
        first, second = syncs[number - 1], 0
        if lacking:
            self.run_resumed(first, 0)
            second = max(1, self.preload.read()[1]["sync"] - lacking + 1)
        before, acknowledged = self.run_resumed(first, second)
        self.look(before, acknowledged, modes)

    def run_resumed(self, first, second):
        """Kills two runs, each at one of its syncs; the second one ends by itself if `second` is 0. Returns the disk before, and the number of acknowledged commands."""
        scenario = self.scenario
        scenario.start()
        self.preload.log.unlink(missing_ok=True)
        before = disk.Disk(scenario.root(), self.ignores)
        # All processes of a command are killed together.
        ends = [scenario.run_until_killed(self.preload.environment(at, "KILL", sticky=True, classes=["sync"], logs=True)) for at in (first, second)]
        if ends[0]:
            raise Wrong(f"it was not killed at its sync {first}")
        return before, ends[1]

    def look(self, before, acknowledged, modes):
        """Checks some of the disks that may be left after the logged calls. `before` is the disk before them."""
        scenario = self.scenario
        before.replay(disk.read_log(self.preload.log))
        self.ended += acknowledged is not None and acknowledged >= len(self.states) - 1
        for mode in modes:
            self.where = f"{mode}, {acknowledged} acknowledged"
            tree = before.lose_power(mode, self.drawn)
            scenario.finish_cut()
            disk.build(tree, self.found)
            shutil.rmtree(scenario.root())
            self.found.rename(scenario.root())
            self.cuts += 1
            try:
                self.check(acknowledged)
            finally:
                scenario.finish()

    def check(self, acknowledged):
        scenario = self.scenario
        scenario.check()
        for container, was_there in scenario.containers():
            allowed = (0,) if was_there else (0, 64, 66, 73)
            for each in self.drawn.sample(faults.COMMANDS, 2):
                opened = scenarios.run(faults.command(self.options.tidemark, each, container))
                if opened.code not in allowed and not (each == ["status"] and opened.code == 75) and "has no record type" not in opened.errors:
                    raise Wrong(f"{opened}")
        found = scenario.state_after_cut()
        if found is not None and not scenario.is_possible(found, self.states, acknowledged):
            raise Wrong(f"{acknowledged} commands were acknowledged, and there is {found}; possible are {self.states[acknowledged:acknowledged + 2]}")
        if acknowledged < len(self.states) - 1 or scenario.is_repeatable:
            scenario.repeat_after_cut(found == self.states[-1])
        found = scenario.state()
        if found != self.wanted:
            raise Wrong(f"repeated, it ends with {found}, undisturbed with {self.wanted}")

    def run(self, runs):
        began = last = time.monotonic()
        for number in range(1, runs + 1):
            seed = self.options.one if self.options.one is not None else self.drawn.getrandbits(32)
            self.one(seed)
            if time.monotonic() - last > 20:
                last = time.monotonic()
                print(f"  {self.scenario.name}: {number} of {runs} runs, {self.cuts} cuts, {len(self.wrong)} wrong, {last - began:.0f} s", flush=True)
            if self.ignores and self.wrong:
                break
        print(f"{self.scenario.name}: {self.calls} calls; {self.cuts} cuts in {runs} runs, {self.ended} after its end; {len(self.wrong)} wrong; "
              f"{time.monotonic() - began:.0f} s", flush=True)

    def one(self, seed):
        """Does one run. One run in five ends by itself, so that everything in it is acknowledged."""
        drawn, self.drawn = self.drawn, random.Random(seed)
        at = self.calls + 1000 if self.options.ended or self.drawn.random() < 0.2 else self.drawn.randrange(1, self.calls + 1)
        modes = ["dropped", "names"] if self.options.ended or self.options.resumed else self.drawn.sample(disk.MODES, self.scenario.disks_of_run)
        self.where = ""
        try:
            if self.options.resumed:
                self.resume(modes)
            else:
                self.run_one(at, modes)
        except Wrong as error:
            if self.finds and not re.search(self.finds, str(error)):
                return
            self.wrong.append(str(error))
            if not self.ignores or len(self.wrong) == 1:
                print(f"{'found out, as it has to be:' if self.ignores else 'WRONG'} --scenario {self.scenario.name} --one {seed} (call {at}; {self.where}): {error}", flush=True)
            if self.options.keep and self.scenario.work.exists():
                shutil.copytree(self.scenario.work, self.options.keep / f"{self.scenario.name}-{seed}", symlinks=True, dirs_exist_ok=True)
        finally:
            self.drawn = drawn


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    path = lambda text: pathlib.Path(text).resolve()  # noqa: E731
    parser.add_argument("--tidemark", required=True, type=path, help="the command-line tool")
    parser.add_argument("--server", required=True, type=path, help="the server")
    parser.add_argument("--scenario", action="append", choices=[scenario.name for scenario in ALL], help="one scenario; may be repeated (all)")
    parser.add_argument("--runs", type=int, default=60, help="runs that are killed, in all (60)")
    parser.add_argument("--one", type=int, help="one run, by the number that is printed where it went wrong")
    parser.add_argument("--ended", action="store_true", help="one run of each scenario, to its end")
    parser.add_argument("--resumed", action="store_true", help="one run of each scenario that has a switch, which is killed there and done again")
    parser.add_argument("--control", action="append", choices=list(CONTROLS), help="a control, which has to find something; may be repeated")
    parser.add_argument("--folder", type=path, help="where to work; emptied at the end (a temporary folder)")
    parser.add_argument("--keep", type=path, help="a folder that gets what is left of each cut that went wrong")
    parser.add_argument("--seed", type=int, help="draws the same cuts again")
    options = parser.parse_args()
    seed, drawn = killing.draw(options)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tidemark-power-", dir=options.folder))
    if options.control:
        chosen = [(CONTROLS[name][1], CONTROLS[name], name) for name in options.control]
    else:
        chosen = [(scenario, None, scenario.name) for scenario in ALL if options.scenario is None or scenario.name in options.scenario]
        if options.resumed:
            chosen = [each for each in chosen if each[0].switch]
    cuts, wrong, blind = 0, 0, []
    try:
        library = preload.build(folder)
        preload.skip_syncs(library, folder)
        for scenario, control, name in chosen:
            ignores = control and control[0]
            (folder / name).mkdir()
            made = scenario(options, folder / name)
            made.prepare()
            found = Cuts(options, made, library, drawn, seed, ignores, control and control[2])
            found.measure()
            found.run(1 if options.one is not None or options.ended or options.resumed else options.runs if ignores else max(1, options.runs // len(chosen)))
            cuts += found.cuts
            if not ignores:
                wrong += len(found.wrong)
            elif not found.wrong:
                blind.append(name)
            shutil.rmtree(folder / name)
    except Wrong as error:
        killing.fail(f"{error} (seed {seed})")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if blind:
        killing.fail(f"{cuts} cuts have not found out these controls: {', '.join(blind)} (seed {seed})")
    print(f"{cuts} cuts in {len(chosen)} scenarios; {f'each control was found out' if options.control else f'{wrong} wrong'}")
    if wrong:
        killing.fail(f"{wrong} cuts went wrong, above (seed {seed})")


if __name__ == "__main__":
    main()
