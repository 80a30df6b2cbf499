//! An address that several servers share, as a virtual address or a load balancer has it: a connection goes to the first of them that accepts it.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

use anyhow::{Context, Result};

/// Listens until the test ends.
#[derive(Debug)]
pub struct VirtualAddress {
    pub port: u16,
}

impl VirtualAddress {
    /// In front of these ports of this machine, in this order.
    pub fn start(ports: Vec<u16>) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).context("a port for the virtual address")?;
        let port = listener.local_addr()?.port();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // Nobody there: the client is told so.
                let Some(server) = ports.iter().find_map(|port| TcpStream::connect(("127.0.0.1", *port)).ok()) else {
                    continue;
                };
                let _ = join(&client, &server);
            }
        });
        Ok(Self { port })
    }
}

fn join(client: &TcpStream, server: &TcpStream) -> io::Result<()> {
    for (from, to) in [(client, server), (server, client)] {
        let (mut from, mut to) = (from.try_clone()?, to.try_clone()?);
        thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = from.shutdown(Shutdown::Both);
            let _ = to.shutdown(Shutdown::Both);
        });
    }
    Ok(())
}
