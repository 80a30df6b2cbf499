#!/usr/bin/env python3
"""Compares what keys/collation.rs says of collations with a server.

All strings of zero, one and two printable ASCII characters (some with spaces behind) are grouped by the server
under each collation, and by the rule (case folded or not, spaces at the end trimmed or not) that Heddle uses.
Both partitions must be the same. Usage:

    collations.py mariadb|mysql CLIENT [ARGUMENT…]      e.g. collations.py mysql mysql -uroot -S /tmp/my.sock

Found equal with MySQL 9.7.4 and MariaDB 10.11.19 for every entry below.
"""
import subprocess
import sys

# charset:collation:pad:fold
BOTH = """utf8mb4:utf8mb4_bin:1:0 utf8mb4:utf8mb4_general_ci:1:1 utf8mb4:utf8mb4_unicode_ci:1:1
utf8mb4:utf8mb4_unicode_520_ci:1:1 utf8mb3:utf8mb3_general_ci:1:1 utf8mb3:utf8mb3_unicode_ci:1:1
utf8mb3:utf8mb3_unicode_520_ci:1:1 utf8mb3:utf8mb3_general_mysql500_ci:1:1 latin1:latin1_swedish_ci:1:1
latin1:latin1_general_ci:1:1 latin1:latin1_general_cs:1:0 latin1:latin1_german1_ci:1:1 latin1:latin1_bin:1:0
ascii:ascii_general_ci:1:1 ascii:ascii_bin:1:0"""
MYSQL = """utf8mb4:utf8mb4_0900_ai_ci:0:1 utf8mb4:utf8mb4_0900_as_ci:0:1 utf8mb4:utf8mb4_0900_as_cs:0:0
utf8mb4:utf8mb4_0900_bin:0:0"""
MARIADB = """utf8mb4:utf8mb4_nopad_bin:0:0 utf8mb4:utf8mb4_general_nopad_ci:0:1 utf8mb4:utf8mb4_unicode_nopad_ci:0:1
utf8mb4:utf8mb4_unicode_520_nopad_ci:0:1 utf8mb4:uca1400_ai_ci:1:1 utf8mb4:uca1400_as_ci:1:1
utf8mb4:uca1400_ai_cs:1:0 utf8mb4:uca1400_as_cs:1:0 utf8mb4:uca1400_nopad_ai_ci:0:1
utf8mb4:uca1400_nopad_as_ci:0:1 utf8mb4:uca1400_nopad_ai_cs:0:0 utf8mb4:uca1400_nopad_as_cs:0:0
latin1:latin1_swedish_nopad_ci:0:1 latin1:latin1_nopad_bin:0:0"""

PRINTABLE = [chr(c) for c in range(0x20, 0x7F)]
STRINGS = [""] + PRINTABLE + [a + b for a in PRINTABLE for b in PRINTABLE]
STRINGS += [a + b + "  " for a in PRINTABLE[:20] for b in PRINTABLE[:20]]


def main():
    flavour, client = sys.argv[1], sys.argv[2:]

    def run(sql):
        done = subprocess.run(client + ["-N", "--batch"], input=sql.encode(), stdout=subprocess.PIPE, check=True)
        return done.stdout.decode()

    rows = [f"({n},'{text.encode().hex()}')" for n, text in enumerate(STRINGS)]
    sql = "CREATE DATABASE IF NOT EXISTS heddle_evidence; USE heddle_evidence; DROP TABLE IF EXISTS s;"
    sql += "CREATE TABLE s (id INT PRIMARY KEY, s VARBINARY(16));"
    for at in range(0, len(rows), 2000):
        values = ",".join(rows[at : at + 2000])
        sql += f"INSERT INTO s VALUES {values};"
    sql += "UPDATE s SET s = UNHEX(s);"
    run(sql)
    bad = 0
    for entry in (BOTH + " " + (MYSQL if flavour == "mysql" else MARIADB)).split():
        charset, collation, pad, fold = entry.split(":")
        out = run(
            "USE heddle_evidence; SET group_concat_max_len = 1000000; DROP TABLE IF EXISTS c;"
            f"CREATE TABLE c (id INT PRIMARY KEY, c VARCHAR(8) CHARACTER SET {charset} COLLATE {collation});"
            f"INSERT INTO c SELECT id, CONVERT(s USING {charset}) FROM s;"
            "SELECT GROUP_CONCAT(id ORDER BY id) FROM c GROUP BY c;"
        )
        servers = {frozenset(map(int, line.split(","))) for line in out.split()}
        ours = {}
        for n, text in enumerate(STRINGS):
            key = text.upper() if fold == "1" else text
            ours.setdefault(key.rstrip(" ") if pad == "1" else key, set()).add(n)
        same = servers == set(map(frozenset, ours.values()))
        bad += not same
        print(collation, "equal" if same else "DIFFERENT", len(servers), "groups")
    run("DROP DATABASE heddle_evidence")
    sys.exit(bad > 0)


main()
