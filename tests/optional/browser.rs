//! The report in a real browser.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::devtools::{Page, QUIET};
use crate::frame::Frame;
use crate::replay::{plimsoll, run, said};
use crate::report::results;
use crate::{Missing, Outcome};

/// Returns the DOM of the page after Chromium has loaded it.
fn dom(page: &Path, profile: &Path) -> Result<String, Missing> {
    let mut command = Command::new("chromium");
    command.args(QUIET).arg(format!("--user-data-dir={}", profile.display()));
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

/// Scrolls an element into view, and waits until it is at rest: views above it may still be drawn, and the mouse finds an element only in
/// the frame after a scroll. Returns its left and top edges, width and height.
fn settled_place(page: &mut Page, selector: &str) -> Vec<f64> {
    let place = page.value(&format!(
        "(async () => {{
          const node = document.querySelector('{selector}');
          let [still, top] = [0, NaN];
          for (let nth = 0; nth < 600 && still < 5; nth++) {{
            node.scrollIntoView({{ block: 'center', behavior: 'instant' }});
            await new Promise((done) => requestAnimationFrame(done));
            const box = node.getBoundingClientRect();
            still = box.top === top && box.top >= 0 && box.top < innerHeight ? still + 1 : 0;
            top = box.top;
          }}
          const box = node.getBoundingClientRect();
          return [box.left, box.top, box.width, box.height]; }})()"
    ));
    serde_json::from_value(place).expect("a place")
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
    let drawn = dom.split("<section id=\"explore\"").next().expect("a part before it").matches("<svg").count();
    // Wide figures are drawn a second time for phones.
    assert!(figures >= 5 && narrow >= 1 && drawn == figures + narrow, "{figures} figures");
    for outside in ["src=", "href=\"http", "href=\"//", "@import", "url(http"] {
        assert!(!dom.contains(outside), "{outside}");
    }
    for link in dom.split("href=\"./").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(folder.join(link).is_file(), "{link}");
    }
    Ok(())
}

/// A name that would run a script if a page included it as it is.
const EVIL: &str = "<script>window.hit=1</script>";

/// Replays a trace of 60 jobs of four users, one with the name [`EVIL`], under two policies, and makes a report with stories.
fn explored(dir: &Path) -> PathBuf {
    let (trace, folder) = (dir.join("trace.csv"), dir.join("results"));
    let mut text = "job,user,submit_s,duration_s,tasks,cpu,memory_gib\n".to_owned();
    for job in 0..60u32 {
        let user = [EVIL, "ann", "bob", "anna"][job as usize % 4];
        text += &format!("job{job},{user},{},{},{},1,1\n", 7 * job, 20 + 13 * (job % 9), 1 + job % 11);
    }
    std::fs::write(&trace, text).expect("a writable folder");
    let made = run(plimsoll(&["replay", "--machines", "4x4c16g", "--placement", "first-fit", "--policy", "fifo,drf"])
        .args(["--series", "--tasks", "-q", "-o"])
        .arg(&folder)
        .arg(&trace)
        .current_dir(dir));
    assert!(made.status.success(), "{}", said(&made));
    let made = run(plimsoll(&["report", "-q", "--stories", "3"]).arg(&folder).current_dir(dir));
    assert!(made.status.success(), "{}", said(&made));
    folder
}

/// Waits until the interactive part has been drawn again by `action`.
fn act(page: &mut Page, action: &str) {
    let script = format!(
        "(async () => {{ const section = document.getElementById('explore'); const before = section.dataset.drawn; {action};
          for (let nth = 0; nth < 500 && section.dataset.drawn === before; nth++) await new Promise((done) => setTimeout(done, 10));
          return section.dataset.drawn; }})()"
    );
    let drawn = page.value(&script);
    assert!(drawn.is_string(), "{action}: {drawn}");
}

/// Returns the text of the elements that a selector finds in the interactive part.
fn texts(page: &mut Page, selector: &str) -> Vec<String> {
    let script = format!(
        "[...document.querySelectorAll({})].map((one) => one.textContent)",
        serde_json::json!(format!("#explore {selector}"))
    );
    serde_json::from_value(page.value(&script)).expect("texts")
}

/// The jobs' names in the table of selected jobs, and its status.
const JOBS: &str = ".wide tbody td:first-child";
const STATUS: &str = "[role=status]";

