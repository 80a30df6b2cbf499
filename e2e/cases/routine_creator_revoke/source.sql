-- What the creator of a routine was given can be taken away.
CREATE DATABASE d;
CREATE USER maker@'%' IDENTIFIED BY 'secret';
GRANT CREATE ROUTINE ON d.* TO maker@'%';
GRANT CREATE USER, RELOAD ON *.* TO maker@'%';
-- as maker
USE d;
CREATE PROCEDURE p() SELECT 1;
CREATE PROCEDURE q() SELECT 1;
CREATE PROCEDURE r() SELECT 1;
