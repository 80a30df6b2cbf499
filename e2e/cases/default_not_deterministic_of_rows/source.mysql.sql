-- A default that is not deterministic, for a column that is added: MySQL allows it only where statements are logged.
CREATE DATABASE d;
USE d;
CREATE TABLE t (id INT PRIMARY KEY) ENGINE=InnoDB;
INSERT INTO t VALUES (1), (2), (3);
SET SESSION binlog_format = STATEMENT;
ALTER TABLE t ADD COLUMN b DOUBLE DEFAULT (RAND());
