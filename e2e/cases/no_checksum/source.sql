-- Events without a CRC32 at their end.
CREATE DATABASE d;
USE d;
CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20));
INSERT INTO t VALUES (1, 'one'), (2, 'two');
UPDATE t SET v = 'uno' WHERE id = 1;
ALTER TABLE t ADD COLUMN n INT;
INSERT INTO t VALUES (3, 'three', 3);
SET GLOBAL binlog_checksum = CRC32;
INSERT INTO t VALUES (4, 'four', 4);
SET GLOBAL binlog_checksum = NONE;
DELETE FROM t WHERE id = 2;
