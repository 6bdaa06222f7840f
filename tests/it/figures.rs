//! Figures that plans request. They are drawn only from the tables, in every format. Wrong requests are refused with their place in the
//! plan.

use std::path::{Path, PathBuf};

use crate::replay::{plimsoll, run, said};

/// A small sweep, without figures.
const PLAN: &str = r#"name = "swept"
policies = ["drf", "fifo"]
seeds = 3
[cluster]
machines = "4x4c8g"
[workload]
generator = "facebook"
hours = 0.02
[sweep]
"workload.load" = [0.05, 0.1]
"cluster.machines" = ["4x4c8g", "8x4c8g"]
"#;

fn written(dir: &Path, figures: &str) -> PathBuf {
    let plan = dir.join("swept.toml");
    std::fs::write(&plan, format!("{PLAN}{figures}")).expect("a writable folder");
    plan
}

/// Runs a plan into `out` and returns its messages.
fn messages(dir: &Path, figures: &str) -> String {
    let plan = written(dir, figures);
    let output = run(plimsoll(&["run", "-o"]).arg(dir.join("out")).arg(&plan));
    assert!(output.status.success(), "{}", said(&output));
    said(&output)
}

/// Returns the names of the files in a folder of figures.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("figures were drawn").flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn another_figure_runs_nothing_anew_and_is_drawn_from_the_tables() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let lines = "[[figure]]\nkind = \"lines\"\nx = \"load\"\ny = \"completion_mean_s\"\nfacet = \"machines\"\n";
    messages(dir.path(), lines);
    let folder = dir.path().join("out/figures");
    assert_eq!(names(&folder), ["lines.csv", "lines.pdf", "lines.png", "lines.svg"]);
    let csv = std::fs::read_to_string(folder.join("lines.csv")).expect("data");
    let (header, rows) = csv.split_once('\n').expect("a header");
    assert_eq!(header, "panel,series,load,completion_mean_s,low,high,n");
    assert_eq!(rows.lines().count(), 8, "two loads, two shapes of machines, two policies: {csv}");
    assert!(rows.lines().all(|row| row.ends_with(",3")), "three seeds each: {csv}");
    let report = std::fs::read_to_string(dir.path().join("out/report.html")).expect("a report");
    for part in ["figures/lines.pdf", "figures/lines.csv", "kind = &quot;lines&quot;"] {
        assert!(report.contains(part), "{part} is missing in the report");
    }
    // The plan now requests another figure: no run is repeated.
    let told = messages(
        dir.path(),
        "[figures]\nwidth = 300\n[[figure]]\nkind = \"cdf\"\nbands = true\nname = \"mine\"\nlog = \"x\"\n",
    );
    assert!(told.contains("24 runs were complete already, 0 were made"), "{told}");
    let svg = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a figure");
    assert!(svg("mine.svg").contains("width=\"300\""));
    // The figures are drawn again, only from the tables and `figures.toml`, to the same bytes.
    let before: Vec<Vec<u8>> = ["mine.svg", "mine.png", "mine.pdf", "mine.csv"]
        .map(|name| std::fs::read(folder.join(name)).expect(name))
        .into();
    std::fs::remove_dir_all(&folder).expect("it is there");
    let output = run(plimsoll(&["plot"]).arg(dir.path().join("out")));
    assert!(output.status.success(), "{}", said(&output));
    let after: Vec<Vec<u8>> = ["mine.svg", "mine.png", "mine.pdf", "mine.csv"]
        .map(|name| std::fs::read(folder.join(name)).expect(name))
        .into();
    assert!(before == after);
    let output = run(plimsoll(&["plot", "--preset", "slides", "--only", "mine"]).arg(dir.path().join("out")));
    assert!(output.status.success(), "{}", said(&output));
    assert!(svg("mine.svg").contains("width=\"640\""));
}

/// Returns the provenance metadata of an SVG.
fn provenance(svg: &str) -> serde_json::Value {
    let (_, rest) = svg.split_once("<metadata><![CDATA[").expect("metadata");
    serde_json::from_str(rest.split_once("]]></metadata>").expect("metadata").0).expect("JSON")
}

