//! The mix of tasks that defines fragments of devices: the tasks of the workload, or of a file.

use crate::simulate::Simulation;
use crate::supply;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::pinned::Pinned;
use plimsoll_sim::cluster::{Cluster, Mix, Placement, PodDemand, PodMix, pod_demand};
use plimsoll_sim::workload::{CsvTrace, Input, Source};

/// Sets the mixes of a cluster with devices. Errors: those of the file, a label that no machine carries, and [`Error::Mismatch`] if the file
/// has other resources than the cluster.
pub fn define_fragments(simulation: &Simulation, cluster: &mut Cluster) -> Result<()> {
    let workload = || simulation.supply.source();
    fragments_of(simulation.mix, simulation.options.placement, &workload, &|| simulation.supply.mix(), cluster)
}

/// As [`define_fragments`], from a file or the rows of a workload with the mix `known`. Errors: as there.
pub fn fragments_of<'a>(
    file: Option<&Pinned>,
    placement: Placement,
    workload: &dyn Fn() -> Result<Box<dyn Source + 'a>>,
    known: &dyn Fn() -> Result<Mix>,
    cluster: &mut Cluster,
) -> Result<()> {
    if cluster.hardware.is_none() {
        return Ok(());
    }
    let by_file = file.map(|file| Input::File(file.clone()));
    let open = || -> Result<Box<dyn Source + 'a>> {
        let source: Box<dyn Source + 'a> = match &by_file {
            Some(input) => Box::new(CsvTrace::declaring(input, &[])?),
            None => workload()?,
        };
        if !cluster.dims.starts_with(source.dims()) {
            let names =
                |dims: &[plimsoll_base::units::Dim]| dims.iter().map(|dim| dim.column()).collect::<Vec<_>>().join(", ");
            let problem = format!(
                "the mix of tasks has the resources {}; expected the first of {}, in this order",
                names(source.dims()),
                names(&cluster.dims)
            );
            return Err(Error::Mismatch { problem });
        }
        Ok(source)
    };
    let mix = match &by_file {
        Some(_) => supply::mix(&mut *open()?)?,
        None => known()?,
    };
    let pods = match placement {
        Placement::KssFgd | Placement::KssFgdExact => Some(pods(&mut *open()?, cluster)?),
        _ => None,
    };
    if let Some(hardware) = &mut cluster.hardware {
        hardware.measure_by(mix);
        hardware.count_pods(pods.unwrap_or_default());
    }
    Ok(())
}

/// Returns the kinds of pods of a source. Errors: those of the source, and a label that no machine carries.
fn pods(source: &mut dyn Source, cluster: &Cluster) -> Result<PodMix> {
    let Some((cores, devices)) = cluster.hardware.as_ref().and_then(|hardware| hardware.cores_and_devices()) else {
        return Ok(PodMix::default());
    };
    let mut labels = cluster.labels.clone();
    let mut demands: Vec<PodDemand> = Vec::new();
    while let Some(set) = source.next_set()? {
        let label = set.label.map(|label| source.label_name(label).to_owned());
        let label = label.map(|text| {
            let class = labels.class(&text).map_err(|problem| Error::Mismatch { problem })?;
            Ok::<_, Error>((text, labels.members(class).clone()))
        });
        demands.push(pod_demand(&set.demand, cores, devices, label.transpose()?, u64::from(set.tasks)));
    }
    Ok(PodMix::new(demands))
}
