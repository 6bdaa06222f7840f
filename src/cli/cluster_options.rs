//! The settings of the cluster as options of the command line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::engine::settings::{SETTINGS, SettingKind, SettingValues};

/// The values of the options. Options without a value have their defaults.
#[derive(Clone, Debug, Default)]
pub struct ClusterOptions(pub SettingValues);

impl Args for ClusterOptions {
    fn augment_args(command: Command) -> Command {
        SETTINGS.iter().fold(command, |command, setting| {
            let arg = Arg::new(setting.key).long(setting.option()).help((setting.help)());
            let arg = match setting.kind {
                SettingKind::Text(name) => arg.value_name(name),
                SettingKind::File => arg.value_name("FILE").value_parser(clap::value_parser!(PathBuf)),
                SettingKind::List(name) => arg.value_name(name).action(ArgAction::Append),
                SettingKind::Switch => arg.action(ArgAction::SetTrue),
            };
            command.arg((setting.default)().map_or(arg.clone(), |default| arg.default_value(default)))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        ClusterOptions::augment_args(command)
    }
}

impl<'de> Deserialize<'de> for ClusterOptions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ClusterOptions, D::Error> {
        let mut given = BTreeMap::<String, Value>::deserialize(deserializer)?;
        let mut options = ClusterOptions::default();
        for setting in SETTINGS {
            let values = match given.remove(setting.key) {
                None | Some(Value::Bool(false)) => Vec::new(),
                Some(Value::Bool(true)) => vec!["true".to_owned()],
                Some(Value::Array(values)) => values.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
                Some(value) => value.as_str().map(str::to_owned).into_iter().collect(),
            };
            options.0.insert(setting, values);
        }
        Ok(options)
    }
}

/// Returns the error for a path that a plan cannot contain.
fn not_text(path: &Path) -> clap::Error {
    let problem = format!("{}: the path is not UTF-8; expected the path of a file in UTF-8\n", path.display());
    clap::Error::raw(clap::error::ErrorKind::InvalidUtf8, problem)
}

impl FromArgMatches for ClusterOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<ClusterOptions, clap::Error> {
        let mut options = ClusterOptions::default();
        options.update_from_arg_matches(matches)?;
        Ok(options)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for setting in SETTINGS {
            let values = match setting.kind {
                SettingKind::File => match matches.get_one::<PathBuf>(setting.key) {
                    Some(path) => vec![path.to_str().ok_or_else(|| not_text(path))?.to_owned()],
                    None => Vec::new(),
                },
                SettingKind::Switch => Vec::from_iter(matches.get_flag(setting.key).then(|| "true".to_owned())),
                _ => matches.get_many(setting.key).into_iter().flatten().cloned().collect(),
            };
            self.0.insert(setting, values);
        }
        Ok(())
    }
}
