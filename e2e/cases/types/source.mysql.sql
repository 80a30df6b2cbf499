USE d;
CREATE TABLE own (id INT PRIMARY KEY, j JSON);
INSERT INTO own VALUES (1, '{"a": [1, 2.5, null, true, "ü", {"deep": {"deeper": [[]]}}], "big": 18446744073709551615, "neg": -9223372036854775808}'),
  (2, NULL), (3, 'null'), (4, '[]'), (5, JSON_OBJECT('d', CAST('2024-01-01 10:00:00.123456' AS DATETIME(6)), 't', CAST('-10:00:00' AS TIME), 'n', 1.10, 'b', X'00FF'));
UPDATE own SET j = JSON_SET(j, '$.a', 7) WHERE id = 1;
UPDATE own SET j = CAST(REPEAT('1', 30) AS JSON) WHERE id = 4;
DELETE FROM own WHERE id = 3;
