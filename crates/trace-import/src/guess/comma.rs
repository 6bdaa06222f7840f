//! Numbers with commas: `1,5` has a decimal comma, `1,234,567` has groups of digits, and `1,500` may be either.

/// Numbers with commas in a column.
#[derive(Clone, Debug, Default)]
pub struct CommaCounts {
    /// All of them.
    pub values: u64,
    /// The first one.
    pub example: String,
    /// Numbers without a comma that have a decimal point.
    pub points: u64,
    /// Numbers with a decimal comma, such as `1,5`.
    decimal: u64,
    /// Numbers with a decimal comma behind groups of digits, such as `1.234,5`.
    decimal_groups: u64,
    /// Numbers with groups of digits, such as `1,234,567` or `1,234.5`.
    groups: u64,
}

/// The meaning of the commas of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommaStyle {
    /// No number has a comma.
    Absent,
    /// A decimal comma.
    Decimal,
    /// A decimal comma, and points between groups of digits.
    DecimalGroups,
    /// Commas between groups of digits.
    Groups,
    /// The values fit several meanings.
    Unclear,
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether a text is digits in groups of three, at least two groups.
fn is_grouped(text: &str, separator: char) -> bool {
    let mut groups = text.split(separator);
    let first = groups.next().unwrap_or_default();
    let rest: Vec<&str> = groups.collect();
    is_digits(first)
        && first.len() <= 3
        && !first.starts_with('0')
        && !rest.is_empty()
        && rest.iter().all(|group| group.len() == 3 && is_digits(group))
}

impl CommaCounts {
    /// Counts a value; returns whether it is a number with a comma.
    pub fn add(&mut self, value: &str) -> bool {
        let digits = value.strip_prefix('-').unwrap_or(value);
        let Some((whole, decimals)) = digits.rsplit_once(',') else { return false };
        if is_grouped(digits, ',') && digits.matches(',').count() == 1 {
            // Either meaning.
        } else if is_digits(whole) && is_digits(decimals) {
            self.decimal += 1;
        } else if is_grouped(whole, '.') && is_digits(decimals) {
            self.decimal_groups += 1;
        } else if is_grouped(digits.split('.').next().unwrap_or_default(), ',')
            && digits.split_once('.').is_none_or(|(_, decimals)| is_digits(decimals))
        {
            self.groups += 1;
        } else {
            return false;
        }
        self.values += 1;
        if self.example.is_empty() {
            value.clone_into(&mut self.example);
        }
        true
    }

    /// Returns the meaning of the commas.
    pub fn style(&self) -> CommaStyle {
        match (self.decimal, self.decimal_groups, self.groups) {
            _ if self.values == 0 => CommaStyle::Absent,
            (0, 0, 0) if self.points > 0 => CommaStyle::Groups,
            (0, 0, 1..) => CommaStyle::Groups,
            (_, 1.., 0) => CommaStyle::DecimalGroups,
            (1.., 0, 0) if self.points == 0 => CommaStyle::Decimal,
            _ => CommaStyle::Unclear,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_decide_the_meaning_of_commas() {
        for (values, style) in [
            (&["1", "2.5"][..], CommaStyle::Absent),
            (&["1,5", "2", "1,500"], CommaStyle::Decimal),
            (&["0,500"], CommaStyle::Decimal),
            (&["1,500", "2"], CommaStyle::Unclear),
            (&["1,500", "2.5"], CommaStyle::Groups),
            (&["1,234,567", "1,500"], CommaStyle::Groups),
            (&["-1,234.5"], CommaStyle::Groups),
            (&["1.234,5", "1.234"], CommaStyle::DecimalGroups),
            (&["1,5", "2.5"], CommaStyle::Unclear),
            (&["1,5", "1,234,567"], CommaStyle::Unclear),
        ] {
            let mut counts = CommaCounts::default();
            for value in values {
                if !counts.add(value) {
                    counts.points += u64::from(value.contains('.'));
                }
            }
            assert_eq!(counts.style(), style, "{values:?}");
        }
        let mut counts = CommaCounts::default();
        assert!(["a,b", "1,", ",5", "1,2,3", "1,5x", "1,23,456"].iter().all(|value| !counts.add(value)));
    }
}
