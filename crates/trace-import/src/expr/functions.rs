//! The functions of expressions.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::RangeInclusive;

use regex::Regex;

use crate::clock::{Clock, zone};
use crate::number::Fraction;
use crate::value::{Value, Valued};

/// A function. Without a value in one of its arguments the result is missing, except for the functions of missing values.
pub struct Function {
    /// The name.
    pub name: &'static str,
    /// The arguments in words.
    pub usage: &'static str,
    /// The meaning.
    pub about: &'static str,
    /// The accepted numbers of arguments.
    pub arguments: RangeInclusive<usize>,
    /// The position of an argument that is a constant pattern.
    pub pattern: Option<usize>,
    /// Whether the function is computed although an argument is missing.
    pub of_missing: bool,
    /// Computes the value.
    pub compute: for<'a> fn(&[Value<'a>], &Clock) -> Valued<Value<'a>>,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The most arguments of a function.
const MANY: usize = 20;

macro_rules! functions {
    ($($name:literal, $usage:literal, $arguments:expr, $pattern:expr, $of_missing:expr, $compute:expr, $about:literal;)*) => {
        /// All functions.
        pub static FUNCTIONS: &[Function] = &[$(Function {
            name: $name,
            usage: $usage,
            about: $about,
            arguments: $arguments,
            pattern: $pattern,
            of_missing: $of_missing,
            compute: $compute,
        },)*];
    };
}

functions! {
    "known", "known(value)", 1..=1, None, true,
        |values, _| Ok(Value::Truth(!values[0].is_missing())), "whether there is a value";
    "coalesce", "coalesce(value, ...)", 1..=MANY, None, true,
        |values, _| Ok(values.iter().find(|value| !value.is_missing()).cloned().unwrap_or(Value::Missing)),
        "the first value that is not missing";
    "min", "min(number, ...)", 1..=MANY, None, false, |values, clock| extreme(values, clock, true), "the least number";
    "max", "max(number, ...)", 1..=MANY, None, false, |values, clock| extreme(values, clock, false), "the largest number";
    "round", "round(number)", 1..=1, None, false, |values, clock| rounded(values, clock, Fraction::round),
        "the nearest whole number";
    "floor", "floor(number)", 1..=1, None, false, |values, clock| rounded(values, clock, Fraction::floor),
        "the whole number at or below";
    "ceiling", "ceiling(number)", 1..=1, None, false, |values, clock| rounded(values, clock, Fraction::ceiling),
        "the whole number at or above";
    "number", "number(text)", 1..=1, None, false, |values, _| Ok(optional(Fraction::parse(&text(&values[0])))),
        "the number in a text; missing if it is none";
    "time", "time(text), time(text, format) or time(text, format, zone)", 1..=3, None, false, time,
        "the seconds since 1970 of a time; missing if the text has another form";
    "contains", "contains(text, part)", 2..=2, None, false,
        |values, _| Ok(Value::Truth(text(&values[0]).contains(&*text(&values[1])))), "whether a text contains another";
    "starts_with", "starts_with(text, part)", 2..=2, None, false,
        |values, _| Ok(Value::Truth(text(&values[0]).starts_with(&*text(&values[1])))), "whether a text begins with another";
    "ends_with", "ends_with(text, part)", 2..=2, None, false,
        |values, _| Ok(Value::Truth(text(&values[0]).ends_with(&*text(&values[1])))), "whether a text ends with another";
    "lower", "lower(text)", 1..=1, None, false, |values, _| Ok(Value::text(text(&values[0]).to_lowercase())),
        "the text in small letters";
    "length", "length(text)", 1..=1, None, false,
        |values, _| Ok(Value::Number(Fraction::from(text(&values[0]).chars().count() as i64))), "the number of characters";
    "concat", "concat(text, ...)", 1..=MANY, None, false,
        |values, _| Ok(Value::text(values.iter().map(|value| text(value).into_owned()).collect::<String>())),
        "the texts joined";
    "replace", "replace(text, part, other)", 3..=3, None, false,
        |values, _| Ok(Value::text(text(&values[0]).replace(&*text(&values[1]), &text(&values[2])))),
        "the text with every occurrence of a part replaced";
    "part", "part(text, separator, n)", 3..=3, None, false, part,
        "the n-th part between separators, from 1; from the end if n is negative; missing if there is none";
    "pair", "pair(text, key)", 2..=2, None, false, pair,
        "the value of a key in a list such as cpu=4,mem=16G; missing if the key is absent";
    "matches", "matches(text, pattern)", 2..=2, Some(1), false,
        |values, _| Ok(Value::Truth(with_pattern(&values[1], |regex| regex.is_match(&text(&values[0]))))),
        "whether a regular expression occurs in a text";
    "find", "find(text, pattern)", 2..=2, Some(1), false, find,
        "the first group of a regular expression, or all of its match; missing if it does not occur";
    "bytes", "bytes(text)", 1..=1, None, false, |values, _| Ok(optional(bytes(&text(&values[0])))),
        "the bytes of a size such as 2000M or 16GiB, in powers of 1024; missing if it is none";
    "quantity", "quantity(text)", 1..=1, None, false, |values, _| Ok(optional(quantity(&text(&values[0])))),
        "the amount of a Kubernetes quantity such as 100m, 1Gi or 64e9; missing if it is none";
}

