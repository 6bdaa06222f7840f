//! A plan of the control plane's experiment: a TOML file with a table `[failover]`.
//!
//! Such a plan names scenarios of FuxiMaster failover, disabled protocol rules, the network and the clocks, an optional sweep over recovery
//! windows, and sequence diagrams. [`FailoverPlan::read`] validates it before anything runs.

use serde::Deserialize;

use super::study::Plain;
use plimsoll_base::error::{Error, Result, each};
use plimsoll_base::settings::positive_span;
use plimsoll_base::tree::Place;
use plimsoll_base::units::Span;
use plimsoll_charts::paper::Paper;
use plimsoll_control::rules::{Rule, Rules};
use plimsoll_control::scenario::Scenario;
use plimsoll_control::study::{Study, Sweep};
use plimsoll_control::world::plan::{Network, Timing};
use plimsoll_results::folder::check_name;

/// The plan as written in the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    question: Option<String>,
    failover: Section,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    scenarios: Option<Vec<String>>,
    without: Option<Vec<String>>,
    links: Option<String>,
    heartbeat: Option<String>,
    window: Option<String>,
    recovery: Option<SweepFile>,
    #[serde(default)]
    diagram: Vec<DiagramFile>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SweepFile {
    scenarios: Vec<String>,
    heartbeats: Vec<String>,
    windows: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DiagramFile {
    scenario: String,
    #[serde(default)]
    without: Vec<String>,
}

/// A requested sequence diagram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Diagram {
    /// The scenario.
    pub scenario: Scenario,
    /// The rules of the protocol.
    pub rules: Rules,
}

/// A validated plan.
#[derive(Clone, Debug, PartialEq)]
pub struct FailoverPlan {
    /// The name of the experiment.
    pub name: String,
    /// The question that the experiment answers.
    pub question: Option<String>,
    /// The study to run.
    pub study: Study,
    /// The sequence diagrams to draw in addition to the figures of the study.
    pub diagrams: Vec<Diagram>,
    /// The paper size of figures.
    pub paper: Paper,
    /// The plan as text.
    pub text: String,
}

impl FailoverPlan {
    /// Reads and validates a plan; `set` has `key=value` changes that are applied first.
    ///
    /// Errors: [`Error::Placed`] with line and column, [`Error::Plan`] with the key and the accepted values.
    pub fn read(text: &Place, set: &[String]) -> Result<FailoverPlan> {
        let plain = Plain::read(text, set, "failover.window=30s")?;
        let plan = check(plain.parse()?).map_err(|error| plain.located(error))?;
        Ok(FailoverPlan { text: plain.text, paper: plain.paper, ..plan })
    }
}

fn check(file: File) -> Result<FailoverPlan> {
    check_name(&file.name)?;
    let section = file.failover;
    let network = links("failover.links", section.links.as_deref(), Network::ORDERED)?;
    let mut timing = Timing::default();
    if let Some(text) = &section.heartbeat {
        timing = timing.with_beat(beat("failover.heartbeat", text)?);
    }
    if let Some(text) = &section.window {
        timing.window = positive_span("failover.window", text)?;
    }
    let study = Study {
        scenarios: section
            .scenarios
            .as_deref()
            .map_or(Ok(Scenario::all()), |list| scenarios("failover.scenarios", list))?,
        rules: section
            .without
            .as_deref()
            .map_or(Ok(Rule::of_matrix().collect()), |list| rules("failover.without", list))?,
        network,
        timing,
        recovery: section.recovery.as_ref().map_or(Ok(Sweep::default()), sweep)?,
    };
    let diagrams = section.diagram.iter().map(diagram).collect::<Result<_>>()?;
    let (paper, text) = (Paper::default(), String::new());
    Ok(FailoverPlan { name: file.name, question: file.question, study, diagrams, paper, text })
}

