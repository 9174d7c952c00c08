"""A bucket of SeaweedFS on this machine, and the program `aws`: for proofs that need a bucket and no cluster."""

import atexit
import os
import pathlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent.parent / "Deployment" / "Cluster"))
import cluster as clusters  # noqa: E402
from cluster import BUCKET  # noqa: E402, F401
from nodes import wait_until  # noqa: E402, F401


class Bucket(clusters.Cluster):
    """SeaweedFS alone, at an address of this machine."""

    def __init__(self, directory, weed):
        self.directory, self.say, self.weed, self.machines = directory, lambda text: None, weed, {}
        self.network = clusters.Network(False)
        self.user = "postgres" if os.geteuid() == 0 else None
        self.secrets = {name: clusters.secrets.token_hex(16) for name in ("tidemark", "access", "secret")}
        self.add("s3", 20)
        if self.user:
            shutil.chown(self["s3"].directory, self.user)

    def get(self, key, query=""):
        """Returns an object, or, without a key, the bucket's answer to a query."""
        address = f"{self.bucket_endpoint}/{BUCKET}{'/' if key else ''}{key}{query}"
        # The credentials come on the standard input: the list of processes shows arguments to everybody.
        return subprocess.run(
            ["curl", "-sS", "--fail", "--max-time", "60", "--aws-sigv4", "aws:amz:us-east-1:s3", "-K", "-", address],
            input=f"user = \"{self.secrets['access']}:{self.secrets['secret']}\"\n".encode(), stdout=subprocess.PIPE, check=True).stdout

    def keys(self):
        """Returns the keys of all objects. There must be fewer than fit on a page."""
        listed = xml.etree.ElementTree.fromstring(self.get("", "?list-type=2"))
        found = [element.text for element in listed.iter() if element.tag.rpartition("}")[2] == "Key"]
        if len(found) >= 1_000:
            raise AssertionError("the bucket has more objects than a page of its list")
        return found


def start_bucket(folder):
    bucket = Bucket(folder / "bucket", clusters.find_weed(folder))
    clusters.leftovers.check_free(bucket.bucket_places())
    try:
        bucket.start_bucket()
    except BaseException:
        bucket.end(kills=True)
        raise
    # A signal may end the program before the caller can end the bucket.
    atexit.register(bucket.end, kills=True)
    return bucket


def find_aws():
    """Returns the folder of the program `aws`. PyPI has it as `awscli`."""
    found = shutil.which("aws")
    if found:
        return pathlib.Path(found).parent
    environment = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "tidemark" / "awscli"
    if not (environment / "bin" / "aws").exists():
        print("Installing aws …", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        subprocess.run([environment / "bin" / "pip", "install", "--quiet", "awscli"], check=True)
    return environment / "bin"
