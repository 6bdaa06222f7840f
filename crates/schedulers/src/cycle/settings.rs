//! The settings of queues and of policies, declared in tables.
//!
//! [`settings!`] has a row per key of a file of queues: the field, the key if it has another name (`as`), the type with its unit, the
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

impl SettingValue for bool {
    fn read(node: &Node, key: &str, _dims: &[Dim]) -> Result<bool> {
        queues::truth_value(node, key)
    }
}

impl SettingValue for Millionths {
    fn read(node: &Node, key: &str, _dims: &[Dim]) -> Result<Millionths> {
        queues::number(node, key)
    }
}

impl SettingValue for i64 {
    fn read(node: &Node, key: &str, _dims: &[Dim]) -> Result<i64> {
        queues::integer(node, key)
    }
}

/// Zero for resources that the file does not name.
impl SettingValue for Resources {
    fn read(node: &Node, key: &str, dims: &[Dim]) -> Result<Resources> {
        Ok(queues::amounts(node, key, dims)?.or_zero())
    }
}

impl SettingValue for OptionalAmounts {
    fn read(node: &Node, key: &str, dims: &[Dim]) -> Result<OptionalAmounts> {
        queues::amounts(node, key, dims)
    }
}

impl SettingValue for Resources<Option<Bound>> {
    fn read(node: &Node, key: &str, dims: &[Dim]) -> Result<Resources<Option<Bound>>> {
        queues::bounds(node, key, dims)
    }
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
        let wrong = || node.place.wrong(key, format!("{} is not accepted; expected {expected}", node.shown()));
        if accepts(&value) { Ok(value) } else { Err(wrong()) }
    }
}

/// Returns the keys with these names, in this order. The compiler reports a name that is no key.
pub const fn pick<const N: usize>(keys: &[QueueKey], names: [&str; N]) -> [QueueKey; N] {
    let (mut picked, mut at) = ([keys[0]; N], 0);
    while at < N {
        let mut key = 0;
        while !is_same(keys[key].name.as_bytes(), names[at].as_bytes()) {
            key += 1;
        }
        picked[at] = keys[key];
        at += 1;
    }
    picked
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

/// Declares the settings of queues (`group`) and of the policy (`policy`); see the description of this module.
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
                $(#[doc = $meaning] pub $field: $type,)*
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
