//! Plane vector fields as arrows.

use super::{Axis, FONT, GRID, Mapping, PALETTE, text};
use bochner::words;
use std::fmt::Write;

/// An arrow at a point of the plane.
#[derive(Debug, Clone, Copy)]
pub struct Arrow {
    pub at: [f64; 2],
    pub by: [f64; 2],
}

const SIDE: f64 = 300.0;
const TOP: f64 = 38.0;
/// Room for the numbers and the name of the axis on the left, and of the axis below.
const LEFT: f64 = 64.0;
const BELOW: f64 = 56.0;

/// Fields side by side, such as the true one, the fitted one and the difference: one scale for places, one for lengths.
/// `axes` name the coordinates of places.
///
/// The longest arrow is as long as points are apart, and frames are as wide as all arrows need. Arrows that are not finite are left out.
pub fn quiver(axes: [&str; 2], panels: &[(&str, Vec<Arrow>)]) -> String {
    const GAP: f64 = 24.0;
    // Least distance of arrows from the frame.
    const MARGIN: f64 = 8.0;
    let finite = |arrow: &&Arrow| arrow.at.iter().chain(&arrow.by).all(|v| v.is_finite());
    let all = || panels.iter().flat_map(|(_, arrows)| arrows.iter().filter(finite));
    let range = |axis: usize| {
        let (low, high) = all().map(|a| a.at[axis]).fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
        if low < high {
            (low, high)
        } else {
            (if low == f64::MAX { 0.0 } else { low } - 0.5, if high == f64::MIN { 1.0 } else { high } + 0.5)
        }
    };
    let ranges = [range(0), range(1)];
    // One unit is as long across as it is up, or angles would lie.
    let unit = SIDE / (ranges[0].1 - ranges[0].0).max(ranges[1].1 - ranges[1].0);
    let most = panels.iter().map(|(_, arrows)| arrows.len()).max().unwrap_or(0).max(1) as f64;
    let longest = all().map(|a| a.by[0].hypot(a.by[1])).fold(0.0, f64::max);
    let stretch = if longest > 0.0 { SIDE / most.sqrt() / longest } else { 0.0 };
    // How far arrows reach beyond the places where they begin: those at the border stay inside the frame.
    let beyond = |axis: usize| {
        let length = unit * (ranges[axis].1 - ranges[axis].0);
        let tips = all().map(|a| unit * (a.at[axis] - ranges[axis].0) + stretch * a.by[axis]);
        let (low, high) = tips.fold((0.0, length), |(l, h): (f64, f64), tip| (l.min(tip), h.max(tip)));
        (MARGIN - low, length + 2.0 * MARGIN + (high - length - low))
    };
    let ((before, across), (below, up)) = (beyond(0), beyond(1));
    let width = LEFT + panels.len().max(1) as f64 * (across + GAP);
    let height = TOP + up + BELOW + GAP;
    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" class="plot fields" font-family="{FONT}" role="img">"#
    );
    let mut write = |at: (f64, f64), anchor, class, size, turned: &str, words: &str| {
        text(&mut svg, at, anchor, class, &format!(" font-size=\"{size}\"{turned}"), words);
    };
    let axis = axes.map(Axis::linear);
    let ticks = [0, 1].map(|k| {
        let (low, high) = ranges[k];
        let round = Mapping::new(&axis[k], [low, high].into_iter(), 0.0, 1.0).ticks(&axis[k]);
        round.into_iter().filter(|tick| (low..=high).contains(tick)).collect::<Vec<f64>>()
    });
    let mut drawn = String::new();
    for (number, (name, arrows)) in panels.iter().enumerate() {
        let left = LEFT + number as f64 * (across + GAP);
        let middle = left + across / 2.0;
        let at =
            |x: f64, y: f64| (left + before + unit * (x - ranges[0].0), TOP + up - below - unit * (y - ranges[1].0));
        write((middle, TOP - 12.0), "middle", "ink", 17, "", name);
        for tick in &ticks[0] {
            write((at(*tick, 0.0).0, TOP + up + 17.0), "middle", "soft", 14, "", &axis[0].text(*tick));
        }
        write((middle, TOP + up + 37.0), "middle", "ink", 15, "", axes[0]);
        if number == 0 {
            for tick in &ticks[1] {
                write((left - 5.0, at(0.0, *tick).1 + 5.0), "end", "soft", 14, "", &axis[1].text(*tick));
            }
            let place = (14.0, TOP + up / 2.0);
            write(place, "middle", "ink", 15, &format!(" transform=\"rotate(-90 14 {:.1})\"", place.1), axes[1]);
        }
        let own = arrows.iter().filter(finite).map(|a| a.by[0].hypot(a.by[1])).fold(0.0, f64::max);
        let told = format!("{}, the longest {}", words::things(arrows.len(), "arrow"), words::significant(own, 3));
        write((middle, height - 8.0), "middle", "soft", 14, "", &told);
        let _ = write!(
            drawn,
            r#"<g class="field"><rect class="grid" x="{left:.1}" y="{TOP}" width="{across:.1}" height="{up:.1}" fill="none" stroke="{GRID}"/>"#
        );
        let color = PALETTE[number % PALETTE.len()];
        for arrow in arrows.iter().filter(finite) {
            let (x, y) = at(arrow.at[0], arrow.at[1]);
            let (dx, dy) = (stretch * arrow.by[0], -stretch * arrow.by[1]);
            // Two barbs a third as long as the arrow, on both sides of its tip.
            let barb = |sign: f64| (x + 0.7 * dx - sign * 0.15 * dy, y + 0.7 * dy + sign * 0.15 * dx);
            let ((ax, ay), (bx, by)) = (barb(1.0), barb(-1.0));
            let (tx, ty) = (x + dx, y + dy);
            let _ = write!(
                drawn,
                r#"<path class="arrow" d="M{x:.1} {y:.1}L{tx:.1} {ty:.1}M{ax:.1} {ay:.1}L{tx:.1} {ty:.1}L{bx:.1} {by:.1}" fill="none" stroke="{color}"><title>({:.3}, {:.3}) at ({:.3}, {:.3})</title></path>"#,
                arrow.by[0], arrow.by[1], arrow.at[0], arrow.at[1]
            );
        }
        drawn.push_str("</g>");
    }
    svg + &drawn + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrow(x: f64, y: f64, u: f64, v: f64) -> Arrow {
        Arrow { at: [x, y], by: [u, v] }
    }

    #[test]
    fn every_finite_arrow_is_drawn_once_and_names_are_escaped() {
        let field = vec![arrow(0.0, 0.0, 1.0, 0.0), arrow(1.0, 2.0, 0.0, 1.0), arrow(0.5, f64::NAN, 1.0, 1.0)];
        let svg = quiver(["x", "height & depth"], &[("true <field>", field.clone()), ("fitted", field)]);
        assert_eq!(svg.matches("class=\"arrow\"").count(), 4);
        assert!(svg.contains("true &lt;field&gt;") && !svg.contains("NaN"));
        // Both panels have the axis below, and share the one on the left.
        assert_eq!(svg.matches(">x</text>").count(), 2);
        assert_eq!(svg.matches(">height &amp; depth</text>").count(), 1);
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>"));
    }

    #[test]
    fn arrows_point_where_the_field_does() {
        let svg = quiver(["x", "y"], &[("up", vec![arrow(0.0, 0.0, 0.0, 2.0), arrow(1.0, 1.0, 0.0, 0.0)])]);
        let path = svg.split("d=\"M").nth(1).unwrap();
        let numbers: Vec<f64> = path.split(['L', 'M', ' ', '"']).filter_map(|n| n.parse().ok()).take(4).collect();
        // Up is towards smaller ordinates.
        assert_eq!(numbers[0], numbers[2]);
        assert!(numbers[3] < numbers[1]);
    }

    #[test]
    fn arrows_stay_inside_their_panel() {
        let field = vec![arrow(0.0, 0.0, -3.0, -1.0), arrow(1.0, 1.0, 3.0, 2.0), arrow(0.0, 1.0, 0.1, 5.0)];
        let svg = quiver(["x", "y"], &[("one", field.clone()), ("other", field)]);
        let number = |text: &str, name: &str| -> f64 {
            text.split(&format!(" {name}=\"")).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
        };
        for panel in svg.split("<rect class=\"grid\"").skip(1) {
            let [x, y, width, height] = ["x", "y", "width", "height"].map(|name| number(panel, name));
            for path in panel.split("d=\"M").skip(1).map(|path| path.split('"').next().unwrap()) {
                let places: Vec<f64> = path.split(['L', 'M', ' ']).map(|n| n.parse().unwrap()).collect();
                for place in places.chunks(2) {
                    assert!((x..x + width).contains(&place[0]) && (y..y + height).contains(&place[1]), "{path}");
                }
            }
        }
    }

    #[test]
    fn fields_of_nothing_are_still_drawn() {
        assert!(quiver(["x", "y"], &[]).ends_with("</svg>"));
        assert!(!quiver(["x", "y"], &[("none", Vec::new())]).contains("inf"));
        assert!(!quiver(["x", "y"], &[("one", vec![arrow(3.0, 3.0, 0.0, 0.0)])]).contains("NaN"));
    }
}
