"""Builds the library that is preloaded into a program (preload.h), and tells it what to do with the files of a folder."""

import os
import pathlib
import shutil
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
# The proofs and the clients of a server.
sys.path += [str(HERE.parent / name) for name in ("Prove", "Interop")]
CLASSES = ["write", "sync", "truncate", "rename", "open", "mmap", "copy", "link", "unlink", "mkdir", "mode", "read"]
# The faults that each class of call can have.
KINDS = {name: ["EIO", "ENOSPC", "EDQUOT"] for name in CLASSES} | {
    "write": ["EIO", "ENOSPC", "EDQUOT", "SHORT", "TORN"], "mmap": ["EIO"], "mode": ["EIO"], "read": ["EIO"], "unlink": ["EIO"]}
STATE = struct.Struct(f"<Q{len(CLASSES)}QQQ32s1024s")


def build(folder):
    """Compiles the library into a folder, and returns its path."""
    if sys.platform != "linux":
        sys.exit("faults of files and power cuts are made on Linux alone")
    compiler = shutil.which("clang") or shutil.which("cc")
    library = folder / "preload.so"
    subprocess.run([compiler, "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", *sorted(HERE.glob("*.c")),
                    "-o", library, "-ldl"], check=True)
    return library


def skip_syncs(library, folder):
    """Makes syncs below a folder do nothing in all processes that are started later. The undisturbed parts become faster, and are not what is tested."""
    os.environ.update({"LD_PRELOAD": str(library), "PRELOAD_ROOT": str(folder), "PRELOAD_SYNC": "skip"})


class Preload:
    """The library for a folder, and the files through which it reports."""

    def __init__(self, library, root, folder):
        self.library, self.root, self.state, self.log = library, root, folder / "state", folder / "log"
        self.reset()

    def reset(self):
        self.state.write_bytes(bytes(STATE.size))

    def environment(self, at=0, kind=None, sticky=False, classes=None, skips_sync=True, logs=False):
        """Returns the additions to the environment of a process in which the call `at` fails, or none if it is 0."""
        self.reset()
        found = {"LD_PRELOAD": str(self.library), "PRELOAD_ROOT": str(self.root), "PRELOAD_STATE": str(self.state), "PRELOAD_AT": str(at),
                 "PRELOAD_KIND": kind or "EIO", "PRELOAD_STICKY": "1" if sticky else "0", "PRELOAD_SYNC": "skip" if skips_sync else "do"}
        if classes:
            found["PRELOAD_CLASSES"] = ",".join(classes)
        if logs:
            found["PRELOAD_LOG"] = str(self.log)
        return found

    def read(self):
        """Returns the number of calls, the numbers by class, and the first call that failed: (class, function, path), or `None`."""
        values = STATE.unpack(self.state.read_bytes())
        counts = dict(zip(CLASSES, values[1:1 + len(CLASSES)]))
        failed, number, call, path = values[1 + len(CLASSES):]
        text = lambda data: data.split(b"\0")[0].decode()  # noqa: E731
        return values[0], counts, (CLASSES[number], text(call), text(path)) if failed else None


def environment(added):
    """Returns the environment of a process. If the process traps, it prints no stack, because that takes seconds."""
    return os.environ | {"SWIFT_BACKTRACE": "enable=no"} | added
