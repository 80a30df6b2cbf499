-- A role is handed on by whoever owns it on the source.
CREATE DATABASE d;
CREATE USER u@'%' IDENTIFIED BY 'secret', v@'%' IDENTIFIED BY 'secret';
CREATE ROLE r;
GRANT r TO u@'%';
CREATE ROLE r2, r3;
GRANT SELECT ON d.* TO r2;
GRANT r2 TO r;
GRANT r3 TO u@'%', v@'%' WITH ADMIN OPTION;
REVOKE r3 FROM v@'%';
