//! The keys of the table `[accelerators]`: the reader and the table of the documentation have one declaration.

use std::path::PathBuf;

use plimsoll_rounds::mechanism::{NewJobs, OverheadWhen, RoundEnd};
use plimsoll_rounds::policies::{Bottlenecks, FifoType};
use serde::Deserialize;

/// A key of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcceleratorKey {
    /// The name.
    pub name: &'static str,
    /// Its effect.
    pub meaning: &'static str,
    /// The default as text, empty for a required key. A value of the plan file is in backticks.
    pub default: &'static str,
}

/// Declares the struct that reads the table, and the rows of its keys.
macro_rules! keys {
    ($(#[$attribute:meta])* $section:ident { $($name:ident: $kind:ty, $meaning:literal, $default:literal;)* }) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct $section {
            $(pub $name: $kind,)*
        }

        /// The keys, in the order of the documentation.
        pub const KEYS: &[AcceleratorKey] =
            &[$(AcceleratorKey { name: stringify!($name), meaning: $meaning, default: $default },)*];
    };
}

keys! {
    /// The table `[accelerators]` of a plan.
    Section {
        policies: Vec<String>, "names of the list below", "";
        throughputs: PathBuf, "the throughput table: a CSV file", "";
        jobs: Vec<PathBuf>, "the lists of jobs: CSV files. Each is a run; means and intervals are over the lists", "";
        machines: String, "numbers of servers and worker types, in the order of visits: `36xv100,9xp100:4` has 9 servers of 4 accelerators", "";
        reference: Option<String>, "the worker type of durations in the lists", "the first of `machines`";
        rates: Option<Vec<f64>>, "jobs per hour, for lists with `unit_arrival`: seconds are `unit_arrival` times 3600 / rate", "none";
        at_once: Option<bool>, "all jobs arrive at 0", "`false`";
        single: Option<bool>, "each job uses one accelerator, whatever the list states", "`false`";
        most_jobs: Option<usize>, "only the first jobs of each list", "all";
        window: Option<WindowFile>, "`{ from, to }`: only these jobs are measured, by number, without `to`; a run ends when they are complete", "all";
        round: Option<String>, "the length of a round", "`\"360s\"`";
        round_end: Option<String>, "`longest`: a round ends with its longest job; `fixed`: after its length", "`\"longest\"`";
        at_least: Option<String>, "the least time between two computations of fractions; they follow arrivals and completions", "`\"1920s\"`";
        new_jobs: Option<String>, "a job that arrived after the last computation and is selected: `wait` keeps its accelerators idle, `fill` runs it", "`\"wait\"`";
        type_order: Option<String>, "the order of filling worker types: `listed`, `shuffled` in each round, or `auto`: listed for policies that are aware of types", "`\"auto\"`";
        overhead: Option<String>, "the progress that a job loses when it starts or resumes", "`\"0s\"`";
        overhead_when: Option<String>, "`after-gap`: after a round without it; `on-move`: when its accelerators change", "`\"after-gap\"`";
        ideal: Option<bool>, "no rounds: jobs progress by their fractions", "`false`";
        bottlenecks: Option<String>, "water filling: `intended`, or `published`: all jobs are final after one step", "`\"intended\"`";
        fifo_type: Option<String>, "the type that `fifo` takes: `published` (the last listed one, also if it is full), `last` with room, or `drawn` at random", "`\"published\"`";
        makespan_gap: Option<f64>, "the relative gap at which the bisection of a makespan ends", "`0.05`";
        quotas: Option<Vec<u32>>, "`quota`: the accelerators of each entity, from entity 0 on; further entities have 0", "equal parts";
        shockwave: Option<ShockwaveFile>, "`shockwave`: the rounds of a window, the rounds after which it plans again, the weight of the longest remaining time, the exponent of the weights of jobs that are late, and the accepted ratio of finish times", "`{ rounds = 20, replan = 8, makespan_weight = 0.001, lateness_power = 12, rho = 1.0 }`";
    }
}

/// The key `window`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WindowFile {
    pub from: u32,
    pub to: u32,
}

/// The key `shockwave`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ShockwaveFile {
    pub rounds: Option<u32>,
    pub replan: Option<u32>,
    pub makespan_weight: Option<f64>,
    pub lateness_power: Option<u32>,
    pub rho: Option<f64>,
}

/// The values of `round_end`.
pub(super) const ROUND_END: &[(&str, RoundEnd)] = &[("longest", RoundEnd::Longest), ("fixed", RoundEnd::Fixed)];
/// The values of `new_jobs`.
pub(super) const NEW_JOBS: &[(&str, NewJobs)] = &[("wait", NewJobs::Wait), ("fill", NewJobs::Fill)];
/// The values of `overhead_when`.
pub(super) const OVERHEAD_WHEN: &[(&str, OverheadWhen)] =
    &[("after-gap", OverheadWhen::AfterGap), ("on-move", OverheadWhen::OnMove)];
