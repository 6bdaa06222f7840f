//! Amounts in the notations of schedulers, read without floats: `500m`, `4Gi`, `1.5`, `1e3`.
//!
//! A quantity is exact. Only the conversion to the base unit of a resource (thousandths, MiB) rounds down, and it reports whether the
//! result is exact.
//!
//! Source: Kubernetes, apimachinery, `resource.Quantity`.

use plimsoll_base::units::{DECIMAL_MAX, Dim, NumberProblem, Unit};

/// An exact number of at least 0: `digits * factor / 10^places`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity {
    digits: u128,
    factor: u128,
    places: u32,
}

/// The limit of significant digits.
const DIGITS_MOST: u128 = 10u128.pow(30);

/// The limit of decimal places.
const PLACES_MOST: u32 = 36;

/// The suffixes of Kubernetes: each with a factor, and the exponent of the power of ten that divides.
const SUFFIXES: [(&str, u128, u32); 16] = [
    ("", 1, 0),
    ("n", 1, 9),
    ("u", 1, 6),
    ("m", 1, 3),
    ("k", 1000, 0),
    ("M", 1_000_000, 0),
    ("G", 1_000_000_000, 0),
    ("T", 1_000_000_000_000, 0),
    ("P", 1_000_000_000_000_000, 0),
    ("E", 1_000_000_000_000_000_000, 0),
    ("Ki", 1 << 10, 0),
    ("Mi", 1 << 20, 0),
    ("Gi", 1 << 30, 0),
    ("Ti", 1 << 40, 0),
    ("Pi", 1 << 50, 0),
    ("Ei", 1 << 60, 0),
];

impl Quantity {
    /// Reads a decimal number: `12`, `0.25`, `1e3`. Errors: a [`NumberProblem`].
    pub fn number(text: &str) -> Result<Quantity, NumberProblem> {
        let text = text.trim();
        let (mantissa, exponent) = match text.find(['e', 'E']) {
            Some(at) => (&text[..at], exponent(&text[at + 1..])?),
            None => (text, 0),
        };
        let (negative, body) = match mantissa.as_bytes() {
            [b'-', ..] => (true, &mantissa[1..]),
            [b'+', ..] => (false, &mantissa[1..]),
            _ => (false, mantissa),
        };
        if matches!(body.trim_start_matches('.').to_ascii_lowercase().as_str(), "nan" | "inf" | "infinity") {
            return Err(NumberProblem::NotFinite);
        }
        let (whole, fraction) = body.split_once('.').unwrap_or((body, ""));
        if (whole.is_empty() && fraction.is_empty())
            || !(whole.bytes().chain(fraction.bytes())).all(|b| b.is_ascii_digit())
        {
            return Err(NumberProblem::NotANumber);
        }
        let fraction = fraction.trim_end_matches('0');
        let mut digits: u128 = 0;
        for byte in whole.bytes().chain(fraction.bytes()) {
            digits = digits * 10 + u128::from(byte - b'0');
            if digits >= DIGITS_MOST {
                return Err(NumberProblem::TooLarge);
            }
        }
        if digits == 0 {
            return Ok(Quantity { digits, factor: 1, places: 0 });
        }
        if negative {
            return Err(NumberProblem::Negative);
        }
        let places = i64::try_from(fraction.len()).map_err(|_| NumberProblem::TooLarge)? - exponent;
        let up = u32::try_from(-places).unwrap_or(0);
        let factor = 10u128.checked_pow(up).ok_or(NumberProblem::TooLarge)?;
        let places = u32::try_from(places.max(0)).unwrap_or(u32::MAX);
        if places > PLACES_MOST { Err(NumberProblem::TooLarge) } else { Ok(Quantity { digits, factor, places }) }
    }

