//! Names that are valid together in one archive: every file system accepts them and keeps them distinct.

use crate::portable;

/// Checks names; names of folders end with `/`. Errors: a name and its problem.
pub fn check(names: &[String]) -> Result<(), (String, &'static str)> {
    let mut sorted = Vec::with_capacity(names.len());
    for name in names {
        let own = name.strip_suffix('/').unwrap_or(name);
        if let Some(problem) = problem(own) {
            return Err((name.clone(), problem));
        }
        sorted.push((folded(own), own.len() < name.len(), name));
    }
    // Names below a folder are sorted directly after it.
    sorted.sort_by(|(one, is_folder, _), (other, other_is, _)| (one, is_folder).cmp(&(other, other_is)));
    for pair in sorted.windows(2) {
        let ((above, is_folder, _), (folded, _, name)) = (&pair[0], &pair[1]);
        match folded.strip_prefix(above.as_str()) {
            Some("") => return Err(((*name).clone(), "it occurs twice")),
            Some(rest) if rest.starts_with(BELOW) && !is_folder => {
                return Err(((*name).clone(), "it is below a file"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The replacement of `/` for sorting; it sorts before any other character of a name.
const BELOW: char = '\0';

/// Returns a name as the file system that distinguishes the fewest names stores it. Upper and lower case are the same: letters are
/// converted both ways, since one upper-case letter may have two lower-case forms, and vice versa. Characters beyond ASCII are written as
/// numbers, as by Info-ZIP.
fn folded(name: &str) -> String {
    let cased = name.to_lowercase().to_uppercase().to_lowercase();
    let mut folded = String::with_capacity(cased.len());
    for one in cased.chars() {
        match one {
            '/' => folded.push(BELOW),
            _ if one.is_ascii() => folded.push(one),
            _ => folded += &format!("#u{:04x}", u32::from(one)),
        }
    }
    folded
}

/// Returns why a path is not valid in an archive; `None` for a valid one.
pub fn problem(path: &str) -> Option<&'static str> {
    let is_version = |version: &str| version.bytes().all(|byte| byte.is_ascii_digit());
    let (_, last) = path.rsplit_once('/').unwrap_or(("", path));
    portable::problem(path).or_else(|| match last.rsplit_once(';') {
        _ if path.contains(is_decomposed) => Some(
            "there is a letter in its path that systems encode in two ways, such as an accent after its letter: rename it \
             with the accented letter",
        ),
        Some((_, version)) if is_version(version) => {
            Some("its path ends with a semicolon and a number, which some programs remove")
        }
        _ => None,
    })
}

/// Returns whether a character is part of a letter that can also be written as one character, or is an alternative for such a letter; some
/// file systems treat both spellings as one name. (These are the blocks of combining marks, the voicing marks of kana, the parts of Korean
/// syllables, and duplicate ideographs.)
fn is_decomposed(one: char) -> bool {
    matches!(one,
        '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}'
        | '\u{fe20}'..='\u{fe2f}' | '\u{3099}' | '\u{309a}' | '\u{1100}'..='\u{11ff}' | '\u{f900}'..='\u{faff}'
        | '\u{2f800}'..='\u{2fa1f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(names: &[&str]) -> String {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        check(&names).err().map(|(name, problem)| format!("{name}: {problem}")).unwrap_or_default()
    }

    #[test]
    fn names_that_are_one_file_somewhere_are_found() {
        for (one, other) in [
            ("A", "a"),
            ("report-σ.html", "report-ς.html"),
            ("ΑΣ", "ας"),
            ("straße", "STRASSE"),
            ("stra\u{1e9e}e", "strasse"),
            ("\u{212a}", "k"),
            ("\u{b5}", "\u{3bc}"),
            ("ü.csv", "#U00fc.csv"),
            ("a/", "A"),
        ] {
            for names in [[one, other], [other, one]] {
                assert!(said(&names).contains("occurs twice"), "{names:?}: {}", said(&names));
            }
        }
        assert_eq!(said(&["a/b", "a", "a-b"]), "a/b: it is below a file");
        assert_eq!(said(&["A/b/c/d", "a/B", "a-b/c"]), "A/b/c/d: it is below a file");
        assert_eq!(said(&["a/", "a/b/", "a/b/c", "a-b", "a.b", "é", "e"]), "");
        assert!(said(&["a.txt;1"]).contains("semicolon") && said(&["a.txt;"]).contains("semicolon"));
        assert_eq!(said(&["a;1/b", "a;b"]), "");
        for name in ["cafe\u{301}.csv", "か\u{3099}", "\u{1100}\u{1161}", "\u{fa19}"] {
            assert!(said(&[name]).contains("in two ways"), "{name}");
        }
        assert_eq!(said(&["caf\u{e9}.csv", "が", "가", "神"]), "");
    }

    /// The time grows linearly with the names, not with the square of their depth.
    #[test]
    fn many_deep_names_are_compared_at_once() {
        let below = "a/".repeat(490);
        let names: Vec<String> = (0..20_000).map(|at| format!("{at:05}/{below}b")).collect();
        assert_eq!(check(&names), Ok(()));
        let deeper = "a/".repeat(32_000);
        let (name, problem) = check(&[format!("{deeper}b")]).expect_err("no system takes it");
        assert!(name.len() > 60_000 && problem.contains("longer than 1,000 bytes"), "{problem}");
    }
}
