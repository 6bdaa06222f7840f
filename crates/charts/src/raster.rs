//! Images of figures: converts SVG to PNG, or to PDF with vector lines and text.
//!
//! The only font is the shipped one, so the bytes are the same on every machine.

use std::sync::{Arc, LazyLock};

use resvg::tiny_skia::{Pixmap, PremultipliedColorU8, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};

use crate::font;
use plimsoll_base::error::{Error, Result};

static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut fonts = Database::new();
    fonts.load_font_data(font::SANS.to_vec());
    fonts.set_sans_serif_family(font::SANS_NAME);
    fonts.set_serif_family(font::SANS_NAME);
    fonts.set_monospace_family(font::SANS_NAME);
    Arc::new(fonts)
});

/// Maximum number of pixels of an image on a side.
const SIDE_MAX: f32 = 20_000.0;

/// Draws an SVG at `scale` pixels for each of its units (points, for our figures): 4 gives 288 dots per inch. `texts` are key-value pairs,
/// each stored as a text chunk of the image.
///
/// Errors: [`Error::Output`] if the text is no SVG, or the image would be empty or larger than 20,000 pixels a side.
pub fn png(svg: &str, scale: f32, texts: Vec<(String, String)>) -> Result<Vec<u8>> {
    let wrong = |problem: String| Error::output("the PNG image", problem);
    let failed = |error: png::EncodingError| wrong(error.to_string());
    let tree = parse(svg).map_err(|error| wrong(error.to_string()))?;
    let (width, height) = ((tree.size().width() * scale).ceil(), (tree.size().height() * scale).ceil());
    let fits = |side: f32| (1.0..=SIDE_MAX).contains(&side);
    if !fits(width) || !fits(height) {
        return Err(wrong(format!("{width} by {height} pixels; expected 1 to {SIDE_MAX} per side")));
    }
    let mut image = Pixmap::new(width as u32, height as u32)
        .ok_or_else(|| wrong(format!("no memory for {width} by {height} pixels")))?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut image.as_mut());
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, image.width(), image.height());
    encoder.set_color(png::ColorType::Rgba);
    for (key, value) in texts {
        encoder.add_itxt_chunk(key, value).map_err(failed)?;
    }
    let pixel = |pixel: &PremultipliedColorU8| {
        let color = pixel.demultiply();
        [color.red(), color.green(), color.blue(), color.alpha()]
    };
    let pixels: Vec<u8> = image.pixels().iter().flat_map(pixel).collect();
    encoder.write_header().and_then(|mut writer| writer.write_image_data(&pixels)).map_err(failed)?;
    Ok(bytes)
}

/// Converts an SVG to a PDF of one page, with a point for each of its units, with the font embedded and text that can be selected.
///
/// Errors: [`Error::Output`] if the text is no SVG.
pub fn pdf(svg: &str) -> Result<Vec<u8>> {
    let wrong = |problem: String| Error::output("the PDF", problem);
    let tree = parse(svg).map_err(|error| wrong(error.to_string()))?;
    let page = svg2pdf::PageOptions { dpi: 72.0 };
    let pdf = svg2pdf::to_pdf(&tree, svg2pdf::ConversionOptions::default(), page);
    pdf.map(ordered).map_err(|error| wrong(error.to_string()))
}

/// Makes the bytes of a document deterministic: svg2pdf writes the entries of its lists of resources (`/xo1 10 0 R`) in the order of a
/// hash map. Sorting the lines of each list does not move the bytes after it.
fn ordered(pdf: Vec<u8>) -> Vec<u8> {
    let is_entry = |line: &[u8]| {
        let Some(entry) = std::str::from_utf8(line).ok().and_then(|line| line.trim_start().strip_prefix('/')) else {
            return false;
        };
        let mut words = entry.split(' ');
        let name = words.next().unwrap_or_default().trim_start_matches(|c: char| c.is_ascii_lowercase());
        let number = |word: Option<&str>| word.is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
        !name.is_empty() && number(Some(name)) && number(words.next()) && words.eq(["0", "R"])
    };
    let mut lines: Vec<&[u8]> = pdf.split(|byte| *byte == b'\n').collect();
    lines.chunk_by_mut(|a, b| is_entry(a) && is_entry(b)).for_each(<[&[u8]]>::sort_unstable);
    lines.join(&b'\n')
}

