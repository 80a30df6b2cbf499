CREATE DATABASE d CHARACTER SET utf8mb4;
USE d;
-- Keys and indexes of every type.
CREATE TABLE t (a INT NULL, s VARCHAR(20) COLLATE utf8mb4_general_ci, d DECIMAL(9,3), dt DATETIME(3), ts TIMESTAMP(2) NULL, da DATE, ti TIME(1),
  y YEAR, e ENUM('a','b','c'), se SET('x','y','z'), bi BIT(9), f FLOAT, dou DOUBLE, c CHAR(7), b BINARY(5), vb VARBINARY(9), te TEXT, bl BLOB,
  ub BIGINT UNSIGNED, la VARCHAR(9) CHARACTER SET latin1,
  UNIQUE KEY a (a), KEY s (s), KEY d (d), KEY dt (dt), KEY ts (ts), KEY da (da), KEY ti (ti), KEY y (y), KEY e (e, se, a), KEY bi (bi), KEY f (f),
  KEY dou (dou), KEY c (c), KEY b (b), KEY vb (vb), KEY te (te(3), a), KEY bl (bl(2), ub), KEY ub (ub), KEY la (la)) ENGINE=InnoDB;
SET SESSION time_zone = '+00:00';
INSERT INTO t VALUES
 (1, 'one', 1.5, '2024-01-01 01:01:01.001', '2024-01-01 01:01:01.01', '2024-01-01', '-10:00:00.1', 2001, 'a', 'x', b'1', 1.1, 1.1, 'c1', 'b1', 'v1', 'text one', 'blob', 18446744073709551615, 'aé'),
 (2, 'two', -1.5, '2024-02-01 01:01:01.001', '2024-02-01 01:01:01.01', '2024-02-01', '10:00:00.1', 2002, 'b', 'x,y', b'101010101', 2.2, 2.2e100, 'c2', 'b2', 'v2', 'mext', 'clob', 2, 'bè'),
 (NULL, 'three', 3, '2024-03-01 01:01:01.001', '2024-03-01 01:01:01.01', '2024-03-01', '30:00:00.1', 2003, 'c', 'z', b'11', 3.3, 3.3, 'c3', 'b3', X'00FF00', 'next', X'00FF', 3, 'cê'),
 (NULL, 'four', 4, '2024-04-01 01:01:01.001', '2024-04-01 01:01:01.01', '2024-04-01', '40:00:00.1', 2004, NULL, 'y,z', b'100', 4.4, 4.4, 'c4', 'b4', X'01FF00', 'fext', X'01FF', 4, 'dë');
UPDATE t SET d = d + 1 WHERE a = 1;
UPDATE t SET a = 3, te = 'new' WHERE s = 'three';
UPDATE t SET a = NULL WHERE a = 2;
DELETE FROM t WHERE s = 'four';
UPDATE t SET s = CONCAT(s, ' '), a = COALESCE(a, 7);
-- Rows that share an index with others that have no key at all: the server compares them.
CREATE TABLE n (a INT NULL, b INT NULL, c INT, UNIQUE KEY a (a), KEY b (b)) ENGINE=InnoDB;
INSERT INTO n VALUES (NULL, 1, 1), (NULL, 1, 2), (NULL, 2, 3), (NULL, NULL, 4), (5, 6, 5);
UPDATE n SET c = 20 WHERE c = 2;
DELETE FROM n WHERE c = 1;
UPDATE n SET a = 6 WHERE a = 5;
DELETE FROM n WHERE c = 4;
-- Two such keys.
CREATE TABLE two (a INT NULL, b VARCHAR(9) NULL, c INT, UNIQUE KEY a (a), UNIQUE KEY b (b(4), c)) ENGINE=InnoDB;
INSERT INTO two VALUES (1, 'one', 1), (2, 'two', 2), (NULL, 'three', 3), (4, NULL, NULL);
UPDATE two SET c = c + 10;
DELETE FROM two WHERE a = 1;
-- Without an index beside it there is nothing to take for another.
CREATE TABLE o (a INT NULL, b INT, UNIQUE KEY a (a)) ENGINE=InnoDB;
INSERT INTO o VALUES (1, 1), (2, 1), (NULL, 1), (NULL, 1);
DELETE FROM o WHERE a = 2;
UPDATE o SET b = 5 WHERE a IS NULL LIMIT 1;
-- Many rows of one event.
CREATE TABLE many (a INT NULL, b INT, v TEXT, UNIQUE KEY a (a), KEY b (b)) ENGINE=InnoDB;
INSERT INTO many SELECT @m := @m + 1, @m * 10, REPEAT('x', 2000) FROM information_schema.columns, (SELECT @m := 0) AS z LIMIT 700;
UPDATE many SET b = b + 1, v = REPEAT('y', 1000);
DELETE FROM many WHERE a % 3 = 0;
-- An index that rows share: the server goes by the unique key, as long as it leads to fewer rows.
CREATE TABLE shared (a INT NULL, b INT, v VARCHAR(20), KEY b (b), UNIQUE KEY a (a)) ENGINE=InnoDB;
INSERT INTO shared VALUES (1, 9, 'one'), (2, 9, 'two'), (3, 9, 'three'), (NULL, 9, 'none'), (4, 8, 'four');
ANALYZE TABLE shared;
DELETE FROM shared WHERE a = 2;
UPDATE shared SET v = 'changed' WHERE a = 3;
UPDATE shared SET a = 5, b = 8 WHERE a = 4;
UPDATE shared SET v = 'nothing' WHERE a IS NULL;
DELETE FROM shared WHERE a = 1;
