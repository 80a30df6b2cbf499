-- MariaDB's own types and columns: compressed columns, INET6, UUID, JSON (text), generated, invisible, versioned; the
-- first generation of time types; domains and group commit.
-- option: --loose-binlog-row-metadata=FULL
CREATE TABLE c (id INT PRIMARY KEY, a VARCHAR(200) COMPRESSED, b TEXT COMPRESSED, i INET6, i4 INET4, u UUID, j JSON, y YEAR, n INT UNSIGNED, e ENUM('a','b'), z VARCHAR(10) COLLATE utf8mb4_bin);
INSERT INTO c VALUES (1,REPEAT('a',150),REPEAT('b',1000),'::1','1.2.3.4','123e4567-e89b-12d3-a456-426655440000','{"a": 1}',2024,4000000000,'b','z'),(2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE g (id INT PRIMARY KEY, a INT, v INT AS (a*2) VIRTUAL, s INT AS (a*3) PERSISTENT, i INT INVISIBLE DEFAULT 7) WITH SYSTEM VERSIONING;
INSERT INTO g (id,a) VALUES (1,10);
UPDATE g SET a=11;
SET gtid_domain_id=5, gtid_seq_no=100, server_id=77;
INSERT INTO g (id,a) VALUES (2,20);
SET GLOBAL mysql56_temporal_format=OFF;
CREATE TABLE old (id INT PRIMARY KEY, t TIME, dt DATETIME, ts TIMESTAMP);
INSERT INTO old VALUES (1,'-12:34:56','2024-02-29 01:02:03','2024-02-29 01:02:03');
-- print: SELECT 'old' tbl, old.* FROM old
