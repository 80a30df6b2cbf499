-- LOAD DATA in statement format: blocks of a file, then the statement.
CREATE DATABASE d CHARACTER SET utf8mb4;
USE d;
CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(50), n INT, w VARCHAR(60));
CREATE TABLE src (id INT PRIMARY KEY, v VARCHAR(50), n INT);
INSERT INTO src VALUES (1, 'one', 10), (2, 't\'w\\o', 20), (3, 'drei ü,x', 30), (4, NULL, NULL);
SELECT * FROM src INTO OUTFILE 'rows.txt';
SET SESSION binlog_format = STATEMENT;
LOAD DATA INFILE 'rows.txt' INTO TABLE t (id, v, n);
LOAD DATA INFILE 'rows.txt' REPLACE INTO TABLE t CHARACTER SET utf8mb4 FIELDS TERMINATED BY '\t' (id, @v, n) SET v = CONCAT(@v, '!'), w = UPPER(@v);
LOAD DATA INFILE 'rows.txt' IGNORE INTO TABLE d.t CHARACTER SET latin1 LINES TERMINATED BY '\n' IGNORE 1 LINES;
SET SESSION binlog_format = ROW;
LOAD DATA INFILE 'rows.txt' REPLACE INTO TABLE t (id, v, n);
