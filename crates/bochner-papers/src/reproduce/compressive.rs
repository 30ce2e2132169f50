//! Support vector machines on images: raw, compressed, and on random features of either. Shared by two experiments.

use super::data::{Part, double};
use super::{Findings, Reduced, Run, Statistic, comparison};
use bochner::feature::{CompressiveSpec, Describe, Directions, FeatureMap, FourierSpec, OrthoProjectionSpec, Spec};
use bochner::kernel::Gaussian;
use bochner::metrics::error_rate;
use bochner::model::{Fit, KernelSvm, Svm};
use bochner::preprocess::LengthScale;
use bochner::variance::Form;
use bochner::words;
use bochner_report::plot::{Axis, Plot, Point, Series, Style};
use bochner_report::table::Cell;
use bochner_table::failure::Outcome;
use std::collections::BTreeMap;
use std::time::Instant;

/// Images with pixels in [0, 1], and what is tried on them.
pub(super) struct Study {
    pub(super) train: Part,
    pub(super) test: Part,
    pub(super) sigma: f64,
    /// `m`: measurements per image.
    pub(super) measurements: &'static [usize],
    /// `M`: numbers of features.
    pub(super) sizes: &'static [usize],
    /// Whether the paper has a table of construction times.
    pub(super) timed: bool,
}

/// Bytes of kernel values per pair of classes: 12,000 rows in double precision.
const KERNEL: u64 = 3 << 29;

/// Price of a violated margin, for all machines.
const C: f64 = 1.0;

/// Draws over which the paper averages.
const TRIALS: usize = 20;

const TYPICAL: &str = "typical";

impl Study {
    pub(super) fn run(&self, run: &Run<'_>) -> Outcome<Findings> {
        let n = words::count(self.train.rows.nrows());
        let draws = run.draws(3, 3, TRIALS);
        let mut accuracy = comparison(format!("Accuracy in percent, {n} training rows"));
        let mut times = comparison(format!("Seconds to make the features of {n} rows"));
        let (mut series, mut found) = (Vec::new(), BTreeMap::new());
        let mut seconds_of = BTreeMap::new();
        let compressed: Vec<Option<usize>> =
            [None].into_iter().chain(self.measurements.iter().map(|&m| Some(m))).collect();
        for (index, &measurements) in compressed.iter().enumerate() {
            let name = measurements.map_or(TYPICAL.to_owned(), |m| format!("m = {m}"));
            let mut line = Series::new(&*name, Style::Marks, index);
            for &count in self.sizes {
                let (spec, key) = (self.spec(measurements, count), format!("{name} M={count}"));
                let what = format!("{name}, M = {}", words::count(count));
                let configuration = format!("{key} {}", self.configuration());
                let redrawn = |seed| spec.redrawn(spec.n_components(), seed);
                let right = run.per_draw(draws, &configuration, |seed| self.accuracy(&redrawn(seed)))?;
                accuracy.push(run.beside(&format!("accuracy {key}"), &what, &right, |v| Cell::fixed(v, 2)));
                let tip = format!("{what}\n{:.2} % ± {:.2}", right.mean, right.deviation);
                let at = |v: f64| 0.01 * v;
                let point = Point::new(count as f64, at(right.mean));
                line.push(point.with_range(at(right.mean - right.deviation), at(right.mean + right.deviation)), tip);
                found.insert((name.clone(), count), right);
                if self.timed {
                    let key = format!("time {configuration}");
                    let seconds = run.per_draw(draws, &key, |seed| self.construction(&redrawn(seed)))?;
                    times.push(run.beside(&format!("time {name} M={count}"), &what, &seconds, |v| Cell::number(v, 3)));
                    seconds_of.insert((name.clone(), count), seconds.mean);
                }
            }
            accuracy.start_group();
            times.start_group();
            series.push(line);
        }
        let references = self.references(run, &compressed, &mut accuracy)?;
        let ends = [self.sizes[0], self.sizes[self.sizes.len() - 1]];
        for (name, value, colour) in references {
            let mut line = Series::new(&*name, Style::Dashed, colour);
            for end in ends {
                line.push(Point::new(end as f64, 0.01 * value), format!("{name}\n{value:.2} %"));
            }
            series.push(line);
        }
        let plot = Plot {
            title: "Accuracy against number of features".into(),
            subtitle: "Linear SVM on random features; bars: one standard deviation over draws.".into(),
            x: Axis::log("number of random features M").with_ticks(self.sizes.iter().map(|&s| s as f64).collect()),
            y: Axis::linear("test accuracy").in_percent(),
            series,
        };
        let mut plots = vec![("accuracy".to_owned(), plot)];
        let mut tables = vec![accuracy];
        let mut remarks = self.remarks(run, &found);
        if self.timed {
            plots.push(("time".into(), self.time_plot(&seconds_of)));
            tables.push(times);
            remarks.extend(self.time_remark(run, &seconds_of));
        }
        let mut reduced = Reduced::default();
        reduced.size("draws", draws, TRIALS);
        remarks.extend(reduced.remark());
        Ok(Findings { tables, plots, remarks })
    }

