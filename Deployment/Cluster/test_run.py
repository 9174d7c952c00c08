#!/usr/bin/env python3
"""Runs the cluster to try as `make cluster` does, types what it prints, and ends it by Ctrl-C: two containers have the same records then, and
nothing is left of the cluster."""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

sys.dont_write_bytecode = True
FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
sys.path[:0] = [str(FOLDER), str(ROOT / "Tests" / "Interop")]
import leftovers  # noqa: E402
import report  # noqa: E402
import signals  # noqa: E402
from cluster import EMAIL  # noqa: E402

# Seconds after which a step is given up. A start takes 20 seconds on two processors with nothing else to do.
LONGEST_START, LONGEST_COMMANDS, LONGEST_END = 400, 200, 120
DATABASE = {"PostgreSQL", "etcd", "Patroni"}
PARTS = {
    **{f"db{number}": DATABASE for number in (1, 2, 3)}, "s3": {"SeaweedFS"}, "proxy": {"HAProxy"}, **{f"server{number}": {"server"} for number in (1, 2, 3)},
}
OPTIONS = None


def started(process):
    """When a process was started, which tells it from a later one with the same id; None where that can't be found out."""
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return None


def working_in(directory):
    """The processes that work in a directory or below it, with when they were started."""
    found = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            place = (entry / "cwd").readlink()
        except OSError:
            continue
        if place.is_relative_to(directory):
            found[int(entry.name)] = started(entry.name)
    return found


class RunTests(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tidemark-test-"))
        self.addCleanup(shutil.rmtree, self.folder, True)
        # The user of the databases has to pass through the folder.
        self.folder.chmod(0o755)
        self.temporary, self.errors = self.folder / "temporary", self.folder / "errors"
        self.temporary.mkdir()
        # The mode of /tmp.
        self.temporary.chmod(0o1777)

    def start(self):
        """Starts the cluster, and returns it with what it has printed once it runs."""
        with open(self.errors, "wb") as errors:
            cluster = subprocess.Popen(
                [sys.executable, "-B", FOLDER / "cluster.py", "--loopback", "--tidemark", OPTIONS.tidemark, "--server", OPTIONS.server],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=self.folder,
                env=os.environ | {"TMPDIR": str(self.temporary)},
                # Programs that a shell starts in the background ignore SIGINT.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        self.addCleanup(cluster.stdout.close)
        self.addCleanup(self.give_up, cluster)
        timer = threading.Timer(LONGEST_START, cluster.send_signal, [signal.SIGINT])
        timer.start()
        try:
            printed = []
            for line in cluster.stdout:
                printed.append(line)
                if line.startswith("Ctrl-C ends all of it"):
                    return cluster, "".join(printed)
        finally:
            timer.cancel()
        return self.fail(f"the cluster has ended with {cluster.wait()} before it ran, or did not run within {LONGEST_START} s:\n{self.errors.read_text()}")

    @staticmethod
    def give_up(cluster):
        """Ends a cluster that a failure has left: in order, or at least itself."""
        if cluster.poll() is None:
            cluster.send_signal(signal.SIGINT)
            try:
                cluster.wait(LONGEST_END)
            except subprocess.TimeoutExpired:
                cluster.kill()
                cluster.wait()

    def run_shell(self, text):
        ended = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text], cwd=self.folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=LONGEST_COMMANDS)
        self.assertEqual(ended.returncode, 0, f"{text}\n{ended.stdout}{ended.stderr}")
        return ended.stdout

    def records(self, container):
        """The records of a container, by their names: their fields that have values."""
        listed = subprocess.run(
            [OPTIONS.tidemark, "records", "list", container, "--type", "Destination", "--json"], cwd=self.folder, capture_output=True, text=True,
            check=True, timeout=LONGEST_COMMANDS)
        found = {}
        for record in json.loads(listed.stdout):
            # A container into which nothing was imported has no field for the names.
            names = {record.pop(field, None) for field in ("id", "_name")} - {None}
            self.assertEqual(len(names), 1, listed.stdout)
            found[names.pop()] = {field: value for field, value in record.items() if value is not None}
        return found

    def test_the_printed_commands_work_and_ctrl_c_leaves_nothing(self):
        cluster, printed = self.start()
        directory = pathlib.Path(re.search(r"^Logs +(\S+)/MACHINE/", printed, re.MULTILINE)[1])
        self.assertEqual(directory.parent, self.temporary)
        machines = printed.partition("with the ids of their processes\n")[2].partition("\n\n")[0].splitlines()
        processes = {line.split()[0]: dict(re.findall(r"(\w+) (\d+)(?=,|$)", line)) for line in machines}
        self.assertEqual({name: set(found) for name, found in processes.items()}, PARTS, printed)
        ids = {int(process) for found in processes.values() for process in found.values()}
        self.assertTrue(all(report.is_alive(process) for process in ids), processes)

        typed = printed.partition("in this folder:\n")[2].partition("\nKill what you like")[0]
        accounts = self.run_shell(typed)
        self.assertIn(EMAIL, accounts)
        journal = [json.loads(line)["id"] for line in (ROOT / "Examples" / "journal" / "journal.jsonl").read_text().splitlines()]
        first, second = self.records("a1.tidemark"), self.records("a2.tidemark")
        self.assertEqual(sorted(first), sorted(journal))
        self.assertEqual(second, first)

        self.assertNotIn("has ended", self.errors.read_text())
        working = working_in(directory)
        sockets = [pathlib.Path(f"/tmp/seaweedfs-{name}.sock") for part, port in leftovers.bucket_ports(directory).items()
                   for name in (f"{part}-{port}", f"{part}-grpc-{port + 10_000}")]
        cluster.send_signal(signal.SIGINT)
        self.assertEqual(cluster.wait(LONGEST_END), 0, self.errors.read_text())
        self.assertEqual({process for process in ids if report.is_alive(process)}, set())
        self.assertEqual({process for process, begin in working.items() if begin and started(process) == begin and report.is_alive(process)}, set())
        self.assertEqual([path for path in sockets if path.exists()], [])
        self.assertEqual(list(self.temporary.iterdir()), [])


def main():
    global OPTIONS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tidemark", type=pathlib.Path, required=True, help="the program tidemark")
    parser.add_argument("--server", type=pathlib.Path, required=True, help="the program tidemark-server")
    OPTIONS, others = parser.parse_known_args()
    for name in ("tidemark", "server"):
        path = getattr(OPTIONS, name).resolve()
        if not path.is_file():
            sys.exit(f"--{name} names {path}, which is not there: 'make test-cluster-run' builds it")
        setattr(OPTIONS, name, path)
    signals.end_in_order()
    unittest.main(argv=[sys.argv[0], *others])


if __name__ == "__main__":
    main()
