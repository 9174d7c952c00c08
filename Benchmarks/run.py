#!/usr/bin/env python3
"""Measures Tidemark's bulk import against the raw floors and against its peers. See README.md."""

import argparse
import datetime
import fnmatch
import json
import os
import pathlib
import platform
import shutil
import sys

sys.dont_write_bytecode = True
from runner.contestants import PAGE_SIZE_SMALL, PYTHON_PEERS, Contest, probe, run_chain  # noqa: E402
from runner.figures import evaluate, figures, print_absolutes, print_figures  # noqa: E402
from runner.measuring import Failure, Trash, say  # noqa: E402
from runner.preparing import build, build_grdb_peer, data_set_name, default_pictures, make_data, make_environment  # noqa: E402


def describe_machine():
    with open("/proc/cpuinfo") as lines:
        models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    model = models[0] if models else platform.machine()
    return {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "processor": model,
            "cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version()}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tidemark", metavar="PATH", help="the tidemark program, of a release build")
    parser.add_argument("--data", metavar="DIR", type=pathlib.Path,
                        help="where data, programs and databases go: some 10 GB on the disk to be measured")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="rounds (5)")
    parser.add_argument("--records", type=int, default=200_000, metavar="N", help="records (200,000)")
    parser.add_argument("--pictures", type=int, metavar="N", help="pictures (one for a hundred records)")
    parser.add_argument("--large", type=int, metavar="N", help="records of the large import; 0 for none (ten times --records)")
    parser.add_argument("--large-runs", type=int, default=3, metavar="N", help="rounds of the large import (3)")
    parser.add_argument("--grdb-peer", metavar="PATH",
                        help="a program called as PATH MANIFEST DATABASE, in place of the one that is built")
    parser.add_argument("--only", metavar="NAME,...",
                        help="contestants to run, with * and ?; a chain runs up to the last one named")
    parser.add_argument("--only-data", action="store_true", help="make the data for --records, --pictures and --large, and end")
    parser.add_argument("--times", action="store_true", help="print the absolute times and peaks as well")
    parser.add_argument("--smoke", action="store_true",
                        help="run every contestant once with a few records, print no figures, and fail if one can't take part")
    parser.add_argument("--list", action="store_true", help="print the names of the contestants")
    parser.add_argument("--json", metavar="FILE", type=pathlib.Path, help="write everything measured to FILE")
    options = parser.parse_args()
    if not options.list and not options.data:
        parser.error("--data is needed")
    if options.smoke:
        options.records, options.pictures, options.large = 400, 4, 800
        options.runs = options.large_runs = 1
    if options.runs < 1 or options.large_runs < 1 or options.records < 200:
        parser.error("at least one round, and 200 records")
    if options.large is None:
        options.large = 10 * options.records
    if options.pictures is None:
        options.pictures = default_pictures(options.records)
    if not 1 <= options.pictures <= options.records:
        parser.error("at least one picture, and no more than records")
    for name in ("tidemark", "grdb_peer"):
        path = getattr(options, name)
        if path:
            setattr(options, name, os.path.abspath(path))
            if not os.access(path, os.X_OK):
                parser.error(f"{path} is not a program")
    return options


def select(chains, only, names_run_last):
    """Cuts each chain after its last requested step. Refuses names that no step has."""
    if not only:
        return chains, True
    patterns = [pattern.strip() for pattern in only.split(",")]
    known = [step.name for chain in chains for step in chain] + names_run_last
    for pattern in patterns:
        if not fnmatch.filter(known, pattern):
            raise Failure(f"no contestant is called {pattern}; see --list")
    wanted = lambda name: any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    selected = []
    for chain in chains:
        last = max((index for index, step in enumerate(chain) if wanted(step.name)), default=-1)
        if last >= 0:
            selected.append(chain[:last + 1])
    return selected, any(map(wanted, names_run_last))


def prepare_peers(contest, chains, root, venv):
    """Installs and builds the requested peers, and records why some can't be built. Returns the versions of those in Python."""
    wanted = [step.name for chain in chains for step in chain]
    versions = None
    if any(name.startswith(PYTHON_PEERS) for name in wanted):
        versions, reason = make_environment(venv)
        if reason:
            contest.missing.update((prefix, reason) for prefix in PYTHON_PEERS)
    if "grdb" in wanted and not contest.options.grdb_peer:
        contest.options.grdb_peer, reason = build_grdb_peer(root)
        if reason:
            contest.missing["grdb"] = reason
    return versions


def make_large_data(binaries, root, records):
    folder = root / f"{data_set_name(records)}-bare"
    make_data(binaries, folder, records, 0, bare=True)
    return folder


