//! Manipulated results folders and bundles: no file from outside the folder is packed, and verification accepts no bundle that
//! unpacks to other files than it lists.

use std::io::Write;
use std::path::Path;

use plimsoll::output::bundle::collect;
use sha2::{Digest, Sha256};
use zip::CompressionMethod;
use zip::write::SimpleFileOptions;

use crate::bundle::Scratch;
use crate::replay::{forge, plimsoll, run, said};

impl Scratch {
    fn edit(&self, name: &str, change: impl Fn(&str) -> String) {
        if name.ends_with(".json") {
            return forge(&self.path(name), change);
        }
        let text = std::fs::read_to_string(self.path(name)).expect("text");
        self.write(name, &change(&text));
    }
}

/// References of a results folder to files outside of it, by name or by link, are refused or not packed.
#[test]
fn nothing_of_another_place_is_packed() {
    let place = Scratch::new();
    let (study, made) = ("out/study.json", "out/run.json");
    let before: Vec<String> =
        [study, made].iter().map(|n| std::fs::read_to_string(place.path(n)).expect("text")).collect();
    place.write("secret.txt", "secret");
    // The name of the study leads to another folder, both for the zip file and for the entries in it.
    for name in ["../evil", "/evil", "a/b", "..", ".x", "-v", "a\\b", "a\u{1}b", "nul", "a:b"] {
        let name = serde_json::to_string(name).expect("a text");
        place.edit(study, |text| text.replace("\"name\": \"small\"", &format!("\"name\": {name}")));
        let message = place.refused(&["bundle", "out", "--incomplete"]);
        assert!(message.contains("a name for files, without slashes"), "{name}: {message}");
        place.write(study, &before[0]);
    }
    assert!(!place.path("../evil.zip").exists() && !Path::new("/evil.zip").exists());
    // A fabricated input: the attacker does not know the digest of the file.
    let digest = "0".repeat(64);
    for (name, says) in [
        ("../secret.txt", "it has changed since it was read"),
        ("/etc/passwd", "absolute path"),
        ("../../../../../../../../../../../../etc/passwd", "outside of the current folder"),
        ("../gone.txt", "it is not in"),
    ] {
        let more = |text: &str| text.replace("\"inputs\": {", &format!("\"inputs\": {{ \"{name}\": \"{digest}\", "));
        place.edit(made, more);
        let message = place.refused(&["bundle", "out"]);
        assert!(message.contains(name.trim_start_matches("../")) && message.contains(says), "{name}: {message}");
        place.ok(&["bundle", "out", "--incomplete", "-o", "incomplete.zip"]);
        place.unpack("incomplete.zip", "incomplete");
        let all = crate::replay::files(&place.path("incomplete"));
        let leaked = |path: &&std::path::PathBuf| path.ends_with("secret.txt") || path.ends_with("passwd");
        assert!(all.len() > 50 && !all.iter().any(|path| leaked(&path)), "{name}");
        std::fs::remove_dir_all(place.path("incomplete")).expect("it is there");
        place.write(made, &before[1]);
    }
    // Bundling is refused if the inputs are not below the current folder.
    let output = run(plimsoll(&["bundle", "../out", "-o", "x.zip"]).current_dir(place.path("data")));
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("outside of the current folder"), "{}", said(&output));
    // A manifest references a file outside of the folder.
    place.edit("out/made.json", |text| text.replace("\"figures/used_cpu.svg\"", "\"../secret.txt\""));
    assert!(place.refused(&["bundle", "out"]).contains("../secret.txt"));
}

#[cfg(unix)]
#[test]
fn links_are_refused_and_end() {
    use std::os::unix::fs::symlink;
    let place = Scratch::new();
    place.write("secret.txt", "secret");
    for (at, to) in [
        ("out/figures/a.svg", "../../secret.txt"),
        ("out/loop", "."),
        ("out/cell=machines-2x8c16g/figures/loop", ".."),
        ("out/gone", "nowhere"),
    ] {
        symlink(to, place.path(at)).expect("a temporary folder");
        for args in [&["bundle", "out"][..], &["bundle", "out", "--incomplete"]] {
            let message = place.refused(args);
            assert!(message.contains("it is a link") && message.contains(at), "{at}: {message}");
        }
        std::fs::remove_file(place.path(at)).expect("it is there");
    }
    // An input through a link: the target of the link must be below the current folder.
    std::fs::create_dir(place.path("work")).expect("a temporary folder");
    for name in ["plans", "out"] {
        std::fs::rename(place.path(name), place.path(&format!("work/{name}"))).expect("a temporary folder");
    }
    symlink("../data", place.path("work/data")).expect("a temporary folder");
    let bundle = |folder: &str, results: &str| run(plimsoll(&["bundle", results]).current_dir(place.path(folder)));
    let output = bundle("work", "out");
    assert!(!output.status.success() && said(&output).contains("outside of the current folder"), "{}", said(&output));
    assert!(bundle(".", "work/out").status.success());
}