fn links(key: &str, name: Option<&str>, otherwise: Network) -> Result<Network> {
    name.map_or(Ok(otherwise), |name| name.parse().map_err(|error: Error| error.under(key)))
}

/// Parses a list of scenarios. Errors: an unknown scenario.
fn scenarios(key: &str, names: &[String]) -> Result<Vec<Scenario>> {
    each(names, |name| Scenario::parse(name).map_err(|error| error.under(key)))
}

fn rules(key: &str, names: &[String]) -> Result<Vec<Rule>> {
    each(names, |name| Rule::parse(key, name))
}

/// Parses a heartbeat interval of at most 8 s. With longer intervals, the scenarios would not begin as intended.
fn beat(key: &str, text: &str) -> Result<Span> {
    let span = positive_span(key, text)?;
    match span <= Span::from_secs(8) {
        true => Ok(span),
        false => Err(Error::plan(key, format!("'{text}'"), "at most 8s: the first fault is injected after 30 s")),
    }
}

fn sweep(file: &SweepFile) -> Result<Sweep> {
    Ok(Sweep {
        scenarios: scenarios("failover.recovery.scenarios", &file.scenarios)?,
        beats: each(&file.heartbeats, |text| beat("failover.recovery.heartbeats", text))?,
        windows: each(&file.windows, |text| positive_span("failover.recovery.windows", text))?,
    })
}

fn diagram(file: &DiagramFile) -> Result<Diagram> {
    let scenario = Scenario::parse(&file.scenario).map_err(|error| error.under("failover.diagram.scenario"))?;
    let removed = rules("failover.diagram.without", &file.without)?;
    Ok(Diagram { scenario, rules: removed.into_iter().fold(Rules::ALL, Rules::without) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_control::scenario::ProcessState;

    const PLAN: &str = "name = \"f\"\n[failover]\nscenarios = [\"1\", \"am-timeout\"]\nwithout = [\"clamp\"]\n\
                        heartbeat = \"500ms\"\n[[failover.diagram]]\nscenario = \"17\"\nwithout = [\"fencing\"]\n";

    fn read(text: &str, set: &[&str]) -> Result<FailoverPlan> {
        let set: Vec<String> = set.iter().map(|&text| text.to_owned()).collect();
        FailoverPlan::read(&Place::whole_text("p.toml", text), &set)
    }

    #[test]
    fn a_plan_is_read_and_its_keys_have_defaults() {
        let plan = read(PLAN, &["failover.window=20s"]).expect("a good plan");
        assert_eq!(plan.study.scenarios.iter().map(|s| s.number()).collect::<Vec<_>>(), [1, 3]);
        assert_eq!((plan.study.rules, plan.study.timing.app_timeout), (vec![Rule::Clamp], Span::from_secs(15)));
        assert_eq!(plan.study.timing.window, Span::from_secs(20));
        assert!(!plan.diagrams[0].rules.has(Rule::Fencing) && plan.study.recovery == Sweep::default());
        let plain = read("name = \"f\"\n[failover]\n", &[]).expect("a good plan");
        assert_eq!((plain.study.scenarios.len(), plain.study.rules.len()), (17, 8));
        assert_eq!(plain.study.scenarios[0].app, ProcessState::Well);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (from, to, part) in [
            ("\"am-timeout\"", "\"am-timeuot\"", "did you mean 'am-timeout'"),
            ("\"clamp\"", "\"clam\"", "did you mean 'clamp'"),
            ("\"500ms\"", "\"1m\"", "at most 8s"),
            ("heartbeat =", "heartbeet =", "Did you mean 'heartbeat'"),
            ("name = \"f\"", "name = \"a/b\"", "without slashes"),
        ] {
            let message = read(&PLAN.replace(from, to), &[]).expect_err(to).to_string();
            assert!(message.contains(part), "{to}: {part} is missing in {message}");
        }
        assert!(read(PLAN, &["failover.links=wet"]).expect_err("wet").to_string().contains("ordered or lossy"));
    }
}
