//! Draws quotas: one panel per resource and parent.

use crate::fair::quota::{GroupAllocation, GroupInstance, Variant};
use crate::output::figure::{Bucket, BucketPool, Data, buckets};
use crate::output::numbers::number;

/// Maximum number of panels.
const PANELS: usize = 12;

/// Returns the figure, its data, and the number of panels that do not fit. Resources with a total of zero are omitted.
pub fn draw(
    instance: &GroupInstance,
    allocation: &GroupAllocation,
    variant: Variant,
    width: Option<f64>,
) -> (String, Data, usize) {
    let parents = std::iter::once(None).chain(instance.depth_first().into_iter().map(|(group, _)| Some(group)));
    let families: Vec<Option<usize>> = parents.filter(|parent| !instance.children(*parent).is_empty()).collect();
    let mut pools = Vec::new();
    for r in (0..instance.resources().len()).filter(|&r| instance.capacity()[r].is_some()) {
        pools.extend(families.iter().map(|&parent| pool(instance, allocation, variant, parent, r)));
    }
    let left_out = pools.len().saturating_sub(PANELS);
    pools.truncate(PANELS);
    (buckets(&pools, width), Data::of_pools(&pools), left_out)
}

fn pool(
    instance: &GroupInstance,
    allocation: &GroupAllocation,
    variant: Variant,
    parent: Option<usize>,
    r: usize,
) -> BucketPool {
    let sunk = variant == Variant::MinPlusShare;
    let bucket = |&i: &usize| {
        let (group, share) = (&instance.groups()[i], &allocation.groups[i]);
        let width = group.ratio[r].to_f64();
        let (base, limited) = (share.base[r].to_f64(), share.limited[r].to_f64());
        // A bucket of zero width is not drawn; the panel states the number of such buckets.
        let per = |amount: f64| if width > 0.0 { amount / width } else { 0.0 };
        Bucket {
            label: group.name.clone(),
            note: format!("{} of {}", number(Some(share.runtime[r].to_f64())), number(Some(limited))),
            width,
            base: per(base),
            rim: per(if sunk { limited - base } else { limited }),
            lent: 0.0,
            used: None,
        }
    };
    let children = instance.children(parent);
    let (title, total) = match parent {
        None => (instance.resources()[r].clone(), instance.capacity()[r].as_ref().map(|all| all.to_f64())),
        Some(group) => {
            let title = format!("{} under {}", instance.resources()[r], instance.groups()[group].name);
            (title, Some(allocation.groups[group].runtime[r].to_f64()))
        }
    };
    let level = children.first().map_or(0.0, |&i| allocation.groups[i].level[r].to_f64());
    let title = format!("{title}: {}", number(total));
    BucketPool { title, level, sunk, buckets: children.iter().map(bucket).collect() }
}
