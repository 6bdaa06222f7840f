//! A plan of the control plane's experiment: a TOML file with a table `[failover]`.

use std::path::Path;

use serde::Deserialize;

use super::plan::check_name;
use super::settings::positive_span;
use super::study::Plain;
use crate::control::rules::{Rule, Rules};
use crate::control::scenario::Scenario;
use crate::control::storm::Storm;
use crate::control::study::{Storms, Study, Sweep};
use crate::control::world::plan::{Network, Timing};
use crate::error::{Error, Result, each};
use crate::output::paper::Paper;
use crate::units::Span;

/// The most seeds, machines and rates: beyond them a storm takes days.
const MOST: (u64, u32, usize) = (10_000, 100_000, 100);

/// The plan as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    question: Option<String>,
    #[serde(default = "one")]
    seeds: u64,
    #[serde(default = "one")]
    seed: u64,
    failover: Section,
}

fn one() -> u64 {
    1
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
    storm: Option<StormFile>,
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
struct StormFile {
    machines: u32,
    lasts: String,
    instance: String,
    links: Option<String>,
    rates: Vec<f64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DiagramFile {
    scenario: String,
    #[serde(default)]
    without: Vec<String>,
}

/// A sequence diagram that is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Diagram {
    /// Of which scenario.
    pub scenario: Scenario,
    /// Under which rules.
    pub rules: Rules,
}

/// A plan, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct FailoverPlan {
    /// The experiment's name.
    pub name: String,
    /// The question it answers.
    pub question: Option<String>,
    /// The study that is run.
    pub study: Study,
    /// The diagrams that are drawn besides.
    pub diagrams: Vec<Diagram>,
    /// The paper that figures are drawn on.
    pub paper: Paper,
    /// The plan as text.
    pub text: String,
}

impl FailoverPlan {
    /// Checks a plan; `set` are `key=value` changes made to it first.
    ///
    /// Errors: [`Error::Placed`] with line and column, [`Error::Plan`] with the key and what would be accepted.
    pub fn read(path: &Path, text: &str, set: &[String]) -> Result<FailoverPlan> {
        let plain = Plain::read(path, text, set, "failover.storm.machines=40")?;
        let plan = check(plain.parse()?).map_err(|error| plain.located(error))?;
        Ok(FailoverPlan { text: plain.text, paper: plain.paper, ..plan })
    }
}

fn check(file: File) -> Result<FailoverPlan> {
    check_name(&file.name)?;
    if !(1..=MOST.0).contains(&file.seeds) {
        return Err(Error::plan("seeds", file.seeds, format!("1 to {}", MOST.0)));
    }
    let last = file.seed.checked_add(file.seeds).filter(|&last| last <= i64::MAX as u64);
    let seeds = file.seed..last.ok_or_else(|| Error::plan("seed", file.seed, "a seed below 2^63"))?;
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
        storms: section.storm.as_ref().map_or(Ok(Storms::default()), |file| storms(file, timing, network, seeds))?,
    };
    let diagrams = section.diagram.iter().map(diagram).collect::<Result<_>>()?;
    let (paper, text) = (Paper::default(), String::new());
    Ok(FailoverPlan { name: file.name, question: file.question, study, diagrams, paper, text })
}

fn links(key: &str, name: Option<&str>, otherwise: Network) -> Result<Network> {
    name.map_or(Ok(otherwise), |name| name.parse().map_err(|error: Error| error.under(key)))
}

/// The scenarios of a list. Errors: an unknown one.
fn scenarios(key: &str, names: &[String]) -> Result<Vec<Scenario>> {
    each(names, |name| Scenario::parse(name).map_err(|error| error.under(key)))
}

fn rules(key: &str, names: &[String]) -> Result<Vec<Rule>> {
    each(names, |name| Rule::parse(key, name))
}

/// Heartbeats of up to a minute, in which the scenarios still begin as they should.
fn beat(key: &str, text: &str) -> Result<Span> {
    let span = positive_span(key, text)?;
    match span <= Span::from_secs(8) {
        true => Ok(span),
        false => Err(Error::plan(key, format!("'{text}'"), "at most 8s: the first fault strikes after 30 s")),
    }
}

fn sweep(file: &SweepFile) -> Result<Sweep> {
    Ok(Sweep {
        scenarios: scenarios("failover.recovery.scenarios", &file.scenarios)?,
        beats: each(&file.heartbeats, |text| beat("failover.recovery.heartbeats", text))?,
        windows: each(&file.windows, |text| positive_span("failover.recovery.windows", text))?,
    })
}

