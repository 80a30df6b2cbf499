-- A log that starts with tagged previous GTIDs.
-- only: mysql-9.7 mysql-8.4
-- setup: SET gtid_next='aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee:tag_a:5'; CREATE DATABASE a1; SET gtid_next='aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee:tag_a:6'; CREATE DATABASE a2; SET gtid_next='AUTOMATIC'
-- setup: SET gtid_next='aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee:tag_a:9'; CREATE DATABASE a3; SET gtid_next='bbbbbbbb-bbbb-cccc-dddd-eeeeeeeeeeee:t:1'; CREATE DATABASE a4; SET gtid_next='AUTOMATIC'
-- setup: SET gtid_next='aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee:3'; CREATE DATABASE a5; SET gtid_next='AUTOMATIC'
CREATE TABLE t (id INT PRIMARY KEY);
