-- A statement that was ended half-way and could not be rolled back is logged as a statement with that error: how far it came is not in the log.
CREATE DATABASE d;
USE d;
CREATE TABLE t (a INT PRIMARY KEY, b INT) ENGINE=MyISAM;
CREATE TABLE killer (id BIGINT);
INSERT INTO t VALUES (1, 0), (2, 0), (3, 0), (4, 0), (5, 0);
SET SESSION sql_log_bin = 0;
INSERT INTO killer VALUES (0);
SET SESSION sql_log_bin = 1;
DELIMITER //
CREATE FUNCTION f(x INT) RETURNS INT DETERMINISTIC
BEGIN
  -- On the source only.
  IF x = 3 AND EXISTS (SELECT 1 FROM killer) THEN
    KILL QUERY CONNECTION_ID();
    DO SLEEP(1);
  END IF;
  RETURN x;
END //
DELIMITER ;
SET SESSION binlog_format = STATEMENT;
UPDATE t SET b = f(a) ORDER BY a;
SET SESSION sql_log_bin = 0;
DELETE FROM killer;
SET SESSION sql_log_bin = 1;
INSERT INTO t VALUES (6, 6);
