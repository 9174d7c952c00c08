#!/usr/bin/env python3
"""Plants faults in a copy of the project, one at a time, and checks whether the tests notice them.

A mutant is one line that an operator (operators.py) has changed in the code of a rule (rules.py). The same seed draws the same mutants. For each one
the copy is built, and the suites that are likely to catch the mutant are run, then all suites. The result is written to a file, from which the next
run continues: caught (with the suites), survived, unbuildable, or timeout. A timeout counts as caught.

    Tests/Mutants/mutants.py --list                  # what would be planted
    Tests/Mutants/mutants.py --rule merge --count 20
    Tests/Mutants/mutants.py --together --count 200   # those of Swift in one build, in which the environment chooses one
    Tests/Mutants/mutants.py --planted               # those that somebody has thought of
    Tests/Mutants/mutants.py --report                # the table, of all that was done so far
"""

import argparse
import concurrent.futures
import fnmatch
import hashlib
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True

import operators
import rules
import switches

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ["swift", "build", "--build-tests"]
AT_ONCE = ["--experimental-maximum-parallelization-width", "32"]
# Seconds after which a build or a run of tests counts as hanging.
LONGEST = {"build": 3600, "first": 900, "all": 3600}


def found(rule, listed):
    """Yields all mutants of a rule, in the order of its files."""
    description = rules.RULES[rule]
    names = description.get("operators", operators.GENERAL)
    for path in listed:
        if not any(fnmatch.fnmatchcase(path, pattern) and path.count("/") == pattern.count("/") for pattern in description["files"]):
            continue
        seen, in_text = {}, False
        for number, line in enumerate((ROOT / path).read_text().split("\n"), 1):
            marks = line.count('"""') if path.endswith(".swift") else 0
            for operator, change in operators.mutants(line, names):
                if in_text:
                    change = operators.within_text(change)
                after = change.text
                seen[line, after] = seen.get((line, after), 0) + 1
                key = f"{rule}|{path}|{line.strip()}|{after.strip()}|{seen[line, after]}"
                yield {"id": hashlib.sha256(key.encode()).hexdigest()[:10], "rule": rule, "operator": operator, "file": path, "line": number,
                       "before": line, "after": after, "change": change}
            in_text ^= marks % 2 == 1


def planted():
    for name, rule, path, before, after in rules.PLANTED:
        lines = [(number, line) for number, line in enumerate((ROOT / path).read_text().split("\n"), 1) if before in line]
        if len(lines) != 1:
            sys.exit(f"mutants: '{name}' has {len(lines)} places in {path}; rules.py names one line")
        number, line = lines[0]
        yield {"id": "planted-" + hashlib.sha256(name.encode()).hexdigest()[:6], "rule": rule, "operator": name, "file": path, "line": number,
               "before": line, "after": line.replace(before, after),
               "change": operators.Change(line, line.index(before), line.index(before) + len(before), after)}


