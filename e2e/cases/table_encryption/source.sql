-- What a session's default_table_encryption makes of schemas and tables.
CREATE DATABASE clear;
CREATE TABLE clear.t (id INT PRIMARY KEY);
SET SESSION default_table_encryption = ON;
CREATE DATABASE d;
CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(10));
INSERT INTO d.t VALUES (1, 'a');
SET SESSION default_table_encryption = OFF;
CREATE DATABASE clear_too;
CREATE TABLE clear_too.t (id INT PRIMARY KEY);
CREATE TABLE d.later (id INT PRIMARY KEY);
INSERT INTO d.later VALUES (1);
ALTER TABLE clear.t ENCRYPTION = 'Y';