pub fn the_report_is_explored() -> Outcome {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let folder = explored(dir.path());
    let file = folder.join("report.html");
    let mut page = Page::open(&file, &dir.path().join("profile"), 1280, true)?;
    act(&mut page, "");
    assert_eq!(texts(&mut page, STATUS), ["60 of 60 jobs selected."]);

    // The longest wait, as in the table of jobs.
    let table = Frame::open(&folder.join("jobs/policy=fifo/run=0/jobs.parquet"));
    let names = table.names("job", "");
    let times =
        |column: &str| table.integers(column).iter().map(|us| us.expect("every job starts")).collect::<Vec<_>>();
    let (submits, starts) = (times("submit_us"), times("start_us"));
    let mut waits: Vec<(i64, &str)> =
        (0..names.len()).map(|row| (starts[row] - submits[row], names[row].as_str())).collect();
    waits.sort_by_key(|(wait, _)| std::cmp::Reverse(*wait));
    assert_eq!(texts(&mut page, JOBS).first().map(String::as_str), Some(waits[0].1));
    act(&mut page, "section.querySelector('button.sort[data-key=wait]').click()");
    assert!(waits.iter().filter(|(wait, _)| *wait == waits[59].0).any(|(_, job)| *job == texts(&mut page, JOBS)[0]));

    // A filter: a part of a name, a whole name, and a name that is a script.
    let filter = |text: &str| {
        format!(
            "const field = section.querySelector('input[type=search]'); field.value = {}; field.dispatchEvent(new Event('input'))",
            serde_json::json!(text)
        )
    };
    for (text, jobs) in [("ann", 30), ("\"ann\"", 15), ("window.hit", 15), ("nobody", 0), ("", 60)] {
        act(&mut page, &filter(text));
        assert_eq!(texts(&mut page, STATUS), [format!("{jobs} of 60 jobs selected.")], "{text}");
    }
    assert_eq!(page.value("document.querySelectorAll('#explore script').length"), 2, "the two blocks of data");
    assert!(page.value("window.hit === undefined") == true);

    // The mouse selects a part of the time.
    let place = settled_place(&mut page, "#explore .u-over");
    let at = |part: f64| (place[0] + part * place[2], place[1] + place[3] / 2.0);
    page.drag(at(0.1), at(0.4));
    act(&mut page, "await new Promise((done) => setTimeout(done, 300)); section.querySelector('button.sort').click()");
    let from: f64 =
        page.value("Number(document.querySelector('#explore input[type=number]').value)").as_f64().unwrap_or(0.0);
    let chosen = texts(&mut page, STATUS)[0].split(' ').next().and_then(|count| count.parse::<u32>().ok());
    assert!(from > 0.0 && chosen.is_some_and(|chosen| chosen > 0 && chosen < 60), "{from} {chosen:?}");

    // The keyboard alone: the first control is a policy; the space bar hides it.
    page.value("document.querySelector('#explore').tabIndex = -1, document.querySelector('#explore').focus()");
    page.press("Tab");
    assert!(page.value("document.activeElement.matches('#explore input[type=checkbox]')") == true);
    let heads = texts(&mut page, ".tall thead button");
    page.press(" ");
    act(&mut page, "section.querySelector('button.sort').click()");
    assert_eq!(texts(&mut page, ".tall thead button").len() + 1, heads.len(), "{heads:?}");

    // A job and its story.
    act(&mut page, "[...section.querySelectorAll('button')].find((one) => one.textContent === 'Reset').click()");
    assert_eq!(texts(&mut page, STATUS), ["60 of 60 jobs selected."]);
    act(&mut page, "section.querySelector('.wide tbody button').click()");
    let story = texts(&mut page, ".story").concat();
    assert!(story.contains(waits[0].1) && story.contains("waited") && story.contains("plimsoll why ."), "{story}");
    assert_eq!(page.problems, [""; 0]);
    drop(page);

    // A phone, and a browser without scripts.
    let mut page = Page::open(&file, &dir.path().join("phone"), 390, true)?;
    act(&mut page, "");
    assert!(
        page.value("document.documentElement.scrollWidth <= document.documentElement.clientWidth") == true,
        "nothing sticks out of a phone"
    );
    assert_eq!(page.problems, [""; 0]);
    drop(page);
    let mut page = Page::open(&file, &dir.path().join("plain"), 1280, false)?;
    assert!(page.value("document.querySelector('#explore').hidden") == true);
    assert!(
        page.value(
            "document.querySelectorAll('main table').length >= 2 && document.querySelectorAll('figure svg').length >= 3"
        ) == true
    );
    Ok(())
}

