USE d;
CREATE TABLE ai (k VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci PRIMARY KEY, n INT);
CREATE TABLE cs (k VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_as_cs PRIMARY KEY, n INT);
DELIMITER //
CREATE PROCEDURE turn2(rounds INT)
BEGIN
  WHILE rounds > 0 DO
    INSERT INTO ai VALUES ('résumé', rounds), ('Straße', rounds), ('a', rounds), ('a ', rounds);
    DELETE FROM ai WHERE k IN ('RESUME', 'STRASSE');
    INSERT INTO ai VALUES ('resume', rounds), ('strasse', rounds);
    UPDATE ai SET k = 'Résumé' WHERE k = 'resume';
    DELETE FROM ai;
    INSERT INTO cs VALUES ('résumé', rounds), ('resume', rounds), ('Resume', rounds);
    UPDATE cs SET k = 'RESUME' WHERE k = 'resume';
    DELETE FROM cs;
    SET rounds = rounds - 1;
  END WHILE;
END //
DELIMITER ;
CALL turn2(25);
INSERT INTO ai VALUES ('ÉTÉ', 1);
