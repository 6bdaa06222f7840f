//! Names of files that every file system accepts and that do not leave their folder.

/// The characters that Windows refuses in names, besides control characters and the two slashes.
const REFUSED: [char; 7] = ['<', '>', ':', '"', '|', '?', '*'];

/// Maximum length of a part of a path, in bytes.
const LONGEST: usize = 255;

/// Maximum length of a path, in bytes; some systems accept about a thousand.
const LONGEST_PATH: usize = 1000;

/// A description of valid names of files and folders, for messages.
pub const EXPECTED: &str =
    "a name for files, without slashes, the characters < > : \" | ? *, a dot or a dash in front, or a dot at the end";

/// Returns whether a user-chosen name is valid as the name of a file or a folder on every file system.
pub fn is_file_name(name: &str) -> bool {
    !name.starts_with(['.', '-', ' ']) && !name.contains('/') && problem(name).is_none()
}

/// Returns why some file system does not accept a relative path with parts divided by `/`; `None` for a valid one.
pub fn problem(path: &str) -> Option<&'static str> {
    if path.starts_with('/') {
        return Some("its path is absolute");
    }
    if path.len() > LONGEST_PATH {
        return Some("its path is longer than 1,000 bytes");
    }
    path.split('/').find_map(|part| match part {
        "" => Some("a part of its path is empty"),
        "." | ".." => Some("its path leads to another folder"),
        _ if part.contains('\\') => Some("there is a backslash in its path"),
        _ if part.contains(char::is_control) => Some("there is a control character in its path"),
        _ if part.contains(REFUSED) => Some("its path has one of the characters < > : \" | ? *, which Windows refuses"),
        _ if part.ends_with(['.', ' ']) => Some("a part of its path ends with a dot or a space, which Windows refuses"),
        _ if part.len() > LONGEST => Some("a part of its path is longer than 255 bytes"),
        _ if is_device(part) => Some("a part of its path is the name of a device on Windows"),
        _ => None,
    })
}

/// Returns whether a path in a foreign list leads out of the folder of the list.
pub fn leads_elsewhere(path: &str) -> bool {
    let up = |part: &str| part == "..";
    std::path::Path::new(path).has_root() || path.contains(':') || path.split(['/', '\\']).any(up)
}

/// Converts text to the name of a file: characters that some file system refuses become `_`.
pub fn file_name(text: &str) -> String {
    let plain = |c: char| if c.is_control() || REFUSED.contains(&c) || matches!(c, '/' | '\\') { '_' } else { c };
    let mut name: String = text.chars().map(plain).collect();
    while name.len() > LONGEST / 2 {
        name.pop();
    }
    if name.ends_with(['.', ' ']) {
        name.pop();
        name.push('_');
    }
    if name.is_empty() || name.starts_with(['.', '-', ' ']) || is_device(&name) {
        name.insert(0, '_');
    }
    name
}

/// Returns whether a name is that of a device on Windows, with any extension.
fn is_device(part: &str) -> bool {
    let stem = part.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let numbered =
        |port: &str| stem.strip_prefix(port).is_some_and(|n| n.len() == 1 && n != "0" && n.parse::<u8>().is_ok());
    ["CON", "PRN", "AUX", "NUL"].contains(&stem.as_str()) || numbered("COM") || numbered("LPT")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_or_that_a_system_refuses_are_found() {
        for (path, says) in [
            ("/etc/passwd", "absolute"),
            ("", "empty"),
            ("a//b", "empty"),
            ("a/../b", "another folder"),
            ("./a", "another folder"),
            ("..\\a", "backslash"),
            ("C:/a", "Windows"),
            ("policy=slot:2/a", "Windows"),
            ("a/b.", "dot"),
            ("a /b", "space"),
            ("a\u{7}", "control"),
            ("a/nul.txt", "device"),
            ("Com1", "device"),
        ] {
            assert!(problem(path).is_some_and(|problem| problem.contains(says)), "{path}: {:?}", problem(path));
        }
        assert!(problem(&"x".repeat(256)).is_some());
        assert!(problem(&"x/".repeat(500)).is_some_and(|problem| problem.contains("empty")), "1,000 bytes");
        assert!(problem(&"x/".repeat(501)).is_some_and(|problem| problem.contains("1,000 bytes")));
        for path in ["a/b c.csv", "cell=a,b/policy=slot%3A2/x.parquet", "..a/b", "$(x)'y", "-x", "com10", "über.csv"] {
            assert_eq!(problem(path), None, "{path}");
        }
        assert!(is_file_name("load sweep") && is_file_name("a.b"));
        for name in ["", "-x", ".x", "a/b", "a:b", "aux", "x."] {
            assert!(!is_file_name(name), "{name}");
        }
    }

    #[test]
    fn any_text_becomes_the_name_of_a_file() {
        let long = "ü".repeat(200);
        for text in ["a b", "a:b?", "../x", "-v", "", "nul", "x. ", "x..", long.as_str(), "\u{0}"] {
            let name = file_name(text);
            assert!(is_file_name(&name), "{text:?} became {name:?}");
        }
        assert_eq!((file_name("a b"), file_name("a:b")), ("a b".to_owned(), "a_b".to_owned()));
    }
}