/// Presses a key in the timeline, with Shift if its name begins so.
fn timeline_key(key: &str) -> String {
    let (shift, key) = key.strip_prefix("Shift ").map_or((false, key), |key| (true, key));
    format!(
        "const line = section.querySelector('canvas.timeline'); line.focus();
         line.dispatchEvent(new KeyboardEvent('keydown', {{ key: '{key}', shiftKey: {shift}, bubbles: true, cancelable: true }}))"
    )
}

/// Selects an option of the field with this label.
fn select(label: &str, value: &str) -> String {
    format!(
        "const field = [...section.querySelectorAll('label')].find((one) => one.textContent.startsWith('{label}')).querySelector('select');
         field.value = '{value}'; field.dispatchEvent(new Event('change'))"
    )
}

/// Returns a property of the timeline's canvas.
fn timeline(page: &mut Page, property: &str) -> String {
    page.value(&format!("String(document.querySelector('canvas.timeline').{property})"))
        .as_str()
        .unwrap_or("")
        .to_owned()
}

pub fn a_timeline_shows_jobs() -> Outcome {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let folder = explored(dir.path());
    let mut page = Page::open(&folder.join("report.html"), &dir.path().join("profile"), 1280, true)?;
    act(&mut page, "");
    let view = |page: &mut Page| -> (f64, f64) {
        let text = timeline(page, "dataset.view");
        let (from, to) = text.split_once(' ').expect("two times");
        (from.parse().expect("a number"), to.parse().expect("a number"))
    };
    let jobs = Frame::open(&folder.join("jobs/policy=fifo/run=0/jobs.parquet"));
    let names = jobs.names("job", "");
    let seconds = |column: &str| {
        jobs.integers(column).iter().map(|us| us.expect("all jobs end") as f64 / 1e6).collect::<Vec<_>>()
    };
    let (starts, ends) = (seconds("start_us"), seconds("finish_us"));
    let whole = view(&mut page);
    assert!(whole.0 == 0.0 && whole.1 >= ends.iter().copied().fold(0.0, f64::max), "{whole:?}");

    // Each pixel column of a lane or of a row of bars has at most one rectangle.
    let many = |page: &mut Page| timeline(page, "dataset.rectangles").parse::<u64>().expect("a number");
    let width: u64 = timeline(&mut page, "width").parse().expect("a number");
    assert!(many(&mut page) > 0 && many(&mut page) <= 4 * 8 * width);

    // The keyboard zooms about the middle, moves, and returns to the whole time.
    act(&mut page, &timeline_key("+"));
    let near = view(&mut page);
    assert!((2.0 * (near.1 - near.0) - whole.1).abs() < 1e-6 * whole.1, "{near:?} of {whole:?}");
    act(&mut page, &timeline_key("ArrowRight"));
    assert!(view(&mut page).0 > near.0);
    let shown = page.value("document.querySelector('#explore .u-over') !== null");
    assert!(shown == true, "the chart over time is drawn");
    act(&mut page, &timeline_key("0"));
    assert_eq!(view(&mut page), whole);

    // The lanes in words: the mean of running jobs is their time over that of the view.
    act(&mut page, &select("Amount", "jobs"));
    act(
        &mut page,
        "[...section.querySelectorAll('.wide details')].find((one) => one.querySelector('summary')).open = true",
    );
    let users = jobs.names("user", "");
    let busy = |user: &str| -> f64 {
        (0..names.len()).filter(|&job| users[job] == user).map(|job| ends[job] - starts[job]).sum()
    };
    let rows = texts(&mut page, ".wide details tbody tr");
    assert_eq!(rows.len(), 4, "{rows:?}");
    let cells = texts(&mut page, ".wide details tbody td");
    for row in cells.chunks(4) {
        let mean: f64 = row[2].replace(',', "").parse().expect("a number");
        assert!((mean - busy(&row[0]) / whole.1).abs() < 1e-3 * mean.max(1.0), "{row:?} {}", busy(&row[0]) / whole.1);
    }

    // A click on a bar opens the story of its job; the hover names it.
    let place = settled_place(&mut page, "canvas.timeline");
    let first = (0..names.len()).filter(|&job| users[job] == cells[0]).min_by(|&a, &b| starts[a].total_cmp(&starts[b]));
    let first = first.expect("a job of the first lane");
    let gutter = 150.0f64.min((0.26 * (place[2] + 20.0)).round());
    let middle = (starts[first] + ends[first]) / 2.0 / whole.1;
    let at = (place[0] + gutter + middle * (place[2] - gutter), place[1] + 16.0);
    page.drag(at, at);
    act(&mut page, &timeline_key("Home"));
    let story = texts(&mut page, ".story h4").concat();
    let said = texts(&mut page, ".job-info").concat();
    let named = names.iter().position(|name| story.contains(&format!("Job {name} of")));
    let named = named.unwrap_or_else(|| panic!("no story of a job at {at:?}: {story} {said} {cells:?} {place:?}"));
    let time = middle * whole.1;
    assert!(users[named] == cells[0] && starts[named] <= time && time <= ends[named], "{story} at {time}");

    // The keyboard: the next job of the lane, and its story.
    act(&mut page, &timeline_key("Escape"));
    act(&mut page, &timeline_key("Shift ArrowRight"));
    let said = texts(&mut page, ".job-info").concat();
    assert!(said.starts_with("Job job") && said.contains("waited"), "{said}");
    act(&mut page, &timeline_key("Enter"));
    let name = said.split(' ').nth(1).expect("a name");
    assert!(texts(&mut page, ".story h4").concat().contains(name), "{name}");
    assert!(page.value("document.activeElement.classList.contains('story')") == true, "the story has the focus");

    // Machines have lanes, since the tasks were written. The view becomes the selected time.
    act(&mut page, &select("Lanes", "machine"));
    assert!(timeline(&mut page, "ariaLabel").contains("machine 0"));
    act(&mut page, &timeline_key("+"));
    act(
        &mut page,
        "[...section.querySelectorAll('button')].find((one) => one.textContent === 'Select this time').click()",
    );
    let (from, to) = view(&mut page);
    let submits = seconds("submit_us");
    let inside = submits.iter().filter(|time| (from..=to).contains(*time)).count();
    assert_eq!(texts(&mut page, STATUS), [format!("{inside} of 60 jobs selected.")]);

    // Colours follow the theme: the background of the canvas is the paper.
    let corner = "(() => { const line = document.querySelector('canvas.timeline');
         const copy = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
         copy.drawImage(line, line.width - 2, line.height - 2, 1, 1, 0, 0, 1, 1);
         return [...copy.getImageData(0, 0, 1, 1).data].join(); })()";
    for (theme, paper) in [("dark", "27,31,36,255"), ("contrast", "255,255,255,255"), ("light", "255,255,255,255")] {
        act(&mut page, &select("Colours", theme));
        assert_eq!(page.value(corner), paper, "{theme}");
    }
    assert_eq!(page.problems, [""; 0]);
    Ok(())
}

