"""Runs commands with warm inputs, measures them, and removes their results."""

import os
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time

COMMAND_TIMEOUT = 3600
# For about so many seconds, ext4 without a journal checks each removed inode before it gives out a new one.
REMOVAL_WAIT = 60


class Failure(Exception):
    """A result that must not be reported: a wrong count, a program that ended badly."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def warm(paths):
    """Reads all inputs once, so that none comes from the disk."""
    buffer = bytearray(1 << 20)
    for path in paths:
        files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
        for file in files:
            with open(file, "rb", buffering=0) as stream:
                while stream.readinto(buffer):
                    pass


def give_back(path):
    """Frees the content of a file and keeps its inode. A file with other names only loses this name."""
    status = os.lstat(path)
    if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
        os.chmod(path, 0o600)
        os.truncate(path, 0)
    else:
        os.unlink(path)


class Trash:
    """The place for used folders. Their bytes are freed at once, and their inodes at the end.

    On ext4 without a journal, the removal of thousands of files would slow down the next contestant that creates files, by more than the work that is
    measured.
    """

    def __init__(self, folder):
        self.folder = folder
        self.stamp = folder.with_suffix(".removed")
        self.count = 0

    def wait(self):
        """Waits until the removal at the end of an earlier run has no effect any more."""
        if self.stamp.exists():
            left = self.stamp.stat().st_mtime + REMOVAL_WAIT - time.time()
            if 0 < left <= REMOVAL_WAIT:
                say(f"waiting {left:.0f} s, since files were removed")
                time.sleep(left)

    def put(self, folder):
        if not folder.exists():
            return
        for parent, _, names in os.walk(folder):
            for name in names:
                give_back(os.path.join(parent, name))
        self.folder.mkdir(exist_ok=True)
        self.count += 1
        folder.rename(self.folder / str(self.count))

    def empty(self):
        if self.folder.exists():
            shutil.rmtree(self.folder)
            os.sync()
            self.stamp.touch()


def text_of(file):
    file.seek(0)
    return file.read().decode("utf-8", "replace")


def measure(command, inputs, environment):
    """Runs a command. Returns its seconds, its processor seconds and its peak memory, both with its children's, and its output."""
    warm(inputs)
    os.sync()
    command = list(map(str, command))
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment)
        timer = threading.Timer(COMMAND_TIMEOUT, process.kill)
        timer.daemon = True
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        output, complaint = text_of(out), text_of(err)
    if process.returncode != 0:
        raise Failure(f"{shlex.join(command)} ended with {process.returncode}\n{complaint[-2000:]}\n{output[-2000:]}".rstrip())
    processor = usage.ru_utime + usage.ru_stime
    return {"seconds": seconds, "processor": processor, "peak": usage.ru_maxrss * 1024, "output": output}
