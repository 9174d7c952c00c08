"""An operator of a cloud over PostgreSQL and a bucket, who follows the guide."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import seaweed
from acknowledged import Wrong
from guide_blocks import GuideSection

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent.parent / "Benchmarks"))
from runner.postgres import Postgres  # noqa: E402

# The examples of the guide, which are replaced by the proof's own values.
MOMENT, BUCKET_MOMENT, BACKUP, TIMELINE = "2026-11-28 09:00:00+00", "2026-11-28T08:55:00", "/backup", "'latest'"
# How many seconds before the moment the removal of delete markers begins. Here the bucket and the database have the same clock.
EARLIER = 2


class Replica(Postgres):
    """A second PostgreSQL server, which replicates a database."""

    def __init__(self, primary, folder):
        self.take(folder)
        self.run("pg_basebackup", "-h", "127.0.0.1", "-p", primary.port, "-U", "replicator", "-c", "fast", "-R", "-D", folder / "data")
        self.start()

    def has_all_of(self, primary):
        return self.sql(f"SELECT pg_is_in_recovery() AND pg_last_wal_replay_lsn() >= '{primary.sql('SELECT pg_current_wal_lsn()')}'") == "t"


class Operator:
    """Runs the commands of the guide, and causes the damage that they repair."""

    def __init__(self, options, folder, bucket):
        self.options, self.folder, self.bucket, self.database, self.replica = options, folder, bucket, None, None
        self.guide, self.backup = GuideSection("Cluster.md", "## Backups"), folder / "backup"

    def begin(self):
        for made in (self.backup, self.backup / "wal"):
            made.mkdir()
            if os.geteuid() == 0:
                shutil.chown(made, "postgres")
        archiving = self.guide.block("archive_command", {BACKUP: self.backup})
        self.database = Postgres(self.folder / "postgresql", archiving.splitlines())
        self.environment = os.environ | self.bucket.environment | {
            "AWS_ENDPOINT_URL": self.bucket.bucket_endpoint, "PGHOST": "127.0.0.1", "PGPORT": str(self.database.port), "PGUSER": "tidemark", "PGDATABASE": "tidemark",
            "PGDATA": str(self.folder / "postgresql" / "data"), "PATH": f"{self.database.programs}:{seaweed.find_aws()}:{os.environ['PATH']}"}
        self.place = ["--database", self.database.address, "--assets", f"s3://{seaweed.BUCKET}", "--s3-endpoint", self.bucket.bucket_endpoint]
        self.database.sql(self.guide.block("CREATE ROLE"))
        self.replica = Replica(self.database, self.folder / "replica")
        self.shell(self.guide.block("put-bucket-versioning"))

    def end(self):
        for database in filter(None, (self.replica, self.database)):
            database.stop()

    @staticmethod
    def note(text):
        print(f"  {text}", flush=True)

    @staticmethod
    def text(moment):
        return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(moment)) + "+00"

    def shell(self, text, as_postgres=False, within=600, **variables):
        """Runs commands, stops at the first that fails, and returns what they print."""
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if as_postgres and os.geteuid() == 0 else []
        ended = subprocess.run([*as_user, "bash", "-euo", "pipefail", "-c", text], env=self.environment | variables, cwd=self.backup,
                               capture_output=True, text=True, timeout=within)
        if ended.returncode != 0:
            raise Wrong(f"the commands ended with {ended.returncode}: {ended.stdout}{ended.stderr}\n{text}")
        return ended.stdout

    # The database

    def back_up(self):
        self.shell(self.guide.block("pg_basebackup", {"db2": "127.0.0.1", BACKUP: self.backup}), as_postgres=True, PGPORT=str(self.replica.port))
        self.archive_again()

    def archive_again(self):
        """Checks the archive command: it must accept the same file again, as after a crash, and refuse another file of the same name."""
        if not (files := sorted(self.backup.glob("wal/0*"))):
            raise Wrong("nothing is in the archive")
        command = re.search(r"archive_command = '(.*)'", self.guide.block("archive_command", {BACKUP: self.backup}))[1]
        again = lambda path: self.shell(command.replace("%p", str(path)).replace("%f", files[0].name), as_postgres=True)
        again(files[0])
        other = self.backup / "other"
        other.write_bytes(b"another")
        try:
            again(other)
        except Wrong:
            return
        raise Wrong("the archive has taken another file of the same name")

    def restore_database(self, moment, timeline=None):
        """Restores the database to a moment. Without `timeline`, the guide's value stays: the newest timeline, that of the last restoration."""
        self.replica.stop()
        self.database.stop()
        data = self.folder / "postgresql" / "data"
        data.rename(data.with_name(f"data-{time.monotonic_ns()}"))
        given = {BACKUP: self.backup, MOMENT: self.text(moment), TIMELINE: timeline or TIMELINE}
        self.shell(self.guide.block("recovery.signal", given), as_postgres=True)
        self.database.start()
        question = self.guide.block("pg_is_in_recovery")
        seaweed.wait_until("the database", 120, lambda: self.shell(question).strip() == "f")
        self.shell(self.guide.block("ALTER SYSTEM RESET"))
        self.replica = Replica(self.database, self.folder / "replica")

    def look_at_replica(self):
        """Waits until the replica that was made after the restoration has caught up. The replica must not take itself for a restored database."""
        seaweed.wait_until("the replica", 60, lambda: self.replica.has_all_of(self.database))

    def stopped(self):
        """Returns the line of PostgreSQL's log that says where the recovery ended."""
        log = (self.folder / "postgresql" / "log").read_text(errors="replace")
        found = re.findall(r"recovery stopping .*", log)
        if not found:
            raise Wrong(f"the recovery did not stop at the moment: {log[-2000:]}")
        return found[-1]

    def admin(self, verb, *more):
        """Runs a `tidemark admin` command of the guide, and returns its exit code and what it printed."""
        line = next(line for line in self.guide.block("tidemark admin", {"--database … --assets …": ""}).splitlines() if line.split()[2] == verb)
        command = [str(self.options.tidemark), *line.split()[1:], *self.place, *more]
        ended = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        if ended.returncode not in (0, 1):
            raise Wrong(f"{line} ended with {ended.returncode}: {ended.stdout}{ended.stderr}")
        return ended.returncode, ended.stdout

    def resync(self):
        status, output = self.admin("resync")
        if status != 0:
            raise Wrong(f"resync ended with {status}: {output}")

    def verify(self):
        """Returns the number of problems that `tidemark admin verify` finds."""
        status, output = self.admin("verify", "--json")
        count = len(json.loads(output)["problems"])
        if (count > 0) != (status == 1):
            raise Wrong(f"verify ended with {status} and finds {count} problems")
        return count

    # The bucket

    def asked(self, words):
        return json.loads(self.shell(f"aws s3api {words} --bucket {seaweed.BUCKET} --output json") or "{}")

    def remove_early(self):
        """Stores and deletes an object long before the moment. The restoration must not bring it back."""
        self.shell(f"echo gone > gone; aws s3api put-object --bucket {seaweed.BUCKET} --key gone/early --body gone; "
                   f"aws s3api delete-object --bucket {seaweed.BUCKET} --key gone/early")

    def remove(self, digests):
        """Removes contents from the bucket without the servers, every second one twice, as by a repeated request."""
        keys = [it["Key"] for it in self.asked("list-objects-v2").get("Contents", []) if it["Key"].rsplit("/", 1)[-1] in digests]
        if len(keys) < len(digests):
            raise Wrong(f"{len(keys)} of {len(digests)} contents are in the bucket")
        for key in [*keys, *keys[::2]]:
            self.shell(f"aws s3api delete-object --bucket {seaweed.BUCKET} --key {key}")

    def restore_bucket(self, moment):
        """Restores the bucket to a moment, and returns how many delete markers were removed."""
        count = lambda: len(self.asked("list-object-versions").get("DeleteMarkers", []))
        before, earlier = count(), time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment - EARLIER))
        self.shell(self.guide.block("list-object-versions", {BUCKET_MOMENT: earlier}))
        if any(it["Key"] == "gone/early" for it in self.asked("list-objects-v2").get("Contents", [])):
            raise Wrong("an object is back that was removed before the moment")
        return before - count()
