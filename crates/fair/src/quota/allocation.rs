//! Runtime quotas of a tree of groups.
//!
//! Requests are added up from the leaves to the root, each cut to its max. Runtime quotas are then computed from the root to the leaves:
//! each parent's quota is poured over its children (see `pour`), and then rounded according to [`Rounding`]. If minimums exceed the total,
//! [`Overcommit`] decides. Each resource is computed independently.

use super::by_tree::by_tree;
use super::instance::{GroupInstance, QuotaGroup};
use super::pour::{Bucket, Method, Poured, pour};
use super::rounding;
use crate::Exact;
use crate::water::Semantics as Variant;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::named;

named! {
    /// The conversion of fractions into whole units. Both whole-unit rules hand out all units; each keeps a property that the other
    /// violates.
    Rounding {
        Exact "exact": "Fractions stay",
        /// Stays near the fraction, but a group may lose a unit if the total grows by one. For [`Variant::MinPlusShare`].
        LargestRemainder "largest-remainder":
            "In every round to the largest remainders, ties by name, as Koordinator does it",
        /// A group with a large ratio may get more than its fraction rounded up.
        Monotone "monotone": "Unit by unit to the lowest level, ties by name: a larger total reduces the quota of no group",
    }
}

named! {
    /// The rule for minimums that add up to more than the total.
    Overcommit {
        /// The base is the requested part of the minimum.
        Keep "keep": "Every group is given its base and the sum exceeds the total",
        Scale "scale": "All are cut to the same part of their base",
        Level "level": "The total is shared by min, up to the base",
    }
}

/// The rules for runtime quotas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// The meaning of a minimum.
    pub variant: Variant,
    /// The rounding: fractions or whole units.
    pub rounding: Rounding,
    /// The method that finds the level. [`Rounding::LargestRemainder`] is defined by rounds and uses its own.
    pub method: Method,
    /// The rule for minimums that exceed the total.
    pub overcommit: Overcommit,
}

/// The amounts of one group, one entry per resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupShare {
    /// The request: the group's own plus the requests of its child groups, each cut to its max.
    pub request: Vec<Exact>,
    /// The usable amount: the request cut to the max; at least the minimum if the group does not lend it.
    pub limited: Vec<Exact>,
    /// The minimum amount that must be given to the group.
    pub base: Vec<Exact>,
    /// The runtime quota: the maximum that the group may use now.
    pub runtime: Vec<Exact>,
    /// The water level among the children of the group's parent.
    pub level: Vec<Exact>,
}

/// Runtime quotas. Entries follow the groups of the instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupAllocation {
    /// One entry per group.
    pub groups: Vec<GroupShare>,
    /// Pairs of a parent (`None` is the root) and a resource for which the minimums add up to more than the total.
    pub overcommitted: Vec<(Option<usize>, usize)>,
    /// The largest number of rounds among the groups of one parent, one entry per resource; empty for methods without rounds.
    pub rounds: Vec<usize>,
}

