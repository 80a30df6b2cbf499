-- Variables of the source's own log, which no session may change in a transaction.
CREATE DATABASE d;
USE d;
CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, s VARCHAR(99));
SET binlog_format = STATEMENT;
SET STATEMENT binlog_format = STATEMENT FOR INSERT INTO t (s) VALUES ('one');
SET STATEMENT gtid_domain_id = 7, time_zone = '+09:00' FOR INSERT INTO t (s) VALUES (CONCAT('two ', @@time_zone));
SET STATEMENT binlog_direct_non_transactional_updates = 1 FOR UPDATE t SET s = CONCAT(s, '!');
SET STATEMENT wsrep_on = 0 FOR INSERT INTO t (s) VALUES ('four, for');
BEGIN;
INSERT INTO t (s) VALUES ('six');
SET STATEMENT sql_mode = '' FOR UPDATE t SET s = CONCAT(s, '.') WHERE id > 2;
COMMIT;
