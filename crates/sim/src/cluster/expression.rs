//! The language of label expressions of task sets: `ssd & !gpu | room=a`.
//!
//! A label is letters, digits and `_ - . : / =`. `!` binds tighter than `&`, `&` tighter than `|`; parentheses group. The language is ours:
//! the articles on Fuxi name labels but give no syntax.

use std::collections::BTreeMap;

/// The deepest nesting of parentheses and `!`, including the label itself.
const DEPTH: usize = 64;

/// Labels that a machine must have or lack.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub enum Expression {
    /// The machine carries the label.
    Label(String),
    /// The inner expression is false.
    Not(Box<Expression>),
    /// All expressions are true.
    All(Vec<Expression>),
    /// At least one expression is true.
    Any(Vec<Expression>),
}

/// Returns whether a text is one label.
pub fn is_label(text: &str) -> bool {
    !text.is_empty() && text.chars().all(of_label)
}

fn of_label(c: char) -> bool {
    c.is_alphanumeric() || "_-.:/=".contains(c)
}

impl Expression {
    /// Parses an expression. Errors: the problem and the position of its character, from 1.
    pub fn parse(text: &str) -> Result<Expression, String> {
        let mut parser = Parser { text, at: 0, depth: 0 };
        let expression = parser.any()?;
        match parser.peek() {
            None => Ok(expression),
            Some(_) => Err(parser.wrong("expected '&', '|' or the end")),
        }
    }

    /// Returns whether the expression is true for a machine with exactly the labels that `carries` accepts.
    pub fn is_satisfied(&self, carries: &impl Fn(&str) -> bool) -> bool {
        match self {
            Expression::Label(label) => carries(label),
            Expression::Not(inner) => !inner.is_satisfied(carries),
            Expression::All(parts) => parts.iter().all(|part| part.is_satisfied(carries)),
            Expression::Any(parts) => parts.iter().any(|part| part.is_satisfied(carries)),
        }
    }

    /// Returns whether the expression is false on every machine without the label. The result is exact: all combinations of other labels
    /// are considered.
    ///
    /// Cost: linear in the size of the expression, and doubled for every label that occurs both plainly and negated.
    pub fn requires(&self, label: &str) -> bool {
        let mut signs = BTreeMap::new();
        self.signs(true, &mut signs);
        // A label that only occurs positively is set to present, and one that only occurs negatively to absent.
        let mut carried: BTreeMap<&str, bool> = BTreeMap::new();
        let mut open = Vec::new();
        for (name, (wanted, unwanted)) in signs {
            if name == label {
                carried.insert(name, false);
            } else if wanted && unwanted {
                open.push(name);
            } else {
                carried.insert(name, wanted);
            }
        }
        !self.may_hold(&mut carried, &open)
    }

