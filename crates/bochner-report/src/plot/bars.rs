//! Counts as horizontal bars of several colors.

use super::{FONT, PALETTE, text};
use crate::table::escape;
use bochner::words;
use std::fmt::Write;

/// A bar: its name, and how long its pieces are, one for every kind.
#[derive(Debug, Clone)]
pub struct Bar {
    pub name: String,
    pub counts: Vec<usize>,
}

const WIDTH: f64 = 760.0;
const LEFT: f64 = 190.0;
const TOP: f64 = 96.0;
/// From one bar to the next, and how thick they are.
const STEP: f64 = 26.0;
const THICK: f64 = 18.0;

/// Bars below each other, each as long as its counts together. `kinds` name the pieces and number
/// their colors, in the order in which bars have them.
///
/// ```
/// use bochner_report::plot::bars::{Bar, bars};
/// let bar = Bar { name: "first".into(), counts: vec![3, 0, 1] };
/// let svg = bars("Verdicts", "Numbers.", &[("good", 0), ("bad", 1), ("unknown", 6)], &[bar]);
/// assert!(svg.contains("first: 3 of 4 good"));
/// ```
pub fn bars(title: &str, subtitle: &str, kinds: &[(&str, usize)], all: &[Bar]) -> String {
    let height = TOP + STEP * all.len() as f64 + 12.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         role=\"img\" class=\"plot\" font-family=\"{FONT}\" font-size=\"13\">\n<desc>{}. {}</desc>\n\
         <rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n",
        escape(title),
        escape(subtitle)
    );
    text(&mut svg, (16.0, 28.0), "start", "ink", " font-size=\"17\" font-weight=\"600\"", title);
    text(&mut svg, (16.0, 48.0), "start", "soft", "", subtitle);
    let piece = |svg: &mut String, color: usize, (x, y): (f64, f64), (across, up): (f64, f64), tip: &str| {
        let color = PALETTE[color % PALETTE.len()];
        let _ = writeln!(
            svg,
            "<g class=\"mark\"><title>{}</title><rect class=\"shape\" fill=\"{color}\" stroke=\"#ffffff\" \
             stroke-width=\"1\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{across:.1}\" height=\"{up:.1}\"/></g>",
            escape(tip)
        );
    };
    let mut x = 16.0;
    for (name, color) in kinds {
        piece(&mut svg, *color, (x, 63.0), (12.0, 12.0), name);
        text(&mut svg, (x + 17.0, 74.0), "start", "ink", "", name);
        x += 40.0 + 7.4 * name.chars().count() as f64;
    }
    let sum = |bar: &Bar| bar.counts.iter().sum::<usize>();
    let most = all.iter().map(sum).max().unwrap_or(0).max(1) as f64;
    for (place, bar) in all.iter().enumerate() {
        let y = TOP + STEP * place as f64;
        text(&mut svg, (LEFT - 10.0, y + 14.0), "end", "ink", "", &bar.name);
        let mut x = LEFT;
        for (kind, &count) in bar.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let across = (WIDTH - LEFT - 60.0) * count as f64 / most;
            let (name, color) = kinds.get(kind).copied().unwrap_or_default();
            let tip = format!("{}: {} of {} {name}", bar.name, words::count(count), words::count(sum(bar)));
            piece(&mut svg, color, (x, y), (across, THICK), &tip);
            x += across;
        }
        text(&mut svg, (x + 8.0, y + 14.0), "start", "soft", "", &words::count(sum(bar)));
    }
    svg.push_str("</svg>");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(svg: &str, name: &str) -> Vec<f64> {
        let after = svg.split("<g class=\"mark\"").skip(1);
        after
            .map(|piece| {
                piece.split(&format!(" {name}=\"")).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
            })
            .collect()
    }

    #[test]
    fn pieces_are_as_long_as_their_counts_and_touch() {
        let bar = |name: &str, counts: &[usize]| Bar { name: name.into(), counts: counts.to_vec() };
        let svg = bars("T", "S", &[("a", 0), ("b", 1)], &[bar("one", &[3, 1]), bar("two", &[0, 2])]);
        // The first two pieces are the legend's.
        let (x, across) = (&numbers(&svg, "x")[2..], &numbers(&svg, "width")[2..]);
        assert_eq!(across.len(), 3);
        assert!((across[0] - 3.0 * across[1]).abs() < 0.2 && (across[2] - 2.0 * across[1]).abs() < 0.2);
        assert!((x[0] + across[0] - x[1]).abs() < 0.15 && x[0] == x[2]);
        assert!(x[1] + across[1] < WIDTH);
    }

    #[test]
    fn bars_of_nothing_are_still_drawn_and_names_are_escaped() {
        assert!(bars("T", "S", &[], &[]).ends_with("</svg>"));
        let svg = bars("T", "S", &[("a", 0)], &[Bar { name: "a < b".into(), counts: vec![0] }]);
        assert!(svg.contains("a &lt; b") && !svg.contains("NaN"));
    }
}
