-- A default that is not deterministic, for a column that is added: MySQL allows it only where statements are logged.
SET SESSION binlog_format = STATEMENT;
CREATE DATABASE d;
USE d;
CREATE TABLE t (id INT PRIMARY KEY) ENGINE=InnoDB;
INSERT INTO t VALUES (1), (2), (3);
ALTER TABLE t ADD COLUMN b DOUBLE DEFAULT (RAND());
UPDATE t SET b = b + 1 WHERE id = 2;
