#!/usr/bin/env python3
"""Asks a server which of some seeded strings are equal, for the test `keys_agree_with_the_servers`.

    golden.py FOLDER COLLATION CLIENT [ARGUMENT…]     writes FOLDER/COLLATION.txt: `hex group`, sorted
"""
import random
import subprocess
import sys

FOLDER, COLLATION, CLIENT = sys.argv[1], sys.argv[2], sys.argv[3:]
SEED, STRINGS = 7, 1250
random.seed(SEED)
PIECES = (list("aAeEbBsSzZoO") + list("éÉèêëÈñÑäÄåÅöÖøØüÜßẞæÆœŒçÇłŁđĐðÐþÞıİſﬁ") + ["ss", "SS", "ae", "AE", "oe", "L·", "l·", "ŀ"]
          + list("иИйЙёЁеЕїЇ") + list("αΑάΆσςΣΩΩ") + list("かカガがヵーぁあアｱぱパ") + list("中国國") + list("가각ㄱㅏ")
          + ["😀", "😁", "👍", "👍🏽", "👨\u200d👩", "❤\ufe0f", "❤", "①", "1", "²", "2", "½", "ａ", "Ａ", "™", "tm", "𝐚", "𠀀", "𠀁"]
          + ["\u0301", "e\u0301", "и\u0306", "\u00ad", "\u200b", "\u200d", "\ufeff", "\t", "\n", "\x01", "\x00", "\x7f"]
          + [" ", "  ", "\u00a0", "\u3000", "\u2003", "-", "‐", "–", "'", "’", "_", ".", ",", "€", "$", "\ufffd", "\U0010fffd"]
          + list("กเกแ") + list("אבַب"))
strings = {""} | set(PIECES)
while len(strings) < STRINGS:
    # Few pieces, often near each other in the list: so that many strings are equal to another.
    base = [random.choice(PIECES) for _ in range(random.choice((1, 1, 2, 2, 3)))]
    for _ in range(3):
        text = []
        for piece in base:
            near = PIECES.index(piece) + random.choice((-2, -1, 0, 0, 0, 1, 2))
            text.append(PIECES[near % len(PIECES)])
        strings.add("".join(text) + random.choice(("", "", "", " ", "  ", "\u00a0", "\u200b")))
strings = sorted(strings)
values = ",".join(f"({n}, X'{text.encode().hex()}')" for n, text in enumerate(strings))
sql = ("CREATE DATABASE IF NOT EXISTS heddle_evidence; USE heddle_evidence; DROP TABLE IF EXISTS g;"
       f"CREATE TABLE g (id INT PRIMARY KEY, c VARCHAR(40) CHARACTER SET utf8mb4 COLLATE {COLLATION});"
       f"INSERT INTO g VALUES {values}; SET group_concat_max_len=1000000;"
       "SELECT GROUP_CONCAT(id ORDER BY id) FROM g GROUP BY c; DROP DATABASE heddle_evidence;")
command = CLIENT + ["-N", "--batch", "--default-character-set=utf8mb4"]
done = subprocess.run(command, input=sql.encode(), stdout=subprocess.PIPE, check=True)
groups = {}
for line in done.stdout.decode().split():
    members = [int(n) for n in line.split(",")]
    groups.update((n, members[0]) for n in members)
assert len(groups) == len(strings)
with open(f"{FOLDER}/{COLLATION}.txt", "w") as file:
    file.writelines(f"{text.encode().hex()} {groups[n]}\n" for n, text in enumerate(strings))
print(COLLATION, len(strings), "strings in", len(set(groups.values())), "groups")
