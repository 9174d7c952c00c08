"""Signals that ask a program to end: they end it as an error does, so that each `finally` ends what the program has started."""

import atexit
import os
import signal

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end_in_order():
    """From now on SIGINT, SIGTERM and SIGHUP raise `SystemExit` in the main thread, with the code that a shell gives a signal.

    Further signals do not interrupt the end of the program. A signal that the program was started to ignore (as by `nohup`)
    stays ignored. Processes that are forked from here on end at once.
    """
    program = os.getpid()

    def handle(number, _):
        if os.getpid() != program:
            os._exit(128 + number)
        for other in ENDING:
            signal.signal(other, signal.SIG_IGN)
        raise SystemExit(128 + number)

    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handle)


def kill_at_exit(process):
    """Kills a process when this program ends, if it still runs: a signal may arrive before the process can be stopped in another way."""
    def kill():
        if process.poll() is None:
            process.kill()
            process.wait()

    atexit.register(kill)
