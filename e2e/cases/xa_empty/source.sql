-- Prepared XA transactions that change nothing, as rows and as statements: MariaDB logs them, and forgets a branch without changes when
-- its connection ends.
CREATE DATABASE d;
USE d;
CREATE TABLE t (id INT PRIMARY KEY, v INT);
INSERT INTO t VALUES (1, 1), (2, 2);
XA START 'read'; SELECT * FROM t; XA END 'read'; XA PREPARE 'read'; XA COMMIT 'read';
XA START 'none'; UPDATE t SET v = 5 WHERE id = 77; XA END 'none'; XA PREPARE 'none'; XA ROLLBACK 'none';
SET SESSION binlog_format = 'MIXED';
XA START 'mixed'; UPDATE t SET v = 6 WHERE id = 78; XA END 'mixed'; XA PREPARE 'mixed'; XA COMMIT 'mixed';
XA START 'mixed back'; UPDATE t SET v = 6 WHERE id = 78; XA END 'mixed back'; XA PREPARE 'mixed back'; XA ROLLBACK 'mixed back';
XA START 'one'; UPDATE t SET v = 7 WHERE id = 1; XA END 'one'; XA PREPARE 'one'; XA COMMIT 'one';
XA START 'read'; UPDATE t SET v = 8 WHERE id = 2; XA END 'read'; XA PREPARE 'read'; XA COMMIT 'read';
UPDATE t SET v = v + 1;