    /// Reads a number with one of Kubernetes' suffixes, or with an exponent: `500m`, `4Gi`, `1e3`. Errors: a [`NumberProblem`].
    pub fn kubernetes(text: &str) -> Result<Quantity, NumberProblem> {
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit() && !"+-.".contains(c)).unwrap_or(text.len());
        let Some((_, factor, places)) = SUFFIXES.iter().find(|(suffix, ..)| *suffix == &text[end..]) else {
            return Quantity::number(text);
        };
        let plain = Quantity::number(&text[..end])?;
        let places = if plain.digits == 0 { 0 } else { plain.places + places };
        Ok(Quantity { factor: plain.factor.checked_mul(*factor).ok_or(NumberProblem::TooLarge)?, places, ..plain })
    }

    /// Returns the quantity times `per / of`, rounded down, and whether the result is exact. Errors: the result is larger than 10^18.
    pub fn floor(&self, per: u128, of: u128) -> Result<(u64, bool), NumberProblem> {
        let mut above = [self.digits, self.factor, per];
        let mut below = [10u128.checked_pow(self.places).ok_or(NumberProblem::TooLarge)?, of];
        for above in &mut above {
            for below in &mut below {
                let common = common(*above, *below);
                (*above, *below) = (*above / common, *below / common);
            }
        }
        let product = |all: &[u128]| all.iter().try_fold(1u128, |product, factor| product.checked_mul(*factor));
        let above = product(&above).ok_or(NumberProblem::TooLarge)?;
        let below = product(&below).ok_or(NumberProblem::TooLarge)?;
        let amount = u64::try_from(above / below).ok().filter(|&amount| amount <= DECIMAL_MAX);
        Ok((amount.ok_or(NumberProblem::TooLarge)?, above.is_multiple_of(below)))
    }

    /// Formats the number with all its decimal digits. Errors: the number is larger than the largest weight (10^12).
    pub fn text(&self) -> Result<String, NumberProblem> {
        self.floor(1_000_000, 1)?;
        let digits = self.digits.checked_mul(self.factor).ok_or(NumberProblem::TooLarge)?;
        Ok(decimals(digits, self.places as usize))
    }
}

fn exponent(text: &str) -> Result<i64, NumberProblem> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NumberProblem::NotANumber);
    }
    text.parse().ok().filter(|exponent: &i64| exponent.abs() <= 99).ok_or(NumberProblem::TooLarge)
}

/// Returns the greatest common divisor, at least 1.
fn common(a: u128, b: u128) -> u128 {
    let (mut a, mut b) = (a, b);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

/// Formats `digits / 10^places` without trailing zeros.
fn decimals(digits: u128, places: usize) -> String {
    let text = format!("{digits:0>width$}", width = places + 1);
    let (whole, fraction) = text.split_at(text.len() - places);
    match fraction.trim_end_matches('0') {
        "" => whole.to_owned(),
        fraction => format!("{whole}.{fraction}"),
    }
}

/// A resource: its dimension in Plimsoll, and the size of the unit of the source configuration (`per / of` base units).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The dimension.
    pub dim: Dim,
    per: u128,
    of: u128,
}

impl Resource {
    /// Creates a resource that the source counts in whole units (1000 thousandths).
    pub fn units(name: &str) -> Resource {
        Resource { dim: Dim { name: name.to_owned(), unit: Unit::Milli }, per: 1000, of: 1 }
    }

    /// Creates a resource that the source counts in units of `per / of` MiB.
    pub fn mebibytes(name: &str, per: u128, of: u128) -> Resource {
        Resource { dim: Dim { name: name.to_owned(), unit: Unit::Mebibyte }, per, of }
    }

    /// Changes the unit of the source to a thousandth.
    pub fn in_thousandths(self) -> Resource {
        Resource { per: 1, ..self }
    }

    /// Returns the resource of a Kubernetes name: cores, bytes or devices.
    pub fn kubernetes(name: &str) -> Resource {
        match name {
            "nvidia.com/gpu" => Resource::units("gpu"),
            "memory" | "storage" | "ephemeral-storage" => Resource::mebibytes(&plain(name), 1, 1 << 20),
            name if name.starts_with("hugepages-") => Resource::mebibytes(&plain(name), 1, 1 << 20),
            name => Resource::units(&plain(name)),
        }
    }

