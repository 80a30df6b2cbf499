//! A headless Chromium, driven over its debugging pipe: opens a page, asks it questions, takes pictures. Debian: `chromium`.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(60);

/// One browser with one page.
#[derive(Debug)]
pub struct Chromium {
    child: Child,
    to: File,
    from: Receiver<Value>,
    session: String,
    next: u64,
    /// What the page has complained of: errors, refused resources.
    pub complaints: Vec<String>,
    _dir: tempfile::TempDir,
}

impl Chromium {
    pub fn start() -> Result<Chromium> {
        let dir = tempfile::tempdir()?;
        let (to, from) = (dir.path().join("to"), dir.path().join("from"));
        ensure!(Command::new("mkfifo").arg(&to).arg(&from).status()?.success(), "mkfifo");
        let shell = "exec chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars --no-first-run \
                     --user-data-dir=\"$1\" --remote-debugging-pipe about:blank 3<\"$2\" 4>\"$3\"";
        let child = Command::new("sh")
            .args(["-c", shell, "sh"])
            .args([dir.path().join("profile"), to.clone(), from.clone()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("starting chromium")?;
        let to = OpenOptions::new().write(true).open(to)?;
        let mut answers = BufReader::new(File::open(from)?);
        let (send, from) = channel();
        std::thread::spawn(move || {
            loop {
                let mut message = Vec::new();
                match answers.read_until(0, &mut message) {
                    Ok(length) if length > 0 => message.pop(),
                    _ => break,
                };
                let Ok(message) = serde_json::from_slice(&message) else { break };
                if send.send(message).is_err() {
                    break;
                }
            }
        });
        let mut browser =
            Chromium { child, to, from, session: String::new(), next: 0, complaints: Vec::new(), _dir: dir };
        let page = browser.call("Target.createTarget", json!({"url": "about:blank"}))?;
        let attach = json!({"targetId": at(&page, "/targetId"), "flatten": true});
        let attached = browser.call("Target.attachToTarget", attach)?;
        at(&attached, "/sessionId").as_str().context("a session")?.clone_into(&mut browser.session);
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            browser.call(domain, json!({}))?;
        }
        Ok(browser)
    }

    pub fn call(&mut self, method: &str, parameters: Value) -> Result<Value> {
        self.next += 1;
        let message = match self.session.as_str() {
            "" => json!({"id": self.next, "method": method, "params": parameters}),
            session => json!({"id": self.next, "method": method, "params": parameters, "sessionId": session}),
        };
        self.to.write_all(format!("{message}\0").as_bytes())?;
        let until = Instant::now() + PATIENCE;
        while let Ok(answer) = self.from.recv_timeout(until.saturating_duration_since(Instant::now())) {
            if *at(&answer, "/id") == self.next {
                let error = at(&answer, "/error");
                ensure!(error.is_null(), "{method}: {error}");
                return Ok(at(&answer, "/result").clone());
            }
            self.event(&answer);
        }
        bail!("chromium does not answer {method}")
    }

    fn event(&mut self, event: &Value) {
        let text = match at(event, "/method").as_str() {
            Some("Runtime.exceptionThrown") => at(event, "/params/exceptionDetails").to_string(),
            Some("Log.entryAdded") => at(event, "/params/entry").to_string(),
            _ => return,
        };
        // While heddle is started again, the page asks in vain.
        if !text.contains("ERR_CONNECTION_REFUSED")
            && !text.contains("ERR_INCOMPLETE_CHUNKED")
            && !text.contains("ERR_CONNECTION_RESET")
        {
            self.complaints.push(text);
        }
    }

    pub fn open(&mut self, url: &str) -> Result<()> {
        self.call("Page.navigate", json!({"url": url})).map(|_| ())
    }

    /// The value of an expression.
    pub fn ask(&mut self, expression: &str) -> Result<Value> {
        let asked = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", asked)?;
        let thrown = at(&answer, "/exceptionDetails");
        ensure!(thrown.is_null(), "{expression}: {thrown}");
        Ok(at(&answer, "/result/value").clone())
    }

    pub fn until(&mut self, expression: &str) -> Result<()> {
        let since = Instant::now();
        // Before the page's script has run, its names are not known.
        let tried = format!("(() => {{ try {{ return {expression} }} catch {{ return false }} }})()");
        while self.ask(&tried)? != true {
            ensure!(
                since.elapsed() < PATIENCE,
                "the page never says so: {expression}: {}",
                self.ask("document.body.innerText")?
            );
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// As on a screen of so many pixels. `scheme`: `light` or `dark`.
    pub fn look(&mut self, width: u32, height: u32, scheme: &str) -> Result<()> {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500});
        self.call("Emulation.setDeviceMetricsOverride", size)?;
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", media).map(|_| ())
    }

    /// All of the page, into a PNG file.
    pub fn picture(&mut self, path: &Path) -> Result<()> {
        let taken = self.call("Page.captureScreenshot", json!({"format": "png", "captureBeyondViewport": true}))?;
        let text = at(&taken, "/data").as_str().context("a picture")?;
        let decoder = Command::new("base64").arg("-d").stdin(Stdio::piped()).stdout(File::create(path)?).spawn();
        let mut decoder = decoder.context("base64")?;
        decoder.stdin.take().context("a pipe")?.write_all(text.as_bytes())?;
        ensure!(decoder.wait()?.success(), "base64");
        Ok(())
    }
}

/// Null where there is nothing.
fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    value.pointer(path).unwrap_or(&Value::Null)
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.call("Browser.close", json!({}));
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
