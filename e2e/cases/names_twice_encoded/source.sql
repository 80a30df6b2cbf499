-- A client that says latin1 and sends UTF-8: the table has another name than the statement's bytes say, and its key moves.
CREATE DATABASE d;
USE d;
SET NAMES latin1;
CREATE TABLE `täb` (id INT PRIMARY KEY, v INT, w INT);
INSERT INTO `täb` VALUES (1, 7, 7), (2, 7, 7), (3, 7, 7);
UPDATE `täb` SET v = 8 WHERE id = 2;
ALTER TABLE `täb` MODIFY id INT AFTER w;
UPDATE `täb` SET v = v + 1 WHERE id = 1;
UPDATE `täb` SET v = v + 1 WHERE id = 3;
UPDATE `täb` SET v = v + 1;
ALTER TABLE `täb` ADD UNIQUE (w, id);
DELETE FROM `täb` WHERE id = 2;
INSERT INTO `täb` (id, v, w) VALUES (4, 1, 7), (2, 1, 8);
