//! Splits an expression into words, numbers and signs.

/// A result with an error that states the problem and its place.
pub type Result<T> = std::result::Result<T, String>;

/// A position in the text: the number of the character, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CharPosition(pub usize);

/// A token of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    Word(String),
    Number(u64, u64),
    Sign(&'static str),
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Token::Word(word) => f.write_str(word),
            Token::Number(numerator, 1) => write!(f, "{numerator}"),
            Token::Number(numerator, denominator) => write!(f, "{}", *numerator as f64 / *denominator as f64),
            Token::Sign(sign) => f.write_str(sign),
        }
    }
}

/// Signs, the longer ones first.
const SIGNS: [&str; 17] = ["**", "<=", ">=", "==", "!=", "+", "-", "*", "/", "<", ">", "(", ")", "[", "]", ",", ";"];

/// Splits a text into tokens with their places. Errors: an unexpected character or number.
pub fn tokens(text: &str) -> Result<Vec<(Token, CharPosition)>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let place = CharPosition(text[..text.len() - rest.len()].chars().count() + 1);
        let run = |is: fn(char) -> bool| rest.find(|c| !is(c)).unwrap_or(rest.len());
        let (token, length) = if first.is_whitespace() {
            rest = &rest[first.len_utf8()..];
            continue;
        } else if first.is_ascii_digit() || first == '.' {
            let length = run(|c| c.is_ascii_digit() || c == '.');
            (decimal(&rest[..length]).ok_or_else(|| number_at(&rest[..length], place))?, length)
        } else if first.is_alphabetic() || first == '_' {
            let length = run(|c| c.is_alphanumeric() || c == '_');
            (Token::Word(rest[..length].to_owned()), length)
        } else {
            let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
            let sign = sign.ok_or_else(|| format!("no '{}' at character {}", first.escape_debug(), place.0))?;
            (Token::Sign(sign), sign.len())
        };
        tokens.push((token, place));
        rest = &rest[length..];
    }
    Ok(tokens)
}

fn number_at(text: &str, place: CharPosition) -> String {
    format!("a number of at most 18 digits, such as 0.5, instead of '{text}' at character {}", place.0)
}

/// Reads a number with or without decimals; `None` if it is not one, or has more than 18 digits.
fn decimal(text: &str) -> Option<Token> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{part}");
    if digits.is_empty() || digits.len() > 18 || part.contains('.') {
        return None;
    }
    Some(Token::Number(digits.parse().ok()?, 10u64.pow(part.len() as u32)))
}
