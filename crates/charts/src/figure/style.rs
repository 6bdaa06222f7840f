//! Colour, dashes, marker and hatch of a series: the same for a policy in all figures.
//!
//! The colours are those of Okabe and Ito, which are distinct for any colour vision; dashes, markers and hatches are redundant, for grey
//! prints. Members of one family (`slot:3`, `slot:12`) share the colour and differ in dashes, marker, hatch and tint.

use plotters::style::RGBColor;

use super::hatch::{HATCHES, Hatch};

/// The shape of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marker {
    /// A disc.
    Disc,
    /// A square.
    Square,
    /// A triangle that points up.
    Up,
    /// A diamond.
    Diamond,
    /// A triangle that points down.
    Down,
}

/// The style of a series.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SeriesStyle {
    /// Its colour.
    pub color: RGBColor,
    /// Dash and gap lengths in points; empty for a solid line.
    pub dash: &'static [f64],
    /// Its marker.
    pub marker: Marker,
    /// The hatch over its areas.
    pub hatch: Hatch,
}

impl SeriesStyle {
    /// Creates a style with only a colour.
    pub fn plain(color: RGBColor) -> SeriesStyle {
        SeriesStyle { color, dash: SOLID, marker: Marker::Square, hatch: Hatch::Plain }
    }

    /// Returns the drawn fraction of a line: 1 for a solid one.
    pub fn ink(&self) -> f64 {
        let all: f64 = self.dash.iter().sum();
        if all > 0.0 { self.dash.iter().step_by(2).sum::<f64>() / all } else { 1.0 }
    }
}

const BLUE: RGBColor = RGBColor(0, 114, 178);
const VERMILION: RGBColor = RGBColor(213, 94, 0);
const GREEN: RGBColor = RGBColor(0, 158, 115);
const ORANGE: RGBColor = RGBColor(230, 159, 0);
const SKY: RGBColor = RGBColor(86, 180, 233);
const PURPLE: RGBColor = RGBColor(204, 121, 167);
const BLACK: RGBColor = RGBColor(0, 0, 0);
const SLATE: RGBColor = RGBColor(119, 119, 119);
/// The palette's yellow, darkened: the original is invisible as a thin line on white.
const OCHRE: RGBColor = RGBColor(165, 148, 0);

/// The order of colours for names outside of the families.
const COLORS: [RGBColor; 9] = [BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, BLACK, OCHRE, SLATE];

const SOLID: &[f64] = &[];
const LONG: &[f64] = &[5.0, 1.5];
const DOTTED: &[f64] = &[1.0, 1.0];
const DASHED: &[f64] = &[2.8, 1.4];
const DASH_DOT: &[f64] = &[5.0, 1.3, 1.0, 1.3];
const DASH_DOT_DOT: &[f64] = &[5.0, 1.2, 1.0, 1.2, 1.0, 1.2];
const WIDE: &[f64] = &[8.0, 2.0];

const DASHES: [&[f64]; 7] = [SOLID, DASHED, DOTTED, DASH_DOT, LONG, DASH_DOT_DOT, WIDE];
const MARKERS: [Marker; 5] = [Marker::Disc, Marker::Square, Marker::Up, Marker::Diamond, Marker::Down];

/// A family of policies: the name before the colon, its colour, and the indices of its dashes and marker. The index of its hatch is the
/// index of the family.
const FAMILIES: [(&str, RGBColor, usize, usize); 9] = [
    ("drf", BLUE, 0, 0),
    ("slot", VERMILION, 2, 1),
    ("asset", GREEN, 3, 2),
    ("maxmin", ORANGE, 4, 3),
    ("ceei", PURPLE, 5, 4),
    ("bmf", SKY, 1, 3),
    ("fifo", BLACK, 1, 1),
    ("pnorm", OCHRE, 6, 2),
    ("quota", SLATE, 4, 4),
];

/// Returns the family of a key, as an index into [`FAMILIES`].
fn family(key: &str) -> Option<usize> {
    let stem = key.split(':').next().unwrap_or(key);
    FAMILIES.iter().position(|&(name, ..)| name == stem)
}

/// Returns the style of each key, in the given order; equal keys have equal styles.
///
/// The first member of a family has the same style in every chart. Further members, and names outside of the families (in the colours that
/// no family of this chart uses), get unused dashes and markers, in order of appearance.
pub(super) fn looks(keys: &[&str]) -> Vec<SeriesStyle> {
    let mut present: Vec<usize> = keys.iter().filter_map(|key| family(key)).collect();
    present.sort_unstable();
    present.dedup();
    let taken: Vec<RGBColor> = present.iter().map(|&at| FAMILIES[at].1).collect();
    let mut free: Vec<RGBColor> = COLORS.into_iter().filter(|color| !taken.contains(color)).collect();
    if free.is_empty() {
        free = COLORS.to_vec();
    }
    let mut dashes = NumberPool { used: present.iter().map(|&at| FAMILIES[at].2).collect(), size: DASHES.len() };
    let mut markers = NumberPool { used: present.iter().map(|&at| FAMILIES[at].3).collect(), size: MARKERS.len() };
    let mut hatches = NumberPool { used: present.clone(), size: HATCHES.len() };
    let mut members: Vec<Vec<&str>> = vec![Vec::new(); FAMILIES.len()];
    let mut others: Vec<&str> = Vec::new();
    let mut known: Vec<(&str, SeriesStyle)> = Vec::new();
    keys.iter()
        .map(|key| {
            if let Some((_, look)) = known.iter().find(|(name, _)| name == key) {
                return look.clone();
            }
            let (color, dash, marker, hatch) = match family(key) {
                Some(at) => {
                    let (_, color, dash, marker) = FAMILIES[at];
                    match nth(&mut members[at], key) {
                        0 => (color, dash, marker, at),
                        nth => (
                            tint(color, nth),
                            dashes.next_unused(dash + nth),
                            markers.next_unused(marker + nth),
                            hatches.next_unused(at + nth),
                        ),
                    }
                }
                None => {
                    let nth = nth(&mut others, key);
                    // A second pass through the colours combines them with other dashes.
                    let round = nth + nth / free.len();
                    (
                        free[nth % free.len()],
                        dashes.next_unused(round),
                        markers.next_unused(round),
                        hatches.next_unused(nth),
                    )
                }
            };
            let look = SeriesStyle { color, dash: DASHES[dash], marker: MARKERS[marker], hatch: HATCHES[hatch] };
            known.push((key, look.clone()));
            look
        })
        .collect()
}

