//! Water levels at selected instants of the first seed: each group is a bucket, as in the figures of the Fuxi article.
//!
//! The instants are the first ones at which the lent, missing and refused amounts are largest. At most `BUCKETS` groups of a parent have a
//! bucket.

use plimsoll_base::error::Result;
use plimsoll_base::units::resource_name;
use plimsoll_charts::figure::{Bucket, BucketPool, Data, buckets};
use plimsoll_charts::paper::Paper;
use plimsoll_results::read::Results;
use plimsoll_results::schema::Table;

use super::groups::{Family, GroupPoint, GroupTables, GroupValues, name, read};
use super::{Drawn, Gallery, seed_of};
use plimsoll_metrics::numbers::number;

/// Maximum number of resources with panels, side by side.
const RESOURCES: usize = 2;

/// Maximum number of panels.
const PANELS: usize = 12;

/// Maximum number of groups of one parent with a bucket.
const BUCKETS: usize = 24;

/// Draws one figure per policy with groups.
pub fn water(results: &Results, paper: &Paper) -> Result<Gallery> {
    let run = results.first_run();
    let families = match read(results, run)? {
        GroupTables::Nothing => return Ok(Gallery::default()),
        GroupTables::NoLevels => return Ok(Gallery::without_table("water", Table::Levels)),
        GroupTables::Families(families) => families,
    };
    let mut gallery = Gallery::default();
    for (nth, family) in families.iter().enumerate() {
        let policy = family.name(results);
        match draw(results, family) {
            Some((what, pools)) => gallery.figures.push(Drawn {
                name: name("water", nth, families.len()),
                caption: format!("Water levels of quota groups under {policy}{}: {what}", seed_of(results, run)),
                svg: buckets(&pools, paper.width),
                data: Data::of_pools(&pools),
            }),
            None => gallery.notes.push(format!("no figure 'water' of {policy}: its groups never requested anything")),
        }
    }
    Ok(gallery)
}

/// Returns a description of the figure, and the panels. `None` if no amount was ever lent, missing or refused.
fn draw(results: &Results, family: &Family) -> Option<(String, Vec<BucketPool>)> {
    let instants = telling(family);
    if instants.is_empty() {
        return None;
    }
    let resources: Vec<usize> = (0..results.dims.len().min(RESOURCES)).collect();
    let mut parents: Vec<Option<usize>> = std::iter::once(None).chain((0..family.groups.len()).map(Some)).collect();
    parents.retain(|parent| !family.children(*parent).is_empty());
    let all = parents.len();
    parents.truncate((PANELS / (instants.len() * resources.len())).max(1));
    let mut pools = Vec::new();
    for (time, what) in &instants {
        for &parent in &parents {
            for &d in &resources {
                let heading = format!("{}, {what}: {}", clock(*time), resource_name(&results.dims[d].name));
                pools.push(pool(family, parent, d, *time, heading));
            }
        }
    }
    let mut left_out = String::new();
    if parents.len() < all {
        left_out += &format!(" Groups under {} further parents are not shown.", all - parents.len());
    }
    if resources.len() < results.dims.len() {
        left_out += &format!(" Shown are the first {} resources.", resources.len());
    }
    let widest = parents.iter().map(|&parent| family.children(parent).len()).max().unwrap_or(0);
    if widest > BUCKETS {
        left_out += &format!(" Of the groups of one parent the {BUCKETS} with the largest quotas have a bucket.");
    }
    let what = format!(
        "the first grid points with the largest use of other groups' minimums, the largest deficit below requested \
         minimums, and the largest amount requested but not granted. A bucket is as wide as its group's ratio; its rim \
         is the request of the group, and the numbers are its runtime quota and its request.{left_out}"
    );
    Some((what, pools))
}

/// Formats a time of a run, to the second.
fn clock(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, 0) => format!("{hours} h {minutes} min"),
        (hours, minutes, seconds) => format!("{hours} h {minutes} min {seconds} s"),
    }
}

