//! Plans, instances and states as arguments: the path of a file, or a text that was generated from a value of another program.

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::rows::{read_input, read_text};
use crate::tree::Place;

/// A plan, an instance or a state.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(untagged)]
pub enum Document {
    /// The path of a file.
    File(PathBuf),
    /// A text in TOML. Messages have its keys instead of lines.
    Generated {
        /// The name in messages. Paths in the text are relative to the folder of this name.
        name: PathBuf,
        /// The text.
        text: String,
    },
}

impl Document {
    /// Returns the path of the file, or the name of the text.
    pub fn name(&self) -> &Path {
        match self {
            Document::File(name) | Document::Generated { name, .. } => name,
        }
    }

    /// Returns the path of the file; `None` for a generated text.
    pub fn file(&self) -> Option<&Path> {
        if let Document::File(path) = self { Some(path) } else { None }
    }

    /// Reads the text. Errors: those of [`read_text`].
    pub fn read(&self) -> Result<Place> {
        Ok(match self {
            Document::File(path) => Place::whole_text(path, read_text(path)?),
            Document::Generated { name, text } => Place::generated_text(name, text),
        })
    }

    /// Reads the text; the file `-` is standard input. Errors: those of [`read_input`].
    pub fn read_input(&self) -> Result<Place> {
        let Document::File(path) = self else { return self.read() };
        let (name, text) = read_input(path)?;
        Ok(Place::whole_text(name, text))
    }
}

impl From<PathBuf> for Document {
    fn from(path: PathBuf) -> Document {
        Document::File(path)
    }
}
