//! Plots as pixels: the letters of an SVG become outlines, then resvg fills shapes.
//!
//! resvg sets letters too, but the crates that shape text triple what has to be compiled for it (about 100 s of processor
//! time instead of 30). Labels are single lines from left to right, for which advances and kerning of a font are enough:
//! scripts that join or reorder their letters are not set, and characters that the font lacks show as boxes. The font comes
//! along, so that a plot is the same on every machine.

use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::roxmltree::{Document, Node};
use resvg::usvg::{Options, Tree};
use std::fmt::{Display, Write};
use std::io;
use ttf_parser::{Face, GlyphId, OutlineBuilder};

const REGULAR: &[u8] = include_bytes!("../../data/DejaVuSansCondensed.subset.ttf");
const BOLD: &[u8] = include_bytes!("../../data/DejaVuSansCondensed-Bold.subset.ttf");

/// Pixels for a unit of the drawing: sharp on dense screens and on paper.
const SCALE: f32 = 2.0;

/// Attributes that say how letters are set; all others go on to their outlines.
const SETTING: [&str; 6] = ["x", "y", "text-anchor", "font-family", "font-size", "font-weight"];

/// The bytes of a PNG file that shows a drawing on white.
pub(super) fn png(svg: &str) -> io::Result<Vec<u8>> {
    pixels(svg)?.encode_png().map_err(failed)
}

fn failed(why: impl Display) -> io::Error {
    io::Error::other(format!("a plot cannot be drawn as PNG: {why}"))
}

fn pixels(svg: &str) -> io::Result<Pixmap> {
    let tree = Tree::from_str(&outlined(svg)?, &Options::default()).map_err(failed)?;
    let [width, height] = [tree.size().width(), tree.size().height()].map(|length| (SCALE * length).ceil() as u32);
    let too_large = || failed(format!("there is no room for {width} x {height} pixels"));
    let mut pixels = Pixmap::new(width, height).ok_or_else(too_large)?;
    pixels.fill(Color::WHITE);
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    Ok(pixels)
}

/// The drawing with a path in place of every text.
fn outlined(svg: &str) -> io::Result<String> {
    let document = Document::parse(svg).map_err(failed)?;
    let (regular, bold) = (Face::parse(REGULAR, 0).map_err(failed)?, Face::parse(BOLD, 0).map_err(failed)?);
    let mut outlined = String::with_capacity(4 * svg.len());
    let mut copied = 0;
    for text in document.descendants().filter(|node| node.has_tag_name("text")) {
        let range = text.range();
        outlined.push_str(&svg[copied..range.start]);
        copied = range.end;
        let is_bold = inherited(text, "font-weight").is_some_and(|weight| matches!(weight, "600" | "700" | "bold"));
        let path = outline(text, if is_bold { &bold } else { &regular });
        let _ = write!(outlined, "<path d=\"{path}\"");
        for attribute in text.attributes().filter(|attribute| !SETTING.contains(&attribute.name())) {
            let _ = write!(outlined, " {}", &svg[attribute.range()]);
        }
        outlined.push_str("/>");
    }
    outlined.push_str(&svg[copied..]);
    Ok(outlined)
}

/// An attribute of an element, or else of the nearest one around it.
fn inherited<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    node.ancestors().find_map(|node| node.attribute(name))
}

/// The outlines of a text's letters, as the data of a path.
fn outline(text: Node<'_, '_>, face: &Face<'_>) -> String {
    let number = |value: Option<&str>, otherwise: f32| value.and_then(|v| v.parse().ok()).unwrap_or(otherwise);
    // As SVG has it: spaces, tabs and line ends in a row are one space.
    let words: Vec<&str> = text.text().unwrap_or("").split_whitespace().collect();
    let mut letters: Vec<(GlyphId, f32)> = Vec::new();
    let mut width = 0.0;
    for letter in words.join(" ").chars() {
        let glyph = face.glyph_index(letter).unwrap_or_default();
        if let Some(&(before, _)) = letters.last() {
            width += kerning(face, before, glyph);
        }
        letters.push((glyph, width));
        width += f32::from(face.glyph_hor_advance(glyph).unwrap_or(0));
    }
    let scale = number(inherited(text, "font-size"), 13.0) / f32::from(face.units_per_em());
    let before = match inherited(text, "text-anchor") {
        Some("middle") => 0.5 * width,
        Some("end") => width,
        _ => 0.0,
    };
    let (x, y) = (number(text.attribute("x"), 0.0), number(text.attribute("y"), 0.0));
    let mut pen = Pen { path: String::new(), x, y, scale };
    for (glyph, at) in letters {
        pen.x = x + scale * (at - before);
        face.outline_glyph(glyph, &mut pen);
    }
    pen.path
}

