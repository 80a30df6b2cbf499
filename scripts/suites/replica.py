"""What replicates from the source to the target: Heddle, or the server's own applier for comparison.

Both start, stop, and say when the target has what the source had; `ended` says why one has stopped by itself."""

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pymysql

import filters
from servers import PROCESSES, connect, query, query_once

SYNC_S = 60
URL = "ssl-mode=disabled&get-server-public-key=true"
# What the target's locks hold up when heddle is asked to end; the same command goes on.
ASKED_TO_END = "when heddle was asked to end"
# After so long the rest of the log may hold no transaction: a run to the log's end says so.
QUICKLY_S = 2.0


class Heddle:
    def __init__(self, binary, flavour, source, target, folder, options):
        self.flavour, self.source, self.target = flavour, source, target
        self.relay, self.log = Path(folder) / "relay", Path(folder) / "heddle.log"
        shutil.rmtree(self.relay, ignore_errors=True)
        self.log.write_text("")
        self.process, self.ended, self.begun_at, self.filters = None, None, 0, {}
        self.command = [binary, "replicate", "--from", f"mysql://heddle@127.0.0.1:{source.port}?{URL}",
                        "--to", f"mysql://heddle@127.0.0.1:{target.port}?{URL}",
                        "--relay-dir", str(self.relay), "--server-id", "77",
                        # Tests put rows on the target before the replica starts, and reset either end.
                        "--start-anyway", *options]
        if flavour.is_mariadb:
            # As MariaDB's own replicas by default (slave_ddl_exec_mode).
            self.command += ["--ddl", "idempotent"]
        self.environment = dict(os.environ, HEDDLE_SOURCE_PASSWORD="heddle", HEDDLE_TARGET_PASSWORD="heddle")

    def launch(self, *options):
        self.begun_at = self.log.stat().st_size
        with open(self.log, "ab") as log:
            self.process = PROCESSES.start(self.command + list(options), stdout=log, stderr=log, env=self.environment)

    def start(self):
        self.check()
        if self.process is None:
            self.ended = None
            self.launch()

    def check(self):
        """Notices a process that has ended."""
        if self.process is not None and self.process.poll() is not None:
            status, self.process = self.process.returncode, None
            if status not in (0, -signal.SIGTERM):
                said = self.log.read_bytes()[self.begun_at:].decode("utf8", "replace")
                message = re.search(r"heddle: .*", said, re.DOTALL)
                self.ended = (message.group(0) if message else said[-1500:])[:1500].strip() or f"exit status {status}"

    def stop(self):
        self.check()
        if self.process is not None:
            self.process.terminate()
            self.wait(40, "heddle did not end within 40 s of SIGTERM")
            if self.ended and ASKED_TO_END in self.ended:
                self.ended = None

    def wait(self, seconds, otherwise):
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            self.process, self.ended = None, otherwise
        self.check()

    def sync(self):
        status = query_once(self.source.port, "SHOW MASTER STATUS" if self.flavour.is_mariadb else "SHOW BINARY LOG STATUS")[0]
        wanted, before = (status[0], int(status[1])), None
        began = moved = time.monotonic()
        # A stop ends temporary tables: no stop while it goes on.
        while time.monotonic() - moved < QUICKLY_S and time.monotonic() - began < 75:
            self.check()
            if self.ended:
                return
            try:
                rows = query_once(self.target.port, "SELECT source_file, source_position FROM heddle.progress")
                now = (text_of(rows[0][0]), int(rows[0][1])) if rows else None
                if now and now >= wanted:
                    return
                if now != before:
                    before, moved = now, time.monotonic()
            except pymysql.err.Error:
                pass
            time.sleep(0.03)
        self.to_the_end()
        if not self.ended:
            self.launch()

    def to_the_end(self):
        self.stop()
        if not self.ended:
            self.launch("--until-end")
            self.wait(75, "heddle --until-end did not end within 75 s")

    def reset_target(self):
        self.stop()
        query_once(self.target.port, "SET sql_log_bin=0", "DROP DATABASE IF EXISTS heddle")
        shutil.rmtree(self.relay, ignore_errors=True)

    def finish(self):
        self.stop()


class Native:
    """The server's own applier, with its own defaults."""

    def __init__(self, flavour, source, target, by_gtid):
        self.flavour, self.source, self.target, self.by_gtid = flavour, source, target, by_gtid
        self.configured, self.ended = False, None
        self.filters = {}  # all that it had while it ran

    def start(self):
        self.ended = None
        if not self.configured:
            self.configured = True
            query_once(self.target.port, self.configuration())
        query_once(self.target.port, "START SLAVE" if self.flavour.is_mariadb else "START REPLICA")

    def configuration(self):
        if self.flavour.is_mariadb:
            return (f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={self.source.port}, MASTER_USER='heddle', "
                    "MASTER_PASSWORD='heddle', MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1")
        gtids = "SOURCE_AUTO_POSITION=1, " if self.by_gtid else ""
        return (f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={self.source.port}, SOURCE_USER='heddle', "
                f"SOURCE_PASSWORD='heddle', {gtids}GET_SOURCE_PUBLIC_KEY=1")

    def stop(self):
        query_once(self.target.port, "STOP SLAVE" if self.flavour.is_mariadb else "STOP REPLICA")

    def error(self):
        sql = "SHOW SLAVE STATUS" if self.flavour.is_mariadb else "SHOW REPLICA STATUS"
        connection = connect(self.target.port)
        try:
            with connection.cursor(pymysql.cursors.DictCursor) as cursor:
                cursor.execute(sql)
                row = cursor.fetchone()
            for kind, value in filters.of_status(row or {}).items():
                if value not in self.filters.get(kind, ""):
                    self.filters[kind] = ",".join(filter(None, (self.filters.get(kind), value)))
            if not row or not row["Last_SQL_Errno"]:
                return None
            message = row["Last_SQL_Error"]
            if not self.flavour.is_mariadb:
                workers = query(connection, "SELECT LAST_ERROR_MESSAGE FROM performance_schema.replication_applier_status_by_worker "
                                            "WHERE LAST_ERROR_NUMBER <> 0")
                message = " / ".join(str(worker[0]) for worker in workers) or message
            return f"{row['Last_SQL_Errno']}: {message}"
        finally:
            connection.close()

    def sync(self):
        mariadb = self.flavour.is_mariadb
        status = query_once(self.source.port, "SHOW MASTER STATUS" if mariadb else "SHOW BINARY LOG STATUS")[0]
        gtids = query_once(self.source.port, "SELECT @@gtid_binlog_pos" if mariadb else "SELECT @@gtid_executed")[0][0]
        began = time.monotonic()
        while time.monotonic() - began < SYNC_S:
            self.ended = self.error()
            if self.ended:
                return
            if mariadb:
                done = query_once(self.target.port, f"SELECT MASTER_GTID_WAIT('{gtids}', 0.3)")[0][0] == 0
            elif self.by_gtid:
                done = query_once(self.target.port, f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{gtids}', 0.3)")[0][0] == 0
            else:
                done = (query_once(self.target.port, f"SELECT SOURCE_POS_WAIT('{status[0]}', {status[1]}, 1)")[0][0] or 0) >= 0
            if done:
                return
        self.ended = f"the native replica did not reach the source in {SYNC_S} s"

    def to_the_end(self):
        self.sync()

    def reset_target(self):
        self.stop()
        query_once(self.target.port, "RESET SLAVE ALL" if self.flavour.is_mariadb else "RESET REPLICA ALL")
        self.configured = False

    def finish(self):
        pass


def text_of(value):
    return value.decode("utf8", "replace") if isinstance(value, bytes) else value
