//! Line and scatter plots as SVG.
//!
//! Written here rather than with a plotting crate, because every mark must carry its own text: the same SVG stands
//! alone in a file (browsers show a mark's `<title>` on hover) and inline in the report, whose script and style sheet
//! find marks and series by class. Colors are presentation attributes, so that viewers without CSS show them and the
//! report's dark mode can override them.
//! PNG files (`png`) are made from the same SVG.

pub mod bars;
mod kind;
#[cfg(feature = "png")]
mod png;

pub mod quiver;

pub use kind::Kind;

use crate::table::escape;
use bochner::words;
use std::fmt::Write;

/// Okabe and Ito's palette (2008) without its yellow, which vanishes on white: told apart with any color vision.
const PALETTE: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#4d4d4d"];
/// From low to high, after viridis (Smith and van der Walt 2015): order shows without color vision too.
const SHADES: [&str; 8] = ["#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#a0da39", "#fde725"];
const INK: &str = "#1a1a1a";
const SOFT: &str = "#5c5c5c";
const GRID: &str = "#e4e4e4";
const FONT: &str = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    Linear,
    /// Equal ratios at equal distances; values that are not positive are left out.
    Log,
}

#[derive(Debug, Clone)]
pub struct Axis {
    label: String,
    scale: Scale,
    ticks: Option<Vec<f64>>,
    percent: bool,
    /// What stands at 0, 1, … instead of numbers.
    names: Vec<String>,
    /// Values that the quantity cannot leave, and the axis neither.
    bounds: (f64, f64),
}

/// Room below the axis for names that are written upwards, about twelve letters long.
const SLANTED: f64 = 48.0;
/// Mean width of a character of a sans-serif font, as a fraction of its size; generous, so that labels fit.
const ADVANCE: f64 = 0.56;
/// The same for the bold names of series.
const BOLD_ADVANCE: f64 = 0.65;
/// Letters of a name that is written upwards.
const LONGEST_NAME: usize = 12;

impl Axis {
    pub fn linear(label: &str) -> Self {
        let bounds = (f64::NEG_INFINITY, f64::INFINITY);
        Axis { label: label.into(), scale: Scale::Linear, ticks: None, percent: false, names: Vec::new(), bounds }
    }

    /// Names at 0, 1, …
    pub fn named(label: &str, names: Vec<String>) -> Self {
        let ticks = Some((0..names.len()).map(|i| i as f64).collect());
        Axis { ticks, names, ..Axis::linear(label) }
    }

    pub fn log(label: &str) -> Self {
        Axis { scale: Scale::Log, ..Axis::linear(label) }
    }

    /// Ticks at these values instead of round ones.
    #[must_use]
    pub fn with_ticks(mut self, ticks: Vec<f64>) -> Self {
        self.ticks = Some(ticks);
        self
    }

    /// Ticks at these numbers of something.
    #[must_use]
    pub fn with_counts(self, counts: &[usize]) -> Self {
        self.with_ticks(counts.iter().map(|&n| n as f64).collect())
    }

    /// Tick labels as percentages of one.
    #[must_use]
    pub fn in_percent(mut self) -> Self {
        self.percent = true;
        self
    }

    /// For a quantity that no margin may take out of these bounds: a loss below 0, a share above 1.
    #[must_use]
    pub fn within(mut self, low: f64, high: f64) -> Self {
        self.bounds = (low, high);
        self
    }

    /// Whether names are too long to stand side by side on so much paper.
    fn is_crowded(&self, width: f64) -> bool {
        let longest = self.names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        (longest as f64 * 13.0 * ADVANCE + 6.0) * self.names.len() as f64 > width
    }

