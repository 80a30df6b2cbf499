-- A statement that gave up waiting for a lock, and had changed a table without transactions by then, is logged with 1205: replicas execute it,
-- roll back what they can, and go on.
CREATE DATABASE d;
USE d;
CREATE TABLE t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB;
CREATE TABLE m (id INT AUTO_INCREMENT PRIMARY KEY, v INT) ENGINE=MyISAM;
INSERT INTO t VALUES (1, 0), (2, 0), (3, 0);
DELIMITER //
CREATE TRIGGER tr BEFORE UPDATE ON t FOR EACH ROW INSERT INTO m (v) VALUES (NEW.id);
//
SET SESSION binlog_format = STATEMENT, innodb_lock_wait_timeout = 1, sql_log_bin = 0 //
CREATE EVENT holder ON SCHEDULE AT CURRENT_TIMESTAMP ON COMPLETION PRESERVE DO
BEGIN
  START TRANSACTION;
  SELECT v INTO @v FROM t WHERE id = 3 FOR UPDATE;
  DO SLEEP(4);
  ROLLBACK;
END //
DELIMITER ;
SET SESSION sql_log_bin = 1;
DO SLEEP(2);
UPDATE t SET v = 1 ORDER BY id;
DO SLEEP(3);
INSERT INTO t VALUES (4, 4);
-- Inside a transaction, and without what can not be rolled back there is nothing in the log.
BEGIN;
INSERT INTO t VALUES (5, 5);
COMMIT;
SET SESSION sql_log_bin = 0;
DROP EVENT holder;
