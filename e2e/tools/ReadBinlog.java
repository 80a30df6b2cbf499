// A client of mysql-binlog-connector-java, the one that Debezium and Maxwell are made with: every event up to a place, one line each; and through JDBC what
// Debezium asks before that. It never writes.
//
// ReadBinlog HOST PORT USER PASSWORD mysql|mariadb position|gtid UNTIL_FILE UNTIL_POSITION [GTID]
// GTID: MariaDB, the transaction behind which to begin.

import com.github.shyiko.mysql.binlog.BinaryLogClient;
import com.github.shyiko.mysql.binlog.event.Event;
import com.github.shyiko.mysql.binlog.event.EventHeaderV4;
import com.github.shyiko.mysql.binlog.event.EventType;
import com.github.shyiko.mysql.binlog.network.SSLMode;

public final class ReadBinlog {
    public static void main(String[] arguments) throws Exception {
        String vendor = arguments[4];
        String untilFile = arguments[6];
        long untilPosition = Long.parseLong(arguments[7]);
        BinaryLogClient client = new BinaryLogClient(arguments[0], Integer.parseInt(arguments[1]), arguments[2], arguments[3]);
        client.setServerId(4002);
        client.setSSLMode(SSLMode.DISABLED);
        client.setKeepAlive(false);
        client.setHeartbeatInterval(1000);
        client.setUseSendAnnotateRowsEvent(true);
        if (arguments[5].equals("position")) {
            client.setBinlogFilename(untilFile.substring(0, untilFile.lastIndexOf('.')) + ".000001");
            client.setBinlogPosition(4);
        } else {
            client.setGtidSet(vendor.equals("mariadb") ? arguments[8] : "");
            client.setUseBinlogFilenamePositionInGtidMode(false);
        }
        Exception[] failure = new Exception[1];
        client.registerLifecycleListener(new BinaryLogClient.AbstractLifecycleListener() {
            @Override
            public void onCommunicationFailure(BinaryLogClient one, Exception error) {
                failure[0] = error;
            }

            @Override
            public void onEventDeserializationFailure(BinaryLogClient one, Exception error) {
                System.out.println("not read: " + error.getClass().getSimpleName());
            }
        });
        String[] file = {""};
        client.registerEventListener((Event event) -> {
            EventHeaderV4 header = event.getHeader();
            if (header.getEventType().toString().startsWith("HEARTBEAT")) {
                return;
            }
            if (header.getEventType() == EventType.ROTATE) {
                file[0] = ((com.github.shyiko.mysql.binlog.event.RotateEventData) event.getData()).getBinlogFilename();
            }
            System.out.println(header.getEventType() + " " + file[0] + " " + header.getNextPosition() + " " + header.getServerId());
            if (file[0].equals(untilFile) && header.getNextPosition() >= untilPosition) {
                System.out.flush();
                System.exit(0);
            }
        });
        client.connect();
        if (failure[0] != null) {
            throw failure[0];
        }
        System.exit(3);
    }
}
