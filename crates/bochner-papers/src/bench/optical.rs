//! Optical features: time, memory and energy of (n, D) x (D, D) projections, beside a GPU and an optical device.

use super::energy::Energy;
use super::reference::fill;
use super::*;
use bochner::feature::{OpticalProjection, OpticalSpec};
use serde::Deserialize;

/// Figures of others, with their source.
const PUBLISHED: &str = include_str!("../../data/optical-projection-times.json");

/// What is said where joules are not counted.
pub(crate) const NO_COUNTER: &str = "this machine shows no counter of joules (/sys/class/powercap)";

#[derive(Deserialize)]
pub(crate) struct Published {
    pub(crate) points: Vec<Point>,
    pub(crate) device: Device,
}

#[derive(Deserialize)]
pub(crate) struct Point {
    pub(crate) machine: String,
    pub(crate) rows: usize,
    pub(crate) dim: usize,
    pub(crate) seconds: f64,
    pub(crate) joules: f64,
}

#[derive(Deserialize)]
pub(crate) struct Device {
    pub(crate) machine: String,
    pub(crate) rows_per_second: f64,
    pub(crate) watts: f64,
    pub(crate) largest_dim: usize,
}

pub(crate) fn published() -> Published {
    serde_json::from_str(PUBLISHED).expect("the embedded figures are read by a test")
}

pub(super) fn run(bench: &Bench<'_>) -> Outcome {
    let published = published();
    structured(bench, &published.device)?;
    dense(bench)?;
    matrix_free(bench)?;
    if !bench.bars {
        study(bench, &published)?;
    }
    Ok(())
}

/// The map of exponent 2 with as many features as there are columns.
fn map(projection: OpticalProjection, input_dim: usize, features: usize) -> Outcome<DynMap<f32>> {
    Ok(OpticalSpec { n_components: features, projection, ..Default::default() }.build::<f32>(input_dim)?)
}

/// Seconds of a transform into a buffer: the median of several, or a single one if that takes long.
fn time(map: &DynMap<f32>, rows: &Array2<f32>, out: &mut Array2<f32>) -> Outcome<f64> {
    let first = once(|| map.transform_into(rows.view(), out.view_mut()))?;
    if first > 5.0 { Ok(first) } else { attempt(0.5, || map.transform_into(rows.view(), out.view_mut())) }
}

/// What is projected, and how.
fn case(how: &str, n: usize, d: usize, features: usize) -> String {
    format!("{how}, {} x {} to {} f32", count(n), count(d), count(features))
}

/// A million outputs from weights that would take 800 GB: ten minutes, most of them for 2·10¹¹ normals.
pub(super) fn memory(bench: &Bench<'_>) -> Outcome {
    let (n, d, features) = (64, 100_000, bench.size(1_000_000, 10_000));
    let case = case("matrix-free", n, d, features);
    bench.at(&case)?;
    forget_peak();
    let start = Instant::now();
    {
        let map = map(OpticalProjection::MatrixFree, d, features)?;
        map.transform_into(normals(n, d, 1).view(), Array2::zeros((n, features)).view_mut())?;
    }
    let time = Line::alone(&case, Cell::duration(start.elapsed().as_secs_f64()));
    bench.lines(Line::memory(&case, peak_memory(), "one gigabyte", Some(1e9), 1.0).into_iter().chain([time]))
}

fn structured(bench: &Bench<'_>, device: &Device) -> Outcome {
    let (n, d) = (bench.size(3000, 300), 1 << 16);
    let case = case("structured", n, d, d);
    bench.at(&case)?;
    let mut out = Array2::zeros((n, d));
    let filled = fill(out.as_slice_mut().expect("contiguous"), 1.0);
    let ours = time(&map(OpticalProjection::Structured, d, d)?, &normals(n, d, 1), &mut out)?;
    drop(out);
    // All weights would take 34 GB: a slice of rows and columns has the same rate.
    let (slice, columns) = bench.size((512, 4096), (128, 1024));
    bench.at("dense complex product, a slice of it")?;
    let part =
        time(&map(OpticalProjection::Dense, d, columns)?, &normals(slice, d, 1), &mut Array2::zeros((slice, columns)))?;
    let product = part * (n as f64 / slice as f64) * (d as f64 / columns as f64);
    let rate = |time: f64| n as f64 / time;
    bench.line(Line::time(&case, ours, "filling the output", filled, Bar::AtMost(8.0)))?;
    let reference = format!("dense complex product, from {} rows and {} columns", count(slice), count(columns));
    bench.line(Line::speed(&case, rate(ours), &reference, rate(product), "row/s", Bar::AtLeast(800.0)))?;
    bench.line(Line::speed(&case, rate(ours), &device.machine, device.rows_per_second, "row/s", Bar::None))?;
    Ok(())
}

fn dense(bench: &Bench<'_>) -> Outcome {
    let (n, d) = (1000, bench.size(4096, 1024));
    let case = case("dense", n, d, d);
    bench.at(&case)?;
    let ours = time(&map(OpticalProjection::Dense, d, d)?, &normals(n, d, 1), &mut Array2::zeros((n, d)))?;
    let peer = bench.peer("numpy's complex64 product", "complex_product", &[&n, &d])?;
    bench.lines(beside(&peer, Line::alone(&case, Cell::duration(ours)), |name, theirs| {
        Line::speed(&case, n as f64 / ours, name, n as f64 / theirs, "row/s", Bar::AtLeast(0.8))
    }))?;
    Ok(())
}

