//! The setting of the episodes of a learned scheduler. It has the keys of plans.
//!
//! Rules that select users, or that start or preempt tasks, are refused, because the agent makes these decisions. Closed loops are refused
//! because the jobs of an episode must be known before the run.

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::machines::{ClusterFile, ClusterPlan, cluster_plan};
use super::workload::{WorkloadFile, WorkloadPlan};
use plimsoll_runs::{RunEnvironment, fragments_of};

use plimsoll_base::error::{Error, Result};
use plimsoll_base::settings::{SettingOrigin, positive_span};
use plimsoll_base::tree::{Node, Place};
use plimsoll_base::units::Span;
use plimsoll_gym::{Features, Image, JobPool, Observation, Reward, Setting, all_of};
use plimsoll_sim::cluster::Cluster;
use plimsoll_sim::engine::Options;
use plimsoll_sim::engine::settings::{ClusterSetting, SETTINGS};

/// The setting as written in TOML.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SettingFile {
    cluster: ClusterFile,
    #[serde(rename = "workload")]
    _workload: IgnoredAny,
    observation: String,
    reward: String,
    jobs: Option<u32>,
    window: Option<u32>,
    longest: Option<String>,
    step: Option<String>,
    horizon: Option<u32>,
    slots: Option<u32>,
}

/// The default of the span that counts as 1 in an observation. It is the value of RLScheduler (Zhang et al., SC 2020).
const LONGEST: &str = "12h";

/// The maximum of each size of an observation: jobs, rows or cells.
const MOST: u32 = 10_000;

/// Reads a setting in TOML; paths in it are relative to the working directory.
///
/// In addition to the tables `cluster` and `workload` of plans a setting has the keys `observation`, `reward` and `jobs`. The observation
/// `window` has the further keys `window` and `longest`; the observation `image` has `window`, `step`, `horizon` and `slots`. Errors:
/// [`Error::Plan`], [`Error::Placed`], and those of the workload.
pub fn setting(text: &str) -> Result<Setting> {
    let tree = Node::toml(&Place::whole_text("<environment>", text))?;
    let file: SettingFile = tree.read()?;
    let table = tree.get("workload").map(|entry| WorkloadFile::read(&entry.node));
    let table = table.ok_or_else(|| Error::plan("workload", "nothing", "a generator or a trace"))??;
    let ClusterPlan { cluster, options, mix, .. } =
        cluster_plan(&file.cluster, None, Path::new(""), SettingOrigin::InPlan)?;
    let workload = table.plan(Path::new(""), &cluster, SettingOrigin::InPlan)?;
    if workload.submissions_depend_on_policy() {
        let expected = "a workload that is known before the run, such as facebook or synthetic";
        return Err(Error::plan("workload.generator", format!("'{}'", workload.name()), expected));
    }
    // 1 is also the default of a plan's first seed.
    let supply = workload.supply(1)?;
    let mut environment = RunEnvironment::new(&cluster, None, &supply.dims()?)?.cluster;
    decided_elsewhere(&options, &environment)?;
    fragments_of(mix.as_ref(), options.placement, &|| supply.source(), &|| supply.mix(), &mut environment)?;
    let observation = observation(&file)?;
    let reward = Reward::parse("reward", &file.reward, &environment.dims)?;
    let anywhere = matches!(workload.base(), WorkloadPlan::Trace { .. });
    let supply: Box<dyn Fn(u64) -> Result<Arc<JobPool>> + Send + Sync> = if workload.is_seeded() {
        Box::new(move |seed| Ok(Arc::new(JobPool::new(all_of(&mut *workload.supply(seed)?.source()?)?))))
    } else {
        let pool = Arc::new(JobPool::new(all_of(&mut *supply.source()?)?));
        Box::new(move |_| Ok(Arc::clone(&pool)))
    };
    let jobs = file.jobs.map(|jobs| jobs as usize);
    Ok(Setting { supply, jobs, anywhere, cluster: Arc::new(environment), options, observation, reward })
}

/// Refuses rules for the selection of users, which is the agent's decision, and rules that start or preempt tasks without the agent.
fn decided_elsewhere(options: &Options, cluster: &Cluster) -> Result<()> {
    match SETTINGS.iter().find(|setting| setting.agent && (setting.is_set)(options, cluster)) {
        None => Ok(()),
        Some(ClusterSetting { key, .. }) => {
            let expected = "no value: the agent alone decides which tasks start, and no task is preempted";
            Err(Error::plan(format!("cluster.{key}"), "a value", expected))
        }
    }
}

/// Returns a size of an observation, or its default.
fn size(key: &str, given: Option<u32>, or: usize) -> Result<usize> {
    match given {
        None => Ok(or),
        Some(size) if (1..=MOST).contains(&size) => Ok(size as usize),
        Some(size) => Err(Error::plan(key, size, format!("1 to {MOST}"))),
    }
}

