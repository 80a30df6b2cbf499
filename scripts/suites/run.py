"""Runs one test with one replica, and makes a result of it; runs it natively, too, where Heddle stops or differs."""

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pymysql

from catalogue import explanation
from replica import Heddle, Native
from servers import PROCESSES, Server, StartFailed, command_line
from session import Session
from snapshot import differences

MODES = {"default": [], "ungrouped": ["--grouping", "off", "--workers", "8"], "preserve": ["--gtids", "preserve"]}
OWN_SKIP = 62  # mysqltest's exit status for a test that asks to be skipped
UNEXPLAINED = {"STOPS", "DIFFERS", "CRASHED", "BROKEN"}


def judge_again(record):
    """Whether a stop or a difference is explained: the lists may have changed since it was found."""
    if record["result"] == "explained":
        record["result"] = record.get("found") or ("STOPS" if record["why"].startswith("heddle:") else "DIFFERS")
        record.pop("explained", None)
    if record["result"] not in ("STOPS", "DIFFERS"):
        return
    record["found"] = record["result"]
    if why := explanation(record, record["found"]):
        record["result"], record["explained"] = "explained", why


def is_as_native(against, ours, native):
    """Whether the two targets differ only in what the two runs of the source do: times, UUIDs, random numbers. Where a target differs from its own
    source, too (a statement that is not safe), so does the other, in as many lines."""
    ours, native = ({(number, key): lines for number, key, lines in differences} for differences in (ours, native))
    return all(shape(ours.get((number, key))) == shape(native.get((number, key))) for number, key, _ in against)


def shape(lines):
    """How many lines one side has more, and the other."""
    return [sum(line.startswith(sign) for line in (lines or "").split("\n")) for sign in "-+"]


