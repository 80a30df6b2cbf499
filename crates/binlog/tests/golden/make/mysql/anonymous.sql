-- Anonymous GTIDs.
-- option: --loose-gtid-mode=OFF
-- option: --loose-enforce-gtid-consistency=OFF
CREATE TABLE t (id INT PRIMARY KEY);
INSERT INTO t VALUES (1);
INSERT INTO t VALUES (2);