#[test]
fn every_file_says_what_it_is_made_of() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    messages(dir.path(), "[[figure]]\nkind = \"lines\"\nx = \"load\"\ny = \"speed_jain\"\nfacet = \"machines\"\n");
    let out = dir.path().join("out");
    for svg in ["figures/lines.svg", "cell=load-0.1,machines-8x4c8g/figures/reduction.svg"] {
        let about = provenance(&std::fs::read_to_string(out.join(svg)).expect("a figure"));
        assert_eq!(about["plimsoll.version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(
            (&about["plimsoll.seeds"], &about["plimsoll.schema"]),
            (&"1 to 3".into(), &plimsoll::output::schema::VERSION.to_string().into())
        );
        let plan: toml::Table = about["plimsoll.plan"].as_str().expect("a plan").parse().expect("TOML");
        assert_eq!(plan["name"].as_str(), Some("swept"));
        assert_eq!(plan.contains_key("figure"), svg.starts_with("figures"), "only the plan of the study has figures");
    }
    // Every file states its origin in the notation of its format.
    for (file, says) in [
        ("figures/lines.png", "iTXtplimsoll.plan\0\0\0\0\0name = \"swept\""),
        ("figures/lines.pdf", "/plimsoll.seeds (1 to 3)"),
        ("report.html", "<dt>seeds</dt><dd>1 to 3</dd>"),
        ("study.json", "\"version\": \""),
        ("made.json", "\"figures/lines.pdf\": \""),
        ("cell=load-0.1,machines-8x4c8g/experiment.json", "\"version\": \""),
    ] {
        let bytes = std::fs::read(out.join(file)).expect(file);
        assert!(String::from_utf8_lossy(&bytes).contains(says), "{says} is not in {file}");
    }
    // A figure of a command without a plan states the command.
    let instance = dir.path().join("i.toml");
    std::fs::write(&instance, "[capacity]\ncpu = 9\n[[user]]\ndemand = { cpu = 1 }\n").expect("a writable folder");
    let output = run(plimsoll(&["solve", "i.toml", "--figure", "i.svg"]).current_dir(dir.path()));
    assert!(output.status.success(), "{}", said(&output));
    let about = provenance(&std::fs::read_to_string(dir.path().join("i.svg")).expect("a figure"));
    assert_eq!(about["plimsoll.command"], "plimsoll solve i.toml", "the command without its output file");
}

#[test]
fn figures_that_are_no_longer_made_go() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = dir.path().join("out");
    let figure = |name: &str| format!("[[figure]]\nkind = \"cdf\"\nbands = true\nname = \"{name}\"\n");
    messages(dir.path(), &format!("{}{}", figure("one"), figure("two")));
    let cell = out.join("cell=load-0.05,machines-4x4c8g/figures");
    assert!(cell.join("completion.svg").is_file());
    std::fs::write(out.join("figures/mine.svg"), "<svg/>").expect("a writable folder");
    std::fs::write(out.join("figures/two.csv"), "changed\n").expect("a writable folder");
    // Draws again under another name, without the second figure and with only one built-in figure.
    messages(dir.path(), &format!("{}[[figure]]\nkind = \"utilisation\"\n", figure("three")));
    let left = ["mine.svg", "three.csv", "three.pdf", "three.png", "three.svg", "two.csv"];
    assert_eq!(names(&out.join("figures")), left, "foreign and changed files stay");
    assert!(!cell.join("completion.svg").exists() && cell.join("utilisation.svg").is_file());
    // Only one figure is drawn: the other files remain.
    let output = run(plimsoll(&["plot", "--only", "three"]).arg(&out));
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(names(&out.join("figures")), left);
    // Cells that are no longer part of the plan are removed together with their figures.
    let plan = written(dir.path(), "");
    let output = run(plimsoll(&["run", "--restart", "--set", "workload.load=0.1", "-o"]).arg(&out).arg(&plan));
    assert!(output.status.success(), "{}", said(&output));
    assert!(!out.join("cell=load-0.05,machines-4x4c8g").exists(), "{}", said(&output));
    assert!(!out.join("figures/three.svg").exists() && out.join("figures/mine.svg").exists());
}

