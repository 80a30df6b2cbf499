module heddle/read-binlog

go 1.25.0

require github.com/go-mysql-org/go-mysql v1.13.0
