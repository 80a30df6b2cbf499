-- Functions that name the account that runs a statement: it is another one on a target, so the statement is refused.
CREATE DATABASE d;
USE d;
CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(300));
-- Definitions are made as they are; in other formats the rows have the source's values.
CREATE VIEW v AS SELECT USER() AS u, CURRENT_USER() AS c;
CREATE PROCEDURE p() INSERT INTO d.t VALUES (1, USER());
CALL p();
INSERT INTO t VALUES (2, CURRENT_USER()), (3, SESSION_USER()), (4, SYSTEM_USER());
SET SESSION binlog_format = STATEMENT;
INSERT INTO t VALUES (5, 'USER()');
INSERT INTO t VALUES (6, USER());
