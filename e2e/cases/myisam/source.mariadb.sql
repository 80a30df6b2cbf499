USE d;
-- Both kinds in one transaction: what is rolled back stays in the one that cannot.
BEGIN;
INSERT INTO i VALUES (10, 10);
INSERT INTO m VALUES (10, 'stays');
COMMIT;
BEGIN;
INSERT INTO m VALUES (11, 'stays, too');
INSERT INTO i VALUES (11, 11);
ROLLBACK;
CREATE TABLE a (id INT PRIMARY KEY, n INT) ENGINE=Aria;
INSERT INTO a VALUES (1, 1), (2, 2);
UPDATE a SET n = n + 1;
DELETE FROM a WHERE id = 1;
INSERT INTO m VALUES (12, 'delayed');