    /// Converts a quantity to base units, rounded down, and returns whether the result is exact. Errors: the result is larger than 10^18.
    pub fn amount(&self, quantity: &Quantity) -> Result<(u64, bool), NumberProblem> {
        quantity.floor(self.per, self.of)
    }

    /// Returns a description of the smallest amount of the resource.
    pub fn least(&self) -> &'static str {
        if self.dim.unit == Unit::Mebibyte { "a MiB" } else { "a thousandth" }
    }
}

/// Converts a name to a TOML key: lower-case letters, digits and `_`.
pub fn plain(name: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let mut safe: String = name.chars().map(safe).collect();
    // A key that ends like a unit would be read as an amount in that unit.
    if ["_gib", "_mib", "_norm"].iter().any(|unit| safe.ends_with(unit)) {
        safe.push('_');
    }
    if safe.is_empty() { "_".to_owned() } else { safe }
}

/// Amounts of resources in base units, in the order cores, memory, GPUs, other resources by name. `None` is an unlimited amount.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quantities(Vec<(Dim, Option<u64>)>);

impl Quantities {
    /// Returns the amount of a resource if it is set and limited.
    pub fn get(&self, dim: &Dim) -> Option<u64> {
        self.0.iter().find(|(known, _)| known == dim).and_then(|(_, amount)| *amount)
    }

    /// Sets the amount of a resource.
    pub fn set(&mut self, dim: &Dim, amount: u64) {
        self.set_amount(dim, Some(amount));
    }

    /// Sets the amount of a resource to unlimited.
    pub fn set_unlimited(&mut self, dim: &Dim) {
        self.set_amount(dim, None);
    }

    fn set_amount(&mut self, dim: &Dim, amount: Option<u64>) {
        match self.0.iter_mut().find(|(known, _)| known == dim) {
            Some((_, known)) => *known = amount,
            None => {
                let place = |dim: &Dim| ["cpu", "memory", "gpu"].iter().position(|name| *name == dim.name).unwrap_or(3);
                let key = |dim: &Dim| (place(dim), dim.name.clone());
                let at = self.0.partition_point(|(known, _)| key(known) < key(dim));
                self.0.insert(at, (dim.clone(), amount));
            }
        }
    }

    /// Adds to the amount of a resource. Errors: the sum is larger than 10^18.
    pub fn add(&mut self, dim: &Dim, amount: u64) -> Result<(), NumberProblem> {
        let sum = self.get(dim).unwrap_or(0).checked_add(amount).filter(|&sum| sum <= DECIMAL_MAX);
        self.set(dim, sum.ok_or(NumberProblem::TooLarge)?);
        Ok(())
    }

    /// Returns whether no resource has an amount.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the resources.
    pub fn dims(&self) -> impl Iterator<Item = &Dim> {
        self.0.iter().map(|(dim, _)| dim)
    }

