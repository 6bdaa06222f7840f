//! The settings of queues and of policies, declared in tables.
//!
//! `settings!` has a row per key of a file of queues: the field, the key if it has another name (`as`), the type with its unit, the
//! default, the description, and the reader if the type accepts more values than the setting. Derived from the rows: the struct with its
//! defaults, the reader of a table, and the keys with descriptions (`KEYS`) for messages and listings.

use plimsoll_base::error::Result;
use plimsoll_base::tree::Node;
use plimsoll_base::units::{Dim, Resources};
use plimsoll_policies::queues::{self, Bound, OptionalAmounts, QueueKey};

/// A number in millionths.
pub type Millionths = u64;

/// The settings of a queue, or those of a policy.
pub trait SettingTable: Clone + Default + Send {
    /// Reads a group, or the table `[policy]`. Errors: a value that is not accepted, with its place and the accepted values.
    fn read(table: &Node, dims: &[Dim]) -> Result<Self>;
}

/// The type of a setting.
pub trait SettingValue: Sized {
    /// Reads a value. Errors: as [`SettingTable::read`].
    fn read(node: &Node, key: &str, dims: &[Dim]) -> Result<Self>;
}

/// Implements types of settings by the functions that read their values. A `u64` is in millionths; whole numbers are `i64`.
macro_rules! setting_values {
    ($($type:ty = $read:expr;)*) => {$(
        impl SettingValue for $type {
            fn read(node: &Node, key: &str, dims: &[Dim]) -> Result<$type> {
                $read(node, key, dims)
            }
        }
    )*};
}

setting_values! {
    bool = |node, key, _| queues::truth_value(node, key);
    Millionths = |node, key, _| queues::number(node, key);
    i64 = |node, key, _| queues::integer(node, key);
    // Zero for resources that the file does not name.
    Resources = |node, key, dims| queues::amounts(node, key, dims).map(OptionalAmounts::or_zero);
    OptionalAmounts = queues::amounts;
    Resources<Option<Bound>> = queues::bounds;
}

impl<T: SettingValue> SettingValue for Option<T> {
    fn read(node: &Node, key: &str, dims: &[Dim]) -> Result<Option<T>> {
        T::read(node, key, dims).map(Some)
    }
}

