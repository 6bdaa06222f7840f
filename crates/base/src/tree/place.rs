//! A place in a text: its file, line and column.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Node;
use crate::error::Error;

/// A text and its name.
#[derive(Default)]
struct TextSource {
    name: PathBuf,
    text: String,
    /// Whether the text was generated from a value; its lines mean nothing to the caller.
    is_generated: bool,
}

/// A place in a text: a range of bytes, or the whole text.
#[derive(Clone, Default)]
pub struct Place {
    source: Arc<TextSource>,
    span: Option<Range<usize>>,
}

impl Place {
    /// Creates the place of a whole text, which messages call `name`.
    pub fn whole_text(name: impl Into<PathBuf>, text: impl Into<String>) -> Place {
        Place { source: Arc::new(TextSource { name: name.into(), text: text.into(), is_generated: false }), span: None }
    }

    /// Creates the place of a whole text in TOML that was generated from a value. Messages have keys instead of lines and columns.
    pub fn generated_text(name: impl Into<PathBuf>, text: impl Into<String>) -> Place {
        Place { source: Arc::new(TextSource { name: name.into(), text: text.into(), is_generated: true }), span: None }
    }

    /// Returns the place of these bytes of the text.
    pub fn at(&self, span: Range<usize>) -> Place {
        Place { source: self.source.clone(), span: Some(span) }
    }

    /// Returns the same file with an unknown position.
    pub(super) fn unknown(&self) -> Place {
        Place { source: self.source.clone(), span: None }
    }

    /// Returns whether the text was generated from a value.
    pub(super) fn is_generated(&self) -> bool {
        self.source.is_generated
    }

    /// Returns the name of the file.
    pub fn file(&self) -> &Path {
        &self.source.name
    }

    /// Returns the text at this place as written.
    pub fn text(&self) -> &str {
        self.span.clone().map_or(Some(&*self.source.text), |span| self.source.text.get(span)).unwrap_or_default()
    }

    /// Returns the line number, from 1; 0 if unknown.
    pub fn line(&self) -> usize {
        self.span.as_ref().map_or(0, |span| self.source.text[..self.boundary(span.start)].matches('\n').count() + 1)
    }

    /// Returns the first byte; it orders the places of one text.
    pub fn start(&self) -> usize {
        self.span.as_ref().map_or(0, |span| span.start)
    }

    /// Returns whether both places are in the same text.
    pub fn shares_text(&self, other: &Place) -> bool {
        Arc::ptr_eq(&self.source, &other.source)
    }

    /// Returns whether the other place is a part of this one.
    pub fn covers(&self, other: &Place) -> bool {
        let within =
            |span: &Range<usize>| other.span.as_ref().is_some_and(|o| span.start <= o.start && o.end <= span.end);
        self.shares_text(other) && self.span.as_ref().is_none_or(within)
    }

    /// Returns an error at this place, about a key unless `key` is empty.
    pub fn wrong(&self, key: &str, problem: impl fmt::Display) -> Error {
        let key = if key.is_empty() { String::new() } else { format!("{key}: ") };
        Error::Placed { place: self.clone(), problem: format!("{key}{problem}") }
    }

    /// Returns a message about this place: with file, line and column (both from 1) if they are known, and the line itself with marks
    /// below. In a generated text, the message has the key instead, such as `workload.class[0].demand`.
    pub fn marked(&self, problem: &str) -> String {
        let file = self.source.name.display();
        let Some(span) = &self.span else { return format!("{file}: {problem}") };
        if self.is_generated() {
            let key = Node::toml(&self.unknown()).ok().and_then(|tree| tree.path_to(self));
            return match key {
                Some(key) if problem.starts_with(&format!("{key}: ")) => problem.to_owned(),
                Some(key) => format!("{key}: {problem}"),
                None => format!("{file}: {problem}"),
            };
        }
        let text = &self.source.text;
        let start = self.boundary(span.start);
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line = text[line_start..].lines().next().unwrap_or_default();
        let number = self.line();
        let column = text[line_start..start].chars().count() + 1;
        // A place after the end of the line, at its carriage return, has one mark.
        let end = self.boundary(span.end.clamp(start, start.max(line_start + line.len())));
        let marks = "^".repeat(text[start..end].chars().count().clamp(1, 60));
        let shown: String = line.chars().take(160).collect();
        let gutter = number.to_string();
        let blank = " ".repeat(gutter.len());
        let pad = " ".repeat(column - 1);
        let snippet = match column {
            ..=160 => format!("\n{blank} |\n{gutter} | {shown}\n{blank} | {pad}{marks}"),
            _ => String::new(),
        };
        format!("{file}: line {number}, column {column}: {problem}{snippet}")
    }

    /// Returns the last position up to `at` where a character begins.
    fn boundary(&self, at: usize) -> usize {
        let text = &self.source.text;
        (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Place) -> bool {
        self.shares_text(other) && self.span == other.span
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.source.name.display(), self.line())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_shown_with_its_line() {
        let whole = Place::whole_text("p.toml", "a = 1\nf = \"ä\"\n");
        let said = whole.at(10..14).wrong("f", "wrong").to_string();
        assert_eq!(said, "p.toml: line 2, column 5: f: wrong\n  |\n2 | f = \"ä\"\n  |     ^^^");
        assert_eq!(whole.wrong("", "wrong").to_string(), "p.toml: wrong");
        assert!(whole.covers(&whole.at(3..4)) && whole.at(1..5).covers(&whole.at(3..4)));
        assert!(!whole.at(3..4).covers(&whole) && !whole.covers(&Place::whole_text("p.toml", "a = 1")));
    }

    #[test]
    fn a_place_in_a_generated_text_is_shown_as_its_key() {
        let text = "name = \"x\"\n[[a.b]]\nc = 1\n[[a.b]]\nc = 2\nd = [3, { \"e.f\" = 4 }]\n";
        let tree = Node::toml(&Place::generated_text("<plan>", text)).expect("TOML");
        let said = |path: &str| tree.place_of(&crate::tree::steps(path)).wrong("", "wrong").to_string();
        for path in ["name", "a.b[1].c", "a.b[1].d[0]", "a.b[1].d[1].\"e.f\""] {
            assert_eq!(said(path), format!("{path}: wrong"));
        }
        assert_eq!(said("nothing"), "<plan>: wrong");
        let of_key = tree.place_of(&crate::tree::steps("a.b[0].c")).wrong("a.b[0].c", "wrong");
        assert_eq!(of_key.to_string(), "a.b[0].c: wrong");
    }
}