impl Quota {
    /// Computes every group's runtime quota, resource by resource.
    ///
    /// Requests are added up from the leaves. Each is cut to its max, and is at least the minimum if the group does not lend it. If any
    /// group of the instance has `used`, the amount that a group must keep is added up too, as in Koordinator. It is the group's own use
    /// plus, for each child group, the amount that the child must keep or its minimum, whichever is larger. From the root down, each
    /// group's runtime quota is the total for its child groups. The tree is not flattened: a group's ratio counts among the children of its
    /// parent.
    ///
    /// If the bases exceed the total, [`Overcommit`] decides. A group of ratio 0 gets its base only. A min above the max is cut to the max.
    /// Without capacity of a resource, all quotas are 0. Cost: O(resources · groups · log groups) for [`Method::Sort`].
    ///
    /// Errors: [`Error::Plan`] for rounding amounts that are not whole, for numbers too fine for [`Method::Tree`], and for
    /// [`Rounding::LargestRemainder`] with [`Variant::MaxMinLevel`].
    pub fn allocate(&self, instance: &GroupInstance) -> Result<GroupAllocation> {
        self.check(instance)?;
        let shares = instance.groups().iter().map(|_| GroupShare::default()).collect();
        let in_rounds = self.method == Method::Iterative || self.rounding == Rounding::LargestRemainder;
        let rounds = vec![0; if in_rounds { instance.resources().len() } else { 0 }];
        let mut result = GroupAllocation { groups: shares, overcommitted: Vec::new(), rounds };
        for r in 0..instance.resources().len() {
            let claims = Claims::new(instance, r);
            let mut runtime = vec![Exact::ZERO; instance.groups().len()];
            let mut level = runtime.clone();
            if let Some(capacity) = &instance.capacity()[r] {
                let parents = std::iter::once(None).chain(instance.top_down().iter().copied().map(Some));
                for parent in parents.filter(|parent| !instance.children(*parent).is_empty()) {
                    let total = parent.map_or(capacity, |group| &runtime[group]).clone();
                    let children = instance.children(parent);
                    let shared = self.share(&total, children, &claims, instance, r)?;
                    if let Some(rounds) = result.rounds.get_mut(r) {
                        *rounds = shared.rounds.max(*rounds);
                    }
                    for (&child, content) in children.iter().zip(shared.content) {
                        (runtime[child], level[child]) = (content, shared.level.clone());
                    }
                    if claims.base(children) > total {
                        result.overcommitted.push((parent, r));
                    }
                }
            }
            for (i, group) in result.groups.iter_mut().enumerate() {
                group.request.push(claims.request[i].clone());
                group.limited.push(claims.limited[i].clone());
                group.base.push(claims.base[i].clone());
                group.runtime.push(runtime[i].clone());
                group.level.push(level[i].clone());
            }
        }
        Ok(result)
    }

    /// Returns the amounts of the groups of one parent, base included.
    fn share(
        &self,
        total: &Exact,
        groups: &[usize],
        claims: &Claims,
        instance: &GroupInstance,
        r: usize,
    ) -> Result<Poured<Exact>> {
        let names: Vec<&str> = groups.iter().map(|&i| instance.groups()[i].name.as_str()).collect();
        let base = claims.base(groups);
        let buckets = |bucket: &dyn Fn(usize) -> Bucket<Exact>| groups.iter().map(|&i| bucket(i)).collect::<Vec<_>>();
        let floors = || groups.iter().map(|&i| claims.base[i].clone());
        let ratio = |i: usize| instance.groups()[i].ratio[r].clone();
        if base > *total {
            let by = |weight: &[Exact]| {
                let cut =
                    |i: usize| Bucket { low: Exact::ZERO, high: claims.base[i].clone(), ratio: weight[i].clone() };
                self.poured(total, &buckets(&cut), &names)
            };
            let shared = match self.overcommit {
                Overcommit::Keep => Poured { content: floors().collect(), level: Exact::ZERO, rounds: 0 },
                // All buckets have the same saturation, so all groups are cut to the same part of their base.
                Overcommit::Scale => by(&claims.base)?,
                Overcommit::Level => by(&claims.promised)?,
            };
            // There is no water above the minimums.
            return Ok(Poured { level: Exact::ZERO, ..shared });
        }
        match self.variant {
            Variant::MinPlusShare => {
                let above = |i: usize| {
                    let high = &claims.limited[i] - &claims.base[i];
                    Bucket { low: Exact::ZERO, high, ratio: ratio(i) }
                };
                let mut shared = self.poured(&(total - &base), &buckets(&above), &names)?;
                shared.content = shared.content.iter().zip(floors()).map(|(share, floor)| share + &floor).collect();
                Ok(shared)
            }
            Variant::MaxMinLevel => {
                let whole = |i: usize| {
                    let (low, high) = (claims.base[i].clone(), claims.limited[i].clone());
                    Bucket { low, high, ratio: ratio(i) }
                };
                self.poured(total, &buckets(&whole), &names)
            }
        }
    }

    fn poured(&self, total: &Exact, buckets: &[Bucket<Exact>], names: &[&str]) -> Result<Poured<Exact>> {
        let mut poured = match self.method {
            Method::Tree => by_tree(total, buckets)?,
            method => pour(method, total, buckets),
        };
        match self.rounding {
            Rounding::Exact => {}
            Rounding::LargestRemainder => {
                (poured.content, poured.rounds) = rounding::largest_remainder(total, buckets, names);
            }
            Rounding::Monotone => poured.content = rounding::monotone(&poured, buckets, names),
        }
        Ok(poured)
    }

