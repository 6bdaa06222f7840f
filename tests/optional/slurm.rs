//! Starts a Slurm of one machine for the duration of a test, and runs `plimsoll cluster slurm` with it. The real daemons run in the
//! foreground, with all their files in one folder.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use plimsoll::workload::synthetic::random::stream;
use rand::RngExt;

use crate::determinism::differences;
use crate::replay::{run, said};
use crate::study_kill::five_hundred;
use crate::study_run::{Scratch, contents};
use crate::study_slurm::{cluster, without_logs};
use crate::{Missing, Outcome};

/// Slurm's controller and node daemons, and the daemon that authenticates them. All end when the value is dropped.
struct Slurm {
    dir: tempfile::TempDir,
    daemons: Vec<Child>,
}

/// The maximum time until the daemons are ready.
const PATIENCE: Duration = Duration::from_secs(120);

impl Slurm {
    /// Starts Slurm with this number of processors. Errors: a program is missing, the user is not root, or a daemon does not become ready.
    fn start(processors: usize) -> Result<Slurm, String> {
        use std::os::unix::fs::MetadataExt;
        if !std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
            return Err("this is not root".to_owned());
        }
        for (program, package) in
            [("slurmctld", "slurmctld"), ("slurmd", "slurmd"), ("sbatch", "slurm-client"), ("munged", "munge")]
        {
            if found(program).is_none() {
                return Err(format!("no {program} (Debian's package {package}; slurm-wlm has all of Slurm)"));
            }
        }
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        let mut slurm = Slurm { dir, daemons: Vec::new() };
        slurm.configure(processors);
        let config = slurm.path("slurm.conf");
        slurm.daemon(
            "munged",
            &[
                "--foreground".to_owned(),
                "--force".to_owned(),
                format!("--socket={}", slurm.path("munge.sock").display()),
                format!("--key-file={}", slurm.path("munge.key").display()),
                format!("--pid-file={}", slurm.path("munged.pid").display()),
                format!("--log-file={}", slurm.path("munged.log").display()),
                format!("--seed-file={}", slurm.path("munge.seed").display()),
            ],
        );
        let there = slurm.path("munge.sock");
        until(PATIENCE, || there.exists()).map_err(|()| slurm.complaint("munged does not listen"))?;
        for program in ["slurmctld", "slurmd"] {
            slurm.daemon(program, &["-D".to_owned(), "-f".to_owned(), config.display().to_string()]);
        }
        let idle = || String::from_utf8_lossy(&run(slurm.command("sinfo").arg("--noheader")).stdout).contains(" idle ");
        until(PATIENCE, idle).map_err(|()| slurm.complaint("the node does not become idle"))?;
        Ok(slurm)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn configure(&self, processors: usize) {
        for folder in ["state", "spool"] {
            std::fs::create_dir(self.path(folder)).expect("a temporary folder is writable");
        }
        let secret: String = std::iter::repeat_with(|| self.dir.path().display().to_string()).take(40).collect();
        std::fs::write(self.path("munge.key"), &secret.as_bytes()[..256]).expect("a temporary folder is writable");
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(self.path("munge.key"), private).expect("a file of ours");
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = host.trim().split('.').next().filter(|name| !name.is_empty()).unwrap_or("localhost");
        let free = || std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        // Both sockets stay open until both ports are known, so that the ports differ.
        let sockets = [free(), free()];
        let [one, two] = sockets.each_ref().map(|socket| socket.local_addr().expect("it is bound").port());
        drop(sockets);
        let text = CONFIG
            .replace("{dir}", &self.dir.path().display().to_string())
            .replace("{host}", host)
            .replace("{controller}", &one.to_string())
            .replace("{node}", &two.to_string())
            .replace("{processors}", &processors.to_string());
        std::fs::write(self.path("slurm.conf"), text).expect("a temporary folder is writable");
    }

    fn daemon(&mut self, program: &str, args: &[String]) {
        let out = |name: &str| std::fs::File::create(self.path(name)).expect("a temporary folder is writable");
        // If the test is killed, the daemons end, too.
        let mut command = match found("setpriv") {
            Some(setpriv) => {
                let mut command = Command::new(setpriv);
                command.args(["--pdeathsig", "TERM"]).arg(found(program).unwrap_or_else(|| program.into()));
                self.environment(&mut command);
                command
            }
            None => self.command(program),
        };
        command.args(args).stdin(Stdio::null()).stdout(out(&format!("{program}.out")));
        command.stderr(out(&format!("{program}.err")));
        self.daemons.push(command.spawn().expect("it was found"));
    }

