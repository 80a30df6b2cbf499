-- Cascades into children whose indexes the server has to work out (a hash of a long unique value, a virtual column), behind rows of another kind.
CREATE DATABASE d;
USE d;
CREATE TABLE o (id INT PRIMARY KEY, v INT) ENGINE=InnoDB;
CREATE TABLE p (id INT PRIMARY KEY, v INT) ENGINE=InnoDB;
CREATE TABLE c_virtual (id INT PRIMARY KEY, p_id INT, w INT GENERATED ALWAYS AS (p_id + id) VIRTUAL, KEY (w), KEY (p_id),
  FOREIGN KEY (p_id) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE) ENGINE=InnoDB;
CREATE TABLE c_null (id INT PRIMARY KEY, p_id INT, t INT, w INT GENERATED ALWAYS AS (t * 2) VIRTUAL, KEY (w), KEY (p_id),
  FOREIGN KEY (p_id) REFERENCES p (id) ON DELETE SET NULL ON UPDATE CASCADE) ENGINE=InnoDB;
CREATE TABLE c_update (id INT PRIMARY KEY, p_id INT, t INT, w INT GENERATED ALWAYS AS (t * 2) VIRTUAL, KEY (w), KEY (p_id),
  FOREIGN KEY (p_id) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE) ENGINE=InnoDB;
CREATE TABLE grandchild (id INT PRIMARY KEY, c_id INT, t INT, w INT GENERATED ALWAYS AS (t + 1) VIRTUAL, KEY (w), KEY (c_id),
  FOREIGN KEY (c_id) REFERENCES c_update (id) ON DELETE CASCADE) ENGINE=InnoDB;
DELIMITER //
CREATE PROCEDURE fill(base INT)
BEGIN
  DECLARE n INT DEFAULT base;
  WHILE n < base + 40 DO
    INSERT INTO p VALUES (n, 1);
    INSERT INTO c_virtual (id, p_id) VALUES (n, n), (n + 1000, n);
    INSERT INTO c_null (id, p_id, t) VALUES (n, n, n), (n + 1000, n, 1);
    INSERT INTO c_update (id, p_id, t) VALUES (n, n, n), (n + 1000, n, 1);
    INSERT INTO grandchild (id, c_id, t) VALUES (n, n, n), (n + 1000, n + 1000, 1);
    SET n = n + 1;
  END WHILE;
END //
DELIMITER ;
BEGIN;
CALL fill(1);
COMMIT;
-- In one transaction, in each order.
BEGIN;
INSERT INTO o VALUES (1, 1);
DELETE FROM p WHERE id = 1;
COMMIT;
BEGIN;
UPDATE o SET v = 2 WHERE id = 1;
DELETE FROM p WHERE id = 2;
COMMIT;
BEGIN;
INSERT INTO o VALUES (2, 1);
UPDATE p SET id = 500 WHERE id = 3;
COMMIT;
BEGIN;
DELETE FROM o WHERE id = 2;
UPDATE p SET id = 501 WHERE id = 4;
DELETE FROM p WHERE id = 5;
INSERT INTO p VALUES (5, 5);
COMMIT;
BEGIN;
DELETE FROM p WHERE id = 6;
UPDATE p SET id = 502 WHERE id = 7;
DELETE FROM p WHERE id = 8;
COMMIT;
BEGIN;
INSERT INTO p VALUES (600, 1);
INSERT INTO c_update (id, p_id, t) VALUES (600, 600, 1);
INSERT INTO grandchild (id, c_id, t) VALUES (600, 600, 1);
DELETE FROM c_update WHERE id = 9;
DELETE FROM p WHERE id = 600;
COMMIT;
-- In transactions of one group.
INSERT INTO o VALUES (10, 1);
DELETE FROM p WHERE id = 10;
UPDATE o SET v = 2 WHERE id = 10;
UPDATE p SET id = 510 WHERE id = 11;
DELETE FROM o WHERE id = 10;
UPDATE p SET id = 511 WHERE id = 12;
DELETE FROM p WHERE id = 13;
DELETE FROM c_update WHERE id = 14;
UPDATE p SET v = 7;
DELETE FROM p WHERE id BETWEEN 20 AND 25;