/// Width presets reach the figures of plans without runs.
#[test]
fn every_kind_of_plan_has_its_figures_on_the_paper_that_it_asks_for() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let quota = "[capacity]\ncpu = 9\n[[group]]\nname = \"a\"\nratio = 1\nrequest = { cpu = 5 }\n[[group]]\n\
                 name = \"b\"\nratio = 2\nmin = { cpu = 2 }\nrequest = { cpu = 8 }\n";
    std::fs::write(dir.path().join("i.toml"), "[capacity]\ncpu = 9\n[[user]]\ndemand = { cpu = 1 }\n")
        .expect("writable");
    std::fs::write(dir.path().join("g.toml"), quota).expect("writable");
    let plans = [
        (
            "[check]\npolicies = [\"drf\", \"asset\"]\neffort = \"quick\"\nproperties = [\"envy-freeness\"]\n",
            "properties",
        ),
        ("[solve]\ninstances = [\"i.toml\", \"g.toml\"]\npolicies = [\"drf\"]\n", "g"),
        ("[solve]\ninstances = [\"i.toml\"]\npolicies = [\"drf\"]\n", "i"),
        ("[failover]\nscenarios = [\"2\"]\nwithout = [\"clamp\"]\n", "rules"),
        ("[failover]\nscenarios = [\"2\"]\nwithout = [\"clamp\"]\n", "fates"),
    ];
    for (nth, (plan, figure)) in plans.into_iter().enumerate() {
        let plan = format!("name = \"p\"\n{plan}[figures]\npreset = \"ieee\"\n");
        std::fs::write(dir.path().join("p.toml"), plan).expect("writable");
        let out = dir.path().join(nth.to_string());
        let output = run(plimsoll(&["run", "-q", "-o"]).arg(&out).arg(dir.path().join("p.toml")));
        assert!(output.status.success(), "{}", said(&output));
        let svg = std::fs::read_to_string(out.join(format!("figures/{figure}.svg"))).expect(figure);
        assert!(svg.contains("width=\"252\""), "{figure}: {}", &svg[..200]);
        assert!(provenance(&svg)["plimsoll.plan"].as_str().is_some_and(|plan| plan.contains("preset = \"ieee\"")));
    }
}

/// A plan with twenty-five policies: each policy is named in every figure and in the report.
#[test]
fn a_plan_of_many_policies_names_each_in_figures_and_report() {
    const MANY: &str = "slot:4 slot:8 slot:12 slot:16 maxmin:cpu maxmin:memory asset drf fifo pnorm:2 pnorm:3 pnorm:5 pnorm:8 \
                        ceei bmf line line/fifo drf/fifo drf/las drf/sjf:true drf/srpt:true asset/las longterm:1h longterm:10m \
                        afs:1h";
    let policies: Vec<&str> = MANY.split(' ').collect();
    assert_eq!(policies.len(), 25);
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (plan, out) = (dir.path().join("many.toml"), dir.path().join("out"));
    let text = format!(
        "name = \"many\"\npolicies = {policies:?}\nbaseline = \"drf\"\nseeds = 2\n[cluster]\nmachines = \"4x16c32g\"\n\
         [workload]\ngenerator = \"facebook\"\nhours = 0.02\nload = 0.8\nusers = 4\n"
    );
    std::fs::write(&plan, text).expect("a writable folder");
    let output = run(plimsoll(&["run", "-o"]).arg(&out).arg(&plan));
    assert!(output.status.success(), "{}", said(&output));
    let figures = ["completion_mean_s", "speed_jain", "completion", "utilisation", "speeds", "reduction"];
    for figure in figures {
        let read =
            |ending: &str| std::fs::read_to_string(out.join(format!("figures/{figure}.{ending}"))).expect(figure);
        let (svg, csv) = (read("svg"), read("csv"));
        let compared = |policy: &&&str| figure != "reduction" || **policy != "drf";
        for policy in policies.iter().filter(compared) {
            let alone = svg.lines().any(|line| line.trim() == *policy);
            assert!(alone, "{policy} is not named in {figure}.svg");
            assert!(csv.contains(&format!("{policy},")), "{policy} is not in {figure}.csv");
        }
    }
    let report = std::fs::read_to_string(out.join("report.html")).expect("a report");
    for policy in &policies {
        assert!(report.matches(&format!("<td>{policy}</td>")).count() >= 3, "{policy} has no rows in the report");
    }
    assert!(!report.contains(">slot:4</abbr>"), "no table has a column per policy");
}

