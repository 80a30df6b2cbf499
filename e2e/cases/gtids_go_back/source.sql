-- Without gtid_strict_mode sequence numbers of a domain can go back, as with two servers that write into one: nothing is taken for
-- applied that comes later in the log.
CREATE DATABASE d;
USE d;
CREATE TABLE t (id INT PRIMARY KEY, v INT);
INSERT INTO t VALUES (1, 1), (2, 2), (3, 3);
UPDATE t SET v = v + 1;
SET SESSION server_id = 77, gtid_seq_no = 2;
INSERT INTO t VALUES (4, 4);
UPDATE t SET v = v * 2 WHERE id = 1;
SET SESSION server_id = 78, gtid_seq_no = 100;
DELETE FROM t WHERE id = 2;
SET SESSION server_id = 77, gtid_seq_no = 5;
UPDATE t SET v = v + 100;
INSERT INTO t VALUES (5, 5);
SET SESSION server_id = 77, gtid_seq_no = 3;
ALTER TABLE t ADD COLUMN w INT NOT NULL DEFAULT 7;
CREATE TABLE u (id INT PRIMARY KEY);
INSERT INTO u VALUES (1), (2);
SET SESSION server_id = 78, gtid_seq_no = 50;
DROP TABLE u;
UPDATE t SET w = id;
