SET GLOBAL log_bin_trust_function_creators = ON;
CREATE DEFINER = third@'%' PROCEDURE d.of_third() SELECT 1;
GRANT SUPER ON *.* TO maker@'%';
-- as maker
CREATE DEFINER = third@'%' PROCEDURE d.of_third_too() SELECT 1;
USE d;
CREATE FUNCTION f(a INT) RETURNS INT DETERMINISTIC RETURN a;
CREATE PROCEDURE IF NOT EXISTS p() SELECT 1;
