//! Converts the configurations of production schedulers to files of queues.
//!
//! Each format is one file with a static row, which is listed in [`FORMATS`]. Shared parts are in `objects.rs` (Kubernetes) and `yarn.rs`.
//! Numbers are converted without floats (`quantity.rs`). A setting without a key in the file of queues becomes a note (`diagnostics.rs`): a
//! warning, and a comment in the file. docs/queues.md lists the converted settings.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod diagnostics;
mod group;
mod kai;
mod kueue;
mod objects;
mod quantity;
mod volcano;
mod xml;
mod yaml;
mod yarn;
mod yarn_capacity;
mod yarn_checks;
mod yarn_fair;

use std::path::PathBuf;

use diagnostics::Diagnostics;
use group::Queues;
pub use group::{GroupKey, KEYS};
use plimsoll_base::error::{Error, Result, either};
use plimsoll_base::tree::{Node, Place};
use xml::Element;

/// The declaration of a format, in the format's own file. The rest of the program uses a format only through its row.
pub struct FormatRow {
    /// The name on the command line.
    pub name: &'static str,
    /// The content, in a few words.
    pub about: &'static str,
    /// The layout of a file.
    pub layout: &'static str,
    /// The properties that are read, and the corresponding keys.
    pub properties: &'static [Property],
    /// The keys of the policies without a corresponding property of the format, each with the reason.
    pub ours: &'static [(&'static str, &'static str)],
    /// The policies that read the resulting file.
    pub policies: &'static [&'static str],
    /// The definition of the format.
    pub source: &'static str,
    /// Returns whether a source is of this format.
    recognises: fn(&ParsedSource) -> bool,
    /// Reads sources as one configuration.
    read: fn(&[ParsedSource], &mut Diagnostics) -> Result<Queues>,
}

/// A property of a format, and the corresponding key of the file of queues.
pub struct Property {
    /// The name of the property in the format.
    pub upstream: &'static str,
    /// The key of a group, or `[policy] KEY`; empty for a property that only changes the meaning of other properties.
    pub key: &'static str,
    /// The value that is written if the property is absent; empty to use the policy's default.
    pub default: &'static str,
    /// The rest of the rule, in Markdown.
    pub rule: &'static str,
}

const fn property(upstream: &'static str, key: &'static str, default: &'static str, rule: &'static str) -> Property {
    Property { upstream, key, default, rule }
}

impl FormatRow {
    /// Returns the keys that groups may have, in the order of writing.
    pub fn keys(&self) -> Vec<&'static str> {
        let becomes = |key: &&str| self.properties.iter().any(|property| property.key == *key);
        KEYS.iter().map(|key| key.name).filter(becomes).collect()
    }
}

/// A format.
pub type Format = &'static FormatRow;

/// All formats.
pub static FORMATS: [Format; 5] = [&kueue::ROW, &kai::ROW, &volcano::ROW, &yarn_capacity::ROW, &yarn_fair::ROW];

/// The content of a source: YAML documents or an XML element.
enum SourceContent {
    Yaml(Vec<Node>),
    Xml(Element),
}

/// A parsed file.
pub struct ParsedSource {
    place: Place,
    content: SourceContent,
}

impl ParsedSource {
    /// Parses the text of a file with this name. Errors: the parser's message, with its location.
    fn parse(name: PathBuf, text: String) -> Result<ParsedSource> {
        let place = Place::whole_text(name, text);
        let content = match place.text().trim_start().starts_with('<') {
            true => SourceContent::Xml(xml::read(&place)?),
            false => SourceContent::Yaml(yaml::read(&place)?),
        };
        Ok(ParsedSource { place, content })
    }

    /// Returns whether the source has an object of one of these APIs.
    fn has_api(&self, apis: &[&str]) -> bool {
        objects::objects(std::slice::from_ref(self))
            .is_ok_and(|all| all.iter().any(|object| apis.contains(&object.api)))
    }

    /// Returns the root element. Errors: the source is not XML, or the root element has another name.
    fn root(&self, name: &str) -> Result<&Element> {
        match &self.content {
            SourceContent::Xml(root) if root.name == name => Ok(root),
            SourceContent::Xml(root) => Err(root.place.wrong("", format!("expected <{name}>"))),
            SourceContent::Yaml(_) => Err(self.place.wrong("", format!("is not XML; expected <{name}>"))),
        }
    }
}

/// The result of an import.
pub struct Imported {
    /// The format of the configuration.
    pub format: Format,
    /// The file of queues.
    pub text: String,
    /// The notes, which are also in the file's comment.
    pub notes: Vec<String>,
    /// The number of groups.
    pub groups: usize,
}

/// Converts named texts, which form one configuration, to a file of queues; the format is detected unless it is given.
///
/// Errors: [`Error::Placed`] with file and line, and the accepted values.
pub fn import(texts: Vec<(PathBuf, String)>, format: Option<Format>) -> Result<Imported> {
    let sources: Vec<ParsedSource> =
        texts.into_iter().map(|(name, text)| ParsedSource::parse(name, text)).collect::<Result<_>>()?;
    let format = match format {
        Some(format) => format,
        None => detect(&sources)?,
    };
    let mut notes = Diagnostics::default();
    let queues = (format.read)(&sources, &mut notes)?;
    if queues.groups.is_empty() {
        let place = sources.first().map(|source| source.place.clone()).unwrap_or_default();
        return Err(place.wrong("", format!("has no queues of {}; expected {}", format.name, format.layout)));
    }
    let notes = notes.lines();
    let file = |source: &ParsedSource| source.place.file().display().to_string();
    let files: Vec<String> = sources.iter().map(file).collect();
    let mut comment =
        vec![format!("Queues of {} ({}), converted from {}.", format.name, format.about, files.join(", "))];
    if !notes.is_empty() {
        comment.extend([String::new(), "Not carried over, or changed:".to_owned()]);
        comment.extend(notes.iter().map(|note| format!("- {note}")));
    }
    let text = queues.text(&comment)?;
    Ok(Imported { format, text, notes, groups: queues.groups.len() })
}

/// Detects the format of the sources. Errors: an unknown format, or several formats.
fn detect(sources: &[ParsedSource]) -> Result<Format> {
    let of = |source: &ParsedSource| FORMATS.iter().copied().find(|format| (format.recognises)(source));
    let mut found: Option<(Format, &ParsedSource)> = None;
    for source in sources {
        match (of(source), found) {
            (Some(format), Some((other, first))) if format.name != other.name => {
                let first = format!("{} is {}", first.place.file().display(), other.name);
                let problem = format!("is {}, and {first}; expected one format, or an explicit --format", format.name);
                return Err(source.place.wrong("", problem));
            }
            (Some(format), None) => found = Some((format, source)),
            _ => {}
        }
    }
    found.map(|(format, _)| format).ok_or_else(|| {
        let names = either(FORMATS.iter().map(|format| format.name));
        let place = sources.first().map(|source| source.place.clone()).unwrap_or_default();
        place.wrong(
            "",
            format!(
                "has no recognised format; expected {names}, or an explicit --format; queues of \
                 other schedulers, such as YuniKorn, Koordinator, Armada or Slurm, are written by hand: docs/queues.md"
            ),
        )
    })
}

/// Returns the format of this name. Errors: [`Error::Plan`] under `key`, with the accepted names.
pub fn format(key: &str, name: &str) -> Result<Format> {
    let found = FORMATS.iter().copied().find(|format| format.name == name);
    found.ok_or_else(|| Error::plan(key, format!("'{name}'"), either(FORMATS.iter().map(|format| format.name))))
}
