//! What all cases share.

use wire::{ConnectOptions, Connection, Secret};

/// Why a case cannot run on this server.
pub struct Skip(pub String);

pub struct TestServer {
    /// How the administrator connects.
    pub admin: ConnectOptions,
}

impl TestServer {
    pub fn new(url: &str) -> Self {
        TestServer { admin: ConnectOptions::from_url(url).expect("the test server's URL").0 }
    }

    pub fn connect(&self) -> Connection {
        Connection::connect(&self.admin).expect("connecting as administrator")
    }

    /// A connection with an empty database of that name as its default.
    pub fn database(&self, name: &str) -> Connection {
        let mut connection = self.connect();
        connection
            .execute(format!(
                "DROP DATABASE IF EXISTS {name}; CREATE DATABASE {name} CHARACTER SET utf8mb4; USE {name}"
            ))
            .expect("creating a database");
        connection
    }

    /// True when the server has TLS of a kind that this client speaks.
    pub fn offers_tls(&self) -> bool {
        let options = ConnectOptions { socket: None, ..self.admin.clone() };
        Connection::connect(&options).expect("connecting as administrator").server().tls
    }

    pub fn is_mariadb(&self) -> bool {
        self.connect().server().is_mariadb()
    }

    /// Options for another account on the same server.
    pub fn account(&self, user: &str, password: &str) -> ConnectOptions {
        let password = Some(Secret::new(password));
        ConnectOptions { user: user.to_owned(), password, database: None, ..self.admin.clone() }
    }
}
