"""What replaces the suites' own replication includes and statements: calls of the runner (`--exec $HX …`, see session.py).

Only names and our own replacements are here; the text of the suites stays in their packages."""

import re


def hook(*lines):
    """Lines of a test; those that begin with `!` call the runner."""
    return "".join("--exec $HX " + line[1:] + "\n" if line.startswith("!") else line + "\n" for line in lines)


def connections(*names):
    ports = {"slave": "SLAVE_MYPORT", "slave1": "SLAVE_MYPORT", "server_2": "SLAVE_MYPORT",
             "master": "MASTER_MYPORT", "master1": "MASTER_MYPORT", "server_1": "MASTER_MYPORT"}
    return [f"--connect ({name},127.0.0.1,root,,test,${ports[name]})" for name in names]


def out_of_reach(what):
    """The rest of the test needs what the runner cannot give: it ends here, and says why."""
    return hook(f"!unsupported {what}", "--die unsupported")


VARIABLES = [
    "--let $rpl_server_count= 2", "--let $rpl_server_count_length= 1", "--let $rpl_inited= 1", "--let $rpl_topology= 1->2",
    "--let $SERVER_MYPORT_1= $MASTER_MYPORT", "--let $SERVER_MYPORT_2= $SLAVE_MYPORT",
]
START = ["if (!$rpl_skip_start_slave)", "{", "!start", "}"]
OPEN = hook("!open", *connections("server_2", "server_1"), *VARIABLES, *connections("slave", "slave1", "master1", "master"), *START)
OPEN_ANY_TOPOLOGY = hook("if ($rpl_topology != '1->2')", "{", "!unsupported topology $rpl_topology", "--die unsupported", "}",
                         "!open", *connections("server_2", "server_1"), *VARIABLES, *START)
TO_REPLICA = hook("!sync", "--let $_hc= slave", "if ($sync_slave_connection)", "{", "--let $_hc= $sync_slave_connection", "}",
                  "--connection $_hc")
SYNC, START_IT, STOP_IT, NOTHING = hook("!sync"), hook("!start"), hook("!stop"), ""
STOPS, WAIT_FOR_STOP = hook("!expect-stop $slave_sql_errno"), hook("!wait-for-stop")
STOPS_AND_SKIPS = STOPS + out_of_reach("sql_slave_skip_counter: heddle skips nothing")

MARIADB = {f"include/{name}.inc": body for name, body in {
    "master-slave": OPEN, "rpl_init": OPEN_ANY_TOPOLOGY,
    "rpl_end": hook("!end", "--let $rpl_inited= 0", "--connection default"),
    "rpl_sync": SYNC, "rpl_reset": hook("!reset"), "reset_master_slave": hook("!reset"), "reset_slave": hook("!reset-replica"),
    "start_slave": START_IT, "rpl_start_slaves": START_IT,
    "stop_slave": STOP_IT, "stop_slave_sql": STOP_IT, "rpl_stop_slaves": STOP_IT, "stop_slave_io": NOTHING,
    "restart_slave_sql": STOP_IT + START_IT,
    "sync_slave_sql_with_master": SYNC + "--connection slave\n", "sync_slave_io_with_master": "--connection slave\n",
    "sync_io_with_master": NOTHING, "sync_slave_sql_with_io": SYNC, "sync_with_master": SYNC, "sync_with_master_gtid": SYNC,
    "save_master_gtid": NOTHING, "save_master_pos": NOTHING,
    "wait_for_slave_sql_error": STOPS, "wait_for_slave_sql_error_and_skip": STOPS_AND_SKIPS,
    "wait_for_slave_io_error": out_of_reach("an error of the receiver"),
    "wait_for_slave_sql_to_stop": WAIT_FOR_STOP, "wait_for_slave_to_stop": WAIT_FOR_STOP,
    "check_slave_is_running": SYNC, "check_slave_no_error": SYNC,
    "rpl_restart_server": out_of_reach("a restart of a server"), "restart_mysqld": out_of_reach("a restart of a server"),
    "rpl_stop_server": out_of_reach("a stop of a server"), "kill_mysqld": out_of_reach("a kill of a server"),
    **dict.fromkeys((
        "wait_for_slave_io_to_start", "wait_for_slave_io_to_stop", "wait_for_slave_sql_to_start", "wait_for_slave_to_start",
        "wait_for_slave_param", "check_slave_param", "show_slave_status", "show_all_slaves_status", "show_rpl_debug_info",
        "no_view_protocol", "show_binlog_events", "show_binlog_events2", "mysqlbinlog_slave_consistency"), NOTHING),
}.items()}
MARIADB["include/analyze-sync_with_master.test"] = NOTHING
MARIADB["suite/rpl/include/mysqlbinlog_slave_consistency.inc"] = NOTHING

