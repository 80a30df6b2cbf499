-- MariaDB does not log who CURRENT_USER was when it grants a role: nobody can know, so the channel stops.
CREATE ROLE r1;
GRANT r1 TO CURRENT_USER;
