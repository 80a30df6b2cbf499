-- Updates beside the rows of a prepared branch, whose end comes after them: one that became a delete and an insert would wait for the branch for ever.
CREATE DATABASE d;
CREATE TABLE d.t (a INT PRIMARY KEY, b INT UNIQUE, c INT NOT NULL UNIQUE, n INT);
INSERT INTO d.t VALUES (16, 30, 18, 5), (30, 28, 20, 29), (21, 23, 8, 5), (5, 22, 28, 14);
XA START 'x';
INSERT INTO d.t VALUES (20, 6, 22, 9);
XA END 'x';
XA PREPARE 'x';
connect
DO SLEEP(1);
UPDATE d.t FORCE INDEX (PRIMARY) SET b = b + 1 WHERE a IN (16, 30, 21, 5) ORDER BY b DESC;
CREATE TABLE d.other (id INT PRIMARY KEY);
XA ROLLBACK 'x';
UPDATE d.t SET b = b - 1 WHERE a = 16;
