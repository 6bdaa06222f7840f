//! Splits an expression into tokens.

use crate::number::Fraction;

/// A token of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    /// A name, and whether it was written in backticks.
    Name(String, bool),
    /// A number.
    Number(Fraction),
    /// A text in quotes.
    Text(String),
    /// An operator or a bracket.
    Sign(&'static str),
}

/// The operators and brackets, the longer ones first.
const SIGNS: [&str; 15] = ["==", "!=", "<=", ">=", "=", "<", ">", "+", "-", "*", "/", "(", ")", ",", "%"];

/// A problem with the number of its character, from 1.
pub type Located<T> = std::result::Result<T, (usize, String)>;

/// Splits a text into tokens with the number of the first character of each.
pub fn tokens(text: &str) -> Located<Vec<(Token, usize)>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let place = text[..text.len() - rest.len()].chars().count() + 1;
        let run = |is: fn(char) -> bool| rest.find(|c| !is(c)).unwrap_or(rest.len());
        let (token, length) = match first {
            _ if first.is_whitespace() => {
                rest = &rest[first.len_utf8()..];
                continue;
            }
            '0'..='9' => {
                let length = run(|c| c.is_ascii_alphanumeric() || c == '.');
                let number = Fraction::parse(&rest[..length]);
                (
                    Token::Number(number.ok_or_else(|| (place, format!("'{}' is not a number", &rest[..length])))?),
                    length,
                )
            }
            '\'' | '"' | '`' => {
                let (text, length) =
                    quoted_text(rest, first).ok_or_else(|| (place, format!("the quote {first} is not closed")))?;
                (if first == '`' { Token::Name(text, true) } else { Token::Text(text) }, length)
            }
            '$' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => {
                let length = 1 + rest[1..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - 1);
                (Token::Name(rest[..length].to_owned(), true), length)
            }
            _ if first.is_alphabetic() || first == '_' => {
                let length = run(|c| c.is_alphanumeric() || c == '_' || c == '.');
                (Token::Name(rest[..length].to_owned(), false), length)
            }
            _ => {
                let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
                let sign = sign.ok_or_else(|| (place, format!("'{}' is no operator", first.escape_debug())))?;
                (Token::Sign(if *sign == "=" { "==" } else { sign }), sign.len())
            }
        };
        tokens.push((token, place));
        rest = &rest[length..];
    }
    Ok(tokens)
}

/// Returns the text in quotes at the beginning of `rest`, and its length with the quotes. A doubled quote is part of the text. Returns
/// `None` if the quote is not closed.
fn quoted_text(rest: &str, quote: char) -> Option<(String, usize)> {
    let mut text = String::new();
    let mut at = quote.len_utf8();
    loop {
        let end = at + rest[at..].find(quote)?;
        text.push_str(&rest[at..end]);
        at = end + quote.len_utf8();
        if !rest[at..].starts_with(quote) {
            return Some((text, at));
        }
        text.push(quote);
        at += quote.len_utf8();
    }
}
