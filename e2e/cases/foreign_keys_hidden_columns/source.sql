-- Tables whose rows have more columns in the log than the definition says: their foreign keys hold all the same.
CREATE DATABASE d;
USE d;
CREATE TABLE parent (id INT PRIMARY KEY, v INT);
CREATE TABLE versioned (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id)) WITH SYSTEM VERSIONING;
CREATE TABLE hashed (id INT PRIMARY KEY, p INT, t TEXT UNIQUE, FOREIGN KEY (p) REFERENCES parent (id));
CREATE TABLE versioned_parent (id INT PRIMARY KEY, v INT) WITH SYSTEM VERSIONING;
CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES versioned_parent (id) ON DELETE CASCADE);
DELIMITER //
CREATE PROCEDURE grow(rounds INT)
BEGIN
  DECLARE i INT DEFAULT 0;
  WHILE i < rounds DO
    INSERT INTO parent VALUES (i, i);
    INSERT INTO versioned VALUES (i, i);
    INSERT INTO hashed VALUES (i, i, CONCAT('text ', i));
    INSERT INTO versioned_parent VALUES (i, i);
    INSERT INTO child VALUES (i, i);
    IF i % 3 = 0 THEN
      DELETE FROM versioned WHERE id = i;
      DELETE FROM hashed WHERE id = i;
      DELETE FROM parent WHERE id = i;
      DELETE FROM versioned_parent WHERE id = i;
      INSERT INTO child VALUES (i, NULL);
    END IF;
    SET i = i + 1;
  END WHILE;
END //
DELIMITER ;
CALL grow(150);
