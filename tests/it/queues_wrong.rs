//! Invalid configurations of queues, and invalid commands of `plimsoll queues import`.

use crate::queues::{folder, imported_text, queues};
use crate::replay::said;

/// Invalid files: the file name, the text, and the beginning of the error message.
const WRONG: [(&str, &str, &str); 26] = [
    (
        "kueue.yaml",
        "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nfairSharing:\n  \
         preemptionStrategies: [LessThanInitialShare, LessThanOrEqualToFinalShare]\n",
        "kueue.yaml: line 4, column 25: fairSharing.preemptionStrategies: a list is not accepted; expected LessThanOrEqualToFinalShare, ",
    ),
    ("kueue.yaml", "a: [1\nb: 2\n", "kueue.yaml: line 2, column "),
    ("kueue.yaml", "kind: A\nkind: B\n", "kueue.yaml: line 2, column 1: the key 'kind' appears twice\n"),
    (
        "kueue.yaml",
        "- 1\n",
        "kueue.yaml: line 1, column 1: a list is not an object; expected apiVersion, kind, metadata and spec",
    ),
    (
        "kueue.yaml",
        "apiVersion: kueue.x-k8s.io/v1beta1\n",
        "kueue.yaml: line 1, column 1: kind: is missing; expected an object",
    ),
    ("kueue.yaml", "<a/>", "kueue.yaml: is XML; expected objects of Kubernetes in YAML or JSON"),
    (
        "kueue.yaml",
        "apiVersion: v1\nkind: ConfigMap\n",
        "kueue.yaml: has no queues of kueue; expected ClusterQueue, Cohort",
    ),
    ("x.yaml", "apiVersion: v1\nkind: ConfigMap\n", "x.yaml: has no recognised format; expected kueue, kai, "),
    (
        "kueue.yaml",
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata: {}\n",
        "kueue.yaml: line 3, column 1: metadata.name: is missing; expected the name of the object",
    ),
    (
        "kueue.yaml",
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata: {name: a}\nspec:\n  preemption: {withinClusterQueue: Lower}\n",
        "kueue.yaml: line 5, column 36: spec.preemption.withinClusterQueue: 'Lower' is not accepted; expected Never, LowerPriority or",
    ),
    (
        "kueue.yaml",
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata: {name: a}\nspec: {fairSharing: {weight: -2}}\n",
        "kueue.yaml: line 4, column 30: spec.fairSharing.weight: '-2' is negative; expected an amount of at least 0",
    ),
    (
        "kueue.yaml",
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata: {name: a}\nspec:\n  resourceGroups:\n  - flavors:\n    \
         - resources:\n      - {name: cpu, nominalQuota: two}\n",
        "kueue.yaml: line 8, column 35: spec.resourceGroups.flavors.resources.nominalQuota: 'two' is not a number; expected an amount",
    ),
    (
        "kueue.yaml",
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata: {name: a}\nspec:\n  resourceGroups:\n  - flavors:\n    \
         - resources:\n      - {name: cpu, nominalQuota: 9E}\n",
        "kueue.yaml: line 8, column 35: spec.resourceGroups.flavors.resources.nominalQuota: '9E' is too large; expected less than",
    ),
    (
        "kueue.yaml",
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: Cohort\nmetadata: {name: a}\nspec: {parent: b}\n---\n\
         apiVersion: kueue.x-k8s.io/v1beta1\nkind: Cohort\nmetadata: {name: b}\nspec: {parentName: a}\n",
        "kueue.yaml: line 3, column 18: 'a' is above itself; expected a tree",
    ),
    (
        "kai.yaml",
        "apiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {name: dept}\n---\n\
         apiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {name: a}\nspec:\n  parentQueue: detp\n",
        "kai.yaml: line 9, column 16: spec.parentQueue: 'detp' is not a queue of these files (did you mean 'dept'?); expected",
    ),
    (
        "kai.yaml",
        "apiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {name: a}\nspec: {resources: {gpu: {quota: -2}}}\n",
        "kai.yaml: line 4, column 33: spec.resources.gpu.quota: '-2' is negative; expected a number of at least 0",
    ),
    (
        "kai.yaml",
        "apiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {name: a}\nspec: {resources: {gpu: 4}}\n",
        "kai.yaml: line 4, column 25: spec.resources.gpu: 4 is not accepted; expected a table",
    ),
    (
        "kai.yaml",
        "apiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {name: a}\n---\n\
         apiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {name: a}\n",
        "kai.yaml: line 7, column 18: two groups are called 'a', the first on line 3; expected unique names",
    ),
    (
        "volcano.yaml",
        "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: a}\nspec: {weight: 1.5}\n",
        "volcano.yaml: line 4, column 16: spec.weight: 1.5 is not accepted; expected a whole number of 32 bits",
    ),
    (
        "volcano.yaml",
        "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: a}\nspec: {reclaimable: maybe}\n",
        "volcano.yaml: line 4, column 21: spec.reclaimable: 'maybe' is not accepted; expected true or false",
    ),
    (
        "yarn-capacity.xml",
        "<configuration>\n<property></x>\n",
        "yarn-capacity.xml: line 2, column 11: expected 'property' tag, not 'x'",
    ),
    (
        "yarn-capacity.xml",
        "<configuration>\n<property><name>yarn.scheduler.capacity.root.queues</name><value>a,a</value></property>\n</configuration>",
        "yarn-capacity.xml: line 2, column 1: yarn.scheduler.capacity.root.queues: 'a' is given twice",
    ),
    (
        "yarn-capacity.xml",
        "<configuration>\n<property><name>yarn.scheduler.capacity.root.queues</name><value>a</value></property>\n\
         <property><name>yarn.scheduler.capacity.root.a.capacity</name><value>140</value></property></configuration>",
        "yarn-capacity.xml: line 3, column 1: yarn.scheduler.capacity.root.a.capacity: '140' is not accepted; expected a percentage",
    ),
    ("yarn-fair.xml", "<configuration/>", "yarn-fair.xml: line 1, column 1: expected <allocations>"),
    (
        "yarn-fair.xml",
        "<allocations>\n<queue name=\"a\">\n<minResources>12 gb</minResources></queue></allocations>",
        "yarn-fair.xml: line 3, column 1: minResources: '12 gb' is not accepted; expected resources such as '1024 mb, 4 vcores'",
    ),
    (
        "yarn-fair.xml",
        "<allocations>\n<queue name=\"a.b\"/></allocations>",
        "yarn-fair.xml: line 2, column 1: name: 'a.b' is not accepted; expected the name of a queue, without dots",
    ),
];

#[test]
fn wrong_files_are_refused_with_their_places() {
    let wrong = WRONG.iter().filter_map(|(name, text, said)| {
        let answer = imported_text(name, text).expect_err(text);
        (!answer.starts_with(said)).then(|| format!("{answer}\nexpected\n{said}"))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn wrong_commands_are_refused() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(dir.path().join("bad.yaml"), WRONG[4].1).expect("writable");
    let [kueue, kai] = ["cluster-queues.yaml", "kai.yaml"].map(|file| folder().join(file).display().to_string());
    for (arguments, said_of_it) in [
        (vec!["bad.yaml"], "bad.yaml: "),
        (vec!["missing.yaml"], "missing.yaml: "),
        (vec!["-", "-"], "FILE: '-' is not accepted; expected standard input once"),
        (vec![], "<FILE>..."),
        (vec!["bad.yaml", "--format", "kube"], "'kube'"),
        (vec![&kueue, &kai], "is kai, and "),
        (vec![&kueue, "--format", "yarn-fair"], "is not XML; expected <allocations>"),
    ] {
        let output = queues(&arguments, dir.path());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty() && said(&output).contains(said_of_it), "{arguments:?}: {}", said(&output));
    }
}
