//! The parameters of a row of numbers: `trace=default; seed=42..51; set cluster.placement=kss-fgd; policy=fifo`.

use plimsoll_base::error::{Error, Result};

/// The parameters of a plan in a row of numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Parameters {
    /// The parameters of the preparation by name, in alphabetical order.
    pub given: Vec<(String, String)>,
    /// The `key=value` changes of the plan, in alphabetical order.
    pub set: Vec<String>,
    /// The policy; absent: the first policy of the plan.
    pub policy: Option<String>,
    /// The seeds; empty if the plan has none.
    pub seeds: Vec<u64>,
}

impl Parameters {
    /// Parses parameters separated by semicolons: `NAME=VALUE`, `set KEY=VALUE`, `policy=NAME`, `seed=N` or `seed=FROM..TO` with both ends.
    /// Errors: the expected form.
    pub fn parse(text: &str) -> std::result::Result<Parameters, String> {
        let mut parameters = Parameters::default();
        for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            if let Some(change) = part.strip_prefix("set ") {
                parameters.set.push(change.trim().to_owned());
                continue;
            }
            let (name, value) = part.split_once('=').ok_or_else(|| format!("'{part}': expected NAME=VALUE"))?;
            match name {
                "policy" => parameters.policy = Some(value.to_owned()),
                "seed" => parameters.seeds = seeds(value)?,
                _ => parameters.given.push((name.to_owned(), value.to_owned())),
            }
        }
        parameters.given.sort();
        parameters.set.sort();
        Ok(parameters)
    }

    /// Returns the value of a parameter of the preparation. Errors: it is missing.
    pub fn text(&self, name: &str) -> Result<&str> {
        let found = self.given.iter().find(|(known, _)| known == name);
        let missing = || Error::plan("with", "nothing", format!("{name}=.. among the parameters of the row"));
        found.map(|(_, value)| value.as_str()).ok_or_else(missing)
    }

    /// Returns the value of a parameter of the preparation, or a default.
    pub fn text_or<'a>(&'a self, name: &str, or: &'a str) -> &'a str {
        self.given.iter().find(|(known, _)| known == name).map_or(or, |(_, value)| value.as_str())
    }

    /// Returns the parameters with a single seed, or without one.
    pub fn with_seed(&self, seed: Option<u64>) -> Parameters {
        Parameters { seeds: seed.into_iter().collect(), ..self.clone() }
    }

    /// Returns the parameters that the preparation depends on, as text: those of the preparation and the seeds.
    pub fn prepared_by(&self) -> String {
        let given = self.given.iter().map(|(name, value)| format!("{name}-{value}"));
        let seeds = self.seeds.iter().map(|seed| format!("seed-{seed}"));
        let text = given.chain(seeds).collect::<Vec<_>>().join(",");
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._-,".contains(c) { c } else { '-' };
        if text.is_empty() { "all".to_owned() } else { text.chars().map(plain).collect() }
    }
}

/// Parses `42`, or `42..51` with both ends. Errors: the expected form.
fn seeds(text: &str) -> std::result::Result<Vec<u64>, String> {
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("seed '{text}': expected N or FROM..TO"));
    match text.split_once("..") {
        None => Ok(vec![number(text)?]),
        Some((from, to)) => {
            let (from, to) = (number(from)?, number(to)?);
            match to.checked_sub(from) {
                Some(more) if more < 100_000 => Ok((from..=to).collect()),
                _ => Err(format!("seed '{text}': expected at most 100000 seeds, the first one first")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_and_named() {
        let text = "trace=default; seed=42..44; set cluster.placement=kss-fgd; policy=expr:(order log10(estimate))";
        let read = Parameters::parse(text).expect("parameters");
        assert_eq!(read.text("trace").expect("given"), "default");
        assert_eq!((read.seeds.len(), read.set.len()), (3, 1));
        assert_eq!(read.policy.as_deref(), Some("expr:(order log10(estimate))"));
        assert_eq!(read.with_seed(Some(42)).prepared_by(), "trace-default,seed-42");
        assert!(Parameters::parse("seed=9..3").is_err() && Parameters::parse("x").is_err());
        assert!(read.text("rate").expect_err("missing").to_string().contains("rate=.."));
    }
}
