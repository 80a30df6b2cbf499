//! A few pairs of the matrix of servers (`torture matrix` has them all): from one flavour to the other.

use e2e::matrix::check;
use e2e::server::{MARIADB_10_11, MYSQL_9_7};

#[test]
fn mariadb_to_mysql() {
    check(MARIADB_10_11, MYSQL_9_7).unwrap_or_else(|error| panic!("{error:#}"));
}

#[test]
fn mysql_to_mariadb() {
    check(MYSQL_9_7, MARIADB_10_11).unwrap_or_else(|error| panic!("{error:#}"));
}
