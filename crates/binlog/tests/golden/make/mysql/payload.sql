-- Compressed transactions.
-- only: mysql-9.7 mysql-8.4 mysql-8.0.46
-- option: --loose-binlog-transaction-compression=ON
CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(1000));
INSERT INTO t VALUES (1,REPEAT('abc',300)),(2,REPEAT('x',1000));
BEGIN; UPDATE t SET a='y' WHERE id=1; DELETE FROM t WHERE id=2; INSERT INTO t VALUES (3,REPEAT('z',900)); COMMIT;
SET binlog_transaction_compression=OFF;
INSERT INTO t VALUES (4,'plain');
