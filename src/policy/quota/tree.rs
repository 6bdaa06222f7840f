//! The groups of a run: what each holds and asks for, and what it may use.
//!
//! Requests go up, each cut to its group's limit; totals go down: what is shared under a group is the group's runtime
//! quota. A change touches the path from its leaf; levels elsewhere follow when somebody looks.

mod look;

use super::file::{QuotaFile, Reclaim, wrong};
use crate::error::{Result, nearest};
use crate::fluid::water::{Group, GroupId, Level, Semantics, UnusedMin, Water};
use crate::policy::Setup;
use crate::units::MAX_DIMS;

/// No group: the cluster itself is above.
pub(super) const TOP: u32 = u32::MAX;

/// A group.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub parent: u32,
    /// The set of siblings it belongs to, and its name there.
    pub set: u32,
    member: GroupId,
    /// By resource, one after the other, so that those that a run has share few cache lines.
    pub at: [Account; MAX_DIMS],
    lend: bool,
    /// Its siblings have not heard of a change yet.
    changed: bool,
    /// The look at which `runtime` was read.
    read: u64,
}

/// A group in one resource.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account {
    pub held: u64,
    /// What it was last seen to be allowed to use, rounded down.
    pub runtime: u64,
    /// What is asked for in it, not cut.
    request: u128,
    /// What of that its parent hears.
    passed: u64,
    min: u64,
    max: u64,
    ratio: u64,
}

/// Siblings, in every resource.
#[derive(Clone, Debug)]
struct Set {
    parent: u32,
    levels: Vec<Water>,
    /// The look at which the totals were set.
    read: u64,
}

/// All groups.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub nodes: Vec<Node>,
    sets: Vec<Set>,
    pub dims: usize,
    capacity: [u64; MAX_DIMS],
    /// No siblings ever share more: the cluster, or a minimum above that.
    ceiling: [u64; MAX_DIMS],
    reclaim: Reclaim,
    look: u64,
}

impl Tree {
    /// Errors: a resource that the run has not, or has in another unit; with its line.
    pub fn new(file: &QuotaFile, setup: &Setup) -> Result<Tree> {
        let dims = setup.dims.len();
        let mut tree = Tree {
            nodes: Vec::with_capacity(file.groups.len()),
            sets: Vec::new(),
            dims,
            capacity: setup.capacity.0,
            ceiling: setup.capacity.0,
            reclaim: file.reclaim,
            look: 1,
        };
        // The set under a group, by its place, and under the cluster, last.
        let mut under: Vec<Option<u32>> = vec![None; file.groups.len() + 1];
        for group in &file.groups {
            let parent = group.parent.map_or(TOP, |parent| parent as u32);
            let set = *under[group.parent.unwrap_or(file.groups.len())].get_or_insert_with(|| {
                tree.sets.push(Set { parent, levels: vec![Water::new(file.variant); dims], read: 0 });
                tree.sets.len() as u32 - 1
            });
            let mut node = Node {
                parent,
                set,
                member: GroupId(0),
                at: [Account { held: 0, runtime: 0, request: 0, passed: 0, min: 0, max: u64::MAX, ratio: group.ratio };
                    MAX_DIMS],
                lend: group.lend,
                changed: true,
                read: 0,
            };
            for (key, amounts) in [("min", &group.min), ("max", &group.max), ("ratio", &group.ratios)] {
                for (amount, value) in amounts {
                    let place = setup.dims.iter().position(|dim| dim.name == amount.dim.name);
                    let place = place.filter(|&d| key == "ratio" || setup.dims[d].unit == amount.dim.unit);
                    let Some(d) = place else {
                        let known: Vec<String> = setup.dims.iter().map(spelling).collect();
                        let hint = nearest(&amount.key, known.iter().map(String::as_str));
                        let hint = hint.map(|hint| format!(" (did you mean '{hint}'?)")).unwrap_or_default();
                        let problem = format!("is no resource of this run{hint}; expected {}", known.join(", "));
                        return Err(wrong(&file.path, amount.line, &format!("{key}.{}", amount.key), problem));
                    };
                    let account = &mut node.at[d];
                    *match key {
                        "min" => &mut account.min,
                        "max" => &mut account.max,
                        _ => &mut account.ratio,
                    } = *value;
                }
            }
            tree.ceiling.iter_mut().zip(&node.at).for_each(|(ceiling, at)| *ceiling = (*ceiling).max(at.min));
            tree.nodes.push(node);
        }
        for at in 0..tree.nodes.len() {
            let set = tree.nodes[at].set as usize;
            for d in 0..dims {
                // The same name in every resource.
                let group = group(&tree.nodes[at], d, tree.ceiling[d], tree.reclaim);
                tree.nodes[at].member = tree.sets[set].levels[d].join(&group)?;
            }
        }
        for at in 0..tree.nodes.len() as u32 {
            tree.update(at)?;
        }
        Ok(tree)
    }