def main():
    options = parse_arguments()
    root = options.data.resolve() if options.data else pathlib.Path("/")
    binaries, scratch, venv = root / "bin", root / "scratch", root / "venv"
    data = root / data_set_name(options.records, options.pictures)
    if options.list:
        made = {"records": 0, "pictures": 0, "changed": 0}
        for chain in Contest(options, data, made, binaries, venv, 2 * PAGE_SIZE_SMALL).chains():
            for step in chain:
                print(f"{step.name:26} {step.title}")
        print(f"{'tidemark-large':26} tidemark, records only, as many as --large says")
        return

    build(binaries, ["generate"] if options.only_data else ["generate", "floor", "core"])
    made = make_data(binaries, data, options.records, options.pictures)
    if options.only_data:
        if options.large:
            make_large_data(binaries, root, options.large)
        return

    scratch.mkdir(exist_ok=True)
    trash = Trash(root / "trash")
    trash.empty()
    environment = dict(os.environ, PATH=f"{venv / 'bin'}:{os.environ['PATH']}")
    page_size = probe(options, binaries, scratch, trash, environment) if options.tidemark else 16384

    contest = Contest(options, data, made, binaries, venv, page_size)
    chains, with_large = select(list(contest.chains()), options.only, ["tidemark-large"])
    versions = prepare_peers(contest, chains, root, venv)
    skipped, present = {}, []
    for chain in chains:
        reason = contest.absent(chain[0])
        if reason:
            skipped.update((step.name, reason) for step in chain)
            say(f"skipped: {', '.join(step.name for step in chain)}: {reason}")
            if options.smoke:
                raise Failure(f"a smoke test needs every contestant: {chain[0].name}: {reason}")
        else:
            present.append(chain)

    machine = describe_machine()
    say(f"{machine['cores']} × {machine['processor']}, Linux {machine['kernel']}; {versions or 'no Python peers'}")
    say(f"the store's page size is {page_size} bytes")
    if any(data / "pictures" in step.inputs for chain in present for step in chain):
        trash.wait()
    rounds = []
    for number in range(options.runs):
        load = os.getloadavg()[0]
        busy = ": others are using this machine" if number == 0 and load > 1 else ""
        say(f"round {number + 1} of {options.runs}, load {load:.1f}{busy}")
        results = {}
        for chain in present:
            run_chain(chain, number, scratch, trash, environment, results)
        rounds.append(results)

    steps = {step.name: step.title for chain in present for step in chain}
    counts = {name: made["pictures"] if name.endswith(("pictures", "intake", "hash")) else made["records"] for name in steps}
    large = options.large if with_large and options.tidemark else 0
    if large:
        large_data = make_large_data(binaries, root, large)
        chains_large = list(contest.large_chains(large_data, large))
        for number in range(options.large_runs):
            say(f"large round {number + 1} of {options.large_runs}")
            results = {}
            for chain in chains_large:
                run_chain(chain, number, scratch, trash, environment, results)
            rounds.append(results)
        steps.update((step.name, step.title) for chain in chains_large for step in chain)
        counts.update({"tidemark-beside-large": options.records, "tidemark-large": large})

    evaluated = list(evaluate(figures(page_size, options.records, large), rounds, skipped))
    if options.smoke:
        unknown = [row["figure"] for row in evaluated if "median" not in row]
        if unknown and not options.only:
            raise Failure(f"nothing was measured of: {'; '.join(unknown)}")
        print(f"run.py: a smoke test of {len(steps)} contestants and {len(evaluated)} figures has passed")
        trash.empty()
        shutil.rmtree(scratch)
        return
    if options.only:
        evaluated = [row for row in evaluated if "median" in row]
    print(f"\n{options.records:,} records, {made['pictures']:,} pictures, {options.runs} round{'s' if options.runs > 1 else ''}\n")
    if evaluated:
        print_figures(evaluated)
    if options.times or not evaluated:
        print_absolutes(steps, rounds, counts)
    if options.json:
        for run in rounds:
            for result in run.values():
                result["output"] = result["output"].strip()
        report = {"machine": machine, "peers": versions, "pageSize": page_size, "records": options.records,
                  "pictures": made["pictures"], "large": large, "figures": evaluated, "rounds": rounds, "skipped": skipped}
        options.json.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    trash.empty()
    shutil.rmtree(scratch)
    missed = [row["figure"] for row in evaluated if row.get("met") == "NO"]
    if missed:
        raise Failure(f"goals missed in every round: {'; '.join(missed)}")


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"run.py: {failure}")
    except KeyboardInterrupt:
        sys.exit("run.py: interrupted")
