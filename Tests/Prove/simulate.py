#!/usr/bin/env python3
"""Simulates devices that fail, die and edit at once, with new seeds, in one process for each processor.

A simulation is a chain of short steps in several threads, and wakes another processor at most of them. So on Linux each process stays on a processor of
its own: two such processes run twice as many seeds as one process on both processors. Each process has a part of the seeds, and keeps how far it has
come in a folder below --progress, so that the next run goes on there. The tests of `SimulationTests` say what is simulated.

Examples:
  simulate.py --program .build/release/tidemarkPackageTests.xctest --runs 5000
  simulate.py --program .build/release/tidemarkPackageTests.xctest --runs 100 --first 7000
"""

import argparse
import os
import pathlib
import signal
import subprocess
import sys
import threading

# Lines that are printed beside the failures.
TOLD = (" runs", " a second", "Test run with")
# The variables that have a number of seeds.
COUNTS = {"runs": "TIDEMARK_SIMULATION_RUNS", "postgres_runs": "TIDEMARK_SIMULATION_POSTGRES_RUNS"}


def part(count, number, all_):
    """Returns the first item and the number of items that one of several processes gets of `count`."""
    return count * number // all_, count * (number + 1) // all_ - count * number // all_


def start(options, number, processors):
    """Starts the process with a number, on its processor."""
    environment = os.environ | {"NO_COLOR": "1"}
    for name, variable in COUNTS.items():
        environment[variable] = str(part(getattr(options, name), number, len(processors))[1])
    if options.first is not None:
        environment["TIDEMARK_SIMULATION_FIRST"] = str(options.first + part(options.runs, number, len(processors))[0])
    if options.progress:
        environment["TIDEMARK_PROGRESS"] = str(options.progress.resolve() / f"{number + 1}-of-{len(processors)}")
    pin = (lambda: os.sched_setaffinity(0, {processors[number]})) if hasattr(os, "sched_setaffinity") else None
    # On macOS the tests are a bundle, which only `swift test` runs.
    program = [options.program.resolve(), "--testing-library", "swift-testing"]
    if options.program.is_dir():
        program = ["swift", "test", "-c", options.program.parent.name, "--skip-build"]
    skipped = [] if options.postgres_runs else ["--skip", "PostgresSimulationTests"]
    return subprocess.Popen([*program, "--filter", r"^SimulationTests\.", *skipped], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, errors="replace", preexec_fn=pin)


def tell(process, number):
    """Prints the failures of a process, and how far it has come."""
    for line in process.stdout:
        if "✘" in line or "TIDEMARK_" in line or any(text in line for text in TOLD):
            print(f"{number + 1}: {line}", end="", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, type=pathlib.Path, help="the program of the tests")
    parser.add_argument("--runs", type=int, default=5000, help="seeds of each simulation (5000)")
    parser.add_argument("--postgres-runs", type=int, default=500, help="seeds of each simulation over PostgreSQL, or 0 (500)")
    parser.add_argument("--first", type=int, help="the first seed (any)")
    parser.add_argument("--progress", type=pathlib.Path, help="a folder that keeps how far the processes have come")
    options = parser.parse_args()
    if not options.program.exists():
        sys.exit(f"simulate: {options.program} is missing: build the tests first, as make test-build and make prove-simulate do")
    # Where no process can be kept on a processor, there is one process.
    processors = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
    processors = processors[:max(1, min(options.runs, options.postgres_runs or options.runs))]
    processes = [start(options, number, processors) for number in range(len(processors))]

    def end(*_):
        for process in processes:
            process.kill()
        sys.exit(130)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    threads = [threading.Thread(target=tell, args=(process, number), daemon=True) for number, process in enumerate(processes)]
    for thread in threads:
        thread.start()
    codes = [process.wait() for process in processes]
    for thread in threads:
        thread.join()
    failed = [str(number + 1) for number, code in enumerate(codes) if code != 0]
    if failed:
        sys.exit(f"simulate: failures in process {', '.join(failed)} of {len(codes)}; TIDEMARK_SIMULATION_SEED runs one seed again")
    print(f"simulate: {options.runs} seeds of each simulation, {options.postgres_runs} over PostgreSQL, in {len(codes)} processes: no failure")


if __name__ == "__main__":
    main()