    /// A group and those above it, upwards.
    pub fn path(&self, group: u32) -> impl Iterator<Item = u32> + use<'_> {
        std::iter::successors(Some(group), |&at| Some(self.nodes[at as usize].parent).filter(|&above| above != TOP))
    }

    /// Books what a leaf and all above it hold more, or less.
    pub fn hold(&mut self, leaf: u32, amounts: &[u64], more: bool) {
        let mut at = leaf;
        while at != TOP {
            let node = &mut self.nodes[at as usize];
            for (account, amount) in node.at.iter_mut().zip(amounts) {
                account.held = if more { account.held + amount } else { account.held - amount };
            }
            node.changed |= self.reclaim == Reclaim::Never;
            at = node.parent;
        }
    }

    /// Sets what is asked for in a leaf of resource `d`, by one user now and before; [`Tree::update`] tells the others.
    pub fn request(&mut self, leaf: u32, d: usize, amount: u128, before: u128) {
        let node = &mut self.nodes[leaf as usize];
        node.at[d].request = node.at[d].request - before + amount;
        node.changed |= amount != before;
    }

    /// Tells the siblings of a group, and all above, what it asks for and holds now. Errors: amounts too large to add.
    pub fn update(&mut self, leaf: u32) -> Result<()> {
        let mut at = leaf;
        while at != TOP && std::mem::take(&mut self.nodes[at as usize].changed) {
            let node = &mut self.nodes[at as usize];
            let (parent, mut before) = (node.parent, [0; MAX_DIMS]);
            for d in 0..self.dims {
                let group = group(node, d, self.ceiling[d], self.reclaim);
                self.sets[node.set as usize].levels[d].change(node.member, &group)?;
                let passed = pass(node, d);
                before[d] = std::mem::replace(&mut node.at[d].passed, passed);
            }
            if parent != TOP {
                for d in 0..self.dims {
                    let (before, passed) = (before[d], self.nodes[at as usize].at[d].passed);
                    let above = &mut self.nodes[parent as usize];
                    above.at[d].request = above.at[d].request - u128::from(before) + u128::from(passed);
                    above.changed |= before != passed;
                }
            }
            at = parent;
        }
        Ok(())
    }

    /// From here on runtime quotas are read anew.
    pub fn look_again(&mut self) {
        self.look += 1;
    }

    /// Reads the runtime quota of a group, and of all above it.
    pub fn read(&mut self, group: u32) {
        if self.nodes[group as usize].read == self.look {
            return;
        }
        let (set, member) = (self.nodes[group as usize].set as usize, self.nodes[group as usize].member);
        self.settle(set);
        for d in 0..self.dims {
            self.nodes[group as usize].at[d].runtime = self.sets[set].levels[d].runtime(member);
        }
        self.nodes[group as usize].read = self.look;
    }

    /// Sets the totals of a set of siblings.
    fn settle(&mut self, set: usize) {
        if self.sets[set].read == self.look {
            return;
        }
        self.sets[set].read = self.look;
        let parent = self.sets[set].parent;
        let totals = if parent == TOP {
            self.capacity
        } else {
            self.read(parent);
            self.nodes[parent as usize].at.map(|account| account.runtime)
        };
        for (level, total) in self.sets[set].levels.iter_mut().zip(totals) {
            level.set_total(total);
        }
    }

    /// How high the water stands in a set of siblings.
    pub fn level(&mut self, set: u32, d: usize) -> Level {
        self.settle(set as usize);
        self.sets[set as usize].levels[d].level()
    }

    /// The level from which on a group may use so much of resource `d`, if it depends on the level.
    pub fn level_for(&self, group: u32, d: usize, runtime: u64) -> Option<Level> {
        let node = &self.nodes[group as usize];
        let water = &self.sets[node.set as usize].levels[d];
        let standing = water.standing(node.member);
        let rising = standing.ratio() > 0 && runtime > standing.base() && runtime <= standing.reach();
        rising.then(|| match water.semantics() {
            Semantics::MinPlusShare => Level::of(runtime - standing.base(), standing.ratio()),
            Semantics::MaxMinLevel => Level::of(runtime, standing.ratio()),
        })
    }

    /// Where so much more in a leaf is above the quota: the group, the leaf or one above it, and the resource. Quotas
    /// as they were last read.
    pub fn above_quota(&self, leaf: u32, more: &[u64]) -> Option<(u32, usize)> {
        self.path(leaf).find_map(|at| {
            let node = &self.nodes[at as usize];
            let over = |d: &usize| node.at[*d].held.saturating_add(more[*d]) > node.at[*d].runtime;
            (0..self.dims).find(over).map(|d| (at, d))
        })
    }

    /// How many sets of siblings there are.
    pub fn sets(&self) -> usize {
        self.sets.len()
    }
}

/// A group in resource `d`, as its siblings see it.
fn group(node: &Node, d: usize, ceiling: u64, reclaim: Reclaim) -> Group {
    Group {
        // To ask for more than all siblings share gets nobody more than to ask for that.
        request: node.at[d].request.min(u128::from(ceiling)) as u64,
        min: node.at[d].min,
        max: node.at[d].max,
        ratio: node.at[d].ratio,
        unused_min: if node.lend { UnusedMin::Lent } else { UnusedMin::Kept },
        held: if reclaim == Reclaim::Never { node.at[d].held } else { 0 },
    }
}

/// What the parent of a group hears of its request in resource `d`.
fn pass(node: &Node, d: usize) -> u64 {
    let cut = node.at[d].request.min(u128::from(node.at[d].max)) as u64;
    if node.lend { cut } else { cut.max(node.at[d].min) }
}

/// How people write a resource of a run.
fn spelling(dim: &crate::units::Dim) -> String {
    match dim.unit {
        crate::units::Unit::Mebibyte => format!("{}_gib", dim.name),
        _ => dim.column(),
    }
}
