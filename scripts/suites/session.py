"""One run of one test: answers what the test calls, and compares the servers whenever the target has what the source had.

It judges nothing: run.py makes a result of what is noted here."""

import socket
import threading
import traceback

from servers import query_once
from snapshot import Snapshot, differences


class Session:
    def __init__(self, flavour, source, target, replica):
        self.flavour, self.source, self.target, self.replica = flavour, source, target, replica
        self.opened = self.started = self.reached_end = self.expected_stop = self.went_on = False
        self.unsupported, self.broken = "", ""
        self.stopped = ""  # why it stopped where the test expects none: what follows in the test says nothing
        self.expected = None  # the last stop that the test expected
        self.comparisons = 0
        self.differences = []  # (number of the comparison, key, lines)
        self.pictures = []  # of the target, one for each comparison
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rwb") as stream:
                line = stream.readline().decode().strip()
                try:
                    status, answer = self.command(line)
                except Exception:
                    self.broken = self.broken or f"{line}: {traceback.format_exc()[-700:]}"
                    status, answer = 1, "the runner failed"
                try:
                    stream.write(f"{status}\n{answer}\n".encode())
                except OSError:
                    pass

    def close(self):
        self.listener.close()

    def command(self, line):
        """Exit status and answer of one `$HX …` of the test."""
        word, _, rest = line.partition(" ")
        if self.stopped:
            return 1, f"stopped: {self.stopped}"
        if word == "open":
            self.opened = True
        elif word == "start":
            self.replica.start()
            self.started = True
        elif word == "stop":
            self.stop()
        elif word == "reset":
            return self.reset()
        elif word == "reset-replica":
            self.reset_replica()
        elif word == "sync":
            return self.sync()
        elif word == "expect-stop":
            return self.expect_stop()
        elif word == "wait-for-stop":
            self.catch_up()
            self.expected_stop, self.expected = True, self.replica.ended
            return 1, "the test waits for a stop that is not an error: it ends here"
        elif word == "unsupported":
            self.unsupported = self.unsupported or rest
        elif word == "end":
            return self.end()
        return 0, ""

    def stop(self):
        if self.started:
            self.replica.stop()
            self.started = False

    def catch_up(self):
        if self.started and not self.replica.ended:
            self.replica.sync()
            self.compare()

    def sync(self):
        self.catch_up()
        return self.answer()

    def expect_stop(self):
        """The test expects an error of the applier, and repairs its cause behind it."""
        self.catch_up()
        self.expected_stop, self.expected = True, self.replica.ended
        if self.replica.ended:
            return 0, ""
        self.went_on = True
        return 1, "the test expects a stop, and nothing stopped: it ends here"

    def answer(self):
        if self.replica.ended != self.expected:
            self.stopped = self.replica.ended or ""
        return (1, f"stopped: {self.replica.ended}") if self.replica.ended else (0, "")

    def compare(self):
        self.comparisons += 1
        one = Snapshot(self.source.port, self.flavour.is_mariadb).parts
        other = Snapshot(self.target.port, self.flavour.is_mariadb).parts
        self.pictures.append(other)
        self.differences += [(self.comparisons, key, lines) for key, lines in differences(one, other)]

    def reset(self):
        """Both servers forget their logs, and the replica where it was."""
        was_started = self.started
        self.sync()
        if self.replica.ended:
            return self.answer()
        self.stop()
        query_once(self.source.port, self.forget_logs())
        self.reset_replica()
        if was_started:
            self.replica.start()
            self.started = True
        return 0, ""

    def reset_replica(self):
        self.stop()
        self.replica.reset_target()
        query_once(self.target.port, self.forget_logs())
        if self.flavour.is_mariadb:
            query_once(self.target.port, "SET GLOBAL gtid_slave_pos=''")

    def forget_logs(self):
        return "RESET MASTER" if self.flavour.is_mariadb else "RESET BINARY LOGS AND GTIDS"

    def end(self):
        self.sync()
        if self.started and not self.replica.ended:
            # What follows the last transaction in the log is read, too.
            self.replica.to_the_end()
        self.reached_end = True
        return self.answer()