pub fn jobs_by_size_follow_the_selection() -> Outcome {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (trace, folder) = (dir.path().join("trace.csv"), dir.path().join("results"));
    // Jobs of three sizes of the table by size.
    let mut text = "job,user,submit_s,duration_s,tasks,cpu,memory_gib\n".to_owned();
    for job in 0..30u32 {
        let (user, tasks) = (["ann", "bob"][job as usize % 2], [3, 600, 1200][job as usize % 3]);
        text += &format!("job{job},{user},{},{},{tasks},1,1\n", 40 * job, 20 + job);
    }
    std::fs::write(&trace, text).expect("a writable folder");
    let made =
        run(plimsoll(&["replay", "--machines", "20x16c64g", "--placement", "first-fit", "--policy", "fifo,drf"])
            .args(["-q", "-o"])
            .arg(&folder)
            .arg(&trace));
    assert!(made.status.success(), "{}", said(&made));
    let made = run(plimsoll(&["report", "-q"]).arg(&folder));
    assert!(made.status.success(), "{}", said(&made));
    let mut page = Page::open(&folder.join("report.html"), &dir.path().join("profile"), 1280, true)?;
    act(&mut page, "");
    // With all jobs the means are those of the table `bins`.
    let cells = texts(&mut page, ".sizes tbody td");
    let rows: Vec<&[String]> = cells.chunks(5).collect();
    assert_eq!(rows.iter().map(|row| row[0].as_str()).collect::<Vec<_>>(), ["1-500", "501-1000", "1001-1500", "all"]);
    let number = |text: &str| text.replace([',', ' ', '%', '+'], "").parse::<f64>().expect("a number");
    for (at, policy) in ["fifo", "drf"].into_iter().enumerate() {
        let bins = Frame::open(&folder.join(format!("bins/policy={policy}/run=0/bins.parquet")));
        let means = bins.real("completion_mean_s");
        for (bin, row) in rows[..3].iter().enumerate() {
            let exact = means[bin].expect("jobs of this size");
            assert!((number(&row[2 + at]) - exact).abs() < 2e-3 * exact, "{policy} {row:?} {exact}");
        }
    }
    for row in &rows {
        let change = 100.0 * (number(&row[3]) / number(&row[2]) - 1.0);
        assert!((number(&row[4]) - change).abs() < 0.5, "{row:?}");
    }
    // A selection: the jobs of one user.
    act(
        &mut page,
        "const field = section.querySelector('input[type=search]'); field.value = 'ann'; field.dispatchEvent(new Event('input'))",
    );
    let jobs = Frame::open(&folder.join("jobs/policy=fifo/run=0/jobs.parquet"));
    let (users, tasks) = (jobs.names("user", ""), jobs.integers("tasks"));
    let (submits, ends) = (jobs.integers("submit_us"), jobs.integers("finish_us"));
    let small: Vec<usize> = (0..users.len()).filter(|&job| users[job] == "ann" && tasks[job] == Some(3)).collect();
    let sum: i64 = small.iter().map(|&job| ends[job].expect("it ends") - submits[job].expect("a time")).sum();
    let cells = texts(&mut page, ".sizes tbody td");
    assert_eq!(cells[1], small.len().to_string());
    let exact = sum as f64 / 1e6 / small.len() as f64;
    assert!((number(&cells[2]) - exact).abs() < 2e-3 * exact, "{cells:?} {exact}");
    // The other policy as the base.
    act(&mut page, &select("Change against", "1"));
    assert!(texts(&mut page, ".sizes thead th").last().is_some_and(|head| head == "fifo against drf"));
    assert_eq!(page.problems, [""; 0]);
    Ok(())
}

