-- A statement that failed half-way is logged with its error: it must fail in the same way.
CREATE DATABASE d;
USE d;
CREATE TABLE existing (a INT);
DELIMITER //
CREATE PROCEDURE half()
BEGIN
  DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END;
  DROP TABLE existing, missing;
END //
DELIMITER ;
CALL half();
CREATE TABLE existing (b INT PRIMARY KEY) ENGINE=Aria;
INSERT INTO existing VALUES (1);
