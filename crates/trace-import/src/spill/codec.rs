//! Bytes of records: values in few bytes, and keys that are ordered as bytes like their values.

use plimsoll_base::error::{Error, Result};

use crate::number::Fraction;

/// Returns the error of a record that cannot be decoded.
pub fn damaged() -> Error {
    Error::Mismatch { problem: "a temporary file of the import was damaged; start the import again".to_owned() }
}

/// Appends a number in 1 to 10 bytes of 7 bits (LEB128).
pub(super) fn put_integer(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Reads a number of [`put_integer`]; `None` if the bytes end or are no such number.
pub(super) fn take_integer(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, behind) = rest.split_first()?;
        *rest = behind;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Encodes a record or a key.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    /// The bytes so far.
    pub bytes: Vec<u8>,
}

impl Encoder {
    /// Removes all bytes.
    pub fn clear(&mut self) -> &mut Encoder {
        self.bytes.clear();
        self
    }

    /// Appends a whole number.
    pub fn integer(&mut self, value: u64) -> &mut Encoder {
        put_integer(&mut self.bytes, value);
        self
    }

    /// Appends a number with a sign.
    pub fn signed(&mut self, value: i64) -> &mut Encoder {
        self.integer(((value << 1) ^ (value >> 63)) as u64)
    }

    /// Appends a number or its absence.
    pub fn optional(&mut self, value: Option<u64>) -> &mut Encoder {
        match value {
            None => self.integer(0),
            Some(value) => self.integer(1).integer(value),
        }
    }

    /// Appends bytes of any length.
    pub fn slice(&mut self, value: &[u8]) -> &mut Encoder {
        self.integer(value.len() as u64);
        self.bytes.extend_from_slice(value);
        self
    }

    /// Appends a text or its absence.
    pub fn text(&mut self, value: Option<&str>) -> &mut Encoder {
        match value {
            None => self.integer(0),
            Some(text) => {
                self.integer(text.len() as u64 + 1);
                self.bytes.extend_from_slice(text.as_bytes());
                self
            }
        }
    }

    /// Appends a fraction.
    pub fn fraction(&mut self, value: Fraction) -> &mut Encoder {
        let (numerator, denominator) = value.parts();
        if let (Ok(whole), 1) = (i64::try_from(numerator), denominator) {
            return self.integer(1).signed(whole);
        }
        self.integer(0);
        self.bytes.extend_from_slice(&numerator.to_le_bytes());
        self.bytes.extend_from_slice(&denominator.to_le_bytes());
        self
    }

    /// Appends a text to a key: zero bytes are marked, and two zero bytes end it.
    pub fn key_text(&mut self, text: &[u8]) -> &mut Encoder {
        for &byte in text {
            self.bytes.push(byte);
            if byte == 0 {
                self.bytes.push(0xff);
            }
        }
        self.bytes.extend_from_slice(&[0, 0]);
        self
    }

    /// Appends a number to a key: the number of bytes behind a sign, then the bytes from the most significant one.
    pub fn key_number(&mut self, value: i128) -> &mut Encoder {
        let magnitude = if value < 0 { !value } else { value } as u128;
        let length = 16 - magnitude.leading_zeros() as usize / 8;
        self.bytes.push(if value < 0 { 0x7f - length as u8 } else { 0x80 + length as u8 });
        self.bytes.extend_from_slice(&value.to_be_bytes()[16 - length..]);
        self
    }

    /// Appends the number that distinguishes equal keys; see [`Decoder::split_sequence`].
    pub fn key_sequence(&mut self, value: u64) -> &mut Encoder {
        self.bytes.extend_from_slice(&value.to_be_bytes());
        self
    }

    /// Appends a fraction to a key: its floor, then 256 bits of the rest. Different fractions of 128-bit integers differ in these.
    pub fn key_fraction(&mut self, value: Fraction) -> &mut Encoder {
        let (numerator, denominator) = value.parts();
        self.key_number(numerator.div_euclid(denominator));
        let (mut rest, denominator) = (numerator.rem_euclid(denominator) as u128, denominator as u128);
        self.bytes.push(u8::from(rest > 0));
        if rest > 0 {
            for _ in 0..32 {
                let mut byte = 0;
                for _ in 0..8 {
                    rest <<= 1;
                    byte = byte << 1 | u8::from(rest >= denominator);
                    rest -= if rest >= denominator { denominator } else { 0 };
                }
                self.bytes.push(byte);
            }
        }
        self
    }
}

/// Decodes the values of a record or a key in the order of their encoding. Errors: [`damaged`].
#[derive(Clone, Copy, Debug)]
pub struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    /// Starts at the first byte.
    pub fn new(rest: &'a [u8]) -> Decoder<'a> {
        Decoder { rest }
    }

    /// Returns whether all bytes are read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn bytes(&mut self, length: u64) -> Result<&'a [u8]> {
        let length = usize::try_from(length).map_err(|_| damaged())?;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or_else(damaged)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Reads a whole number.
    pub fn integer(&mut self) -> Result<u64> {
        take_integer(&mut self.rest).ok_or_else(damaged)
    }

    /// Reads a number with a sign.
    pub fn signed(&mut self) -> Result<i64> {
        let value = self.integer()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Reads a number or its absence.
    pub fn optional(&mut self) -> Result<Option<u64>> {
        if self.integer()? == 0 { Ok(None) } else { self.integer().map(Some) }
    }

    /// Reads bytes.
    pub fn slice(&mut self) -> Result<&'a [u8]> {
        let length = self.integer()?;
        self.bytes(length)
    }

    /// Reads bytes; at the end there are none.
    pub fn slice_or_empty(&mut self) -> Result<&'a [u8]> {
        if self.rest.is_empty() { Ok(&[]) } else { self.slice() }
    }

    /// Reads a text or its absence.
    pub fn text(&mut self) -> Result<Option<&'a str>> {
        match self.integer()? {
            0 => Ok(None),
            length => std::str::from_utf8(self.bytes(length - 1)?).map(Some).map_err(|_| damaged()),
        }
    }

    /// Reads a fraction.
    pub fn fraction(&mut self) -> Result<Fraction> {
        if self.integer()? == 1 {
            return self.signed().map(Fraction::from);
        }
        let mut part = || Ok(i128::from_le_bytes(self.bytes(16)?.try_into().map_err(|_| damaged())?));
        let (numerator, denominator) = (part()?, part()?);
        Fraction::reduced(numerator, denominator).ok_or_else(damaged)
    }

    /// Splits a key into the bytes before the number of [`Encoder::key_sequence`] at its end, and that number.
    pub fn split_sequence(key: &'a [u8]) -> Result<(&'a [u8], u64)> {
        let (group, number) = key.split_at_checked(key.len().wrapping_sub(8)).ok_or_else(damaged)?;
        Ok((group, u64::from_be_bytes(number.try_into().map_err(|_| damaged())?)))
    }
}
