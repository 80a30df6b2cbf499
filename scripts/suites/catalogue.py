"""Which tests there are, what each needs, and which of them are not run. It reads files; it starts nothing.

skipped.txt and explained.txt are the lists that a reader of the results needs: what is left out, what differs by design, and why."""

import re
import shlex
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import filters

HERE = Path(__file__).resolve().parent
SOURCE = re.compile(r"^\s*(?:--\s*)?source\s+([^\s;]+)", re.MULTILINE | re.IGNORECASE)
FORMATS = {
    "have_binlog_format_row.inc": ["ROW"], "have_binlog_format_statement.inc": ["STATEMENT"], "have_binlog_format_mixed.inc": ["MIXED"],
    "have_binlog_format_mixed_or_row.inc": ["ROW", "MIXED"], "have_binlog_format_mixed_or_statement.inc": ["MIXED", "STATEMENT"],
    "have_binlog_format_row_or_statement.inc": ["ROW", "STATEMENT"], "have_binlog_format_statement_or_row.inc": ["ROW", "STATEMENT"],
}
TOPOLOGY = re.compile(r"^\s*(?:--\s*)?let\s+\$rpl_topology\s*=\s*(?!1\s*->\s*2\s*;?\s*$)", re.MULTILINE)
# Includes that make a test one that replicates.
REPLICATES = {"master-slave.inc", "rpl_init.inc", "init_source_replica.inc", "init.inc"}
# The runner decides these itself.
OPTIONS_OF_THE_RUNNER = ("log-bin", "log_bin", "relay", "report", "server-id", "server_id", "port", "log-basename", "skip-slave", "secure",
                         "default-storage-engine", "no-console", "force-restart", "timezone", "init-file")
INCLUDED_CNF = re.compile(r"default|rpl_1slave_base|my\.cnf$")


@dataclass
class Test:
    name: str  # suite/test
    path: Path
    formats: list
    skip: str  # why it is not run, or ""
    without_gtids: bool

    def options(self, role, root):
        """Options for the server in that role ("master" or "slave")."""
        base = self.path.with_suffix("")
        return (cnf_options(base.with_suffix(".cnf"), "1" if role == "master" else "2", root)
                + file_options(Path(f"{base}-{role}.opt")) + file_options(Path(f"{base}.opt")))


def cnf_options(path, number, root):
    options, section = [], None
    if not path.exists():
        return options
    for line in path.read_text(errors="replace").splitlines():
        line = line.strip()
        if match := re.match(r"\[(.+)\]", line):
            section = match.group(1)
        elif line.startswith("!include"):
            name = line.split()[1]
            found = next((p for p in (path.parent / name, root / name) if p.exists()), None)
            if found and not INCLUDED_CNF.search(name):
                options += cnf_options(found, number, root)
        elif line and line[0] not in "#!;" and section in ("mysqld", f"mysqld.{number}"):
            line = re.sub(r"\s*=\s*", "=", re.split(r"\s+#", line.replace('"', ""))[0], count=1)
            if "@" not in line and not line.startswith(OPTIONS_OF_THE_RUNNER):
                options.append("--" + line)
    return options


def file_options(path):
    if not path.exists():
        return []
    words = shlex.split(path.read_text(errors="replace"), comments=True)
    return [word for word in words if word.startswith("--") and "$" not in word and not word[2:].startswith(OPTIONS_OF_THE_RUNNER)
            and word != "--log-slave-updates=0"]


def included(path, root, known):
    """Names of all files that a test sources, itself too, and their texts."""
    if path in known or not path.exists():
        return
    known[path] = path.read_bytes().decode("latin1")
    for name in SOURCE.findall(known[path]):
        found = next((p for p in (root / name, path.parent / name) if p.exists()), None)
        if found:
            included(found.resolve() if found.is_symlink() else found, root, known)


def table(name, columns):
    """Rows of one of the lists: fields between ` | `, comments behind #."""
    rows = []
    for number, line in enumerate((HERE / name).read_text().splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            row = [part.strip() for part in line.split(" | ")]
            if len(row) != columns:
                raise SystemExit(f"{name}:{number}: {len(row)} fields instead of {columns}")
            rows.append(row)
    return rows


def catalogue(flavour, root):
    """Every test of the suite that replicates."""
    skipped = [row for row in table("skipped.txt", 3) if row[0] in (flavour.name, "both")]
    tests = []
    for path in sorted([*root.glob("suite/*/t/*.test"), *root.glob("suite/*/*/t/*.test")]):
        known = {}
        included(path, root, known)
        files = {p.name for p in known}
        if not files & REPLICATES:
            continue
        folder = str(path.parent.parent.relative_to(root / "suite"))
        name = f"{folder}/{path.stem}"
        formats = next((formats for file, formats in FORMATS.items() if file in files), ["ROW", "MIXED", "STATEMENT"])
        skip = next((why for _, pattern, why in skipped if fnmatch(name, pattern) or (pattern.endswith(".inc") and pattern in files)), "")
        if not skip and any(TOPOLOGY.search(text) for p, text in known.items() if p.suffix == ".test"):
            skip = "another topology than one source and one target"
        tests.append(Test(name, path, formats, skip, "nogtid" in folder))
    return tests


def explanation(record, found):
    """Why a difference or a stop is by design, or "". `found`: STOPS or DIFFERS."""
    keys = differing(record) if found == "DIFFERS" else None
    if filters.explain(record.get("native", {}).get("filters"), record["why"], keys):
        return "the native applier's own filters (replicate_*), which heddle has not"
    for vendor, pattern, formats, modes, what, why in table("explained.txt", 6):
        if (vendor in (record["flavour"], "both") and fnmatch(record["test"], pattern) and (formats == "*" or record["format"] in formats.split(","))
                and (modes == "*" or record["mode"] in modes.split(",")) and is_about(what, record["why"], keys)):
            return why
    return ""


def differing(record):
    """What differs from the native replica; from the source, where that one says nothing, or differs from it as heddle does."""
    found = record.get("native", {}).get("heddle_against_it") or record["differences"]
    return sorted({key for _, key, _ in found})


def is_about(what, message, keys):
    """`what`: words of the message, or `differs:` and patterns that all that differs must match."""
    patterns = what.partition("differs:")[2]
    if not patterns:
        return what in message
    allowed = [pattern.strip() for pattern in patterns.split(";")]
    return bool(keys) and all(any(fnmatch(key, pattern) for pattern in allowed) for key in keys)
