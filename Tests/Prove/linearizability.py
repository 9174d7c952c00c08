#!/usr/bin/env python3
"""Proves by recorded histories that a served cloud is linearizable and that permissions hold, while servers, networks and clocks fail.

Clients create, update by change tag, force, delete, look up, query and fetch changes of a few records, alone and in atomic batches of two. They work
in a zone that the owner shares with two participants, and in a zone of one of the participants. Meanwhile the owner changes the participants'
permissions. Each operation is recorded with the times of its beginning and of its answer. In rounds of some seconds servers are killed, stopped and
started again, connections are cut, requests and answers are delayed, and clocks jump. With a database the database fails as well, and with a
cluster its primary.

After each round a checker looks for an order in which all operations can have been done one after the other, each between its beginning and its
answer (Linearizability/search.py). A write without an answer may have been done at any time after it began, or never. If there is no such order, the
smallest part of the history without one is printed.

`--control` puts proxies between clients and server that lie. Each lie has to be detected.

Examples:
  linearizability.py --tidemark T --server S --minutes 5
  linearizability.py --tidemark T --server S --cloud database --only kill --only database --seed 7 --keep histories
  linearizability.py --tidemark T --server S --control
  linearizability.py --check histories/shared-3.jsonl
"""

import argparse
import concurrent.futures
import os
import pathlib
import random
import shutil
import sys
import tempfile
import time

import killing
from killing import fail

sys.path.append(str(pathlib.Path(__file__).resolve().parent / "Linearizability"))
import checking  # noqa: E402
import clouds  # noqa: E402
import signals  # noqa: E402
from clients import TYPE, Unexpected  # noqa: E402
from disturbances import FAKETIME  # noqa: E402
from history import Zone  # noqa: E402
from lies import LIES, LyingProxy  # noqa: E402
from proxy import Proxy  # noqa: E402
from rounds import CLIENTS, Rounds  # noqa: E402


def check_file(path):
    """Returns the checker's verdict on a history, and the seconds that it took."""
    began = time.monotonic()
    verdict = checking.check(Zone.read(path))
    return verdict, time.monotonic() - began


class Checks:
    """Checks histories in another process while the next round runs."""

    def __init__(self, folder, seed):
        self.folder, self.seed = folder, seed
        self.pool = concurrent.futures.ProcessPoolExecutor(1, initializer=os.nice, initargs=(5,))
        self.running, self.problems = [], []
        self.operations = self.histories = self.undecided = 0
        self.seconds = self.longest = 0

    def add(self, place):
        path = self.folder / f"{place.name}.jsonl"
        place.history(self.seed).write(path)
        self.running.append((path, self.pool.submit(check_file, path)))

    def gather(self, waits=False):
        """Collects the verdicts that are ready, or all of them if `waits`."""
        left = []
        for path, running in self.running:
            if not waits and not running.done():
                left.append((path, running))
                continue
            verdict, seconds = running.result()
            self.histories += 1
            self.operations += verdict.operations
            self.seconds += seconds
            self.longest = max(self.longest, seconds)
            self.undecided += verdict.is_undecided
            if verdict.problem:
                self.problems.append((path, verdict.problem))
            elif not verdict.is_undecided:
                path.unlink()
        self.running = left

    def end(self):
        self.pool.shutdown(cancel_futures=True)


def prepare(options, folder, drawn, proxy):
    """Starts a served cloud in which queries are possible, and the clients. Returns both."""
    folder.mkdir(exist_ok=True)
    served = clouds.KINDS[options.cloud](options, folder, drawn, list(CLIENTS), proxy=proxy)
    try:
        rounds = Rounds(served.accounts, served.addresses, drawn, options.timeout, options.pause)
        first = rounds.prepare()[0]
        client = rounds.client(first.owner)
        while not first.known:
            client.modify(first)
        served.index(TYPE, "value")
    except BaseException:
        served.end()
        raise
    return served, rounds


def run(options, folder, histories, seed, drawn):
    served, rounds = prepare(options, folder, drawn, Proxy)
    checks = Checks(histories, seed)
    disturber = served.disturber(options, drawn)
    missing = "" if FAKETIME or not options.clock else "; clocks don't jump: faketime is not installed"
    print(f"{options.cloud}: {', '.join(disturber.acts)}{missing}", flush=True)
    began = time.monotonic()
    try:
        try:
            while time.monotonic() - began < options.minutes * 60 and not checks.problems:
                for place in rounds.run(options.round, disturber.disturb):
                    checks.add(place)
                checks.gather()
                if rounds.count % 10 == 0:
                    print(f"{rounds.count} rounds, {time.monotonic() - began:.0f} s: {checks.operations:,} operations checked; "
                          f"{counted(disturber.counts)}", flush=True)
            lasted = time.monotonic() - began
            for place in rounds.read_again():
                checks.add(place)
        except Unexpected as error:
            raise SystemExit(f"linearizability: {error} (seed {seed})\n{served.log()}")
        checks.gather(waits=True)
    finally:
        checks.end()
        served.end()
    unanswered = sum(operation.end is None for place in rounds.places for operation in place.operations)
    repeated = sum(operation.repeated and operation.end is not None for place in rounds.places for operation in place.operations)
    accesses = sum(operation.kind == "access" for place in rounds.places for operation in place.operations)
    print(f"{options.cloud}, seed {seed}: {rounds.count - 1} rounds in {lasted:.0f} s, {counted(disturber.counts)}; {checks.operations:,} "
          f"operations in {checks.histories} histories, {unanswered:,} writes without an answer, {repeated:,} sent again until answered, "
          f"{accesses:,} changes of permissions; checked in {checks.seconds:.0f} s, {checks.longest:.1f} s at the most, "
          f"{checks.undecided} undecided", flush=True)
    return checks


