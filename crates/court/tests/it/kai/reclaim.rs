//! Vectors of the KAI scheduler: reclaim between queues. The cases have the names of KAI's tests, shortened.

use super::table::play;

/// `actions/reclaim/reclaim_test.go`.
#[test]
fn reclaim() {
    let equal = "a:root:1:1 b:root:1:1";
    play(&[
        (
            "job with multiple tasks",
            "1 1 1 1",
            "a:root:0:0 b:root:2:1",
            "r0:a:1@0 r1:a:1@1 r2:a:1@2 r3:a:1@3",
            "w:b:1x4!",
            "r0 r1 r2 r3",
            "wx4",
        ),
        ("from job with multiple tasks", "4", "a:root:1:0 b:root:2:1", "r0:a:1x3! r1:a:1", "w:b:1x3!", "r0x3", "wx3"),
        (
            "from multiple queues running on multiple nodes",
            "2 2",
            "a:root:0:0 b:root:1:0 c:root:3:0",
            "r0:a:1@0 r1:b:1@0 r2:a:1@1 r3:b:1@1",
            "w:c:1x3!",
            "r0 r2 r3",
            "wx3",
        ),
        ("2 jobs from queue0, 2 pending from queue1", "2", equal, "r0:a:1 r1:a:1", "w0:b:1 w1:b:1", "r1", "w0"),
        ("1 job from each", "2", equal, "r0:a:1 r1:b:1", "w0:a:1 w1:b:1", "", ""),
        ("1 train, 1 build: train", "2", equal, "r0:a:1 r1:a:1^100", "w0:b:1 w1:b:1", "r0", "w0"),
        (
            "over provisioned, as many as deserved",
            "2",
            "a:root:2:2 b:root:2:2",
            "r0:a:1 r1:a:1",
            "w0:b:1 w1:b:1",
            "",
            "",
        ),
        ("1 train job of 2 GPUs, 2 pending", "2", equal, "r0:a:2", "w0:b:1 w1:b:1", "r0", "w0"),
        ("1 train job of 2 GPUs, 2 pending (1 build)", "2", equal, "r0:a:2", "w0:b:1 w1:b:1^100", "r0", "w1"),
        ("1 pending build job of 2 GPUs", "2", "a:root:1:1 b:root:1:1:0:fixed", "r0:a:2", "w0:b:2^100", "", ""),
        ("1 train and 1 preemptible interactive", "2", equal, "r0:a:1 r1:a:1^75", "w0:b:1", "r0", "w0"),
        ("2 preemptible interactive", "2", equal, "r0:a:1^75 r1:a:1^75", "w0:b:1", "r1", "w0"),
        (
            "never kill interactive jobs",
            "1",
            "a:root:0:0:0:1:fixed b:root:1:1:0:1:fixed",
            "r0:a:1^100",
            "w0:b:1^100",
            "",
            "",
        ),
        (
            "interactive jobs use deserved GPUs",
            "4",
            "a:root:1:1:fixed b:root:1:1",
            "r0:a:1^100 r1:b:3",
            "w0:a:1^100",
            "",
            "",
        ),
        (
            "inactive queues don't affect",
            "4",
            "a:root:1:1 b:root:1:1 c:root:1:1",
            "r0:a:1 r1:a:1 r2:a:1 r3:b:1",
            "w0:b:1",
            "r2",
            "w0",
        ),
        ("more than its fairShare (no remaining)", "10", "a:root:2:1 b:root:2:2", "r0:a:8", "w0:b:6", "r0", "w0"),
        ("within its fairShare", "10", "a:root:2:1 b:root:2:2", "r0:a:4", "w0:b:7", "", ""),
        ("remaining to lower over quota weight", "12", "a:root:2:1 b:root:2:2", "r0:a:10", "w0:b:7", "r0", "w0"),
        // In the source r1 starts again on the other node in the same cycle.
        (
            "over deserved, not over fair share",
            "3 2",
            "a:root:2:1 b:root:2:0",
            "r0:a:2@0 r1:a:1@1",
            "w0:b:2",
            "r1",
            "w0",
        ),
        ("the same, multiple jobs", "3 2", "a:root:2:3 b:root:2:0", "r0:a:2@0 r1:a:1@1", "w0:b:2 w1:b:2", "r1", "w0"),
        ("inference", "2", "a:root:1:0:fixed b:root:1:0:fixed", "r0:a:1^125 r1:a:1^125", "w:b:1^125", "", ""),
        ("unlimited GPU quota", "4", "a:root:4:0:fixed b:root:2:0", "r:a:4^125", "w:b:2", "", ""),
        ("unlimited GPU quota, both", "4", "a:root:4:0:fixed b:root:4:0", "r:a:4^125", "w:b:2", "", ""),
        (
            "unlimited GPU quota, department",
            "4",
            "d0:root:4:4 d1:root:2:2 a:d0:4:0:fixed b:d1:2:0",
            "r:a:4^125",
            "w:b:2",
            "",
            "",
        ),
        (
            "multiple tasks, in deserved share",
            "16",
            "a:root:12:0 b:root:5:1",
            "r0:a:1 r1:a:1 r2:a:1 r3:a:1 r4:a:1 r5:a:1 r6:a:1 r7:a:1 r8:a:1 r9:a:1 ra:a:1 rb:a:1 rc:a:1 rd:a:1 re:a:1 rf:a:1",
            "w:b:1x5!",
            "",
            "",
        ),
        (
            "across many single-GPU nodes",
            "1 1 1 1 1",
            "a:root:0:1 b:root:5:1",
            "r0:a:1@0 r1:a:1@1 r2:a:1@2 r3:a:1@3 r4:a:1@4",
            "w:b:1x5!",
            "r0 r1 r2 r3 r4",
            "wx5",
        ),
    ]);
}

