-- Tagged GTIDs, the second log has them in its previous GTIDs.
-- only: mysql-9.7 mysql-8.4
CREATE TABLE t (id INT PRIMARY KEY);
SET gtid_next='AUTOMATIC:tag_one';
INSERT INTO t VALUES (1);
INSERT INTO t VALUES (2);
SET gtid_next='aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee:a_longer_tag_of_thirty_two_bytes:1234567890123';
INSERT INTO t VALUES (3);
SET gtid_next='aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee:77';
INSERT INTO t VALUES (4);
SET gtid_next='AUTOMATIC';
INSERT INTO t VALUES (5);