/// Returns the reader of one of several words.
pub fn word<T: Copy + 'static>(all: &'static [(&'static str, T)]) -> impl Fn(&Node, &str, &[Dim]) -> Result<T> {
    move |node, key, _| queues::word(node, key, all)
}

/// Returns the reader of a list of such words.
pub fn words<T: Copy + 'static>(all: &'static [(&'static str, T)]) -> impl Fn(&Node, &str, &[Dim]) -> Result<Vec<T>> {
    move |node, key, _| queues::words(node, key, all)
}

/// Returns the reader of a value that `read` returns and that passes a test. `expected` describes the accepted values.
pub fn within<T>(
    read: impl Fn(&Node, &str, &[Dim]) -> Result<T>,
    accepts: fn(&T) -> bool,
    expected: &'static str,
) -> impl Fn(&Node, &str, &[Dim]) -> Result<T> {
    move |node, key, dims| {
        let value = read(node, key, dims)?;
        let shown = if node.list().is_some() { "this list".to_owned() } else { node.shown() };
        let wrong = || node.place.wrong(key, format!("{shown} is not accepted; expected {expected}"));
        if accepts(&value) { Ok(value) } else { Err(wrong()) }
    }
}

/// Returns the keys except those with these names. The compiler reports a name that is no key, and a wrong number of keys.
pub const fn without<const N: usize>(keys: &[QueueKey], names: &[&str]) -> [QueueKey; N] {
    let (mut kept, mut count, mut at) = ([keys[0]; N], 0, 0);
    while at < keys.len() {
        let mut name = 0;
        while name < names.len() && !is_same(keys[at].name.as_bytes(), names[name].as_bytes()) {
            name += 1;
        }
        if name == names.len() {
            kept[count] = keys[at];
            count += 1;
        }
        at += 1;
    }
    assert!(count == N && count + names.len() == keys.len());
    kept
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

/// Declares the settings of queues (`group`) and of the policy (`policy`); see the description of this module. A row is
/// `FIELD [as "KEY"]: TYPE = DEFAULT, "DESCRIPTION" [, READER];`.
macro_rules! settings {
    ($(
        $(#[$doc:meta])* $kind:ident struct $table:ident {
            $($field:ident $(as $key:literal)?: $type:ty = $default:expr, $meaning:literal $(, $read:expr)?;)*
        }
    )*) => {
        /// The keys of a file of queues.
        pub const KEYS: &[plimsoll_policies::QueueKey] =
            &[$($(plimsoll_policies::QueueKey::$kind(settings!(@key $field $($key)?), $meaning),)*)*];
        $(
            $(#[$doc])*
            #[derive(Clone, Debug)]
            pub struct $table {
                $(#[doc = concat!("`", settings!(@key $field $($key)?), "`: ", $meaning)] pub $field: $type,)*
            }

            impl Default for $table {
                fn default() -> $table {
                    $table { $($field: $default,)* }
                }
            }

            impl $crate::cycle::SettingTable for $table {
                fn read(
                    table: &plimsoll_base::tree::Node,
                    dims: &[plimsoll_base::units::Dim],
                ) -> plimsoll_base::error::Result<$table> {
                    let mut settings = $table::default();
                    $(
                        let key = settings!(@key $field $($key)?);
                        if let Some(entry) = table.get(key) {
                            settings.$field = settings!(@read $type $(, $read)?)(&entry.node, key, dims)?;
                        }
                    )*
                    Ok(settings)
                }
            }
        )*
    };
    (@key $field:ident) => { stringify!($field) };
    (@key $field:ident $key:literal) => { $key };
    (@read $type:ty) => { <$type as $crate::cycle::SettingValue>::read };
    (@read $type:ty, $read:expr) => { $read };
}

pub(crate) use settings;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use plimsoll_base::tree::Place;
    use plimsoll_policies::queues::ONE;

    use super::*;

    settings! {
        /// Settings of queues.
        group struct OfQueue {
            min: Resources = Resources::ZERO, "an amount";
            half as "part": Millionths = ONE / 2, "a part", within(Millionths::read, |part| *part <= ONE, "at most 1");
            by_age as "sort": bool = false, "an order", word(&[("fair", false), ("fifo", true)]);
        }
        /// Settings of the policy.
        policy struct OfPolicy {
            steps: Vec<u8> = vec![1], "a list", words(&[("one", 1), ("two", 2)]);
        }
    }

    fn read<T: SettingTable>(text: &str) -> std::result::Result<T, String> {
        let dims = [Dim::parse("cpu").0, Dim::parse("memory").0];
        let node = Node::toml(&Place::whole_text(Path::new("queues.toml"), text)).expect("TOML");
        T::read(&node, &dims).map_err(|error| error.to_string().lines().next().unwrap_or_default().to_owned())
    }

    #[test]
    fn rows_define_keys_defaults_and_readers() {
        let keys: Vec<(&str, bool)> = KEYS.iter().map(|key| (key.name, key.whole)).collect();
        assert_eq!(keys, [("min", false), ("part", false), ("sort", false), ("steps", true)]);
        assert_eq!(without(KEYS, &["part", "steps"]).map(|key| key.meaning), ["an amount", "an order"]);
        let usual: OfQueue = read("").expect("no key is required");
        assert_eq!((usual.min, usual.half, usual.by_age), (Resources::ZERO, ONE / 2, false));
        let given: OfQueue = read("min = { memory_gib = 2 }\npart = 0.25\nsort = \"fifo\"").expect("accepted");
        assert_eq!((given.min.0[..2].to_vec(), given.half, given.by_age), (vec![0, 2048], ONE / 4, true));
        let steps = read("steps = [\"two\", \"one\"]").map(|policy: OfPolicy| policy.steps);
        assert_eq!(steps, Ok(vec![2, 1]));
    }

    #[test]
    fn messages_have_places_and_accepted_values() {
        let wrong = |text: &str| read::<OfQueue>(text).map(|_| ()).expect_err(text);
        assert_eq!(wrong("part = 2"), "queues.toml: line 1, column 8: part: 2 is not accepted; expected at most 1");
        let words = "queues.toml: line 2, column 8: sort: 'lifo' is not accepted; expected \"fair\" or \"fifo\"";
        assert_eq!(wrong("min = {}\nsort = \"lifo\""), words);
        assert!(wrong("min = { disk = 1 }").contains("'disk' is no resource here"));
    }
}
