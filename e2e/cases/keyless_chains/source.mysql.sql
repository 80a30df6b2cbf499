-- MariaDB's lookup by one of several indexes is refused.
USE d;
CREATE TABLE both_keys (a INT, b INT, UNIQUE (a), KEY (b)) ENGINE=InnoDB;
INSERT INTO both_keys VALUES (4, 13), (5, 2), (7, 2);
CALL chains('both_keys');
BEGIN;
UPDATE both_keys SET a = 6 WHERE a = 5;
UPDATE both_keys SET a = 5 WHERE a = 4;
UPDATE both_keys SET a = 4 WHERE a = 7;
COMMIT;
