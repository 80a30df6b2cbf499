-- The session's default schema is dropped by somebody else, here by an event; what it runs then names its schemas.
CREATE DATABASE gone;
CREATE DATABASE d;
SET GLOBAL event_scheduler = ON;
USE gone;
CREATE EVENT d.drops ON SCHEDULE AT NOW() DO DROP DATABASE gone;
DELIMITER //
CREATE PROCEDURE d.until_gone()
BEGIN
  DECLARE tries INT DEFAULT 0;
  WHILE tries < 200 AND EXISTS (SELECT * FROM information_schema.schemata WHERE schema_name = 'gone') DO
    DO SLEEP(0.1);
    SET tries = tries + 1;
  END WHILE;
END //
DELIMITER ;
CALL d.until_gone();
CREATE TABLE d.t (id INT PRIMARY KEY, a INT) ENGINE=InnoDB;
CREATE USER u1 IDENTIFIED BY 'x';
GRANT SELECT ON d.* TO u1;
SET SESSION binlog_format = STATEMENT;
INSERT INTO d.t VALUES (1, 1);
UPDATE d.t SET a = 2;
CREATE TABLE d.s (id INT PRIMARY KEY, s VARCHAR(64)) ENGINE=InnoDB;
INSERT INTO d.s VALUES (1, DATABASE()), (2, CONCAT(SCHEMA(), '!'));
DROP USER u1;
