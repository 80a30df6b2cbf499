-- A branch whose statements change a table without transactions, and then one that the target lacks. What stays is known: neither is it executed again, nor taken for the whole.
CREATE DATABASE d;
USE d;
CREATE TABLE i (n INT PRIMARY KEY) ENGINE=InnoDB;
CREATE TABLE m (n INT) ENGINE=MyISAM;
SET sql_log_bin = 0;
CREATE TABLE only_here (n INT) ENGINE=InnoDB;
SET sql_log_bin = 1;
SET SESSION binlog_format = STATEMENT;
INSERT INTO m VALUES (0);
XA START 'x';
INSERT INTO i VALUES (1);
INSERT INTO m VALUES (1);
INSERT INTO only_here VALUES (1);
XA END 'x';
XA PREPARE 'x';
XA COMMIT 'x';
INSERT INTO m VALUES (2);