fn kerning(face: &Face<'_>, left: GlyphId, right: GlyphId) -> f32 {
    let tables = face.tables().kern.iter().flat_map(|kern| kern.subtables);
    let mut pairs = tables.filter(|table| table.horizontal).filter_map(|table| table.glyphs_kerning(left, right));
    pairs.next().map_or(0.0, f32::from)
}

/// Draws the outline of a letter whose baseline begins at a place.
struct Pen {
    path: String,
    x: f32,
    y: f32,
    scale: f32,
}

impl Pen {
    fn draw<const N: usize>(&mut self, command: char, points: [(f32, f32); N]) {
        self.path.push(command);
        for (x, y) in points {
            // Ordinates of fonts grow upwards.
            let _ = write!(self.path, "{:.2} {:.2} ", self.x + self.scale * x, self.y - self.scale * y);
        }
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        self.draw('M', [(x, y)]);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.draw('L', [(x, y)]);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.draw('Q', [(x1, y1), (x, y)]);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.draw('C', [(x1, y1), (x2, y2), (x, y)]);
    }

    fn close(&mut self) {
        self.path.push('Z');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::quiver::{Arrow, quiver};
    use crate::plot::{Axis, PALETTE, Plot, Point, Series, Style};
    use std::ops::Range;

    fn drawing(inside: &str) -> Pixmap {
        pixels(&format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 100" font-size="20">{inside}</svg>"#
        ))
        .unwrap()
    }

    /// Pixels that are not white, in units of the drawing.
    fn ink(pixels: &Pixmap, x: Range<u32>, y: Range<u32>) -> usize {
        let scale = SCALE as u32;
        let rows = scale * y.start..scale * y.end;
        let columns = || scale * x.start..scale * x.end;
        rows.flat_map(|row| columns().map(move |column| (column, row)))
            .filter(|&(column, row)| {
                let pixel = pixels.pixel(column, row).unwrap();
                assert_eq!(pixel.alpha(), 255, "nothing shines through");
                [pixel.red(), pixel.green(), pixel.blue()] != [255; 3]
            })
            .count()
    }

    fn colour(pixels: &Pixmap, x: u32, y: u32) -> String {
        let pixel = pixels.pixel(SCALE as u32 * x, SCALE as u32 * y).unwrap();
        format!("#{:02x}{:02x}{:02x}", pixel.red(), pixel.green(), pixel.blue())
    }

