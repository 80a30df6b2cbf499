-- A row that is there already, behind rows of tables without transactions: these are applied once, whatever is done to find the row.
CREATE DATABASE d;
USE d;
CREATE TABLE u (a INT NOT NULL PRIMARY KEY) ENGINE=MyISAM;
CREATE TABLE m (a INT, b VARCHAR(10)) ENGINE=MyISAM;
CREATE TRIGGER tr BEFORE INSERT ON u FOR EACH ROW INSERT INTO m VALUES (NEW.a, 'once');
INSERT INTO u VALUES (1), (6);
SET sql_log_bin = 0;
DELETE FROM u WHERE a = 6;
SET sql_log_bin = 1;
INSERT INTO u VALUES (5), (6);
