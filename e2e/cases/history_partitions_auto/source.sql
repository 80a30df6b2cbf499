-- Partitions that the source makes when they are needed, and does not log.
CREATE DATABASE d;
USE d;
SET timestamp = UNIX_TIMESTAMP('2024-01-01 00:00:00');
-- How many rows a partition has is estimated. By statistics that a thread in the background makes, source and target could differ, as a native replica could.
CREATE TABLE l (id INT PRIMARY KEY, a INT) STATS_PERSISTENT=0 WITH SYSTEM VERSIONING PARTITION BY SYSTEM_TIME LIMIT 10 AUTO;
CREATE TABLE i (id INT PRIMARY KEY, a INT) WITH SYSTEM VERSIONING PARTITION BY SYSTEM_TIME INTERVAL 1 HOUR STARTS '2024-01-01 00:00:00' AUTO;
INSERT INTO l VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6), (7, 7), (8, 8), (9, 9), (10, 10);
INSERT INTO i VALUES (1, 1), (2, 2), (3, 3);
SET timestamp = UNIX_TIMESTAMP('2024-01-01 00:20:00');
UPDATE i SET a = a + 1;
UPDATE l SET a = a + 1;
SET timestamp = UNIX_TIMESTAMP('2024-01-01 01:20:00');
UPDATE l SET a = a + 1;
UPDATE i SET a = a + 1;
SET timestamp = UNIX_TIMESTAMP('2024-01-01 04:20:00');
BEGIN;
UPDATE i SET a = a + 1;
UPDATE l SET a = a + 1;
UPDATE i SET a = a + 1;
COMMIT;
SET timestamp = DEFAULT;
ALTER TABLE l DROP PARTITION p0;
UPDATE l SET a = a + 1;
UPDATE l SET a = a + 1;
ALTER TABLE l DROP PARTITION p1;
ALTER TABLE i DROP PARTITION p0;
