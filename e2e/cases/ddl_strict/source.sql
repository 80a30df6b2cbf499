-- Unless --ddl says otherwise a table that is there already stops the channel: it may have rows.
CREATE DATABASE d;
USE d;
CREATE TABLE there (id INT PRIMARY KEY, v INT);
INSERT INTO there VALUES (1, 1);
SET SESSION sql_log_bin = 0;
DROP TABLE there;
SET SESSION sql_log_bin = 1;
CREATE TABLE there (id INT PRIMARY KEY, w VARCHAR(10));
