//! The tables `[[figure]]` and `[figures]` of a plan file.

use std::fmt;

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor, value::SeqAccessDeserializer};

/// The settings for all figures.
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AllFile {
    pub preset: Option<String>,
    pub width: Option<f64>,
}

/// One figure.
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FigureFile {
    pub kind: String,
    pub name: Option<String>,
    pub table: Option<String>,
    pub x: Option<String>,
    pub y: Option<Words>,
    pub value: Option<String>,
    pub series: Option<Words>,
    pub facet: Option<Words>,
    #[serde(rename = "where", default)]
    pub filter: toml::Table,
    pub stat: Option<String>,
    pub scale: Option<toml::Value>,
    pub title: Option<String>,
    pub caption: Option<String>,
    pub log: Option<Words>,
    pub x_label: Option<String>,
    pub y_label: Option<String>,
    pub x_range: Option<[f64; 2]>,
    pub y_range: Option<[f64; 2]>,
    pub bands: Option<bool>,
    pub percent: Option<bool>,
    pub preset: Option<String>,
    pub width: Option<f64>,
    pub height: Option<f64>,
}

/// A name, or a list of names.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Words(pub Vec<String>);

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Words, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Words;

            fn expecting(&self, to: &mut fmt::Formatter) -> fmt::Result {
                to.write_str("a name or a list of names")
            }

            fn visit_str<E>(self, word: &str) -> Result<Words, E> {
                Ok(Words(vec![word.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Words, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(items)).map(Words)
            }
        }
        deserializer.deserialize_any(Reader)
    }
}
