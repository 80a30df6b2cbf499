//! A Galera cluster of three nodes on this machine: MariaDB 10.11 with Debian's `galera-4`. Nodes are killed, frozen and started again; what they miss
//! they take from another one.

use crate::patience::until;
use crate::server::{MARIADB_10_11, Server, free_port, servers_script, url_of};
use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::process::Command;

const NODES: usize = 3;

#[derive(Debug)]
pub struct Cluster {
    pub nodes: Vec<Server>,
}

impl Cluster {
    /// Starts the nodes. `more`: options of each.
    pub fn start(more: &[&str]) -> Result<Cluster> {
        let provider = provider()?;
        let ports = (0..NODES).map(|_| Ok((free_port()?, free_port()?))).collect::<Result<Vec<_>>>()?;
        let addresses: Vec<String> = ports.iter().map(|(group, _)| format!("127.0.0.1:{group}")).collect();
        let options = |node: usize| -> Vec<String> {
            let (group, transfer) = ports.get(node).copied().unwrap_or_default();
            let mut options = vec![
                "--wsrep-on=ON".to_owned(),
                format!("--wsrep-provider={}", provider.display()),
                format!("--wsrep-cluster-address=gcomm://{}", addresses.join(",")),
                format!("--wsrep-node-name=n{}", node + 1),
                "--wsrep-node-address=127.0.0.1".to_owned(),
                "--wsrep-sst-method=heddle".to_owned(),
                format!(
                    "--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:{group};ist.recv_addr=127.0.0.1:{transfer};gcache.size=128M"
                ),
                "--innodb-autoinc-lock-mode=2".to_owned(),
            ];
            options.extend(more.iter().map(|&one| one.to_owned()));
            options
        };
        let begin = |node: usize, data: Option<&Path>, new: bool| {
            let mut options = options(node);
            options.extend(new.then(|| NEW_CLUSTER.to_owned()));
            let words: Vec<&str> = options.iter().map(String::as_str).collect();
            Server::start_from(MARIADB_10_11, &words, data)
        };
        let first = begin(0, None, true)?;
        // The others begin where it is.
        first.stop()?;
        let seed = first.dir().join("seed").join("data");
        std::fs::create_dir_all(first.dir().join("seed"))?;
        let copied = Command::new("cp").arg("-a").arg(first.data()).arg(&seed).status()?;
        ensure!(copied.success(), "copying the data of the first node");
        for name in ["galera.cache", "gvwstate.dat", "binlog.000001", "binlog.index"] {
            let _ = std::fs::remove_file(seed.join(name));
        }
        first.restart(&[])?;
        // From now on it joins the others, as they do.
        let options_file = first.dir().join("options");
        let kept: String = std::fs::read_to_string(&options_file)?
            .lines()
            .filter(|line| *line != NEW_CLUSTER)
            .map(|line| format!("{line}\n"))
            .collect();
        std::fs::write(&options_file, kept)?;
        let mut cluster = Cluster { nodes: vec![first] };
        for node in 1..NODES {
            cluster.nodes.push(begin(node, Some(&seed), false)?);
        }
        cluster.wait_for_all()?;
        Ok(cluster)
    }

    /// The node, from 0.
    pub fn node(&self, at: usize) -> Result<&Server> {
        self.nodes.get(at).context("there is no such node")
    }

    /// All nodes as one TARGET.
    pub fn url(&self) -> String {
        url_of(&self.nodes)
    }

    /// Until each node has all the others, and is in step with them.
    pub fn wait_for_all(&self) -> Result<()> {
        for node in &self.nodes {
            until(format!("port {} is in step", node.port), || {
                Ok(status(node, "wsrep_local_state_comment")? == "Synced"
                    && status(node, "wsrep_cluster_size")? == NODES.to_string())
            })?;
        }
        Ok(())
    }

    /// Freezes the nodes, or lets them go on.
    pub fn signal(&self, nodes: &[usize], signal: Signal) -> Result<()> {
        for &at in nodes {
            let pid = self.node(at)?.pid().and_then(Pid::from_raw).context("a node does not run")?;
            kill_process(pid, signal)?;
        }
        Ok(())
    }

    /// Starts a node that was killed.
    pub fn revive(&self, at: usize) -> Result<()> {
        let node = self.node(at)?;
        node.restart(&[&format!("--wsrep-start-position={}", recovered(node)?)])
    }
}

const NEW_CLUSTER: &str = "--wsrep-new-cluster";

/// One status variable of a node. It answers to this without a quorum, too.
pub fn status(node: &Server, name: &str) -> Result<String> {
    let rows = node.rows(&format!("SHOW STATUS LIKE '{name}'"))?;
    Ok(rows.into_iter().next().and_then(|row| row.into_iter().nth(1)).unwrap_or_default())
}

/// Where a node that was killed is in the cluster's log: InnoDB knows.
fn recovered(node: &Server) -> Result<String> {
    let words = servers_script(&["daemon", &node.kind.to_string()]).output()?;
    let words = String::from_utf8(words.stdout)?;
    let mut words = words.lines();
    let options = std::fs::read_to_string(node.dir().join("options"))?;
    let output = Command::new(words.next().context("scripts/servers daemon said nothing")?)
        .args(words)
        .args(options.lines())
        .arg("--wsrep-recover")
        .output()?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let place =
        text.lines().find_map(|line| line.split_once("Recovered position: ")).map(|(_, place)| place.to_owned());
    // MariaDB adds a domain and a server where GTIDs are the cluster's.
    place.map(|place| place.split(',').next().unwrap_or_default().trim().to_owned()).with_context(|| text.into_owned())
}

fn provider() -> Result<PathBuf> {
    let fetched = servers_script(&["fetch", "galera-4"]).output()?;
    ensure!(fetched.status.success(), "servers fetch: {}", String::from_utf8_lossy(&fetched.stderr));
    let tree = servers_script(&["tree", "galera-4"]).output()?;
    let tree = String::from_utf8(tree.stdout)?;
    let library = Path::new(tree.trim()).join("usr/lib/libgalera_smm.so");
    ensure!(library.exists(), "{} is not there", library.display());
    Ok(library)
}
