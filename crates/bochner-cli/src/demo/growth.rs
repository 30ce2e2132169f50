//! The same job with more and more rows, to sizes at which the exact kernel does not come along.

use super::{exact_error, feature_error, ridge};
use crate::digits::Digits;
use bochner::context::Context;
use bochner::feature::Spec;
use bochner::kernel::Gaussian;
use bochner::plan::{Sample, Trial};
use bochner::preprocess::median_distance;
use bochner::random::{Role, Seed, Stream};
use bochner::words;
use bochner_report::plot::{Axis, Plot, Point, Series, Style};
use bochner_report::table::{Cell, Table};
use bochner_table::failure::{Failure, Outcome};
use bochner_table::progress::Progress;
use ndarray::{Array2, s};
use std::time::Instant;

/// How much is computed.
#[derive(Debug)]
pub(super) struct Size {
    /// Numbers of training rows, ascending.
    rows: &'static [usize],
    /// The most rows that the exact kernel is tried on.
    exact_rows: usize,
    test_rows: usize,
    features: usize,
    /// Rows of the two kernel matrices, the one predicted from and the one measured on.
    kernel_rows: usize,
    draws: usize,
}

impl Size {
    pub(super) const FULL: Size = Size {
        rows: &[1250, 2500, 5000, 20_000, 60_000],
        exact_rows: 5000,
        test_rows: 5000,
        features: 4096,
        kernel_rows: 1000,
        draws: 5,
    };
    pub(super) const SMALL: Size =
        Size { rows: &[200, 400, 800], exact_rows: 400, test_rows: 200, features: 128, kernel_rows: 200, draws: 4 };

    /// Steps of its progress.
    pub(super) fn steps(&self) -> usize {
        self.draws + self.rows.len() + self.rows.iter().filter(|&&rows| rows <= self.exact_rows).count()
    }
}

/// A model that was fitted, or would have been.
#[derive(Debug, Clone, Copy)]
struct Cost {
    /// Share of wrong digits, where it was fitted.
    error: Option<f64>,
    seconds: f64,
    bytes: u64,
}

#[derive(Debug)]
pub(super) struct Growth {
    size: &'static Size,
    /// What the map is called.
    name: String,
    /// Error of the kernel matrix, from variances on some rows and measured on others.
    predicted: f64,
    measured: f64,
    /// Numbers of rows, the exact kernel and the features.
    costs: Vec<(usize, Cost, Cost)>,
}

/// Copies of digits in turn, each turned, resized and moved a little: as many as asked for, all different.
fn moved(digits: &Digits, count: usize, seed: Seed) -> Digits {
    const SIDE: usize = 8;
    let middle = (SIDE as f64 - 1.0) / 2.0;
    let mut images = Array2::zeros((count, SIDE * SIDE));
    for (i, mut image) in images.rows_mut().into_iter().enumerate() {
        let original = digits.images.row(i % digits.labels.len());
        let pixel = |row: f64, column: f64| {
            let inside = |v: f64| (0.0..SIDE as f64).contains(&v);
            if inside(row) && inside(column) { original[row as usize * SIDE + column as usize] } else { 0.0 }
        };
        let mut stream = Stream::new(seed, Role::Noise, i as u64);
        let mut within = |most: f64| most * (2.0 * stream.uniform() - 1.0);
        let (angle, scale, down, right) = (within(0.3), 1.0 + within(0.15), within(1.0), within(1.0));
        let (sine, cosine) = (scale * angle.sin(), scale * angle.cos());
        for (at, value) in image.iter_mut().enumerate() {
            let (y, x) = ((at / SIDE) as f64 - middle, (at % SIDE) as f64 - middle);
            let (row, column) = (cosine * y - sine * x + middle + down, sine * y + cosine * x + middle + right);
            // Between four pixels.
            let (top, left) = (row.floor(), column.floor());
            let (v, u) = (row - top, column - left);
            *value = (1.0 - v) * ((1.0 - u) * pixel(top, left) + u * pixel(top, left + 1.0))
                + v * ((1.0 - u) * pixel(top + 1.0, left) + u * pixel(top + 1.0, left + 1.0));
        }
    }
    Digits { images, labels: (0..count).map(|i| digits.labels[i % digits.labels.len()]).collect() }
}