fn matrix_free(bench: &Bench<'_>) -> Outcome {
    let (n, d) = (1000, bench.size(16_384, 2048));
    let (rows, mut out) = (normals(n, d, 1), Array2::zeros((n, d)));
    bench.at(case("matrix-free", n, d, d))?;
    let ours = time(&map(OpticalProjection::MatrixFree, d, d)?, &rows, &mut out)?;
    bench.at(case("stored", n, d, d))?;
    let stored = time(&map(OpticalProjection::Dense, d, d)?, &rows, &mut out)?;
    bench.line(Line::time(case("matrix-free", n, d, d), ours, "stored weights", stored, Bar::AtMost(1.5)))?;
    Ok(())
}

/// Weights a study stores, at most.
const MOST_BYTES: f64 = 4e9;

/// The three ways to project, by name.
pub(crate) const PROJECTIONS: [(&str, OpticalProjection); 3] = [
    ("dense", OpticalProjection::Dense),
    ("matrix-free", OpticalProjection::MatrixFree),
    ("structured", OpticalProjection::Structured),
];

/// What a projection of so many rows took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Taken {
    pub(crate) seconds: f64,
    /// Most bytes held, where the system says so.
    pub(crate) memory: Option<f64>,
    /// Of the whole machine, where it counts them.
    pub(crate) joules: Option<f64>,
}

/// Projects `n` rows of length `d` to `d` features; nothing where that takes more than `most_flops` operations or more
/// memory than a study stores.
pub(crate) fn take(
    projection: OpticalProjection,
    n: usize,
    d: usize,
    most_flops: f64,
    energy: Option<&Energy>,
) -> Outcome<Option<Taken>> {
    let (flops, weights) = (4.0 * n as f64 * (d as f64) * d as f64, 8.0 * d as f64 * d as f64);
    let product = projection != OpticalProjection::Structured;
    if product && flops > most_flops || projection == OpticalProjection::Dense && weights > MOST_BYTES {
        return Ok(None);
    }
    // Fewer rows where these themselves would take gigabytes: time is linear in them.
    let rows_timed = n.min((1 << 28) / d).max(1);
    forget_peak();
    let (map, rows, mut out) = (map(projection, d, d)?, normals(rows_timed, d, 1), Array2::zeros((rows_timed, d)));
    let scale = n as f64 / rows_timed as f64;
    let seconds = scale * time(&map, &rows, &mut out)?;
    let memory = peak_memory();
    let joules = match energy {
        Some(energy) => Some(scale * energy.of(&mut || map.transform_into(rows.view(), out.view_mut()))?),
        None => None,
    };
    Ok(Some(Taken { seconds, memory, joules }))
}

/// (n, D) x (D, D) for growing D, as in the figure of the paper.
fn study(bench: &Bench<'_>, published: &Published) -> Outcome {
    let energy = Energy::find();
    if energy.is_none() {
        bench.line(Line::alone("energy", Cell::text(NO_COUNTER)))?;
    }
    let dims = bench.size(&[1024, 4096, 20_000, 50_000, 1 << 18, 1 << 20][..], &[1024, 4096, 1 << 16][..]);
    // Products beyond this take minutes on a few cores.
    let most_flops = bench.size(2e13, 1e11);
    let (n, device) = (1000, &published.device);
    let nominal = n as f64 / device.rows_per_second;
    for (name, projection) in PROJECTIONS {
        for &d in dims {
            bench.at(format!("{name}, D = {}", count(d)))?;
            let Some(ours) = take(projection, n, d, most_flops, energy.as_ref())? else { continue };
            let case = format!("{name}, ({0} x {1}) x ({1} x {1})", count(n), count(d));
            bench.line(match d <= device.largest_dim {
                true => Line::time(&case, ours.seconds, &device.machine, nominal, Bar::None),
                false => Line::alone(&case, Cell::duration(ours.seconds)),
            })?;
            let points = || published.points.iter().filter(|p| p.rows == n && p.dim == d);
            bench.lines(points().map(|p| Line::time(&case, ours.seconds, &p.machine, p.seconds, Bar::None)))?;
            bench.lines(
                ours.memory.map(|b| Line::alone(format!("{case}: peak memory"), Cell::text(words::rate(b, "B")))),
            )?;
            if let Some(joules) = ours.joules {
                let theirs = points().map(|p| (&p.machine, p.joules));
                for (machine, theirs) in [(&device.machine, nominal * device.watts)].into_iter().chain(theirs) {
                    bench.line(Line::speed(format!("{case}: energy"), joules, machine, theirs, "J", Bar::None))?;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn published_figures_are_complete() {
        let published = super::published();
        assert_eq!(published.points.len(), 4);
        assert!(published.points.iter().all(|p| p.seconds > 0.0 && p.joules > 0.0 && p.dim < 56_000));
        // 3,000 rows take the device a second and a half.
        assert_eq!(3000.0 / published.device.rows_per_second, 1.5);
    }
}