class Runner:
    """A place with two servers: one test at a time."""

    def __init__(self, flavour, root, folder, out, binary, test_s):
        self.flavour, self.root, self.folder, self.out = flavour, root, Path(folder), Path(out)
        self.binary, self.test_s = binary, test_s
        self.folder.mkdir(parents=True, exist_ok=True)
        self.source, self.target = Server(flavour, "master", folder), Server(flavour, "slave", folder)

    def close(self):
        self.source.kill()
        self.target.kill()

    def run(self, test, fmt, mode):
        began = time.monotonic()
        ours = self.once(test, fmt, mode)
        record = {"flavour": self.flavour.name, "test": test.name, "format": fmt, "mode": mode, "result": ours.result, "why": ours.why,
                  "comparisons": ours.comparisons, "differences": ours.differences[:200]}
        if ours.result in ("STOPS", "DIFFERS", "CRASHED"):
            self.beside_native(test, fmt, mode, ours, record)
        record["seconds"] = round(time.monotonic() - began, 1)
        return record

    def beside_native(self, test, fmt, mode, ours, record):
        native = self.once(test, fmt, "native")
        against = [(number, key, lines) for number, (a, b) in enumerate(zip(native.pictures, ours.pictures), 1)
                   for key, lines in differences(a, b)]
        record["native"] = {"result": native.result, "why": native.why, "comparisons": native.comparisons, "filters": native.filters,
                            "differences": native.differences[:200], "heddle_against_it": against[:200]}
        both_stop = (ours.result == "STOPS") == (native.result == "STOPS")
        if native.result not in ("BROKEN", "not-started") and both_stop and native.comparisons == ours.comparisons and (
                ours.result != "CRASHED" and is_as_native(against, ours.differences, native.differences)):
            record["result"] = "as-native"
            return
        judge_again(record)

    def once(self, test, fmt, mode):
        base = self.out / f"{self.flavour.name}.{test.name.replace('/', '.')}.{fmt}.{mode}"
        if mode != "native" and mode == "preserve" and test.without_gtids and not self.flavour.is_mariadb:
            return Result("not-run", "the source has no GTIDs to keep")
        try:
            self.start_servers(test, fmt)
        except StartFailed as failed:
            return Result("not-started", str(failed))
        if mode == "native":
            replica = Native(self.flavour, self.source, self.target, not test.without_gtids)
        else:
            replica = Heddle(self.binary, self.flavour, self.source, self.target, self.folder, MODES[mode])
        session = Session(self.flavour, self.source, self.target, replica)
        try:
            status = self.test_client(test, session, f"{base}.out")
            if session.opened and session.started and not (session.reached_end or replica.ended or session.expected_stop
                                                           or session.unsupported or status == OWN_SKIP):
                try:
                    session.command("end")
                    session.reached_end = False
                except pymysql.err.Error as error:
                    session.broken = session.broken or f"at the end: {error}"
        finally:
            session.close()
            replica.finish()
        result = self.judge(session, replica, status, f"{base}.out")
        result.filters = replica.filters
        if mode != "native":
            shutil.copyfile(replica.log, f"{base}.heddle")
        if result.result in ("equal", "not-run"):
            for path in (f"{base}.out", f"{base}.heddle"):
                Path(path).unlink(missing_ok=True)
        return result

    def start_servers(self, test, fmt):
        common = [f"--binlog-format={fmt}"]
        if test.without_gtids and not self.flavour.is_mariadb:
            common += ["--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"]
        for server in (self.source, self.target):
            server.start(common + test.options(server.role, self.root))
        for server in (self.source, self.target):
            server.wait_until_ready()

    def test_client(self, test, session, out):
        scratch = self.folder / "tmp"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        for name in ("std_data", "std_data_ln"):
            if not (self.folder / name).exists():
                (self.folder / name).symlink_to(self.root / "std_data")
        command = self.flavour.test_client + [
            "--no-defaults", "--host=127.0.0.1", f"--port={self.source.port}", "--user=root", "--database=test",
            f"--socket={self.source.socket}", f"--tmpdir={scratch}", f"--logdir={scratch}", f"--test-file={test.path}", f"--basedir={self.root}/"]
        if self.flavour.is_mariadb:
            command += [f"--suite-dir={test.path.parent.parent}", "--continue-on-error", "--skip-ssl"]
        with open(out, "wb") as file:
            process = PROCESSES.start(command, stdout=file, stderr=file, cwd=self.root, env=self.environment(session, scratch))
            try:
                return process.wait(self.test_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return None

    def environment(self, session, scratch):
        source, target, flavour = self.source, self.target, self.flavour
        return dict(
            os.environ, HX=str(Path(__file__).parent / "hook"), HXPORT=str(session.port),
            MASTER_MYPORT=str(source.port), SLAVE_MYPORT=str(target.port), SERVER_MYPORT_1=str(source.port), SERVER_MYPORT_2=str(target.port),
            MASTER_MYPORT1="1", SLAVE_MYPORT1="1", MASTER_MYSOCK=str(source.socket), SLAVE_MYSOCK=str(target.socket),
            MYSQL_TEST_DIR=str(self.root), MYSQLTEST_VARDIR=str(self.folder), MYSQL_TMP_DIR=str(scratch),
            MYSQL=command_line(flavour.client, source.port), MYSQL_SLAVE=command_line(flavour.client, target.port),
            MYSQL_DUMP=command_line(flavour.dump, source.port), MYSQL_DUMP_SLAVE=command_line(flavour.dump, target.port),
            MYSQL_BINLOG=" ".join(flavour.binlog) + " --no-defaults", LC_ALL="C", TZ="GMT-3", ENGINE="", CHARSETSDIR="",
            MTR_VERSION="1", ENABLED_DEBUG="0", PLUGIN_DIR="/nowhere", REPLICATION_SSL="")

    def judge(self, session, replica, status, out):
        crashed = [server.role for server in (self.source, self.target) if server.has_crashed()]
        written = Path(out).read_text(errors="replace")
        said = re.findall(r"^(?:mysqltest|mariadb-test): .*", written, re.MULTILINE) or (written.splitlines()[-1:] if status else [])
        why = said[0][:300] if said else ("" if status is not None else f"longer than {self.test_s} s")
        result = Result("equal", why, session)
        if crashed:
            result.result, result.why = "CRASHED", f"{', '.join(crashed)}: {(self.source if 'master' in crashed else self.target).last_error()}"
        elif session.broken:
            result.result, result.why = "BROKEN", session.broken
        elif status == 127:
            result.result, result.why = "BROKEN", f"the test client does not start: {why}"
        elif status == OWN_SKIP:
            result.result, result.why = "not-run", "the test asks for what this server, format or build has not"
        elif session.stopped or (replica.ended and replica.ended != session.expected):
            result.result, result.why = "STOPS", session.stopped or replica.ended
        elif session.went_on:
            result.result, result.why = "DIFFERS", "goes on where the test expects a stop"
        elif session.differences:
            result.result, result.why = "DIFFERS", ", ".join(sorted({key for _, key, _ in session.differences}))[:300]
        elif session.unsupported and not session.comparisons:
            result.result, result.why = "not-run", session.unsupported
        elif session.comparisons == 0:
            result.result, result.why = "not-run", why or "nothing to compare"
        elif not session.reached_end:
            result.result, result.why = "equal-in-part", session.unsupported or ("a stop that the test expects" if session.expected_stop else why)
        return result


class Result:
    def __init__(self, result, why, session=None):
        self.result, self.why = result, why
        self.comparisons = session.comparisons if session else 0
        self.differences = session.differences if session else []
        self.pictures = session.pictures if session else []
        self.filters = {}
