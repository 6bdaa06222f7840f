//! Checkpoints: the state of a run as bytes, so that a run that was killed can continue.
//!
//! An object with state implements [`Checkpoint`]. Its one method names all fields in a pattern without `..`, so a new field does not
//! compile until it is either visited or declared as configuration (`field: _`). The same method saves the state and restores it into an
//! object that was created from the same configuration. Plain data derives `serde`'s traits and is visited as a value.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// An object with state that can be saved, and restored into an object of the same configuration.
///
/// ```
/// use plimsoll_base::checkpoint::{Checkpoint, Visitor};
/// use plimsoll_base::error::Result;
///
/// struct Credits {
///     /// Configuration.
///     quantum: u64,
///     credits: Vec<u64>,
/// }
///
/// impl Checkpoint for Credits {
///     fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
///         let Credits { quantum: _, credits } = self;
///         visitor.value(credits)
///     }
/// }
///
/// let mut before = Credits { quantum: 5, credits: vec![3, 4] };
/// let mut after = Credits { quantum: 5, credits: Vec::new() };
/// let bytes = Visitor::save(&mut before, Vec::new())?;
/// Visitor::restore(&mut after, &bytes)?;
/// assert_eq!(after.credits, [3, 4]);
/// # assert_eq!(after.quantum, before.quantum);
/// # Ok::<(), plimsoll_base::error::Error>(())
/// ```
pub trait Checkpoint {
    /// Visits the state: every field except configuration, and caches that are empty after the restoration. Errors: those of
    /// [`Visitor::restore`]; saving has none.
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()>;
}

/// Saves or restores the visited state. The bytes have no names and no types, so they fit only the program and the configuration that
/// wrote them. The caller checks both.
pub struct Visitor<'a> {
    /// The bytes to restore from; `None` while saving.
    from: Option<&'a [u8]>,
    /// The saved bytes.
    saved: Vec<u8>,
}

impl Visitor<'_> {
    /// Appends the state of an object to bytes. Errors: those of the object.
    pub fn save(object: &mut (impl Checkpoint + ?Sized), bytes: Vec<u8>) -> Result<Vec<u8>> {
        let mut visitor = Visitor { from: None, saved: bytes };
        object.visit(&mut visitor)?;
        Ok(visitor.saved)
    }

    /// Restores the state of an object from all of these bytes. Errors: [`Error::Mismatch`] if they do not fit the object.
    pub fn restore(object: &mut (impl Checkpoint + ?Sized), bytes: &[u8]) -> Result<()> {
        let mut visitor = Visitor { from: Some(bytes), saved: Vec::new() };
        object.visit(&mut visitor)?;
        match visitor.from {
            Some([]) | None => Ok(()),
            Some(rest) => Err(misfit(format!("{} bytes too many", rest.len()))),
        }
    }

    /// Returns whether state is being restored.
    pub fn is_restoring(&self) -> bool {
        self.from.is_some()
    }

    /// Visits plain data. Errors: [`Error::Mismatch`].
    pub fn value<T: Serialize + DeserializeOwned>(&mut self, value: &mut T) -> Result<()> {
        match self.from {
            Some(bytes) => {
                let (read, rest) = postcard::take_from_bytes(bytes).map_err(|error| misfit(error.to_string()))?;
                (*value, self.from) = (read, Some(rest));
            }
            None => {
                let bytes = std::mem::take(&mut self.saved);
                self.saved = postcard::to_extend(value, bytes).map_err(|error| misfit(error.to_string()))?;
            }
        }
        Ok(())
    }

    /// Visits an optional object, which the configuration either has or has not. Errors: [`Error::Mismatch`].
    pub fn option(&mut self, object: Option<&mut (impl Checkpoint + ?Sized)>) -> Result<()> {
        self.same(&object.is_some(), "another configuration")?;
        object.map_or(Ok(()), |object| object.visit(self))
    }

    /// Visits objects, of which the configuration has a fixed number. Errors: [`Error::Mismatch`].
    pub fn all<'o>(&mut self, objects: impl ExactSizeIterator<Item = &'o mut (impl Checkpoint + 'o)>) -> Result<()> {
        self.same(&objects.len(), "another number of parts")?;
        objects.into_iter().try_for_each(|object| object.visit(self))
    }

    /// Saves a fact of the configuration, and compares it when restoring. Errors: [`Error::Mismatch`] with this problem.
    pub fn same<T: Serialize + DeserializeOwned + PartialEq + Clone>(&mut self, fact: &T, problem: &str) -> Result<()> {
        let mut saved = fact.clone();
        self.value(&mut saved)?;
        if saved == *fact { Ok(()) } else { Err(misfit(problem.to_owned())) }
    }
}

