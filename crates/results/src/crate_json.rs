//! The description of a bundle: an RO-Crate 1.1 (`ro-crate-metadata.json`, JSON-LD) with the run as a process, following the Process Run
//! Crate profile (<https://w3id.org/ro/wfrun/process/0.5>).

use std::collections::BTreeMap;

use plimsoll_base::escape;
use plimsoll_store::archive::Sum;
use serde_json::{Map, Value, json};

use crate::files::{self, RO_CRATE};
use crate::provenance::{COMMIT, DESCRIPTION, VERSION};

const CRATE: &str = "https://w3id.org/ro/crate/1.1";
const PROFILE: &str = "https://w3id.org/ro/wfrun/process/0.5";

/// An author of the results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    /// The name.
    pub name: String,
    /// The ORCID iD, 0000-0002-1825-0097.
    pub orcid: Option<String>,
}

/// The description of a bundle.
#[derive(Clone, Debug, Default)]
pub struct Publication {
    /// The experiment's name.
    pub name: String,
    /// The question that the experiment answers.
    pub question: String,
    /// The date of the results, as YYYY-MM-DD.
    pub date: String,
    /// The authors of the results.
    pub authors: Vec<Author>,
    /// The licence of the results, by its SPDX name.
    pub licence: Option<String>,
    /// The command that produced the results.
    pub command: String,
    /// The path of the plan, if there is one.
    pub plan: Option<String>,
    /// The folder of the results, with `/` at its end.
    pub results: String,
    /// The packed input files.
    pub inputs: Vec<String>,
    /// The input files that are not packed.
    pub elsewhere: BTreeMap<String, Sum>,
}