fn text<'v>(value: &'v Value<'_>) -> Cow<'v, str> {
    match value {
        Value::Text(text) => Cow::Borrowed(text),
        other => other.clone().into_text().map_or_else(Cow::default, |text| Cow::Owned(text.into_owned())),
    }
}

fn optional<'a>(number: Option<Fraction>) -> Value<'a> {
    number.map_or(Value::Missing, Value::Number)
}

fn numbers(values: &[Value<'_>], clock: &Clock) -> Valued<Vec<Fraction>> {
    values.iter().map(|value| Ok(value.number(clock)?.unwrap_or(Fraction::ZERO))).collect()
}

fn extreme<'a>(values: &[Value<'a>], clock: &Clock, least: bool) -> Valued<Value<'a>> {
    let numbers = numbers(values, clock)?.into_iter();
    Ok(optional(if least { numbers.min() } else { numbers.max() }))
}

fn rounded<'a>(values: &[Value<'a>], clock: &Clock, convert: fn(Fraction) -> i128) -> Valued<Value<'a>> {
    let number = numbers(values, clock)?.first().copied();
    Ok(optional(number.and_then(|number| Fraction::reduced(convert(number), 1))))
}

fn time<'a>(values: &[Value<'a>], clock: &Clock) -> Valued<Value<'a>> {
    let (read, zone_of_clock) = (text(&values[0]), clock.zone.clone());
    Ok(optional(match values {
        [_] => clock.read(&read),
        [_, format] => clock.formatted(&read, &text(format), &zone_of_clock),
        [_, format, name, ..] => clock.formatted(&read, &text(format), &zone(&text(name))?),
        [] => None,
    }))
}

fn part<'a>(values: &[Value<'a>], clock: &Clock) -> Valued<Value<'a>> {
    let (whole, separator) = (text(&values[0]), text(&values[1]));
    let at = values[2].number(clock)?.and_then(Fraction::integer).and_then(|at| isize::try_from(at).ok());
    if separator.is_empty() {
        return Err("the separator of part() is empty".to_owned());
    }
    let parts: Vec<&str> = whole.split(&*separator).collect();
    let at = match at {
        Some(at @ 1..) => usize::try_from(at - 1).ok(),
        Some(at @ ..=-1) => parts.len().checked_sub(at.unsigned_abs()),
        _ => return Err("the number of a part must be a whole number other than 0".to_owned()),
    };
    Ok(at.and_then(|at| parts.get(at)).map_or(Value::Missing, |part| Value::text((*part).to_owned())))
}

