//! The inputs of FGD (Weng et al., USENIX ATC 2023): pods that arrive in a given order on nodes in a given order.
//!
//! Parameters: `trace`, and the seed of the orders. The mix is the list of pods before inflation. Traces `gpuspecNN` have the pods of
//! `default`, which accept the models of their column in `gpu_spec.csv`.

use std::collections::HashMap;
use std::path::Path;

use super::sheet::from_milli;
use super::{DataFolder, Parameters, write};
use plimsoll_base::error::{Error, Result};

/// The folder of the files in the data folder.
const FOLDER: &str = "published/fgd";

/// The duration of each pod in seconds: beyond the end of every run.
const DURATION_S: u64 = 1_000_000;

/// Writes `trace.csv`, `machines.csv` and `mix.csv`.
pub fn prepare(data: &DataFolder, parameters: &Parameters, into: &Path) -> Result<()> {
    let trace = parameters.text("trace")?;
    let listed = if trace.starts_with("gpuspec") { "default" } else { trace };
    let seed = parameters.seeds.first().ok_or_else(|| Error::plan("with", "no seed", "seed=N"))?;
    let column = format!("seed{seed}");
    let pods = data.sheet(&format!("{FOLDER}/pods_{listed}.csv"))?;
    let mut models: HashMap<usize, String> = HashMap::new();
    if listed != trace {
        let spec = data.sheet(&format!("{FOLDER}/gpu_spec.csv"))?;
        for row in 0..spec.rows() {
            let accepted = spec.text(row, trace)?;
            if !accepted.is_empty() {
                models.insert(spec.number(row, "pod")?, accepted.to_owned());
            }
        }
    }
    let mut by_pod: HashMap<usize, String> = HashMap::new();
    let mut listed_pods = Vec::new();
    for row in 0..pods.rows() {
        let pod: usize = pods.number(row, "pod")?;
        let (devices, part): (u64, u64) = (pods.number(row, "num_gpu")?, pods.number(row, "gpu_milli")?);
        let (cpu, memory): (u64, u64) = (pods.number(row, "cpu_milli")?, pods.number(row, "memory_mib")?);
        let accepted = models.get(&pod).filter(|_| devices > 0);
        let label = accepted.map_or(String::new(), |models| {
            models.split('|').map(|model| format!("model={model}")).collect::<Vec<_>>().join(" | ")
        });
        let demand = format!("{},{memory},{},{label}", from_milli(cpu), from_milli(devices * part));
        by_pod.insert(pod, demand);
        listed_pods.push(pod);
    }
    const HEADER: &str = "job,user,submit_s,duration_s,cpu,memory_mib,gpu,label";
    let row = |name: String, submit: usize, pod: usize| -> Result<String> {
        let demand = by_pod.get(&pod).ok_or_else(|| Error::Mismatch {
            problem: format!("the order of {trace} lists pod {pod}, which pods_{listed}.csv does not have"),
        })?;
        Ok(format!("{name},{name},{submit},{DURATION_S},{demand}"))
    };
    let mut lines = vec![HEADER.to_owned()];
    for pod in listed_pods {
        lines.push(row(format!("m{pod}"), 0, pod)?);
    }
    write(&into.join("mix.csv"), lines)?;
    let order = data.sheet(&format!("{FOLDER}/order_pods_{listed}.csv"))?;
    let mut lines = vec![HEADER.to_owned()];
    for position in 0..order.rows() {
        let pod = order.text(position, &column)?;
        if pod.is_empty() {
            break;
        }
        lines.push(row(format!("p{position}"), position, order.number(position, &column)?)?);
    }
    write(&into.join("trace.csv"), lines)?;
    let nodes = data.sheet(&format!("{FOLDER}/nodes.csv"))?;
    let order = data.sheet(&format!("{FOLDER}/order_nodes_{listed}.csv"))?;
    let mut lines = vec!["name,cpu,memory_mib,gpu,labels".to_owned()];
    for position in 0..order.rows() {
        let node: usize = order.number(position, &column)?;
        let cpu: u64 = nodes.number(node, "cpu_milli")?;
        lines.push(format!(
            "{},{},{},{},model={}",
            nodes.text(node, "name")?,
            from_milli(cpu),
            nodes.text(node, "memory_mib")?,
            nodes.text(node, "gpu")?,
            nodes.text(node, "model")?
        ));
    }
    write(&into.join("machines.csv"), lines)
}
