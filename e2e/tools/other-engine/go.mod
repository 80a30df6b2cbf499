module heddle/other-engine

go 1.25.0

require github.com/dolthub/go-mysql-server v0.20.0