    #[test]
    fn shapes_are_where_they_should_be_and_nowhere_else() {
        let rectangle = drawing(r##"<rect x="20" y="10" width="50" height="30" fill="#0072b2"/>"##);
        assert_eq!((rectangle.width(), rectangle.height()), (400, 200));
        assert_eq!(ink(&rectangle, 0..200, 0..100), 4 * 50 * 30);
        assert_eq!(ink(&rectangle, 20..70, 10..40), 4 * 50 * 30);
        assert_eq!(colour(&rectangle, 45, 25), "#0072b2");
    }

    #[test]
    fn the_file_says_what_it_is_and_how_large() {
        let file = png(&plot(Style::Marks).to_svg()).unwrap();
        // Signature, then the header: 13 bytes that begin with width and height (W3C, Portable Network Graphics, 5.2 and 11.2.1).
        assert_eq!(file[..8], [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n']);
        assert_eq!(file[8..16], *b"\0\0\0\x0dIHDR");
        assert_eq!(file[16..24], [1520u32.to_be_bytes(), 880u32.to_be_bytes()].concat());
        let read = Pixmap::decode_png(&file).unwrap();
        assert_eq!(read.data(), pixels(&plot(Style::Marks).to_svg()).unwrap().data());
    }

    #[test]
    fn letters_stand_on_their_line_on_the_side_that_the_anchor_says() {
        let at = |anchor: &str| drawing(&format!(r#"<text x="100" y="50" text-anchor="{anchor}">Height</text>"#));
        let [start, middle, end] = ["start", "middle", "end"].map(at);
        let all = ink(&start, 0..200, 0..100);
        // Six letters of 20 units: strokes of about two units, up to 15 units high.
        assert!((4 * 60..4 * 600).contains(&all), "{all}");
        assert_eq!(ink(&start, 100..200, 0..100), all);
        assert_eq!(ink(&end, 0..100, 0..100), ink(&end, 0..200, 0..100));
        let (left, right) = (ink(&middle, 0..100, 0..100), ink(&middle, 100..200, 0..100));
        assert!(left > all / 4 && right > all / 4, "{left} and {right} of {all}");
        // "g" alone reaches below the line; nothing is higher than the letters are large.
        assert_eq!(ink(&start, 0..200, 0..30) + ink(&start, 0..200, 56..100), 0);
        assert!(ink(&start, 0..200, 51..56) > 0 && ink(&drawing(r#"<text y="50">Hit</text>"#), 0..200, 51..100) == 0);
    }

    #[test]
    fn letters_turn_and_take_colour_and_weight() {
        let turned = drawing(r##"<text x="100" y="90" fill="#d55e00" transform="rotate(-90 100 90)">IIIIII</text>"##);
        // Read upwards: left of the line, above its beginning.
        let all = ink(&turned, 0..200, 0..100);
        assert!(all > 0 && ink(&turned, 84..101, 0..91) == all, "{all}");
        let strokes = turned.pixels().iter().filter(|p| [p.red(), p.green(), p.blue()] == [0xd5, 0x5e, 0x00]);
        assert!(strokes.count() > all / 4);
        let weight = |weight: u32| {
            ink(&drawing(&format!(r#"<text x="10" y="50" font-weight="{weight}">nnnn</text>"#)), 0..200, 0..100)
        };
        assert!(weight(600) as f64 > 1.2 * weight(400) as f64);
    }

    #[test]
    fn size_and_weight_come_from_the_element_around() {
        let inside = drawing(r#"<g font-size="40" font-weight="600"><text x="9" y="60">a &lt; b</text></g>"#);
        let beside = drawing(r#"<text x="9" y="60" font-size="40" font-weight="600"> a  &lt;&#10;b </text>"#);
        assert!(inside == beside && ink(&inside, 0..200, 0..100) > 0);
    }

    /// All that plots say: what stands in the sources, and what names of columns and classes may need.
    #[test]
    fn no_letter_of_a_plot_is_missing() {
        let printable = (' '..='~').collect::<String>();
        let words =
            "²³¹±×·éüöäßñçøåşłžőαβγδεζηθικλμνξοπρστυφχψωΓΔΘΛΞΠΣΦΨΩбджиЯѐ−–—…“”‘’•√∑∏∞≤≥≠≈∈‖ℓµ⟨⟩ᵀ⁰⁴⁻ⁿ₀₁₂ₙ→←↑↓∂∇∫€°";
        for (face, name) in [(REGULAR, "regular"), (BOLD, "bold")] {
            let face = Face::parse(face, 0).unwrap();
            for letter in printable.chars().chain(words.chars()) {
                let glyph = face.glyph_index(letter).unwrap_or_else(|| panic!("{letter:?} is not in the {name} font"));
                let mut pen = Pen { path: String::new(), x: 0.0, y: 0.0, scale: 1.0 };
                assert!(face.outline_glyph(glyph, &mut pen).is_some() || letter == ' ', "{letter:?} is empty");
                assert!(face.glyph_hor_advance(glyph).unwrap() > 0, "{letter:?} has no width");
            }
        }
        // A box for what there is not, rather than nothing.
        assert!(ink(&drawing(r#"<text x="10" y="50">木</text>"#), 0..200, 0..100) > 0);
    }

    fn plot(style: Style) -> Plot {
        let mut series = Series::new("Structured, complex to real", style, 0);
        for k in 1..=9 {
            let (x, y) = (10f64.powi(k), 2.0 / f64::from(k));
            series.push(Point::new(x, y).with_range(0.8 * y, 1.2 * y), "tip");
        }
        let subtitle = "What all of it means: ".repeat(9);
        let (x, y) = (Axis::log("number of features"), Axis::linear("error ± deviation").in_percent());
        Plot { title: "Errors & their bars".into(), subtitle, x, y, series: vec![series] }
    }

    /// Marks, lines, bands, and the words in every margin: each takes ink, and none is cut at the border.
    #[test]
    fn every_part_of_a_plot_is_drawn() {
        for style in [Style::Marks, Style::Scatter, Style::Line, Style::Dashed, Style::Band] {
            let plot = pixels(&plot(style).to_svg()).unwrap();
            let least = |what: &str, x: Range<u32>, y: Range<u32>, pixels: usize| {
                let found = ink(&plot, x, y);
                assert!(found >= pixels, "{style:?}: {found} pixels of {what}");
            };
            // A letter of 13 units has more than 40 pixels.
            least("title", 16..200, 12..34, 18 * 40);
            least("subtitle", 16..740, 36..54, 90 * 40);
            least("label on the left", 6..24, 100..400, 15 * 40);
            least("numbers on the left", 24..73, 80..390, 4 * 3 * 40);
            least("numbers below", 80..500, 388..410, 9 * 40);
            least("label below", 200..400, 412..436, 15 * 40);
            least("name on the right", 530..758, 100..390, 24 * 60);
            // A line two units wide over 400 units is 3200 pixels; dashes are five eighths of it, nine marks 9 · 4 · 50.
            let found = ink(&plot, 85..500, 100..380);
            assert!(found > 1800, "{style:?}: {found} pixels of a series");
            for (x, y) in [(0..760, 0..8), (0..760, 436..440), (0..4, 0..440), (757..760, 0..440)] {
                assert_eq!(ink(&plot, x.clone(), y.clone()), 0, "{style:?}: cut at {x:?}, {y:?}");
            }
        }
    }

    #[test]
    fn bands_are_shaded_and_lines_have_their_colour() {
        let count = |style: Style, wanted: [u8; 3]| {
            let plot = pixels(&plot(style).to_svg()).unwrap();
            plot.pixels().iter().filter(|p| [p.red(), p.green(), p.blue()] == wanted).count()
        };
        assert_eq!(PALETTE[0], "#0072b2");
        // 18 % of the colour over white: 255 − 0.18 · (255 − c).
        let shade = [0x00, 0x72, 0xb2].map(|c: u8| (255.0 - 0.18 * (255.0 - f64::from(c))).round() as u8);
        let near =
            |style: Style| (-1..=1).map(|d: i16| count(style, shade.map(|c| (i16::from(c) + d) as u8))).sum::<usize>();
        assert!(near(Style::Band) > 10_000 && near(Style::Line) < 1000);
        assert!(count(Style::Line, [0x00, 0x72, 0xb2]) > 1000);
    }

    #[test]
    fn tiles_have_no_seams() {
        let mut tiles = plot(Style::Tiles);
        (tiles.x, tiles.y) = (Axis::linear("x"), Axis::linear("y"));
        for n in 20..40 {
            tiles.series[0].points =
                (0..n * n).map(|k| (Point::new(f64::from(k % n), f64::from(k / n)), String::new())).collect();
            let drawn = pixels(&tiles.to_svg()).unwrap();
            let is_dark = |&(x, y): &(u32, u32)| {
                drawn.pixel(x, y).is_some_and(|p| [p.red(), p.green(), p.blue()] == [0x44, 0x01, 0x54])
            };
            // Left of the name, whose 27 letters begin behind 500 units.
            let dark: Vec<_> = (0..880).flat_map(|y| (0..1000).map(move |x| (x, y))).filter(is_dark).collect();
            let side =
                |f: fn(&(u32, u32)) -> u32| dark.iter().map(f).max().unwrap() - dark.iter().map(f).min().unwrap() + 1;
            let (width, height) = (side(|at| at.0), side(|at| at.1));
            assert!(width > 2 * 350 && height > 2 * 200, "{width} x {height}");
            assert_eq!(dark.len() as u32, width * height, "{n} x {n} tiles");
        }
    }

    #[test]
    fn named_places_and_arrows_are_drawn() {
        let mut named = plot(Style::Marks);
        let names = (0..9).map(|k| format!("a long name, no. {k}")).collect();
        named.x = Axis::named("classes", names);
        named.series[0].points.iter_mut().enumerate().for_each(|(k, point)| point.0.x = k as f64);
        let drawn = pixels(&named.to_svg()).unwrap();
        // Slanted names, cut to a dozen letters and blanks, below the axis, which lies 106 units above the border.
        assert!(ink(&drawn, 40..540, 340..420) > 9 * 8 * 40);

        let arrows: Vec<Arrow> =
            (0..25).map(|k| Arrow { at: [f64::from(k % 5), f64::from(k / 5)], by: [1.0, 0.5] }).collect();
        let drawn = pixels(&quiver(["east", "north"], &[("true", arrows.clone()), ("fitted", arrows)])).unwrap();
        let blue = drawn.pixels().iter().filter(|p| p.blue() > 150 && p.red() < 100).count();
        let red = drawn.pixels().iter().filter(|p| p.red() > 200 && p.blue() < 100).count();
        // Arrows as long as points are apart, about 60 units of one unit in width.
        assert!(blue > 25 * 60 && red > 25 * 60, "{blue} and {red}");
        // "fitted" and "true", the names of axes and numbers.
        assert!(ink(&drawn, 0..drawn.width() / 2, 8..30) > 10 * 40 && ink(&drawn, 0..50, 40..300) > 10 * 40);
    }
}
