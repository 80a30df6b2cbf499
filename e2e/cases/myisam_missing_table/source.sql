-- A statement changes three tables without transactions, and the target lacks the last one: nothing of it is executed, so it can be executed again.
CREATE DATABASE d;
USE d;
CREATE TABLE t1 (a INT NOT NULL PRIMARY KEY, b VARCHAR(10)) ENGINE=MyISAM;
CREATE TABLE t2 LIKE t1;
INSERT INTO t2 VALUES (1, 'AA');
INSERT INTO t1 VALUES (1, 'AA');
CREATE TRIGGER tr1 BEFORE UPDATE ON t1 FOR EACH ROW UPDATE t2 SET b = 'YY' WHERE a = NEW.a;
SET sql_log_bin = 0;
CREATE TABLE t3 LIKE t1;
INSERT INTO t3 VALUES (1, 'AA');
CREATE TRIGGER tr2 AFTER UPDATE ON t1 FOR EACH ROW UPDATE t3 SET b = 'ZZ' WHERE a = NEW.a;
SET sql_log_bin = 1;
UPDATE t1 SET b = 'XX' WHERE a = 1;
