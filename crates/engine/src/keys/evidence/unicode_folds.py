#!/usr/bin/env python3
"""Measures which characters a Unicode collation does not tell apart, and proves that characters can be folded one by
one. Writes the tables in keys/folds/.

    unicode_folds.py mariadb|mysql OUTPUT_FOLDER|- CLIENT [ARGUMENT…]     `-`: only prove, write nothing

Method. WEIGHT_STRING of every code point comes from the server. Two strings are equal when their sequences of
weights are equal. A weight (a pair of units from FB40 on is one) is represented by the smallest character that has
just this weight, ASCII capitals first; a character becomes the representatives of its weights. A character is
covered only if all its weights have representatives. Where the collation may have contractions, only these are covered:

* S: scripts without contractions, for which the weights of every pair of characters were compared with the weights
  of its parts on the server (all |S|² pairs);
* X: ideographs, Hangul syllables, symbols and emoji, for which pairs with 60 characters of S on either side, and with
  their own neighbours, were compared. None of them is in a contraction of DUCET (checked against Perl's copy).

Combining marks, conjoining jamo and the second parts of contractions (such as U+00B7 after l) are never covered.
Run with MySQL 9.7.4 and MariaDB 10.11.19: both give the same tables for the three collations that they share.
"""
import glob
import subprocess
import sys
import unicodedata

FLAVOUR, OUTPUT, CLIENT = sys.argv[1], sys.argv[2], sys.argv[3:]
# collation, file, has contractions or ignorables, also under these charsets
COLLATIONS = [("utf8mb4_general_ci", "general_ci", False), ("utf8mb4_unicode_ci", "unicode_ci", True),
              ("utf8mb4_unicode_520_ci", "unicode_520_ci", True)]
COLLATIONS += [("utf8mb4_0900_ai_ci", "uca0900_ai_ci", True)] if FLAVOUR == "mysql" else [
    ("utf8mb4_uca1400_ai_ci", "uca1400_ai_ci", True)]
S = [(0x00, 0x52F), (0x1E00, 0x1FFF), (0x2000, 0x206F), (0x20A0, 0x20CF), (0x2100, 0x214F), (0x3000, 0x30FF)]
X = [(0x2150, 0x2BFF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xFE0E, 0xFE0F), (0xFF00, 0xFFEF),
     (0x1F000, 0x1FAFF), (0x20000, 0x2A6DF)]
HANGUL = range(0xAC00, 0xD7A4)
VARIATION = (0xFE0E, 0xFE0F)


def run(sql):
    command = CLIENT + ["-N", "--batch", "--default-character-set=utf8mb4"]
    done = subprocess.run(command, input=sql.encode(), stdout=subprocess.PIPE, check=True)
    return [line.split("\t") for line in done.stdout.decode().split("\n") if line]


def numbers(columns):
    if FLAVOUR == "mysql":
        return ("SET cte_max_recursion_depth=2000000; WITH RECURSIVE s(seq) AS (SELECT 0 UNION ALL SELECT seq+1 FROM s "
                f"WHERE seq<1114111) SELECT {columns} FROM s WHERE seq NOT BETWEEN 55296 AND 57343;")
    return f"SELECT {columns} FROM seq_0_to_1114111 WHERE seq NOT BETWEEN 55296 AND 57343;"


CHARACTER = "CONVERT(CHAR(seq USING utf32) USING utf8mb4)"


def contraction_tails():
    """Characters that come second or later in a contraction of DUCET, and the first ones."""
    tails, heads = set(), set()
    path = sorted(glob.glob("/usr/share/perl/5*/Unicode/Collate/allkeys.txt"))[0]
    for line in open(path, encoding="ascii", errors="replace"):
        points = line.split(";")[0].split()
        if len(points) > 1 and not line.startswith(("@", "#")):
            heads.add(int(points[0], 16))
            tails.update(int(point, 16) for point in points[1:])
    return heads, tails