def counted(counts):
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "nothing went wrong"


def control(options, folder, histories, seed, drawn):
    """Runs each lying proxy until its lie is detected."""
    missed = []
    for lie in options.control:
        proxies = []

        def proxy(target, seed):
            proxies.append(LyingProxy(target, seed, lie))
            return proxies[-1]

        served, rounds = prepare(options, folder / lie, drawn, proxy)
        checks = Checks(histories, seed)
        try:
            while not checks.problems and rounds.count < 40:
                for place in rounds.run(min(options.round, 4), lambda until: time.sleep(max(0, until - time.monotonic()))):
                    checks.add(place)
                checks.gather(waits=True)
            told = sum(proxy.told for proxy in proxies)
            if checks.problems:
                print(f"control {lie} ({LIES[lie]}): found out in round {rounds.count - 1}, after {told} lies\n"
                      f"{checks.problems[0][1]}\n", flush=True)
            else:
                missed.append(lie)
                print(f"control {lie} ({LIES[lie]}): not found out after {told} lies", flush=True)
        except Unexpected as error:
            missed.append(lie)
            print(f"control {lie}: {error}", flush=True)
        finally:
            checks.end()
            served.end()
    if missed:
        fail(f"not found out: {', '.join(missed)} (seed {seed})")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    program = lambda path: pathlib.Path(path).resolve()  # noqa: E731
    parser.add_argument("--tidemark", type=program, help="the command-line tool")
    parser.add_argument("--server", type=program, help="the server")
    parser.add_argument("--cloud", choices=list(clouds.KINDS), default="directory", help="where the cloud is (directory)")
    parser.add_argument("--minutes", type=float, default=5, help="how long to go on (5)")
    parser.add_argument("--round", type=float, default=8, help="seconds of a round (8)")
    parser.add_argument("--pause", type=float, default=0.01, help="seconds between two requests of a client, at the most (0.01)")
    parser.add_argument("--timeout", type=float, default=2, help="seconds that a client waits for an answer (2)")
    parser.add_argument(
        "--only", action="append", default=[], metavar="ACT",
        help="let only this go wrong: kill, stop, cut, hold, delay, clock; database, lost-database; primary, network")
    parser.add_argument("--days", type=float, default=5, help="how far wall clocks jump, at the most (5)")
    parser.add_argument("--no-clock", dest="clock", action="store_false", help="leave the clocks alone")
    parser.add_argument(
        "--control", nargs="?", action="append", const="all", choices=[*LIES, "all"],
        help="let proxies lie, each of which has to be found out")
    parser.add_argument("--folder", type=pathlib.Path, help="where to work; emptied at the end (a temporary folder)")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for histories in which something is wrong (linearizability-histories)")
    parser.add_argument("--seed", type=int, help="draws the same requests and disturbances again")
    parser.add_argument("--check", type=pathlib.Path, nargs="+", metavar="FILE", help="check histories that were kept, and do nothing else")
    options = parser.parse_args()
    if not options.check and not (options.tidemark and options.server):
        parser.error("--tidemark and --server are needed, or --check")
    if options.control:
        options.control = list(LIES) if "all" in options.control else options.control
    return options


def main():
    options = parse_arguments()
    signals.end_in_order()
    if options.check:
        wrong = False
        for path in options.check:
            verdict, seconds = check_file(path)
            wrong |= bool(verdict.problem) or verdict.is_undecided
            told = verdict.problem or ("undecided" if verdict.is_undecided else "there is an order")
            print(f"{path}: {verdict.operations} operations, {seconds:.1f} s: {told}")
        sys.exit(wrong)
    seed, drawn = killing.draw(options)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tidemark-linearizability-", dir=options.folder))
    histories = folder / "histories"
    histories.mkdir()
    try:
        if options.control:
            control(options, folder, histories, seed, drawn)
            return
        checks = run(options, folder, histories, seed, drawn)
        if checks.problems or checks.undecided:
            kept = options.keep or pathlib.Path("linearizability-histories")
            shutil.copytree(histories, kept, dirs_exist_ok=True)
            told = "\n\n".join(problem for _, problem in checks.problems)
            fail(f"{len(checks.problems)} histories have no order, {checks.undecided} are undecided (seed {seed}). They are in {kept}\n"
                 f"{told}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
