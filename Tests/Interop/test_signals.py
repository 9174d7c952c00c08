#!/usr/bin/env python3
"""Tests how a program ends after a signal."""

import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

FOLDER = pathlib.Path(__file__).resolve().parent

# Starts one process that it ends itself, and one that it does not end, and waits.
PROGRAM = """
import subprocess, sys, time
import signals
signals.end_in_order()
own, forgotten = (subprocess.Popen(["sleep", "60"]) for _ in range(2))
signals.kill_at_exit(forgotten)
try:
    print(own.pid, forgotten.pid, flush=True)
    time.sleep(60)
finally:
    time.sleep(0.5)
    own.kill()
    own.wait()
    print("ended", flush=True)
"""


class SignalTests(unittest.TestCase):
    def start(self, ignored=()):
        def prepare():
            # A program that a shell starts in the background ignores SIGINT, and so do the programs that the tests start.
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)

        program = subprocess.Popen(
            [sys.executable, "-B", "-c", PROGRAM], stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(FOLDER)}, preexec_fn=prepare)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        self.addCleanup(program.stdout.close)
        return program, [int(word) for word in program.stdout.readline().split()]

    def test_a_signal_ends_a_program_with_what_it_has_started_and_the_next_one_does_not_interrupt_that(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            with self.subTest(number.name):
                program, started = self.start()
                program.send_signal(number)
                time.sleep(0.2)
                program.send_signal(number)
                self.assertEqual(program.stdout.read(), "ended\n")
                self.assertEqual(program.wait(20), 128 + number)
                for process in started:
                    self.assertRaises(ProcessLookupError, os.kill, process, 0)

    def test_a_signal_that_is_ignored_from_the_beginning_stays_so(self):
        program, _ = self.start(ignored=[signal.SIGHUP])
        program.send_signal(signal.SIGHUP)
        time.sleep(0.3)
        self.assertIsNone(program.poll())
        program.send_signal(signal.SIGTERM)
        self.assertEqual(program.wait(20), 128 + signal.SIGTERM)


if __name__ == "__main__":
    unittest.main()
