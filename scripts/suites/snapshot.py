"""What a server holds: definitions, all rows, routines, triggers, events, accounts. Compares two such pictures.

It reads only. What it cannot read on one side is left out of the comparison, not guessed."""

import difflib
import re
import zlib

import pymysql

from servers import connect, query

NOT_COMPARED = {"mysql", "information_schema", "performance_schema", "sys", "heddle", "mtr"}
OUR_ACCOUNTS = {"heddle", "mysql.sys", "mysql.session", "mysql.infoschema", "mariadb.sys", "repl"}
MOST_ROWS = 400_000
# An event is created disabled on a replica, and its start is the time of its creation.
OF_EVENTS = re.compile(r"(?<=')20\d\d-\d\d-\d\d \d\d:\d\d:\d\d(?=')|DISABLE ON (SLAVE|REPLICA)|ENABLE|DISABLE")
COUNTER = re.compile(r" AUTO_INCREMENT=(\d+)")
UNREADABLE = "!unreadable "


def text(value):
    return value.decode("utf8", "replace") if isinstance(value, (bytes, bytearray)) else str(value)


def quoted(name):
    return "`" + name.replace("`", "``") + "`"


def as_read(column, kind):
    """The client knows no vectors."""
    return f"HEX({column})" if kind == "vector" else column


def field(value):
    """One value of a row, one line; a long one is cut, with its checksum."""
    if value is None:
        return "NULL"
    if isinstance(value, (bytes, bytearray)):
        cut = value[:2000].decode("latin1")
        return cut if len(value) <= 2000 else f"{cut}#{zlib.crc32(value)}"
    return str(value)


class Snapshot:
    """Key (`rows test.t1`, `table test.t1`, …) to text."""

    def __init__(self, port, is_mariadb):
        self.parts = {}
        self.is_mariadb = is_mariadb
        self.connection = connect(port)
        try:
            self.read_all()
        finally:
            self.connection.close()

    def ask(self, sql, *arguments):
        return query(self.connection, sql, *arguments)

    def add(self, key, read):
        try:
            self.parts[key] = read()
        except pymysql.err.Error as error:
            self.parts[key] = UNREADABLE + str(error)[:200]
            if not self.connection.open:
                raise

    def read_all(self):
        self.ask("SET time_zone='+00:00', sql_mode='', character_set_results=binary, lock_wait_timeout=3")
        self.ask("SET SESSION max_statement_time=15" if self.is_mariadb else "SET SESSION max_execution_time=15000")
        for schema in [text(row[0]) for row in self.ask("SHOW DATABASES")]:
            if schema not in NOT_COMPARED:
                self.read_schema(schema)
        self.read_routines()
        self.read_accounts()
        for table in ("servers", "func"):
            self.add(f"rows mysql.{table}", lambda t=table: "\n".join(sorted(repr(row) for row in self.ask(f"SELECT * FROM mysql.{t}"))))

    def read_schema(self, schema):
        self.add(f"schema {schema}", lambda: text(self.ask(f"SHOW CREATE DATABASE {quoted(schema)}")[0][1]))
        for name, kind in [(text(row[0]), text(row[1])) for row in self.ask(f"SHOW FULL TABLES FROM {quoted(schema)}")]:
            full = f"{quoted(schema)}.{quoted(name)}"
            if kind == "VIEW":
                self.add(f"view {schema}.{name}", lambda f=full: text(self.ask(f"SHOW CREATE VIEW {f}")[0][1]))
                continue
            self.add(f"table {schema}.{name}", lambda f=full: COUNTER.sub("", self.definition(f)))
            self.add(f"counter {schema}.{name}", lambda f=full: ",".join(COUNTER.findall(self.definition(f))) or "-")
            history = " FOR SYSTEM_TIME ALL" if kind == "SYSTEM VERSIONED" else ""
            self.add(f"rows {schema}.{name}", lambda f=full, h=history, n=name: self.rows(schema, n, f, h))
        with self.connection.cursor(pymysql.cursors.DictCursor) as cursor:
            cursor.execute(f"SHOW TRIGGERS FROM {quoted(schema)}")
            for row in cursor.fetchall():
                row = {text(k): text(v) for k, v in row.items() if text(k) != "Created"}
                self.parts[f"trigger {schema}.{row['Trigger']}"] = "\n".join(f"{k}: {v}" for k, v in row.items())

    def definition(self, full):
        return text(self.ask(f"SHOW CREATE TABLE {full}")[0][1])

    def rows(self, schema, name, full, history):
        # By name: `*` leaves out invisible columns.
        columns = self.ask("SELECT COLUMN_NAME, DATA_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA=%s AND TABLE_NAME=%s "
                           "ORDER BY ORDINAL_POSITION", (schema, name))
        chosen = ",".join(as_read(quoted(text(row[0])), text(row[1])) for row in columns) or "*"
        rows = self.ask(f"SELECT {chosen} FROM {full}{history} LIMIT {MOST_ROWS}")
        return "\n".join(sorted("\t".join(field(value) for value in row) for row in rows))

    def read_routines(self):
        for kind in ("PROCEDURE", "FUNCTION"):
            for row in self.ask(f"SELECT ROUTINE_SCHEMA, ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_TYPE='{kind}'"):
                schema, name = text(row[0]), text(row[1])
                if schema not in NOT_COMPARED:
                    self.add(f"{kind.lower()} {schema}.{name}", lambda k=kind, s=schema, n=name: self.created(k, s, n))
        for row in self.ask("SELECT EVENT_SCHEMA, EVENT_NAME FROM information_schema.EVENTS"):
            schema, name = text(row[0]), text(row[1])
            if schema not in NOT_COMPARED:
                self.add(f"event {schema}.{name}", lambda s=schema, n=name: OF_EVENTS.sub("<status>", self.created("EVENT", s, n)))

    def created(self, kind, schema, name):
        return "\n".join(text(value) for value in self.ask(f"SHOW CREATE {kind} {quoted(schema)}.{quoted(name)}")[0])

    def read_accounts(self):
        role = "is_role" if self.is_mariadb else "'N'"
        for user, host, is_role in self.ask(f"SELECT user, host, {role} FROM mysql.user"):
            user, host = text(user), text(host)
            if user in OUR_ACCOUNTS:
                continue
            account = quoted(user) if text(is_role) == "Y" else f"'{user}'@'{host}'"
            if not self.is_mariadb:
                self.add(f"account {user}@{host}", lambda a=account: text(self.ask(f"SHOW CREATE USER {a}")[0][0]))
            self.add(f"grants {user}@{host}", lambda a=account: "\n".join(sorted(text(r[0]) for r in self.ask(f"SHOW GRANTS FOR {a}"))))


def differences(one, other, lines=12):
    """Pairs (key, the lines that differ), at most `lines` of them for each key."""
    found = []
    for key in sorted(one.keys() | other.keys()):
        a, b = one.get(key), other.get(key)
        if a == b or any(x is not None and x.startswith(UNREADABLE) for x in (a, b)):
            continue
        change = difflib.unified_diff(["<absent>"] if a is None else a.split("\n"), ["<absent>"] if b is None else b.split("\n"),
                                      "one", "other", lineterm="", n=0)
        found.append((key, "\n".join(line[:400] for line in list(change)[2:2 + lines])))
    return found
