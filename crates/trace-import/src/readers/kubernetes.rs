//! The output of `kubectl get pods -A -o json`.

use serde_json::Value;

use super::{RecordReader, items, text};
use crate::expr::quantity;
use crate::number::Fraction;

/// The columns of resources and their names in Kubernetes.
const RESOURCES: [&str; 3] = ["cpu", "memory", "nvidia.com/gpu"];

/// One row for each pod, with its requests (memory in bytes).
pub static READER: RecordReader = RecordReader {
    name: "kubernetes",
    columns: &[
        "namespace",
        "name",
        "job",
        "phase",
        "created",
        "scheduled",
        "finished",
        "cpu",
        "memory",
        "gpu",
        "node_selector",
        "priority",
        "other_resources",
    ],
    records: Some(&["items"]),
    convert: |pod| {
        let (metadata, spec, status) = (&pod["metadata"], &pod["spec"], &pod["status"]);
        if !metadata.is_object() {
            return Err("is no pod of the form {\"metadata\": ..., \"spec\": ...}".to_owned());
        }
        let owner = items(&metadata["ownerReferences"]).iter().find(|owner| text(&owner["kind"]) == "Job");
        let bound = items(&status["conditions"])
            .iter()
            .find(|condition| text(&condition["type"]) == "PodScheduled" && text(&condition["status"]) == "True");
        let ends = items(&status["containerStatuses"])
            .iter()
            .map(|container| text(&container["state"]["terminated"]["finishedAt"]));
        let ends: Vec<String> = ends.collect();
        // Times of one format and zone sort as texts; a container without an end has an empty text.
        let last = if ends.iter().any(String::is_empty) { None } else { ends.iter().max() };
        let selector = spec["nodeSelector"].as_object();
        let labels = selector.into_iter().flatten().map(|(key, value)| format!("{key}={}", text(value)));
        let [cpu, memory, gpu] = requests(spec)?;
        Ok(vec![vec![
            text(&metadata["namespace"]),
            text(&metadata["name"]),
            owner.map(|owner| text(&owner["name"])).unwrap_or_default(),
            text(&status["phase"]),
            text(&metadata["creationTimestamp"]),
            bound.map(|condition| text(&condition["lastTransitionTime"])).unwrap_or_default(),
            last.cloned().unwrap_or_default(),
            cpu,
            memory,
            gpu,
            labels.collect::<Vec<_>>().join(" & "),
            text(&spec["priority"]),
            other_resources(spec),
        ]])
    },
};

fn containers(spec: &Value) -> impl Iterator<Item = &Value> {
    items(&spec["containers"]).iter().chain(items(&spec["initContainers"]))
}

/// Returns the demand in each resource: the larger of the sum of the containers and the largest init container, plus the overhead. The
/// texts are empty if no container requests a resource. Errors: a quantity cannot be read.
fn requests(spec: &Value) -> Result<[String; 3], String> {
    let none = String::new;
    if !containers(spec)
        .any(|container| container["resources"]["requests"].as_object().is_some_and(|map| !map.is_empty()))
    {
        return Ok([none(), none(), none()]);
    }
    let amount = |amounts: &Value, resource: &str| -> Result<Fraction, String> {
        let given = text(&amounts[resource]);
        if given.is_empty() {
            return Ok(Fraction::ZERO);
        }
        quantity(&given).ok_or_else(|| format!("'{}' is no quantity of {resource}", crate::value::short(&given)))
    };
    let mut texts = [none(), none(), none()];
    for (demand, resource) in texts.iter_mut().zip(RESOURCES) {
        let mut sum = Fraction::ZERO;
        for container in items(&spec["containers"]) {
            sum = sum
                .plus(amount(&container["resources"]["requests"], resource)?)
                .ok_or("has a request that is too large")?;
        }
        for container in items(&spec["initContainers"]) {
            sum = sum.max(amount(&container["resources"]["requests"], resource)?);
        }
        sum = sum.plus(amount(&spec["overhead"], resource)?).ok_or("has an overhead that is too large")?;
        *demand = sum.to_string();
    }
    Ok(texts)
}

/// Returns the names of requested resources without a column.
fn other_resources(spec: &Value) -> String {
    let all = containers(spec).filter_map(|container| container["resources"]["requests"].as_object());
    let mut names: Vec<&str> =
        all.flatten().map(|(name, _)| name.as_str()).filter(|name| !RESOURCES.contains(name)).collect();
    names.sort_unstable();
    names.dedup();
    names.join(";")
}
