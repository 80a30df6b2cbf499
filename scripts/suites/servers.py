"""Throw-away servers for one test: a source and a target, started with the options that the test wants.

Programs and their libraries come from scripts/servers, which keeps them in its cache. Nothing here knows Heddle."""

import contextlib
import os
import random
import shlex
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pymysql
from pymysql.constants import CLIENT

SCRIPTS = Path(__file__).resolve().parent.parent
START_S = 60
# What every test needs on both servers, in no log.
SETUP = [
    "SET sql_log_bin=0",
    "CREATE DATABASE IF NOT EXISTS test",
    "CREATE DATABASE IF NOT EXISTS mtr",
    "CREATE PROCEDURE mtr.add_suppression(x TEXT) BEGIN END",
    "CREATE TABLE mtr.test_suppressions(pattern VARCHAR(255))",
    # What docs/privileges.md asks for beside ALL.
    *[f"GRANT PROXY ON ''@'' TO heddle@'{host}' WITH GRANT OPTION" for host in ("%", "localhost", "127.0.0.1")],
]
COMMON = [
    "--bind-address=127.0.0.1", "--secure-file-priv=", "--local-infile", "--log-bin-trust-function-creators=1",
    "--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0",
]
MARIADB = [
    "--skip-slave-start", "--log-slave-updates", "--character-set-server=latin1", "--binlog-direct-non-transactional-updates",
    "--use_stat_tables=preferably", "--plugin-maturity=unknown", "--innodb-buffer-pool-size=32M",
    "--default-storage-engine=myisam", "--performance-schema=0",
]
MYSQL = [
    "--skip-replica-start", "--mysqlx=OFF", "--innodb-buffer-pool-size=64M", "--innodb-redo-log-capacity=100M",
    "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-error-verbosity=2", "--innodb-doublewrite=0",
]


class Processes:
    """What runs for the jobs, so that a signal can end all of it."""

    def __init__(self):
        self.lock = threading.Lock()
        self.running, self.ended = set(), False

    def start(self, command, **how):
        """As subprocess.Popen, in a process group of its own."""
        with self.lock:
            if self.ended:
                raise Ended("the run was asked to end")
            self.running = {process for process in self.running if process.poll() is None}
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, **how)
            self.running.add(process)
            return process

    def end(self):
        """Kills what runs; nothing starts any more."""
        with self.lock:
            self.ended = True
            for process in self.running:
                if process.poll() is None:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)


class Ended(Exception):
    """A signal has ended the run."""


PROCESSES = Processes()


def script(*words):
    """The answer of scripts/servers, as lines."""
    done = subprocess.run([SCRIPTS / "servers", *words], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()


def cache():
    return Path(os.environ.get("HEDDLE_CACHE") or Path.home() / ".cache/heddle")


# Below those that the kernel gives to outgoing connections: one of these could take the port of a server that restarts.
PORTS = range(10_000, 32_000)


def free_port():
    while True:
        port = random.choice(PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def connect(port):
    return pymysql.connect(host="127.0.0.1", port=port, user="root", password="", charset="utf8mb4", autocommit=True,
                           connect_timeout=5, read_timeout=30, client_flag=CLIENT.MULTI_STATEMENTS)


def query(connection, sql, *arguments):
    with connection.cursor() as cursor:
        cursor.execute(sql, *arguments)
        return cursor.fetchall()


def query_once(port, *statements):
    """Executes statements on a connection of their own; the rows of the last one."""
    connection = connect(port)
    try:
        rows = ()
        for sql in statements:
            rows = query(connection, sql)
        return rows
    finally:
        connection.close()


class Flavour:
    """One vendor: its programs, and how its servers are started."""

    def __init__(self, name, scratch):
        self.name = name  # "mariadb" or "mysql"
        self.server = {"mariadb": "mariadb-10.11", "mysql": "mysql-9.7"}[name]
        self.is_mariadb = name == "mariadb"
        script("fetch", self.server, self.server + "-suites")
        self.daemon = script("daemon", self.server)
        self.client = script("words", self.server, "mysql")
        self.dump = script("words", self.server, "mysqldump")
        self.binlog = script("words", self.server, "mysqlbinlog")
        self.suites = cache() / "servers" / (self.server + "-suites")
        tool = "mariadb-test" if self.is_mariadb else "mysqltest"
        path = next(p for p in sorted(self.suites.rglob(tool)) if p.is_file() and p.parent.name == "bin")
        # With the libraries of the server's own client, and those that came with the suite.
        libraries = ":".join(sorted({str(found.parent) for found in self.suites.glob("usr/lib/*/*.so.*")}))
        before = self.client.index("--library-path") + 1
        self.test_client = [*self.client[:before], f"{self.client[before]}:{libraries}", *self.client[before + 1:-1], str(path)]
        self.version = script("run", self.server, "mysql", "--version")[0]
        self.template = Path(scratch) / f"template-{name}"
        self.make_template()

    def make_template(self):
        if (self.template / "data").is_dir():
            return
        port = free_port()
        options = ["--skip-log-bin", "--character-set-server=latin1"] if self.is_mariadb else ["--disable-log-bin"]
        script("start", self.server, str(self.template), str(port), *options)
        query_once(port, *SETUP)
        script("stop", str(self.template))
        for leftover in ("auto.cnf",):
            (self.template / "data" / leftover).unlink(missing_ok=True)


class Server:
    """One running server below a folder; `role` is "master" or "slave", as the tests call them."""

    def __init__(self, flavour, role, folder):
        self.flavour, self.role, self.folder = flavour, role, Path(folder) / role
        self.port, self.process = None, None
        self.socket = self.folder / "sock"

    def start(self, options):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "tmp").mkdir(parents=True)
        subprocess.check_call(["cp", "-a", self.flavour.template / "data", self.folder / "data"])
        self.port = free_port()
        own = [f"--datadir={self.folder}/data", f"--port={self.port}", f"--socket={self.socket}", f"--tmpdir={self.folder}/tmp",
               f"--pid-file={self.folder}/pid", f"--log-bin={self.role}-bin", f"--server-id={1 if self.role == 'master' else 2}"]
        with open(self.folder / "err", "wb") as log:
            self.process = PROCESSES.start(
                self.flavour.daemon + own + COMMON + (MARIADB if self.flavour.is_mariadb else MYSQL) + options,
                stdout=log, stderr=log, cwd=self.folder)

    def wait_until_ready(self):
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise StartFailed(f"the {self.role} ended while starting: {self.last_error()}")
            try:
                connect(self.port).close()
                return
            except pymysql.err.Error:
                time.sleep(0.05)
        raise StartFailed(f"the {self.role} was not ready after {START_S} s")

    def last_error(self):
        lines = (self.folder / "err").read_text(errors="replace").splitlines()
        errors = [line for line in lines if "ERROR" in line]
        return " / ".join(errors[:2] or lines[-2:])[:400]

    def has_crashed(self):
        return self.process is not None and self.process.poll() is not None

    def kill(self):
        if self.process is not None:
            if self.process.poll() is None:
                self.process.kill()
            self.process.wait()
        self.process = None


class StartFailed(Exception):
    """A server does not start with the options of a test."""


def command_line(words, port):
    """A client's command line, as the tests' variables hold one."""
    return shlex.join(words) + f" --no-defaults -uroot -h127.0.0.1 -P{port}"