def split(weight):
    """The weights of a WEIGHT_STRING in hex."""
    units = [weight[at : at + 4] for at in range(0, len(weight), 4)]
    out = []
    while units:
        take = 2 if len(units) > 1 and units[0] >= "FB40" and units[0] <= "FBFF" else 1
        out.append("".join(units[:take]))
        units = units[take:]
    return out


def literal(points):
    return "(" + "),(".join(f"{point}" for point in points) + ")"


def load(name, points):
    sql = f"CREATE TABLE {name} (seq INT PRIMARY KEY, c VARCHAR(2) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, w VARBINARY(80));"
    for at in range(0, len(points), 5000):
        sql += f"INSERT INTO {name} (seq) VALUES {literal(points[at : at + 5000])};"
    return sql + f"UPDATE {name} SET c={CHARACTER};"


def prove_likes(collation):
    """The same weights under utf8mb3 (for the basic plane) and in MariaDB's NO PAD collation."""
    own = collation.removeprefix("utf8mb4_")
    nopad = own.replace("_ai", "_nopad_ai") if own.startswith("uca") else own.removesuffix("_ci") + "_nopad_ci"
    likes = [("utf8mb3", "utf8mb3_" + own)] if "0900" not in own else []
    likes += [("utf8mb4", "utf8mb4_" + nopad), ("utf8mb3", "utf8mb3_" + nopad)] if FLAVOUR == "mariadb" else []
    for charset, like in likes:
        limit = 65536 if charset == "utf8mb3" else 1114112
        text = f"CONVERT({CHARACTER} USING {charset})"
        sql = numbers(f"SUM(seq<{limit} AND NOT WEIGHT_STRING({CHARACTER} COLLATE {collation})<=>WEIGHT_STRING({text} COLLATE {like}))")
        different = int(run("USE heddle_evidence;" + sql)[0][0])
        print(like, different, "characters weigh otherwise")
        assert different == 0


def prove_pairs(collation, a, b, condition="TRUE"):
    """Counts pairs whose weights are not those of their parts."""
    weight = f"WEIGHT_STRING(CONCAT(a.c,b.c) COLLATE {collation})"
    rows = run(f"USE heddle_evidence; SELECT a.seq,b.seq FROM {a} a JOIN {b} b ON {condition} "
               f"WHERE {weight}<>CONCAT(a.w,b.w) LIMIT 100000;")
    return [(int(x), int(y)) for x, y in rows]


