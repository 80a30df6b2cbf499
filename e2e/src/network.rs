//! A network of its own for heddle, in which packets can be lost: network namespaces with a router between heddle and the servers.
//!
//! ```text
//! servers ── source, target ──┐ router ── heddle
//!   (this namespace)          └ drops what goes to the target and comes from it, while it is told to
//! ```
//!
//! Needs root rights. Nobody is told of a lost packet: it is as if a cable had been pulled somewhere in between.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::server::{Server, USER};

/// Options of a server that takes connections from there.
pub const SERVER_OPTIONS: [&str; 1] = ["--bind-address=0.0.0.0"];

/// Both namespaces and what connects them. Dropping it removes them.
#[derive(Debug)]
pub struct Network {
    number: u8,
}

impl Network {
    /// `number`: networks at the same time have different ones.
    pub fn create(number: u8) -> Result<Self> {
        // What an earlier run that was killed has left.
        let network = Self { number };
        network.remove();
        let (heddle, router) = (network.namespace(), network.router());
        let (link, servers, inner) = (network.link(), network.servers(), network.inner());
        for namespace in [&heddle, &router] {
            ip(&format!("netns add {namespace}"))?;
        }
        ip(&format!("link add {link} type veth peer name outer netns {router}"))?;
        ip(&format!("-n {router} link add inner type veth peer name outer netns {heddle}"))?;
        for (namespace, device, address) in [
            (None, link.as_str(), format!("{servers}.1/24")),
            (None, link.as_str(), format!("{servers}.3/24")),
            (Some(&router), "outer", format!("{servers}.2/24")),
            (Some(&router), "inner", format!("{inner}.1/24")),
            (Some(&heddle), "outer", format!("{inner}.2/24")),
        ] {
            let there = namespace.map(|name| format!("-n {name} ")).unwrap_or_default();
            ip(&format!("{there}addr add {address} dev {device}"))?;
            ip(&format!("{there}link set {device} up"))?;
        }
        ip(&format!("-n {heddle} route add default via {inner}.1"))?;
        ip(&format!("route add {inner}.0/24 via {servers}.2"))?;
        ip(&format!("netns exec {router} sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'"))?;
        Ok(network)
    }

    /// The one that heddle is to run in.
    pub fn namespace(&self) -> String {
        format!("heddle-loss-{}", self.number)
    }

    fn router(&self) -> String {
        format!("heddle-router-{}", self.number)
    }

    fn link(&self) -> String {
        format!("heddleloss{}", self.number)
    }

    fn servers(&self) -> String {
        format!("10.213.{}", 2 * self.number)
    }

    fn inner(&self) -> String {
        format!("10.213.{}", 2 * self.number + 1)
    }

    /// As heddle reaches it. No packet of it is lost.
    pub fn source(&self, server: &Server) -> String {
        format!("mysql://{USER}@{}.1:{}", self.servers(), server.port)
    }

    /// As heddle reaches it, until its packets are lost.
    pub fn target(&self, server: &Server) -> String {
        format!("mysql://{USER}@{}.3:{}", self.servers(), server.port)
    }

    /// Heddle's address, as the servers see it.
    pub fn heddle(&self) -> String {
        format!("{}.2", self.inner())
    }

    /// From here on no packet to or from the target arrives.
    pub fn lose(&self) -> Result<()> {
        self.rules("add")
    }

    /// From here on all arrive.
    pub fn mend(&self) -> Result<()> {
        self.rules("del")
    }

    fn rules(&self, what: &str) -> Result<()> {
        let (router, target) = (self.router(), format!("{}.3", self.servers()));
        ["to", "from"].iter().try_for_each(|way| ip(&format!("-n {router} rule {what} {way} {target} blackhole")))
    }

    /// Removing a namespace removes the links in it, and their other ends.
    fn remove(&self) {
        for namespace in [self.namespace(), self.router()] {
            let _ = Command::new("ip").args(["netns", "del", &namespace]).output();
        }
        let _ = Command::new("ip").args(["link", "del", &self.link()]).output();
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Words are separated by blanks; what is between two `'` is one word.
fn ip(arguments: &str) -> Result<()> {
    let quoted = arguments.split('\'').enumerate();
    let words =
        quoted.flat_map(|(index, part)| if index % 2 == 1 { vec![part] } else { part.split_whitespace().collect() });
    let output = Command::new("ip").args(words).output().context("ip (iproute2)")?;
    ensure!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}
