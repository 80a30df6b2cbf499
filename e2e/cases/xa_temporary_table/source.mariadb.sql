-- A prepared XA transaction reads a temporary table, as a statement: its branch on the target has a connection of its own, without the table.
CREATE DATABASE d;
USE d;
CREATE TABLE t (id INT PRIMARY KEY) ENGINE=InnoDB;
SET SESSION binlog_format = STATEMENT;
CREATE TEMPORARY TABLE tmp (id INT) ENGINE=InnoDB;
INSERT INTO tmp VALUES (1), (2);
XA START 'x';
INSERT INTO t SELECT id FROM tmp;
XA END 'x';
XA PREPARE 'x';
XA COMMIT 'x';