    /// Records for each label whether it occurs plainly and whether it occurs negated.
    fn signs<'a>(&'a self, plain: bool, signs: &mut BTreeMap<&'a str, (bool, bool)>) {
        match self {
            Expression::Label(label) => {
                let sign = signs.entry(label).or_default();
                *sign = (sign.0 | plain, sign.1 | !plain);
            }
            Expression::Not(inner) => inner.signs(!plain, signs),
            Expression::All(parts) | Expression::Any(parts) => parts.iter().for_each(|part| part.signs(plain, signs)),
        }
    }

    /// Returns whether the expression can be true with the labels in `carried` fixed and each label in `open` present or absent.
    fn may_hold<'a>(&'a self, carried: &mut BTreeMap<&'a str, bool>, open: &[&'a str]) -> bool {
        let (first, rest) = match (self.known(carried), open.split_first()) {
            (None, Some((first, rest))) => (first, rest),
            (known, _) => return known.unwrap_or(false),
        };
        let holds = [true, false].into_iter().any(|with| {
            carried.insert(first, with);
            self.may_hold(carried, rest)
        });
        carried.remove(first);
        holds
    }

    /// Returns the value of the expression if the fixed labels determine it.
    fn known(&self, carried: &BTreeMap<&str, bool>) -> Option<bool> {
        let (parts, decides) = match self {
            Expression::Label(label) => return carried.get(label.as_str()).copied(),
            Expression::Not(inner) => return inner.known(carried).map(|holds| !holds),
            Expression::All(parts) => (parts, false),
            Expression::Any(parts) => (parts, true),
        };
        let mut all = Some(!decides);
        for part in parts {
            match part.known(carried) {
                Some(holds) if holds == decides => return Some(decides),
                Some(_) => {}
                None => all = None,
            }
        }
        all
    }

    /// Returns every label that occurs, in order and possibly several times.
    pub fn labels(&self) -> Vec<&str> {
        match self {
            Expression::Label(label) => vec![label],
            Expression::Not(inner) => inner.labels(),
            Expression::All(parts) | Expression::Any(parts) => parts.iter().flat_map(Expression::labels).collect(),
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn wrong(&mut self, expected: &str) -> String {
        let found = self.peek().map_or("the end".to_owned(), |c| format!("'{c}'"));
        let at = self.text[..self.at].chars().count() + 1;
        format!("'{}' is no label expression: {found} at character {at}; {expected}", self.text)
    }

    fn any(&mut self) -> Result<Expression, String> {
        self.list('|', Expression::Any, |parser| parser.list('&', Expression::All, Parser::one))
    }

    fn list(
        &mut self,
        between: char,
        make: fn(Vec<Expression>) -> Expression,
        part: impl Fn(&mut Self) -> Result<Expression, String>,
    ) -> Result<Expression, String> {
        let first = part(self)?;
        let mut parts = vec![first];
        while self.eat(between) {
            parts.push(part(self)?);
        }
        Ok(if parts.len() > 1 { make(parts) } else { parts.swap_remove(0) })
    }

    fn one(&mut self) -> Result<Expression, String> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(self.wrong(&format!("expected at most {DEPTH} levels of '(' and '!'")));
        }
        let found = if self.eat('!') {
            Expression::Not(Box::new(self.one()?))
        } else if self.eat('(') {
            let inner = self.any()?;
            if !self.eat(')') {
                return Err(self.wrong("expected ')'"));
            }
            inner
        } else {
            self.peek();
            let rest = &self.text[self.at..];
            let length = rest.find(|c| !of_label(c)).unwrap_or(rest.len());
            if length == 0 {
                return Err(self.wrong("expected a label, '!' or '('"));
            }
            self.at += length;
            Expression::Label(rest[..length].to_owned())
        };
        self.depth -= 1;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn holds(text: &str, labels: &[&str]) -> bool {
        Expression::parse(text).expect("an expression").is_satisfied(&|label| labels.contains(&label))
    }

    #[test]
    fn operators_bind_as_documented() {
        let all = ["a", "b", "c"];
        for bits in 0..8 {
            let have: Vec<&str> = (0..3).filter(|i| bits >> i & 1 == 1).map(|i| all[i]).collect();
            let [a, b, c] = all.map(|label| have.contains(&label));
            assert_eq!(holds("a | b & !c", &have), a || (b && !c));
            assert_eq!(holds("(a|b)&!c", &have), (a || b) && !c);
            assert_eq!(holds("!a & !(b | !!c)", &have), !(a || b || c));
        }
        assert!(holds("room=hz & rack-7/a", &["room=hz", "rack-7/a"]));
        let same = |text| Expression::parse(text).expect("an expression");
        assert_eq!(same("ssd&!gpu"), same(" ssd & ( ! gpu ) "));
    }

    #[test]
    fn what_is_required_is_what_every_machine_has_on_which_it_holds() {
        const NAMES: [&str; 4] = ["a", "b", "c", "d"];
        let rng = &mut ChaCha8Rng::seed_from_u64(5);
        let (mut required, mut open) = (0, 0);
        for _ in 0..20_000 {
            let expression = draw(rng, 4);
            for label in NAMES {
                let machines = (0..16).map(|bits: usize| {
                    move |name: &str| NAMES.iter().position(|n| *n == name).is_some_and(|at| bits >> at & 1 == 1)
                });
                let without = machines.filter(|carries| expression.is_satisfied(carries) && !carries(label)).count();
                assert_eq!(expression.requires(label), without == 0, "{expression:?} {label}");
                *(if without == 0 { &mut required } else { &mut open }) += 1;
            }
        }
        assert!(required > 2_000 && open > 2_000, "{required} {open}");
        let requires = |text: &str, label| Expression::parse(text).expect("an expression").requires(label);
        assert!(requires("gpu & !old", "gpu") && requires("(gpu | x) & (gpu | !x)", "gpu") && requires("!!gpu", "gpu"));
        assert!(!requires("gpu | ssd", "gpu") && !requires("!gpu", "gpu") && requires("a & !a", "gpu"));
    }

    fn draw(rng: &mut ChaCha8Rng, depth: usize) -> Expression {
        let parts = |rng: &mut ChaCha8Rng| (0..rng.random_range(2..4)).map(|_| draw(rng, depth - 1)).collect();
        match rng.random_range(0..if depth == 0 { 1 } else { 5 }) {
            0 => Expression::Label(["a", "b", "c", "d"][rng.random_range(0..4)].to_owned()),
            1 => Expression::Not(Box::new(draw(rng, depth - 1))),
            2 | 3 => Expression::All(parts(rng)),
            _ => Expression::Any(parts(rng)),
        }
    }

    #[test]
    fn what_is_wrong_is_located() {
        for (text, want) in [
            ("", "the end at character 1; expected a label, '!' or '('"),
            ("ssd &", "the end at character 6; expected a label"),
            ("ssd gpu", "'g' at character 5; expected '&', '|' or the end"),
            ("(a | b", "the end at character 7; expected ')'"),
            ("é & *", "'*' at character 5; expected a label"),
            ("a)", "')' at character 2"),
        ] {
            let message = Expression::parse(text).expect_err(text);
            assert!(message.contains(want), "{message}");
        }
        let deep = "(".repeat(100_000);
        assert!(Expression::parse(&deep).expect_err("too deep").contains("at most 64 levels"));
        assert!(Expression::parse(&"!a&".repeat(1000)).is_err() && Expression::parse(&["a"; 1000].join("&")).is_ok());
    }
}
