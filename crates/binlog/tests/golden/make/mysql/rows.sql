-- Inserts, updates and deletes in every row image, with and without a key.
-- option: --loose-binlog-rows-query-log-events=ON
CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT, b VARCHAR(50), c BLOB, u INT UNIQUE);
CREATE TABLE n (a INT, b TEXT);
CREATE TABLE d (a INT DEFAULT 1, b INT DEFAULT 2);
INSERT INTO t (a,b,c,u) VALUES (1,'one',REPEAT('x',300),10),(2,'two','yy',20),(3,NULL,NULL,NULL);
UPDATE t SET a=a+1 WHERE id<3;
DELETE FROM t WHERE id=3;
INSERT INTO n VALUES (1,'x'),(1,'x'),(2,NULL);
UPDATE n SET b='y' WHERE a=1;
SET SESSION binlog_row_image=MINIMAL;
INSERT INTO t (a,b) VALUES (7,'seven');
INSERT INTO d () VALUES ();
UPDATE t SET b='ONE' WHERE id=1;
UPDATE n SET b='z' WHERE a=2;
DELETE FROM t WHERE id=2;
SET SESSION binlog_row_image=NOBLOB;
INSERT INTO t (a,b,c,u) VALUES (8,'eight','blob',80);
UPDATE t SET b='EIGHT' WHERE u=80;
UPDATE t SET c='new blob' WHERE u=80;
DELETE FROM t WHERE u=80;
SET SESSION binlog_row_image=FULL;
SET foreign_key_checks=0, unique_checks=0;
INSERT INTO t (a) VALUES (9);
BEGIN; INSERT INTO t (a) VALUES (10); SAVEPOINT s; INSERT INTO t (a) VALUES (11); ROLLBACK TO s; INSERT INTO n VALUES (3,'c'); COMMIT;
