//! Kueue: ClusterQueues and Cohorts, with the LocalQueues that name their users and the Configuration that defines their preemption.
//!
//! A cohort that is named and not defined becomes a group without keys. Quotas are summed over flavours, because a file of queues has no
//! flavours. In Kueue, separate trees share nothing; the import therefore gives the top group of each tree limits of 0.
//!
//! Source: Kueue, apis/kueue/v1beta1 and v1beta2 (ClusterQueue, Cohort, LocalQueue), apis/config (Configuration).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::diagnostics::Diagnostics;
use crate::group::{QueueGroup, Queues, Setting};
use crate::objects::{Fields, Object, objects};
use crate::quantity::{Quantities, Resource};
use crate::{FormatRow, ParsedSource, property};
use plimsoll_base::error::Result;
use plimsoll_base::tree::{Entry, Node, Place, brief};
use plimsoll_base::units::Dim;

pub static ROW: FormatRow = FormatRow {
    name: "kueue",
    about: "Kueue's ClusterQueues and Cohorts",
    layout: "ClusterQueue, Cohort, LocalQueue (kueue.x-k8s.io) and Configuration (config.kueue.x-k8s.io), in YAML or JSON",
    properties: &[
        property("nominalQuota", "nominal", "", "`[capacity]` is the sum of all nominal quotas"),
        property(
            "borrowingLimit",
            "limit",
            "",
            "absent: no limit. With several flavours, the sum is written only if each flavour has a limit",
        ),
        property("lendingLimit", "lend_limit", "", "absent: no limit. A flavour without a limit lends its whole quota"),
        property(
            "flavors",
            "",
            "",
            "several flavours of a resource are summed, with a warning: Kueue borrows within a flavour",
        ),
        property(
            "cohort",
            "parent",
            "",
            "also `cohortName`, `parentName` and `parent`; a cohort that is named and not defined is a group without keys. \
                 If there are several trees, the top group of each gets `limit` and `lend_limit` of 0, with a warning: in Kueue \
                 separate trees share nothing, but groups under one root do",
        ),
        property("weight", "weight", "", "of `fairSharing`: `1500m` is 1.5"),
        property("withinClusterQueue", "within", "never", "of `preemption`"),
        property("reclaimWithinCohort", "reclaim", "never", "of `preemption`"),
        property("borrowWithinCohort", "borrow_within", "", "the key `policy`, unless its value is `Never`"),
        property("queueingStrategy", "order", "best-effort-fifo", ""),
        property(
            "preemptionStrategies",
            "[policy] preemption_strategies",
            "both, if there is a Configuration",
            "of `fairSharing` of the Configuration; not written, with a warning, if \
                 fair sharing is not enabled",
        ),
        property("clusterQueue", "users", "", "of a LocalQueue: `NAMESPACE/NAME`"),
        property(
            "namespaceSelector",
            "users",
            "",
            "without LocalQueues, if it lists namespaces by name: `NAMESPACE/*`; a namespace that several queues \
                 select is assigned to no queue, with a warning",
        ),
    ],
    ours: &[],
    policies: &["kueue"],
    source: "Kueue, apis/kueue/v1beta1 and v1beta2",
    recognises: |source| source.has_api(&[API, CONFIG]),
    read,
};

const API: &str = "kueue.x-k8s.io";
const CONFIG: &str = "config.kueue.x-k8s.io";

const WITHIN: [(&str, &str); 3] = [
    ("Never", "never"),
    ("LowerPriority", "lower-priority"),
    ("LowerOrNewerEqualPriority", "lower-or-newer-equal-priority"),
];
const RECLAIM: [(&str, &str); 3] = [("Never", "never"), ("LowerPriority", "lower-priority"), ("Any", "any")];
const BORROW: [(&str, &str); 2] = [("Never", "never"), ("LowerPriority", "lower-priority")];
const ORDER: [(&str, &str); 2] = [("BestEffortFIFO", "best-effort-fifo"), ("StrictFIFO", "strict-fifo")];
const STRATEGIES: [(&str, &str); 2] = [
    ("LessThanOrEqualToFinalShare", "less-than-or-equal-to-final-share"),
    ("LessThanInitialShare", "less-than-initial-share"),
];

/// The label that contains the name of a namespace. Namespace selectors refer to this label.
const NAMESPACE: &str = "kubernetes.io/metadata.name";

