-- Who creates a role without saying whose it is has it, with the right to grant it: on the target, too.
CREATE USER dba@localhost;
GRANT ALL ON *.* TO dba@localhost WITH GRANT OPTION;
CREATE DATABASE d;
CREATE DEFINER=dba@localhost PROCEDURE d.make() SQL SECURITY DEFINER CREATE ROLE r1, r2;
CALL d.make();
CREATE OR REPLACE ROLE r3 WITH ADMIN dba@localhost;
DROP ROLE r2;
