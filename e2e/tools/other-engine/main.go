// Another engine that speaks MySQL's protocol: go-mysql-server, with its tables in memory. A target of `heddle replicate --rows sql`.
//
//	other-engine HOST:PORT
package main

import (
	"fmt"
	"os"

	sqle "github.com/dolthub/go-mysql-server"
	"github.com/dolthub/go-mysql-server/memory"
	"github.com/dolthub/go-mysql-server/server"
	"github.com/dolthub/go-mysql-server/sql"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(address string) error {
	provider := memory.NewDBProvider()
	provider.WithOption(memory.NativeIndexProvider(true))
	engine := sqle.NewDefault(provider)
	accounts := engine.Analyzer.Catalog.MySQLDb
	editor := accounts.Editor()
	for _, host := range []string{"%", "localhost"} {
		accounts.AddSuperUser(editor, "heddle", host, "heddle")
	}
	editor.Close()
	config := server.Config{Protocol: "tcp", Address: address}
	listener, err := server.NewServer(config, engine, sql.NewContext, memory.NewSessionBuilder(provider), nil)
	if err != nil {
		return err
	}
	return listener.Start()
}
