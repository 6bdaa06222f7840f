//! Diagnostics of an import: settings of a configuration that a file of queues cannot express, with their locations.

use std::collections::HashMap;
use std::path::Path;

use plimsoll_base::tree::Place;

/// Notes in the order of their discovery. Equal messages about several locations form one note.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    notes: Vec<(String, Vec<Place>)>,
    known: HashMap<String, usize>,
}

/// The maximum number of lines that a note lists per file.
const LINES_MOST: usize = 12;

impl Diagnostics {
    /// Adds a note about a location.
    pub fn add(&mut self, place: &Place, message: impl Into<String>) {
        let message = message.into();
        let at = *self.known.entry(message.clone()).or_insert(self.notes.len());
        match self.notes.get_mut(at) {
            Some((_, places)) => places.push(place.clone()),
            None => self.notes.push((message, vec![place.clone()])),
        }
    }

    /// Formats the notes in the order of their first locations, one line each: `FILE: line 3: MESSAGE`.
    pub fn lines(&self) -> Vec<String> {
        let mut files: Vec<&Path> = Vec::new();
        for place in self.notes.iter().flat_map(|(_, places)| places) {
            if !files.contains(&place.file()) {
                files.push(place.file());
            }
        }
        let order = |place: &Place| (files.iter().position(|file| *file == place.file()), place.start());
        let mut notes: Vec<(&str, Vec<&Place>)> = Vec::new();
        for (message, places) in &self.notes {
            let mut places: Vec<&Place> = places.iter().collect();
            places.sort_by_key(|place| order(place));
            notes.push((message, places));
        }
        notes.sort_by_key(|(_, places)| places.first().map(|place| order(place)));
        notes.iter().map(|(message, places)| format!("{}: {message}", located(places))).collect()
    }
}

/// Formats the locations of a note: each file with its lines.
fn located(places: &[&Place]) -> String {
    let one = |places: &[&Place]| {
        let file = places[0].file().display().to_string();
        let mut lines: Vec<String> = places.iter().take(LINES_MOST).map(|place| place.line().to_string()).collect();
        lines.dedup();
        lines.retain(|line| line != "0");
        let rest = places.len().saturating_sub(LINES_MOST);
        match &lines[..] {
            [] => file,
            [line] if rest == 0 => format!("{file}: line {line}"),
            lines if rest > 0 => format!("{file}: lines {} and {rest} more", lines.join(", ")),
            [first @ .., last] => format!("{file}: lines {} and {last}", first.join(", ")),
        }
    };
    places.chunk_by(|a, b| a.file() == b.file()).map(one).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_note_stands_once() {
        let (one, other) = (Place::whole_text("a.yaml", "1\n2\n3\n4\n"), Place::whole_text("b.yaml", "1\n"));
        let mut notes = Diagnostics::default();
        notes.add(&one.at(0..1), "x");
        notes.add(&one.at(2..3), "y");
        notes.add(&one.at(2..3), "x");
        notes.add(&one.at(6..7), "x");
        notes.add(&other.at(0..1), "x");
        notes.add(&one, "z");
        assert_eq!(notes.lines(), ["a.yaml: lines 1, 2 and 4; b.yaml: line 1: x", "a.yaml: z", "a.yaml: line 2: y"]);
        let long = Place::whole_text("c", "\n".repeat(20));
        (0..20).for_each(|at| notes.add(&long.at(at..at), "w"));
        assert_eq!(notes.lines()[3], "c: lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 and 8 more: w");
    }
}
