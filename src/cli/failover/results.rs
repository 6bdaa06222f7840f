//! The results of an experiment with the control plane: tables, figures and the report page.
//!
//! Each table has the rows of one kind of finding. Figures and sentences are derived from the findings in memory, not from the tables.

use std::collections::BTreeSet;
use std::path::Path;

use crate::column::TableRow;
use crate::control::rules::Rule;
use crate::control::scenario::Scenario;
use crate::control::study::{FailoverFindings, FateRow, RecoveryRow, Study};
use crate::control::trial::Trial;
use crate::error::Result;
use crate::experiment::failover::FailoverPlan;
use crate::output::figure::{
    Axis, Category, Chart, Data, GridRow, GridSection, GridWords, Join, Mark, Panel, Series, Stacks, grid,
    small_multiples, stacked,
};
use crate::output::file::{WrittenFile, write_whole};
use crate::output::gallery::{self, Drawn};
use crate::output::html::{self, HtmlColumn, Report};
use crate::output::page::inline;
use crate::output::paper::Paper;
use crate::output::provenance::Provenance;
use crate::output::schema::{Fated, Recovered, Writer};
use crate::output::shell::quoted;
use crate::output::{files, schema, sequence};
use crate::units::{Span, trim_float};

/// Writes tables, figures and the report to a folder; returns all files, the report last.
pub fn write(folder: &Path, plan: &FailoverPlan, findings: &FailoverFindings) -> Result<Vec<WrittenFile>> {
    let mut written = tables(folder, plan, findings)?;
    let drawn = draw(plan, findings);
    written.extend(gallery::write(folder, &drawn, &provenance(plan))?);
    let page = html::render(&report(plan, findings, &drawn));
    written.push(write_whole(&folder.join(files::REPORT), page.as_bytes())?);
    Ok(written)
}

/// Returns the provenance of all files.
fn provenance(plan: &FailoverPlan) -> Provenance {
    Provenance::of_plan(&plan.text).with("schema", schema::VERSION.to_string())
}

/// Writes the table with rows of type `R`; returns its file.
fn table<R: TableRow>(
    folder: &Path,
    plan: &FailoverPlan,
    fill: impl FnOnce(&mut Writer<R>) -> Result<()>,
) -> Result<WrittenFile> {
    let path = folder.join(format!("{}.parquet", R::TABLE));
    let mut writer = Writer::create(&path, provenance(plan).pairs())?;
    fill(&mut writer)?;
    writer.complete()?.place()
}

fn tables(folder: &Path, plan: &FailoverPlan, findings: &FailoverFindings) -> Result<Vec<WrittenFile>> {
    let scenarios = table::<Fated<'static>>(folder, plan, |table| {
        findings
            .fates
            .iter()
            .try_for_each(|row| table.push(&Fated { row, name: row.scenario.name(), violated: joined(&row.violated) }))
    });
    let recovery = table::<Recovered<'static>>(folder, plan, |table| {
        findings.recoveries.iter().try_for_each(|row| {
            table.push(&Recovered { row, name: row.scenario.name(), violated: joined(&row.violated) })
        })
    });
    Ok(vec![scenarios?, recovery?])
}

fn joined(names: &BTreeSet<&'static str>) -> String {
    names.iter().copied().collect::<Vec<_>>().join("+")
}

/// Draws all figures on the paper of the plan.
pub fn draw(plan: &FailoverPlan, findings: &FailoverFindings) -> Vec<Drawn> {
    let paper = &plan.paper;
    let mut drawn = vec![fates(&plan.study, findings, paper), needs(&plan.study, findings, paper)];
    if !findings.recoveries.is_empty() {
        drawn.extend([recovery(&plan.study, findings, paper), interrupted(&plan.study, findings, paper)]);
    }
    drawn.extend(plan.diagrams.iter().map(|diagram| {
        let trial = Trial::new(diagram.scenario, diagram.rules, plan.study.network, plan.study.timing);
        let (number, removed) =
            (diagram.scenario.number(), diagram.rules.missing().map(Rule::name).collect::<Vec<_>>());
        let (svg, title) = sequence::of_trial(&trial, paper.width);
        let without = removed.iter().map(|name| format!("-without-{name}")).collect::<String>();
        let name = format!("scenario-{number}{without}");
        Drawn { name, caption: format!("Scenario {number}: {title}."), svg, data: Data::default() }
    }));
    drawn.iter_mut().for_each(|one| one.svg = paper.zoomed(std::mem::take(&mut one.svg)));
    drawn
}

/// Returns one category per scenario, labelled with its number.
fn categories(scenarios: &[Scenario]) -> Vec<Category> {
    scenarios.iter().map(|scenario| Category::new(scenario.number().to_string())).collect()
}

