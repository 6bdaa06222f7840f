//! The keys of a plan about machines and about the placement of tasks.
//!
//! [`cluster_plan`] reads the table `cluster` of a plan, or the same settings from the command line, and returns the machines and the
//! engine options. The settings are declared in [`SETTINGS`].

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::{Deserialize, Deserializer, de};

use plimsoll_base::error::{Error, Result, nearest};
use plimsoll_base::pinned::Pinned;
use plimsoll_base::settings::{SettingOrigin, horizon};
use plimsoll_base::units::{Dim, Rounding, decimal};
use plimsoll_sim::cluster::{ClusterSpec, MachineGroup, Speed, events, file};
use plimsoll_sim::engine::Options;
use plimsoll_sim::engine::settings::{ClusterSetting, SETTINGS, SettingKind, SettingValues};

/// The cluster as written in the plan.
#[derive(Clone, Debug, Default)]
pub struct ClusterFile {
    /// The machines: `400x16c32g`, or a CSV of machines.
    pub machines: Option<String>,
    /// Groups of machines with resources of any name: `{ count = 400, cpu = 16, memory_gib = 32, disk_gib = 1000 }`.
    pub group: Vec<toml::Table>,
    /// The values of [`SETTINGS`].
    pub settings: SettingValues,
}

/// A key of the table `cluster`.
enum ClusterKey {
    Machines,
    Group,
    ClusterSetting(&'static ClusterSetting),
}

/// The keys of the table `cluster`.
static KEYS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| ["machines", "group"].into_iter().chain(SETTINGS.iter().map(|setting| setting.key)).collect());

impl<'de> Deserialize<'de> for ClusterKey {
    fn deserialize<D: Deserializer<'de>>(key: D) -> std::result::Result<ClusterKey, D::Error> {
        let key = String::deserialize(key)?;
        match (key.as_str(), ClusterSetting::find(&key)) {
            ("machines", _) => Ok(ClusterKey::Machines),
            ("group", _) => Ok(ClusterKey::Group),
            (_, Some(setting)) => Ok(ClusterKey::ClusterSetting(setting)),
            (_, None) => Err(de::Error::unknown_field(&key, &KEYS)),
        }
    }
}

/// The value of `machines`. A value that is not text is an error; the message has an example.
struct MachinesText(String);

impl<'de> Deserialize<'de> for MachinesText {
    fn deserialize<D: Deserializer<'de>>(value: D) -> std::result::Result<MachinesText, D::Error> {
        struct Text;
        impl de::Visitor<'_> for Text {
            type Value = MachinesText;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("text such as \"20x8c32g\", or the path of a CSV of machines")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> std::result::Result<MachinesText, E> {
                Ok(MachinesText(text.to_owned()))
            }
        }
        value.deserialize_str(Text)
    }
}

impl<'de> Deserialize<'de> for ClusterFile {
    fn deserialize<D: Deserializer<'de>>(table: D) -> std::result::Result<ClusterFile, D::Error> {
        struct Table;
        impl<'de> de::Visitor<'de> for Table {
            type Value = ClusterFile;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a table with the settings of a cluster")
            }

            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> std::result::Result<ClusterFile, A::Error> {
                let mut file = ClusterFile::default();
                while let Some(key) = map.next_key()? {
                    match key {
                        ClusterKey::Machines => file.machines = Some(map.next_value::<MachinesText>()?.0),
                        ClusterKey::Group => file.group = map.next_value()?,
                        ClusterKey::ClusterSetting(setting) => {
                            let values = match setting.kind {
                                SettingKind::Text(_) | SettingKind::File => vec![map.next_value()?],
                                SettingKind::List(_) => map.next_value()?,
                                SettingKind::Switch => Vec::from_iter(map.next_value::<bool>()?.then(|| "true".into())),
                            };
                            file.settings.insert(setting, values);
                        }
                    }
                }
                Ok(file)
            }
        }
        table.deserialize_map(Table)
    }
}

/// The machines of a plan and the engine options.
pub struct ClusterPlan {
    /// The machines.
    pub cluster: ClusterSpec,
    /// Engine options.
    pub options: Options,
    /// The file of the machines, if there is one.
    pub machines: Option<PathBuf>,
    /// The file of the machine events, if there are any.
    pub events: Option<PathBuf>,
    /// The trace with tasks that define fragments, if it is not the workload.
    pub mix: Option<Pinned>,
}

/// Reads the settings of a cluster; files are in `folder` unless their paths are absolute. Errors: [`Error::Plan`] with the key, and
/// errors of the files.
pub fn cluster_plan(
    file: &ClusterFile,
    until: Option<&str>,
    folder: &Path,
    origin: SettingOrigin,
) -> Result<ClusterPlan> {
    let until = until.map(|text| horizon(&origin.key("until"), text)).transpose();
    let options = Options { until: until?, ..file.settings.options(origin)? };
    let mut cluster = machines(file, folder, origin).map_err(|error| origin.of_file("cluster.machines", error))?;
    let events = file.settings.text("events").map(|path| folder.join(path));
    if let Some(path) = &events {
        cluster.events = events::read(path, &cluster).map_err(|error| origin.of_file("cluster.events", error))?;
    }
    let mix = file.settings.text("mix").map(|path| Pinned::new(&folder.join(path))).transpose();
    let mix = mix.map_err(|error| origin.of_file("cluster.mix", error))?;
    cluster.devices = file.settings.all("devices").to_vec();
    let machines = file.machines.as_deref().and_then(|text| machines_file(text, folder));
    Ok(ClusterPlan { cluster, options, machines, events, mix })
}