/// The values of `bottlenecks`.
pub(super) const BOTTLENECKS: &[(&str, Bottlenecks)] =
    &[("intended", Bottlenecks::Intended), ("published", Bottlenecks::Published)];
/// The values of `fifo_type`.
pub(super) const FIFO_TYPE: &[(&str, FifoType)] =
    &[("published", FifoType::Published), ("last", FifoType::Last), ("drawn", FifoType::Random)];

#[cfg(test)]
mod tests {
    use super::super::{AcceleratorCell, AcceleratorStudy};
    use super::*;

    /// Returns a plan with further lines in its table, read from a folder with a table and a list.
    fn plan(folder: &std::path::Path, more: &str) -> AcceleratorCell {
        let text = format!(
            "name = \"p\"\n[accelerators]\npolicies = [\"fifo\"]\nthroughputs = \"t.csv\"\njobs = [\"j.csv\"]\n\
             machines = \"2xa,1xb\"\n{more}"
        );
        AcceleratorStudy::read_alone(&plimsoll_base::tree::Place::whole_text(folder.join("p.toml"), text), &[])
            .expect("a plan")
    }

    /// The stated defaults are those of the reader: a plan with all of them equals a plan without.
    #[test]
    fn stated_defaults_are_used() {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::write(dir.path().join("t.csv"), "job_type,worker_type,iterations_per_s\nx,a,1\nx,b,2\n")
            .expect("a table");
        std::fs::write(dir.path().join("j.csv"), "arrival_s,job_type,iterations,entity\n0,x,5,0\n1,x,5,1\n")
            .expect("a list");
        let mut stated = String::new();
        for key in KEYS {
            if let Some(value) = key.default.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')) {
                stated += &format!("{} = {value}\n", key.name);
            }
        }
        assert!(stated.lines().count() > 10, "{stated}");
        let (stated, absent) = (plan(dir.path(), &stated).setup, plan(dir.path(), "").setup);
        assert_eq!(stated.options, absent.options);
        assert_eq!(stated.policy_options, absent.policy_options);
        assert_eq!((stated.ideal, stated.window, stated.rates), (absent.ideal, absent.window, absent.rates));
        // Names of choices are in the meaning of their key.
        let names = |name: &str| KEYS.iter().find(|key| key.name == name).map_or("", |key| key.meaning);
        let choices: [(&str, Vec<&str>); 5] = [
            ("round_end", ROUND_END.iter().map(|(name, _)| *name).collect()),
            ("new_jobs", NEW_JOBS.iter().map(|(name, _)| *name).collect()),
            ("overhead_when", OVERHEAD_WHEN.iter().map(|(name, _)| *name).collect()),
            ("bottlenecks", BOTTLENECKS.iter().map(|(name, _)| *name).collect()),
            ("fifo_type", FIFO_TYPE.iter().map(|(name, _)| *name).collect()),
        ];
        for (key, choices) in choices {
            choices.iter().for_each(|name| assert!(names(key).contains(&format!("`{name}`")), "{key}: {name}"));
        }
    }

    #[test]
    fn quotas_and_parameters_are_read() {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::write(dir.path().join("t.csv"), "job_type,worker_type,iterations_per_s\nx,a,1\nx,b,2\n")
            .expect("a table");
        std::fs::write(dir.path().join("j.csv"), "arrival_s,job_type,iterations\n0,x,5\n").expect("a list");
        let setup = plan(dir.path(), "quotas = [2, 1]\nshockwave = { rounds = 10, makespan_weight = 10.0 }\n").setup;
        assert_eq!(setup.policy_options.quotas, [(0, 2), (1, 1)]);
        let shockwave = setup.policy_options.shockwave;
        assert_eq!((shockwave.rounds, shockwave.replan, shockwave.makespan_weight), (10, 8, 10.0));
        for (more, part) in [
            ("quotas = [3, 1]\n", "at most the 3 accelerators"),
            ("shockwave = { rounds = 0 }\n", "from 1 to 1000"),
            ("shockwave = { rounds = 5, replan = 6 }\n", "from 1 to the 5 rounds"),
            ("shockwave = { rho = 0.0 }\n", "above 0"),
            ("shockwave = { lambda = 2 }\n", "lambda"),
        ] {
            let text = format!(
                "name = \"p\"\n[accelerators]\npolicies = [\"fifo\"]\nthroughputs = \"t.csv\"\njobs = [\"j.csv\"]\n\
                 machines = \"2xa,1xb\"\n{more}"
            );
            let read = AcceleratorStudy::read_alone(
                &plimsoll_base::tree::Place::whole_text(dir.path().join("p.toml"), &*text),
                &[],
            );
            let error = read.err().expect("an error").to_string();
            assert!(error.contains(part) && error.contains("line 7"), "{more}: {error}");
        }
    }
}
