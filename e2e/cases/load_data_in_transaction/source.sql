-- A table without transactions among others: the data of LOAD DATA are logged at once, in a transaction of their own, its statement with the transaction.
CREATE DATABASE d;
USE d;
CREATE TABLE m (id INT, v INT) ENGINE=MyISAM;
CREATE TABLE i (id INT AUTO_INCREMENT PRIMARY KEY, v INT) ENGINE=InnoDB;
CREATE TABLE src (id INT PRIMARY KEY, v INT) ENGINE=InnoDB;
INSERT INTO src VALUES (1, 10), (2, 20), (3, 30);
SELECT * FROM src INTO OUTFILE 'rows.txt';
CREATE TRIGGER copied AFTER INSERT ON m FOR EACH ROW INSERT INTO i (v) VALUES (NEW.v);
SET SESSION binlog_format = STATEMENT;
LOAD DATA INFILE 'rows.txt' INTO TABLE m;
BEGIN;
INSERT INTO i (v) VALUES (100);
LOAD DATA INFILE 'rows.txt' INTO TABLE m;
UPDATE i SET v = v + 1 WHERE v = 100;
COMMIT;