    /// Formats keys with values as in TOML, each exact: `cpu = 0.5`, `memory_gib = 4`, `gpu = "unlimited"`.
    pub fn settings(&self) -> Vec<String> {
        let one = |(Dim { name, unit }, amount): &(Dim, Option<u64>)| match (unit, amount) {
            (Unit::Mebibyte, None) => format!("{name}_gib = \"unlimited\""),
            (_, None) => format!("{name} = \"unlimited\""),
            (Unit::Mebibyte, Some(amount)) if amount % 1024 == 0 => format!("{name}_gib = {}", amount / 1024),
            (Unit::Mebibyte, Some(amount)) => format!("{name}_mib = {amount}"),
            (_, Some(amount)) => format!("{name} = {}", decimals((*amount).into(), 3)),
        };
        self.0.iter().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_exact() {
        let milli = |text: &str| Quantity::kubernetes(text).and_then(|quantity| quantity.floor(1000, 1));
        for (text, amount) in [
            ("500m", 500),
            ("2", 2000),
            ("1.5", 1500),
            (".5", 500),
            ("5.", 5000),
            ("+1", 1000),
            ("1e3", 1_000_000),
            ("12e-1", 1200),
            ("1E1", 10_000),
            ("2k", 2_000_000),
            ("0", 0),
            ("-0", 0),
            ("0.10000000000000000000000000000000000000", 100),
            ("1000u", 1),
            ("1000000n", 1),
        ] {
            assert_eq!(milli(text), Ok((amount, true)), "{text}");
        }
        assert_eq!(milli("1500u"), Ok((1, false)));
        let mebi = |text: &str| Quantity::kubernetes(text).and_then(|quantity| quantity.floor(1, 1 << 20));
        for (text, amount, exact) in [
            ("1Gi", 1024, true),
            ("0.5Gi", 512, true),
            ("1048576", 1, true),
            ("1M", 0, false),
            ("1G", 953, false),
            ("1Ti", 1 << 20, true),
            ("9Ei", 9 << 40, true),
            ("1025Ki", 1, false),
            ("36e9", 34332, false),
        ] {
            assert_eq!(mebi(text), Ok((amount, exact)), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        use NumberProblem::{Negative, NotANumber, NotFinite, TooLarge};
        for (text, problem) in [
            ("", NotANumber),
            (".", NotANumber),
            ("two", NotANumber),
            ("1 Gi", NotANumber),
            ("1gb", NotANumber),
            ("0x10", NotANumber),
            ("1e", NotANumber),
            ("1e+", NotANumber),
            ("--1", NotANumber),
            ("1.2.3", NotANumber),
            ("m", NotANumber),
            ("-1", Negative),
            ("-5Gi", Negative),
            (".inf", NotFinite),
            ("NaN", NotFinite),
            ("1e999", TooLarge),
            ("1e99", TooLarge),
            ("1e-99", TooLarge),
            ("99999999999999999999999999999999999999999", TooLarge),
        ] {
            assert_eq!(Quantity::kubernetes(text), Err(problem), "{text}");
        }
        assert_eq!(Quantity::kubernetes("9E").and_then(|quantity| quantity.floor(1000, 1)), Err(TooLarge));
    }

    #[test]
    fn numbers_are_written_in_full() {
        let text = |text: &str| Quantity::kubernetes(text).and_then(|quantity| quantity.text());
        for (given, written) in [
            ("0.5", "0.5"),
            ("1500m", "1.5"),
            ("2", "2"),
            ("2.50", "2.5"),
            ("0", "0"),
            ("1u", "0.000001"),
            ("1k", "1000"),
        ] {
            assert_eq!(text(given).as_deref(), Ok(written), "{given}");
        }
        assert_eq!(text("2T"), Err(NumberProblem::TooLarge));
    }

    #[test]
    fn resources_have_names_for_keys() {
        for (name, plain) in [
            ("nvidia.com/gpu", "gpu"),
            ("nvidia.com/mig-1g.5gb", "nvidia_com_mig_1g_5gb"),
            ("ephemeral-storage", "ephemeral_storage"),
            ("example.com/x-gib", "example_com_x_gib_"),
            ("", "_"),
        ] {
            assert_eq!(Resource::kubernetes(name).dim.name, plain);
        }
        let mut amounts = Quantities::default();
        for (dim, amount) in [("z", 1500), ("gpu", 1), ("cpu", 2000)] {
            amounts.set(&Resource::units(dim).dim, amount);
        }
        amounts.set(&Resource::kubernetes("memory").dim, 1536);
        amounts.add(&Resource::kubernetes("memory").dim, 512).expect("small");
        assert_eq!(amounts.settings(), ["cpu = 2", "memory_gib = 2", "gpu = 0.001", "z = 1.5"]);
        assert!(amounts.add(&Resource::units("z").dim, u64::MAX).is_err());
    }
}
