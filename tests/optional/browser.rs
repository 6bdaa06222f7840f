//! The report in a real browser.

use std::path::Path;
use std::process::Command;

use crate::replay::said;
use crate::report::results;
use crate::{Missing, Outcome};

/// Returns the DOM of the page after Chromium has loaded it.
fn dom(page: &Path, profile: &Path) -> Result<String, Missing> {
    let quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"];
    let alone = ["--disable-background-networking", "--disable-component-update", "--disable-sync"];
    let mut command = Command::new("chromium");
    command.args(quiet).args(alone).arg(format!("--user-data-dir={}", profile.display()));
    command.arg("--dump-dom").arg(format!("file://{}", page.display()));
    match command.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(Missing("no chromium".to_owned())),
        Err(error) => panic!("chromium: {error}"),
        Ok(output) => {
            assert!(output.status.success(), "chromium: {}", said(&output));
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
    }
}

pub fn the_report_opens_offline() -> Outcome {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let folder = results(dir.path(), "one", "2");
    let dom = dom(&folder.join("report.html"), &dir.path().join("profile"))?;
    assert!(dom.contains("<title>tiny</title>") && dom.contains("Is 1 &lt; 2 &amp; 3 &gt; 2?"), "{dom}");
    // A button shows that the page's own script has run: it adds one to everything that can be copied.
    assert!(dom.contains("<button"), "{dom}");
    let rows = dom.matches("<tr>").count();
    assert!(rows >= 8, "{rows} rows");
    for cell in ["slot:2</td>", "drf</td>", "fifo</td>"] {
        assert!(dom.contains(cell), "{cell}");
    }
    let figures = dom.matches("<figure").count();
    let narrow = dom.matches("class=\"narrow\"").count();
    // Wide figures are drawn a second time for phones.
    assert!(figures >= 5 && narrow >= 1 && dom.matches("<svg").count() == figures + narrow, "{figures} figures");
    for outside in ["src=", "href=\"http", "href=\"//", "@import", "url(http"] {
        assert!(!dom.contains(outside), "{outside}");
    }
    for link in dom.split("href=\"./").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(folder.join(link).is_file(), "{link}");
    }
    Ok(())
}
