-- Rows without a key that are changed again and again: a target that looks for all rows of an event in one scan must not take them in another order.
CREATE DATABASE d;
USE d;
CREATE TABLE none (a INT, b INT) ENGINE=InnoDB;
CREATE TABLE plain (a INT, b INT, KEY (a)) ENGINE=InnoDB;
CREATE TABLE other (a INT, b INT, KEY (b)) ENGINE=InnoDB;
CREATE TABLE nulls (a INT, b INT, UNIQUE (a)) ENGINE=InnoDB;
INSERT INTO none VALUES (4, 13), (4, 1);
INSERT INTO plain SELECT * FROM none;
INSERT INTO other SELECT * FROM none;
INSERT INTO nulls VALUES (4, 13), (5, 2), (NULL, 1), (NULL, 1);
DELIMITER //
CREATE PROCEDURE chain(name VARCHAR(20), first INT, second INT)
BEGIN
  SET @sql = CONCAT('UPDATE ', name, ' SET b = ? WHERE a = 4 AND b = ?');
  PREPARE change_it FROM @sql;
  SET @first = first, @second = second;
  EXECUTE change_it USING @second, @first;
END //
CREATE PROCEDURE chains(name VARCHAR(20))
BEGIN
  START TRANSACTION;
  CALL chain(name, 13, 14); CALL chain(name, 14, 15);
  COMMIT;
  START TRANSACTION;
  CALL chain(name, 15, 14); CALL chain(name, 14, 15); CALL chain(name, 15, 16);
  COMMIT;
  START TRANSACTION;
  CALL chain(name, 16, 17); CALL chain(name, 17, 16); CALL chain(name, 16, 17); CALL chain(name, 17, 18);
  COMMIT;
  CALL chain(name, 18, 19);
  CALL chain(name, 19, 18);
  CALL chain(name, 18, 20);
  CALL chain(name, 20, 13);
END //
DELIMITER ;
CALL chains('none');
CALL chains('plain');
CALL chains('other');
CALL chains('nulls');
BEGIN;
UPDATE nulls SET a = 6 WHERE a = 5;
UPDATE nulls SET a = 5 WHERE a = 4;
COMMIT;
