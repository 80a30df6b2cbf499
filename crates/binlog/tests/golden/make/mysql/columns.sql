-- Generated, invisible and vector columns, invisible primary keys, multi-valued and functional indexes, foreign keys.
-- only: mysql-9.7 mysql-8.4 mysql-8.0.46 mysql-8.0.15
-- option: --loose-binlog-row-metadata=FULL
CREATE TABLE g (id INT PRIMARY KEY, a INT, v INT GENERATED ALWAYS AS (a*2) VIRTUAL, s INT GENERATED ALWAYS AS (a*3) STORED, i INT INVISIBLE DEFAULT 7);
INSERT INTO g (id,a) VALUES (1,10);
UPDATE g SET a=11;
SET sql_generate_invisible_primary_key=ON;
CREATE TABLE gipk (a INT);
INSERT INTO gipk VALUES (1),(2);
CREATE TABLE vec (id INT PRIMARY KEY, v VECTOR(3));
INSERT INTO vec VALUES (1,TO_VECTOR('[1,2.5,-3]')),(2,NULL);
CREATE TABLE multi (id INT PRIMARY KEY, j JSON, n VARCHAR(20), KEY k ((CAST(j->'$.a' AS UNSIGNED ARRAY))), KEY f ((UPPER(n))));
INSERT INTO multi VALUES (1,'{"a":[1,2]}','x');
UPDATE multi SET n='y';
CREATE TABLE p (id INT PRIMARY KEY); CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p(id) ON DELETE CASCADE ON UPDATE CASCADE);
INSERT INTO p VALUES (1),(2); INSERT INTO c VALUES (1,1),(2,2);
UPDATE p SET id=3 WHERE id=1; DELETE FROM p WHERE id=2;
