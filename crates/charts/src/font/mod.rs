//! The only font of all figures: Liberation Sans, shipped unmodified in the binary (SIL Open Font License, see `OFL.txt`).
//!
//! Without a shipped font, text would silently be missing in a PNG made on a machine without Arial. Liberation Sans has the advance widths
//! of Arial and Helvetica, so a browser that falls back to those keeps the layout.

/// The font file.
pub const SANS: &[u8] = include_bytes!("LiberationSans-Regular.ttf");

/// The family name of [`SANS`].
pub const SANS_NAME: &str = "Liberation Sans";

/// The `font-family` of an SVG: the shipped font, then fonts of the same widths.
pub const FAMILY: &str = "Liberation Sans, Arial, Helvetica, sans-serif";

/// Advance widths of the printable ASCII characters, starting with the space, in thousandths of the font's size.
const ASCII: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556,
    556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833,
    722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556,
    556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334,
    260, 334, 584,
];

/// Returns the width of a line of text, in the unit of `size`. Non-ASCII characters are assumed to be as wide as `+`; ellipses and
/// scripts of full-width characters, as wide as `size`.
pub fn width(text: &str, size: f64) -> f64 {
    let thousandths: u32 = text
        .chars()
        .map(|character| match character {
            ' '..='~' => u32::from(ASCII[character as usize - 0x20]),
            '…' => 1000,
            other if (other as u32) >= 0x2E80 => 1000,
            _ => 584,
        })
        .sum();
    f64::from(thousandths) / 1000.0 * size
}

/// Returns the text, or the longest beginning that fits, with an ellipsis.
pub fn fit(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut kept = String::new();
    for character in text.chars() {
        kept.push(character);
        if width(&kept, size) + width("…", size) > room && kept.chars().count() > 1 {
            kept.pop();
            break;
        }
    }
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut_and_marked() {
        assert_eq!(fit("short", 8.0, 100.0), "short");
        let cut = fit("a name that is much too long", 8.0, 40.0);
        assert!(cut.ends_with('…') && width(&cut, 8.0) <= 40.0, "{cut}");
    }
}
