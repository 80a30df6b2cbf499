//! What `contrib/` has for containers, with the real program: the accounts, the load and the command of `compose.yaml`; the configuration and the probes of
//! `kubernetes/`.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use e2e::heddle::Heddle;
use e2e::pair::Pair;
use e2e::patience::until;
use e2e::server::{MYSQL_9_7, PASSWORD, free_port};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

const TOKEN: &str = "a token for a demonstration";

fn contrib(name: &str) -> Result<String> {
    let path = e2e::repository().join("contrib").join(name);
    fs::read_to_string(&path).with_context(|| path.display().to_string())
}

/// The content of a file that `compose.yaml` has in itself. The account of the tests is `heddle`: this one is `demo`, with the tests' password.
fn config(compose: &str, name: &str) -> Result<String> {
    let (_, rest) = compose.split_once(&format!("\n  {name}:\n    content: |\n")).context("no such file in it")?;
    let lines = rest.lines().map_while(|line| if line.is_empty() { Some("") } else { line.strip_prefix("      ") });
    let text = lines.collect::<Vec<_>>().join("\n");
    Ok(text
        .replace("USER heddle", "USER demo")
        .replace("TO heddle", "TO demo")
        .replace("'secret'", &format!("'{PASSWORD}'")))
}

/// The words of a service's `command: [a, 'b']`.
fn command(compose: &str, service: &str) -> Result<Vec<String>> {
    let (_, rest) = compose.split_once(&format!("\n  {service}:\n")).context("no such service")?;
    let (_, rest) = rest.split_once("command: [").context("no command")?;
    let (words, _) = rest.split_once("]\n").context("no end")?;
    Ok(words.split(", ").map(|word| word.trim_matches('\'').to_owned()).collect())
}

/// What heddle answers over TLS, to a client that trusts the certificate that it has made.
fn ask(port: u16, state: &Path, path: &str, head: &str) -> Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(state.join("heddle/heddle-http-cert.pem"))?)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let client = ClientConnection::new(Arc::new(config), ServerName::try_from("localhost")?)?;
    let mut stream = StreamOwned::new(client, TcpStream::connect(("127.0.0.1", port))?);
    write!(stream, "GET {path} HTTP/1.1\r\nHost: 10.0.0.7:{port}\r\n{head}Connection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    // The end of TLS is not always said.
    let _ = stream.read_to_end(&mut answer);
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn is_ready(port: u16, state: &Path) -> bool {
    ask(port, state, "/readyz", "").is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}

fn wait_until_ready(heddle: &mut Heddle, port: u16, state: &Path) -> Result<()> {
    let ready = until("ready", || {
        ensure!(!heddle.has_ended()?, "it has ended");
        Ok(is_ready(port, state))
    });
    ready.with_context(|| format!("{:?}\n{}", ask(port, state, "/readyz", ""), heddle.log()))
}

#[test]
fn the_demonstration_catches_up() -> Result<()> {
    let compose = contrib("compose.yaml")?;
    let pair = Pair::start(MYSQL_9_7)?;
    pair.source.execute(&config(&compose, "source.sql")?)?;
    pair.target.execute(&config(&compose, "target.sql")?)?;
    let load = command(&compose, "load")?;
    let mut client = pair.source.client(&["-uapplication", "shop", "-e", load.last().context("its statement")?]);
    let mut load = client.env("MYSQL_PWD", PASSWORD).stderr(Stdio::null()).spawn()?;
    let (state, port) = (tempfile::tempdir()?, free_port()?);
    let of_pair = |word: &String| {
        word.replace("heddle@source:3306", &format!("demo@127.0.0.1:{}", pair.source.port))
            .replace("heddle@target:3306", &format!("demo@127.0.0.1:{}", pair.target.port))
            .replace("0.0.0.0:9104", &format!("0.0.0.0:{port}"))
    };
    let words: Vec<String> = command(&compose, "heddle")?.iter().map(of_pair).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let environment = [("HEDDLE_HTTP_TOKEN", TOKEN), ("XDG_STATE_HOME", state.path().to_str().context("a path")?)];
    let mut heddle = Heddle::start_with(&words, &environment.map(|(name, value)| (name.to_owned(), value.to_owned())))?;
    heddle.wait_for_log("dashboard at https://")?;
    wait_until_ready(&mut heddle, port, state.path())?;
    ensure!(ask(port, state.path(), "/healthz", "")?.ends_with("ok\n"), "healthz");
    ensure!(ask(port, state.path(), "/metrics", "")?.starts_with("HTTP/1.1 401"), "without the token");
    let metrics = ask(port, state.path(), "/metrics", &format!("Authorization: Bearer {TOKEN}\r\n"))?;
    ensure!(metrics.contains("heddle_lag_seconds"), "{metrics}");
    load.kill()?;
    load.wait()?;
    // Its session may not notice: it waits for no answer. In the procedure it has the definer's name.
    let of_load = "FROM information_schema.PROCESSLIST WHERE DB='shop'";
    let session = pair.source.scalar(&format!("SELECT ID {of_load}"))?;
    if !session.is_empty() {
        let _ = pair.source.execute(&format!("KILL {session}"));
    }
    pair.source.wait_until(&format!("SELECT COUNT(*)=0 {of_load}"))?;
    let end = pair.source.rows("SELECT MAX(id), COUNT(*) FROM shop.orders")?;
    let orders = "SELECT MAX(id), COUNT(*) FROM shop.orders";
    until("caught up", || {
        ensure!(!heddle.has_ended()?, "it has ended");
        Ok(pair.target.rows(orders)? == end)
    })
    .with_context(|| format!("{end:?}, and {:?}\n{}", pair.target.rows(orders), heddle.log()))?;
    heddle.terminate()?;
    heddle.wait()?.successful()?;
    Ok(())
}

/// The files as a pod has them: of root, below a folder of links.
fn mounted(name: &str, source: u16, target: u16, port: u16) -> Result<(tempfile::TempDir, String)> {
    let dir = tempfile::tempdir()?;
    let text = contrib(&format!("kubernetes/{name}"))?
        .replace("source.example:3306", &format!("127.0.0.1:{source}"))
        .replace("target.example:3306", &format!("127.0.0.1:{target}"))
        .replace("repl@", "heddle@")
        .replace("0.0.0.0:3306", "127.0.0.1:0")
        .replace("/var/lib/heddle", &dir.path().display().to_string())
        .replace("0.0.0.0:9104", &format!("0.0.0.0:{port}"));
    fs::create_dir(dir.path().join("..data"))?;
    fs::write(dir.path().join("..data").join(name), text)?;
    std::os::unix::fs::symlink(format!("..data/{name}"), dir.path().join(name))?;
    let file = dir.path().join(name).display().to_string();
    Ok((dir, file))
}

fn secrets(state: &Path) -> Result<Vec<(String, String)>> {
    let text = contrib("kubernetes/secrets.env")?;
    let mut secrets: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        let (name, _) = line.split_once('=').context("NAME=VALUE")?;
        let value = if name == "HEDDLE_HTTP_TOKEN" { TOKEN } else { "heddle" };
        secrets.push((name.to_owned(), value.to_owned()));
    }
    secrets.push(("XDG_STATE_HOME".to_owned(), state.display().to_string()));
    Ok(secrets)
}

