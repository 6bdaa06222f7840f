//! A replay preempts no more tasks than necessary: the requests of one cycle and of later cycles use the room that a victim leaves.

use crate::replay::{plimsoll, run, said};

/// Four tasks of 4 cores fill a pool of 16 cores. Then four jobs of 1 core and a higher priority request room. One victim is enough for all
/// four.
#[test]
fn one_victim_serves_four_requests() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).expect("a writable file");
    let own = "deserved = { cpu = 16 }\nmin = { cpu = 16 }\n";
    write("q.toml", &format!("[[group]]\nname = \"a\"\ndefault = true\n{own}"));
    let row = |job: u32| format!("w{job},u2,10,50,1,1,0,0\n");
    let requests: String = (1..5).map(row).collect();
    let header = "job,user,submit_s,duration_s,tasks,cpu,memory_gib,priority\n";
    write("t.csv", &format!("{header}v,u,0,100,4,4,0,9\n{requests}"));
    for policy in ["kai:q.toml", "koordinator:q.toml", "armada:q.toml"] {
        let mut command = plimsoll(&["replay", "t.csv", "--machines", "1x16c1g", "--placement", "pooled"]);
        let output = run(command.args(["--policy", policy, "--format", "json"]).current_dir(dir.path()));
        assert!(output.status.success(), "{policy}: {}", said(&output));
        let runs: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(runs[0]["tasks_stopped"], 1, "{policy}");
    }
}
