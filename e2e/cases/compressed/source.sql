-- Compressed payloads (MySQL) and compressed events (MariaDB), rows and statements.
CREATE DATABASE d;
USE d;
CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(2000), n INT);
INSERT INTO t VALUES (1, REPEAT('compress ', 200), 1), (2, REPEAT('me ', 500), 2);
UPDATE t SET a = REPEAT('changed ', 200) WHERE id = 1;
DELETE FROM t WHERE id = 2;
BEGIN;
INSERT INTO t SELECT id + 10, a, n FROM t;
INSERT INTO t SELECT id + 20, a, n FROM t;
INSERT INTO t SELECT id + 40, a, n FROM t;
UPDATE t SET n = id;
COMMIT;
ALTER TABLE t ADD COLUMN something_with_a_long_name VARCHAR(200) NOT NULL DEFAULT 'a default that is long enough to be compressed';
SET SESSION binlog_format = STATEMENT;
SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ;
INSERT INTO t (id, a, n) VALUES (1000, 'a statement that is long enough to be compressed, is long enough to be compressed, is long enough', 5);
SET SESSION binlog_format = ROW;
DELIMITER //
CREATE PROCEDURE work(rounds INT)
BEGIN
  WHILE rounds > 0 DO
    UPDATE t SET n = n + 1, a = CONCAT('round ', rounds, REPEAT(' and', 50)) WHERE id = 1;
    SET rounds = rounds - 1;
  END WHILE;
END //
DELIMITER ;
CALL work(100);
