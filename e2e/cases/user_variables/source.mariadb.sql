USE d;
SET SESSION sql_mode = 'EMPTY_STRING_IS_NULL', time_zone = '+01:00', binlog_format = STATEMENT;
CREATE TABLE empty_strings (id INT PRIMARY KEY, a VARCHAR(5) DEFAULT '') ENGINE=InnoDB;
INSERT INTO empty_strings VALUES (1, ''), (2, 'x');
SET @v = ''; INSERT INTO empty_strings VALUES (3, @v);
CREATE TEMPORARY TABLE temporary (a INT);
INSERT INTO temporary VALUES (7);
INSERT INTO empty_strings (id) SELECT a FROM temporary;
ANALYZE INSERT INTO empty_strings VALUES (8, 'y');
