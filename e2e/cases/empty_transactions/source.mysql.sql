USE d;
SET gtid_next = 'aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:1';
BEGIN; COMMIT;
SET gtid_next = 'aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:5';
BEGIN; COMMIT;
SET gtid_next = 'aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:3';
INSERT INTO t VALUES (3, 3);
SET gtid_next = AUTOMATIC;
INSERT INTO t VALUES (4, 4);
