#!/usr/bin/env python3
"""Measures the weights of the single-byte collations and proves that they are weights of single bytes.

    single_byte_folds.py mariadb|mysql OUTPUT_FILE|- CLIENT [ARGUMENT…]

Takes WEIGHT_STRING of all 256 bytes, and compares that of all 65,536 pairs with the weights of the two bytes.
Collations with expansions or several levels (latin1_german2_ci, latin2_czech_cs, cp1250_czech_cs) fail that and are left
out. MySQL 9.7.4 and MariaDB 10.11.19 give the same table.
"""
import subprocess
import sys

FLAVOUR, OUTPUT, CLIENT = sys.argv[1], sys.argv[2], sys.argv[3:]
CHARSETS = ("latin1 latin2 latin5 latin7 ascii cp850 cp852 cp866 cp1250 cp1251 cp1256 cp1257 dec8 hp8 koi8r koi8u greek "
            "hebrew geostd8 armscii8 macce macroman keybcs2 swe7").split()


def run(sql):
    command = CLIENT + ["-N", "--batch"]
    done = subprocess.run(command, input=sql.encode(), stdout=subprocess.PIPE, check=True)
    return [line.split("\t") for line in done.stdout.decode().split("\n") if line]


quoted = ",".join(f"'{charset}'" for charset in CHARSETS)
rows = run("SELECT character_set_name, collation_name FROM information_schema.collations "
           f"WHERE character_set_name IN ({quoted}) AND collation_name NOT LIKE '%\\_bin' "
           "AND collation_name NOT LIKE '%nopad%' ORDER BY 1, 2")
numbers = "WITH RECURSIVE n(n) AS (SELECT 0 UNION ALL SELECT n+1 FROM n WHERE n<255)"
out = ["# Weights of the 256 bytes under the single-byte collations that compare byte by byte, in hexadecimal (table_file.rs reads it).",
       "# Measured by evidence/single_byte_folds.py, which also says how it was proved; do not edit."]
for charset, collation in rows:
    weight = "WEIGHT_STRING(CAST(_{0} X'{1}' AS CHAR CHARACTER SET {0}) COLLATE {2})"
    text = "CONVERT(CAST({0} AS BINARY) USING {1})"
    convert = text.format("CHAR(n)", charset)
    # CONVERT from binary takes the bytes as they are.
    weights = {int(n): w for n, w in run(f"{numbers} SELECT n, HEX(WEIGHT_STRING({convert} COLLATE {collation})) FROM n")}
    ok = len(weights) == 256 and all(len(w) == 2 for w in weights.values())
    if ok:
        pair = text.format("CONCAT(CHAR(a.n),CHAR(b.n))", charset)
        pairs = {(int(a), int(b)): w for a, b, w in run(
            f"{numbers} SELECT a.n, b.n, HEX(WEIGHT_STRING({pair} COLLATE {collation})) FROM n a, n b")}
        ok = len(pairs) == 65536 and all(w == weights[a] + weights[b] for (a, b), w in pairs.items())
    print(collation, "byte by byte" if ok else "LEFT OUT")
    if ok:
        out.append(collation + " " + "".join(weights[n].lower() for n in range(256)))
if OUTPUT != "-":
    with open(OUTPUT, "w") as file:
        file.write("\n".join(out) + "\n")
