//! A client of Chromium's DevTools protocol over pipes: one page, its scripts' values and the problems that it reports.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::Missing;

/// The options of a browser that draws nothing on a screen and loads nothing on its own.
pub const QUIET: [&str; 8] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
];

/// An open page.
pub struct Page {
    browser: Child,
    to: ChildStdin,
    from: ChildStdout,
    read: Vec<u8>,
    session: Option<String>,
    number: u64,
    /// Violations of the security policy, errors of scripts and requests of other files, as reported so far.
    pub problems: Vec<String>,
}

impl Page {
    /// Opens a file in a window of this width; without `scripts`, the page's scripts do not run. Skips the test if there is no browser.
    pub fn open(file: &Path, profile: &Path, width: u32, scripts: bool) -> Result<Page, Missing> {
        if Command::new("chromium").arg("--version").output().is_err() {
            return Err(Missing("no chromium".to_owned()));
        }
        // The protocol uses the file descriptors 3 and 4.
        let script = "exec chromium \"$@\" about:blank 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null";
        let mut command = Command::new("sh");
        command.args(["-c", script, "chromium"]).args(QUIET).arg("--remote-debugging-pipe");
        command.arg(format!("--user-data-dir={}", profile.display()));
        let mut browser = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a shell");
        let (to, from) = (browser.stdin.take().expect("piped"), browser.stdout.take().expect("piped"));
        let mut page = Page { browser, to, from, read: Vec::new(), session: None, number: 0, problems: Vec::new() };
        let target = page.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attached = page.call("Target.attachToTarget", json!({ "targetId": target["targetId"], "flatten": true }));
        page.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            page.call(&format!("{domain}.enable"), json!({}));
        }
        let size = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        page.call("Emulation.setDeviceMetricsOverride", size);
        page.call("Emulation.setScriptExecutionDisabled", json!({ "value": !scripts }));
        page.call("Page.navigate", json!({ "url": format!("file://{}", file.display()) }));
        while page.message()["method"] != "Page.loadEventFired" {}
        Ok(page)
    }

    /// Calls a method and returns its result. Panics if the browser reports an error.
    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.number += 1;
        let mut message = json!({ "id": self.number, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).expect("an open browser");
        loop {
            let mut answer = self.message();
            if answer["id"] == self.number {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].take();
            }
        }
    }

    /// Reads the next message, and notes it if it is a problem.
    fn message(&mut self) -> Value {
        let end = loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == 0) {
                break end;
            }
            let mut chunk = [0; 1 << 16];
            let count = self.from.read(&mut chunk).expect("an open browser");
            assert!(count > 0, "the browser has ended");
            self.read.extend(&chunk[..count]);
        };
        let message: Value = serde_json::from_slice(&self.read[..end]).expect("JSON");
        self.read.drain(..=end);
        let facts = &message["params"];
        match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => self.problems.push(facts["exceptionDetails"].to_string()),
            Some("Log.entryAdded") => self.problems.push(facts["entry"].to_string()),
            Some("Network.requestWillBeSent") => {
                let url = facts["request"]["url"].as_str().unwrap_or_default();
                // A worker of the page itself loads nothing from outside.
                if !url.starts_with("blob:") && (!url.starts_with("file:") || facts["type"] != "Document") {
                    self.problems.push(format!("request of {url}"));
                }
            }
            _ => {}
        }
        message
    }

    /// Evaluates an expression, waits for a promise, and returns the value. Panics if it throws.
    pub fn value(&mut self, expression: &str) -> Value {
        let what = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut result = self.call("Runtime.evaluate", what);
        assert!(result.get("exceptionDetails").is_none(), "{expression}: {result}");
        result["result"]["value"].take()
    }

    /// Presses a key.
    pub fn press(&mut self, key: &str) {
        let text = if key == "Enter" { "\r" } else { "" };
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            _ => 32,
        };
        let text = if key == " " { " " } else { text };
        let down = json!({ "type": "keyDown", "key": key, "text": text, "windowsVirtualKeyCode": code });
        self.call("Input.dispatchKeyEvent", down);
        self.call("Input.dispatchKeyEvent", json!({ "type": "keyUp", "key": key, "windowsVirtualKeyCode": code }));
    }

    /// Drags the mouse from one point to another.
    pub fn drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        let between = ((from.0 + to.0) / 2.0, (from.1 + to.1) / 2.0);
        let steps = [
            ("mouseMoved", from, 0),
            ("mousePressed", from, 1),
            ("mouseMoved", between, 1),
            ("mouseMoved", to, 1),
            ("mouseReleased", to, 0),
        ];
        for (kind, (x, y), buttons) in steps {
            let button = if kind == "mouseMoved" && buttons == 0 { "none" } else { "left" };
            let event = json!({ "type": kind, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", event);
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.browser.kill();
        let _ = self.browser.wait();
    }
}
