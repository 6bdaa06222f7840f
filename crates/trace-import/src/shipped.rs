//! The shipped mappings, and the recognition of files by their content.

use plimsoll_base::error::Result;
use plimsoll_base::tree::Place;
use plimsoll_sim::workload::Input;

use crate::input;
use crate::mapping::{Mapping, Recognition, TableSpec};

/// A mapping that is part of the program.
pub struct Shipped {
    /// The name on the command line.
    pub name: &'static str,
    /// The mapping in TOML.
    pub text: &'static str,
}

impl Shipped {
    /// Returns the text with its name for messages.
    pub fn place(&self) -> Place {
        Place::whole_text(format!("mapping {}", self.name), self.text)
    }

    /// Parses the mapping. Errors: it is invalid, which tests exclude.
    pub fn mapping(&self) -> Result<Mapping> {
        Mapping::parse(self.name, &self.place())
    }

    /// Finds a shipped mapping by its name.
    pub fn find(name: &str) -> Option<&'static Shipped> {
        SHIPPED.iter().find(|shipped| shipped.name == name)
    }

    /// Returns the description in a few words. The help of the command line has all of them, so the mapping is not parsed.
    pub fn about(&self) -> &'static str {
        let line = self.text.lines().find_map(|line| line.strip_prefix("about = \""));
        line.and_then(|line| line.strip_suffix('"')).unwrap_or_default()
    }
}

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        /// All shipped mappings.
        pub static SHIPPED: &[Shipped] =
            &[$(Shipped { name: $name, text: include_str!(concat!("../mappings/", $name, ".toml")) },)*];
    };
}

shipped! {
    "philly",
    "philly-extract",
    "alibaba-2018",
    "alibaba-2018-instances",
    "pai-2020",
    "spot-2026",
    "google-2011",
    "slurm",
    "batsim",
    "wta",
    "gavel",
    "shockwave",
    "kubernetes",
    "helios",
    "acme",
    "dlrm-2025",
    "google-2019",
    "azure-packing",
    "azure-vm",
    "gwf",
    "elasticflow",
    "swf-dag",
}

/// Returns the shipped mapping that recognises a file by its content. Errors: the file cannot be read.
pub fn recognise(input: &Input) -> Result<Option<&'static Shipped>> {
    let parquet = input::is_parquet(input)?;
    let (head, columns) = if parquet {
        (Vec::new(), input::open(input, &TableSpec::default(), &[])?.columns)
    } else {
        let Ok(unpacked) = input::unpack(input) else { return Ok(None) };
        let opened = input::open(input, &TableSpec::default(), &[]);
        (unpacked.head, opened.map(|file| file.columns).unwrap_or_default())
    };
    let text = String::from_utf8_lossy(&head);
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim_start_matches('\u{feff}');
    for shipped in SHIPPED {
        let found = match shipped.mapping()?.recognition {
            Some(Recognition::Columns(names)) => names.iter().all(|name| columns.contains(name)),
            Some(Recognition::Line(regex)) => !parquet && regex.is_match(line),
            Some(Recognition::Texts(texts)) => !parquet && texts.iter().all(|part| text.contains(part.as_str())),
            None => false,
        };
        if found {
            return Ok(Some(shipped));
        }
    }
    Ok(None)
}