fn storms(file: &StormFile, timing: Timing, network: Network, seeds: std::ops::Range<u64>) -> Result<Storms> {
    if !(10..=MOST.1).contains(&file.machines) {
        return Err(Error::plan("failover.storm.machines", file.machines, format!("10 to {}", MOST.1)));
    }
    if file.rates.len() > MOST.2 || file.rates.is_empty() {
        let expected = format!("1 to {} failures an hour, such as [1, 2, 5]", MOST.2);
        return Err(Error::plan("failover.storm.rates", format!("{} rates", file.rates.len()), expected));
    }
    if let Some(at) = file.rates.iter().position(|rate| !(*rate > 0.0 && *rate <= 3600.0)) {
        let expected = "failures of a process in an hour, above 0, at most 3600";
        return Err(Error::plan("failover.storm.rates", file.rates[at], expected).item(at));
    }
    let storm = Storm {
        machines: file.machines,
        lasts: positive_span("failover.storm.lasts", &file.lasts)?,
        rate: file.rates[0],
        instance: positive_span("failover.storm.instance", &file.instance)?,
        timing,
        network: links("failover.storm.links", file.links.as_deref(), network)?,
    };
    Ok(Storms { storm: Some(storm), rates: file.rates.clone(), seeds: seeds.collect() })
}

fn diagram(file: &DiagramFile) -> Result<Diagram> {
    let scenario = Scenario::parse(&file.scenario).map_err(|error| error.under("failover.diagram.scenario"))?;
    let removed = rules("failover.diagram.without", &file.without)?;
    Ok(Diagram { scenario, rules: removed.into_iter().fold(Rules::ALL, Rules::without) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::scenario::State;

    const PLAN: &str = "name = \"f\"\nseeds = 2\n[failover]\nscenarios = [\"1\", \"am-timeout\"]\nwithout = [\"clamp\"]\n\
                        heartbeat = \"500ms\"\n[failover.storm]\nmachines = 10\nlasts = \"10m\"\ninstance = \"1m\"\n\
                        rates = [1, 2.5]\n[[failover.diagram]]\nscenario = \"17\"\nwithout = [\"fencing\"]\n";

    fn read(text: &str, set: &[&str]) -> Result<FailoverPlan> {
        let set: Vec<String> = set.iter().map(|&text| text.to_owned()).collect();
        FailoverPlan::read(Path::new("p.toml"), text, &set)
    }

    #[test]
    fn a_plan_is_read_and_its_keys_have_defaults() {
        let plan = read(PLAN, &["failover.storm.machines=20"]).expect("a good plan");
        assert_eq!(plan.study.scenarios.iter().map(|s| s.number()).collect::<Vec<_>>(), [1, 3]);
        assert_eq!((plan.study.rules, plan.study.timing.app_timeout), (vec![Rule::Clamp], Span::from_secs(15)));
        let storms = &plan.study.storms;
        assert_eq!((storms.seeds.as_slice(), storms.storm.map(|s| s.machines)), (&[1, 2][..], Some(20)));
        assert!(!plan.diagrams[0].rules.has(Rule::Fencing) && plan.study.recovery == Sweep::default());
        let plain = read("name = \"f\"\n[failover]\n", &[]).expect("a good plan");
        assert_eq!((plain.study.scenarios.len(), plain.study.rules.len()), (17, 8));
        assert_eq!(plain.study.scenarios[0].app, State::Well);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (from, to, part) in [
            ("\"am-timeout\"", "\"am-timeuot\"", "did you mean 'am-timeout'"),
            ("\"clamp\"", "\"clam\"", "did you mean 'clamp'"),
            ("machines = 10", "machines = 3", "line 8"),
            ("rates = [1, 2.5]", "rates = [0]", "above 0"),
            ("rates = [1, 2.5]", "rates = []", "1 to 100"),
            ("\"500ms\"", "\"1m\"", "at most 8s"),
            ("\"10m\"", "\"soon\"", "failover.storm.lasts"),
            ("seeds = 2", "seeds = 0", "1 to 10000"),
            ("heartbeat =", "heartbeet =", "Did you mean 'heartbeat'"),
            ("name = \"f\"", "name = \"a/b\"", "without slashes"),
        ] {
            let message = read(&PLAN.replace(from, to), &[]).expect_err(to).to_string();
            assert!(message.contains(part), "{to}: {part} is missing in {message}");
        }
        assert!(read(PLAN, &["failover.links=wet"]).expect_err("wet").to_string().contains("ordered or lossy"));
    }
}
