//! The inputs of a run in the page, as JSON: those of the plan, and the reader's changes.

use std::path::Path;

use plimsoll_base::error::{Error, Result};
use plimsoll_base::settings::SettingOrigin;
use plimsoll_base::tree::{Node, Place};
use plimsoll_base::units::{MachineId, Rounding, decimal};
use plimsoll_policies::{NamedPolicy, PlanGroups, QueueFile, QuotaFile, Registry};
use plimsoll_schedulers::BUILT_IN;
use plimsoll_sim::cluster::{ClusterSpec, MachineEvents, MachineGroup};
use plimsoll_sim::engine::Options;
use plimsoll_sim::engine::settings::{ClusterSetting, SettingValues};
use plimsoll_sim::workload::Service;
use serde::{Deserialize, Serialize};

/// All inputs of a run except the rows of its workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageRequest {
    /// The name of the workload.
    pub workload: String,
    /// The names of the workload's resources.
    pub resources: Vec<String>,
    /// The seed of the run; absent for a trace.
    pub seed: Option<u64>,
    /// The name of the policy.
    pub policy: String,
    /// The tables `quota` and `queues` of the plan, as TOML.
    pub tables: String,
    /// The groups of machines.
    pub machines: Vec<MachineGroup>,
    /// The names of machines, as in [`ClusterSpec::names`].
    pub names: Vec<(String, MachineId, u32)>,
    /// The events of the machines.
    pub events: MachineEvents,
    /// The settings of the cluster, with their values as text.
    pub settings: Vec<(String, Vec<String>)>,
    /// Online services in addition to the rows.
    pub services: Vec<Service>,
    /// The content of the file of weights.
    pub weights: Option<String>,
    /// The horizon, in microseconds.
    pub until_us: Option<u64>,
    /// The step of the sampling grid, in microseconds.
    pub sample_us: u64,
    /// The start and the end of the measured window, in microseconds.
    pub window_us: (u64, u64),
    /// Whether the plan has a table of values over time. These are evaluated with the users in another order, so that the last digits of
    /// the metrics can depend on it.
    pub series: bool,
}

/// The changes of a reader. Numbers are decimals as text, so that they are exact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PageChanges {
    /// Another policy.
    pub policy: Option<String>,
    /// The number of machines of each group; empty: as in the plan.
    pub machines: Vec<u32>,
    /// The load as a multiple of the plan's load: the times between submissions are divided by it.
    pub load: Option<String>,
    /// Other weights of users.
    pub weights: Vec<(String, String)>,
}

/// The accepted loads, as multiples of the plan's load, in millionths.
pub const LOADS: std::ops::RangeInclusive<u64> = 10_000..=100_000_000;

impl PageRequest {
    /// Checks that a policy gives the same results on every platform. Errors: [`Error::Plan`] for a policy that ranks by powers, because
    /// the powers of mathematical libraries differ in their last digits.
    pub fn check_policy(name: &str) -> Result<()> {
        if name.split([':', '/', '[']).next() == Some("pnorm") {
            let expected =
                "a policy without powers, since their last digits depend on the platform; such as drf or asset";
            return Err(Error::plan("policy", format!("'{name}'"), expected));
        }
        Ok(())
    }

    /// Returns a policy by name. Errors: as [`Registry::policy_of`] and [`PageRequest::check_policy`].
    pub(crate) fn named_policy(&self, name: &str) -> Result<NamedPolicy> {
        PageRequest::check_policy(name)?;
        let registry = Registry::new(BUILT_IN);
        let tree = Node::toml(&Place::whole_text(Path::new("plan.toml"), &self.tables))?;
        let quota = tree.get("quota").map_or(Ok(Vec::new()), |entry| QuotaFile::in_plan(entry, Path::new("")))?;
        let queues = tree.get("queues");
        let queues = queues.map_or(Ok(Vec::new()), |entry| QueueFile::in_plan(entry, &BUILT_IN.queue_keys()))?;
        let groups = PlanGroups { quota: &quota, queues: &queues };
        registry.policy_of(name, Path::new(""), Some(groups))
    }

    /// Returns why the numbers of machines cannot be changed; `None` if they can.
    pub fn fixed_machines(&self) -> Option<&'static str> {
        match (self.names.is_empty(), self.events == MachineEvents::default()) {
            (true, true) => None,
            (false, _) => Some("they have names"),
            (true, false) => Some("they have events"),
        }
    }

    /// Returns the machines, with other numbers of them in each group if there are any. Errors: [`Error::Plan`] for another number of
    /// groups, a group without machines, or other numbers of machines that are fixed.
    pub(crate) fn cluster(&self, machines: &[u32]) -> Result<ClusterSpec> {
        let mut groups = self.machines.clone();
        let wrong = |expected: String| Error::plan("machines", format!("{machines:?}"), expected);
        if !machines.is_empty() {
            if machines.len() != groups.len() || machines.contains(&0) {
                return Err(wrong(format!("{} numbers from 1", groups.len())));
            }
            if let Some(why) = self.fixed_machines() {
                return Err(wrong(format!("the machines of the plan, because {why}")));
            }
            groups.iter_mut().zip(machines).for_each(|(group, count)| group.count = *count);
        }
        let (names, events) = (self.names.clone(), self.events.clone());
        Ok(ClusterSpec { groups, names, events, devices: Vec::new() })
    }

    /// Returns the engine options without the seed and the job order. Errors: those of the settings.
    pub(crate) fn options(&self) -> Result<Options> {
        let mut values = SettingValues::default();
        for (key, texts) in &self.settings {
            let setting = ClusterSetting::find(key);
            let unknown = || Error::plan("settings", format!("'{key}'"), "a setting of the cluster");
            values.insert(setting.ok_or_else(unknown)?, texts.clone());
        }
        values.options(SettingOrigin::InPlan)
    }
}

impl PageChanges {
    /// Returns the factor of the times of submission, in billionths; `None` if they are as in the plan. Errors: [`Error::Plan`].
    pub(crate) fn time_factor(&self) -> Result<Option<u64>> {
        let Some(text) = &self.load else { return Ok(None) };
        let load = decimal(text.as_bytes(), 1_000_000, Rounding::Nearest).ok().filter(|load| LOADS.contains(load));
        let load = load.ok_or_else(|| {
            Error::plan("load", format!("'{text}'"), "a multiple of the plan's load, from 0.01 to 100")
        })?;
        Ok((load != 1_000_000).then(|| 1_000_000_000_000_000 / load))
    }

    /// Returns the weights of users, in millionths. Errors: [`Error::Plan`].
    pub(crate) fn scalars(&self) -> Result<Vec<(&str, u64)>> {
        let one = |(user, text): &'_ (String, String)| {
            let weight = decimal(text.as_bytes(), 1_000_000, Rounding::Nearest).ok().filter(|weight| *weight > 0);
            weight.ok_or_else(|| Error::plan("weights", format!("'{text}' for '{user}'"), "a weight above 0"))
        };
        self.weights.iter().map(|pair| Ok((pair.0.as_str(), one(pair)?))).collect()
    }
}