/// Returns a span of an observation, or its default.
fn length(key: &str, given: &Option<String>, or: Span) -> Result<Span> {
    given.as_deref().map_or(Ok(or), |text| positive_span(key, text))
}

/// Reads the observation. Errors: an unknown observation, or a key of another observation.
fn observation(file: &SettingFile) -> Result<Observation> {
    let of_other = |given: &[(&str, bool)]| match given.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((key, _)) => {
            let expected = format!("nothing, with the observation '{}'", file.observation);
            Err(Error::plan(*key, "a value", expected))
        }
    };
    match file.observation.as_str() {
        "window" => {
            let given =
                [("step", file.step.is_some()), ("horizon", file.horizon.is_some()), ("slots", file.slots.is_some())];
            of_other(&given)?;
            let longest = length("longest", &file.longest, positive_span("longest", LONGEST)?)?;
            let window = size("window", file.window, Features::WINDOW)?;
            Ok(Observation::Window(Features { window, longest }))
        }
        "image" => {
            of_other(&[("longest", file.longest.is_some())])?;
            let paper = Image::PAPER;
            Ok(Observation::Image(Image {
                window: size("window", file.window, paper.window)?,
                step: length("step", &file.step, paper.step)?,
                horizon: size("horizon", file.horizon, paper.horizon)?,
                slots: size("slots", file.slots, paper.slots)?,
            }))
        }
        other => Err(Error::plan("observation", format!("'{other}'"), "window or image")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_gym::Simulation;

    const REST: &str = "[workload]\ngenerator = \"synthetic\"\njobs = 9\narrival = { distribution = \"exponential\", mean = 5 }\n\
        [[workload.class]]\nname = \"a\"\ntasks = 2\nduration = \"1m\"\ndemand = { cpu = 1, memory_gib = 2 }\n[cluster]\n";

    fn read(keys: &str, cluster: &str) -> Result<Setting> {
        setting(&format!("{keys}\n{REST}{cluster}\n"))
    }

    #[test]
    fn a_setting_has_the_keys_of_plans_and_sizes_of_papers() {
        let window =
            read("observation = \"window\"\nreward = \"slowdown_mean\"", "machines = \"2x4c8g\"").expect("a setting");
        assert_eq!((window.observation.shape(2), window.observation.window()), ((128, 6), 128));
        assert_eq!((window.jobs, window.anywhere, window.reward.clone()), (None, false, Reward::Slowdown));
        let keys = "observation = \"image\"\nreward = \"used_cpu\"\njobs = 4\nslots = 5";
        let image = read(keys, "machines = \"2x4c8g\"\nplacement = \"best-fit\"").expect("a setting");
        // There are 20 rows. The columns are five cells for each of two resources, for the cluster and for ten jobs; three for the
        // backlog; and one more.
        assert_eq!(image.observation.shape(2), (20, 2 * 5 * 11 + 3 + 1));
        assert_eq!((image.jobs, image.reward.clone()), (Some(4), Reward::AtEnd("used_cpu".to_owned(), 1.0)));
        let mut simulation = Simulation::new(Arc::new(image));
        simulation.reset(Some(3)).expect("an episode");
        assert_eq!(simulation.jobs().count(), 4);
    }

    #[test]
    fn what_an_agent_decides_is_no_setting() {
        let good = "observation = \"window\"\nreward = \"slowdown_mean\"";
        for (keys, cluster, says) in [
            (good, "machines = \"2x4c8g\"\nplacement = \"first-fit\"\npreempt = \"5s\"", "cluster.preempt"),
            (good, "machines = \"2x4c8g\"\nplacement = \"first-fit\"\nhoard = \"5s\"", "cluster.hoard"),
            (good, "machines = \"2x4c8g\"\nties = \"highest-id\"", "cluster.ties"),
            (good, "machines = \"2x4c8g\"\nplacement = \"first-fit\"\nfaults = \"fail=0.1\"", "cluster.faults"),
            (good, "machines = \"2x4c\"", "the cluster has no memory"),
            ("observation = \"image\"\nreward = \"wait_mean_s\"\nlongest = \"1h\"", "machines = \"2x4c8g\"", "longest"),
            ("observation = \"window\"\nreward = \"waits\"", "machines = \"2x4c8g\"", "reward: 'waits'"),
            ("observation = \"image\"\nreward = \"wait_mean_s\"\nstep = \"0s\"", "machines = \"2x4c8g\"", "step: '0s'"),
            ("reward = \"wait_mean_s\"", "machines = \"2x4c8g\"", "observation"),
        ] {
            let found = read(keys, cluster).and_then(|setting| Simulation::new(Arc::new(setting)).reset(Some(1)));
            let message = found.expect_err(says).to_string();
            assert!(message.contains(says), "{says}: {message}");
        }
    }
}
