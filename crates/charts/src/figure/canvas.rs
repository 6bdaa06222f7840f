//! The sheet for all drawing: layers of SVG from plotters, wrapped into groups for features that plotters lacks (dashes, clipping, names).
//! All lengths are points of the final size.

use std::fmt::Write;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::escape::{escape, printable};
use crate::font;

/// Units of the drawing per point of the final size.
const SCALE: f64 = 10.0;

/// A coordinate far outside of every sheet; it keeps the integers of plotters from overflowing.
const FAR: f64 = 1e6;

/// The colour of text and axes.
pub(super) const INK: RGBColor = RGBColor(0, 0, 0);

/// The colour of notes and secondary lines.
pub(super) const GREY: RGBColor = RGBColor(96, 96, 96);

/// The colour of the mesh.
pub(super) const LIGHT: RGBColor = RGBColor(224, 224, 224);

/// The alignment of text relative to its anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    /// Starts at the anchor.
    Start,
    /// Centred on it.
    Middle,
    /// Ends at it.
    End,
}

/// The direction of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextDirection {
    /// From left to right.
    Level,
    /// From bottom to top.
    Up,
}

/// The attributes of a layer's SVG group.
#[derive(Clone, Debug, Default)]
pub(super) struct LayerGroup<'a> {
    /// The class, which a style sheet can refer to.
    pub class: &'a str,
    /// The key of the series, if the layer is one.
    pub key: Option<&'a str>,
    /// A tooltip.
    pub tip: Option<&'a str>,
    /// Dash and gap lengths; empty for a solid line.
    pub dash: &'a [f64],
    /// The clip of [`Canvas::clip`] that applies, if any.
    pub clip: Option<usize>,
}

impl<'a> LayerGroup<'a> {
    /// Creates a group with only a class.
    pub fn class(class: &'a str) -> LayerGroup<'a> {
        LayerGroup { class, ..LayerGroup::default() }
    }
}

/// An SVG under construction.
pub(super) struct Canvas {
    width: f64,
    height: f64,
    name: String,
    body: String,
    clips: usize,
}

impl Canvas {
    /// Creates an empty white sheet. Screen readers announce it as `name`.
    pub fn new(width: f64, height: f64, name: &str) -> Canvas {
        let mut canvas = Canvas { width, height, name: name.to_owned(), body: String::new(), clips: 0 };
        canvas.layer(LayerGroup::class("paper"), |pen| pen.rectangle((0.0, 0.0), (width, height), &WHITE));
        canvas
    }

    /// Adds a rectangle that layers can be clipped to, and returns its index.
    pub fn clip(&mut self, (left, top): (f64, f64), (right, bottom): (f64, f64)) -> usize {
        let id = self.clips;
        self.clips += 1;
        let (x, y) = (unit(left), unit(top));
        let (width, height) = (unit(right) - x, unit(bottom) - y);
        writeln!(
            self.body,
            "<clipPath id=\"clip{id}\"><rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/></clipPath>"
        )
        .expect("writing to a string succeeds");
        id
    }

    /// Draws a layer above all earlier ones.
    pub fn layer(&mut self, group: LayerGroup, draw: impl FnOnce(&mut Pen)) {
        let mut text = String::new();
        {
            let size = (unit(self.width) as u32, unit(self.height) as u32);
            let mut pen = Pen { backend: SVGBackend::with_string(&mut text, size) };
            draw(&mut pen);
            pen.backend.present().expect(NEVER_FAILS);
        }
        // Only the shapes of the document that plotters writes are used.
        let shapes = text.split_once(">\n").map_or("", |(_, rest)| rest);
        let shapes = shapes.strip_suffix("</svg>\n").unwrap_or(shapes);
        if shapes.is_empty() {
            return;
        }
        let mut open = format!("<g class=\"{}\"", escape(group.class));
        if let Some(key) = group.key {
            open += &format!(" data-key=\"{}\"", escape(key));
        }
        if !group.dash.is_empty() {
            let lengths: Vec<String> = group.dash.iter().map(|&length| unit(length).to_string()).collect();
            open += &format!(" stroke-dasharray=\"{}\"", lengths.join(" "));
        }
        if let Some(clip) = group.clip {
            open += &format!(" clip-path=\"url(#clip{clip})\"");
        }
        open += " stroke-linejoin=\"round\">\n";
        if let Some(tip) = group.tip {
            open += &format!("<title>{}</title>\n", escape(tip));
        }
        self.body += &open;
        self.body += shapes;
        self.body += "</g>\n";
    }

