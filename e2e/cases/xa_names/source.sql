CREATE DATABASE d; USE d;
CREATE TABLE t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB;
INSERT INTO t VALUES (1,0),(2,0),(3,0),(4,0),(5,0);
XA START X'00ff27', X'5c00', 4294967; UPDATE t SET v=1 WHERE id=1; XA END X'00ff27', X'5c00', 4294967; XA PREPARE X'00ff27', X'5c00', 4294967; XA COMMIT X'00ff27', X'5c00', 4294967;
XA START 'it''s', '', 0; UPDATE t SET v=2 WHERE id=2; XA END 'it''s', '', 0; XA PREPARE 'it''s', '', 0; XA ROLLBACK 'it''s', '', 0;
XA START 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', 2147483647; UPDATE t SET v=3 WHERE id=3; XA END 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', 2147483647; XA PREPARE 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', 2147483647; XA COMMIT 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', 2147483647;
XA START 'é', '\\'; UPDATE t SET v=4 WHERE id=4; XA END 'é', '\\'; XA PREPARE 'é', '\\'; XA COMMIT 'é', '\\';
