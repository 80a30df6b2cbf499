-- Keys WITHOUT OVERLAPS: rows with different values in every key must not be there at the same time.
CREATE DATABASE d;
USE d;
CREATE TABLE p (id INT, s DATE, e DATE, v INT, PERIOD FOR p (s, e), PRIMARY KEY (id, p WITHOUT OVERLAPS)) ENGINE=InnoDB;
CREATE TABLE u (id INT PRIMARY KEY AUTO_INCREMENT, room VARCHAR(9), since DATETIME(3), until DATETIME(3), PERIOD FOR booked (since, until),
  UNIQUE KEY k (room, booked WITHOUT OVERLAPS)) ENGINE=InnoDB;
-- a key that only looks like one
CREATE TABLE n (id INT PRIMARY KEY AUTO_INCREMENT, room VARCHAR(9), until DATE NOT NULL, since DATE NOT NULL, UNIQUE KEY k (room, until, since)) ENGINE=InnoDB;
INSERT INTO n (room, until, since) VALUES ('a', '2020-02-01', '2020-01-01'), ('a', '2020-03-01', '2020-01-01');
DELIMITER //
CREATE PROCEDURE rounds(n INT)
BEGIN
  WHILE n > 0 DO
    INSERT INTO p VALUES (1, '2000-01-01', '2000-03-01', n);
    DELETE FROM p WHERE id = 1;
    INSERT INTO p VALUES (1, '2000-02-01', '2000-04-01', n);
    UPDATE p SET s = '2000-03-01' WHERE id = 1;
    INSERT INTO p VALUES (1, '2000-01-15', '2000-03-01', n);
    DELETE FROM p WHERE id = 1 AND s = '2000-03-01';
    DELETE FROM p WHERE id = 1;
    INSERT INTO u (room, since, until) VALUES ('red', '2000-01-01', '2000-01-03');
    UPDATE u SET room = 'blue' WHERE room = 'red';
    INSERT INTO u (room, since, until) VALUES ('RED', '2000-01-02', '2000-01-04');
    DELETE FROM u WHERE room = 'red';
    UPDATE u SET room = NULL WHERE room = 'blue';
    SET n = n - 1;
  END WHILE;
END //
DELIMITER ;
CALL rounds(100);
INSERT INTO p VALUES (1, '2000-01-01', '2000-03-01', 0);