def measure(collation, name, special):
    weights = {int(point): weight for point, weight in
               (row if len(row) == 2 else (row[0], "") for row in run("USE heddle_evidence;" + numbers(
                   f"seq,HEX(WEIGHT_STRING({CHARACTER} COLLATE {collation}))")))}
    everything = sorted(weights)
    heads, tails = contraction_tails()

    def plain(point):
        return unicodedata.category(chr(point))[0] != "M" and point not in tails

    if special:
        s = [p for low, high in S for p in range(low, high + 1) if plain(p)]
        x = [p for low, high in X for p in range(low, high + 1) if plain(p) and p not in heads or p in VARIATION]
        # Beyond the BMP the older tables know nothing: all characters there have one weight.
        if weights[0x10000] == weights[0x10FFFF]:
            x = [p for p in x if p < 0x10000]
        covered = s + x
    else:
        covered = [p for p in everything if p < 0x10000]
    candidates = {}
    for point in [*range(0x20, 0x7F)] + everything:
        parts = split(weights[point])
        if len(parts) == 1 and not 0xD800 <= point < 0xE000:
            candidates.setdefault(parts[0], point)
    beyond = None
    if len({weights[p] for p in everything if p >= 0x10000}) == 1:
        beyond = candidates[weights[0x10000]]
    # ASCII letters stand for themselves as capitals.
    for point in range(0x41, 0x5B):
        assert candidates[weights[point]] == point and weights[point] == weights[point + 32]
    for point in [*range(0x20, 0x61), *range(0x7B, 0x7F)]:
        assert candidates[weights[point]] == point, hex(point)

    hangul = {part for p in HANGUL for part in split(weights[p])}
    folds, kept = {}, []
    for point in covered:
        parts = split(weights[point])
        if point in HANGUL and len(parts) > 1:
            # Leading, vowel and trailing jamo have weights of their own: syllables are read back in one way only.
            folds[point] = [point]
        elif special and set(parts) & hangul and point not in HANGUL or any(part not in candidates for part in parts):
            continue
        else:
            folds[point] = [candidates[part] for part in parts]
        kept.append(point)
    if special:
        sql = "USE heddle_evidence; DROP TABLE IF EXISTS s; DROP TABLE IF EXISTS x; DROP TABLE IF EXISTS f;"
        inside = set(kept)
        s = [p for p in s if p in inside]
        x = [p for p in x if p in inside]
        few = s[:: max(1, len(s) // 40)][:40] + [0x20, 0x41, 0x6C, 0x4C, 0x438, 0x418, 0x6E, 0x65, 0x63, 0x68, 0x30AB,
                                                  0x30FC, 0x30FD, 0x309D, 0x2D, 0x200D, 0x2019, 0x27, 0x3C3, 0xDF]
        sql += load("s", s) + load("x", x) + load("f", sorted({p for p in few if p in inside}))
        sql += "".join(f"UPDATE {t} SET w=WEIGHT_STRING(c COLLATE {collation});" for t in ("s", "x", "f"))
        run(sql)
        broken = prove_pairs(collation, "s", "s")
        broken += prove_pairs(collation, "x", "f") + prove_pairs(collation, "f", "x")
        broken += prove_pairs(collation, "x", "x", "b.seq BETWEEN a.seq-1 AND a.seq+1")
        print(collation, len(s), "in S,", len(x), "in X,", len(broken), "pairs are not the sum of their parts:",
              [f"{a:04X}+{b:04X}" for a, b in broken[:20]])
        # A character that is second in a contraction goes; that must cure all of them.
        bad = {b for _, b in broken}
        assert not any(0x20 <= p < 0x7F for p in bad), "an ASCII character is second in a contraction"
        kept = [p for p in kept if p not in bad]
    prove_likes(collation)
    write(name, collation, sorted(kept), folds, beyond)


def write(name, collation, kept, folds, beyond):
    ranges = []
    for point in kept:
        if ranges and (ranges[-1][1] + 1 == point or ranges[-1][1] == 0xD7FF and point == 0xE000):
            ranges[-1][1] = point
        else:
            ranges.append([point, point])
    changed = [p for p in kept if folds[p] != [p]]
    print(collation, len(kept), "covered,", len(changed), "folded")
    if OUTPUT == "-":
        return
    out = [f"# Which characters `{collation}` and its likes do not tell apart, as code points in hexadecimal (table_file.rs reads it).",
           "# Measured by evidence/unicode_folds.py, which also says how it was proved; do not edit."]
    out += [] if beyond is None else [f"beyond {beyond:x}"]
    out += [f"covered {a:x} {b:x}" for a, b in ranges]
    out += fold_lines(changed, folds)
    with open(f"{OUTPUT}/{name}.txt", "w") as file:
        file.write("\n".join(out) + "\n")


def fold_lines(changed, folds):
    """Runs of neighbours that become the same, or that are all moved by one distance, are one line."""
    at, out = 0, []
    while at < len(changed):
        first, to = changed[at], folds[changed[at]]
        same = shifted = at + 1
        while same < len(changed) and changed[same] == first + same - at and folds[changed[same]] == to:
            same += 1
        while (shifted < len(changed) and changed[shifted] == first + shifted - at and len(to) == 1
               and folds[changed[shifted]] == [to[0] + shifted - at]):
            shifted += 1
        kind, end = ("fold", same) if same >= shifted else ("shift", shifted)
        out.append(f"{kind} {first:x} {changed[end - 1]:x} {' '.join(f'{point:x}' for point in to)}".rstrip())
        at = end
    return out


run("CREATE DATABASE IF NOT EXISTS heddle_evidence;")
for entry in COLLATIONS:
    measure(*entry)
run("DROP DATABASE heddle_evidence;")
