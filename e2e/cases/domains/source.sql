-- Several GTID domains and servers in one log.
CREATE DATABASE d;
USE d;
CREATE TABLE a (id INT PRIMARY KEY, n INT);
CREATE TABLE b (id INT PRIMARY KEY, n INT);
CREATE TABLE c (id INT PRIMARY KEY, n INT);
INSERT INTO a VALUES (1, 0);
INSERT INTO b VALUES (1, 0);
INSERT INTO c VALUES (1, 0);
DELIMITER //
CREATE PROCEDURE work(t INT, rounds INT)
BEGIN
  WHILE rounds > 0 DO
    IF t = 1 THEN UPDATE a SET n = n + 1; INSERT INTO a VALUES (rounds + 10, rounds); END IF;
    IF t = 2 THEN UPDATE b SET n = n + 1; INSERT INTO b VALUES (rounds + 10, rounds); END IF;
    IF t = 3 THEN UPDATE c SET n = n + 1; INSERT INTO c VALUES (rounds + 10, rounds); END IF;
    SET rounds = rounds - 1;
  END WHILE;
END //
DELIMITER ;
SET SESSION gtid_domain_id = 1;
CALL work(1, 40);
SET SESSION gtid_domain_id = 2;
CALL work(2, 40);
ALTER TABLE b ADD COLUMN x INT DEFAULT 1;
SET SESSION gtid_domain_id = 1;
UPDATE a SET n = n + 1;
SET SESSION gtid_domain_id = 3, SESSION server_id = 99;
CALL work(3, 20);
SET SESSION gtid_domain_id = 0;
ALTER TABLE c ADD COLUMN x INT DEFAULT 1;
SET SESSION gtid_domain_id = 4294967295;
UPDATE c SET x = 5;
FLUSH BINARY LOGS;
SET SESSION gtid_domain_id = 2;
DELETE FROM b WHERE id > 30;