/// `actions/reclaim/reclaimDepartments_test.go` and the cases with departments of the integration tests. The weight of a department is
/// its deserved amount.
#[test]
fn reclaim_of_departments() {
    let two = "d1:root:1:1 d2:root:1:1 a:d1:1:1 b:d2:1:1";
    let four = "d1:root:4:4 d2:root:4:4 d3:root:4:4 d4:root:4:4 a:d1:3:3 b:d1:1:1 c:d2:4:4 d:d3:4:4 e:d4:4:4";
    play(&[
        ("classic, train", "2", "d1:root:1:1 d2:root:1:1 a:d1:1:0 b:d2:1:0", "r0:a:1 r1:a:1^100", "w:b:1", "r0", "w"),
        ("classic, interactive", "2", two, "r0:a:1 r1:a:1^100", "w:b:1^100", "r0", "w"),
        (
            "department will be overquota",
            "4",
            "d1:root:2:2 d2:root:2:2 a:d1:1:1 b:d2:1:1 c:d2:1:1",
            "r0:a:3 r1:b:1^100",
            "w:b:2",
            "",
            "",
        ),
        ("according to deserved quota", "8", two, "r0:a:4 r1:a:1", "w:b:4", "r1", "w"),
        (
            "from different department and same department",
            "4",
            "d1:root:0:0 d2:root:4:4 a:d1:1:1 b:d2:0:0 c:d2:4:4",
            "r0:a:2 r1:b:2",
            "w:c:4",
            "r0 r1",
            "w",
        ),
        ("not by fairness", "4", "d0:root:1:1 d1:root:1:1 a:d0:3:3 b:d1:1:1", "r0:a:2 r1:b:2", "w:a:1", "", ""),
        (
            "interactive will not go over quota",
            "4",
            "d0:root:1:1 d1:root:1:1 a:d0:3:3:fixed b:d1:3:3",
            "r0:a:1^100 r1:b:3",
            "w:a:1^100",
            "",
            "",
        ),
        ("train goes over quota", "4", two, "r0:a:1 r1:b:3", "w:a:1", "r1", "w"),
        (
            "multiple departments",
            "16",
            four,
            "b1:b:1 b2:b:1 b3:b:1 b4:b:1 c1:c:1 c2:c:1 c3:c:1 c4:c:1 c5:c:1 c6:c:1 c7:c:1 c8:c:1 d1:d:1 d2:d:1 d3:d:1 d4:d:1",
            "w:a:1^125 e:e:5",
            "c8",
            "w",
        ),
        (
            "according to priority",
            "8",
            "d1:root:1:1 a:d1:1:2 b:d1:1:1 c:d1:0:1:1",
            "a0:a:1 a1:a:1 a2:a:1 a3:a:1 a4:a:1 b0:b:1 b1:b:1 b2:b:1",
            "w:c:3",
            "a3 a4 b2",
            "w",
        ),
        (
            "d2 is under deserved, d1 over it and within fair share",
            "3 3",
            "d1:root:2:2 d2:root:2:2 a:d1:2:3 b:d2:2:0",
            "r0:a:2@0 r1:a:2@1^100",
            "w:b:2",
            "r0",
            "w",
        ),
        (
            "both departments got deserved quota",
            "3 3",
            "d1:root:3:3 d2:root:3:3 a:d1:3:0 b:d2:2:0 c:d2:1:0",
            "r0:a:2@0 r1:a:1@1^100 r2:b:2@1 r3:b:1@0",
            "w:c:1",
            "r3",
            "w",
        ),
        ("over deserved, within fair share", "3 3", two, "r0:a:2@0 r1:a:1@1^100 r2:b:2@1 r3:b:1@0", "w:b:1", "", ""),
        (
            "both under deserved",
            "1 1",
            "d1:root:2:2 d2:root:2:2 a:d1:1:0 b:d2:1:0",
            "r0:a:1@0 r1:b:1@1^100",
            "w:b:1",
            "",
            "",
        ),
        // `reclaim_cross_hierarchy_root_leaf_test.go`
        ("root leaf victim", "1", "d:root:1:1 a:d:1:1 b:root:0:1", "r:b:1", "w:a:1", "r", "w"),
    ]);
}