/// The style of a line in other drawings than figures.
#[derive(Clone, Debug, PartialEq)]
pub struct LineStyle {
    /// The colour as `#rrggbb`.
    pub color: String,
    /// Dash and gap lengths in points; empty for a solid line.
    pub dash: &'static [f64],
}

/// Returns the line of each name, as in figures.
pub fn line_styles(names: &[&str]) -> Vec<LineStyle> {
    let line = |style: SeriesStyle| {
        let RGBColor(red, green, blue) = style.color;
        LineStyle { color: format!("#{red:02x}{green:02x}{blue:02x}"), dash: style.dash }
    };
    looks(names).into_iter().map(line).collect()
}

/// Returns colours for `count` adjacent filled areas; the colours suggest no order.
///
/// The palette without black is used first, then its lighter and darker tints. Text would be unreadable on black.
pub(super) fn fills(count: usize) -> Vec<SeriesStyle> {
    let colors: Vec<RGBColor> = COLORS.into_iter().filter(|color| *color != BLACK).collect();
    let look = |nth: usize| {
        let color = tint(colors[nth % colors.len()], nth / colors.len());
        SeriesStyle::plain(color)
    };
    (0..count).map(look).collect()
}

/// The set of numbers in use.
struct NumberPool {
    used: Vec<usize>,
    size: usize,
}

impl NumberPool {
    /// Returns the first unused number from `wish` on, with wrap-around; `wish` itself if all are used.
    fn next_unused(&mut self, wish: usize) -> usize {
        let free = (wish..wish + self.size).map(|at| at % self.size).find(|at| !self.used.contains(at));
        let taken = free.unwrap_or(wish % self.size);
        self.used.push(taken);
        taken
    }
}

/// Returns the index of `key` in the list; appends it if it is new.
fn nth<'a>(known: &mut Vec<&'a str>, key: &'a str) -> usize {
    known.iter().position(|name| *name == key).unwrap_or_else(|| {
        known.push(key);
        known.len() - 1
    })
}

/// Returns the `nth` variation of a family's colour, in turn the colour itself, a lighter and a darker one.
fn tint(RGBColor(red, green, blue): RGBColor, nth: usize) -> RGBColor {
    let mix = |channel: u8| {
        let channel = u32::from(channel);
        let mixed = match nth % 3 {
            0 => channel,
            1 => channel + (255 - channel) * 40 / 100,
            _ => channel * 62 / 100,
        };
        mixed as u8
    };
    RGBColor(mix(red), mix(green), mix(blue))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_looks_the_same_in_every_company() {
        let alone = looks(&["asset"]);
        let among = looks(&["cpu", "drf", "fifo", "asset", "slot:3"]);
        assert_eq!(alone[0], among[3]);
        assert_ne!(among[0].color, among[1].color, "an unknown name does not get the colour of a known one");
    }

    #[test]
    fn families_share_a_hue_but_not_the_dashes() {
        let slots = looks(&["slot:3", "slot:6", "slot:12", "slot:3"]);
        assert_eq!(slots[0], slots[3]);
        assert_ne!(slots[0].dash, slots[1].dash);
        assert_ne!(slots[1].dash, slots[2].dash);
    }

    #[test]
    fn no_two_policies_look_alike() {
        let names: Vec<&str> = FAMILIES.iter().map(|&(name, ..)| name).collect();
        let all = looks(&names);
        for (at, look) in all.iter().enumerate() {
            assert!(all[..at].iter().all(|other| other.color != look.color));
            assert!(all[..at].iter().all(|other| (other.dash, other.marker) != (look.dash, look.marker)));
            assert!(all[..at].iter().all(|other| other.hatch != look.hatch));
        }
    }

    #[test]
    fn two_dozen_areas_differ_in_colour() {
        let all = fills(24);
        assert!(all.iter().enumerate().all(|(at, look)| all[..at].iter().all(|other| other.color != look.color)));
    }

    #[test]
    fn many_unknown_names_never_run_out() {
        let names: Vec<String> = (0..40).map(|at| format!("user{at}")).collect();
        let keys: Vec<&str> = names.iter().map(String::as_str).collect();
        let all = looks(&keys);
        assert!(all[..20].iter().enumerate().all(|(at, look)| !all[..at].contains(look)));
    }
}