/// Visits values in order.
#[macro_export]
macro_rules! visit_values {
    ($visitor:expr; $($field:expr),+ $(,)?) => {
        { $($visitor.value($field)?;)+ }
    };
}

/// Returns the error for bytes that do not fit the object.
fn misfit(problem: String) -> Error {
    Error::Mismatch { problem: format!("the checkpoint does not fit this run: {problem}") }
}

/// Arrays of any length as plain data, for `#[serde(with = ...)]`; serde's own arrays have at most 32 items.
pub mod array {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Serialises an array.
    pub fn serialize<S: Serializer, T: Serialize, const N: usize>(
        array: &[T; N],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        array.as_slice().serialize(serializer)
    }

    /// Deserialises an array.
    pub fn deserialize<'de, D: Deserializer<'de>, T: Deserialize<'de>, const N: usize>(
        deserializer: D,
    ) -> Result<[T; N], D::Error> {
        let items = Vec::deserialize(deserializer)?;
        items.try_into().map_err(|items: Vec<T>| D::Error::invalid_length(items.len(), &"the length of the array"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct Part(u64);

    impl Checkpoint for Part {
        fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
            let Part(value) = self;
            visitor.value(value)
        }
    }

    #[derive(Debug, Default, PartialEq)]
    struct Compound {
        one: Option<Part>,
        parts: Vec<Part>,
        words: Vec<String>,
        large: i128,
        exact: f64,
    }

    impl Checkpoint for Compound {
        fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
            let Compound { one, parts, words, large, exact } = self;
            visitor.option(one.as_mut())?;
            visitor.all(parts.iter_mut())?;
            visit_values!(visitor; words, large, exact);
            Ok(())
        }
    }

    #[test]
    fn a_state_is_restored_into_an_object_of_the_same_configuration() {
        let mut before = Compound {
            one: Some(Part(7)),
            parts: vec![Part(1), Part(u64::MAX)],
            words: vec!["a".to_owned(), String::new()],
            large: i128::MIN,
            exact: f64::from_bits(0x7ff8_0000_0000_1234),
        };
        let bytes = Visitor::save(&mut before, Vec::new()).expect("it has no errors");
        let mut after = Compound { one: Some(Part(0)), parts: vec![Part(0), Part(0)], ..Compound::default() };
        Visitor::restore(&mut after, &bytes).expect("the same configuration");
        assert_eq!(after.exact.to_bits(), before.exact.to_bits());
        (after.exact, before.exact) = (0.0, 0.0);
        assert_eq!(after, before);
        let restored = |mut other: Compound, bytes: &[u8]| {
            Visitor::restore(&mut other, bytes).expect_err("another configuration").to_string()
        };
        let two = || vec![Part(0), Part(0)];
        let same = || Compound { one: Some(Part(0)), parts: two(), ..Compound::default() };
        assert!(restored(Compound { parts: two(), ..Compound::default() }, &bytes).ends_with("another configuration"));
        assert!(restored(Compound { one: Some(Part(0)), ..Compound::default() }, &bytes).ends_with("number of parts"));
        assert!(restored(same(), &[bytes.as_slice(), &[0]].concat()).ends_with("1 bytes too many"));
        for cut in 0..bytes.len() {
            restored(same(), &bytes[..cut]);
        }
    }
}
