"""Watches the locks of a PostgreSQL database in use: which locks two sessions want, and what sessions wait for."""

import json
import subprocess

from runner.measuring import Failure

# Locks that keep nobody waiting: table locks in these modes, and shared advisory locks.
COMPATIBLE = "(locktype = 'relation' AND mode IN ('AccessShareLock', 'RowShareLock', 'RowExclusiveLock')) OR (locktype = 'advisory' AND mode = 'ShareLock')"
TABLES = """
DROP TABLE IF EXISTS seen_locks, seen_waits;
CREATE UNLOGGED TABLE seen_locks (moment int, pid int, locktype text, object text, mode text, granted bool);
CREATE UNLOGGED TABLE seen_waits (moment int, pid int, kind text, event text);
"""
# Each sample is a transaction of its own, because the view of the activity does not change within a transaction.
SAMPLING = """
DO $$
DECLARE ended timestamptz := clock_timestamp() + interval '{seconds} s'; number int := 0;
BEGIN
    WHILE clock_timestamp() < ended LOOP
        number := number + 1;
        INSERT INTO seen_locks
        SELECT number, pid, locktype, concat_ws(' ', relation::regclass::text, page, tuple, virtualxid, transactionid, classid, objid, objsubid), mode, granted
        FROM pg_locks WHERE pid IN (SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND datname = current_database())
            AND pid <> pg_backend_pid();
        INSERT INTO seen_waits
        SELECT number, pid, coalesce(wait_event_type, 'processor'), coalesce(wait_event, '') FROM pg_stat_activity
        WHERE backend_type = 'client backend' AND datname = current_database() AND state = 'active' AND pid <> pg_backend_pid();
        COMMIT;
        PERFORM pg_sleep(0.005);
    END LOOP;
END $$
"""


class LockWatch:
    """Samples the locks up to two hundred times a second, for a number of seconds."""

    def __init__(self, database, seconds):
        self.database = database
        database.sql(TABLES)
        command = database.words("psql", "-h", "127.0.0.1", "-p", database.port, "-U", "tidemark", "-d", "tidemark", "-qX", "-v", "ON_ERROR_STOP=1")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.process.stdin.write(SAMPLING.format(seconds=seconds))
        self.process.stdin.close()

    def end(self):
        """Returns what was seen: the numbers of samples and of locks, locks that two sessions wanted in modes that exclude each other, and waits by kind."""
        complaint = self.process.stderr.read()
        if self.process.wait() != 0:
            raise Failure(f"the locks can't be watched: {complaint[-500:]}")
        rows = lambda query: [json.loads(line) for line in self.database.sql(f"SELECT row_to_json(it) FROM ({query}) AS it").splitlines()]
        found, = rows("SELECT count(DISTINCT moment) AS samples, count(*) AS locks, count(DISTINCT object) AS objects, max(busy) AS busy FROM seen_locks, "
                      "(SELECT max(busy) AS busy FROM (SELECT count(DISTINCT pid) AS busy FROM seen_locks GROUP BY moment) AS each) AS most")
        # At least one of the two sessions wants the lock in a mode that keeps the other waiting.
        found["shared"] = rows(f"""
            SELECT locktype, object, string_agg(DISTINCT mode, ', ') AS modes, count(DISTINCT moment) AS samples FROM seen_locks AS one
            WHERE EXISTS (SELECT FROM seen_locks AS other WHERE (other.moment, other.locktype, other.object) = (one.moment, one.locktype, one.object) AND other.pid <> one.pid)
                AND NOT ({COMPATIBLE}) AND locktype <> 'extend' GROUP BY 1, 2 ORDER BY 4 DESC LIMIT 20""")
        found["waited"] = rows(
            "SELECT locktype, object, mode AS modes, count(DISTINCT moment) AS samples FROM seen_locks WHERE NOT granted AND locktype <> 'extend' "
            "GROUP BY 1, 2, 3 ORDER BY 4 DESC")
        # A session that appends a page to a table's file holds this lock only until that is done, and not until the end of its transaction.
        found["extending"], = (it["share"] for it in rows(
            "SELECT coalesce(count(DISTINCT moment) FILTER (WHERE locktype = 'extend' AND NOT granted)::numeric / count(DISTINCT moment), 0) AS share FROM seen_locks"))
        found["waits"] = {it["kind"]: it["share"] for it in rows(
            "SELECT kind, round(count(*)::numeric / (SELECT count(*) FROM seen_waits), 4) AS share FROM seen_waits GROUP BY 1 ORDER BY 2 DESC")}
        self.database.sql("DROP TABLE seen_locks, seen_waits")
        return found