/// The entries of an archive, each with its name, its content, and whether it is a link.
type Entries<'a> = Vec<(&'a str, &'a [u8], bool)>;

/// Writes an archive with these entries, and a description that lists the files of `listed`.
fn packed(path: &Path, entries: &Entries, listed: &[(&str, u64, &str)]) {
    let mut writer = zip::ZipWriter::new(std::fs::File::create(path).expect("writable"));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    let file = |(name, size, sha256): &(&str, u64, &str)| serde_json::json!({ "@id": name, "@type": "File", "contentSize": size.to_string(), "sha256": sha256 });
    let link = |(name, ..): &(&str, u64, &str)| serde_json::json!({ "@id": name });
    let mut graph = vec![
        serde_json::json!({ "@id": "ro-crate-metadata.json", "about": { "@id": "./" } }),
        serde_json::json!({ "@id": "./", "hasPart": listed.iter().map(link).collect::<Vec<_>>() }),
    ];
    graph.extend(listed.iter().map(file));
    writer.start_file("b/ro-crate-metadata.json", options).expect("a new name");
    writer.write_all(serde_json::json!({ "@graph": graph }).to_string().as_bytes()).expect("writable");
    for (name, bytes, is_link) in entries {
        match is_link {
            true => writer.add_symlink(*name, std::str::from_utf8(bytes).expect("text"), options).expect("a new name"),
            false => {
                writer.start_file(*name, options).expect("a new name");
                writer.write_all(bytes).expect("writable");
            }
        }
    }
    writer.finish().expect("writable");
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn archives_that_are_not_what_they_seem_are_refused() {
    let place = Scratch(tempfile::tempdir().expect("a temporary folder"));
    let zip = place.path("b.zip");
    let (good, sum) = (&b"good"[..], sha256(b"good"));
    let refused = |entries: &Entries, listed: &[(&str, u64, &str)], says: &[&str]| {
        packed(&zip, entries, listed);
        let message = place.refused(&["bundle", "--verify", "b.zip"]);
        assert!(says.iter().all(|part| message.contains(part)), "{says:?}: {message}");
    };
    packed(&zip, &vec![("b/a.txt", good, false)], &[("a.txt", 4, &sum)]);
    assert!(place.ok(&["bundle", "--verify", "b.zip"]).contains("1 file, 4 bytes when unpacked, all unmodified"));
    for (name, says) in [
        ("b/../../a.txt", "another folder"),
        ("/a.txt", "absolute"),
        ("b/C:a.txt", "Windows"),
        ("b/..\\a.txt", "backslash"),
        ("b/A.txt", "twice"),
        ("b/a.txt/c", "below a file"),
        ("b/x\u{7}", "control character"),
    ] {
        refused(
            &vec![("b/a.txt", good, false), (name, good, false)],
            &[("a.txt", 4, &sum)],
            &[says, name.split('\u{7}').next().expect("a name").trim_start_matches("b/..\\")],
        );
    }
    // Links are refused even if the description lists them.
    refused(
        &vec![("b/a.txt", b"/etc/passwd", true)],
        &[("a.txt", 11, &sha256(b"/etc/passwd"))],
        &["b/a.txt: it is a link"],
    );
    // The description lists no files.
    refused(&vec![], &[], &["lists no files"]);
    // An entry unpacks to more bytes than listed: reading stops at the listed size.
    let zeros = vec![0; 1 << 24];
    refused(&vec![("b/a.txt", &zeros, false)], &[("a.txt", 4, &sum)], &["b/a.txt: it is not as it was packed"]);
    // A description that exceeds the size limit.
    let file = std::fs::File::create(&zip).expect("writable");
    let mut writer = zip::ZipWriter::new(file);
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    writer.start_file("b/ro-crate-metadata.json", options).expect("a new name");
    (0..9).for_each(|_| writer.write_all(&vec![b' '; 1 << 24]).expect("writable"));
    writer.finish().expect("writable");
    let message = place.refused(&["bundle", "--verify", "b.zip"]);
    assert!(message.contains("longer than 128 MiB"), "{message}");
}

/// Archives that no zip library would write are refused.
#[test]
fn archives_that_programs_unpack_in_two_ways_are_refused() {
    let place = Scratch(tempfile::tempdir().expect("a temporary folder"));
    let (zip, sum) = (place.path("b.zip"), sha256(b"good"));
    packed(
        &zip,
        &vec![("b/reporX.html", b"evil", false), ("b/report.html", b"good", false)],
        &[("report.html", 4, &sum)],
    );
    let bytes = std::fs::read(&zip).expect("it was written");
    let refused = |bytes: &[u8], says: &str| {
        std::fs::write(&zip, bytes).expect("writable");
        let message = place.refused(&["bundle", "--verify", "b.zip"]);
        assert!(message.contains(says), "{says}: {message}");
    };
    refused(&bytes, "b/reporX.html: it is present but not listed");
    // One name twice: which one is unpacked depends on the program.
    let mut twice = bytes.clone();
    while let Some(at) = twice.windows(6).position(|window| window == b"reporX") {
        twice[at + 5] = b't';
    }
    refused(&twice, "b/report.html: it occurs twice");
    // An entry is in the file but not in its catalogue: a program that reads from the start unpacks it.
    let end = bytes.len() - 22;
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize;
    let (size, start) = (number(end + 12), number(end + 16));
    let entry =
        (start..end).find(|&at| bytes[at..].starts_with(b"PK\x01\x02") && bytes[at + 46..].starts_with(b"b/reporX"));
    let entry = entry.expect("it is in the catalogue");
    let length = 46 + usize::from(bytes[entry + 28]) + usize::from(bytes[entry + 30]) + usize::from(bytes[entry + 32]);
    let mut hidden = [&bytes[..entry], &bytes[entry + length..]].concat();
    let end = hidden.len() - 22;
    (hidden[end + 8], hidden[end + 10]) = (2, 2);
    hidden[end + 12..end + 16].copy_from_slice(&((size - length) as u32).to_le_bytes());
    refused(&hidden, "b/report.html: before it there are data that are not in the catalogue");
    // Bytes before and after the archive, and a truncated archive.
    refused(&[b"MZ", &bytes[..]].concat(), "catalogue");
    refused(&[&bytes[..], b"more"].concat(), "catalogue");
    refused(&bytes[..bytes.len() - 1], "catalogue");
    refused(b"PK", "too short");
}

/// The packed bytes are the bytes that were compared with the record, even if another process changes the files in the meantime.
#[test]
fn what_changes_between_the_look_and_the_packing_is_noticed() {
    let place = Scratch::new();
    let cell = "cell=machines-2x8c16g";
    let receipt = std::fs::read_dir(place.path(&format!("out/{cell}/done"))).expect("receipts").next();
    let receipt = receipt.expect("a run").expect("readable").file_name().into_string().expect("text");
    for name in [
        "study.json",
        "run.json",
        "made.json",
        "report.html",
        "figures/used_cpu.svg",
        "statistics/estimates.csv",
        &format!("{cell}/experiment.json"),
        &format!("{cell}/done/{receipt}"),
        &format!("{cell}/users/policy=fifo/run=1/users.parquet"),
    ] {
        let packed = collect(&place.path("out"), u64::MAX).expect("results");
        let path = place.path(&format!("out/{name}"));
        let before = std::fs::read(&path).expect("it is there");
        packed.files[name].sum().expect("as it was");
        std::fs::write(&path, [&before[..], b" "].concat()).expect("writable");
        let message = packed.files[name].sum().expect_err(name).to_string();
        assert!(message.contains(name) && message.contains("changed while it was being packed"), "{message}");
        std::fs::write(&path, before).expect("writable");
    }
}

/// Damaged receipts that belong to no run of the plan, or to a run that has another, sound receipt, are not packed.
#[test]
fn what_is_damaged_and_not_needed_is_left_out() {
    let place = Scratch::new();
    let done = "cell=machines-2x8c16g/done";
    let stray = format!("{done}/0123456789abcdef.json");
    let first = std::fs::read_dir(place.path(&format!("out/{done}"))).expect("receipts").next();
    let first = first.expect("a run").expect("readable").path();
    let whole = std::fs::read_to_string(&first).expect("a receipt");
    for text in ["damaged".to_owned(), whole.replace("policy", "polizy")] {
        place.write(&format!("out/{stray}"), &text);
        let said = place.ok(&["bundle", "out"]);
        assert!(said.contains(&format!("not packed, since they do not belong to these results: {stray}")), "{said}");
        assert!(place.ok(&["bundle", "--verify", "small.zip"]).contains("all unmodified"));
    }
    // A missing run is reported as missing, together with the damaged record.
    std::fs::remove_file(&first).expect("it is there");
    let message = place.refused(&["bundle", "out"]);
    for part in ["1 part (machines-2x8c16g, ", "0123456789abcdef.json: this record is not as it was", " run "] {
        assert!(message.contains(part), "{part}: {message}");
    }
}

#[test]
fn plans_that_differ_are_shown_without_control_characters() {
    let place = Scratch::new();
    let copied = std::process::Command::new("cp").arg("-r").args([place.path("out"), place.path("other")]).status();
    assert!(copied.expect("a copy").success());
    let more = "\\\"\\\\u001b]0;x\\\\u0007\\\" = 1\\n";
    place.edit("other/study.json", |text| text.replace("\"plan\": \"", &format!("\"plan\": \"{more}")));
    let said = place.ok(&["compare", "out", "other"]);
    assert!(said.contains("the plans differ:\n  + \\u{1b}]0;x\\u{7} = 1\n"), "{said:?}");
}

/// A description of a few pages may request more runs than can be checked one by one.
#[test]
fn plans_of_any_number_of_runs_are_read_at_once() {
    let place = Scratch::new();
    std::fs::rename(place.path("out/cell=machines-2x8c16g"), place.path("one")).expect("a folder");
    forge(&place.path("one/experiment.json"), |text| {
        let mut record: serde_json::Value = serde_json::from_str(text).expect("JSON");
        let policies = (0..200_000).map(|at| at.to_string());
        let there = ["drf", "fifo", "quota:groups.toml"].map(str::to_owned);
        record["policies"] = there.into_iter().chain(policies).collect();
        record["seeds"] = (1..200_000).collect();
        record["name"] = "one".into();
        record.to_string()
    });
    let message = place.refused(&["bundle", "one"]);
    assert!(
        message.contains("not complete: 40,000,399,993 parts") && message.contains("drf run 2; drf run 3"),
        "{message}"
    );
    let said = place.ok(&["compare", "one", "one"]);
    assert!(said.contains("6 of 40000399997 runs are complete") && said.contains("nothing changed"), "{said}");
    // A receipt has a higher run number than the others.
    let moved = |text: &str| text.replace("/run=1/", "/run=7/");
    for path in crate::replay::files(&place.path("one")) {
        let name = path.display().to_string();
        if name.contains("/run=1/") {
            std::fs::create_dir_all(Path::new(&moved(&name)).parent().expect("a folder")).expect("a temporary folder");
            std::fs::copy(&path, moved(&name)).expect("a temporary folder is writable");
        }
    }
    let second = crate::replay::files(&place.path("one/done"));
    let second = second.iter().find(|path| std::fs::read_to_string(path).is_ok_and(|text| text.contains("/run=1/")));
    forge(second.expect("a second run"), moved);
    for verb in ["plot", "report"] {
        let message = place.refused(&[verb, "one"]);
        assert!(message.contains("experiment.json: it requests 1600024 runs"), "{message}");
    }
}

/// Statistics that no manifest lists are not drawn.
#[test]
fn statistics_without_a_record_are_not_drawn() {
    let place = Scratch(tempfile::tempdir().expect("a temporary folder"));
    place.write(
        "plan.toml",
        "name = \"small\"\npolicies = [\"drf\", \"fifo\"]\nseeds = 2\n[cluster]\nmachines = \"2x8c16g\"\n[workload]\n\
         generator = \"facebook\"\nhours = 0.02\n[[figure]]\nkind = \"difference\"\n\
         y = \"completion_mean_s\"\n",
    );
    place.ok(&["run", "plan.toml", "-o", "out"]);
    place.ok(&["plot", "out"]);
    let table = "statistics/differences.parquet";
    place.edit("out/made.json", |text| text.replace(table, "statistics/others.parquet"));
    assert!(place.refused(&["plot", "out"]).contains(&format!("{table}: is not as it was written")));
    std::fs::remove_file(place.path("out/made.json")).expect("it is there");
    assert!(place.refused(&["plot", "out"]).contains(&format!("{table}: is not as it was written")));
    assert!(place.refused(&["report", "out"]).contains(&format!("{table}: is not as it was written")));
    assert!(place.refused(&["bundle", "out"]).contains("1 part (the statistics)"));
}
