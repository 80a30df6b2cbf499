-- Accounts and grants travel as statements.
CREATE DATABASE d;
CREATE TABLE d.t (id INT PRIMARY KEY);
CREATE USER 'reader'@'%' IDENTIFIED BY 'secret';
GRANT SELECT ON d.* TO 'reader'@'%';
INSERT INTO d.t VALUES (1);
CREATE USER IF NOT EXISTS 'writer'@'10.0.0.%' IDENTIFIED BY 'it''s';
GRANT SELECT, INSERT (id), UPDATE ON d.t TO 'writer'@'10.0.0.%';
REVOKE UPDATE ON d.t FROM 'writer'@'10.0.0.%';
CREATE USER 'brief'@'localhost';
DROP USER 'brief'@'localhost';
RENAME USER 'reader'@'%' TO 'lector'@'%';
ALTER USER 'lector'@'%' IDENTIFIED BY 'other';
CREATE ROLE 'role1';
GRANT INSERT ON d.* TO 'role1';
GRANT 'role1' TO 'lector'@'%';
ALTER USER 'writer'@'10.0.0.%' IDENTIFIED BY 'next';
FLUSH PRIVILEGES;
INSERT INTO d.t VALUES (2);