def draw(count, seed, chosen):
    """Draws the same number of mutants for each rule, spread over its files and operators. The rules take turns, so that an interrupted run has judged some of each."""
    listed = subprocess.run(["git", "ls-files", "Sources", "CSupport"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    drawn = []
    for index, rule in enumerate(chosen):
        share = count // len(chosen) + (index < count % len(chosen))
        groups = {}
        for mutant in found(rule, listed):
            groups.setdefault((mutant["file"], mutant["operator"]), []).append(mutant)
        random_ = random.Random(f"{seed} {rule}")
        order = sorted(groups)
        random_.shuffle(order)
        for group in order:
            random_.shuffle(groups[group])
        taken = []
        while len(taken) < share and any(groups.values()):
            for group in order:
                if groups[group] and len(taken) < share:
                    taken.append(groups[group].pop())
        drawn.append(taken)
    return [mutant for turn in itertools.zip_longest(*drawn) for mutant in turn if mutant]


def run(command, folder, seconds, log, environment=None):
    """Runs a command, and returns its exit code, or `None` if it did not end in time. In that case its whole session is killed."""
    with open(log, "wb") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
                                   env=os.environ | {"SWIFT_BACKTRACE": "enable=no"} | (environment or {}))
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None


def failed_tests(log):
    """Returns the names of failed tests in a log, ten at the most."""
    names = []
    for line in pathlib.Path(log).read_text(errors="replace").split("\n"):
        for mark in ("✘ Test ", "failed: "):
            if mark in line and ("recorded an issue" in line or mark == "failed: "):
                name = line.split(mark, 1)[1].split(" recorded an issue")[0].strip()[:160]
                if name not in names:
                    names.append(name)
    return names[:10]


class Workshop:
    """The copy in which mutants are built and tested."""

    def __init__(self, options):
        self.options, self.folder = options, options.folder / "copy"
        self.log = options.folder / "log"

    def locked(self, command):
        return ["flock", "-o", str(self.options.lock), *command] if self.options.lock else command

    def prepare(self, builds):
        """Makes the copy from what is committed, and builds it once."""
        if self.options.inplace:
            self.folder = ROOT
            if subprocess.run(["git", "diff", "--quiet"], cwd=ROOT).returncode != 0:
                sys.exit("mutants: there are changes that are not committed, which a mutant would be lost among")
        elif not self.folder.exists():
            subprocess.run(["git", "clone", "--quiet", str(ROOT), str(self.folder)], check=True)
        else:
            subprocess.run(["git", "checkout", "--quiet", "--", "."], cwd=self.folder, check=True)
            subprocess.run(["git", "pull", "--quiet", "--ff-only"], cwd=self.folder, check=True)
        if builds and self.build() != 0:
            sys.exit(f"mutants: the copy can't be built as it is; {self.log} says why")
        if self.options.together and not self.options.bundle:
            # The tests' program is run directly, because a second 'swift test' in the same folder waits for the first.
            bundle = self.folder / ".build/debug/tidemarkPackageTests.xctest"
            self.options.bundle, self.options.at_once = (bundle, self.options.at_once) if bundle.is_file() else (None, 1)

    def build(self):
        return run(self.locked(BUILD + self.options.build_argument), self.folder, LONGEST["build"], self.log)

    def build_together(self, mutants):
        """Plants all mutants that can be built together."""
        plan = switches.Plan(self.folder, mutants)
        while True:
            plan.write()
            if self.build() == 0:
                return plan
            dropped = plan.drop(self.log)
            print(f"{dropped} mutants can't be built beside their lines; {len(plan.mutants)} are left", flush=True)
            if dropped == 0:
                plan.undo()
                sys.exit(f"mutants: the mutants can't be built together; {self.log} says why")

    def suites(self):
        """Returns the suites of all tests, without those that are left out."""
        command = [str(self.options.bundle), "--testing-library", "swift-testing", "--list-tests"] if self.options.bundle else ["swift", "test", "list", "--skip-build"]
        listed = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=True).stdout
        names = sorted({match[1] for match in re.finditer(r"^(\w+\.\w+)/", listed, re.M)})
        return [name for name in names if not (self.options.skip and re.search(self.options.skip, name))]

    def find_reached(self, plan):
        """Runs each suite without a mutant. Returns each suite's seconds and the mutants that it reaches."""
        place = self.options.folder / "reached.json"
        commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=self.folder, capture_output=True, text=True, check=True).stdout.strip()
        kept = json.loads(place.read_text()) if place.exists() else {}
        ids = sorted(mutant["id"] for mutant in plan.mutants.values())
        if kept.get("commit") != commit or not set(ids) <= set(kept["mutants"]):
            kept = {"commit": commit, "mutants": ids, "suites": {}}
        known = kept["suites"]
        names = [name for name in self.suites() if name not in known]
        print(f"{len(names)} suites are run without a mutant", flush=True)

        def look(name):
            file, log = self.options.folder / f"reached-{name}", self.options.folder / f"log-{name}"
            file.write_bytes(bytes(switches.SIZE))
            began = time.monotonic()
            state, by = self.test(f"^{re.escape(name)}/", "first", log, {"TIDEMARK_MUTANTS_REACHED": str(file)})
            seconds = round(time.monotonic() - began, 1)
            reached = [plan.mutants[number]["id"] for number, byte in enumerate(file.read_bytes()) if byte]
            file.unlink()
            log.unlink()
            return name, {"seconds": seconds, "reached": reached} if state == "survived" else {"failed": by}

        with concurrent.futures.ThreadPoolExecutor(self.options.at_once) as pool:
            for name, found in pool.map(look, names):
                if "failed" in found:
                    # A suite that fails without a mutant can't show anything about one.
                    print(f"{name} fails without a mutant: {found['failed']}", flush=True)
                    continue
                known[name] = found
                replace(place, kept)
        return known

    def judge_chosen(self, number, mutant, suites):
        """Runs the suites that reach one of the planted mutants, the shortest first, until one fails."""
        began = time.monotonic()
        environment = {"TIDEMARK_MUTANT": str(number)}
        log = self.options.folder / f"log-{number}"
        coming = sorted((found["seconds"], name) for name, found in suites.items() if mutant["id"] in found["reached"])
        state, by, stage = "survived", [], f"{len(coming)} that come to it"
        for _, name in coming:
            state, by = self.test(f"^{re.escape(name)}/", "first", log, environment)
            if state != "survived":
                by, stage = by or [name], name
                break
        if state == "survived" and not self.options.first_only:
            state, by = self.test(None, "all", log, environment)
            stage = "all"
        log.unlink(missing_ok=True)
        return {"state": state, "by": by, "suites": stage, "seconds": round(time.monotonic() - began)}

    def test(self, pattern, kind, log=None, environment=None):
        """Runs the suites of a pattern, and returns the result and the names of the tests that failed."""
        log = log or self.log
        command = ["swift", "test", "--skip-build", *AT_ONCE, *(["--filter", pattern] if pattern else [])]
        if self.options.bundle:
            command = [str(self.options.bundle), "--testing-library", "swift-testing", *AT_ONCE, *(["--filter", pattern] if pattern else [])]
        code = run(command, self.folder, LONGEST[kind], log, environment)
        if code is None:
            return "timeout", failed_tests(log)
        return ("survived" if code == 0 else "caught"), failed_tests(log)

    def run_command(self, command):
        """Runs a command that builds and runs tests, and returns the result and the failures."""
        code = run(command, self.folder, LONGEST["first"], self.log)
        text = pathlib.Path(self.log).read_text(errors="replace")
        if code is None:
            return "timeout", []
        if code != 0 and re.search(r"^\S+:\d+:\d+: (fatal )?error: ", text, re.M):
            return "unbuildable", []
        return ("survived", []) if code == 0 else ("caught", [line[:160] for line in text.strip().split("\n") if re.search(r"failed: |ERROR: |runtime error|^(places|errors): (?!passed)", line)][:3])

    def judge(self, mutant):
        """Plants a mutant, tests it, and removes it again. Returns the result."""
        place = self.folder / mutant["file"]
        text = place.read_text()
        lines = text.split("\n")
        if lines[mutant["line"] - 1] != mutant["before"]:
            return {"state": "gone"}
        lines[mutant["line"] - 1] = mutant["after"]
        began = time.monotonic()
        try:
            place.write_text("\n".join(lines))
            rule, stage, state, by = rules.RULES[mutant["rule"]], "first", "survived", []
            # The C core has its own tests, which are run for every rule.
            if mutant["file"].startswith("CSupport/"):
                state, by = self.run_command(rules.CORE)
            if state == "survived" and (rule["first"] or not self.options.first_only) and self.build() != 0:
                return {"state": "unbuildable"}
            built = time.monotonic() - began
            if state == "survived" and rule["first"]:
                state, by = self.test(rule["first"], "first")
            if state == "survived" and not self.options.first_only:
                state, by = self.test(None, "all")
                stage = "all"
            return {"state": state, "by": by, "suites": stage, "build": round(built), "seconds": round(time.monotonic() - began)}
        finally:
            place.write_text(text)


