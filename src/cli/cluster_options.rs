//! The settings of the cluster as options of the command line.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

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
                SettingKind::File => arg.value_name("FILE"),
                SettingKind::List(name) => arg.value_name(name).action(ArgAction::Append),
                SettingKind::Switch => arg.action(ArgAction::SetTrue),
            };
            let arg = (setting.default)().map_or(arg.clone(), |default| arg.default_value(default));
            command.arg(setting.requires.map_or(arg.clone(), |other| arg.requires(other)))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        ClusterOptions::augment_args(command)
    }
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
                SettingKind::Switch => Vec::from_iter(matches.get_flag(setting.key).then(|| "true".to_owned())),
                _ => matches.get_many(setting.key).into_iter().flatten().cloned().collect(),
            };
            self.0.insert(setting, values);
        }
        Ok(())
    }
}