fn parse(svg: &str) -> std::result::Result<Tree, resvg::usvg::Error> {
    let options = Options { font_family: font::SANS_NAME.to_owned(), fontdb: Arc::clone(&FONTS), ..Options::default() };
    Tree::from_str(svg, &options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(body: &str) -> String {
        format!("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"60\" height=\"20\">{body}</svg>")
    }

    fn dark_pixels(svg: &str) -> usize {
        drawn(svg, 2.0).pixels().iter().filter(|pixel| pixel.alpha() > 128).count()
    }

    #[test]
    fn text_does_not_vanish() {
        for family in [font::FAMILY, "sans-serif", "No Such Font"] {
            let text = format!("<text x=\"2\" y=\"15\" font-family=\"{family}\" font-size=\"12\">Share µ≤∞</text>");
            assert!(dark_pixels(&page(&text)) > 150, "{family}");
        }
        assert_eq!(dark_pixels(&page("")), 0);
    }

    #[test]
    fn bytes_are_a_png_and_repeat() {
        let svg = page("<rect width=\"30\" height=\"10\"/>");
        let image = png(&svg, 1.5, Vec::new()).expect("a valid SVG");
        assert_eq!(&image[..8], b"\x89PNG\r\n\x1a\n");
        assert_eq!(image, png(&svg, 1.5, Vec::new()).expect("a valid SVG"));
        assert_eq!(image, drawn(&svg, 1.5).encode_png().expect("pixels"));
    }

    fn drawn(svg: &str, scale: f32) -> Pixmap {
        Pixmap::decode_png(&png(svg, scale, Vec::new()).expect("a valid SVG")).expect("a valid PNG")
    }

    #[test]
    fn texts_stand_in_an_image_that_shows_the_same() {
        let (svg, texts) =
            (page("<rect width=\"30\" height=\"10\" opacity=\"0.3\"/>"), [("plan", "wie schön?"), ("b", "")]);
        let texts = texts.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let image = png(&svg, 1.5, texts.to_vec()).expect("a valid SVG");
        let reader = png::Decoder::new(std::io::Cursor::new(&image)).read_info().expect("a valid PNG");
        let chunk = |chunk: &png::text_metadata::ITXtChunk| (chunk.keyword.clone(), chunk.get_text().expect("UTF-8"));
        assert_eq!(reader.info().utf8_text.iter().map(chunk).collect::<Vec<_>>(), texts);
        assert_eq!(Pixmap::decode_png(&image).expect("a valid PNG").take(), drawn(&svg, 1.5).take());
        assert!(png(&svg, 1.5, vec![("k".repeat(80), String::new())]).is_err(), "a key that no PNG may have");
    }

    #[test]
    fn a_pdf_has_the_size_and_the_font_and_repeats() {
        let svg = page("<text x=\"2\" y=\"15\" font-family=\"sans-serif\" font-size=\"12\">Share</text>");
        let pdf_bytes = pdf(&svg).expect("a valid SVG");
        let text = String::from_utf8_lossy(&pdf_bytes);
        for part in ["%PDF-1", "/MediaBox [0 0 60 20]", "/FontFile2", "LiberationSans", "/ToUnicode"] {
            assert!(text.contains(part), "{part} is missing");
        }
        assert_eq!(pdf_bytes, pdf(&svg).expect("a valid SVG"));
        assert!(pdf("<svg").unwrap_err().to_string().contains("PDF"));
    }

    #[test]
    fn lists_of_resources_are_sorted_and_nothing_else_moves() {
        let text =
            b"<<\n  /xo10 4 0 R\n  /xo2 9 0 R\n>>\n/Parent 2 0 R\n/Contents 1 0 R\n/gs1 3 0 R\n/gs0 5 0 R\n\xff/a\n";
        let sorted =
            b"<<\n  /xo10 4 0 R\n  /xo2 9 0 R\n>>\n/Parent 2 0 R\n/Contents 1 0 R\n/gs0 5 0 R\n/gs1 3 0 R\n\xff/a\n";
        assert_eq!(ordered(text.to_vec()), sorted);
        // Translucent groups create lists of many entries.
        let group = |at: u32| format!("<g opacity=\"0.{at}\"><rect width=\"{at}\" height=\"9\"/></g>");
        let svg = page(&(1..9).map(group).collect::<String>());
        let first = pdf(&svg).expect("a valid SVG");
        assert!((0..20).all(|_| pdf(&svg).expect("a valid SVG") == first));
    }

    #[test]
    fn what_is_no_image_is_an_error() {
        assert!(png("<svg", 1.0, Vec::new()).unwrap_err().to_string().contains("PNG"));
        assert!(png(&page(""), 0.0, Vec::new()).is_err());
        assert!(png(&page(""), 1e6, Vec::new()).is_err());
        assert!(png(&page(""), f32::NAN, Vec::new()).is_err());
    }

    #[test]
    fn the_width_table_is_the_one_of_the_font() {
        for text in ["Utilisation over time (h)", "drf 0123456789", "slot:12 WMil|", "~`{}@%"] {
            let svg = page(&format!("<text font-size=\"100\" font-family=\"sans-serif\">|{text}|</text>"));
            let tree = parse(&svg).expect("a valid SVG");
            let drawn = f64::from(tree.root().abs_bounding_box().width());
            // The side bearings of the two `|` are not part of the drawn box.
            let table = font::width(&format!("|{text}|"), 100.0);
            assert!((table - drawn).abs() < 25.0, "{text}: {table} against {drawn}");
        }
    }
}