/// Returns the kept, restarted and lost workers of some rows, as fractions of the workers before the fault.
fn parts<'a>(scenarios: &[Scenario], rows: impl Iterator<Item = &'a FateRow> + Clone, title: &str) -> Stacks {
    let part = |count: fn(&FateRow) -> u32| -> Vec<Option<f64>> {
        let of = |scenario: &Scenario| {
            let row = rows.clone().find(|row| row.scenario == *scenario)?;
            (row.fate.before > 0).then(|| f64::from(count(row)) / f64::from(row.fate.before))
        };
        scenarios.iter().map(of).collect()
    };
    let layers = vec![part(|row| row.fate.kept()), part(|row| row.fate.replaced()), part(|row| row.fate.lost())];
    Stacks { title: title.to_owned(), layers }
}

fn layers() -> Vec<String> {
    ["kept", "started again", "lost"].map(str::to_owned).to_vec()
}

fn fates(study: &Study, findings: &FailoverFindings, paper: &Paper) -> Drawn {
    let class = |online: bool, title: &str| {
        let rows = findings.fates.iter().filter(move |row| row.without.is_none() && row.online == online);
        parts(&study.scenarios, rows, title)
    };
    let panels = [class(true, "online services"), class(false, "offline roles")];
    Drawn {
        name: "fates".to_owned(),
        caption: "Workers kept, started again and lost in each scenario (1 to 17), with all rules, over all timings in which \
                  services wait. No online worker stops. Offline workers start again on another machine if their machine \
                  times out, or if their application master does not report to a new FuxiMaster in time."
            .to_owned(),
        svg: stacked("Workers", &categories(&study.scenarios), &layers(), &panels, paper.width),
        data: Data::of_stacks(["class", "scenario", "fate", "fraction"], &categories(&study.scenarios), &layers(), &panels),
    }
}

const NEEDS: GridWords = GridWords {
    title: "Which scenario needs which rule",
    holds: "no property is violated without the rule",
    fails: "a worker of an online service is stopped",
    unknown: "only another property is violated",
};

fn needs(study: &Study, findings: &FailoverFindings, paper: &Paper) -> Drawn {
    let row = |scenario: &Scenario| {
        let mark = |removed: &Rule| {
            let mut rows = findings.fates.iter();
            let row = rows.find(|row| row.scenario == *scenario && row.without == Some(*removed));
            match row.map(|row| (row.violated.contains("I1"), row.violated.is_empty())) {
                Some((true, _)) => Mark::Fails,
                Some((false, true)) => Mark::Holds,
                _ => Mark::Unknown,
            }
        };
        let label = format!("{} {}", scenario.number(), scenario.name());
        GridRow { label, marks: study.rules.iter().map(mark).collect() }
    };
    let section = GridSection { title: String::new(), rows: study.scenarios.iter().map(row).collect() };
    let columns: Vec<String> = study.rules.iter().map(|rule| rule.name().to_owned()).collect();
    let mut data = Data::new(["scenario", "without", "outcome"]);
    for row in &section.rows {
        let word = |mark: &Mark| match mark {
            Mark::Holds => NEEDS.holds,
            Mark::Fails => NEEDS.fails,
            Mark::Unknown => NEEDS.unknown,
        };
        let cells = columns.iter().zip(&row.marks);
        data.rows.extend(cells.map(|(rule, mark)| vec![row.label.clone(), rule.clone(), word(mark).to_owned()]));
    }
    Drawn {
        name: "rules".to_owned(),
        caption:
            "The purpose of each rule: every scenario in all its timings, without one rule. Determined by simulation."
                .to_owned(),
        svg: grid(&columns, &[section], &NEEDS, paper.width),
        data,
    }
}

/// Returns one panel per scenario with one curve per window, over heartbeats.
fn by_clock(
    study: &Study,
    findings: &FailoverFindings,
    (y, name): (Axis, &str),
    of: fn(&RecoveryRow) -> f64,
    paper: &Paper,
) -> (String, Data) {
    let sweep = &study.recovery;
    let panel = |scenario: &Scenario| {
        let curve = |window: &Span| {
            let rows = findings.recoveries.iter().filter(|row| row.scenario == *scenario && row.window == *window);
            let points = rows.map(|row| (row.beat.seconds(), of(row))).collect();
            Series::new(format!("window {} s", trim_float(window.seconds())), points)
        };
        let title = format!("{} {}", scenario.number(), scenario.name());
        Panel { title, series: sweep.windows.iter().map(curve).collect() }
    };
    let panels: Vec<Panel> = sweep.scenarios.iter().map(panel).collect();
    let x = Axis::number("Heartbeat (s)").log();
    let svg = small_multiples(&paper.fit(sheet(x, y, panels.len(), 2), panels.len()), Join::Straight, &panels);
    (svg, Data::of_panels(["scenario", "window", "heartbeat_s", name], &panels))
}

fn sheet(x: Axis, y: Axis, panels: usize, columns: usize) -> Chart {
    let rows = panels.div_ceil(columns.max(1));
    let size_pt = (Chart::PAGE.0, 40.0 + 120.0 * rows as f64);
    Chart { size_pt, columns: Some(columns), ..Chart::new(x, y) }
}

