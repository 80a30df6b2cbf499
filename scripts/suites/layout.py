"""Lays a package's test suite out in the cache, with Heddle in place of the native applier. It writes below the cache only."""

import hashlib
import os
import shutil
from pathlib import Path

import includes
from servers import cache

# Results are not compared: two servers are.
LEFT_OUT = {"r", "lib", "bin", "var", "collections"}


def lay_out(flavour):
    """The folder of the laid-out suite; made once for a package and for this code."""
    root = next(path.parent.parent for path in sorted(flavour.suites.rglob("suite/rpl")))
    code = b"".join(Path(module.__file__).read_bytes() for module in (includes,)) + Path(__file__).read_bytes() + str(root.stat().st_mtime).encode()
    to = cache() / "suites" / f"{flavour.server}-{hashlib.sha256(code).hexdigest()[:8]}"
    if to.is_dir():
        return to
    building = to.with_suffix(f".{os.getpid()}")
    shutil.rmtree(building, ignore_errors=True)
    copy(root, building)
    replacements = includes.MARIADB if flavour.is_mariadb else includes.MYSQL
    for name, body in replacements.items():
        path = building / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text(body)
    gather(building)
    if to.is_dir():
        shutil.rmtree(building)
    else:
        building.rename(to)
    return to


def copy(root, to):
    for folder, folders, files in os.walk(root, followlinks=True):
        folders[:] = [name for name in folders if name not in LEFT_OUT]
        below = to / Path(folder).relative_to(root)
        below.mkdir(parents=True, exist_ok=True)
        for name in files:
            source = Path(folder) / name
            if not source.exists():
                continue
            if name.endswith((".test", ".inc")):
                # latin1 keeps every byte.
                (below / name).write_bytes(includes.convert(source.read_bytes().decode("latin1")).encode("latin1"))
            else:
                (below / name).symlink_to(source.resolve())


def gather(root):
    """Includes of one suite that another names without its path."""
    for pattern in ("suite/rpl/include/*", "suite/binlog/include/*", "suite/multi_source/include/*", "suite/parts/include/*",
                    "suite/rpl/t/*.inc"):
        for path in sorted(root.glob(pattern)):
            to = root / "include" / path.name
            if path.is_file() and not to.exists():
                to.write_bytes(path.read_bytes())
