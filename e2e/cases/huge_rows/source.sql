-- Rows and events larger than a network packet (16 MiB).
CREATE DATABASE d;
USE d;
CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB, n INT);
INSERT INTO t VALUES (1, REPEAT('a', 17000000), 1);
INSERT INTO t VALUES (2, REPEAT(X'00FF27', 12000000), 2);
UPDATE t SET n = 10 WHERE id = 1;
INSERT INTO t VALUES (3, REPEAT('x', 16777215), 3), (4, 'small', 4);
UPDATE t SET b = CONCAT(b, 'more') WHERE id = 4;
DELETE FROM t WHERE id = 2;
-- at the edges of packets
INSERT INTO t SELECT 10 + n, REPEAT('e', 16777100 + n * 20), n FROM (SELECT 0 AS n UNION SELECT 3 UNION SELECT 6) AS edges;
