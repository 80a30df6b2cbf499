-- Updates of a part of a document are logged as differences.
CREATE DATABASE d;
USE d;
CREATE TABLE t (id INT PRIMARY KEY, j JSON, k JSON, n INT);
INSERT INTO t VALUES (1, CONCAT('{"a": 1, "b": [1, 2, 3], "c": {"d": "', REPEAT('x', 500), '"}}'), '[]', 1),
  (2, CONCAT('{"pad": "', REPEAT('p', 300), '", "n": 1}'), CONCAT('[1, "', REPEAT('y', 200), '"]'), 2), (3, NULL, NULL, 3);
UPDATE t SET j = JSON_SET(j, '$.a', 2) WHERE id = 1;
UPDATE t SET j = JSON_REPLACE(j, '$.b[1]', 'two', '$.c.d', 'short') WHERE id = 1;
UPDATE t SET j = JSON_REMOVE(j, '$.b[0]') WHERE id = 1;
UPDATE t SET j = JSON_SET(j, '$."new key"', JSON_ARRAY(1, 2)), n = 5 WHERE id = 1;
UPDATE t SET j = JSON_SET(j, '$.n', 5), k = JSON_SET(k, '$[0]', 9) WHERE id = 2;
UPDATE t SET j = JSON_SET(j, '$.n', 6), n = n + 1 WHERE id = 2;
BEGIN;
UPDATE t SET j = JSON_SET(j, '$.n', 7) WHERE id = 2;
UPDATE t SET j = JSON_SET(j, '$.n', 8), k = JSON_REMOVE(k, '$[0]') WHERE id = 2;
UPDATE t SET n = 50 WHERE id = 2;
UPDATE t SET id = 20 WHERE id = 2;
UPDATE t SET j = JSON_SET(j, '$.n', 9) WHERE id = 20;
COMMIT;
UPDATE t SET j = '{"whole": true}' WHERE id = 3;
UPDATE t SET j = NULL WHERE id = 1;
DELIMITER //
CREATE PROCEDURE work(rounds INT)
BEGIN
  WHILE rounds > 0 DO
    UPDATE t SET j = JSON_SET(j, '$.n', rounds) WHERE id = 20;
    UPDATE t SET j = JSON_SET(j, '$.pad', CONCAT('p', rounds)) WHERE id = 20;
    SET rounds = rounds - 1;
  END WHILE;
END //
DELIMITER ;
CALL work(30);
