SET PASSWORD FOR 'heddle'@'10.9.8.7' = 'third';
SET DEFAULT ROLE NONE TO 'heddle'@'10.9.8.7', 'brief'@'%';
DROP USER 'brief'@'%', 'heddle'@'10.9.8.7';
INSERT INTO d.t VALUES (4);