    fn configuration(&self) -> String {
        format!("n={} test={}", self.train.rows.nrows(), self.test.rows.nrows())
    }

    /// M cosine features with random offsets, as the paper makes them.
    fn spec(&self, measurements: Option<usize>, n_components: usize) -> Spec {
        let (length_scale, form) = (LengthScale::Same(self.sigma), Form::Offset);
        match measurements {
            None => {
                let projection = Directions::Gaussian;
                FourierSpec { n_components, length_scale, form, projection, ..FourierSpec::default() }.into()
            }
            Some(compressed_dim) => {
                CompressiveSpec { n_components, compressed_dim, length_scale, form, ..CompressiveSpec::default() }
                    .into()
            }
        }
    }

    fn accuracy(&self, spec: &Spec) -> Outcome<f64> {
        let map = spec.build::<f32>(self.train.rows.ncols())?;
        let svm = Svm::new(map, C)?;
        let model = svm.fit(self.train.rows.view(), self.train.targets.view())?;
        Ok(100.0 * (1.0 - error_rate(&self.test.classes(), &model.predict_classes(self.test.rows.view())?)?))
    }

    fn construction(&self, spec: &Spec) -> Outcome<f64> {
        let map = spec.build::<f32>(self.train.rows.ncols())?;
        let start = Instant::now();
        map.transform(self.train.rows.view())?;
        Ok(start.elapsed().as_secs_f64())
    }

    /// Machines without random features: linear and exact kernel, on pixels and on measurements.
    fn references(
        &self,
        run: &Run<'_>,
        compressed: &[Option<usize>],
        table: &mut bochner_report::table::Table,
    ) -> Outcome<Vec<(String, f64, usize)>> {
        let mut lines = Vec::new();
        for kernel in [false, true] {
            for &measurements in compressed {
                let machine = if kernel { "kernel" } else { "linear" };
                let (key, what) = match measurements {
                    None => (machine.to_owned(), format!("original, {machine} SVM")),
                    Some(m) => (format!("{machine} m = {m}"), format!("m = {m}, {machine} SVM")),
                };
                // As many measurements as pixels turn an image and lose nothing.
                let spec = |seed| -> Spec {
                    let n_components = measurements.unwrap_or(self.train.rows.ncols());
                    OrthoProjectionSpec { n_components, seed, ..OrthoProjectionSpec::default() }.into()
                };
                let values = run.values(&format!("{key} {}", self.configuration()), || {
                    Ok(vec![match kernel {
                        true => self.kernel_accuracy(&spec(run.seed))?,
                        false => self.accuracy(&spec(run.seed))?,
                    }])
                })?;
                let found = Statistic::of(&values);
                table.push(run.beside(&format!("accuracy {key}"), &what, &found, |v| Cell::fixed(v, 2)));
                if measurements.is_none() {
                    lines.push((what, found.mean, if kernel { 6 } else { 5 }));
                }
            }
            table.start_group();
        }
        Ok(lines)
    }

    fn kernel_accuracy(&self, spec: &Spec) -> Outcome<f64> {
        let map = spec.build::<f32>(self.train.rows.ncols())?;
        let measured = |part: &Part| -> Outcome<_> { Ok(double(map.transform(part.rows.view())?.view())) };
        let svm = KernelSvm::new(Gaussian::new(self.sigma)?, C)?;
        let (rows, labels) = (measured(&self.train)?, double(self.train.targets.view()));
        let mut source = bochner::rows::InMemory::new(rows.view(), labels.view())?;
        let model = svm.fit_stream(&mut source, &mut bochner::Context::default().with_memory_budget(KERNEL)?)?;
        let predicted = model.predict_classes(measured(&self.test)?.view())?;
        Ok(100.0 * (1.0 - error_rate(&self.test.classes(), &predicted)?))
    }