/// The groups that were read so far.
#[derive(Default)]
struct GroupReader<'n> {
    queues: Queues,
    /// The indices of cohorts and of queues, by name; a cohort and a queue may have the same name.
    cohorts: HashMap<&'n str, usize>,
    clusters: HashMap<&'n str, usize>,
    /// The index of each group with a cohort, the name of the cohort, and the location of that name.
    above: Vec<(usize, &'n str, &'n Place)>,
    /// The flavours of each resource, with the location of one of them.
    flavours: BTreeMap<String, (BTreeSet<&'n str>, &'n Place)>,
    /// The namespaces that the selector of a queue names, with the queue's index and the location.
    namespaces: Vec<(usize, Vec<&'n str>, &'n Place)>,
    /// The users of each queue.
    users: HashMap<usize, Vec<String>>,
    /// The users of all queues.
    named: BTreeSet<String>,
}

fn read(sources: &[ParsedSource], notes: &mut Diagnostics) -> Result<Queues> {
    let all = objects(sources)?;
    let mut reader = GroupReader::default();
    for object in &all {
        match (object.api, object.kind) {
            (API, "ClusterQueue") => reader.cluster_queue(object, notes)?,
            (API, "Cohort") => reader.cohort(object, notes)?,
            (API, "LocalQueue") => {}
            (CONFIG, "Configuration") => reader.configuration(object, notes)?,
            _ => object.leave(notes),
        }
    }
    for object in all.iter().filter(|object| (object.api, object.kind) == (API, "LocalQueue")) {
        reader.local_queue(object, notes)?;
    }
    reader.connect(notes)?;
    reader.name_users(notes);
    reader.part(notes);
    for (name, (flavours, place)) in &reader.flavours {
        if flavours.len() > 1 {
            let names = flavours.iter().copied().collect::<Vec<_>>().join(", ");
            let message = format!(
                "{} has several flavours ({}): their quotas are summed, while Kueue borrows within a flavour",
                brief(name),
                brief(&names)
            );
            notes.add(place, message);
        }
    }
    Ok(reader.queues)
}

impl<'n> GroupReader<'n> {
    fn cluster_queue(&mut self, object: &Object<'n>, notes: &mut Diagnostics) -> Result<()> {
        let head = object.head(notes)?;
        let mut group = QueueGroup::new(head.name, head.place);
        let mut spec = object.spec()?;
        self.quotas(&mut group, &mut spec, notes)?;
        weight(&mut group, &mut spec, notes)?;
        let mut preemption = spec.below("preemption")?;
        // Kueue's defaults are written explicitly, so that the file does not depend on the defaults of the policy that reads it.
        group.set("within", Setting::Word(preemption.choice("withinClusterQueue", &WITHIN)?.unwrap_or("never")));
        group.set("reclaim", Setting::Word(preemption.choice("reclaimWithinCohort", &RECLAIM)?.unwrap_or("never")));
        let mut borrow = preemption.below("borrowWithinCohort")?;
        if let Some("lower-priority") = borrow.choice("policy", &BORROW)? {
            group.set("borrow_within", Setting::Word("lower-priority"));
        }
        borrow.rest(notes);
        preemption.rest(notes);
        group.set("order", Setting::Word(spec.choice("queueingStrategy", &ORDER)?.unwrap_or("best-effort-fifo")));
        stop(&mut spec, notes)?;
        spec.leave("flavorFungibility", "flavours are summed", notes);
        let selector = spec.get("namespaceSelector");
        let parent = match spec.text("cohortName")? {
            Some(parent) => Some(parent),
            None => spec.text("cohort")?,
        };
        spec.rest(notes);
        let at = self.queues.add(group)?;
        self.above.extend(parent.map(|(name, place)| (at, name, place)));
        if let Some(entry) = selector {
            self.selector(at, entry, notes)?;
        }
        // A duplicate name is detected when the file is written.
        self.clusters.entry(head.name).or_insert(at);
        Ok(())
    }

    fn cohort(&mut self, object: &Object<'n>, notes: &mut Diagnostics) -> Result<()> {
        let head = object.head(notes)?;
        let mut group = QueueGroup::new(head.name, head.place);
        let mut spec = object.spec()?;
        self.quotas(&mut group, &mut spec, notes)?;
        weight(&mut group, &mut spec, notes)?;
        let parent = match spec.text("parentName")? {
            Some(parent) => Some(parent),
            None => spec.text("parent")?,
        };
        spec.rest(notes);
        let at = self.queues.add(group)?;
        self.above.extend(parent.map(|(name, place)| (at, name, place)));
        self.cohorts.entry(head.name).or_insert(at);
        Ok(())
    }