#[test]
fn policies_stand_in_order_with_their_intervals() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let figure = |name: &str, more: &str| format!("[[figure]]\nkind = \"ranks\"\nname = \"{name}\"\n{more}");
    let where_ = "where = { load = 0.1, machines = \"4x4c8g\" }\n";
    messages(
        dir.path(),
        &[
            figure("times", &format!("y = \"completion_mean_s\"\n{where_}")),
            figure("indices", &format!("y = \"speed_jain\"\n{where_}")),
            figure("cells", "y = \"completion_mean_s\"\nseries = [\"policy\", \"load\"]\nfacet = \"machines\"\n"),
        ]
        .concat(),
    );
    let rows = |name: &str| -> Vec<Vec<String>> {
        let csv = std::fs::read_to_string(dir.path().join(format!("out/figures/{name}.csv"))).expect(name);
        csv.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
    };
    let number = |text: &String| text.parse::<f64>().expect("a number");
    for (name, column, sign) in [("times", "completion_mean_s", 1.0), ("indices", "speed_jain", -1.0)] {
        let rows = rows(name);
        assert_eq!(rows[0], ["series", column, "low", "high", "n"]);
        assert_eq!(rows.len(), 3, "two policies: {rows:?}");
        assert!(sign * number(&rows[1][1]) <= sign * number(&rows[2][1]), "the best is first: {rows:?}");
        assert!(rows[1..].iter().all(|row| number(&row[2]) <= number(&row[1]) && row[4] == "3"), "{rows:?}");
    }
    let svg = std::fs::read_to_string(dir.path().join("out/figures/cells.svg")).expect("a drawing");
    assert!(svg.contains("load = 0.05") && svg.contains("8x4c8g"), "rows and panels are named");
    assert_eq!(rows("cells").len(), 9, "two policies, two loads, two shapes of machines");
}

#[test]
fn a_sweep_without_figures_gets_sensible_ones() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    messages(dir.path(), "");
    let folder = dir.path().join("out/figures");
    let stems: Vec<String> =
        names(&folder).iter().filter_map(|name| name.strip_suffix(".svg").map(str::to_owned)).collect();
    assert_eq!(stems, ["completion_mean_s", "slowdown_mean", "speed_jain", "used_cpu"]);
    assert!(!dir.path().join("out/figures.toml").exists());
    assert!(dir.path().join("out/cell=load-0.05,machines-4x4c8g/figures/completion.pdf").is_file());
}

