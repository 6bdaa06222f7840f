//! A compact list of names, indexed by number.

/// A list of names, stored one after the other in one text: there may be millions.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct NameList {
    text: String,
    /// The end of each name in the text.
    ends: Vec<usize>,
}

impl NameList {
    /// Adds a name.
    pub fn push(&mut self, name: &str) {
        self.text.push_str(name);
        self.ends.push(self.text.len());
    }

    /// Returns the name at a position. Panics: if the position is out of range.
    #[inline]
    pub fn get(&self, at: usize) -> &str {
        let begin = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[begin..self.ends[at]]
    }

    /// Returns the name at a position together with the position. A position out of range panics only when the name is read.
    pub fn listed(&self, at: usize) -> Listed<'_> {
        Listed { at: at as u32, names: self }
    }

    /// Returns the number of names.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns all names in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|at| self.get(at))
    }
}

/// A name of a list with its position. The position identifies a name within its list.
#[derive(Clone, Copy, Debug)]
pub struct Listed<'a> {
    /// The position in the list.
    pub at: u32,
    names: &'a NameList,
}

impl<'a> Listed<'a> {
    /// Returns the name. Panics: if the position is out of range.
    pub fn name(self) -> &'a str {
        self.names.get(self.at as usize)
    }
}
