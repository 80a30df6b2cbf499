-- Who makes a routine may execute and alter it (automatic_sp_privileges): on a replica likewise, not the account that applies.
CREATE DATABASE d;
CREATE USER maker@'%' IDENTIFIED BY 'secret', other@'%' IDENTIFIED BY 'secret', third@'%' IDENTIFIED BY 'secret';
GRANT CREATE ROUTINE, SELECT ON d.* TO maker@'%';
GRANT CREATE ROUTINE, EXECUTE, ALTER ROUTINE ON d.* TO other@'%';
-- as maker
USE d;
CREATE PROCEDURE p() SELECT 1;
CREATE PROCEDURE p2() SQL SECURITY INVOKER SELECT 2;
CREATE PROCEDURE p3() SELECT 3;
CREATE DEFINER = CURRENT_USER PROCEDURE `p 4`() SELECT 4;
ALTER PROCEDURE p COMMENT 'altered';
DROP PROCEDURE p3;
-- as other
USE d;
CREATE PROCEDURE has_both() SELECT 1;
