-- XA syntax, one phase: in the log these are transactions like any other.
CREATE DATABASE d;
USE d;
CREATE TABLE t (id INT PRIMARY KEY, n INT);
INSERT INTO t VALUES (1, 1), (2, 2);
XA START 'one';
UPDATE t SET n = 10 WHERE id = 1;
INSERT INTO t VALUES (3, 3);
XA END 'one';
XA COMMIT 'one' ONE PHASE;
UPDATE t SET n = 11 WHERE id = 1;
XA START 'nothing';
XA END 'nothing';
XA COMMIT 'nothing' ONE PHASE;
XA START 'back';
DELETE FROM t;
XA END 'back';
XA ROLLBACK 'back';
INSERT INTO t VALUES (4, 4);
