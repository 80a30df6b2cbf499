-- What a client may do is not what an applier may do: restrict_fk_on_non_standard_key.
CREATE DATABASE d;
USE d;
CREATE TABLE p (id INT PRIMARY KEY, a INT, b INT, KEY (a), UNIQUE (b, a));
CREATE TABLE c (id INT PRIMARY KEY, a INT, FOREIGN KEY (a) REFERENCES p (a));
CREATE TABLE c2 (id INT PRIMARY KEY, b INT);
ALTER TABLE c2 ADD FOREIGN KEY (b) REFERENCES p (b);
INSERT INTO p VALUES (1, 10, 100), (2, 20, 200);
INSERT INTO c VALUES (1, 10);
INSERT INTO c2 VALUES (1, 100);
DELETE FROM c WHERE id = 1;
