#!/usr/bin/env bash
# Makes the golden files anew with real servers: tests/golden/<server>/<case>.binlog, and <case>.tsv with what the
# server's own client prints for the tables that the case leaves.
#
#   make.sh [SERVER…]       default: mysql-9.7 mariadb-10.11
#   CASE=name make.sh …     only that case
#
# A case is <family>/<case>.sql: `-- option:` lines are server options, `-- setup:` lines run before, and `-- print: QUERY` lines are what goes
# into <case>.tsv. Everything else is run by the stock client between two rotations of the log; the log in between is
# the golden file. Needs scripts/servers (which fetches the servers) and nothing else.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
golden=$(dirname "$here")
servers=$(cd "$here/../../../../.." && pwd)/scripts/servers
[ $# -gt 0 ] || set -- mysql-9.7 mariadb-10.11
work=$(mktemp -d)
trap '"$servers" sweep "$work" >/dev/null 2>&1 || true; rm -rf "$work"' EXIT
port=$((21000 + RANDOM % 8000))

printf 'a\t1\nb\t2\nc\t\\N\n' >"$work/load.tsv"

for server; do
    family=${server%%-*}
    # Some of the old archives have no client.
    tools=$server
    "$servers" run "$server" mysql --version >/dev/null 2>&1 || tools=mariadb-10.11
    mkdir -p "$golden/$server"
    for case in "$here/$family"/*.sql; do
        name=$(basename "$case" .sql)
        [ -z "${CASE:-}" ] || [ "$CASE" = "$name" ] || continue
        only=$(sed -n 's/^-- only: //p' "$case")
        [ -z "$only" ] || [[ " $only " == *" $server "* ]] || continue
        dir=$work/$server-$name
        port=$((port + 1))
        mapfile -t options < <(sed -n 's/^-- option: //p' "$case")
        # A fixed id: the files do not change with the port.
        "$servers" start "$server" "$dir" "$port" --server-id=11 --default-time-zone=+00:00 --local-infile=1 "${options[@]}" >/dev/null
        client=("$servers" run "$tools" mysql --no-defaults --socket="$dir/socket" -uroot --default-character-set=utf8mb4 --local-infile=1)
        # MariaDB's newer clients insist on TLS otherwise.
        [[ $tools == mariadb-* ]] && client+=(--skip-ssl)
        sed -n 's/^-- setup: //p' "$case" | while read -r setup; do "${client[@]}" -e "$setup"; done
        "${client[@]}" -e "CREATE DATABASE golden; FLUSH BINARY LOGS"
        log=$("${client[@]}" -N -e "SHOW BINARY LOGS" | tail -n 1 | cut -f 1)
        sed "s|@LOAD@|load.tsv|" "$case" | (cd "$work" && "${client[@]}" --comments --force golden) 2>"$work/errors" >/dev/null || true
        grep -v -e '^$' "$work/errors" >&2 || true
        "${client[@]}" -e "FLUSH BINARY LOGS"
        # Only the first log of the case: later ones are for rotation.
        cp "$dir/data/$log" "$golden/$server/$name.binlog"
        rm -f "$golden/$server/$name.tsv"
        sed -n 's/^-- print: //p' "$case" | while read -r query; do
            "${client[@]}" -N --batch --skip-column-names --init-command="SET time_zone='+00:00'" golden -e "$query" >>"$golden/$server/$name.tsv"
        done
        "$servers" stop "$dir" >/dev/null
        rm -rf "$dir"
        echo "$server/$name: $(stat -c %s "$golden/$server/$name.binlog") bytes"
    done
done
