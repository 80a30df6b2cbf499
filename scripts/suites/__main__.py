"""The servers' own replication tests with Heddle in place of the native applier: `scripts/nightly suites [--option=value…]`.

Each test of MariaDB's and MySQL's suites (packages mariadb-test and mysql-testsuite, fetched into the cache) that replicates runs
with two servers. Whenever it waits for its replica, source and target are compared: definitions, all rows, routines, triggers, events,
accounts. Where Heddle stops or differs, the test runs once more with the server's own applier of the same version and format.

A line for each test says how it went:

    equal          equal at every comparison, to the end
    equal-in-part  equal at every comparison; the test ended before its end, for the reason that is named
    as-native      stops or differs exactly as the native replica does
    explained      stops or differs by design: explained.txt says why
    skipped        not run: skipped.txt says why
    not-run        nothing was compared: the test, or what it needs of the machine, does not allow it
    not-started    a server does not start with the options of the test
    STOPS DIFFERS CRASHED BROKEN   not explained

results.jsonl has all of it, and what differs; beside it are the output of each test and of heddle that was not `equal`. The exit
status is 1 if anything was not explained."""

import argparse
import json
import random
import signal
import sys
import threading
import time
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

import catalogue
import layout
from run import MODES, UNEXPLAINED, Runner, judge_again
from servers import PROCESSES, Flavour

FORMATS = ("ROW", "MIXED", "STATEMENT")


def words(allowed):
    def parse(value):
        chosen = value.split(",")
        wrong = [word for word in chosen if word not in allowed]
        if wrong:
            raise argparse.ArgumentTypeError(f"{', '.join(wrong)}: known are {', '.join(allowed)}")
        return chosen
    return parse


def shard(value):
    number, _, of = value.partition("/")
    if not (number.isdigit() and of.isdigit() and 1 <= int(number) <= int(of)):
        raise argparse.ArgumentTypeError(f"{value}: 2/5 is the second of five parts")
    return int(number), int(of)