def replace(place, value):
    """Writes a JSON file as a whole: under another name first, and then renamed."""
    unfinished = place.with_suffix(".new")
    unfinished.write_text(json.dumps(value, indent=1))
    unfinished.replace(place)


def described(mutant):
    """Returns a mutant as the results have it."""
    return {name: value for name, value in mutant.items() if name != "change"}


def report(results):
    rows, states = {}, ["caught", "timeout", "survived", "unbuildable"]
    for result in results.values():
        row = rows.setdefault(result["mutant"]["rule"], dict.fromkeys(states, 0))
        if result["state"] in row:
            row[result["state"]] += 1
    print("| rule | " + " | ".join(states) + " |\n|---|" + "---|" * len(states))
    for rule in sorted(rows):
        print(f"| {rule} | " + " | ".join(str(rows[rule][state]) for state in states) + " |")
    for identifier, result in list(results.items()):
        if result["state"] == "survived" and identifier in rules.ANSWERS:
            print(f"answered: {identifier} {result['mutant']['file']}:{result['mutant']['line']}: {rules.ANSWERS[identifier]}")
            results = {key: value for key, value in results.items() if key != identifier}
    judged = [result for result in results.values() if result["state"] in ("caught", "timeout", "survived")]
    caught = sum(result["state"] != "survived" for result in judged)
    if judged:
        print(f"\n{caught} of {len(judged)} caught ({100 * caught / len(judged):.0f}%).")
    for result in judged:
        if result["state"] == "survived":
            mutant = result["mutant"]
            print(f"survived: {mutant['id']} {mutant['file']}:{mutant['line']} ({mutant['rule']}, {mutant['operator']})\n"
                  f"  - {mutant['before'].strip()}\n  + {mutant['after'].strip()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=120, help="mutants to draw, in all (120)")
    parser.add_argument("--seed", default="1", help="draws other ones (1)")
    parser.add_argument("--rule", action="append", choices=list(rules.RULES), help="one rule; may be repeated (all)")
    parser.add_argument("--planted", action="store_true", help="those that somebody has thought of")
    parser.add_argument("--only", action="append", metavar="ID", help="one mutant, by its id; may be repeated")
    parser.add_argument("--together", action="store_true", help="those of Swift, built together: one build for all")
    parser.add_argument("--again", action="store_true", help="judges again what was judged")
    parser.add_argument("--most", type=int, help="mutants of this run, at the most")
    parser.add_argument("--first-only", action="store_true", help="only the suites that are likely to catch it; what survives them is judged again later")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / ".build/mutants", help="where the copy, the log and the results are (.build/mutants)")
    parser.add_argument("--at-once", type=int, default=2, help="with --together: suites that run beside each other (2)")
    parser.add_argument("--skip", help="with --together: suites that are not run, a regular expression")
    parser.add_argument("--inplace", action="store_true", help="plants them in this project itself, whose changes are committed")
    parser.add_argument("--bundle", type=pathlib.Path, help="the program of the tests, in place of swift test")
    parser.add_argument("--build-argument", action="append", default=[], help="an argument for each build")
    parser.add_argument("--lock", type=pathlib.Path, help="a file that is locked while something is built")
    parser.add_argument("--list", action="store_true", help="lists them")
    parser.add_argument("--report", action="store_true", help="prints the table of what was done")
    options = parser.parse_args()
    place = options.folder / "results.json"
    results = json.loads(place.read_text()) if place.exists() else {}
    if options.report:
        return report(results)
    chosen = list(planted()) if options.planted else []
    if not options.planted or options.only:
        chosen += draw(options.count, options.seed, options.rule or list(rules.RULES))
    if options.only:
        chosen = [mutant for mutant in chosen if mutant["id"] in options.only]
    if options.list:
        for mutant in chosen:
            print(f"{mutant['id']} {mutant['rule']}, {mutant['operator']}: {mutant['file']}:{mutant['line']}\n  - {mutant['before'].strip()}\n  + {mutant['after'].strip()}")
        return print(f"{len(chosen)} mutants")
    waiting = [mutant for mutant in chosen
               if options.again or mutant["id"] not in results or (results[mutant["id"]].get("suites") != "all" and results[mutant["id"]]["state"] == "survived")]
    print(f"{len(chosen)} mutants, {len(waiting)} to be judged", flush=True)
    if options.together:
        waiting = [mutant for mutant in waiting if mutant["file"].endswith(".swift")]
    waiting = waiting[:options.most]
    if waiting:
        if shutil.which("swift") is None:
            sys.exit("mutants: there is no swift")
        options.folder.mkdir(parents=True, exist_ok=True)
        workshop = Workshop(options)
        # With --together there is another build, with all mutants.
        builds = not options.together and any(rules.RULES[mutant["rule"]]["first"] or not options.first_only for mutant in waiting)
        workshop.prepare(builds)

    def note(count, mutant, result):
        results[mutant["id"]] = result | {"mutant": described(mutant)}
        replace(place, results)
        by = f" by {result['by'][0]}" if result.get("by") else ""
        print(f"{count} of {len(waiting)}: {result['state']}{by}, {result.get('seconds', 0)} s: {mutant['file']}:{mutant['line']} ({mutant['rule']}, "
              f"{mutant['operator']})", flush=True)

    if options.together and waiting:
        plan = workshop.build_together(waiting)
        for mutant in plan.left_out:
            results.setdefault(mutant["id"], {"state": "unbuildable", "mutant": described(mutant)})
        waiting = list(plan.mutants.values())
        suites = workshop.find_reached(plan)
        with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
            judging = {pool.submit(workshop.judge_chosen, number, mutant, suites): mutant for number, mutant in plan.mutants.items()}
            for count, judged in enumerate(concurrent.futures.as_completed(judging), 1):
                note(count, judging[judged], judged.result())
        plan.undo()
    else:
        for count, mutant in enumerate(waiting, 1):
            note(count, mutant, workshop.judge(mutant))
    report(results)


if __name__ == "__main__":
    main()