    /// Returns the complete document.
    pub fn finish(self) -> String {
        let (width, height) = (unit(self.width), unit(self.height));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {width} {height}\" \
             role=\"img\" aria-label=\"{}\">\n{}</svg>\n",
            f64::from(width) / SCALE,
            f64::from(height) / SCALE,
            escape(&self.name),
            self.body
        )
    }
}

const NEVER_FAILS: &str = "drawing into a string succeeds";

/// Draws the shapes of one layer.
pub(super) struct Pen<'a> {
    backend: SVGBackend<'a>,
}

impl Pen<'_> {
    /// Draws a filled rectangle.
    pub fn rectangle(&mut self, from: (f64, f64), to: (f64, f64), fill: &impl Color) {
        self.backend.draw_rect(place(from), place(to), &fill.to_rgba().filled(), true).expect(NEVER_FAILS);
    }

    /// Draws a line through the points; fewer than two points draw nothing.
    pub fn path(&mut self, points: &[(f64, f64)], color: &impl Color, width: f64) {
        let mut places: Vec<(i32, i32)> = points.iter().map(|&point| place(point)).collect();
        places.dedup();
        if places.len() == 1 && points.len() > 1 {
            // A line shorter than a unit is drawn as a dot of its width.
            places.push((places[0].0 + 1, places[0].1));
        }
        if places.len() > 1 {
            self.backend.draw_path(places, &color.stroke_width(unit(width) as u32)).expect(NEVER_FAILS);
        }
    }

    /// Draws a filled polygon.
    pub fn polygon(&mut self, points: &[(f64, f64)], fill: &impl Color) {
        let places: Vec<(i32, i32)> = points.iter().map(|&point| place(point)).collect();
        self.backend.fill_polygon(places, &fill.to_rgba().filled()).expect(NEVER_FAILS);
    }

    /// Draws a filled circle.
    pub fn disc(&mut self, centre: (f64, f64), radius: f64, fill: &impl Color) {
        let radius = unit(radius).max(1) as u32;
        self.backend.draw_circle(place(centre), radius, &fill.to_rgba().filled(), true).expect(NEVER_FAILS);
    }

    /// Draws the outline of a circle.
    pub fn ring(&mut self, centre: (f64, f64), radius: f64, color: &impl Color, width: f64) {
        let radius = unit(radius).max(1) as u32;
        let style = color.stroke_width(unit(width) as u32);
        self.backend.draw_circle(place(centre), radius, &style, false).expect(NEVER_FAILS);
    }

    /// Draws a line of text; its baseline passes through the anchor.
    pub fn text(
        &mut self,
        text: &str,
        size: f64,
        color: RGBColor,
        anchor: (f64, f64),
        side: Anchor,
        run: TextDirection,
    ) {
        if text.is_empty() {
            return;
        }
        let h_pos = match side {
            Anchor::Start => HPos::Left,
            Anchor::Middle => HPos::Center,
            Anchor::End => HPos::Right,
        };
        // The backend divides sizes by 1.24 and moves a top anchor down by 0.76 em; this function compensates both.
        let lift = 0.76 * size;
        let (anchor, transform) = match run {
            TextDirection::Level => ((anchor.0, anchor.1 - lift), FontTransform::None),
            TextDirection::Up => ((anchor.0 - lift, anchor.1), FontTransform::Rotate270),
        };
        let style = TextStyle::from((font::FAMILY, size * SCALE * 1.24).into_font().transform(transform))
            .pos(Pos::new(h_pos, VPos::Top))
            .color(&color);
        self.backend.draw_text(&printable(text), &style, place(anchor)).expect(NEVER_FAILS);
    }
}

/// Converts a length to units of the drawing.
fn unit(points: f64) -> i32 {
    (points.clamp(-FAR, FAR) * SCALE).round() as i32
}

fn place((x, y): (f64, f64)) -> (i32, i32) {
    (unit(x), unit(y))
}
