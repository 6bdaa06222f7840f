//! A macro for enums with named values. One list of names and meanings is the source for parsing, printing and help.

/// Declares an enum with one line per value: variant, name, meaning. The first value is the default.
///
/// The enum gets `ALL` (name, value, meaning), `name`, `meaning`, `names` (a list in words) and `parse`. Errors of `parse` name the key.
#[macro_export]
macro_rules! named {
    ($(#[$about:meta])* $type:ident {
        $(#[$first_more:meta])* $first:ident $first_name:literal: $first_meaning:literal,
        $($(#[$more:meta])* $variant:ident $name:literal: $meaning:literal,)*
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $type {
            #[default]
            #[doc = concat!($first_meaning, ".\n")] $(#[$first_more])*
            $first,
            $(#[doc = concat!($meaning, ".\n")] $(#[$more])* $variant,)*
        }

        impl $type {
            /// All values: name, value, meaning.
            pub const ALL: &'static [(&'static str, $type, &'static str)] =
                &[($first_name, $type::$first, $first_meaning), $(($name, $type::$variant, $meaning),)*];

            /// Returns the name on the command line and in plans.
            pub fn name(self) -> &'static str {
                $type::ALL[self as usize].0
            }

            /// Returns the meaning, in a few words.
            pub fn meaning(self) -> &'static str {
                $type::ALL[self as usize].2
            }

            /// Returns a list of all names in words.
            pub fn names() -> String {
                $crate::error::either($type::ALL.iter().map(|(name, ..)| *name))
            }

            /// Returns the value with a name. Errors: [`Error::Plan`]($crate::error::Error::Plan) under `key`.
            pub fn parse(key: &str, text: &str) -> $crate::error::Result<$type> {
                let found = $type::ALL.iter().find(|(name, ..)| *name == text).map(|(_, value, _)| *value);
                found.ok_or_else(|| $crate::error::Error::plan(key, format!("'{text}'"), $type::names()))
            }
        }

        impl<'de> $crate::serde::Deserialize<'de> for $type {
            fn deserialize<D: $crate::serde::Deserializer<'de>>(deserializer: D) -> ::std::result::Result<$type, D::Error> {
                let text = <String as $crate::serde::Deserialize>::deserialize(deserializer)?;
                $type::parse("value", &text).map_err(<D::Error as $crate::serde::de::Error>::custom)
            }
        }
    };
}

named! {
    /// The reaction of a static allocation of whole tasks if the next task does not fit. No task ends in such an allocation.
    OnBlocked {
        Skip "skip": "The next user in rank order is tried",
        Stop "stop": "The round ends, as in the DRF paper's Algorithm 1",
    }
}

#[cfg(test)]
mod tests {
    named! {
        /// A choice.
        Choice {
            One "one": "The first",
            /// More of it.
            Two "two-and-more": "The second",
        }
    }

    #[test]
    fn names_read_back_and_others_are_told_the_names() {
        assert_eq!(Choice::default(), Choice::One);
        for &(name, value, _) in Choice::ALL {
            assert_eq!((Choice::parse("key", name).expect(name), value.name()), (value, name));
            assert!(!value.meaning().is_empty());
        }
        let said = Choice::parse("key", "tow-and-more").expect_err("no name").to_string();
        assert_eq!(
            said,
            "key: 'tow-and-more' is not accepted; expected one or two-and-more (did you mean 'two-and-more'?)"
        );
    }
}