fn pair<'a>(values: &[Value<'a>], _: &Clock) -> Valued<Value<'a>> {
    let (whole, key) = (text(&values[0]), text(&values[1]));
    let found = whole.split(',').find_map(|item| item.split_once('=').filter(|(name, _)| name.trim() == key));
    Ok(found.map_or(Value::Missing, |(_, value)| Value::text(value.trim().to_owned())))
}

/// Checks a regular expression. Errors: the problem.
pub fn check_pattern(pattern: &str) -> Result<(), String> {
    let problem =
        |error: regex::Error| format!("the pattern '{pattern}' is not valid: {}", last_line(&error.to_string()));
    regex::RegexBuilder::new(pattern).size_limit(1 << 20).build().map(|_| ()).map_err(problem)
}

fn last_line(text: &str) -> String {
    text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// Calls `work` with a compiled pattern, which was checked when the expression was parsed.
fn with_pattern<T: Default>(pattern: &Value<'_>, work: impl FnOnce(&Regex) -> T) -> T {
    thread_local! {
        static COMPILED: RefCell<HashMap<String, Option<Regex>>> = RefCell::default();
    }
    let pattern = text(pattern);
    COMPILED.with_borrow_mut(|compiled| {
        if !compiled.contains_key(&*pattern) {
            let regex = regex::RegexBuilder::new(&pattern).size_limit(1 << 20).build().ok();
            compiled.insert(pattern.to_string(), regex);
        }
        compiled.get(&*pattern).and_then(Option::as_ref).map(work).unwrap_or_default()
    })
}

fn find<'a>(values: &[Value<'a>], _: &Clock) -> Valued<Value<'a>> {
    let whole = text(&values[0]);
    let found = with_pattern(&values[1], |regex| {
        let captures = regex.captures(&whole)?;
        captures.get(usize::from(regex.captures_len() > 1)).map(|found| found.as_str().to_owned())
    });
    Ok(found.map_or(Value::Missing, Value::text))
}

fn suffixed(text: &str, factor: impl Fn(&str) -> Option<Fraction>) -> Option<Fraction> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic() && c != 'e' && c != 'E').unwrap_or(text.len());
    // `5E` is a suffix, `5e3` an exponent.
    let split = if text[..split].ends_with(['e', 'E']) { split - 1 } else { split };
    Fraction::parse(&text[..split])?.times(factor(&text[split..])?)
}

fn power(base: i64, exponent: u32) -> Option<Fraction> {
    Fraction::reduced(i128::from(base).checked_pow(exponent)?, 1)
}

/// Reads a size in powers of 1024.
pub fn bytes(text: &str) -> Option<Fraction> {
    suffixed(text, |suffix| {
        let letter = suffix.trim().to_ascii_uppercase();
        let letter = letter.trim_end_matches('B').trim_end_matches('I');
        power(1024, ["", "K", "M", "G", "T", "P"].iter().position(|known| *known == letter)? as u32)
    })
}

/// Reads a quantity of Kubernetes.
pub fn quantity(text: &str) -> Option<Fraction> {
    suffixed(text, |suffix| match suffix {
        "" => power(1, 1),
        "m" => Fraction::reduced(1, 1000),
        "u" => Fraction::reduced(1, 1_000_000),
        "n" => Fraction::reduced(1, 1_000_000_000),
        _ => {
            let binary = suffix.strip_suffix('i');
            let letter = binary.unwrap_or(suffix);
            let place = if letter == "k" {
                0
            } else {
                ["Ki", "M", "G", "T", "P", "E"]
                    .iter()
                    .position(|known| *known == letter)
                    .or((letter == "K" && binary.is_some()).then_some(0))?
            };
            power(if binary.is_some() { 1024 } else { 1000 }, place as u32 + 1)
        }
    })
}
