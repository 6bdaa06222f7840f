//! The part of the report that simulates: the engine as a WebAssembly module, the inputs of the first run, and a script for the controls.
//!
//! The part is optional. Only with it the page runs WebAssembly and a worker, and only then its security policy permits both.

use std::io::Write as _;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use maud::Markup;
use plimsoll_base::escape::script_json;
use serde::Serialize;

use crate::html::data_section;

/// The script of the controls.
pub(crate) const SIMULATE: &str = include_str!("simulate.js");

/// The script of the worker.
const WORKER: &str = concat!(include_str!("host.js"), include_str!("worker.js"));

/// The controls of the part, and the values that a new run is compared with.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SimulatorControls {
    /// The seed of the run, as text because scripts round large integers; absent for a trace.
    pub seed: Option<String>,
    /// The policies of the report that the engine supports, each with the stored row of its first run: CSV with a header.
    pub stored: Vec<(String, String)>,
    /// The policies of the report that the engine does not support, with the reason.
    pub refused: Vec<(String, String)>,
    /// Other policies.
    pub others: Vec<String>,
    /// The offered load of the plan as a share of the capacity of its machines; absent if it is not defined.
    pub load: Option<f64>,
    /// The capacity of a machine of each group, and the number of machines.
    pub machines: Vec<(String, u32)>,
    /// Why the numbers of machines cannot be changed; absent if they can.
    pub machines_fixed: Option<String>,
    /// Why the weights cannot be changed; absent if they can.
    pub weights_fixed: Option<String>,
    /// The first users with their weights in the plan.
    pub users: Vec<(String, f64)>,
    /// The number of all users.
    pub user_count: u64,
    /// The number of tasks.
    pub tasks: u64,
}

/// The data of the part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimulatorData {
    controls: String,
    input: String,
    module: String,
}

impl SimulatorData {
    /// Packs the data: the controls, the input of the module (a request in JSON, a zero byte and the rows as a canonical trace), and the
    /// module.
    pub fn new(controls: &SimulatorControls, input: &[u8], module: &[u8]) -> SimulatorData {
        let controls = serde_json::to_string(controls).expect("numbers and texts have a form in JSON");
        SimulatorData { controls: script_json(&controls), input: packed(input), module: packed(module) }
    }

    /// Formats the section of the page.
    pub(crate) fn section(&self) -> Markup {
        let blocks = [
            ("application/json", "controls", self.controls.as_str()),
            ("text/plain", "worker", WORKER),
            ("text/plain", "input", &self.input),
            ("text/plain", "module", &self.module),
        ];
        data_section("simulate", "Simulate", &blocks)
    }
}

/// Compresses bytes with gzip and encodes them in base64.
fn packed(bytes: &[u8]) -> String {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    let written = packed.write_all(bytes).and_then(|()| packed.finish());
    STANDARD.encode(written.expect("memory can be written"))
}