/// The cases of `actions/integration_tests/reclaim/reclaim_test.go` with whole GPUs, and `reclaim_steady_fair_share_test.go` with its
/// switch off.
#[test]
fn reclaim_in_rounds() {
    let equal = "a:root:1:1 b:root:1:1";
    play(&[
        ("2 jobs on 3 GPUs", "2 2", "a:root:2:2 b:root:2:2", "r0:a:1@1 r1:a:2@0 r2:b:1@1", "w:b:1", "r1", "w"),
        ("over capacity", "8", "a:root:6:6 b:root:5:5", "r0:a:8", "w:b:5", "r0", "w"),
        (
            "the job with quota of 0",
            "4",
            "a:root:1:1 b:root:1:1 c:root:0:0",
            "r0:a:2 r1:a:1 r2:c:1",
            "w:b:1",
            "r2",
            "w",
        ),
        (
            "from less prioritized queue",
            "4",
            "a:root:1:1 b:root:1:1 c:root:1:0:1",
            "r0:a:1 r1:a:1 r2:c:1 r3:c:1",
            "w:b:1",
            "r1",
            "w",
        ),
        ("fairness ratio", "8", equal, "r0:a:1 r1:a:3 r2:a:4", "w0:b:4 w1:b:4", "r2", "w0"),
        ("1 GPU from remaining", "7", "a:root:2:2 b:root:1:1", "r0:a:4 r1:b:3", "w:a:1", "r1", "w"),
        (
            "second highest priority job",
            "2",
            "a:root:0:0 b:root:1:1:fixed",
            "r:a:2",
            "w0:b:2^100 w1:b:1^100",
            "r",
            "w1",
        ),
        ("bigger remaining", "8", "a:root:4:4 b:root:2:2", "r0:a:5 r1:a:1 r2:a:1", "w:b:3", "r1 r2", "w"),
        (
            "1 queue with big quota",
            "9",
            "a:root:4:4 b:root:4:4 c:root:10:10",
            "r0:a:5 r1:a:2 r2:a:1",
            "w3:c:1 w0:b:3",
            "r1 r2",
            "w0 w3",
        ),
        ("only 1 round", "4", "a:root:2:2 b:root:1:1", "r0:a:3", "w:b:2", "", ""),
        ("only over quota task of elastic job", "3", "a:root:1:0 b:root:2:1", "r:a:1x2", "w:b:1x3", "r", "wx2"),
        (
            "queuePriorityInQuotaReclaim",
            "2",
            "a:root:2:1 b:root:2:1:1|[policy]\nqueue_priority_in_quota_reclaim = true",
            "r:a:2",
            "w:b:2",
            "r",
            "w",
        ),
        (
            "queuePriorityInQuotaReclaim prefers over-quota",
            "3",
            "a:root:1:1:1 b:root:1:1:1 c:root:1:1|[policy]\nqueue_priority_in_quota_reclaim = true",
            "r0:b:2 r1:c:1",
            "w:a:1",
            "r0",
            "w",
        ),
        (
            "steady fair-share reclaim disabled",
            "5 5 5",
            "a:root:0:1 b:root:0:1 c:root:0:1",
            "al:a:2@0^40 a1:a:2@0 a2:a:2@1 c1:c:2@1 a3:a:2@2 a4:a:2@2",
            "w:c:2",
            "",
            "",
        ),
    ]);
}

