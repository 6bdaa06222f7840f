//! The suites of VTC (Sheng et al., OSDI 2024) as a fluid model: clients that send requests of equal length to a server of one slot.
//!
//! Parameters: `rates` (requests per second of each client), `seconds` (the time for which clients send), `on_off` (the number of a client
//! that sends in every other minute only, from 1), `served` (requests that the server completes per second). The requests of a client are
//! evenly spaced, the first one at 0.

use std::path::Path;

use super::{DataFolder, Parameters, write};
use plimsoll_base::error::{Error, Result};

fn number(text: &str, name: &str) -> Result<f64> {
    let value = text.parse().ok().filter(|value: &f64| *value > 0.0);
    value.ok_or_else(|| Error::plan(name, format!("'{text}'"), "a number above 0"))
}

/// Writes `trace.csv` and `machines.csv`.
pub fn prepare(_: &DataFolder, parameters: &Parameters, into: &Path) -> Result<()> {
    let seconds = number(parameters.text("seconds")?, "seconds")?;
    let duration_us = (1e6 / number(parameters.text("served")?, "served")?).round() as u64;
    let on_off: usize = match parameters.text_or("on_off", "") {
        "" => 0,
        text => number(text, "on_off")? as usize,
    };
    let mut requests: Vec<(u64, usize, u64)> = Vec::new();
    for (client, rate) in parameters.text("rates")?.split_whitespace().enumerate() {
        let rate = number(rate, "rates")?;
        for request in 0..(rate * seconds).round() as u64 {
            let at_us = (request as f64 / rate * 1e6).round() as u64;
            let is_off = client + 1 == on_off && at_us / 60_000_000 % 2 == 1;
            if !is_off {
                requests.push((at_us, client + 1, request));
            }
        }
    }
    requests.sort_unstable();
    let mut lines = vec!["job,user,submit_us,duration_us,slots".to_owned()];
    for (at_us, client, request) in requests {
        lines.push(format!("c{client}-{request},c{client},{at_us},{duration_us},1"));
    }
    write(&into.join("trace.csv"), lines)?;
    write(&into.join("machines.csv"), ["name,slots".to_owned(), "server,1".to_owned()])
}