    /// What compression costs, and whether more measurements always help, here and in the paper's tables.
    fn remarks(&self, run: &Run<'_>, found: &BTreeMap<(String, usize), Statistic>) -> Vec<String> {
        let most = self.sizes[self.sizes.len() - 1];
        let at = |m: usize| found[&(format!("m = {m}"), most)];
        let typical = found[&(TYPICAL.to_owned(), most)].mean;
        let losses: Vec<String> =
            self.measurements.iter().map(|&m| format!("{:.2} with m = {m}", typical - at(m).mean)).collect();
        let paper = |m: usize| run.published(&format!("accuracy m = {m} M={most}")).map_or(f64::NAN, |p| p.value);
        let falls: Vec<String> = (self.measurements.windows(2))
            .map(|pair| (pair[0], pair[1]))
            .filter(|&(few, many)| at(many).mean < at(few).mean)
            .map(|(few, many)| fall((few, at(few)), (many, at(many)), paper(many) - paper(few)))
            .collect();
        vec![
            format!("At M = {} compression costs, in points of accuracy: {}.", words::count(most), losses.join(", ")),
            match &falls[..] {
                [] => {
                    let same = self.measurements.windows(2).all(|pair| paper(pair[0]) <= paper(pair[1]));
                    let beside = if same { ", as in the paper" } else { "; in the paper not in every step" };
                    format!("More measurements are more accurate throughout{beside}.")
                }
                falls => format!("More measurements are not more accurate throughout: {}.", falls.join("; ")),
            },
        ]
    }

    fn time_plot(&self, seconds: &BTreeMap<(String, usize), f64>) -> Plot {
        let names: Vec<String> =
            [TYPICAL.to_owned()].into_iter().chain(self.measurements.iter().map(|m| format!("m = {m}"))).collect();
        let line = |(index, name): (usize, &String)| {
            let mut line = Series::new(name, Style::Marks, index);
            for &count in self.sizes {
                let value = seconds[&(name.clone(), count)];
                line.push(
                    Point::new(count as f64, value),
                    format!("{name}, M = {}\n{}", words::count(count), words::duration(value)),
                );
            }
            line
        };
        Plot {
            title: "Time to make the features".into(),
            subtitle: format!("{} rows, projections included.", words::count(self.train.rows.nrows())),
            x: Axis::log("number of random features M").with_ticks(self.sizes.iter().map(|&s| s as f64).collect()),
            y: Axis::log("seconds"),
            series: names.iter().enumerate().map(line).collect(),
        }
    }

    /// How much faster compression is, here and there.
    fn time_remark(&self, run: &Run<'_>, seconds: &BTreeMap<(String, usize), f64>) -> Option<String> {
        let (most, m) = (self.sizes[self.sizes.len() - 1], 100);
        let ours = seconds.get(&(TYPICAL.to_owned(), most))? / seconds.get(&(format!("m = {m}"), most))?;
        let paper = |name: &str| run.published(&format!("time {name} M={most}")).map(|p| p.value);
        let theirs = paper(TYPICAL)? / paper(&format!("m = {m}"))?;
        Some(format!(
            "With m = {m} and M = {} features are made {ours:.1} times faster than without compression; {theirs:.1} times \
             in the paper, on an Intel Xeon E5-2620. Both include the random projection.",
            words::count(most)
        ))
    }
}

/// A step to more measurements that lowers the accuracy, what the paper has there, and whether it may be chance.
fn fall((few, before): (usize, Statistic), (many, after): (usize, Statistic), paper: f64) -> String {
    let lost = before.mean - after.mean;
    let chance = before.deviation.hypot(after.deviation);
    format!(
        "from m = {few} to m = {many} it falls by {lost:.2} points ({paper:+.2} in the paper), {} the deviation over draws",
        if lost <= chance { "within" } else { "more than" }
    )
}

/// Fails where a cell of the paper's tables is not among the published numbers.
#[cfg(test)]
pub(super) fn check_published(experiment: &str, measurements: &[usize], sizes: &[usize]) {
    let published = super::published::Published::of(experiment);
    let check = |key: String| assert!(published.get(&key).is_some_and(|v| v.value > 20.0), "{key}");
    let names = || [TYPICAL.to_owned()].into_iter().chain(measurements.iter().map(|m| format!("m = {m}")));
    for name in names() {
        sizes.iter().for_each(|size| check(format!("accuracy {name} M={size}")));
        for machine in ["linear", "kernel"] {
            let of = if name == TYPICAL { String::new() } else { format!(" {name}") };
            check(format!("accuracy {machine}{of}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fall_is_judged_by_the_deviation_over_draws() {
        let of = |mean| Statistic { mean, deviation: 0.3, count: 3 };
        let text = fall((200, of(95.0)), (300, of(94.6)), 0.25);
        assert!(text.contains("by 0.40 points (+0.25 in the paper), within"), "{text}");
        assert!(fall((200, of(95.0)), (300, of(94.5)), 0.25).contains("more than"));
    }
}
