-- Tables without transactions under the source's GTIDs: the target logs their rows, and takes the GTID, before the COMMIT.
CREATE DATABASE d;
USE d;
CREATE TABLE m (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(20), KEY (a)) ENGINE=MyISAM;
CREATE TABLE i (id INT PRIMARY KEY, n INT) ENGINE=InnoDB;
INSERT INTO m (a) VALUES ('one'), ('two'), ('three');
INSERT INTO i VALUES (1, 1), (2, 2);
UPDATE m SET a = 'changed' WHERE id = 2;
UPDATE i SET n = 5 WHERE id = 1;
DELETE FROM m WHERE id = 1;
SET binlog_format = STATEMENT;
INSERT INTO m (a) VALUES ('statement');
UPDATE m SET a = UPPER(a);
UPDATE i SET n = n + 1;
SET binlog_format = ROW;
UPDATE m SET a = LOWER(a);
UPDATE i SET n = n + 1;
-- More than one rows event each: the GTID is taken once.
INSERT INTO m (a) SELECT REPEAT('x', 20) FROM m a, m b, m c, m d, m e, m f;
INSERT INTO m (a) SELECT REPEAT('y', 20) FROM m LIMIT 2000;
CREATE TABLE n (id INT PRIMARY KEY, v INT) ENGINE=MyISAM;
INSERT INTO n SELECT id, 0 FROM m WHERE id < 100;
UPDATE m, n SET a = 'joined', v = 1 WHERE m.id = n.id;
UPDATE i SET n = n + 1;
INSERT INTO n VALUES (100000, 1);
