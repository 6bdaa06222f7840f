//! The scenarios of the repository, so that a program without it has them.

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        /// Names and texts.
        pub const ALL: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../experiments/court/", $name, ".toml")))),*];
    };
}

shipped![
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
];