/// Returns the file that a setting of machines names; `None` if the text describes the machines itself.
pub fn machines_file(text: &str, folder: &Path) -> Option<PathBuf> {
    text.ends_with(".csv").then(|| folder.join(text))
}

/// Reads machines from text: `400x16c32g`, or a CSV file relative to `folder`.
pub fn machines_from(key: &str, text: &str, folder: &Path) -> Result<ClusterSpec> {
    match machines_file(text, folder) {
        Some(path) => file::read(&path),
        None => ClusterSpec::parse(key, text),
    }
}

/// Reads the machines of a plan.
fn machines(cluster: &ClusterFile, folder: &Path, origin: SettingOrigin) -> Result<ClusterSpec> {
    let mut spec = match &cluster.machines {
        Some(text) => machines_from(&origin.key("cluster.machines"), text, folder)?,
        None => ClusterSpec::default(),
    };
    for (at, group) in cluster.group.iter().enumerate() {
        spec.groups.push(machine_group(&format!("cluster.group[{at}]"), group)?);
    }
    if spec.groups.is_empty() {
        return Err(Error::plan("cluster", "no machines", "machines = \"400x16c32g\", a .csv, or [[cluster.group]]"));
    }
    Ok(spec)
}

fn machine_group(key: &str, group: &toml::Table) -> Result<MachineGroup> {
    let (mut count, mut speed) = (1, Speed::default());
    let mut capacity: Vec<(Dim, u64)> = Vec::new();
    for (name, value) in group {
        let text = value.to_string();
        if name == "count" {
            let expected = "a whole number from 1";
            count = text
                .parse()
                .ok()
                .filter(|&n| n > 0)
                .ok_or_else(|| Error::plan(format!("{key}.count"), &text, expected))?;
            continue;
        }
        if name == "speed" {
            let millionths = decimal(text.as_bytes(), Speed::ONE, Rounding::Nearest).ok();
            speed = millionths
                .and_then(Speed::new)
                .ok_or_else(|| Error::plan(format!("{key}.speed"), &text, Speed::EXPECTED))?;
            continue;
        }
        if let Some(meant) = nearest(name, ["count", "speed"]) {
            let expected = format!("count, speed, or a resource (did you mean '{meant}'?)");
            return Err(Error::plan(format!("{key}.{name}"), &text, expected));
        }
        let (dim, scale) = Dim::parse(name);
        let amount = decimal(text.as_bytes(), scale, Rounding::Down)
            .map_err(|problem| Error::plan(format!("{key}.{name}"), &text, format!("an amount; this {problem}")))?;
        if capacity.iter().any(|(known, _)| known.name == dim.name) {
            return Err(Error::plan(format!("{key}.{name}"), &text, "each resource once"));
        }
        capacity.push((dim, amount));
    }
    if capacity.is_empty() {
        return Err(Error::plan(key, "no resources", "resources such as cpu = 16, memory_gib = 32"));
    }
    Ok(MachineGroup { count, capacity, speed, ..MachineGroup::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a cluster with the example of a setting and, if the setting requires another one, the example of that one.
    fn with_example(setting: &'static ClusterSetting) -> ClusterFile {
        let entry = |setting: &'static ClusterSetting| match setting.kind {
            SettingKind::Text(_) | SettingKind::File => format!("{} = '{}'\n", setting.key, setting.example),
            SettingKind::List(_) => format!("{} = ['{}']\n", setting.key, setting.example),
            SettingKind::Switch => format!("{} = {}\n", setting.key, setting.example),
        };
        let other = setting.requires.and_then(ClusterSetting::find);
        let keys: String = [Some(setting), other].into_iter().flatten().map(entry).collect();
        toml::from_str(&format!("machines = '2x2c2g'\n{keys}")).expect(setting.key)
    }

    #[test]
    fn every_setting_is_a_key_that_pooled_clusters_refuse_if_they_do_not_support_it() {
        let pooled = ClusterSetting::find("placement").expect("a setting");
        for setting in SETTINGS.iter().filter(|setting| setting.key != pooled.key) {
            let mut file = with_example(setting);
            assert_eq!(file.settings.text(setting.key), Some(setting.example));
            file.settings.options(SettingOrigin::InPlan).expect(setting.key);
            file.settings.insert(pooled, vec![pooled.example.to_owned()]);
            let refused = file.settings.options(SettingOrigin::InPlan);
            assert_eq!(refused.is_err(), setting.placed, "{}", setting.key);
        }
    }

    #[test]
    fn a_setting_without_the_one_that_it_requires_is_an_error_with_its_name() {
        let file: ClusterFile = toml::from_str("preempt_for = 'share'").expect("a text");
        let error = file.settings.options(SettingOrigin::InPlan).expect_err("no preemption").to_string();
        assert_eq!(error, "cluster.preempt_for: 'share' is not accepted; expected a value of cluster.preempt too");
    }

    #[test]
    fn a_key_of_a_cluster_that_does_not_exist_is_an_error_with_the_keys() {
        let error = toml::from_str::<ClusterFile>("placment = 'spread'").expect_err("no key").to_string();
        assert!(error.contains("unknown field `placment`") && error.contains("`placement`, `on_blocked`"), "{error}");
        let error = toml::from_str::<ClusterFile>("machines = 3").expect_err("no text").to_string();
        assert!(error.contains("text such as \"20x8c32g\""), "{error}");
    }
}