    /// Reads the quotas of a group, summed over flavours, and adds them to the capacity of the cluster.
    fn quotas(&mut self, group: &mut QueueGroup, spec: &mut Fields<'n>, notes: &mut Diagnostics) -> Result<()> {
        let (mut nominal, mut limit, mut lend) = (Quantities::default(), Quantities::default(), Quantities::default());
        // The resources of which some flavour has no borrowing limit, and the resources of which some flavour has a lending limit.
        let (mut endless, mut lends) = (Vec::<Dim>::new(), Vec::<Dim>::new());
        for mut part in spec.list("resourceGroups")? {
            part.get("coveredResources");
            for mut flavour in part.list("flavors")? {
                let name = flavour.text("name")?.map_or("", |(name, _)| name);
                for mut quota in flavour.list("resources")? {
                    let Some((named, place)) = quota.text("name")? else {
                        return Err(quota.missing("name", "the name of a resource"));
                    };
                    let resource = Resource::kubernetes(named);
                    let known = self.flavours.entry(named.to_owned()).or_insert((BTreeSet::new(), place));
                    known.0.insert(name);
                    let dim = &resource.dim;
                    let mut amount = |key: &'static str, notes: &mut Diagnostics| -> Result<Option<(u64, &'n Place)>> {
                        let Some(written) = quota.quantity(key)? else { return Ok(None) };
                        let amount = written.amount(&resource, &written.kubernetes()?, notes)?;
                        Ok(Some((amount, written.place)))
                    };
                    let (of, borrows, lent) = (
                        amount("nominalQuota", notes)?,
                        amount("borrowingLimit", notes)?,
                        amount("lendingLimit", notes)?,
                    );
                    let (of, place) = of.ok_or_else(|| quota.missing("nominalQuota", "an amount such as 2 or 4Gi"))?;
                    let sums = [(&mut nominal, of), (&mut self.queues.capacity, of)]
                        .into_iter()
                        .chain([(&mut limit, borrows.map_or(0, |(amount, _)| amount))])
                        .chain([(&mut lend, lent.map_or(of, |(amount, _)| amount))]);
                    for (sum, amount) in sums {
                        sum.add(dim, amount).map_err(|problem| place.wrong(named, format!("the sum {problem}")))?;
                    }
                    endless.extend(borrows.is_none().then(|| dim.clone()));
                    lends.extend(lent.is_some().then(|| dim.clone()));
                    quota.rest(notes);
                }
                flavour.rest(notes);
            }
            part.rest(notes);
        }
        let only = |amounts: &Quantities, keep: &dyn Fn(&Dim) -> bool| {
            let mut kept = Quantities::default();
            let dims = amounts.dims().filter(|dim| keep(dim));
            dims.for_each(|dim| kept.set(dim, amounts.get(dim).unwrap_or(0)));
            kept
        };
        group.set_amounts("limit", only(&limit, &|dim| !endless.contains(dim)));
        group.set_amounts("lend_limit", only(&lend, &|dim| lends.contains(dim)));
        group.set_amounts("nominal", nominal);
        Ok(())
    }

    /// Reads the namespaces of a queue if its selector lists them.
    fn selector(&mut self, at: usize, entry: &'n Entry, notes: &mut Diagnostics) -> Result<()> {
        let mut fields = Fields::new(&entry.node, "spec.namespaceSelector", &entry.place)?;
        if fields.entries().is_empty() {
            return Ok(());
        }
        let labels = fields.below("matchLabels")?;
        let mut named: Vec<&str> = Vec::new();
        let mut plain = true;
        for label in labels.entries() {
            match label.node.text().filter(|_| label.key == NAMESPACE) {
                Some(namespace) => named.push(namespace),
                None => plain = false,
            }
        }
        let mut expressions = fields.list("matchExpressions")?;
        plain &= labels.entries().len() + expressions.len() == 1;
        for expression in &mut expressions {
            let key = expression.text("key")?.map(|(key, _)| key);
            let operator = expression.text("operator")?.map(|(operator, _)| operator);
            let values = expression.get("values").and_then(|entry| entry.node.list()).unwrap_or_default();
            plain &= (key, operator) == (Some(NAMESPACE), Some("In"));
            named.extend(values.iter().filter_map(|value| value.text()));
        }
        fields.rest(notes);
        match plain && !named.is_empty() {
            true => self.namespaces.push((at, named, &entry.place)),
            false => {
                let message = "spec.namespaceSelector is not carried over: it uses labels other than the name";
                notes.add(&entry.place, message);
            }
        }
        Ok(())
    }

    fn local_queue(&mut self, object: &Object<'n>, notes: &mut Diagnostics) -> Result<()> {
        let head = object.head(notes)?;
        let mut spec = object.spec()?;
        let Some((cluster, place)) = spec.text("clusterQueue")? else {
            return Err(spec.missing("clusterQueue", "the name of a ClusterQueue"));
        };
        stop(&mut spec, notes)?;
        spec.leave("fairSharing", "LocalQueues have no weights", notes);
        spec.rest(notes);
        let namespace = head.namespace.unwrap_or_else(|| {
            notes.add(head.place, "a LocalQueue without a namespace is taken as one of 'default'");
            "default"
        });
        let user = format!("{namespace}/{}", head.name);
        if !self.named.insert(user.clone()) {
            let problem = format!("two LocalQueues are called '{}'; expected each once", brief(&user));
            return Err(head.place.wrong("metadata.name", problem));
        }
        match self.clusters.get(cluster) {
            Some(at) => self.users.entry(*at).or_default().push(user),
            None => notes.add(
                place,
                format!("no file has the ClusterQueue '{}', so this LocalQueue is skipped", brief(cluster)),
            ),
        }
        Ok(())
    }

    fn configuration(&mut self, object: &Object<'n>, notes: &mut Diagnostics) -> Result<()> {
        let mut fields = object.fields();
        let mut sharing = fields.below("fairSharing")?;
        let given = fields.get("fairSharing").is_some();
        let on = sharing.truth("enable")?.unwrap_or(given && object.version != "v1beta1");
        let mut strategies = Vec::new();
        if let Some(Entry { node, .. }) = sharing.get("preemptionStrategies") {
            let wrong = |node: &Node| {
                let expected = "expected LessThanOrEqualToFinalShare, LessThanInitialShare, or both in this order";
                let problem = format!("{} is not accepted; {expected}", node.shown());
                node.place.wrong("fairSharing.preemptionStrategies", problem)
            };
            for item in node.list().unwrap_or(std::slice::from_ref(node)) {
                let at =
                    STRATEGIES.iter().position(|(name, _)| item.text() == Some(name)).ok_or_else(|| wrong(item))?;
                // Kueue requires that each strategy occurs at most once, and in this order.
                if STRATEGIES[at..].iter().any(|(_, name)| strategies.contains(name)) {
                    return Err(wrong(node));
                }
                strategies.push(STRATEGIES[at].1);
            }
        }
        if !on {
            let message = "fair sharing is not enabled: weights have no effect, and Kueue uses its classic preemption";
            notes.add(object.place(), message);
        } else if strategies.is_empty() {
            strategies = STRATEGIES.iter().map(|(_, name)| *name).collect();
        }
        if on {
            // The last Configuration is used.
            let names = strategies.into_iter().map(str::to_owned).collect();
            self.queues.policy = vec![("preemption_strategies", Setting::Names(names))];
        }
        sharing.rest(notes);
        fields.rest(notes);
        Ok(())
    }

    /// Sets the parent of every group to its cohort. Creates cohorts that are named and not defined, and renames cohorts and queues with a
    /// conflicting name.
    fn connect(&mut self, notes: &mut Diagnostics) -> Result<()> {
        for (at, name, place) in std::mem::take(&mut self.above) {
            let parent = match self.cohorts.get(name) {
                Some(parent) => *parent,
                None => {
                    let made = self.queues.add(QueueGroup::new(name, place))?;
                    self.cohorts.insert(name, made);
                    made
                }
            };
            self.queues.groups[at].parent = Some(parent);
        }
        let taken = |queues: &Queues, name: &str| queues.groups.iter().any(|group| group.name == name);
        let mut cohorts: Vec<(&str, usize)> = self.cohorts.iter().map(|(name, at)| (*name, *at)).collect();
        cohorts.sort_by_key(|(_, at)| *at);
        let queues = self.clusters.iter().filter(|(name, _)| **name == "root").map(|(name, at)| (*name, *at));
        let clash = |(name, _): &(&str, usize)| *name == "root" || self.clusters.contains_key(name);
        let named: Vec<(&str, usize, &str)> = cohorts
            .into_iter()
            .filter(clash)
            .map(|(name, at)| (name, at, "cohort"))
            .chain(queues.map(|(name, at)| (name, at, "queue")))
            .collect();
        for (name, at, kind) in named {
            let mut other = format!("{name}-{kind}");
            while taken(&self.queues, &other) {
                other += "-";
            }
            let why = if name == "root" { "root is the cluster itself" } else { "a ClusterQueue has its name" };
            let message = format!("the {kind} '{}' is called '{}' here: {why}", brief(name), brief(&other));
            notes.add(&self.queues.groups[at].place, message);
            self.queues.groups[at].name = other;
        }
        Ok(())
    }

    /// Sets the users of each queue to its LocalQueues, or without LocalQueues to the namespaces that its selector lists. A namespace that
    /// several queues select is assigned to no queue.
    fn name_users(&mut self, notes: &mut Diagnostics) {
        let mut owners: HashMap<&str, BTreeSet<usize>> = HashMap::new();
        for (at, namespaces, _) in &self.namespaces {
            for namespace in namespaces {
                owners.entry(namespace).or_default().insert(*at);
            }
        }
        for (at, namespaces, place) in &self.namespaces {
            if self.users.contains_key(at) {
                notes.add(place, "spec.namespaceSelector is not carried over: the LocalQueues name the users");
                continue;
            }
            let mut users: Vec<String> = Vec::new();
            for namespace in namespaces {
                let user = format!("{namespace}/*");
                if owners[namespace].len() > 1 {
                    let message = format!(
                        "the namespace '{}' is selected by several queues, and assigned to none here",
                        brief(namespace)
                    );
                    notes.add(place, message);
                } else if !users.contains(&user) {
                    users.push(user);
                }
            }
            if !users.is_empty() {
                self.queues.groups[*at].set("users", Setting::Names(users));
            }
        }
        for (at, users) in std::mem::take(&mut self.users) {
            self.queues.groups[at].set("users", Setting::Names(users));
        }
    }

    /// Sets the limits of the top groups to 0 if there are several. Groups directly below the root would share it; in Kueue they are
    /// separate trees, which neither borrow nor lend.
    fn part(&mut self, notes: &mut Diagnostics) {
        let groups = &self.queues.groups;
        let tops: Vec<usize> = (0..groups.len()).filter(|&at| groups[at].parent.is_none()).collect();
        if tops.len() < 2 {
            return;
        }
        let mut held: HashMap<usize, Quantities> = HashMap::new();
        for at in 0..groups.len() {
            let Some(Setting::Amounts(nominal)) = groups[at].get("nominal") else { continue };
            let (mut top, mut steps) = (at, 0);
            // A cycle is detected when the file is written.
            while let (Some(parent), true) = (groups[top].parent, steps <= groups.len()) {
                (top, steps) = (parent, steps + 1);
            }
            let none = held.entry(top).or_default();
            nominal.dims().for_each(|dim| none.set(dim, 0));
        }
        let message = "separate trees do not share in Kueue: the root of each has limit 0 and lend_limit 0 here";
        for top in tops {
            let Some(none) = held.remove(&top) else { continue };
            let group = &mut self.queues.groups[top];
            notes.add(&group.place, message);
            group.set_amounts("limit", none.clone());
            group.set_amounts("lend_limit", none);
        }
    }
}

fn weight(group: &mut QueueGroup, spec: &mut Fields, notes: &mut Diagnostics) -> Result<()> {
    let mut sharing = spec.below("fairSharing")?;
    if let Some(written) = sharing.quantity("weight")? {
        group.set("weight", Setting::Number(written.digits(&written.kubernetes()?)?));
    }
    sharing.rest(notes);
    Ok(())
}

fn stop(spec: &mut Fields, notes: &mut Diagnostics) -> Result<()> {
    if let Some((policy, place)) = spec.text("stopPolicy")?.filter(|(policy, _)| *policy != "None") {
        notes.add(
            place,
            format!("spec.stopPolicy is not carried over: the queue is open here, not '{}'", brief(policy)),
        );
    }
    Ok(())
}
