# What people and machines run here. `make` alone builds heddle; `make help` lists the rest.
.PHONY: build help demo test unit e2e lint structure bench nightly servers install deb static oci

build:
	@scripts/package build

help:
	@echo 'make          build heddle: target/release/heddle'
	@echo 'make demo     build heddle and show it on a generated workload: no server, no set-up'
	@echo 'make install  what was built: program, man pages, completions, systemd units, below PREFIX=/usr/local (and DESTDIR)'
	@echo 'make deb      a Debian package of the same, in target/package'
	@echo 'make static   one file that needs no libraries (musl), in target/package'
	@echo 'make oci      a container image of that file, in target/package'
	@echo 'make test     everything: unit tests, then real servers (fetched into ~/.cache/heddle)'
	@echo 'make unit     the unit tests alone'
	@echo 'make e2e      the tests against real servers alone'
	@echo 'make lint     formatting, clippy, shellcheck, and that the structure is not worse than scripts/structure.limits'
	@echo 'make bench    catching up: native replication and heddle, written to bench/results/benchmarks.md'
	@echo 'make nightly  hours: kills, random workloads, every pair of servers, the fuzzer'
	@echo 'make servers  fetch the servers that the tests use'

demo:
	cargo run --profile demo --no-default-features -p heddle -- demo

install:
	scripts/package install

deb:
	scripts/package deb

static:
	scripts/package static

oci:
	scripts/package oci

test:
	scripts/test

unit:
	scripts/test unit

e2e:
	scripts/test e2e

lint: structure
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo clippy -p heddle --no-default-features -- -D warnings
	shellcheck scripts/servers scripts/scratch scripts/target-dir scripts/test scripts/nightly scripts/suites/hook bench/catch-up bench/policies bench/rescue bench/simulation bench/inspect bench/dashboard bench/retag bench/semisync bench/serve .ci/run scripts/package packaging/try-in-bare-root packaging/deb/postinst packaging/deb/prerm packaging/deb/postrm

structure:
	scripts/structure --check
	scripts/names --check
	scripts/cited-paths ARCHITECTURE.md INVARIANTS.md CONTRIBUTING.md
	scripts/links

bench:
	bench/catch-up

nightly:
	scripts/nightly

servers:
	scripts/servers fetch
