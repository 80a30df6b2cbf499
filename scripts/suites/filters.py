"""What a native applier was set to leave out or to rename (replicate_*), and whether a stop or a difference is about that.

It knows only what the replica itself said of its filters while it ran."""

import re
from fnmatch import fnmatchcase

# Columns of SHOW REPLICA STATUS.
KINDS = ("Replicate_Do_DB", "Replicate_Ignore_DB", "Replicate_Do_Table", "Replicate_Ignore_Table",
         "Replicate_Wild_Do_Table", "Replicate_Wild_Ignore_Table", "Replicate_Rewrite_DB")
REWRITTEN = re.compile(r"\(([^,()]+),([^,()]+)\)|([^,>\s]+)->([^,>\s]+)")
QUOTED = re.compile(r"'([^']+)'")
# What SHOW names, and how a snapshot's key is split: "rows test.t1", "schema test".
OF_SCHEMA = {"schema"}


def of_status(row):
    """The filters in a row of SHOW REPLICA STATUS: kind to value, those that are set."""
    return {kind: str(row[kind]) for kind in KINDS if row.get(kind)}


def words(value):
    return [word.strip().strip("`").lower() for word in value.split(",") if word.strip()]


def like(pattern):
    """A pattern of LIKE as one of fnmatch."""
    return re.sub(r"\\(.)|([%_*?\[])", lambda m: m.group(1) or {"%": "*", "_": "?"}.get(m.group(2), f"[{m.group(2)}]"), pattern)


def concerns(filters, schema, table):
    """Whether the filters leave the table out or rename its schema; without a table, any of the schema's."""
    schema, name = schema.lower(), f"{schema}.{table}".lower() if table else None
    renamed = {word.strip().lower() for pair in REWRITTEN.findall(filters.get("Replicate_Rewrite_DB", "")) for word in pair if word}
    if schema in renamed or schema in words(filters.get("Replicate_Ignore_DB", "")):
        return True
    if filters.get("Replicate_Do_DB") and schema not in words(filters["Replicate_Do_DB"]):
        return True
    exact = {kind: words(filters.get(f"Replicate_{kind}_Table", "")) for kind in ("Do", "Ignore")}
    wild = {kind: [like(word) for word in words(filters.get(f"Replicate_Wild_{kind}_Table", ""))] for kind in ("Do", "Ignore")}
    if name is None:
        every = exact["Ignore"] + wild["Ignore"]
        return any(pattern.split(".")[0] == schema for pattern in every) or (
            bool(exact["Do"] + wild["Do"]) and not any(fnmatchcase(schema, pattern.split(".")[0]) for pattern in exact["Do"] + wild["Do"]))
    if name in exact["Do"] or any(fnmatchcase(name, pattern) for pattern in wild["Do"]):
        return False
    if name in exact["Ignore"] or any(fnmatchcase(name, pattern) for pattern in wild["Ignore"]):
        return True
    return bool(exact["Do"] + wild["Do"])


def explain(filters, message, keys):
    """Whether all that differs, or an object that the message of a stop names, is left out or renamed."""
    if not filters:
        return False
    if keys is not None:
        return bool(keys) and all(concerns(filters, *object_of(key)) for key in keys)
    said = message.split("what to do:")[0]
    for name in QUOTED.findall(said):
        schema, _, table = name.partition(".")
        if concerns(filters, schema, table) if table else (concerns(filters, name, "") or concerns(filters, "test", name)):
            return True
    return False


def object_of(key):
    """Schema and table of a snapshot's key."""
    kind, _, name = key.partition(" ")
    schema, _, table = name.partition(".")
    return schema, "" if kind in OF_SCHEMA else table
