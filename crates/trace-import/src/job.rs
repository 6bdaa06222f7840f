//! Repairs the rows of one job: keys of rows, submit times, users, stages that wait for each other, equal rows.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use plimsoll_sim::workload::Quality;

use crate::draft::SetDraft;

/// The reason of a repair.
const NO_STAGE: &str = "waits for a stage without a row in the job; the dependency is dropped";

/// The drafts of one job, in the order of the log; there is at least one.
pub struct JobRows {
    /// The number of each row and its draft.
    pub drafts: Vec<(u64, SetDraft)>,
    /// The first submit time.
    pub first_submit: i64,
}

impl JobRows {
    /// Creates a job of these drafts; `None` if there are none.
    pub fn new(drafts: Vec<(u64, SetDraft)>) -> Option<JobRows> {
        let first_submit = drafts.iter().map(|(_, draft)| draft.submit).min()?;
        Some(JobRows { drafts, first_submit })
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        self.drafts.first().map_or("", |(_, draft)| &draft.job)
    }

    /// Returns the place of the job among the others: the first submit time and the first row.
    pub fn place(&self) -> (i64, u64) {
        (self.first_submit, self.drafts.first().map_or(0, |(row, _)| *row))
    }

    /// Returns the earliest draft, which has the user and the preceding job of all.
    pub fn earliest(&self) -> Option<&SetDraft> {
        self.drafts.iter().map(|(_, draft)| draft).min_by_key(|draft| (draft.submit, draft.order))
    }

    /// Replaces the keys of dependencies by the stages of the rows with these keys.
    pub fn replace_keys(&mut self, quality: &mut Quality) {
        let stage = |(_, draft): &(u64, SetDraft)| Some((draft.key.clone()?, draft.stage.clone()?));
        let stages: HashMap<String, String> = self.drafts.iter().filter_map(stage).collect();
        for (_, draft) in &mut self.drafts {
            let before = draft.after.len();
            let mut found: Vec<String> = draft.after.iter().filter_map(|key| stages.get(key).cloned()).collect();
            if found.len() < before {
                quality.repair_row(NO_STAGE);
            }
            found.dedup();
            draft.after = found;
        }
    }

    /// Gives all rows the first submit time and the first user, and removes stages that the job does not have.
    pub fn repair(&mut self, quality: &mut Quality) {
        if let [(_, draft)] = &self.drafts[..]
            && draft.after.is_empty()
        {
            return;
        }
        let Some(first) = self.earliest() else { return };
        let (user, preceding) = (first.user.clone(), first.preceding.clone());
        let stages: BTreeSet<String> = self.drafts.iter().filter_map(|(_, draft)| draft.stage.clone()).collect();
        for (_, draft) in &mut self.drafts {
            if draft.submit != self.first_submit {
                draft.submit = self.first_submit;
                quality.repair_row("rows of a job have different submit times; all are submitted with the first");
            }
            if draft.user != user {
                draft.user.clone_from(&user);
                quality.repair_row("rows of a job have different users; all have the first");
            }
            if draft.preceding != preceding {
                draft.preceding.clone_from(&preceding);
                quality.repair_row("rows of a job have different preceding jobs; all have the first");
            }
            let before = draft.after.len();
            draft.after.retain(|stage| stages.contains(stage));
            if draft.after.len() < before {
                quality.repair_row(NO_STAGE);
            }
        }
        if self.has_cycle() {
            for (_, draft) in self.drafts.iter_mut().filter(|(_, draft)| !draft.after.is_empty()) {
                draft.after.clear();
                quality.repair_row("stages of the job wait for each other; the dependencies are dropped");
            }
        }
    }

    /// Returns whether stages wait for each other.
    fn has_cycle(&self) -> bool {
        let mut waits: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (_, draft) in &self.drafts {
            if let (Some(stage), false) = (&draft.stage, draft.after.is_empty()) {
                waits.entry(stage).or_default().extend(draft.after.iter().map(String::as_str));
            }
        }
        // Removes stages that wait for no remaining stage, each stage and each dependency once.
        let mut remaining: BTreeMap<&str, usize> = BTreeMap::new();
        let mut followers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (&stage, after) in &waits {
            let open: Vec<&str> = after.iter().copied().filter(|before| waits.contains_key(before)).collect();
            remaining.insert(stage, open.len());
            open.into_iter().for_each(|before| followers.entry(before).or_default().push(stage));
        }
        let mut free: Vec<&str> = remaining.iter().filter(|(_, open)| **open == 0).map(|(stage, _)| *stage).collect();
        let mut removed = 0;
        while let Some(stage) = free.pop() {
            removed += 1;
            for follower in followers.get(&stage).into_iter().flatten() {
                if let Some(open) = remaining.get_mut(follower) {
                    *open -= 1;
                    if *open == 0 {
                        free.push(*follower);
                    }
                }
            }
        }
        removed < waits.len()
    }

    /// Removes deadlines before the origin.
    pub fn drop_early_deadlines(&mut self, origin: i64, quality: &mut Quality) {
        for (_, draft) in &mut self.drafts {
            if draft.deadline.is_some_and(|time| time < origin) {
                draft.deadline = None;
                quality.repair_row("a deadline before the first submission; it is removed");
            }
        }
    }

    /// Merges rows that differ only in their number of tasks. A sum above 2^32 - 1 tasks begins another row.
    pub fn merge(&mut self) {
        let mut first: HashMap<SetKey, usize> = HashMap::new();
        let mut merged: Vec<(u64, SetDraft)> = Vec::new();
        for (row, draft) in self.drafts.drain(..) {
            let SetDraft { set, stage, after, label, .. } = &draft;
            let key =
                (stage.clone(), after.clone(), set.duration.0, set.demand.0.to_vec(), label.clone(), set.priority);
            if let Some(&at) = first.get(&key)
                && is_same(&merged[at].1, &draft)
                && let Some(sum) = merged[at].1.set.tasks.checked_add(set.tasks)
            {
                merged[at].1.set.tasks = sum;
                continue;
            }
            first.insert(key, merged.len());
            merged.push((row, draft));
        }
        self.drafts = merged;
    }
}

/// The stage, the stages before it, the duration, the demand, the label and the priority of a row.
type SetKey = (Option<String>, Vec<String>, u64, Vec<u64>, Option<String>, u8);

/// Returns whether two rows of a job differ at most in their number of tasks.
fn is_same(known: &SetDraft, draft: &SetDraft) -> bool {
    let mut set = draft.set.clone();
    set.tasks = known.set.tasks;
    let SetDraft { user, stage, after, label, location, preceding, submit, deadline, .. } = known;
    let names = (user, stage, after, label, location)
        == (&draft.user, &draft.stage, &draft.after, &draft.label, &draft.location);
    names && known.set == set && (preceding, submit, deadline) == (&draft.preceding, &draft.submit, &draft.deadline)
}
