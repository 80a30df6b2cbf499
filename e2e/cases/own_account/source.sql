-- Heddle's own account on the target is left as it is, whatever host the source names; other accounts of the same statement are not. What is left out
-- has no effect in the end.
CREATE DATABASE d;
CREATE TABLE d.t (id INT PRIMARY KEY);
CREATE USER 'heddle'@'10.9.8.7' IDENTIFIED BY 'secret', 'some'@'%' IDENTIFIED BY 'secret';
GRANT SELECT ON d.* TO 'heddle'@'10.9.8.7', 'some'@'%';
INSERT INTO d.t VALUES (1);
ALTER USER 'some'@'%' IDENTIFIED BY 'other', 'heddle'@'10.9.8.7' IDENTIFIED BY 'other';
INSERT INTO d.t VALUES (2);
RENAME USER 'heddle'@'10.9.8.7' TO 'heddle'@'10.9.8.6';
REVOKE SELECT ON d.* FROM 'heddle'@'10.9.8.6';
DROP USER 'heddle'@'10.9.8.6';
CREATE USER 'brief'@'%', 'heddle'@'10.9.8.7';
INSERT INTO d.t VALUES (3);
