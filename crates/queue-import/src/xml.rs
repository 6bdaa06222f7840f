//! Parses XML into a tree of elements with names, attributes, text and locations.
//!
//! The parser is `roxmltree`. Namespaces, comments and processing instructions are dropped. The nesting depth is checked before parsing.

use roxmltree::{Document, NodeType};

use plimsoll_base::error::Result;
use plimsoll_base::tree::Place;

/// Maximum nesting of elements.
const MOST_DEEP: usize = 80;

/// An element of an XML document.
#[derive(Clone, Debug)]
pub struct Element {
    /// The name, without a namespace.
    pub name: String,
    /// The location of the opening tag.
    pub place: Place,
    /// The attributes.
    pub attributes: Vec<(String, String)>,
    /// The trimmed text, without the text of child elements.
    pub text: String,
    /// The child elements.
    pub children: Vec<Element>,
}

impl Element {
    /// Returns the text of the first child with this name.
    pub fn text_of(&self, name: &str) -> Option<&str> {
        self.children.iter().find(|child| child.name == name).map(|child| child.text.as_str())
    }

    /// Returns the value of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Parses a text; `whole` is the location of the whole text. Errors: the parser's message with its location; elements nested too deeply.
pub fn read(whole: &Place) -> Result<Element> {
    let text = whole.text();
    // The parser is recursive, so the depth is limited before parsing.
    if let Some(at) = deeper(text) {
        return Err(whole
            .at(at..at + 1)
            .wrong("", format!("nested too deep; expected at most {MOST_DEEP} nested elements")));
    }
    let document = Document::parse(text).map_err(|error| {
        let at = offset(text, error.pos().row, error.pos().col);
        let message = error.to_string();
        // The message repeats the location, which is shown with the line.
        let message = message.rsplit_once(" at ").map_or(message.as_str(), |(message, _)| message);
        whole.at(at..at).wrong("", message)
    })?;
    Ok(element(document.root_element(), whole))
}

/// Returns the offset of the first tag that is nested too deeply. In malformed XML the offset may be anywhere after the first error.
fn deeper(text: &str) -> Option<usize> {
    let (mut at, mut deep) = (0, 0usize);
    let behind = |from: usize, end: &str| text[from..].find(end).map_or(text.len(), |found| from + found + end.len());
    while let Some(found) = text[at..].find('<') {
        let start = at + found;
        let rest = &text[start..];
        let closed = [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>"), ("<!", ">")];
        if let Some((begin, end)) = closed.iter().find(|(begin, _)| rest.starts_with(begin)) {
            at = behind(start + begin.len(), end);
        } else if rest.starts_with("</") {
            deep = deep.saturating_sub(1);
            at = behind(start, ">");
        } else {
            at = end_of_tag(text, start);
            if !text[start..at].ends_with("/>") {
                deep += 1;
            }
            if deep > MOST_DEEP {
                return Some(start);
            }
        }
    }
    None
}

/// Returns the end of a tag. Attribute values may contain `>`.
fn end_of_tag(text: &str, start: usize) -> usize {
    let mut quote = None;
    for (at, c) in text[start..].char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '>') => return start + at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the byte offset of a row and a column, both counted from 1.
fn offset(text: &str, row: u32, column: u32) -> usize {
    let [row, column] = [row, column].map(|number| (number as usize).saturating_sub(1));
    let start: usize = text.split_inclusive('\n').take(row).map(str::len).sum();
    let line = text[start..].lines().next().unwrap_or_default();
    start + line.char_indices().nth(column).map_or(line.len(), |(at, _)| at)
}

fn element(node: roxmltree::Node, whole: &Place) -> Element {
    let range = node.range();
    // The range covers only the first tag, not the element.
    let tag = whole.text()[range.clone()].find('>').map_or(range.end, |end| range.start + end + 1);
    let place = whole.at(range.start..tag);
    let texts = node.children().filter(|child| child.node_type() == NodeType::Text);
    let text: String = texts.filter_map(|child| child.text()).collect();
    let attributes = node.attributes().map(|known| (known.name().to_owned(), known.value().to_owned())).collect();
    let elements = node.children().filter(roxmltree::Node::is_element);
    let children = elements.map(|child| element(child, whole)).collect();
    Element { name: node.tag_name().name().to_owned(), place, attributes, text: text.trim().to_owned(), children }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_have_places() {
        let text = "<?xml version=\"1.0\"?>\n<a>\n  <!-- é -->\n  <b c=\"1\"> é <d/> f </b>\n</a>\n";
        let root = read(&Place::whole_text("t.xml", text)).expect("XML");
        let b = &root.children[0];
        assert_eq!((b.text.as_str(), b.attribute("c"), b.children.len()), ("é  f", Some("1"), 1));
        assert!(b.place.wrong("", "no").to_string().starts_with("t.xml: line 4, column 3: no"));
        assert_eq!((root.text_of("b"), root.text_of("d")), (Some("é  f"), None));
    }

    #[test]
    fn wrong_texts_have_their_places() {
        let wrong = |text: &str| read(&Place::whole_text("t.xml", text)).expect_err("no XML").to_string();
        assert!(wrong("<a>\n<b></c>\n</a>").starts_with("t.xml: line 2, column 4: expected 'b' tag, not 'c'\n"));
        assert!(wrong("<a>&x;</a>").starts_with("t.xml: line 1"));
        assert!(wrong("").starts_with("t.xml: line 1, column 1: "));
        assert!(wrong(&"<a b='>'>".repeat(100_000)).contains("nested too deep"));
        let deep = format!("{}{}", "<a>".repeat(50_000), "</a>".repeat(50_000));
        assert!(wrong(&deep).contains("nested too deep"), "{}", &wrong(&deep)[..200]);
        let flat = "<b c=\"/>\"/><!-- <a> --><?x <a>?><![CDATA[<a>]]><a></a>".repeat(1000);
        assert_eq!(read(&Place::whole_text("t.xml", format!("<a>{flat}</a>"))).expect("XML").children.len(), 2000);
        let entity = "<!DOCTYPE a [<!ENTITY x \"y\">]>\n<a>&x;</a>";
        assert!(wrong(entity).contains("DTD"), "{}", wrong(entity));
    }
}