    fn check(&self, instance: &GroupInstance) -> Result<()> {
        if self.rounding == Rounding::Exact {
            return Ok(());
        }
        if (self.rounding, self.variant) == (Rounding::LargestRemainder, Variant::MaxMinLevel) {
            let expected = "min-plus-share with it, or monotone: it is defined by rounds that share what is above the \
                            minimums";
            return Err(Error::plan("rounding of max-min-level", "largest-remainder", expected));
        }
        let whole = |what: String, amount: &Exact| match amount.is_integer() {
            true => Ok(()),
            false => Err(Error::plan(what, amount, "a whole number to round to whole units, or rounding exact")),
        };
        for (r, resource) in instance.resources().iter().enumerate() {
            if let Some(capacity) = &instance.capacity()[r] {
                whole(format!("capacity, {resource}"), capacity)?;
            }
            for group in instance.groups() {
                let of = |what: &str| format!("group '{}', {what}, {resource}", group.name);
                whole(of("request"), &group.request[r])?;
                whole(of("min"), &group.min[r])?;
                group.max[r].as_ref().map_or(Ok(()), |max| whole(of("max"), max))?;
                group.used.as_ref().map_or(Ok(()), |used| whole(of("used"), &used[r]))?;
            }
        }
        Ok(())
    }
}

/// The groups' claims on one resource, computed from the leaves up.
struct Claims {
    request: Vec<Exact>,
    limited: Vec<Exact>,
    base: Vec<Exact>,
    /// The minimum cut to the max, or the used amount if that is larger.
    promised: Vec<Exact>,
}

impl Claims {
    fn new(instance: &GroupInstance, r: usize) -> Claims {
        let groups = instance.groups();
        let none = || vec![Exact::ZERO; groups.len()];
        let floors = groups.iter().any(|group| group.used.is_some());
        let mut claims = Claims { request: none(), limited: none(), base: none(), promised: none() };
        for &i in instance.top_down().iter().rev() {
            let group = &groups[i];
            let sum = |own: Exact, of: &dyn Fn(usize) -> Exact| {
                instance.children(Some(i)).iter().fold(own, |sum, &child| &sum + &of(child))
            };
            let used = group.used.as_ref().map_or(Exact::ZERO, |used| used[r].clone());
            let request = group.request[r].clone().max(used.clone());
            claims.request[i] = sum(request, &|child| claims.limited[child].clone());
            // The amount that the group and its child groups must keep.
            let held = if floors { sum(used, &|child| claims.promised[child].clone()) } else { Exact::ZERO };
            let min = cut(group, r, group.min[r].clone());
            let asked = claims.request[i].clone();
            claims.limited[i] = cut(group, r, if group.lend { asked } else { asked.max(min.clone()) });
            claims.promised[i] = min.max(held);
            claims.base[i] = claims.promised[i].clone().min(claims.limited[i].clone());
        }
        claims
    }

    /// Returns the sum of the bases of the groups.
    fn base(&self, groups: &[usize]) -> Exact {
        groups.iter().map(|&i| &self.base[i]).sum()
    }
}

/// Returns an amount, cut to the group's max.
fn cut(group: &QuotaGroup, r: usize, amount: Exact) -> Exact {
    match &group.max[r] {
        Some(max) if *max < amount => max.clone(),
        _ => amount,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_amounts_are_rounded() {
        let group = QuotaGroup::new("a", vec![Exact::ratio(1, 2)]);
        let instance = GroupInstance::new(vec!["cpu".to_owned()], vec![Some(Exact::ONE)], vec![group]).expect("good");
        let rounded = Quota { rounding: Rounding::Monotone, ..Quota::default() };
        let error = rounded.allocate(&instance).expect_err("a half").to_string();
        assert!(error.starts_with("group 'a', request, cpu: 1/2 is not accepted; expected a whole number"), "{error}");
        let rounding = Rounding::LargestRemainder;
        let wrong = Quota { rounding, variant: Variant::MaxMinLevel, ..Quota::default() };
        assert!(wrong.allocate(&instance).expect_err("no such rounds").to_string().contains("min-plus-share"));
    }
}
