//! The scenarios of the repository, included in the program.

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        /// Names and texts.
        pub const ALL: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../experiments/court/", $name, ".toml")))),*];
    };
}

shipped![
    "armada-5053",
    "armada-5071",
    "kai-1750",
    "kai-1934",
    "kai-374",
    "koordinator-2263",
    "koordinator-2393",
    "kueue-10126",
    "kueue-13797",
    "kueue-13863",
    "kueue-14543",
    "kueue-14543-7-4-2-5",
    "kueue-14543-8-4-2-5",
    "kueue-14543-8-4-3-5",
    "kueue-14543-8-5-2-6",
    "kueue-3779",
    "kueue-3779-tree",
    "kueue-6577",
    "kueue-6774",
    "kueue-6774-weights",
    "kueue-6947",
    "kueue-7101",
    "kueue-refill",
    "volcano-1083",
    "volcano-1168",
    "volcano-1619",
    "volcano-1619-allocate",
    "volcano-1661",
    "volcano-2549",
    "volcano-3729",
    "volcano-3869",
    "volcano-390",
    "volcano-one-resource",
    "yarn-11082",
    "yarn-11482",
    "yarn-6538",
    "yarn-capacity-fragments",
    "yarn-min-share",
    "yunikorn-2270",
    "yunikorn-2795",
    "yunikorn-3449",
    "yunikorn-64",
];

#[cfg(test)]
mod tests {
    use super::ALL;

    #[test]
    fn all_scenarios_of_the_repository_ship() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/court");
        let entries = std::fs::read_dir(folder).expect("a folder of scenarios");
        let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter_map(|name| name.strip_suffix(".toml").map(str::to_owned)).collect();
        names.sort();
        assert_eq!(names, ALL.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    }
}
