-- Sequences without transactions would be logged by themselves: refused before anything is.
CREATE DATABASE d;
USE d;
CREATE SEQUENCE m ENGINE=MyISAM;
CREATE SEQUENCE a ENGINE=Aria;
CREATE TABLE t (id INT PRIMARY KEY);
BEGIN;
INSERT INTO t VALUES (NEXTVAL(m)), (NEXTVAL(a) + 1000);
ROLLBACK;