#[test]
fn a_pod_of_a_channel_is_ready() -> Result<()> {
    let (pair, port) = (Pair::start(MYSQL_9_7)?, free_port()?);
    let (dir, file) = mounted("channel.toml", pair.source.port, pair.target.port, port)?;
    let mut heddle = Heddle::start_with(&["replicate", "--config", &file], &secrets(dir.path())?)?;
    heddle.wait_for_log("dashboard at https://")?;
    wait_until_ready(&mut heddle, port, dir.path())?;
    pair.target.stop()?;
    pair.source.execute("CREATE DATABASE d")?;
    until("not ready without its target", || Ok(!is_ready(port, dir.path())))?;
    heddle.terminate()?;
    heddle.wait()?;
    Ok(())
}

#[test]
fn a_pod_of_a_mirror_is_ready() -> Result<()> {
    let (pair, port) = (Pair::start(MYSQL_9_7)?, free_port()?);
    let (dir, file) = mounted("serve.toml", pair.source.port, pair.target.port, port)?;
    let mut heddle = Heddle::start_with(&["serve", "--config", &file], &secrets(dir.path())?)?;
    heddle.wait_for_log("dashboard at https://")?;
    wait_until_ready(&mut heddle, port, dir.path())?;
    heddle.terminate()?;
    heddle.wait()?.successful()?;
    Ok(())
}

/// Objects that the API server would refuse, or read otherwise.
#[test]
#[ignore = "needs kubectl, and go for the server's types"]
fn kubernetes_objects_are_the_servers() -> Result<()> {
    let objects =
        Command::new("kubectl").arg("kustomize").arg(e2e::repository().join("contrib/kubernetes")).output()?;
    ensure!(objects.status.success(), "{objects:?}");
    let mut check = Command::new(e2e::repository().join("scripts/tools"))
        .args(["run", "kubernetes-types"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    check.stdin.take().context("its input")?.write_all(&objects.stdout)?;
    let output = check.wait_with_output()?;
    ensure!(output.status.success(), "{output:?}");
    let kinds = String::from_utf8_lossy(&output.stdout).into_owned();
    for kind in ["Deployment", "StatefulSet", "PodDisruptionBudget", "PodMonitor", "ConfigMap", "Secret", "Service"] {
        ensure!(kinds.lines().any(|line| line == kind), "no {kind}: {kinds}");
    }
    Ok(())
}