pub fn a_sweep_is_explored() -> Outcome {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (plan, folder) = (dir.path().join("swept.toml"), dir.path().join("swept"));
    let text = r#"
name = "swept"
policies = ["fifo", "drf"]
seeds = 2
[cluster]
machines = "4x4c8g"
[workload]
generator = "facebook"
hours = 0.02
[sweep]
"workload.hours" = [0.02, 0.03]
"cluster.machines" = ["4x4c8g", "8x4c8g", "12x4c8g"]
"#;
    std::fs::write(&plan, text).expect("a writable folder");
    let made = run(plimsoll(&["run", "-q", "-o"]).arg(&folder).arg(&plan));
    assert!(made.status.success(), "{}", said(&made));
    let mut page = Page::open(&folder.join("report.html"), &dir.path().join("profile"), 1280, true)?;
    act(&mut page, "");
    let rows = texts(&mut page, "details tbody tr");
    assert_eq!(rows.len(), 4, "two values of the first axis, two policies: {rows:?}");
    act(
        &mut page,
        "const axis = [...section.querySelectorAll('select')].find((one) => one.options[1]?.textContent.includes('achines')); axis.value = '1'; axis.dispatchEvent(new Event('change'))",
    );
    assert_eq!(texts(&mut page, "details tbody tr").len(), 6);
    let before = texts(&mut page, "details tbody");
    act(
        &mut page,
        "const slider = section.querySelector('input[type=range]'); slider.value = '1'; slider.dispatchEvent(new Event('input'))",
    );
    assert_ne!(texts(&mut page, "details tbody"), before, "another cell of the first axis");
    assert_eq!(page.problems, [""; 0]);
    Ok(())
}
