//! Embeds provenance in pictures, in the way of each format: `<metadata>` of an SVG (one JSON object), one text chunk per key in a PNG,
//! the document information of a PDF (ISO 32000-1, 14.3.3).

use std::fmt::Write;

use plimsoll_base::escape::{json, printable};
use plimsoll_results::provenance::{Provenance, VERSION};

/// Inserts the provenance after the first tag of an SVG. Other text is unchanged.
pub fn svg(svg: &str, about: &Provenance) -> String {
    let start = svg.find("<svg").and_then(|from| svg[from..].find('>').map(|to| from + to + 1));
    let Some(at) = start else { return svg.to_owned() };
    let facts: serde_json::Map<String, serde_json::Value> =
        about.short().into_iter().map(|(key, value)| (key, value.into())).collect();
    // Only the sequence that would end the CDATA section is escaped.
    let json = json(&serde_json::Value::Object(facts)).replace("]]>", "]]\\u003e");
    format!("{}\n<metadata><![CDATA[{json}]]></metadata>{}", &svg[..at], &svg[at..])
}

/// Returns the text chunks of a PNG.
pub fn texts(about: &Provenance) -> Vec<(String, String)> {
    about.short().into_iter().map(|(key, value)| (key, printable(&value))).collect()
}

/// The information that svg2pdf writes about a document: its last object, before the cross-reference table.
const PDF_INFO: &[u8] = b"/Producer (svg2pdf)";

/// Inserts the provenance into a PDF's document information. A PDF without it is unchanged.
pub fn pdf(pdf: Vec<u8>, about: &Provenance) -> Vec<u8> {
    let find = |what: &[u8]| pdf.windows(what.len()).rposition(|window| window == what);
    let (Some(info), Some(table), Some(start)) = (find(PDF_INFO), find(b"\nxref\n"), find(b"startxref\n")) else {
        return pdf;
    };
    let mut facts = format!("/Producer (Plimsoll {VERSION} with svg2pdf)");
    for (key, value) in about.short() {
        write!(facts, "\n  /{key} {}", pdf_text(&value)).expect("writing to a string succeeds");
    }
    let moved = table + 1 + facts.len() - PDF_INFO.len();
    let (behind, end) = (info + PDF_INFO.len(), format!("startxref\n{moved}\n%%EOF"));
    [&pdf[..info], facts.as_bytes(), &pdf[behind..start], end.as_bytes()].concat()
}

/// Encodes a text string of a PDF: ASCII unchanged, other text as UTF-16.
fn pdf_text(text: &str) -> String {
    let mut out = String::new();
    if text.is_ascii() {
        for c in text.chars() {
            match c {
                '(' | ')' | '\\' => out.extend(['\\', c]),
                '\n' => out += "\\n",
                c => out.push(c),
            }
        }
        return format!("({out})");
    }
    let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
    units.for_each(|unit| write!(out, "{unit:04X}").expect("writing to a string succeeds"));
    format!("<{out}>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_charts::raster;

    const PAGE: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"60\" height=\"20\">\n<rect width=\"9\" height=\"9\"/></svg>\n";

    fn about() -> Provenance {
        Provenance::of_plan("name = \"a <b> & (c) ]]>\"\nquestion = \"wie schön?\"\n")
    }

    #[test]
    fn an_svg_says_it_in_json_and_looks_the_same() {
        let stamped = svg(PAGE, &about());
        let (before, rest) = stamped.split_once("<metadata>").expect("metadata");
        let (json, after) = rest.split_once("</metadata>").expect("metadata");
        assert_eq!(format!("{}{after}", before.trim_end()), PAGE);
        assert!(json.contains("plimsoll.version") && json.contains("<b> & (c) ]]\\u003e"), "{json}");
        let json = json.strip_prefix("<![CDATA[").and_then(|json| json.strip_suffix("]]>")).expect("CDATA");
        let facts: serde_json::Value = serde_json::from_str(json).expect("JSON");
        assert_eq!(facts["plimsoll.plan"], about().pairs().last().expect("a plan").1);
        let drawn = |svg: &str| raster::png(svg, 1.0, Vec::new()).expect("an SVG");
        assert_eq!(drawn(&stamped), drawn(PAGE));
        assert_eq!(svg("none", &about()), "none");
    }

    #[test]
    fn a_png_has_a_text_a_key() {
        let (about, said) = (about(), "plimsoll.version");
        let png = raster::png(PAGE, 1.0, texts(&about)).expect("an SVG");
        let text = String::from_utf8_lossy(&png);
        assert!(text.contains(&format!("iTXt{said}\0")) && text.contains("wie schön?"));
    }

    #[test]
    fn a_pdf_has_it_in_its_document_information_and_its_table_is_found() {
        let stamped = pdf(raster::pdf(PAGE).expect("an SVG"), &about());
        let text = String::from_utf8_lossy(&stamped).into_owned();
        assert!(text.contains(&format!("/plimsoll.version ({VERSION})")));
        assert!(text.contains("/plimsoll.plan <FEFF006E0061006D0065"), "UTF-16, for the ö");
        let (_, start) = text.rsplit_once("startxref\n").expect("a pointer");
        let at: usize = start.lines().next().and_then(|line| line.parse().ok()).expect("a number");
        assert!(stamped[at..].starts_with(b"xref\n"));
        assert_eq!(pdf_text("a (b)\\\n"), "(a \\(b\\)\\\\\\n)");
        assert_eq!(pdf(b"none".to_vec(), &about()), b"none");
    }
}