/// Formats the description of a bundle with these files.
pub fn describe(about: &Publication, files: &BTreeMap<String, Sum>) -> String {
    let link = |id: &str| json!({ "@id": id });
    let file_id = |name: &str| encoded(name);
    let authors: Vec<(String, &Author)> = about.authors.iter().map(|author| (author_id(author), author)).collect();
    let author_links: Vec<Value> = authors.iter().map(|(id, _)| link(id)).collect();
    let licence = about.licence.as_ref().map(|name| format!("https://spdx.org/licenses/{name}"));
    let results = file_id(&about.results);
    let parts: Vec<Value> = files.keys().map(|name| link(&file_id(name))).chain([link(&results)]).collect();
    let mut root = Map::new();
    root.insert("@id".to_owned(), json!("./"));
    root.insert("@type".to_owned(), json!("Dataset"));
    root.insert("conformsTo".to_owned(), link(PROFILE));
    root.insert("name".to_owned(), json!(about.name));
    root.insert("description".to_owned(), json!(about.question));
    root.insert("datePublished".to_owned(), json!(about.date));
    if let Some(licence) = &licence {
        root.insert("license".to_owned(), link(licence));
    }
    if !author_links.is_empty() {
        root.insert("author".to_owned(), json!(author_links));
    }
    root.insert("mentions".to_owned(), json!([link("#run")]));
    root.insert("hasPart".to_owned(), json!(parts));
    let elsewhere = |name: &String| format!("#elsewhere-{}", encoded(name));
    let objects = about.plan.iter().chain(&about.inputs).map(|name| link(&file_id(name)));
    let objects: Vec<Value> = objects.chain(about.elsewhere.keys().map(|name| link(&elsewhere(name)))).collect();
    let mut run = json!({
        "@id": "#run", "@type": "CreateAction", "name": format!("the runs of {}", about.name),
        "description": about.command, "endTime": about.date, "instrument": link("#plimsoll"), "object": objects,
        "result": [link(&results)],
    });
    let mut program = json!({
        "@id": "#plimsoll", "@type": "SoftwareApplication", "name": "Plimsoll", "softwareVersion": VERSION,
        "description": DESCRIPTION, "license": env!("CARGO_PKG_LICENSE"),
        "author": link("#plimsoll-developers"),
    });
    if let (Some(agent), Some(run)) = (author_links.first(), run.as_object_mut()) {
        run.insert("agent".to_owned(), agent.clone());
    }
    if let (Some(commit), Some(program)) = (COMMIT, program.as_object_mut()) {
        program.insert("identifier".to_owned(), json!(format!("git commit {commit}")));
    }
    let of_results: Vec<Value> =
        files.keys().filter(|name| name.starts_with(&about.results)).map(|name| link(&file_id(name))).collect();
    let mut graph = vec![
        json!({ "@id": RO_CRATE, "@type": "CreativeWork", "about": link("./"), "conformsTo": link(CRATE) }),
        Value::Object(root),
        run,
        program,
        json!({ "@id": "#plimsoll-developers", "@type": "Organization", "name": "The Plimsoll developers" }),
        json!({ "@id": PROFILE, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5" }),
        json!({ "@id": results, "@type": "Dataset", "name": format!("results of {}", about.name), "hasPart": of_results }),
    ];
    if let Some(id) = &licence {
        graph.push(json!({ "@id": id, "@type": "CreativeWork", "name": about.licence }));
    }
    for (id, author) in &authors {
        graph.push(json!({ "@id": id, "@type": "Person", "name": author.name }));
    }
    for (name, sum) in &about.elsewhere {
        graph.push(json!({
            "@id": elsewhere(name), "@type": "CreativeWork", "name": name, "contentSize": sum.size.to_string(),
            "sha256": sum.sha256, "description": "read by the run; not part of this bundle",
        }));
    }
    for (name, sum) in files {
        let mut file = json!({
            "@id": file_id(name), "@type": "File", "name": name, "contentSize": sum.size.to_string(),
            "encodingFormat": media_type(name), "sha256": sum.sha256,
        });
        if let (Some(text), Some(file)) = (explained(name), file.as_object_mut()) {
            file.insert("description".to_owned(), json!(text));
        }
        graph.push(file);
    }
    let context = json!([format!("{CRATE}/context"), { "sha256": "https://schema.org/sha256" }]);
    escape::json(&json!({ "@context": context, "@graph": graph })) + "\n"
}

fn author_id(author: &Author) -> String {
    match &author.orcid {
        Some(orcid) => format!("https://orcid.org/{orcid}"),
        None => format!("#{}", encoded(&author.name)),
    }
}

/// Returns whether a text is an ORCID iD: four groups of four digits. The last digit is a check digit, which may be `X` (ISO 7064, MOD
/// 11-2).
pub fn is_orcid(text: &str) -> bool {
    let digits: Vec<char> = text.chars().filter(|c| *c != '-').collect();
    let shaped = text.len() == 19 && text.split('-').all(|group| group.len() == 4) && digits.len() == 16;
    let Some(sum) = digits.iter().take(15).try_fold(0, |sum, c| Some((sum + c.to_digit(10)?) * 2)) else {
        return false;
    };
    let check = (12 - sum % 11) % 11;
    let expected = if check == 10 { 'X' } else { char::from_digit(check, 10).unwrap_or('?') };
    shaped && digits.last() == Some(&expected)
}

/// Encodes a path as a relative URI.
pub(crate) fn encoded(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/=,+@".contains(&byte);
    name.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "parquet" => "application/vnd.apache.parquet",
        "json" => "application/json",
        "csv" => "text/csv",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "pdf" => "application/pdf",
        "html" => "text/html",
        "toml" => "application/toml",
        "md" => "text/markdown",
        "cff" => "application/yaml",
        "tex" => "application/x-tex",
        _ => "application/octet-stream",
    }
}

/// Returns the explanation of an important file.
fn explained(name: &str) -> Option<&'static str> {
    match name.rsplit('/').next()? {
        "README.md" => Some("the content, and how to reproduce it"),
        files::REPORT => Some("tables with intervals, figures, plan and provenance on one page"),
        files::RUN => Some("the facts that differ between two executions of the plan: machine, threads, clock"),
        "estimates.csv" => Some("means with 95 % confidence intervals over seeds"),
        "differences.csv" => Some("differences from the baseline, paired by seed, with intervals and p-values"),
        "CITATION.cff" => Some("how to cite the program"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orcids_check_themselves() {
        assert!(is_orcid("0000-0002-1825-0097") && is_orcid("0000-0002-1694-233X"));
        for wrong in ["0000-0002-1825-0098", "0000-0002-1694-2330", "0000000218250097", "0000-0002-1825-009", ""] {
            assert!(!is_orcid(wrong), "{wrong}");
        }
    }

    #[test]
    fn paths_become_uris() {
        assert_eq!(encoded("r/policy=slot%3A2/a b.csv"), "r/policy=slot%253A2/a%20b.csv");
    }
}
