-- An account statement that names CURRENT_USER does on the target what it did on the source.
CREATE DATABASE d;
CREATE USER u@'%' IDENTIFIED BY 'secret', v@'%' IDENTIFIED BY 'secret';
GRANT CREATE USER ON *.* TO u@'%', v@'%' WITH GRANT OPTION;
-- as u
ALTER USER CURRENT_USER IDENTIFIED BY 'other';
ALTER USER CURRENT_USER() IDENTIFIED BY 'another';
ALTER USER CURRENT_USER() WITH MAX_QUERIES_PER_HOUR 1000;
SET PASSWORD = 'secret';