/// Trains on copies of `train` and tests on copies of `test`.
pub(super) fn measure(
    size: &'static Size,
    (train, test): (&Digits, &Digits),
    penalty: f64,
    seed: Seed,
    progress: &dyn Progress,
) -> Outcome<Growth> {
    let most = size.rows.last().copied().unwrap_or(0);
    let (train, test) = (moved(train, most, seed.child(0)), moved(test, size.test_rows, seed.child(1)));
    let some = train.images.slice(s![..size.kernel_rows, ..]);
    let kernel = Gaussian::new(median_distance(some, seed, size.kernel_rows)?)?;

    progress.at("more rows: the kernel".into())?;
    let sample = Sample::new(&kernel.into(), some)?;
    let others = Sample::new(&kernel.into(), test.images.slice(s![..size.kernel_rows, ..]))?;
    // The map with the smallest error among those whose error has a closed form.
    let mut best: Option<(f64, String, Spec)> = None;
    for candidate in sample.candidates()?.iter().filter(|candidate| matches!(candidate.spec, Spec::Fourier(_))) {
        let sized = sample.sized(candidate, size.features, seed)?;
        let (error, closed_form) = sample.expected(&sized)?;
        if closed_form && best.as_ref().is_none_or(|best| error < best.0) {
            best = Some((error, sized.name, sized.spec));
        }
    }
    let (predicted, name, spec) = best.ok_or_else(|| Failure::Failed("no map has a known error".into()))?;
    let mut tick = || progress.done(1).map_err(|_| bochner::Error::Interrupted);
    let measured = others.measure(&spec, size.draws, seed.child(2), &mut tick)?.root_mean_square();

    let mut costs: Vec<(usize, Cost, Cost)> = Vec::new();
    // What the last fit of the exact kernel took: rows, seconds for all, seconds of the factorisation.
    let mut last = (0, 0.0, 0.0);
    for &rows in size.rows {
        let some: Vec<usize> = (0..rows).collect();
        let some = train.select(&some);
        let bytes = 8 * (rows as u64).pow(2);
        let exact = if rows <= size.exact_rows {
            progress.at(format!("more rows: the exact kernel on {}", words::count(rows)).into())?;
            let start = Instant::now();
            let (error, factoring) = exact_error(&kernel, &some, &test, penalty)?;
            last = (rows, start.elapsed().as_secs_f64(), factoring);
            progress.done(1)?;
            Cost { error: Some(error), seconds: last.1, bytes }
        } else {
            // The matrix grows with the square of the rows, its factorisation with the cube.
            let (ratio, (_, seconds, factoring)) = (rows as f64 / last.0 as f64, last);
            let seconds = (seconds - factoring) * ratio.powi(2) + factoring * ratio.powi(3);
            Cost { error: None, seconds, bytes }
        };
        progress.at(format!("more rows: features of {}", words::count(rows)).into())?;
        let bytes = ridge(&spec, &some, penalty)?.bytes(Some(rows), super::CLASSES, &Context::default())?;
        let start = Instant::now();
        let error = feature_error(&spec, &some, &test, penalty)?;
        costs.push((rows, exact, Cost { error: Some(error), seconds: start.elapsed().as_secs_f64(), bytes }));
        progress.done(1)?;
    }
    Ok(Growth { size, name, predicted, measured, costs })
}

impl Growth {
    pub(super) fn table(&self) -> Table {
        let features = words::count(self.size.features);
        let mut table = Table::new(format!(
            "More rows: digits that are turned, resized and moved; {features} features ({})",
            self.name
        ))
        .numbers("rows", "rows")
        .numbers("exact_accuracy", "exact: accuracy")
        .numbers("exact_bytes", "memory")
        .numbers("exact_seconds", "time")
        .numbers("accuracy", "features: accuracy")
        .numbers("bytes", "memory")
        .numbers("seconds", "time");
        for (rows, exact, features) in &self.costs {
            let accuracy = |cost: &Cost| cost.error.map_or(Cell::missing("–"), |error| Cell::percent(1.0 - error, 2));
            let time = match exact.error {
                Some(_) => Cell::duration(exact.seconds),
                None => Cell::missing(&format!("≈ {}", words::duration(exact.seconds))),
            };
            let (exact_bytes, bytes) = (Cell::bytes(exact.bytes), Cell::bytes(features.bytes));
            let ours = [accuracy(features), bytes, Cell::duration(features.seconds)];
            table.push([vec![Cell::count(*rows), accuracy(exact), exact_bytes, time], ours.into()].concat());
        }
        table
    }

