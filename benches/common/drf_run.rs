//! A run under DRF with the tables `runs`, `users` and `jobs`.

use std::path::Path;

use plimsoll::cluster::ClusterSpec;
use plimsoll::engine::Options;
use plimsoll::experiment::{Destination, RunSummary, SharedSupply, Simulation, Window, simulate};
use plimsoll::output::schema::Table;
use plimsoll::policy::{BUILT_IN, Registry};
use plimsoll::units::Span;

/// Executes the run, with a sample of the waiting demand every minute.
pub fn execute(
    supply: &SharedSupply,
    workload: &str,
    cluster: &ClusterSpec,
    options: &Options,
    folder: &Path,
) -> RunSummary {
    let simulation = Simulation {
        supply,
        workload,
        cluster,
        weights: None,
        mix: None,
        control: None,
        services: &[],
        options,
        sample: Span::from_secs(60),
        window: Window::default(),
        intervention: None,
        metrics: &[],
    };
    let to = Destination {
        folder: Some(folder.to_owned()),
        policy: "drf".to_owned(),
        run: 0,
        seed: None,
        axes: Vec::new(),
        tables: vec![Table::Runs, Table::Users, Table::Jobs],
        metadata: Vec::new(),
        saved: None,
    };
    let policy = Registry::new(BUILT_IN).policy("drf").expect("a policy");
    simulate(&simulation, &policy, &to, &mut |_, _| Ok(())).expect("a run").summary
}
