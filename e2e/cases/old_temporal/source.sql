CREATE DATABASE d;
USE d;
-- Two columns that are together as long as they would be without fractions, so that only the definition tells.
CREATE TABLE t (id INT PRIMARY KEY, a DATETIME(3), b TINYINT, v INT, UNIQUE KEY (v)) ENGINE=InnoDB;
INSERT INTO t VALUES (1, '2024-01-02 03:04:05.678', 1, 1);