/// Returns the first instants with the largest lent, missing and refused amounts, in order of time, with the reason for their selection.
fn telling(family: &Family) -> Vec<(f64, String)> {
    let mut times: Vec<f64> =
        family.groups.iter().flat_map(|group| &group.at).flat_map(|at| &at.points).map(|point| point.time).collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    let leaves: Vec<usize> = (0..family.groups.len()).filter(|&group| family.is_leaf(group)).collect();
    // One pass over time, with the current state of every leaf.
    let resources = family.groups.first().map_or(0, |group| group.at.len());
    let mut best = [(0.0, 0.0); 3];
    let mut at = vec![0; family.groups.len() * resources];
    for &time in &times {
        let mut scores = [0.0; 3];
        for d in 0..resources {
            let (mut above, mut below, mut short, mut refused) = (0.0, 0.0, 0.0, 0.0);
            for &leaf in &leaves {
                let account = &family.groups[leaf].at[d];
                let next = &mut at[leaf * resources + d];
                while account.points.get(*next).is_some_and(|point| point.time <= time) {
                    *next += 1;
                }
                let Some(point) = next.checked_sub(1).map(|last| account.points[last]) else { continue };
                let [a, b, c, r] = parts(account, &point);
                (above, below, short, refused) = (above + a, below + b, short + c, refused + r);
            }
            let capacity = family.groups[0].at[d].capacity.max(f64::MIN_POSITIVE);
            for (score, amount) in scores.iter_mut().zip([f64::min(above, below), short, refused]) {
                *score += amount / capacity;
            }
        }
        for (best, score) in best.iter_mut().zip(scores) {
            // A difference in the last digits is ignored.
            if score > best.1 * (1.0 + 1e-9) {
                *best = (time, score);
            }
        }
    }
    let names = ["most lent", "most short of a min", "most refused"];
    let mut found: Vec<(f64, &str)> =
        best.iter().zip(names).filter(|((_, score), _)| *score > 0.0).map(|((time, _), name)| (*time, name)).collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut instants: Vec<(f64, String)> = Vec::new();
    for (time, name) in found {
        match instants.last_mut().filter(|(last, _)| *last == time) {
            Some((_, both)) => *both = format!("{both} and {name}"),
            None => instants.push((time, name.to_owned())),
        }
    }
    instants
}

/// Returns for a leaf: usage above the minimum, unused minimum, deficit, unmet demand.
fn parts(account: &GroupValues, point: &GroupPoint) -> [f64; 4] {
    let due = account.demand(point).min(account.min);
    [point.used - account.min, account.min - point.used, due - point.used, point.reach - point.runtime]
        .map(|amount| amount.max(0.0))
}

fn pool(family: &Family, parent: Option<usize>, d: usize, time: f64, heading: String) -> BucketPool {
    let mut members = family.children(parent);
    let standing = |group: usize| family.groups[group].at[d].at(time);
    if members.len() > BUCKETS {
        members.sort_by(|&a, &b| standing(b).runtime.total_cmp(&standing(a).runtime).then(a.cmp(&b)));
        members.truncate(BUCKETS);
        members.sort_unstable();
    }
    let bucket = |&group: &usize| {
        let (account, point) = (&family.groups[group].at[d], standing(group));
        let width = account.ratio;
        let per = |amount: f64| if width > 0.0 { amount / width } else { 0.0 };
        Bucket {
            label: family.groups[group].name.clone(),
            note: format!("{} of {}", number(Some(point.runtime)), number(Some(point.reach))),
            width,
            base: per(point.base),
            rim: per(if family.sunk { point.reach - point.base } else { point.reach }),
            lent: per((account.min - point.base).max(0.0)),
            used: Some(per(point.used)),
        }
    };
    let title = match parent {
        None => heading,
        Some(parent) => format!("{heading} under {}", family.groups[parent].name),
    };
    let level = members.first().map_or(0.0, |&group| standing(group).level);
    BucketPool { title, level, sunk: family.sunk, buckets: members.iter().map(bucket).collect() }
}

#[cfg(test)]
mod tests {
    use super::super::groups::GroupPanel;
    use super::*;

    fn group(name: &str, min: f64, points: &[[f64; 5]]) -> GroupPanel {
        let point = |&[time, used, request, runtime, reach]: &[f64; 5]| GroupPoint {
            time,
            used,
            request,
            runtime,
            reach,
            ..GroupPoint::default()
        };
        let points = points.iter().map(point).collect();
        let at = GroupValues { capacity: 100.0, ratio: 1.0, min, max: f64::INFINITY, used_s: 0.0, points };
        GroupPanel { name: name.to_owned(), parent: None, at: vec![at] }
    }

    #[test]
    fn telling_instants_are_the_first_of_their_kind() {
        let lender = group("lender", 50.0, &[[60.0, 0.0, 80.0, 65.0, 80.0], [120.0, 65.0, 190.0, 65.0, 190.0]]);
        let borrower = group("borrower", 0.0, &[[0.0, 90.0, 90.0, 90.0, 90.0], [60.0, 90.0, 90.0, 35.0, 90.0]]);
        let family = Family { policy: 0, label: String::new(), sunk: true, groups: vec![lender, borrower], end: 200.0 };
        // The lender has no row before its first request at 60 s. Therefore its minimum of 50 does not count as lent at 0 s.
        let instants = [(60.0, "most lent and most short of a min".to_owned()), (120.0, "most refused".to_owned())];
        assert_eq!(telling(&family), instants);
        let none = group("idle", 50.0, &[[0.0; 5]]);
        assert!(telling(&Family { groups: vec![none], ..family }).is_empty());
    }

    #[test]
    fn times_read_as_people_say_them() {
        let shown: Vec<String> = [0.0, 59.6, 540.0, 570.0, 3600.0, 9210.0].map(clock).into();
        assert_eq!(shown, ["0 s", "1 min", "9 min", "9 min 30 s", "1 h 0 min", "2 h 33 min 30 s"]);
    }
}
