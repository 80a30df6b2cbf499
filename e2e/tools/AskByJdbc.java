// MySQL's and MariaDB's JDBC drivers, with the questions that Debezium and Maxwell ask a source before they read its log. It never writes.
//
// AskByJdbc HOST PORT USER PASSWORD mysql|mariadb STATEMENT…

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

public final class AskByJdbc {
    public static void main(String[] arguments) throws Exception {
        boolean isMariaDb = arguments[4].equals("mariadb");
        String url = isMariaDb
                ? "jdbc:mariadb://" + arguments[0] + ":" + arguments[1] + "/?sslMode=disable&allowPublicKeyRetrieval=true"
                : "jdbc:mysql://" + arguments[0] + ":" + arguments[1] + "/?sslMode=DISABLED&allowPublicKeyRetrieval=true";
        try (Connection connection = DriverManager.getConnection(url, arguments[2], arguments[3])) {
            System.out.println("version " + connection.getMetaData().getDatabaseProductVersion());
            for (int at = 5; at < arguments.length; at++) {
                System.out.println(arguments[at]);
                try (Statement statement = connection.createStatement()) {
                    if (!statement.execute(arguments[at])) {
                        continue;
                    }
                    ResultSet rows = statement.getResultSet();
                    int columns = rows.getMetaData().getColumnCount();
                    while (rows.next()) {
                        StringBuilder line = new StringBuilder();
                        for (int column = 1; column <= columns; column++) {
                            line.append(" ").append(rows.getMetaData().getColumnLabel(column)).append("=").append(rows.getString(column));
                        }
                        System.out.println(line);
                    }
                } catch (SQLException error) {
                    System.out.println(" error " + error.getErrorCode());
                }
            }
        }
    }
}