def options():
    parser = argparse.ArgumentParser(prog="scripts/nightly suites", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flavours", type=words(("mariadb", "mysql")), default=["mariadb", "mysql"])
    parser.add_argument("--formats", type=words(FORMATS), default=list(FORMATS), help="binlog_format of both servers: ROW,MIXED,STATEMENT")
    parser.add_argument("--modes", type=words(tuple(MODES)), default=list(MODES), help="; ".join(f"{k}: heddle {' '.join(v)}" for k, v in MODES.items()))
    parser.add_argument("--tests", action="append", help="only tests of this pattern, such as rpl/rpl_row_*; may be given again")
    parser.add_argument("--shard", type=shard, default=(1, 1), help="2/5: the second of five parts")
    parser.add_argument("--seed", type=int, help="shuffles the order; without it tests go by their names")
    parser.add_argument("--minutes", type=float, help="begin no test after so long")
    parser.add_argument("--test-seconds", type=int, default=100, help="end a test after so long")
    parser.add_argument("--jobs", type=int, default=1, help="so many tests at a time")
    parser.add_argument("--list", action="store_true", help="print what would run, and what is skipped, and why")
    parser.add_argument("--heddle", required=True, help="the program to test")
    parser.add_argument("--scratch", required=True, help="a folder for servers")
    parser.add_argument("--out", required=True, help="a folder for the results; what its results.jsonl has is not run again")
    return parser.parse_args()


class Work:
    """Runs that are left, and the results so far; shared by the jobs."""

    def __init__(self, chosen, out):
        self.lock = threading.Lock()
        self.file = Path(out) / "results.jsonl"
        self.records = [json.loads(line) for line in self.file.read_text().splitlines()] if self.file.exists() else []
        for record in self.records:
            judge_again(record)
        done = {(r["flavour"], r["test"], r["format"], r["mode"]) for r in self.records}
        self.left = [run for run in chosen if (run[0].name, run[1].name, run[2], run[3]) not in done]
        self.total = len(self.left)

    def next(self):
        with self.lock:
            return self.left.pop(0) if self.left and not PROCESSES.ended else None

    def note(self, record):
        with self.lock:
            self.records.append(record)
            with open(self.file, "a") as file:
                file.write(json.dumps(record) + "\n")
            native = f" (native: {record['native']['result']} {record['native']['why'][:120]})" if "native" in record else ""
            why = record.get("explained") or record["why"]
            print(f"{time.strftime('%H:%M:%S')} {record['result']:13} {record['flavour']} {record['test']} {record['format']} {record['mode']} "
                  f"{record['seconds']} s, {record['comparisons']} comparisons{': ' + ' '.join(why.split())[:240] if why else ''}{native}", flush=True)


def job(number, work, roots, given, deadline):
    runners = {}
    try:
        while (deadline is None or time.monotonic() < deadline) and (run := work.next()):
            flavour, test, fmt, mode = run
            if flavour.name not in runners:
                runners[flavour.name] = Runner(flavour, roots[flavour.name], Path(given.scratch) / f"{flavour.name}-{number}", given.out,
                                               given.heddle, given.test_seconds)
            try:
                record = runners[flavour.name].run(test, fmt, mode)
            except Exception as error:  # One test must not end the others.
                record = {"flavour": flavour.name, "test": test.name, "format": fmt, "mode": mode, "result": "BROKEN",
                          "why": f"{type(error).__name__}: {error}"[:700], "comparisons": 0, "seconds": 0}
            if PROCESSES.ended:
                return  # A signal killed the servers: the result says nothing.
            work.note(record)
    finally:
        for runner in runners.values():
            runner.close()


def choose(given):
    """Every run that is asked for, in its order; and the skipped tests."""
    roots, runs, skipped = {}, [], []
    for name in given.flavours:
        flavour = Flavour(name, given.scratch)
        roots[name] = layout.lay_out(flavour)
        for test in catalogue.catalogue(flavour, roots[name]):
            if given.tests and not any(fnmatch(test.name, pattern) for pattern in given.tests):
                continue
            if test.skip:
                skipped.append((name, test.name, test.skip))
                continue
            runs += [(flavour, test, fmt, mode) for mode in given.modes for fmt in test.formats if fmt in given.formats]
    if given.seed is None:
        runs.sort(key=lambda run: (list(MODES).index(run[3]), FORMATS.index(run[2])))
    else:
        random.Random(given.seed).shuffle(runs)
    number, of = given.shard
    return roots, runs[number - 1::of], skipped


def summary(work, skipped):
    print("\nflavour   format     mode        " + "  ".join(f"{kind:>13}" for kind in KINDS))
    rows = {}
    for r in work.records:
        rows.setdefault((r["flavour"], r["format"], r["mode"]), Counter())[r["result"]] += 1
    for key, counts in sorted(rows.items()):
        print(f"{key[0]:9} {key[1]:10} {key[2]:11} " + "  ".join(f"{counts[kind]:13}" for kind in KINDS))
    reasons = Counter((name, why) for name, _, why in skipped)
    print(f"\n{len({(r['flavour'], r['test']) for r in work.records})} different tests, {len(work.records)} runs, "
          f"{sum(r['comparisons'] for r in work.records)} comparisons; {len(work.left)} runs left; {len(skipped)} tests skipped:")
    for (name, why), count in sorted(reasons.items()):
        print(f"  {name:8} {count:4}  {why}")


KINDS = ("equal", "equal-in-part", "as-native", "explained", "not-run", "not-started", "STOPS", "DIFFERS", "CRASHED", "BROKEN")


def end(number, _frame):
    """Ends all servers and programs; what has a result keeps it."""
    PROCESSES.end()
    print(f"suites: ended by signal {number}; the same command goes on", file=sys.stderr, flush=True)
    raise SystemExit(128 + number)


def main():
    given = options()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    Path(given.out).mkdir(parents=True, exist_ok=True)
    roots, runs, skipped = choose(given)
    if given.list:
        for flavour, test, fmt, mode in runs:
            print(f"run      {flavour.name} {test.name} {fmt} {mode}")
        for name, test, why in skipped:
            print(f"skipped  {name} {test}: {why}")
        return 0
    work = Work(runs, given.out)
    if not runs:
        print("suites: no test is chosen", file=sys.stderr)
        return 2
    print(f"suites: {work.total} runs ({'; '.join(sorted({run[0].version for run in runs}))}), results in {work.file}", flush=True)
    deadline = time.monotonic() + given.minutes * 60 if given.minutes else None
    jobs = [threading.Thread(target=job, args=(number, work, roots, given, deadline)) for number in range(given.jobs)]
    for one in jobs:
        one.start()
    for one in jobs:
        one.join()
    PROCESSES.end()  # what a test that took too long has started at its end
    summary(work, skipped)
    unexplained = [r for r in work.records if r["result"] in UNEXPLAINED]
    for r in unexplained:
        print(f"  {r['result']:8} {r['flavour']} {r['test']} {r['format']} {r['mode']}")
    return 1 if unexplained else 0


sys.exit(main())
