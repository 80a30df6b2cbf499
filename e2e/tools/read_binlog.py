"""A client of python-mysql-replication: every event up to a place, one line each. It never writes.

read_binlog.py HOST PORT USER PASSWORD mysql|mariadb position|gtid UNTIL_FILE UNTIL_POSITION [GTID]

GTID: MariaDB, the transaction behind which to begin.
"""
import sys

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import HeartbeatLogEvent

host, port, user, password, vendor, by, until_file, until_position = sys.argv[1:9]
more = {}
if by == "position":
    more = {"log_file": until_file.rsplit(".", 1)[0] + ".000001", "log_pos": 4, "resume_stream": True}
elif vendor == "mariadb":
    more = {"auto_position": sys.argv[9]}
else:
    more = {"auto_position": "00000000-0000-0000-0000-000000000001:1"}
stream = BinLogStreamReader(
    connection_settings={"host": host, "port": int(port), "user": user, "passwd": password},
    server_id=4001,
    blocking=True,
    is_mariadb=vendor == "mariadb",
    slave_heartbeat=1,
    **more,
)
for event in stream:
    # In rows an event is decoded lazily: as many as there are is enough.
    if isinstance(event, HeartbeatLogEvent):
        continue
    rows = len(event.rows) if hasattr(event, "rows") else ""
    print(type(event).__name__, stream.log_file, event.packet.log_pos, rows)
    if stream.log_file == until_file and event.packet.log_pos >= int(until_position):
        break
stream.close()
