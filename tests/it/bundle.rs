//! Bundles: complete, described and checked; their content can be run again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use plimsoll::output::schema::VERSION;
use serde_json::Value;

use crate::determinism::differences;
use crate::replay::{files, plimsoll, run, said};
use crate::study_run::contents;

/// A plan with inputs in its own folder and in another folder.
const PLAN: &str = r#"
name = "small"
question = "Is it all there?"
policies = ["drf", "fifo", "quota:groups.toml"]
seeds = 2
weights = "weights.csv"
[cluster]
machines = "2x8c16g"
[workload]
trace = "../data/trace.csv"
thin = 0.8
[sweep]
"cluster.machines" = ["2x8c16g", "3x8c16g"]
"#;

const GROUPS: &str = "[[group]]\nname = \"all\"\nusers = [\"*\"]\n";

/// A folder with the plan, its inputs and its results.
pub struct Scratch(pub tempfile::TempDir);

impl Scratch {
    pub fn new() -> Scratch {
        let place = Scratch(tempfile::tempdir().expect("a temporary folder"));
        let mut trace = "job,user,submit_s,duration_s,tasks,cpu,memory_gib\n".to_owned();
        for job in 0..40u64 {
            let (user, submit, tasks) = (job % 3, job * 4, 1 + job % 5);
            trace += &format!("j{job},u{user},{submit},{},{tasks},1,{}\n", 20 + job % 7, 1 + job % 2);
        }
        place.write("plans/small.toml", PLAN);
        place.write("plans/groups.toml", GROUPS);
        place.write("plans/weights.csv", "user,weight\nu0,2\nu1,1\nu2,1\n");
        place.write("data/trace.csv", &trace);
        place.ok(&["run", "plans/small.toml", "-o", "out"]);
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a temporary folder");
        std::fs::write(path, text).expect("a temporary file is writable");
    }

    pub fn ok(&self, args: &[&str]) -> String {
        let output = run(plimsoll(args).current_dir(self.0.path()));
        assert!(output.status.success(), "{args:?}: {}", said(&output));
        format!("{}{}", String::from_utf8_lossy(&output.stdout), said(&output))
    }

    pub fn refused(&self, args: &[&str]) -> String {
        let output = run(plimsoll(args).current_dir(self.0.path()));
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", said(&output));
        said(&output)
    }

    /// Unpacks a bundle into a folder.
    pub fn unpack(&self, bundle: &str, to: &str) {
        let file = std::fs::File::open(self.path(bundle)).expect("it was written");
        zip::ZipArchive::new(file).expect("an archive").extract(self.path(to)).expect("a temporary folder is writable");
    }

    fn description(&self, folder: &str) -> Value {
        let text = std::fs::read_to_string(self.path(folder).join("ro-crate-metadata.json")).expect("a description");
        serde_json::from_str(&text).expect("JSON")
    }
}

/// Returns the path that a relative URI encodes.
fn decoded(id: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), id.as_bytes());
    while let Some((&first, next)) = rest.split_first() {
        let hex = |at: usize| next.get(at).and_then(|byte| char::from(*byte).to_digit(16)).expect("two digits");
        (bytes, rest) = match first {
            b'%' => ([bytes, vec![(hex(0) * 16 + hex(1)) as u8]].concat(), &next[2..]),
            byte => ([bytes, vec![byte]].concat(), next),
        };
    }
    String::from_utf8(bytes).expect("text")
}

/// Returns the digest that `sha256sum` computes, or `None` if the program cannot be started.
fn sha256(path: &Path) -> Option<String> {
    let output = std::process::Command::new("sha256sum").arg(path).output().ok()?;
    // `sha256sum` prints a backslash before the digest if the file name contains one.
    Some(String::from_utf8_lossy(&output.stdout).trim_start_matches('\\').split(' ').next()?.to_owned())
}

