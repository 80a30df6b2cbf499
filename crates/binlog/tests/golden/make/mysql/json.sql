-- JSON of every kind, and partial updates of it.
-- only: mysql-9.7 mysql-8.4 mysql-8.0.46 mysql-8.0.15 mysql-5.7.22
-- option: --loose-binlog-row-metadata=FULL
-- print: SELECT 'j' tbl, j.* FROM j ORDER BY id
CREATE TABLE j (id INT PRIMARY KEY, d JSON);
INSERT INTO j VALUES (1,'null'),(2,'true'),(3,'false'),(4,'1'),(5,'-1'),(6,'65535'),(7,'-32769'),(8,'4294967295'),(9,'-2147483649'),(10,'18446744073709551615'),(11,'-9223372036854775808'),
 (12,'1.5'),(13,'1e100'),(14,'100.0'),(15,'"text"'),(16,'"quote \\" back \\\\ tab \\t nl \\n uni é 😀"'),(17,'[]'),(18,'{}'),(19,'[1, "a", null, true, [2, [3]], {"k": {"l": "m"}}]'),
 (20,'{"a": 1, "bb": [1, 2.5, "x"], "ccc": null}'),(21,JSON_ARRAY(REPEAT('long',20000),1,-70000,3000000000)),(22,NULL),(23,JSON_OBJECT('dec',CAST(123.45 AS DECIMAL(10,2)),'date',DATE'2024-02-29','time',TIME'-12:34:56.5','dt',TIMESTAMP'2024-02-29 01:02:03.000004')),
 (24,CAST('"abc"' AS JSON)),(25,JSON_OBJECT('neg',CAST(-0.5 AS DECIMAL(5,2)))),(26,'1e-7'),(27,'123456789012345680000'),(28,'0.1'),(29,JSON_ARRAY(CAST('a' AS BINARY)));
CREATE TABLE partial (id INT PRIMARY KEY, a JSON, x INT, b JSON, c JSON);
INSERT INTO partial VALUES (1,JSON_OBJECT('k',REPEAT('x',200),'n',1),1,JSON_OBJECT('k',REPEAT('y',200)),NULL),(2,JSON_ARRAY(1,2,3,REPEAT('z',100)),2,'{}','{}');
SET binlog_row_value_options=PARTIAL_JSON;
UPDATE partial SET a=JSON_SET(a,'$.n',2) WHERE id=1;
UPDATE partial SET a=JSON_REMOVE(a,'$[1]'), b=JSON_OBJECT('full','new') WHERE id=2;
UPDATE partial SET x=3;
UPDATE partial SET b=JSON_REPLACE(b,'$.k','short') WHERE id=1;
UPDATE partial SET a=JSON_ARRAY_INSERT(a,'$[0]','first'), c=JSON_SET(c,'$.new',1) WHERE id=2;
SET binlog_row_image=MINIMAL;
UPDATE partial SET a=JSON_SET(a,'$.n',3) WHERE id=1;
UPDATE partial SET x=4 WHERE id=1;
SET binlog_row_image=NOBLOB;
UPDATE partial SET a=JSON_SET(a,'$.n',4) WHERE id=1;
