-- Statement format: session context, user variables, RAND(), insert ids, LOAD DATA, temporary tables, MyISAM, triggers.
-- option: --loose-binlog-format=STATEMENT
CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a VARCHAR(50), b INT) ENGINE=InnoDB;
CREATE TABLE m (id INT PRIMARY KEY AUTO_INCREMENT, a VARCHAR(50)) ENGINE=MyISAM;
INSERT INTO t (a,b) VALUES ('one', 1);
SET @s='str', @i=-42, @u=18446744073709551615, @r=1.5e0, @d=123.456, @n=NULL, @b=X'00FF', @l=_latin1'abc' COLLATE latin1_bin;
INSERT INTO t (a,b) VALUES (@s, @i);
INSERT INTO t (a,b) VALUES (CONCAT(@u,@r,@d,IFNULL(@n,'null'),HEX(@b),@l), 0);
INSERT INTO t (a,b) VALUES (RAND(), LAST_INSERT_ID());
SET time_zone='+03:00', sql_mode='ANSI_QUOTES', lc_time_names='de_DE', auto_increment_increment=5, auto_increment_offset=2;
INSERT INTO t (a,b) VALUES (NOW(6), 3);
INSERT INTO t (a,b) VALUES (DATE_FORMAT('2024-03-01','%M'), 3);
SET NAMES latin1;
INSERT INTO t (a,b) VALUES ('x', 4);
SET NAMES utf8mb4;
INSERT INTO m (a) VALUES ('myisam');
BEGIN; INSERT INTO t (a) VALUES ('trx'); INSERT INTO t (a) VALUES ('trx2'); COMMIT;
CREATE TEMPORARY TABLE tmp (a INT); INSERT INTO tmp VALUES (1),(2); INSERT INTO t (b) SELECT a FROM tmp; DROP TEMPORARY TABLE tmp;
LOAD DATA LOCAL INFILE '@LOAD@' INTO TABLE t (a,b);
LOAD DATA LOCAL INFILE '@LOAD@' IGNORE INTO TABLE t (a,b);
CREATE USER u1; GRANT SELECT ON golden.* TO u1;
CREATE DEFINER=CURRENT_USER PROCEDURE p() INSERT INTO t (a) VALUES ('p');
CALL p();
CREATE DATABASE other; CREATE TABLE other.o (a INT);
UPDATE t, other.o SET t.b=1 WHERE t.id=other.o.a;
DROP DATABASE other; DROP USER u1; DROP PROCEDURE p;