#[test]
fn a_bundle_describes_all_that_is_in_it() {
    let place = Scratch::new();
    let author = ["--author", "Josiah Carberry", "--orcid", "0000-0002-1825-0097", "--license", "CC-BY-4.0"];
    place.ok(&[&["bundle", "out", "-o", "one.zip"], &author[..]].concat());
    place.ok(&[&["bundle", "out", "-o", "two.zip"], &author[..]].concat());
    let bytes = |name: &str| std::fs::read(place.path(name)).expect("it was written");
    assert!(bytes("one.zip") == bytes("two.zip"), "two bundles of the same results differ");
    place.unpack("one.zip", "unpacked");
    let unpacked: BTreeSet<String> = contents_of(&place.path("unpacked/small")).into_keys().collect();
    for name in [
        "README.md",
        "CITATION.cff",
        "study/plans/small.toml",
        "study/plans/groups.toml",
        "study/plans/weights.csv",
        "study/data/trace.csv",
        "results/small/study.json",
        "results/small/run.json",
        "results/small/report.html",
        "results/small/statistics/differences.csv",
        "results/small/cell=machines-2x8c16g/runs/policy=quota%3Agroups.toml/run=1/runs.parquet",
    ] {
        assert!(unpacked.contains(name), "{name}: {unpacked:?}");
    }
    // All results are packed, byte by byte.
    assert_eq!(
        differences(&contents(&place.path("out")), &contents(&place.path("unpacked/small/results/small"))),
        [""; 0]
    );
    // RO-Crate 1.1: the descriptor, the root with its required properties, and every file as an entity and a part.
    let json = place.description("unpacked/small");
    assert_eq!(json["@context"][0], "https://w3id.org/ro/crate/1.1/context");
    let graph = json["@graph"].as_array().expect("a graph");
    let ids: Vec<&str> = graph.iter().map(|entity| entity["@id"].as_str().expect("every entity has an id")).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "an id of an entity occurs twice");
    let entity = |id: &str| graph.iter().find(|entity| entity["@id"] == id).unwrap_or_else(|| panic!("no {id}"));
    let descriptor = entity("ro-crate-metadata.json");
    assert_eq!(
        (&descriptor["@type"], &descriptor["conformsTo"]["@id"], &descriptor["about"]["@id"]),
        (&"CreativeWork".into(), &"https://w3id.org/ro/crate/1.1".into(), &"./".into())
    );
    assert_eq!(entity("#plimsoll")["description"], env!("CARGO_PKG_DESCRIPTION"));
    let root = entity("./");
    assert_eq!((&root["@type"], &root["name"]), (&"Dataset".into(), &"small".into()));
    assert_eq!(root["description"], "Is it all there?");
    let date = root["datePublished"].as_str().expect("a date");
    assert!(date.len() == 10 && date > "2020", "{date}");
    assert_eq!(entity(root["license"]["@id"].as_str().expect("a licence"))["name"], "CC-BY-4.0");
    assert_eq!(entity("https://orcid.org/0000-0002-1825-0097")["name"], "Josiah Carberry");
    let listed: BTreeSet<String> = graph
        .iter()
        .filter(|entity| entity["@type"] == "File")
        .map(|file| decoded(file["@id"].as_str().expect("an id")))
        .collect();
    let all: BTreeSet<String> = unpacked.iter().filter(|name| *name != "ro-crate-metadata.json").cloned().collect();
    assert_eq!(listed, all);
    let parts: BTreeSet<&str> =
        root["hasPart"].as_array().expect("parts").iter().filter_map(|part| part["@id"].as_str()).collect();
    for file in graph.iter().filter(|entity| entity["@type"] == "File") {
        let id = file["@id"].as_str().expect("an id");
        let path = place.path("unpacked/small").join(decoded(id));
        assert!(parts.contains(id) && file["encodingFormat"].as_str().is_some_and(|kind| kind.contains('/')), "{file}");
        let size = path.metadata().expect("it was unpacked").len().to_string();
        assert_eq!(file["contentSize"], size.as_str(), "{file}");
        if let Some(digest) = sha256(&path) {
            assert_eq!(file["sha256"], digest.as_str(), "{file}");
        }
    }
    // Every reference, except those to the RO-Crate specification, is to an entity of the graph.
    let mut links = Vec::new();
    graph.iter().for_each(|entity| gather(entity, &mut links));
    links.retain(|link| !link.starts_with("https://w3id.org/ro/crate/"));
    for link in &links {
        entity(link);
    }
    let action = entity("#run");
    assert_eq!(
        entity(action["instrument"]["@id"].as_str().expect("a program"))["softwareVersion"],
        env!("CARGO_PKG_VERSION")
    );
    assert!(
        action["object"].as_array().expect("inputs").contains(&serde_json::json!({ "@id": "study/data/trace.csv" }))
    );
    assert!(place.ok(&["bundle", "--verify", "one.zip"]).contains("all unmodified"));
}