    fn text(&self, value: f64) -> String {
        if let Some(name) = self.names.get(value as usize) {
            return name.clone();
        }
        let (value, unit) = if self.percent { (100.0 * value, " %") } else { (value, "") };
        if value.abs() >= 1e6 || (value != 0.0 && value.abs() < 1e-4) {
            return format!("{value:e}{unit}");
        }
        // Twelve digits hide the rounding of 3 * 0.1 and show every tick that is meant to be short.
        let short = format!("{:.12}", value);
        let short = short.trim_end_matches('0').trim_end_matches('.');
        match short.split_once('.') {
            None => format!("{}{}{unit}", if value < 0.0 { "−" } else { "" }, words::count(value.abs() as usize)),
            Some(_) => format!("{}{unit}", short.replace('-', "−")),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Point {
    pub x: f64,
    pub y: f64,
    /// Ends of the error bar.
    pub range: Option<(f64, f64)>,
}

impl Point {
    pub fn new(x: f64, y: f64) -> Self {
        Point { x, y, range: None }
    }

    #[must_use]
    pub fn with_range(mut self, low: f64, high: f64) -> Self {
        self.range = Some((low, high));
        self
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Marks joined by a line.
    Marks,
    /// Marks alone.
    Scatter,
    /// A line without marks.
    Line,
    /// A dashed line without marks: a prediction, below what is measured.
    Dashed,
    /// The same above everything: what many marks would hide.
    Reference,
    /// A line within the shaded range of its points.
    Band,
    /// Tiles of a map, one series for each range of values; colors are shades from low to high.
    Tiles,
}

impl Style {
    fn has_marks(self) -> bool {
        matches!(self, Style::Marks | Style::Scatter)
    }

    /// What is drawn first lies below.
    fn layer(self) -> u8 {
        match self {
            Style::Band | Style::Tiles => 0,
            Style::Dashed => 1,
            Style::Line | Style::Marks | Style::Scatter => 2,
            Style::Reference => 3,
        }
    }

    fn dash(self) -> &'static str {
        match self {
            Style::Dashed => " stroke-dasharray=\"5 3\"",
            // The marks below still answer to the pointer.
            Style::Reference => " stroke-dasharray=\"5 3\" pointer-events=\"none\"",
            _ => "",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Series {
    name: String,
    style: Style,
    color: usize,
    /// Whether the name is written at the right end.
    labelled: bool,
    points: Vec<(Point, String)>,
}

impl Series {
    /// A series in color number `color` (and with the mark shape of that number).
    pub fn new(name: impl Into<String>, style: Style, color: usize) -> Self {
        Series { name: name.into(), style, color, labelled: true, points: Vec::new() }
    }

    /// Without its own label: a companion of the series of the same color.
    #[must_use]
    pub fn unlabelled(mut self) -> Self {
        self.labelled = false;
        self
    }

    /// A dashed line at one height, beside which others are held.
    pub fn level(name: &str, color: usize, places: &[usize], height: f64, tip: &str) -> Self {
        let points = places.iter().map(|&x| (Point::new(x as f64, height), tip.to_owned())).collect();
        Series { points, ..Series::new(name, Style::Dashed, color) }
    }

    fn paint(&self) -> &'static str {
        match self.style {
            Style::Tiles => SHADES[self.color % SHADES.len()],
            _ => PALETTE[self.color % PALETTE.len()],
        }
    }

    /// Adds a point; `tip` is what hovering shows.
    pub fn push(&mut self, point: Point, tip: impl Into<String>) {
        self.points.push((point, tip.into()));
    }
}

/// Series in one frame.
///
/// ```
/// use bochner_report::plot::{Axis, Plot, Point, Style};
/// let mut plot = Plot::new("Squares", "One mark per number.", Axis::linear("x"), Axis::log("x²"));
/// (1..4).for_each(|x| plot.line("squares", Style::Marks).push(Point::new(f64::from(x), f64::from(x * x)), "a square"));
/// assert!(plot.to_svg().contains(">squares</text>"));
/// ```
#[derive(Debug, Clone)]
pub struct Plot {
    pub title: String,
    /// What marks, lines and bars mean.
    pub subtitle: String,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
}

/// Where values go on paper.
struct Mapping {
    scale: Scale,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Mapping {
    fn new(axis: &Axis, values: impl Iterator<Item = f64> + Clone, from: f64, to: f64) -> Self {
        let usable = values.filter(|v| v.is_finite() && (axis.scale == Scale::Linear || *v > 0.0));
        let low = usable.clone().fold(f64::INFINITY, f64::min);
        let high = usable.fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = if low <= high { (low, high) } else { (1.0, 2.0) };
        let (mut low, mut high) = match axis.scale {
            Scale::Linear => (low, high),
            Scale::Log => (low.log10(), high.log10()),
        };
        if !axis.names.is_empty() {
            // Every name has its place, also where nothing stands, and half of one around it.
            let (low, high) = (low.min(0.0) - 0.5, high.max(axis.names.len() as f64 - 1.0) + 0.5);
            return Mapping { scale: axis.scale, low, high, from, to };
        }
        let seen = (low, high);
        if high - low < 1e-9 * high.abs().max(1.0) {
            (low, high) = (low - 0.5, high + 0.5);
        }
        let margin = 0.05 * (high - low);
        let (mut least, mut most) = (low - margin, high + margin);
        if axis.scale == Scale::Linear {
            // Values outside of the bounds are shown all the same.
            (least, most) = (least.max(axis.bounds.0.min(seen.0)), most.min(axis.bounds.1.max(seen.1)));
        }
        Mapping { scale: axis.scale, low: least, high: most, from, to }
    }

    fn position(&self, value: f64) -> Option<f64> {
        let value = match self.scale {
            Scale::Linear => value,
            Scale::Log => value.log10(),
        };
        value.is_finite().then(|| self.from + (value - self.low) / (self.high - self.low) * (self.to - self.from))
    }

    fn ticks(&self, axis: &Axis) -> Vec<f64> {
        let inside = |v: &f64| {
            let position = if self.scale == Scale::Log { v.log10() } else { *v };
            position >= self.low - 1e-9 && position <= self.high + 1e-9
        };
        if let Some(ticks) = &axis.ticks {
            return ticks.iter().copied().filter(inside).collect();
        }
        let round = |low: f64, high: f64| {
            let step = (high - low) / 5.0;
            let power = 10f64.powf(step.log10().floor());
            let step = [1.0, 2.0, 5.0, 10.0].iter().map(|m| m * power).find(|s| *s >= step).unwrap_or(10.0 * power);
            let first = (low / step).ceil() as i64;
            (0..12).map(move |i| (first + i) as f64 * step).filter(inside).collect::<Vec<_>>()
        };
        match self.scale {
            Scale::Linear => round(self.low, self.high),
            // Within a third of a decade there may be no round multiple of a power of ten.
            Scale::Log if self.high - self.low < 0.35 => round(10f64.powf(self.low), 10f64.powf(self.high)),
            Scale::Log => {
                let decades = self.low.floor() as i32..=self.high.ceil() as i32;
                let multiples: &[f64] = match self.high - self.low {
                    span if span < 1.2 => &[1.0, 2.0, 3.0, 5.0],
                    span if span < 2.5 => &[1.0, 2.0, 5.0],
                    _ => &[1.0],
                };
                // At most about eight labels.
                let every = 1 + ((self.high - self.low) / 8.0) as i32;
                let decades = decades.filter(|e| e % every == 0);
                let all = decades.flat_map(|e| multiples.iter().map(move |m| m * 10f64.powi(e)));
                all.filter(inside).collect()
            }
        }
    }
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 80.0;
const BOTTOM: f64 = 58.0;

/// Where a plot's axes lie on paper.
struct Frame {
    x: Mapping,
    y: Mapping,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Frame {
    fn place(&self, point: &Point) -> Option<(f64, f64)> {
        self.x.position(point.x).zip(self.y.position(point.y))
    }
}

impl Plot {
    /// A plot without series.
    pub fn new(title: impl Into<String>, subtitle: impl Into<String>, x: Axis, y: Axis) -> Self {
        Plot { title: title.into(), subtitle: subtitle.into(), x, y, series: Vec::new() }
    }

    /// The series of that name and style: the one there is, or a new one in the color of that name or in the next color.
    pub fn line(&mut self, name: &str, style: Style) -> &mut Series {
        let found = self.series.iter().position(|s| s.name == name && s.style == style);
        let at = found.unwrap_or_else(|| {
            let next = self.series.iter().map(|s| s.color + 1).max().unwrap_or(0);
            let color = self.series.iter().find(|s| s.name == name).map_or(next, |s| s.color);
            self.series.push(Series::new(name, style, color));
            self.series.len() - 1
        });
        &mut self.series[at]
    }

    /// The plot as a standalone SVG document, also fit to stand inside HTML.
    pub fn to_svg(&self) -> String {
        let values = |f: fn(&Point) -> [f64; 3]| {
            self.series.iter().flat_map(move |s| s.points.iter().flat_map(move |p| f(&p.0)))
        };
        let longest = self.series.iter().filter(|s| s.labelled).map(|s| s.name.chars().count()).max().unwrap_or(0);
        let right = WIDTH - 30.0 - longest as f64 * 13.0 * BOLD_ADVANCE;
        let subtitle = wrap(&self.subtitle, ((WIDTH - 32.0) / (13.0 * ADVANCE)) as usize);
        let top = 48.0 + 17.0 * subtitle.len() as f64;
        let bottom = HEIGHT - BOTTOM - if self.x.is_crowded(right - LEFT) { SLANTED } else { 0.0 };
        // A bar that comes near 0 would take all of a log axis: it is cut at the frame instead.
        let ends: fn(&Point) -> [f64; 3] = match self.y.scale {
            Scale::Linear => |p| p.range.map_or([p.y; 3], |(low, high)| [low, p.y, high]),
            Scale::Log => |p| p.range.map_or([p.y; 3], |(low, high)| [low.max(0.4 * p.y), p.y, high]),
        };
        let x = Mapping::new(&self.x, values(|p| [p.x; 3]), LEFT, right);
        let y = Mapping::new(&self.y, values(ends), bottom, top);
        let frame = Frame { x, y, right, top, bottom };

        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
             height=\"{HEIGHT}\" role=\"img\" class=\"plot\" font-family=\"{FONT}\" font-size=\"13\">\n\
             <desc>{}. {}</desc>\n<rect class=\"paper\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n",
            escape(&self.title),
            escape(&self.subtitle)
        );
        text(&mut svg, (16.0, 28.0), "start", "ink", " font-size=\"17\" font-weight=\"600\"", &self.title);
        for (i, line) in subtitle.iter().enumerate() {
            text(&mut svg, (16.0, 48.0 + 17.0 * i as f64), "start", "soft", "", line);
        }
        self.draw_axes(&mut svg, &frame);

        let mut order: Vec<_> = self.series.iter().collect();
        order.sort_by_key(|series| series.style.layer());
        let tiles = || self.series.iter().filter(|s| s.style == Style::Tiles).flat_map(|s| &s.points);
        let tile = (spacing(tiles().map(|p| p.0.x), &frame.x), spacing(tiles().map(|p| p.0.y), &frame.y));
        for series in order {
            match series.style {
                Style::Tiles => draw_tiles(&mut svg, series, &frame, tile),
                _ => draw_series(&mut svg, series, &frame),
            }
        }
        self.draw_labels(&mut svg, &frame);
        svg.push_str("</svg>\n");
        svg
    }

    fn draw_axes(&self, svg: &mut String, &Frame { ref x, ref y, right, top, bottom }: &Frame) {
        for tick in y.ticks(&self.y) {
            let Some(at) = y.position(tick) else { continue };
            stroke(svg, "grid", [LEFT, right], [at, at], GRID);
            text(svg, (LEFT - 8.0, at + 4.5), "end", "soft", "", &self.y.text(tick));
        }
        let mut free_from = f64::NEG_INFINITY;
        let crowded = self.x.is_crowded(right - LEFT);
        let short = if crowded { words::told_apart(&self.x.names, LONGEST_NAME) } else { Vec::new() };
        for tick in x.ticks(&self.x) {
            let Some(at) = x.position(tick) else { continue };
            stroke(svg, "tick", [at, at], [bottom, bottom + 5.0], SOFT);
            let label = self.x.text(tick);
            let half = 0.5 * label.chars().count() as f64 * 13.0 * ADVANCE;
            if crowded {
                // Nearer than this, lines at this angle would touch.
                if at < free_from {
                    continue;
                }
                free_from = at + 20.0;
                let (at, down) = (at + 4.0, bottom + 18.0);
                let turned = format!(" transform=\"rotate(-35 {at:.1} {down:.1})\"");
                text(svg, (at, down), "end", "soft", &turned, short.get(tick as usize).unwrap_or(&label));
            } else if at - half >= free_from {
                text(svg, (at, bottom + 21.0), "middle", "soft", "", &label);
                free_from = at + half + 6.0;
            }
        }
        stroke(svg, "tick", [LEFT, right], [bottom, bottom], SOFT);
        text(svg, (0.5 * (LEFT + right), HEIGHT - 14.0), "middle", "ink", "", &self.x.label);
        let middle = 0.5 * (top + bottom);
        let turned = format!(" transform=\"rotate(-90 18 {middle:.1})\"");
        text(svg, (18.0, middle), "middle", "ink", &turned, &self.y.label);
    }

    /// Names at the right end of their lines, pushed apart where they would overlap.
    fn draw_labels(&self, svg: &mut String, frame: &Frame) {
        const APART: f64 = 18.0;
        let (left, top) = (frame.right + 4.0, frame.top);
        let mut labels: Vec<(f64, &Series)> = Vec::new();
        for series in self.series.iter().filter(|s| s.labelled) {
            let Some((_, last)) = series.points.iter().filter_map(|(p, _)| frame.place(p)).next_back() else {
                continue;
            };
            // Shades are listed from the highest to the lowest.
            let is_shade = series.style == Style::Tiles;
            labels.push((if is_shade { top + APART * (SHADES.len() - series.color) as f64 } else { last }, series));
        }
        labels.sort_by(|a, b| a.0.total_cmp(&b.0));
        for i in 1..labels.len() {
            labels[i].0 = labels[i].0.max(labels[i - 1].0 + APART);
        }
        let mut limit = frame.bottom;
        for label in labels.iter_mut().rev() {
            label.0 = label.0.min(limit).max(top);
            limit = label.0 - APART;
        }
        for (at, series) in labels {
            let (color, dash) = (series.paint(), series.style.dash());
            let _ = write!(svg, "<g class=\"label\" data-series=\"{}\">", escape(&series.name));
            let mut name = color;
            if series.style.has_marks() {
                mark(svg, series.color, left + 7.0, at);
            } else if series.style == Style::Tiles {
                name = INK;
                let top = at - 7.0;
                let _ =
                    write!(svg, "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"14\" height=\"14\" fill=\"{color}\"/>");
            } else {
                let right = left + 14.0;
                let _ = write!(
                    svg,
                    "<line x1=\"{left:.1}\" x2=\"{right:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"{color}\" stroke-width=\"2\"{dash}/>"
                );
            }
            painted(svg, (left + 19.0, at + 4.5), "start", "name", name, " font-weight=\"600\"", &series.name);
            svg.push_str("</g>\n");
        }
    }
}

/// The least distance on paper between different values; the whole axis where there are no two.
fn spacing(values: impl Iterator<Item = f64>, mapping: &Mapping) -> f64 {
    let mut places: Vec<f64> = values.filter_map(|v| mapping.position(v)).collect();
    places.sort_by(f64::total_cmp);
    let gaps = places.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 1e-6);
    gaps.fold((mapping.to - mapping.from).abs(), f64::min)
}

fn draw_tiles(svg: &mut String, series: &Series, frame: &Frame, (width, height): (f64, f64)) {
    // Whole pixels, and a little wider than the grid, so that no seams show.
    let crisp = "class=\"series\" shape-rendering=\"crispEdges\"";
    let _ = writeln!(svg, "<g {crisp} data-series=\"{}\">", escape(&series.name));
    let (color, wide, high) = (series.paint(), width + 0.4, height + 0.4);
    for (point, tip) in &series.points {
        let Some((x, y)) = frame.place(point).map(|(x, y)| (x - 0.5 * width, y - 0.5 * height)) else { continue };
        let tip = escape(tip);
        let _ = writeln!(
            svg,
            "<g class=\"mark\"><title>{tip}</title><rect fill=\"{color}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"{high:.1}\"/></g>"
        );
    }
    svg.push_str("</g>\n");
}

fn draw_series(svg: &mut String, series: &Series, frame: &Frame) {
    let (color, y) = (series.paint(), &frame.y);
    let _ = writeln!(svg, "<g class=\"series\" data-series=\"{}\">", escape(&series.name));
    let drawn: Vec<_> = series.points.iter().filter_map(|(p, tip)| Some((frame.place(p)?, p, tip))).collect();
    if series.style == Style::Band {
        let end = |p: &Point, high: bool| y.position(p.range.map_or(p.y, |(l, h)| if high { h } else { l }));
        let side =
            |high: bool| drawn.iter().filter_map(move |((x, _), p, _)| Some(format!("{x:.1},{:.1}", end(p, high)?)));
        let around: Vec<_> = side(true).chain(side(false).rev()).collect();
        let around = around.join(" ");
        let _ = writeln!(svg, "<polygon class=\"band\" fill=\"{color}\" fill-opacity=\"0.18\" points=\"{around}\"/>");
    }
    if series.style != Style::Scatter && drawn.len() > 1 {
        let path: Vec<_> = drawn.iter().map(|((x, y), ..)| format!("{x:.1},{y:.1}")).collect();
        let (dash, path) = (series.style.dash(), path.join(" "));
        let _ = writeln!(
            svg,
            "<polyline class=\"line\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\" stroke-linejoin=\"round\"{dash} points=\"{path}\"/>"
        );
    }
    for ((px, py), point, tip) in drawn {
        let _ = write!(svg, "<g class=\"mark\"><title>{}</title>", escape(tip));
        if let Some((low, high)) = point.range.filter(|_| series.style != Style::Band) {
            // On a log axis an interval that reaches 0 is cut at the frame.
            let low = y.position(low).unwrap_or(y.from).min(y.from);
            if let Some(high) = y.position(high) {
                let left = px - 4.0;
                let _ = write!(
                    svg,
                    "<path class=\"bar\" d=\"M{px:.1} {low:.1}V{high:.1}M{left:.1} {low:.1}h8M{left:.1} {high:.1}h8\" \
                     stroke=\"{color}\" stroke-width=\"1.5\" fill=\"none\"/>"
                );
            }
        }
        if series.style.has_marks() {
            mark(svg, series.color, px, py);
        }
        // A larger invisible target: fingers and mice need not be exact.
        let _ = writeln!(
            svg,
            "<circle class=\"target\" cx=\"{px:.1}\" cy=\"{py:.1}\" r=\"11\" fill=\"none\" pointer-events=\"all\"/></g>"
        );
    }
    svg.push_str("</g>\n");
}

/// Shapes differ as well as colors, so that a printed page without color can be read.
fn mark(svg: &mut String, number: usize, x: f64, y: f64) {
    let color = PALETTE[number % PALETTE.len()];
    let paint = format!("class=\"shape\" fill=\"{color}\" stroke=\"#ffffff\" stroke-width=\"1\"");
    let _ = match number % 5 {
        0 => write!(svg, "<circle {paint} cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\"/>"),
        1 => write!(svg, "<rect {paint} x=\"{:.1}\" y=\"{:.1}\" width=\"8.4\" height=\"8.4\"/>", x - 4.2, y - 4.2),
        2 => write!(svg, "<path {paint} d=\"M{x:.1} {:.1}l5.4 5.4l-5.4 5.4l-5.4-5.4z\"/>", y - 5.4),
        3 => write!(svg, "<path {paint} d=\"M{x:.1} {:.1}l5.2 9h-10.4z\"/>", y - 5.6),
        _ => write!(svg, "<path {paint} d=\"M{x:.1} {:.1}l5.2-9h-10.4z\"/>", y + 5.6),
    };
}

/// A straight line of a frame.
fn stroke(svg: &mut String, class: &str, [x1, x2]: [f64; 2], [y1, y2]: [f64; 2], color: &str) {
    let _ = writeln!(
        svg,
        "<line class=\"{class}\" x1=\"{x1:.1}\" x2=\"{x2:.1}\" y1=\"{y1:.1}\" y2=\"{y2:.1}\" stroke=\"{color}\"/>"
    );
}

/// Words in the color of their class, with further attributes.
fn text(svg: &mut String, place: (f64, f64), anchor: &str, class: &str, attributes: &str, content: &str) {
    painted(svg, place, anchor, class, if class == "ink" { INK } else { SOFT }, attributes, content);
}

fn painted(svg: &mut String, at: (f64, f64), anchor: &str, class: &str, color: &str, more: &str, content: &str) {
    let ((x, y), content) = (at, escape(content));
    let _ = writeln!(
        svg,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{color}\"{more}>{content}</text>"
    );
}

/// Lines of at most `width` characters, broken at spaces.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(points: &[(f64, f64)]) -> Plot {
        let mut series = Series::new("a < b", Style::Marks, 0);
        for &(x, y) in points {
            series.push(Point::new(x, y).with_range(y - 1.0, y + 1.0), format!("{x} & {y}"));
        }
        let (x, y) = (Axis::log("x"), Axis::log("y"));
        Plot { title: "T".into(), subtitle: "S".into(), x, y, series: vec![series] }
    }

    fn marks(svg: &str) -> usize {
        svg.matches("class=\"mark\"").count()
    }

    #[test]
    fn points_that_a_log_axis_cannot_show_are_left_out() {
        let svg = plot(&[(1.0, 1.0), (10.0, 0.0), (-5.0, 3.0), (f64::NAN, 2.0), (100.0, 5.0)]).to_svg();
        assert_eq!(marks(&svg), 2);
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn a_plot_of_nothing_or_of_one_point_is_still_a_plot() {
        for points in [&[][..], &[(3.0, 4.0)]] {
            let svg = plot(points).to_svg();
            assert_eq!(marks(&svg), points.len());
            assert!(!svg.contains("NaN") && svg.ends_with("</svg>\n"));
        }
    }

    #[test]
    fn names_and_tips_are_escaped() {
        let svg = plot(&[(1.0, 2.0)]).to_svg();
        assert!(svg.contains("a &lt; b") && svg.contains("<title>1 &amp; 2</title>"));
        assert!(!svg.contains("a < b"));
    }

    #[test]
    fn linear_ticks_are_round_and_lie_inside() {
        let axis = Axis::linear("");
        let mapping = Mapping::new(&axis, [0.13, 0.87].into_iter(), 0.0, 1.0);
        assert_eq!(
            mapping.ticks(&axis).iter().map(|t| axis.text(*t)).collect::<Vec<_>>(),
            ["0.2", "0.4", "0.6", "0.8"]
        );
        assert_eq!(axis.text(-1500.0), "−1,500");
        let axis = Axis::log("");
        let mapping = Mapping::new(&axis, [0.066, 0.098].into_iter(), 0.0, 1.0);
        assert_eq!(mapping.ticks(&axis).iter().map(|t| axis.text(*t)).collect::<Vec<_>>(), ["0.07", "0.08", "0.09"]);
        assert_eq!(Axis::linear("").in_percent().text(0.955), "95.5 %");
    }

    #[test]
    fn named_places_and_bands_are_drawn() {
        let mut plot = plot(&[(0.0, 1.0), (1.0, 4.0)]);
        plot.x = Axis::named("sets", vec!["first".into(), "second".into()]);
        let marked = plot.to_svg();
        assert!(marked.contains(">first</text>") && marked.contains(">second</text>"));
        let mut long = plot.clone();
        long.x = Axis::named("sets", (0..12).map(|i| format!("a long name {i}")).collect());
        assert!(!marked.contains("rotate(-35") && long.to_svg().contains("rotate(-35"));
        plot.series[0].style = Style::Band;
        plot.y = Axis::linear("y");
        let band = plot.to_svg();
        // Up along one side of the range and back along the other.
        let corners =
            band.split("<polygon").nth(1).unwrap().split("points=\"").nth(1).unwrap().split('"').next().unwrap();
        assert_eq!(corners.split(' ').count(), 4);
        assert!(marked.contains("class=\"shape\"") && !band.contains("class=\"shape\""));
    }

    #[test]
    fn an_axis_does_not_leave_the_values_that_there_can_be() {
        let axis = Axis::linear("loss").in_percent().within(0.0, 1.0);
        let ends = |values: [f64; 2]| {
            let mapping = Mapping::new(&axis, values.into_iter(), 0.0, 1.0);
            (mapping.low, mapping.high)
        };
        assert_eq!(ends([0.01, 1.0]), (0.0, 1.0));
        assert_eq!(ends([0.0, 0.0]), (0.0, 0.55));
        assert!(ends([0.4, 0.6]).0 < 0.4 && ends([0.4, 0.6]).0 > 0.3);
        assert!(ends([-0.2, 1.2]).0 <= -0.2 && ends([-0.2, 1.2]).1 >= 1.2, "what is there is shown");
        let free = Mapping::new(&Axis::linear(""), [0.0, 1.0].into_iter(), 0.0, 1.0);
        assert!(free.low < 0.0 && free.high > 1.0);
    }

    #[test]
    fn every_name_has_its_place_and_very_many_do_not_touch() {
        let mut plot = plot(&[(0.0, 1.0)]);
        plot.x = Axis::named("classes", vec!["no".into(), "yes".into()]);
        let svg = plot.to_svg();
        assert!(svg.contains(">no</text>") && svg.contains(">yes</text>"), "the class without a mark too");
        plot.x = Axis::named("classes", (0..1000).map(|i| format!("a class called {i}")).collect());
        let svg = plot.to_svg();
        let names: Vec<_> = svg.lines().filter(|line| line.contains("rotate(-35")).collect();
        assert!((10..40).contains(&names.len()), "{}", names.len());
        assert!(names[1].contains("…"), "{}", names[1]);
    }

    #[test]
    fn long_names_of_places_stay_different() {
        let names = (1..=12).map(|i| format!("a very long name {i} of a species of aliens")).collect();
        let mut plot = plot(&[(0.0, 1.0)]);
        plot.x = Axis::named("classes", names);
        let svg = plot.to_svg();
        assert!(svg.contains(">…12 of a sp…<") && !svg.contains("iens<"), "{svg}");
    }

    #[test]
    fn a_reference_lies_above_the_marks_and_a_prediction_below() {
        for (style, above) in [(Style::Reference, true), (Style::Dashed, false)] {
            let mut plot = plot(&[(1.0, 2.0), (2.0, 3.0)]);
            let mut line = Series::new("line", style, 6).unlabelled();
            line.push(Point::new(1.0, 1.0), "");
            line.push(Point::new(2.0, 2.0), "");
            plot.series.insert(0, line);
            let svg = plot.to_svg();
            assert_eq!(svg.find("stroke-dasharray") > svg.find("class=\"shape\""), above);
        }
    }

    #[test]
    fn tiles_fill_their_grid() {
        let mut plot = plot(&[]);
        (plot.x, plot.y) = (Axis::linear("x"), Axis::linear("y"));
        plot.series = (0..2)
            .map(|shade| {
                let mut series = Series::new(format!("level {shade}"), Style::Tiles, shade);
                (0..5).for_each(|k| series.push(Point::new(f64::from(k), shade as f64), "tip"));
                series
            })
            .collect();
        let svg = plot.to_svg();
        assert_eq!(svg.matches("class=\"mark\"").count(), 10);
        let tile = svg.split("<title>tip</title><rect").nth(1).unwrap();
        let width: f64 = tile.split("width=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
        let x = Mapping::new(&plot.x, [0.0, 4.0].into_iter(), LEFT, WIDTH - 30.0 - 7.0 * 13.0 * BOLD_ADVANCE);
        let apart = x.position(1.0).unwrap() - x.position(0.0).unwrap();
        assert!((width - apart - 0.4).abs() < 0.1, "{width} for places {apart} apart");
    }

    #[test]
    fn labels_do_not_overlap() {
        let mut plot = plot(&[]);
        plot.series = (0..6)
            .map(|i| {
                let mut series = Series::new(format!("series {i}"), Style::Marks, i);
                series.push(Point::new(1.0, 1.0), "");
                series.push(Point::new(2.0, 2.0 + 1e-3 * i as f64), "");
                series
            })
            .collect();
        let svg = plot.to_svg();
        let mut heights: Vec<f64> = svg
            .lines()
            .filter(|l| l.contains("class=\"name\""))
            .map(|l| l.split(" y=\"").last().unwrap().split('"').next().unwrap().parse().unwrap())
            .collect();
        heights.sort_by(f64::total_cmp);
        assert_eq!(heights.len(), 6);
        assert!(heights.windows(2).all(|w| w[1] - w[0] >= 17.9), "{heights:?}");
    }
}
