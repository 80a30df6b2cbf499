//! What `make install` and `make deb` lay out, and a package that is installed, used and purged in a bare Debian root without a toolchain.
//!
//! The bare root needs root's rights; without them the package is looked at and not installed, which the test says.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

const FILES: [&str; 11] = [
    "bin/heddle",
    "share/man/man1/heddle.1",
    "share/man/man1/heddle-replicate.1",
    "share/bash-completion/completions/heddle",
    "share/fish/vendor_completions.d/heddle.fish",
    "lib/systemd/system/heddle.service",
    "lib/systemd/system/heddle@.service",
    "lib/systemd/system/heddle-serve@.service",
    "lib/sysusers.d/heddle.conf",
    "share/doc/heddle/examples/channel.toml.example",
    "share/doc/heddle/examples/serve.toml.example",
];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The last line that a script prints.
fn run(command: &mut Command) -> Result<String> {
    let binary = std::env::var("HEDDLE_BIN").context("HEDDLE_BIN: a heddle that is built")?;
    let output = command.current_dir(repository()).env("HEDDLE_BIN", binary).output()?;
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{command:?}: {}\n{text}\n{errors}", output.status);
    Ok(text.trim().lines().next_back().unwrap_or_default().to_owned())
}

#[test]
fn make_install() -> Result<()> {
    let dir = tempfile::tempdir()?;
    // As root's sudo has it: cargo is not there.
    let path = "/usr/sbin:/usr/bin:/sbin:/bin";
    run(Command::new("make")
        .args(["-s", "install", "PREFIX=/opt/heddle"])
        .env("DESTDIR", dir.path())
        .env("PATH", path))?;
    let root = dir.path().join("opt/heddle");
    for file in FILES.into_iter().chain(["share/zsh/site-functions/_heddle"]) {
        ensure!(root.join(file).is_file(), "{file} is missing");
    }
    let unit = std::fs::read_to_string(root.join("lib/systemd/system/heddle@.service"))?;
    for says in ["ExecStart=/opt/heddle/bin/heddle replicate --config", "User=heddle", "WantedBy=multi-user.target"] {
        ensure!(unit.contains(says), "{says}: {unit}");
    }
    ensure!(!unit.contains('@') || !unit.contains("BINDIR"), "{unit}");
    let unit = std::fs::read_to_string(root.join("lib/systemd/system/heddle-serve@.service"))?;
    let says = "ExecStart=/opt/heddle/bin/heddle serve --config /etc/heddle/serve/%i.toml";
    ensure!(unit.contains(says) && unit.contains("StateDirectory=heddle"), "{unit}");
    let version = Command::new(root.join("bin/heddle")).arg("--version").output()?;
    ensure!(version.status.success(), "{version:?}");
    Ok(())
}

/// Nothing was built: it says so, and builds nothing as root.
#[test]
fn make_install_before_make() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let output = Command::new("make")
        .args(["-s", "install"])
        .current_dir(repository())
        .env("DESTDIR", dir.path())
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("CARGO_TARGET_DIR", dir.path().join("target"))
        .env_remove("HEDDLE_BIN")
        .output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(!output.status.success() && errors.contains("run `make` first"), "{errors}");
    ensure!(!dir.path().join("usr").exists(), "something was installed");
    Ok(())
}

#[test]
fn a_package_in_a_bare_root() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let package = run(Command::new("make").args(["-s", "deb"]).env("OUT", dir.path()))?;
    let listed = Command::new("dpkg-deb").args(["--contents", &package]).output()?;
    let listed = String::from_utf8_lossy(&listed.stdout);
    for file in FILES.into_iter().chain(["share/zsh/vendor-completions/_heddle"]) {
        ensure!(listed.contains(&format!("./usr/{file}")), "{file} is missing: {listed}");
    }
    if !rustix::process::geteuid().is_root() {
        eprintln!("not installed: a bare root needs root's rights");
        return Ok(());
    }
    let log = repository().join("crates/binlog/tests/golden/mysql-9.7/rows.binlog").display().to_string();
    let said = run(Command::new("packaging/try-in-bare-root").args([&package, &log]))?;
    ensure!(said.contains("installed, used and purged"), "{said}");
    Ok(())
}