fn gather(value: &Value, links: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            if let (Some(id), 1) = (object.get("@id"), object.len()) {
                links.push(id.as_str().expect("text").to_owned());
            }
            object.values().for_each(|value| gather(value, links));
        }
        Value::Array(items) => items.iter().for_each(|item| gather(item, links)),
        _ => {}
    }
}

/// Returns all files below a folder, by their path below it.
fn contents_of(folder: &Path) -> BTreeMap<String, PathBuf> {
    let below = |path: &PathBuf| path.strip_prefix(folder).expect("files were listed there").display().to_string();
    files(folder).into_iter().map(|path| (below(&path), path)).collect()
}

#[test]
fn what_is_in_a_bundle_runs_again_to_the_same_bytes() {
    let place = Scratch::new();
    place.ok(&["bundle", "out"]);
    place.unpack("small.zip", "unpacked");
    place.ok(&["run", "unpacked/small/study/plans/small.toml", "-o", "again", "-j", "1"]);
    assert_eq!(differences(&contents(&place.path("out")), &contents(&place.path("again"))), [""; 0]);
    assert!(place.ok(&["compare", "unpacked/small/results/small", "again"]).contains("nothing changed"));
    // The README has the commands `run` and `compare` that were executed above.
    let readme = std::fs::read_to_string(place.path("unpacked/small/README.md")).expect("text");
    for part in
        ["plimsoll run study/plans/small.toml -o again", "plimsoll compare results/small again", "Is it all there?"]
    {
        assert!(readme.contains(part), "{part}: {readme}");
    }
}

