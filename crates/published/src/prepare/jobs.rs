//! Jobs with deadlines on a pool of GPUs: the clusters of ElasticFlow (Gu et al., ASPLOS 2023).
//!
//! Parameters: `trace` and `gpus`.

use std::path::Path;

use super::{DataFolder, Parameters, write};
use plimsoll_base::error::Result;

/// Writes `trace.csv` and `machines.csv`. All jobs have one user.
pub fn elasticflow(data: &DataFolder, parameters: &Parameters, into: &Path) -> Result<()> {
    let sheet = data.sheet(&format!("published/elasticflow/{}.csv", parameters.text("trace")?))?;
    let mut lines = vec!["job,user,submit_s,duration_s,estimate_s,deadline_s,gpu".to_owned()];
    for row in 0..sheet.rows() {
        let field = |column: &str| sheet.number::<u64>(row, column);
        let (submit, duration) = (field("submit_s")?, field("duration_s")?);
        lines.push(format!(
            "{row},all,{submit},{duration},{duration},{},{}",
            field("deadline_s")?,
            field("gpus")?
        ));
    }
    write(&into.join("trace.csv"), lines)?;
    write(&into.join("machines.csv"), ["name,gpu".to_owned(), format!("pool,{}", parameters.text("gpus")?)])
}
