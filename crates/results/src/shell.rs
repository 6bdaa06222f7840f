//! Quotes and parses words of shell command lines.

/// Quotes a word for a shell if necessary.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Joins words to a command line.
pub fn line<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> String {
    words.into_iter().map(|word| quoted(word.as_ref())).collect::<Vec<_>>().join(" ")
}

/// Formats a path as a word that no program parses as an option.
pub fn path(path: impl AsRef<std::path::Path>) -> String {
    let text = path.as_ref().display().to_string();
    if text.starts_with('-') && text != "-" { format!("./{text}") } else { text }
}

/// Parses a line from [`line()`] into words; `None` for any other line.
pub fn words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut rest) = (Vec::new(), String::new(), line);
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            ' ' => words.push(std::mem::take(&mut word)),
            '\'' => {
                let (inner, after) = rest.split_once('\'')?;
                word += inner;
                rest = after;
            }
            '\\' => {
                rest = rest.strip_prefix('\'')?;
                word.push('\'');
            }
            c => word.push(c),
        }
    }
    words.push(word);
    (self::line(&words) == line).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_and_nothing_else_does() {
        let hard = ["a b", "it's", "$(touch x)", "`x`", "", "-v", "a;b", "\"q\"", "a\nb", "*", "~", "''", "\\"];
        assert_eq!(words(&line(hard)).as_deref(), Some(&hard.map(str::to_owned)[..]));
        assert_eq!(line(["plimsoll", "run", "a b"]), "plimsoll run 'a b'");
        for wrong in ["a; rm b", "$(x)", "a 'b", "a  b'c'", "a | b"] {
            assert_eq!(words(wrong), None, "{wrong}");
        }
        assert_eq!((path("-x.csv"), path("-"), path("a")), ("./-x.csv".into(), "-".into(), "a".into()));
    }
}
