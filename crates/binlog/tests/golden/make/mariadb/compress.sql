-- Compressed statements and rows.
-- option: --loose-log-bin-compress=ON
-- option: --loose-log-bin-compress-min-len=10
CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(1000), b TEXT);
INSERT INTO t VALUES (1,REPEAT('abc',300),'x'),(2,REPEAT('x',1000),REPEAT('y',5000));
UPDATE t SET a=REPEAT('q',500);
DELETE FROM t WHERE id=2;
SET binlog_format=STATEMENT;
INSERT INTO t VALUES (3,'                                                                                                             ','s');
