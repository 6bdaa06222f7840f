//! The placement of selected jobs on accelerators, and lease extensions.

use super::{NONE, SelectedEntry};

/// The servers of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// The names of the worker types.
    pub worker_types: Vec<String>,
    /// The accelerators of each server, per type.
    pub servers: Vec<Vec<u32>>,
}

impl Cluster {
    /// Creates a cluster of servers with one accelerator: `accelerators[j]` of type `worker_types[j]`.
    pub fn single(worker_types: &[&str], accelerators: &[u32]) -> Cluster {
        Cluster {
            worker_types: worker_types.iter().map(|name| (*name).to_owned()).collect(),
            servers: accelerators.iter().map(|&count| vec![1; count as usize]).collect(),
        }
    }

    /// Returns the accelerators of each type.
    pub fn capacity(&self) -> Vec<u32> {
        self.servers.iter().map(|servers| servers.iter().sum()).collect()
    }
}

/// A placed entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The selection.
    pub selected: SelectedEntry,
    /// The accelerators of the type, numbered server by server, ascending.
    pub accelerators: Vec<u32>,
    /// Whether the entry has the accelerators of the last round.
    pub kept: bool,
}

/// The accelerators of the last round.
#[derive(Clone, Debug, Default)]
pub struct Placement {
    /// Members, worker type and accelerators, sorted by members.
    pub(super) last: Vec<([u32; 2], usize, Vec<u32>)>,
}

impl Placement {
    /// Places a selection and stores it as the last round.
    ///
    /// Per type, in descending order of scale: first the entries that keep their accelerators, if all are free; then the others
    /// take free accelerators in order of the servers. A wide job may be split over servers.
    pub fn place(&mut self, cluster: &Cluster, selected: &[SelectedEntry]) -> Vec<Placed> {
        let mut placed = Vec::with_capacity(selected.len());
        for (j, servers) in cluster.servers.iter().enumerate() {
            let mut of_type: Vec<&SelectedEntry> = selected.iter().filter(|s| s.worker_type == j).collect();
            of_type.sort_by_key(|s| std::cmp::Reverse(s.scale));
            let mut free = vec![true; servers.iter().sum::<u32>() as usize];
            let mut next = 0;
            for group in of_type.chunk_by(|a, b| a.scale == b.scale) {
                let mut rest = Vec::new();
                for &&selected in group {
                    let last = self.last.binary_search_by_key(&selected.members, |(members, ..)| *members);
                    let last = last.ok().map(|at| &self.last[at]).filter(|(_, of, _)| *of == j);
                    match last {
                        Some((_, _, before)) if before.iter().all(|&at| free[at as usize]) => {
                            before.iter().for_each(|&at| free[at as usize] = false);
                            placed.push(Placed { selected, accelerators: before.clone(), kept: true });
                        }
                        _ => rest.push(selected),
                    }
                }
                for selected in rest {
                    let mut accelerators = Vec::with_capacity(selected.scale as usize);
                    while accelerators.len() < selected.scale as usize && next < free.len() {
                        if free[next] {
                            free[next] = false;
                            accelerators.push(next as u32);
                        }
                        next += 1;
                    }
                    placed.push(Placed { selected, accelerators, kept: false });
                }
            }
        }
        self.last.clear();
        self.last.extend(placed.iter().map(|p| (p.selected.members, p.selected.worker_type, p.accelerators.clone())));
        self.last.sort_unstable_by_key(|(members, ..)| *members);
        placed
    }

    /// Returns the ids of the jobs of the last round.
    pub fn jobs(&self) -> impl Iterator<Item = u32> + '_ {
        self.last.iter().flat_map(|(members, ..)| members.iter().copied()).filter(|&id| id != NONE)
    }
}