fn recovery(study: &Study, findings: &FailoverFindings, paper: &Paper) -> Drawn {
    let y = (Axis::number("Time to recover (s)"), "mean_recovery_s");
    let (svg, data) = by_clock(study, findings, y, |row| row.mean_s, paper);
    Drawn {
        name: "recovery".to_owned(),
        caption: "From the first fault to the last change that it causes, by heartbeat and window: the mean over all \
                  timings in which services wait. A Tubo is declared lost after 15 heartbeats and an application master after 30."
            .to_owned(),
        svg,
        data,
    }
}

fn interrupted(study: &Study, findings: &FailoverFindings, paper: &Paper) -> Drawn {
    let stopped = |row: &RecoveryRow| 1.0 - f64::from(row.offline.kept()) / f64::from(row.offline.before.max(1));
    let y = (Axis::fraction("Offline workers stopped").range(0.0, 1.0), "stopped");
    let (svg, data) = by_clock(study, findings, y, stopped, paper);
    Drawn {
        name: "interrupted".to_owned(),
        caption: "Offline workers that are stopped, by heartbeat and window. A short window ends before application \
                  masters and Tubos are back; with a short heartbeat, processes are declared lost that would have come back."
            .to_owned(),
        svg,
        data,
    }
}

fn report(plan: &FailoverPlan, findings: &FailoverFindings, drawn: &[Drawn]) -> Report {
    let file = format!("{}.toml", plan.name);
    Report {
        title: plan.name.clone(),
        question: plan.question.clone(),
        answer: sentences(plan, findings),
        summary: vec![summary(plan, findings)],
        figures: drawn.iter().map(inline).collect(),
        plan_toml: plan.text.clone(),
        reproduce: vec![format!("# with the plan below as {file}"), format!("plimsoll run {}", quoted(&file))],
        provenance: provenance(plan).rows(),
        ..Report::default()
    }
}

/// Returns the table of scenarios with all rules enabled.
fn summary(plan: &FailoverPlan, findings: &FailoverFindings) -> html::HtmlTable {
    let column = |name: &str, numeric| HtmlColumn { name: name.to_owned(), explanation: String::new(), numeric };
    let fate = |scenario: Scenario, online: bool| {
        let mut rows = findings.fates.iter();
        rows.find(|row| row.scenario == scenario && row.without.is_none() && row.online == online).map(|row| row.fate)
    };
    let row = |scenario: &Scenario| {
        let shown = |online: bool| {
            let fate = fate(*scenario, online).unwrap_or_default();
            format!("{} / {} / {}", fate.kept(), fate.replaced(), fate.lost())
        };
        let needs = findings.fates.iter().filter(|row| row.scenario == *scenario && row.online);
        let needs = needs.filter(|row| row.violated.contains("I1")).filter_map(|row| row.without.map(Rule::name));
        let needs = needs.collect::<Vec<_>>().join(", ");
        vec![scenario.number().to_string(), scenario.name(), shown(true), shown(false), needs]
    };
    let heads = [
        ("", true),
        ("scenario", false),
        ("online", true),
        ("offline", true),
        ("an online worker stops without", false),
    ];
    html::HtmlTable {
        caption: "Workers kept / started again / lost over all timings with waiting services".to_owned(),
        columns: heads.map(|(name, numeric)| column(name, numeric)).to_vec(),
        rows: plan.study.scenarios.iter().map(row).collect(),
        ..html::HtmlTable::default()
    }
}

/// Describes the findings in sentences.
pub fn sentences(plan: &FailoverPlan, findings: &FailoverFindings) -> Vec<String> {
    let with_all: Vec<&FateRow> = findings.fates.iter().filter(|row| row.without.is_none() && row.online).collect();
    let broken = with_all.iter().filter(|row| !row.violated.is_empty()).count();
    let mut said = vec![format!(
        "With all rules {} of {} scenarios violate an invariant.",
        if broken == 0 { "none".to_owned() } else { broken.to_string() },
        with_all.len()
    )];
    for &removed in &plan.study.rules {
        let harmed = findings.fates.iter().filter(|row| row.without == Some(removed) && row.online);
        let harmed: Vec<String> =
            harmed.filter(|row| row.violated.contains("I1")).map(|row| row.scenario.number().to_string()).collect();
        said.push(match harmed.is_empty() {
            true => format!("Without {} no scenario stops an online worker.", removed.name()),
            false => format!("Without {} an online worker is stopped in {}.", removed.name(), harmed.join(", ")),
        });
    }
    let short = findings.recoveries.iter().filter(|row| !row.violated.is_empty()).count();
    if !findings.recoveries.is_empty() {
        let runs = findings.recoveries.len();
        said.push(format!("Of {runs} settings of heartbeat and window {short} violate an invariant with all rules."));
    }
    said
}
