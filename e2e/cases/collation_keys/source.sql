-- Keys that a collation calls equal: case, accents, trailing blanks.
CREATE DATABASE d CHARACTER SET utf8mb4;
USE d;
CREATE TABLE ci (k VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci PRIMARY KEY, n INT);
CREATE TABLE un (k VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci PRIMARY KEY, n INT);
CREATE TABLE l1 (k VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_swedish_ci PRIMARY KEY, n INT);
CREATE TABLE bi (k VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY, n INT);
CREATE TABLE vb (k VARBINARY(20) PRIMARY KEY, n INT);
CREATE TABLE ch (k CHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci PRIMARY KEY, n INT);
CREATE TABLE en (k ENUM('a', 'b', 'c') PRIMARY KEY, n INT);
DELIMITER //
CREATE PROCEDURE turn(rounds INT)
BEGIN
  WHILE rounds > 0 DO
    INSERT INTO ci VALUES ('Straße', rounds), ('äpfel', rounds);
    UPDATE ci SET k = 'STRAßE', n = n + 1 WHERE k = 'straße';
    DELETE FROM ci WHERE k = 'strasse' OR k = 'STRAßE';
    INSERT INTO ci VALUES ('straße', rounds);
    DELETE FROM ci WHERE k = 'ÄPFEL';
    INSERT INTO un VALUES ('Straße', rounds);
    DELETE FROM un WHERE k = 'strasse';
    INSERT INTO un VALUES ('strasse', rounds);
    UPDATE un SET k = 'STRASSE ' WHERE k = 'straße';
    DELETE FROM un;
    INSERT INTO l1 VALUES ('Ärger', rounds);
    UPDATE l1 SET k = 'ÄRGER' WHERE k = 'ärger';
    DELETE FROM l1 WHERE k = 'ärger  ';
    INSERT INTO l1 VALUES ('ärger', rounds);
    DELETE FROM l1;
    INSERT INTO bi VALUES ('a', rounds), ('A', rounds), ('á', rounds);
    DELETE FROM bi WHERE k = 'A';
    UPDATE bi SET k = 'A' WHERE k = 'a';
    DELETE FROM bi;
    INSERT INTO vb VALUES ('a', rounds), ('A', rounds), ('a ', rounds), ('a\0', rounds);
    DELETE FROM vb WHERE k <> 'a';
    DELETE FROM vb;
    INSERT INTO ch VALUES ('Key', rounds);
    DELETE FROM ch WHERE k = 'kEY';
    INSERT INTO ch VALUES ('KEY  ', rounds);
    DELETE FROM ch;
    INSERT INTO en VALUES ('a', rounds), ('b', rounds);
    UPDATE en SET k = 'c' WHERE k = 'a';
    DELETE FROM en;
    SET rounds = rounds - 1;
    IF rounds > 0 THEN DELETE FROM ci; END IF;
  END WHILE;
END //
DELIMITER ;
CALL turn(25);
INSERT INTO un VALUES ('last', 1);
INSERT INTO l1 VALUES ('LAST', 1);