#[test]
fn wrong_figures_are_refused_before_anything_runs() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let line = PLAN.lines().count();
    let cases: [(&str, usize, &[&str]); 16] = [
        ("[[figure]]\nkind = \"linse\"\n", 2, &["figure[0].kind", "column 8", "did you mean 'lines'"]),
        ("[[figure]]\nknd = \"lines\"\n", 2, &["unknown field `knd`", "kind"]),
        ("[[figure]]\nkind = \"lines\"\ny = \"speed_jain\"\n", 1, &["figure[0].x", "an axis of the sweep"]),
        (
            "[[figure]]\nkind = \"lines\"\nx = \"load\"\ny = \"completion_mean\"\n",
            4,
            &["did you mean 'completion_mean_s'"],
        ),
        (
            "[[figure]]\nkind = \"lines\"\nx = \"laod\"\ny = \"speed_jain\"\n",
            3,
            &["figure[0].x: 'laod'", "workload_load"],
        ),
        ("[[figure]]\nkind = \"lines\"\nx = \"machines\"\ny = \"speed_jain\"\n", 3, &["numbers along x", "bars"]),
        ("[[figure]]\nkind = \"lines\"\nx = \"policy\"\ny = \"speed_jain\"\n", 3, &["numbers along x"]),
        (
            "[[figure]]\nkind = \"bars\"\nx = \"policy\"\ny = \"speed_jain\"\ntable = \"tasks\"\n",
            5,
            &["a table that this plan writes"],
        ),
        (
            "[[figure]]\nkind = \"bars\"\nx = \"policy\"\ny = \"speed_jain\"\nwhere = { policy = \"dfr\" }\n",
            5,
            &["did you mean 'drf'"],
        ),
        (
            "[[figure]]\nkind = \"bars\"\nx = \"policy\"\ny = \"speed_jain\"\nwhere = { load = [0.6] }\n",
            5,
            &["figure[0].where.load", "0.05, 0.1"],
        ),
        ("[[figure]]\nkind = \"bars\"\nx = \"policy\"\ny = \"speed_jain\"\nlog = \"z\"\n", 5, &["figure[0].log"]),
        ("[[figure]]\nkind = \"heatmap\"\nx = \"load\"\ny = \"machines\"\n", 1, &["figure[0].value"]),
        ("[[figure]]\nkind = \"completion\"\nx = \"load\"\n", 3, &["the content of"]),
        (
            "[[figure]]\nkind = \"bars\"\nx = \"policy\"\ny = \"speed_jain\"\nstat = \"average\"\n",
            5,
            &["figure[0].stat", "median"],
        ),
        ("[figures]\npreset = \"acn\"\n", 2, &["figures.preset", "did you mean 'acm'"]),
        ("[[figure]]\nkind = \"cdf\"\nwidth = 3\n", 3, &["figure[0].width", "points"]),
    ];
    for (figures, at, says) in cases {
        let plan = written(dir.path(), figures);
        let output = run(plimsoll(&["run", "-o"]).arg(dir.path().join("out")).arg(&plan));
        let told = said(&output);
        assert_eq!(output.status.code(), Some(2), "{figures}: {told}");
        assert!(told.contains(&format!("line {}", line + at)), "line {} of {figures}: {told}", line + at);
        says.iter().for_each(|part| assert!(told.contains(part), "{part} for {figures}: {told}"));
        assert!(!dir.path().join("out").exists(), "nothing ran");
    }
}

#[test]
fn the_text_of_a_pdf_is_text() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    messages(dir.path(), "[[figure]]\nkind = \"bars\"\nx = \"load\"\ny = \"completion_mean_s\"\n");
    let pdf = dir.path().join("out/figures/bars.pdf");
    let bytes = std::fs::read(&pdf).expect("a PDF");
    let text = String::from_utf8_lossy(&bytes);
    for part in ["/FontFile2", "LiberationSans", "/ToUnicode"] {
        assert!(text.contains(part), "{part} is missing");
    }
}

/// The page of the documentation about figures, and the plan that draws the figures of this page.
const PAGE: &str = "docs/figures.md";
const SHOWN: &str = "experiments/figures.toml";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the tables `[[figure]]` of a text, without comments and blank lines.
fn described(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        match line {
            "[[figure]]" => {
                open = true;
                all.push(String::new());
            }
            _ if line.is_empty() || line.starts_with(['[', '#', '`']) => open = false,
            _ if open => all.last_mut().expect("one is open").extend([line, "\n"]),
            _ => {}
        }
    }
    all
}