#[test]
fn what_is_not_whole_is_refused() {
    let place = Scratch::new();
    let table = place.path("out/cell=machines-2x8c16g/users/policy=fifo/run=1/users.parquet");
    let whole = std::fs::read(&table).expect("a table");
    std::fs::write(&table, &whole[..whole.len() / 2]).expect("writable");
    let message = place.refused(&["bundle", "out"]);
    for part in
        ["not complete", "is not as it was written", "machines-2x8c16g, fifo run 1", "`plimsoll run`", "--incomplete"]
    {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(!place.path("small.zip").exists());
    place.ok(&["bundle", "out", "--incomplete"]);
    place.unpack("small.zip", "unpacked");
    let readme = std::fs::read_to_string(place.path("unpacked/small/README.md")).expect("text");
    assert!(readme.contains("Not complete") && readme.contains("fifo run 1"), "{readme}");
    assert!(!place.path("unpacked/small/results/small/cell=machines-2x8c16g/users/policy=fifo/run=1").exists());
    std::fs::write(&table, &whole).expect("writable");
    // The plan has changed since the run: the bundle has its earlier text, which the results record.
    place.write("plans/small.toml", &PLAN.replace("2x8c16g", "2x9c16g"));
    place.ok(&["bundle", "out"]);
    place.unpack("small.zip", "old");
    let plan = std::fs::read_to_string(place.path("old/small/study/plans/small.toml")).expect("a plan");
    assert!(plan.contains("2x8c16g") && !plan.contains("2x9c16g"), "{plan}");
    place.write("plans/small.toml", PLAN);
    // An input has changed since the run, or it is gone.
    let weights = std::fs::read_to_string(place.path("plans/weights.csv")).expect("weights");
    place.write("plans/weights.csv", &weights.replace("u0,2", "u0,3"));
    assert!(place.refused(&["bundle", "out"]).contains("weights.csv (it has changed since it was read)"));
    std::fs::remove_file(place.path("plans/weights.csv")).expect("it is there");
    let message = place.refused(&["bundle", "out", "-o", "none.zip"]);
    assert!(message.contains("weights.csv (it is not in ") && !place.path("none.zip").exists(), "{message}");
    place.write("plans/weights.csv", &weights);
    // A figure or a page has changed, or there is a file that no record lists.
    for name in ["figures/used_cpu.svg", "report.html", "cell=machines-3x8c16g/figures/shares.csv"] {
        let path = place.path(&format!("out/{name}"));
        let mut bytes = std::fs::read(&path).expect("it was drawn");
        *bytes.last_mut().expect("it is not empty") ^= 1;
        std::fs::write(&path, &bytes).expect("writable");
        let (message, name) = (place.refused(&["bundle", "out"]), name.rsplit("6g/").next().expect("a name"));
        assert!(message.contains(&format!("{name} is not as it was written")), "{message}");
        *bytes.last_mut().expect("it is not empty") ^= 1;
        std::fs::write(&path, bytes).expect("writable");
    }
    place.write("out/notes.txt", "mine");
    assert!(
        place
            .ok(&["bundle", "out", "-o", "noted.zip"])
            .contains("not packed, since they do not belong to these results: notes.txt")
    );
    place.unpack("noted.zip", "noted");
    assert!(!place.path("noted/small/results/small/notes.txt").exists());
    std::fs::remove_file(place.path("out/notes.txt")).expect("it is there");
    // An input is too large to pack: the bundle has only its digest.
    let message = place.ok(&["bundle", "out", "--largest", "0", "-o", "slim.zip"]);
    assert!(message.contains("trace.csv") && message.contains("only its digest"), "{message}");
    place.ok(&["bundle", "--verify", "slim.zip"]);
    let message = place.refused(&["bundle", "out", "--author", "A", "--orcid", "0000-0002-1825-0098"]);
    assert!(message.contains("0000-0002-1825-0097"), "{message}");
    assert!(place.refused(&["bundle", "plans"]).contains("not a results folder"));
    assert!(place.refused(&["bundle", "--verify", "data/trace.csv"]).contains("not a whole archive"));
}

/// An archive that another program has changed fails the verification.
#[test]
fn a_bundle_that_was_changed_is_found_out() {
    use std::io::Write;
    let place = Scratch::new();
    place.ok(&["bundle", "out"]);
    place.unpack("small.zip", "unpacked");
    let packed = |change: &dyn Fn(&str, Vec<u8>) -> Option<Vec<u8>>, more: Option<&str>| {
        let file = std::fs::File::create(place.path("other.zip")).expect("writable");
        let mut writer = zip::ZipWriter::new(file);
        let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        for (name, path) in contents_of(&place.path("unpacked/small")) {
            let name = format!("small/{name}");
            let Some(bytes) = change(&name, std::fs::read(path).expect("readable")) else { continue };
            writer.start_file(name, options).expect("a new name");
            writer.write_all(&bytes).expect("writable");
        }
        if let Some(name) = more {
            writer.start_file(name, options).expect("a new name");
        }
        writer.finish().expect("writable");
        place.refused(&["bundle", "--verify", "other.zip"])
    };
    let longer = |name: &str, bytes: Vec<u8>| {
        Some(if name == "small/study/data/trace.csv" { [bytes, b"x".to_vec()].concat() } else { bytes })
    };
    assert!(packed(&longer, None).contains("small/study/data/trace.csv: it is not as it was packed"));
    let without = |name: &str, bytes: Vec<u8>| (name != "small/results/small/report.html").then_some(bytes);
    assert!(packed(&without, None).contains("results/small/report.html: it is listed but missing"));
    assert!(
        packed(&|_, bytes| Some(bytes), Some("small/extra.txt")).contains("extra.txt: it is present but not listed")
    );
    let undescribed = |name: &str, bytes: Vec<u8>| (name != "small/ro-crate-metadata.json").then_some(bytes);
    assert!(packed(&undescribed, None).contains("ro-crate-metadata.json"));
}

/// Results of plans without runs can be bundled too, because their manifest records the experiment.
#[test]
fn results_without_runs_are_packed_too() {
    let place = Scratch(tempfile::tempdir().expect("a temporary folder"));
    place.write("data/i.toml", "[capacity]\ncpu = 9\n[[user]]\ndemand = { cpu = 1 }\n");
    let plans = [
        ("failover", "[failover]\nscenarios = [\"2\"]\nwithout = [\"clamp\"]\n", "scenarios.parquet"),
        ("checked", "[check]\npolicies = [\"asset\"]\neffort = \"quick\"\n", "figures/properties.csv"),
        ("solved", "[solve]\ninstances = [\"../data/i.toml\"]\npolicies = [\"drf\"]\n", "figures/i.pdf"),
    ];
    for (name, plan, file) in plans {
        place.write(&format!("plans/{name}.toml"), &format!("name = \"{name}\"\nquestion = \"Why?\"\n{plan}"));
        place.ok(&["run", &format!("plans/{name}.toml"), "-o", name]);
        let zip = format!("{name}.zip");
        place.ok(&["bundle", name]);
        assert!(place.ok(&["bundle", "--verify", &zip]).contains("all unmodified"));
        place.unpack(&zip, "unpacked");
        let unpacked = format!("unpacked/{name}");
        assert!(place.path(&format!("{unpacked}/results/{name}/{file}")).is_file(), "{name}: {file}");
        let json = place.description(&unpacked);
        let root = json["@graph"].as_array().expect("a graph").iter().find(|entity| entity["@id"] == "./");
        assert_eq!(root.expect("a root")["description"], "Why?");
        // The plan can be run again, and the results have the same bytes.
        let plan = match name {
            "solved" => "study/plans/solved.toml".to_owned(),
            name => format!("study/{name}.toml"),
        };
        let output = run(plimsoll(&["run", "-q", &plan, "-o", "again"]).current_dir(place.path(&unpacked)));
        assert!(output.status.success(), "{}", said(&output));
        let results = |folder: &str| contents(&place.path(&format!("{unpacked}/{folder}")));
        assert_eq!(differences(&results(&format!("results/{name}")), &results("again")), [""; 0], "{name}");
        // A changed file is detected.
        place.write(&format!("{name}/{file}"), "changed");
        let message = place.refused(&["bundle", name]);
        assert!(message.contains("is not complete") && message.contains(file), "{message}");
    }
    // Runs of another plan are not added to these results.
    place.write(
        "plans/other.toml",
        "name = \"o\"\npolicies = [\"drf\"]\n[cluster]\nmachines = \"2x4c8g\"\n[workload]\n\
                                     generator = \"facebook\"\nhours = 0.01\n",
    );
    assert!(place.refused(&["run", "plans/other.toml", "-o", "solved"]).contains("results of another plan"));
    place.ok(&["run", "plans/other.toml", "-o", "solved", "--restart"]);
    assert!(!place.path("solved/figures/i.svg").exists(), "the earlier figure was removed");
    assert!(place.refused(&["run", "plans/solved.toml", "-o", "solved"]).contains("results of another plan"));
}

/// Every reading command refuses results of a newer schema version.
#[test]
fn another_version_of_the_schema_is_refused_with_what_to_do() {
    let place = Scratch::new();
    let study = place.path("out/study.json");
    let text = std::fs::read_to_string(&study).expect("a description");
    place.write(
        "out/study.json",
        &text.replace(&format!("\"schema\": {VERSION}"), &format!("\"schema\": {}", VERSION + 1)),
    );
    for args in [&["plot", "out"][..], &["report", "out"], &["bundle", "out"], &["compare", "out", "out"]] {
        let message = place.refused(args);
        let versions = [format!("schema {}", VERSION + 1), format!("reads schema {VERSION}")];
        for part in ["study.json", "newer Plimsoll"].into_iter().chain(versions.iter().map(String::as_str)) {
            assert!(message.contains(part), "{args:?}: {part} is not in {message}");
        }
    }
}
