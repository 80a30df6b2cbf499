// A client of go-mysql: every event up to a place, one line each, and the questions that canal asks before. It never writes.
//
//	read-binlog HOST PORT USER PASSWORD mysql|mariadb position|gtid UNTIL_FILE UNTIL_POSITION
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	host, vendor, by, untilFile := arguments[0], arguments[4], arguments[5], arguments[6]
	port, err := strconv.Atoi(arguments[1])
	if err != nil {
		return err
	}
	untilPosition, err := strconv.ParseUint(arguments[7], 10, 64)
	if err != nil {
		return err
	}
	if err := ask(host, port, arguments[2], arguments[3], vendor); err != nil {
		return err
	}
	syncer := replication.NewBinlogSyncer(replication.BinlogSyncerConfig{
		ServerID: 4003, Flavor: vendor, Host: host, Port: uint16(port), User: arguments[2], Password: arguments[3],
		HeartbeatPeriod: time.Second, VerifyChecksum: true, DisableRetrySync: true,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	defer syncer.Close()
	var stream *replication.BinlogStreamer
	if by == "position" {
		first := untilFile[:strings.LastIndex(untilFile, ".")] + ".000001"
		stream, err = syncer.StartSync(mysql.Position{Name: first, Pos: 4})
	} else {
		set, parseErr := mysql.ParseGTIDSet(vendor, "")
		if parseErr != nil {
			return parseErr
		}
		stream, err = syncer.StartSyncGTID(set)
	}
	if err != nil {
		return err
	}
	file := ""
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		event, err := stream.GetEvent(ctx)
		cancel()
		if err != nil {
			return err
		}
		header := event.Header
		if header.EventType == replication.HEARTBEAT_EVENT || header.EventType == replication.HEARTBEAT_LOG_EVENT_V2 {
			continue
		}
		if rotate, ok := event.Event.(*replication.RotateEvent); ok {
			file = string(rotate.NextLogName)
		}
		fmt.Println(header.EventType, file, header.LogPos, header.EventSize)
		if file == untilFile && uint64(header.LogPos) >= untilPosition {
			return nil
		}
	}
}

// What canal asks.
func ask(host string, port int, user, password, vendor string) error {
	connection, err := client.Connect(fmt.Sprintf("%s:%d", host, port), user, password, "")
	if err != nil {
		return err
	}
	defer connection.Close()
	status := "SHOW MASTER STATUS"
	if over, _ := connection.CompareServerVersion("8.4.0"); vendor == "mysql" && over >= 0 {
		status = "SHOW BINARY LOG STATUS"
	}
	gtids := "SELECT @@GLOBAL.GTID_EXECUTED"
	if vendor == "mariadb" {
		gtids = "SELECT @@GLOBAL.gtid_current_pos"
	}
	for _, statement := range []string{
		status, gtids, "SHOW GLOBAL VARIABLES LIKE 'binlog_format'", "SHOW GLOBAL VARIABLES LIKE 'binlog_row_image'",
	} {
		result, err := connection.Execute(statement)
		if err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
		for row := range result.RowNumber() {
			for column := range result.ColumnNumber() {
				text, _ := result.GetString(row, column)
				fmt.Print(text, " ")
			}
			fmt.Println()
		}
	}
	return nil
}