/// Stores a figure for the documentation, without the metadata, which change with every version.
fn bless_picture(from: &Path, to: &Path) {
    let svg = std::fs::read_to_string(from).expect("it was drawn");
    let (head, rest) = svg.split_once("\n<metadata>").expect("metadata");
    let (_, body) = rest.split_once("</metadata>").expect("metadata");
    std::fs::write(to, format!("{head}{body}")).expect("a writable folder");
}

/// Draws the figures of the documentation. With `PLIMSOLL_BLESS=1` in the environment it rewrites the pictures.
#[test]
fn the_figures_of_the_documentation_are_drawn() {
    let read = |file: &str| std::fs::read_to_string(root().join(file)).expect(file);
    let (page, plan) = (read(PAGE), read(SHOWN));
    let (in_page, in_plan) = (described(&page), described(&plan));
    let missing: Vec<&String> = in_page.iter().filter(|figure| !in_plan.contains(figure)).collect();
    assert!(missing.is_empty() && in_page.len() == in_plan.len(), "not in {SHOWN}: {missing:?}");
    let bless = std::env::var_os("PLIMSOLL_BLESS").is_some();
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut command = plimsoll(&["run", "-o"]);
    command.arg(dir.path().join("out")).arg(root().join(SHOWN));
    if !bless {
        // The same figures, from fewer runs.
        command.args(["--set", "seeds=2", "--set", "workload.hours=0.1"]);
    }
    let output = run(&mut command);
    assert!(output.status.success(), "{}", said(&output));
    assert!(!said(&output).contains("no figure '"), "{}", said(&output));
    let drawn = names(&dir.path().join("out/figures"));
    let svgs: Vec<&String> = drawn.iter().filter(|name| name.ends_with(".svg")).collect();
    assert_eq!(svgs.len(), in_page.len());
    for name in svgs {
        assert!(page.contains(&format!("(figures/{name})")), "{name} is not shown in {PAGE}");
        let picture = root().join("docs/figures").join(name);
        if bless {
            bless_picture(&dir.path().join("out/figures").join(name), &picture);
        }
        assert!(picture.is_file(), "{} is missing; PLIMSOLL_BLESS=1 creates it", picture.display());
    }
}

/// Figures of experiments on other pages: the page, the experiment, its figures, and a setting for a quick run.
const ELSEWHERE: [(&str, &str, &[&str], &str); 5] = [
    ("docs/cluster.md", "displacing", &["price"], "policies=[\"drf\"]"),
    ("docs/cluster.md", "gangs", &["waits"], "workload.jobs=60"),
    ("docs/cluster.md", "preemption", &["lost-work", "waits"], "workload.jobs=60"),
    ("README.md", "facebook", &["reduction"], "workload.hours=0.1"),
    ("README.md", "heavy-users", &["completion"], "workload.hours=0.2"),
];

/// Draws the figures of [`ELSEWHERE`], and also rewrites the pictures with `PLIMSOLL_BLESS=1`.
#[test]
fn the_figures_of_other_pages_are_drawn() {
    for (page, experiment, figures, quick) in ELSEWHERE {
        let text = std::fs::read_to_string(root().join(page)).expect(page);
        let bless = std::env::var_os("PLIMSOLL_BLESS").is_some();
        let dir = tempfile::tempdir().expect("a temporary folder");
        let mut command = plimsoll(&["run", "-q", "-o"]);
        command.arg(dir.path().join("out")).arg(root().join(format!("experiments/{experiment}.toml")));
        if !bless {
            command.args(["--set", "seeds=2", "--set", quick]);
        }
        let output = run(&mut command);
        assert!(output.status.success(), "{}", said(&output));
        for figure in figures {
            let (name, drawn) = (format!("{experiment}-{figure}.svg"), format!("out/figures/{figure}.svg"));
            assert!(text.contains(&format!("figures/{name})")), "{name} is not shown in {page}");
            let picture = root().join("docs/figures").join(&name);
            if bless {
                bless_picture(&dir.path().join(&drawn), &picture);
            }
            assert!(dir.path().join(&drawn).is_file() && picture.is_file(), "{name}; PLIMSOLL_BLESS=1 creates it");
        }
    }
}