    pub(super) fn plot(&self) -> Plot {
        let mut exact = Series::new("exact kernel", Style::Marks, 1);
        let mut would = Series::new("exact kernel", Style::Dashed, 1).unlabelled();
        let mut features = Series::new(format!("{} features", words::count(self.size.features)), Style::Marks, 0);
        for (rows, theirs, ours) in &self.costs {
            let tip = |what: &str, cost: &Cost| {
                format!(
                    "{what}, {} rows\n{}, {}",
                    words::count(*rows),
                    words::duration(cost.seconds),
                    words::bytes(cost.bytes)
                )
            };
            let at = |cost: &Cost| Point::new(*rows as f64, cost.seconds);
            features.push(at(ours), tip("features", ours));
            if theirs.error.is_some() {
                exact.push(at(theirs), tip("exact kernel", theirs));
            }
            if *rows >= self.size.exact_rows {
                would.push(at(theirs), tip("exact kernel, extrapolated", theirs));
            }
        }
        Plot {
            title: "The exact kernel stays behind as rows grow".into(),
            subtitle: "Time to fit and to predict. Dashed: extrapolated by the square and the cube of the rows.".into(),
            x: Axis::log("training rows").with_ticks(self.size.rows.iter().map(|&rows| rows as f64).collect()),
            y: Axis::log("seconds"),
            series: vec![features, exact, would],
        }
    }

    /// What it shows, in a sentence or two.
    pub(super) fn findings(&self) -> Vec<String> {
        let (Some((fewest, small, _)), Some((rows, exact, features))) = (self.costs.first(), self.costs.last()) else {
            return Vec::new();
        };
        let right = |cost: &Cost| 100.0 * (1.0 - cost.error.unwrap_or(f64::NAN));
        vec![
            format!(
                "More rows: on {} digits the exact kernel would take {} and about {}; features take {} and {}. They are right on \
                 {:.2} % of unseen digits; the exact kernel on {} rows on {:.2} %.",
                words::count(*rows),
                words::bytes(exact.bytes),
                words::duration(exact.seconds),
                words::bytes(features.bytes),
                words::duration(features.seconds),
                right(features),
                words::count(*fewest),
                right(small)
            ),
            format!(
                "Their kernel error was predicted from {} of these rows, {:.2} %, and measured on others, {:.2} %.",
                words::count(self.size.kernel_rows),
                100.0 * self.predicted,
                100.0 * self.measured
            ),
        ]
    }

    /// How the page introduces it.
    pub(super) fn introduction(&self) -> String {
        format!(
            "The training digits, copied to as many rows as wanted; every copy is turned, resized and moved a little. Tested on {} \
             such copies of the other digits. Memory of the exact kernel is that of its matrix, memory of the features what the fit \
             asks for. Times marked ≈ were not measured: the matrix grows with the square of the rows, its factorisation with the \
             cube, from the times on {} rows.",
            words::count(self.size.test_rows),
            words::count(self.size.exact_rows)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_a_digit_differ_and_keep_its_label_and_range() {
        let mut digits = Digits::load().unwrap().select(&[3, 5]);
        digits.images /= 16.0;
        let copies = moved(&digits, 6, Seed::new(1));
        assert_eq!(copies.labels, digits.labels.repeat(3));
        assert!(copies.images.iter().all(|pixel| (0.0..=1.0).contains(pixel)));
        assert_ne!(copies.images.row(0), copies.images.row(2));
        // Moved by a pixel at most, a digit keeps most of its ink.
        for (copy, original) in [(0, 0), (3, 1)] {
            let (ink, before) = (copies.images.row(copy).sum(), digits.images.row(original).sum());
            assert!((0.5..1.5).contains(&(ink / before)), "{ink} of {before}");
        }
    }
}
