//! Escapes foreign text for HTML, SVG, JSON and CSV: names of users and jobs are data, never markup and never a formula.

/// Returns whether XML 1.0 permits this character (section 2.2); it excludes most control characters, U+FFFE and U+FFFF.
fn is_xml(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

/// Replaces characters that XML forbids, control characters, and noncharacters (Unicode 23.7) by U+FFFD.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if is_replaced(c) { '\u{FFFD}' } else { c }).collect()
}

/// Returns whether [`printable`] replaces a character.
fn is_replaced(c: char) -> bool {
    let is_noncharacter = u32::from(c) & 0xFFFE == 0xFFFE || ('\u{FDD0}'..='\u{FDEF}').contains(&c);
    !is_xml(c) || is_noncharacter || (c.is_control() && !matches!(c, '\t' | '\n' | '\r'))
}

/// Escapes text for an attribute or between tags.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in printable(text).chars() {
        match character {
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '&' => escaped += "&amp;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            other => escaped.push(other),
        }
    }
    escaped
}

/// Formats a value as JSON for inclusion in XML; it parses to the same value. Characters that XML forbids are escaped like control
/// characters.
pub fn json(value: &serde_json::Value) -> String {
    escape_json(&format!("{value:#}"), |c| !is_xml(c))
}

/// Escapes JSON for a script element of HTML; it parses to the same value. Escapes `<` and every character that [`printable`] replaces.
pub fn script_json(json: &str) -> String {
    escape_json(json, |c| c == '<' || is_replaced(c))
}

/// Writes some characters of JSON, which occur only in its strings, as `\u` and their UTF-16 units.
fn escape_json(json: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match is_escaped(c) {
            true => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| text += &format!("\\u{unit:04x}")),
            false => text.push(c),
        }
    }
    text
}

/// Formats a field of a table for spreadsheets: text that a spreadsheet would evaluate as a formula is prefixed with an apostrophe (OWASP,
/// CSV injection). Numbers are unchanged. Not for files that Plimsoll reads back.
pub fn no_formula(text: &str) -> String {
    match text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']) && text.parse::<f64>().is_err() {
        true => format!("'{text}"),
        false => text.to_owned(),
    }
}

/// Returns a line of CSV with its end. Fields are quoted if necessary, and are no formulas ([`no_formula`]).
pub fn csv_line<S: AsRef<str>>(fields: impl IntoIterator<Item = S>) -> String {
    let quoted = |field: S| {
        let field = no_formula(field.as_ref());
        let plain = !field.contains([',', '"', '\n', '\r']);
        if plain { field } else { format!("\"{}\"", field.replace('"', "\"\"")) }
    };
    fields.into_iter().map(quoted).collect::<Vec<_>>().join(",") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_makes_xml_that_reads_back() {
        let all: String = (0..=0x1_1000).chain([0x1_FFFE, 0x1_FFFF, 0x10_FFFF]).filter_map(char::from_u32).collect();
        let xml = format!("<a b=\"{0}\">{0}</a>", escape(&all));
        let read = roxmltree::Document::parse(&xml).expect("XML");
        assert_eq!(
            read.root_element().text().map(|text| text.replace('\n', "\r")),
            Some(printable(&all).replace('\n', "\r"))
        );
        assert!(roxmltree::Document::parse("<a>\u{FFFE}</a>").is_err(), "the parser sees it");
        for c in ['\0', '\u{B}', '\u{1F}', '\u{7F}', '\u{85}', '\u{FDD0}', '\u{FFFE}', '\u{FFFF}', '\u{1FFFE}'] {
            assert_eq!(printable(&c.to_string()), "\u{FFFD}", "{c:?}");
        }
        assert_eq!(printable("a\tb\nc\r é \u{FFFD} \u{10000}"), "a\tb\nc\r é \u{FFFD} \u{10000}");
    }

    #[test]
    fn json_in_xml_reads_back_whole() {
        let value = serde_json::json!({ "a": "x\u{FFFE}\u{FFFF}\u{0}\u{7F}é" });
        let text = json(&value);
        assert!(text.contains("\\ufffe\\uffff\\u0000") && text.chars().all(is_xml), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("JSON"), value);
    }

    #[test]
    fn names_are_no_formulas() {
        for name in ["=1", "+1+1", "-x", "-", "@a", "\tx", "\rx", "\n1"] {
            assert_eq!(no_formula(name), format!("'{name}"));
        }
        for plain in ["a=b", "", "'=x", "-1.5", "-1e-7", "12"] {
            assert_eq!(no_formula(plain), plain);
        }
    }
}
