SET PASSWORD FOR 'heddle'@'10.9.8.7' = PASSWORD('third');
SET DEFAULT ROLE NONE FOR 'heddle'@'10.9.8.7';
CREATE OR REPLACE USER 'heddle'@'10.9.8.7', 'brief'@'%' IDENTIFIED BY 'fourth';
DROP USER 'brief'@'%', 'heddle'@'10.9.8.7';
INSERT INTO d.t VALUES (4);