/// `actions/reclaim/{reclaim_elastic,reclaimGang}_test.go`.
#[test]
fn reclaim_of_elastic_jobs_and_gangs() {
    let equal = "a:root:1:1 b:root:1:1";
    play(&[
        ("single task", "2", equal, "r:a:1x2", "w:b:1", "r", "w"),
        ("several tasks", "4", equal, "r:a:1x4", "w:b:2", "rx2", "w"),
        ("only over quota task", "2", "a:root:1:0 b:root:1:0", "r:a:1x2", "w:b:1x3", "r", "w"),
        ("all tasks", "2", "a:root:0:0 b:root:2:1", "r:a:1x2", "w:b:2", "rx2", "w"),
        ("a job and a single task", "3", "a:root:0:0 b:root:3:1", "r0:a:1x2 r1:a:1", "w:b:2", "r0 r1", "w"),
        ("several elastic jobs", "4", "a:root:0:0 b:root:2:1", "r0:a:1x2 r1:a:1x2", "w:b:2", "r0 r1", "w"),
        // Derived: a job that has lost its task beyond the minimum in this cycle is no further victim; the other job loses the next task.
        (
            "several elastic jobs, one task after another",
            "4",
            "a:root:0:0 b:root:2:1",
            "r0:a:1x2 r1:a:1x2",
            "w0:b:1 w1:b:1",
            "r0 r1",
            "w0 w1",
        ),
        ("several running jobs", "3", "a:root:0:0 b:root:3:1", "r0:a:1x2 r1:a:1", "w:b:3", "r0x2 r1", "w"),
        ("elastic job reclaims non-elastic", "2", "a:root:0:0 b:root:1:1", "r:a:2", "w:b:1x2", "r", "w"),
        (
            "elastic job reclaims single task",
            "3",
            "a:root:0:0 b:root:1:1|[[user]]\nname = \"p\"\nparent = \"b\"",
            "r:a:1x2 p0:b:1/p",
            "w:b:1/p",
            "r",
            "w",
        ),
        ("gang: all tasks", "2", "a:root:0:0 b:root:2:2:fixed", "r:a:1", "w:b:1x2!^100", "r", "wx2"),
        ("gang: over quota", "10", "a:root:0:0 b:root:2:2:fixed", "r:a:10", "w:b:2x2!^100", "", ""),
        ("gang: mpi job", "2", "a:root:0:0 b:root:2:2:fixed", "r:a:1x2!", "w:b:2^100", "rx2", "w"),
        ("gang: from job on two nodes", "2", equal, "r:a:1x2!", "w:b:1", "rx2", "w"),
    ]);
}

/// `reclaimable_test.go`, "Multiple hierarchy levels" and "FilterVictim". The source states the fair shares; in this test they follow
/// from deserved amounts.
#[test]
fn reclaimable() {
    let over = "d1:root:4:0 a:d1:3:0 b:d1:1:1 d2:root:3:0 c:d2:3:0";
    play(&[
        ("lower utilization ratio but over 1", "11", over, "rb:b:1x4 rc:c:1x7", "w:a:1", "rc", "w"),
        ("strictly under deserved quota", "2", "a:root:4:0 b:root:4:0", "r:b:1x2", "w:a:2", "", ""),
        ("over deserved quota", "4", "a:root:4:0 b:root:0:0", "r:b:1x4", "w:a:2", "rx2", "w"),
        ("exactly at deserved quota", "2", "a:root:4:0 b:root:2:0", "r:b:1x2", "w:a:2", "", ""),
    ]);
}
