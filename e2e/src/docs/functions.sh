# What the pages' hidden lines use. Sourced by every block's script.

# Statements as root.
on_source() { "$CLIENT" -h source -N -B -e "$1"; }
on_target() { "$CLIENT" -h target -N -B -e "$1"; }

# For a page that makes its accounts itself; not in the log.
without_accounts() { for host in source target; do "$CLIENT" -h "$host" -e 'SET sql_log_bin = 0; DROP USER IF EXISTS heddle'; done; }

# The account with all rights again, on HOST; not in the log.
with_account() { "$CLIENT" -h "$1" -e "SET sql_log_bin = 0; DROP USER IF EXISTS heddle; CREATE USER heddle IDENTIFIED BY 'secret'; GRANT ALL ON *.* TO heddle WITH GRANT OPTION"; }

# Ends the heddle of a block that goes on, as Ctrl-C does.
end_heddle() {
    local shell
    shell=$(cat "$FOLDER/.running")
    pkill -TERM -P "$shell" || true
    while kill -0 "$shell" 2>/dev/null && [ "$(ps -o stat= -p "$shell" | cut -c1)" != Z ]; do sleep 0.05; done
}

# FILE:POS where the source's log ends.
source_end() {
    if [ "$CLIENT" = mysql ]; then on_source 'SHOW BINARY LOG STATUS'; else on_source 'SHOW MASTER STATUS'; fi | awk '{ print $1 ":" $2 }'
}

# A replica of the source by the server's own replication, which lacks what the source has written since.
lagging_replica() {
    on_target 'DROP DATABASE IF EXISTS shop; DROP DATABASE IF EXISTS heddle'
    if [ "$CLIENT" = mysql ]; then
        on_target "STOP REPLICA; RESET REPLICA ALL; RESET BINARY LOGS AND GTIDS;
            CHANGE REPLICATION SOURCE TO source_host='127.0.0.1', source_port=$SOURCE_PORT, source_user='heddle', source_password='secret',
            source_auto_position=1, get_source_public_key=1; START REPLICA"
    else
        on_target "STOP SLAVE; RESET SLAVE ALL; RESET MASTER; SET GLOBAL gtid_slave_pos='';
            CHANGE MASTER TO master_host='127.0.0.1', master_port=$SOURCE_PORT, master_user='heddle', master_password='secret',
            master_use_gtid=slave_pos; START SLAVE"
    fi
    until on_target 'SELECT COUNT(*) FROM shop.orders' 2>/dev/null | grep -q '[1-9]'; do sleep 0.05; done
    if [ "$CLIENT" = mysql ]; then on_target 'STOP REPLICA SQL_THREAD'; else on_target 'STOP SLAVE SQL_THREAD'; fi
    on_source "INSERT INTO shop.orders (id, item) SELECT id + $(on_source 'SELECT MAX(id) FROM shop.orders'), item FROM shop.orders"
    if [ "$CLIENT" = mysql ]; then on_target 'START REPLICA SQL_THREAD'; else on_target 'START SLAVE SQL_THREAD'; fi
}
