//! The same runs have the same difference, interval, p-value and verdict in every output: in a separate plan and in a cell of a sweep, on
//! the terminal, in the sentences and tables of the reports, and in the table of differences.

use crate::frame::Frame;
use crate::replay::{run, said};
use crate::study_run::Scratch;

const PLAN: &str = "name = \"one\"\npolicies = [\"fifo\", \"drf\", \"asset\"]\nbaseline = \"fifo\"\nseeds = 5\n\
    [cluster]\nmachines = \"6x8c32g\"\nplacement = \"first-fit\"\n\
    [workload]\ngenerator = \"synthetic\"\njobs = 120\narrival = { distribution = \"exponential\", mean = 14 }\n\
    [[workload.class]]\nname = \"web\"\nusers = 3\nweight = 3\ntasks = { distribution = \"uniform\", min = 1, max = 12 }\n\
    duration = { distribution = \"lognormal\", median = 30, sigma = 0.8 }\ndemand = { cpu = 2, memory_gib = 3 }\n\
    [[workload.class]]\nname = \"batch\"\nusers = 1\nweight = 1\ntasks = { distribution = \"uniform\", min = 8, max = 60 }\n\
    duration = { distribution = \"lognormal\", median = 60, sigma = 0.6 }\ndemand = { cpu = 1, memory_gib = 12 }\n";

const SWEEP: &str = "\n[sweep]\n\"workload.arrival.mean\" = [30, 14]\n";

/// Returns the text of a page without tags and with single spaces.
fn text(page: &str) -> String {
    let mut inside = false;
    let plain: String = page
        .chars()
        .filter_map(|c| match c {
            '<' => {
                inside = true;
                Some(' ')
            }
            '>' => {
                inside = false;
                None
            }
            c => (!inside).then_some(c),
        })
        .collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the rows of `statistics/differences.parquet`, of the cell with this mean if there is one: policy, metric and the numbers.
fn differences(folder: &std::path::Path, mean: Option<&str>) -> Vec<String> {
    let table = Frame::open(&folder.join("statistics/differences.parquet"));
    let columns = ["policy", "metric", "seeds", "difference", "low", "high", "p", "p_holm", "p_equivalent_holm"];
    let cell = mean.map(|mean| (table.numbers("workload_arrival_mean"), mean.parse::<f64>().expect("a number")));
    let rows = (0..table.height()).filter(|&row| cell.as_ref().is_none_or(|(means, mean)| means[row] == Some(*mean)));
    let shown = |row: usize| columns.map(|name| table.get(name).expect("a column").shown(row)).join(" ");
    rows.map(shown).collect()
}

#[test]
fn a_cell_has_the_verdicts_of_the_plan_of_its_own() {
    let place = Scratch::new(PLAN);
    let printed = |out: &str| {
        let output = run(&mut place.command(out, &[]));
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let alone = printed("alone");
    place.write("plan.toml", &(PLAN.to_owned() + SWEEP));
    printed("swept");
    let own = differences(&place.path("alone"), None);
    assert!(!own.is_empty());
    assert_eq!(own, differences(&place.path("swept"), Some("14")));
    let page = |path: &str| text(&std::fs::read_to_string(place.path(path)).expect("a report"));
    let answer = |page: &str| {
        let from = page.find("Mean completion time against fifo:").expect("an answer");
        page[from..].split(" Reduction of").next().expect("a table follows").to_owned()
    };
    let (own, of_cell) = (page("alone/report.html"), page("swept/cell=mean-14/report.html"));
    assert_eq!(answer(&own), answer(&of_cell));
    let words = alone.split_whitespace().collect::<Vec<_>>().join(" ");
    let answered = answer(&own);
    let first = answered.split(". ").next().expect("a sentence");
    assert!(words.contains(first), "the terminal has the sentence of the report: {first}\n{words}");
    // In the report of the sweep, the row of the cell, with its value on the axis, has the verdict of the sentence.
    let whole = page("swept/report.html");
    for policy in ["drf", "asset"] {
        let tested = first.split("; ").find(|one| one.contains(&format!("under {policy}"))).expect("each policy");
        let row = whole.split(&format!("mean-14 14 {policy} ")).nth(1).expect("a row");
        let verdict = ["lower", "higher", "no clear difference", "equivalent within 5 %"];
        let found = verdict.iter().find(|verdict| tested.contains(**verdict)).expect("a verdict");
        let cells: String = row.chars().take(60).collect();
        assert!(cells.contains(found), "{policy}: {tested}\n{cells}");
    }
}