    /// Returns a command that uses this Slurm.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(found(program).unwrap_or_else(|| program.into()));
        self.environment(&mut command);
        command
    }

    /// Makes a command use this Slurm.
    fn environment(&self, command: &mut Command) {
        command.env("SLURM_CONF", self.path("slurm.conf"));
    }

    /// Returns the problem, with the last lines of the logs.
    fn complaint(&self, what: &str) -> String {
        let tail = |name: &&str| {
            let text = std::fs::read_to_string(self.path(name)).unwrap_or_default();
            let lines: Vec<&str> = text.lines().rev().take(4).collect();
            format!("{name}: {}", lines.into_iter().rev().collect::<Vec<_>>().join(" | "))
        };
        let logs = ["munged.err", "munged.log", "slurmctld.log", "slurmd.log"];
        format!("{what}; {}", logs.iter().map(tail).collect::<Vec<_>>().join("; "))
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        // Cancels the jobs, shuts down the daemons as their manual describes, and kills the remaining processes.
        let quietly = |program: &str, args: &[&str]| {
            let _ = self.command(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).status();
        };
        quietly("scancel", &["--user=root"]);
        let _ = until(Duration::from_secs(5), || {
            let output = run(self.command("squeue").arg("--noheader").stderr(Stdio::null()));
            output.stdout.is_empty()
        });
        quietly("scontrol", &["shutdown"]);
        let daemons = &mut self.daemons;
        let _ = until(Duration::from_secs(5), || {
            daemons.iter_mut().skip(1).all(|daemon| !matches!(daemon.try_wait(), Ok(None)))
        });
        for daemon in daemons {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

/// Returns the processes with a command line that contains a text, such as the name of a temporary folder, and with an environment that
/// contains another text.
fn processes(command: &Path, environment: &str) -> Vec<String> {
    let text = command.display().to_string();
    let of = |entry: std::fs::DirEntry| {
        let has = |file: &str, text: &str| {
            let bytes = std::fs::read(entry.path().join(file)).unwrap_or_default();
            bytes.windows(text.len()).any(|part| part == text.as_bytes())
        };
        let id = entry.file_name().to_string_lossy().into_owned();
        let is = id.bytes().all(|byte| byte.is_ascii_digit()) && has("cmdline", &text) && has("environ", environment);
        is.then_some(id)
    };
    std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(of).collect()
}

/// Waits until a condition holds. Errors: it does not hold within the time `most`.
fn until(most: Duration, mut holds: impl FnMut() -> bool) -> Result<(), ()> {
    let deadline = Instant::now() + most;
    while !holds() {
        if Instant::now() > deadline {
            return Err(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Returns the path of a program; daemons are not in every user's path.
fn found(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// The settings that a Slurm without systemd and cgroups needs. The plain scheduler runs without pauses, because a test cannot wait for
/// scheduling cycles.
const CONFIG: &str = "ClusterName=plimsoll
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={dir}/munge.sock
CredType=cred/munge
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd.pid
SlurmctldLogFile={dir}/slurmctld.log
SlurmdLogFile={dir}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
PriorityType=priority/basic
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
KillWait=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={processors} RealMemory=100 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
";

/// The maximum time for all jobs of a submission, even on a busy machine.
const ALL: Duration = Duration::from_secs(900);
/// Number of shards to kill.
const KILLS: usize = 20;
/// A shard is killed after a random number of further runs that is less than this: a small part of the 500 runs on any machine.
const FURTHER: usize = 8;

/// The study under a Slurm, in one results folder.
struct Campaign<'a> {
    slurm: &'a Slurm,
    place: &'a Scratch,
    out: String,
}

impl Campaign<'_> {
    /// Submits the missing runs; returns the number of the gathering job, and the message.
    fn submit(&self) -> (String, String) {
        let mut command = cluster(self.place, &self.out, &[]);
        self.slurm.environment(&mut command);
        let output = run(&mut command);
        assert!(output.status.success(), "{}", said(&output));
        (String::from_utf8_lossy(&output.stdout).trim().to_owned(), said(&output))
    }

    fn queued(&self) -> bool {
        !run(self.slurm.command("squeue").arg("--noheader")).stdout.is_empty()
    }

    /// Waits for the job that gathers, and returns its log.
    fn gathered(&self, job: &str) -> String {
        assert_eq!(until(ALL, || !self.queued()), Ok(()), "the jobs do not end");
        std::fs::read_to_string(self.folder().join(format!("slurm/gather-{job}.log"))).expect("the job has a log")
    }

    fn folder(&self) -> PathBuf {
        self.place.path(&self.out)
    }

    /// Returns the number of runs with a receipt. Each cell of the study has its own folder.
    fn ended(&self) -> usize {
        let listed = |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten();
        let cells = listed(self.folder()).map(|cell| cell.path());
        cells
            .flat_map(|cell| listed(cell.join("done")))
            .filter(|file| file.path().extension().is_some_and(|kind| kind == "json"))
            .count()
    }

    /// Kills each running shard once, after a random number of further runs; returns how many were hit.
    fn kill(&self, random: &mut impl rand::Rng) -> usize {
        let (mut seen, mut hit) = (Vec::new(), 0);
        let done = until(ALL, || {
            let next = (0..3).filter(|shard| !seen.contains(shard)).find_map(|shard| {
                let environment = format!("SLURM_ARRAY_TASK_ID={shard}\0");
                Some((shard, processes(&self.folder(), &environment).into_iter().next()?))
            });
            if let Some((shard, process)) = next {
                let enough = self.ended() + random.random_range(0..FURTHER);
                let there = || Path::new("/proc").join(&process).exists();
                while self.ended() < enough && there() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                // The process may have ended in the meantime; then `kill` fails.
                hit += usize::from(run(Command::new("kill").args(["-KILL", &process])).status.success());
                seen.push(shard);
            }
            seen.len() == 3 || !self.queued()
        });
        assert_eq!(done, Ok(()), "the shards neither run nor end");
        hit
    }
}

/// 500 runs in three shards under a real Slurm. Shards are killed at random moments until the runs are complete, and again in another
/// folder until twenty shards were killed in total. The gathering job reports the missing runs, and a second submission executes only the
/// missing runs. The results equal those of one uninterrupted process.
pub fn a_real_one_runs_the_array() -> Outcome {
    let slurm = Slurm::start(3).map_err(Missing)?;
    let plan = five_hundred(300);
    let place = Scratch::in_memory(&format!("{plan}\n[slurm]\nshards = 3\ntime = \"00:10:00\"\n"));
    let (mut random, mut kills, mut submissions, mut folders) = (stream(1, "kills under Slurm"), 0, 0, Vec::new());
    while kills < KILLS {
        // The number of kills until the runs of one folder are complete depends on the machine. The total number of kills does not.
        assert!(folders.len() < KILLS, "{kills} kills in {} folders", folders.len());
        let campaign = Campaign { slurm: &slurm, place: &place, out: format!("out-{}", folders.len()) };
        loop {
            let before = campaign.ended();
            let (gather, message) = campaign.submit();
            submissions += 1;
            let open = message.contains(" of 3 shards");
            assert!(open != message.contains("all runs are complete"), "{message}");
            assert!(before > 0 || message.contains("3 of 3 shards"), "{message}");
            kills += if open && kills < KILLS { campaign.kill(&mut random) } else { 0 };
            let log = campaign.gathered(&gather);
            let (missing, whole) = (log.contains("runs are missing or broken"), log.contains("report in"));
            assert!(missing != whole && (open || whole), "{log}");
            assert!(campaign.ended() >= before, "complete runs have disappeared");
            if whole {
                break;
            }
        }
        folders.push(campaign.folder());
    }
    println!("{kills} kills, {submissions} submissions, {} folders", folders.len());
    place.write("plan.toml", &plan);
    place.run("whole", &["-j", "1"]);
    let whole = contents(&place.path("whole"));
    for folder in folders {
        assert_eq!(differences(&whole, &without_logs(&folder)), [""; 0]);
    }
    Ok(())
}