MYSQL = {f"include/rpl/{name}.inc": body for name, body in {
    "init_source_replica": OPEN, "init": OPEN_ANY_TOPOLOGY,
    "default_connections": hook(*connections("slave", "slave1", "master1", "master")),
    "deinit": hook("!end", "--let $rpl_inited= 0"),
    "sync": SYNC, "sync_to_replica": TO_REPLICA, "sync_to_replica_received": "--connection slave\n",
    "sync_with_saved": SYNC, "sync_with_recieved": SYNC, "sync_received_with_saved": NOTHING,
    "save_server_position": NOTHING, "save_received_position": NOTHING,
    "save_binlog_file_position": hook("--let $binlog_file= query_get_value(SHOW BINARY LOG STATUS, File, 1)",
                                      "--let $binlog_position= query_get_value(SHOW BINARY LOG STATUS, Position, 1)"),
    "reset": hook("!reset"), "reset_replica": hook("!reset-replica"),
    "start_replica": START_IT, "start_applier": START_IT, "start_all_replicas": START_IT, "start_receiver": NOTHING,
    "stop_replica": STOP_IT, "stop_applier": STOP_IT, "stop_all_replicas": STOP_IT, "stop_receiver": NOTHING,
    "restart_applier": STOP_IT + START_IT,
    "wait_for_applier_error": STOPS, "wait_for_applier_error_and_skip": STOPS_AND_SKIPS, "wait_for_applier_error_and_restart": STOPS + START_IT,
    "wait_for_receiver_error": out_of_reach("an error of the receiver"),
    "wait_for_applier_to_stop": WAIT_FOR_STOP, "wait_for_replica_to_stop": WAIT_FOR_STOP,
    "assert_replica_running": SYNC, "assert_replica_no_error": SYNC,
    "restart_server": out_of_reach("a restart of a server"), "stop_server": out_of_reach("a stop of a server"),
    "change_topology": out_of_reach("another topology"),
    "group_replication_plugin_installed": "--let $group_replication_plugin_installed=0\n",
    **dict.fromkeys((
        "start_server", "wait_for_receiver_to_start", "wait_for_receiver_to_stop", "wait_for_applier_to_start",
        "wait_for_replica_to_start", "wait_for_replica_status", "assert_replica_status", "wait_for_mta_checkpoint",
        "assert_binlog_events", "assert_logical_timestamps", "assert_rbr_only_flags", "gtid_step_assert", "gtid_step_reset",
        "mysqlbinlog", "deprecated/show_binlog_events", "deprecated/show_replica_status", "deprecated/show_binary_logs",
        "deprecated/show_relaylog_events", "wait_for_ndb_committed_to_binlog", "set_privilege_checks_user_as_system_user"), NOTHING),
}.items()}
MYSQL |= dict.fromkeys([f"include/{name}.inc" for name in (
    "not_group_replication_plugin", "not_rpl_gtid_only", "not_binlog_transaction_compression_on", "not_have_privilege_checks_user",
    "force_restart", "not_ndb_default", "show_binlog_events", "not_group_replication")], NOTHING)
MYSQL["include/kill_mysqld.inc"] = out_of_reach("a kill of a server")
MYSQL["include/restart_mysqld.inc"] = out_of_reach("a restart of a server")


def line(pattern):
    return re.compile(r"^\s*" + pattern + r"\s*$", re.IGNORECASE)


# A whole line of a test, and what stands for it.
STATEMENTS = [
    (line(r"(?:--\s*)?sync_slave_with_master\s*([A-Za-z0-9_$]*)\s*;?"),
     lambda m: SYNC + f"--connection {m.group(1) or 'slave'}"),
    (line(r"(?:--\s*)?save_master_pos\s*;?"), lambda m: ""),
    (line(r"(?:--\s*)?sync_with_master\s*[0-9]*\s*;?"), lambda m: SYNC),
    (line(r"start\s+(?:slave|replica)\s+io_thread\s*;"), lambda m: ""),
    (line(r"stop\s+(?:slave|replica)\s+io_thread\s*;"), lambda m: ""),
    (line(r"start\s+(?:slave|replica)(?:\s+sql_thread)?\s*;.*"), lambda m: START_IT),
    (line(r"stop\s+(?:slave|replica)(?:\s+sql_thread)?\s*;.*"), lambda m: STOP_IT),
    (line(r"reset\s+(?:slave|replica)(?:\s+all)?\s*;.*"), lambda m: hook("!reset-replica")),
    (line(r"(?:eval\s+)?reset\s+(?:master|binary\s+logs\s+and\s+gtids)\s*;.*"), lambda m: hook("!reset")),
    (line(r"(?:eval\s+)?set\s+(?:@@)?global[ .]+sql_(?:slave|replica)_skip_counter.*"),
     lambda m: out_of_reach("sql_slave_skip_counter: heddle skips nothing")),
    (line(r"(?:eval\s+)?show\s+(?:slave\s+status|replica\s+status|replicas|slave\s+hosts|binlog\s+events|relaylog\s+events)[^;]*;"),
     lambda m: ""),
]
CHANGE_SOURCE = re.compile(r"^\s*(?:--\s*)?(?:eval\s+)?change\s+(?:master|replication source)\b", re.IGNORECASE)


def convert(text):
    """The text of a test or an include, with calls of the runner for what starts, stops or waits for replication."""
    out, lines = [], iter(text.split("\n"))
    for one in lines:
        if CHANGE_SOURCE.match(one):
            while ";" not in one:
                one = next(lines, ";")
            out.append("")
            continue
        for pattern, replacement in STATEMENTS:
            match = pattern.match(one)
            if match:
                out.append(replacement(match).rstrip("\n"))
                break
        else:
            out.append(one)
    return "\n".join(out)
