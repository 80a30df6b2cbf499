-- A change that depends on who made it, logged as a statement: the channel stops in front of it.
CREATE DATABASE d;
CREATE TABLE d.t (id INT PRIMARY KEY, who VARCHAR(100));
USE d;
INSERT INTO d.t VALUES (1, 'CURRENT_USER()');
INSERT INTO d.t VALUES (2, CURRENT_USER());
