//! Compressive random features, figures 2 and 5: support vector machines on images, raw, compressed, and on random features
//! of either.

use super::*;
use bochner::feature::{CompressiveSpec, OrthoProjectionSpec, Orthoprojection};
use bochner::model::{KernelSvm, Svm};
use bochner::variance::Form;

/// Images with pixels in [0, 1], and what is tried on them.
struct Study {
    train: Part,
    test: Part,
    sigma: f64,
    /// `m`: measurements per image.
    measurements: Vec<usize>,
    /// `M`: numbers of features.
    sizes: Vec<usize>,
    /// Whether the paper has a table of construction times.
    timed: bool,
}

/// Bytes of kernel values per pair of classes: 12,000 rows in double precision.
const KERNEL: u64 = 3 << 29;

/// Price of a violated margin, for all machines.
const C: f64 = 1.0;

const TYPICAL: &str = "typical";

fn scaled(part: Part, count: usize, seed: u64) -> Part {
    Part { rows: part.rows / 255.0, ..part }.sample(count, seed)
}

/// Figure 2: accuracy and construction time on MNIST.
pub(super) fn mnist(run: &Run<'_>) -> Outcome<Findings> {
    let (train, test) = run.data.images("mnist")?;
    let study = Study {
        train: scaled(train, run.count("training rows")?, 1),
        test: scaled(test, run.count("test rows")?, 2),
        sigma: 10.0,
        measurements: run.setting("measurements")?,
        sizes: run.setting("numbers of features")?,
        timed: true,
    };
    let mut findings = study.run(run)?;
    if run.quick {
        findings.remark("A quick run trains on 6,000 of 60,000 rows: its accuracies are lower than the paper's.");
    }
    Ok(findings)
}

/// Figure 5: accuracy on CIFAR-10.
pub(super) fn cifar10(run: &Run<'_>) -> Outcome<Findings> {
    let (train, test) = run.data.cifar10()?;
    let there = train.len();
    let study = Study {
        train: scaled(train, run.count("training rows")?, 1),
        test: scaled(test, run.count("test rows")?, 2),
        sigma: 18.0,
        measurements: run.setting("measurements")?,
        sizes: run.setting("numbers of features")?,
        timed: false,
    };
    let mut findings = study.run(run)?;
    findings.rows_there("training images in the data folder", there, CIFAR10_TRAINING);
    if study.train.len() < CIFAR10_TRAINING {
        findings.remark(
            "Trained on fewer images than in the paper: accuracies are lower, and the differences between rows of the table are \
             what compares.",
        );
    }
    Ok(findings)
}

impl Study {
    fn run(&self, run: &Run<'_>) -> Outcome<Findings> {
        let n = words::count(self.train.len());
        let draws = run.draws()?;
        let mut accuracy = comparison(format!("Accuracy in percent, {n} training rows"));
        let mut times = comparison(format!("Seconds to make the features of {n} rows"));
        let x = Axis::log("number of random features M").with_counts(&self.sizes);
        let mut plot = Plot::new(
            "Accuracy against number of features",
            "Linear SVM on random features; bars: one standard deviation over draws.",
            x.clone(),
            Axis::linear("test accuracy").in_percent(),
        );
        let subtitle = format!("{n} rows, projections included.");
        let mut time_plot = Plot::new("Time to make the features", subtitle, x, Axis::log("seconds"));
        let (mut found, mut seconds_of) = (BTreeMap::new(), BTreeMap::new());
        let compressed: Vec<Option<usize>> =
            [None].into_iter().chain(self.measurements.iter().map(|&m| Some(m))).collect();
        for &measurements in &compressed {
            let name = measurements.map_or(TYPICAL.to_owned(), |m| format!("m = {m}"));
            for &count in &self.sizes {
                let (spec, key) = (self.spec(measurements, count), format!("{name} M={count}"));
                let what = format!("{name}, M = {}", words::count(count));
                let configuration = format!("{key} {}", self.configuration());
                let redrawn = |seed| spec.redrawn(spec.n_components(), seed);
                let right = run.per_draw(draws, &configuration, &mut |seed| self.accuracy(&redrawn(seed)))?;
                let right = right.percent_of(self.test.len());
                run.beside(&mut accuracy, Show::Fixed(2), &format!("accuracy {key}"), &what, &right);
                let [low, at, high] = [-right.deviation, 0.0, right.deviation].map(|by| 0.01 * (right.mean + by));
                let tip = format!("{what}\n{:.2} % ± {:.2}", right.mean, right.deviation);
                plot.line(&name, Style::Marks).push(Point::new(count as f64, at).with_range(low, high), tip);
                found.insert((name.clone(), count), right);
                if self.timed {
                    let made = format!("time {configuration}");
                    let seconds = run.per_draw(draws, &made, &mut |seed| self.construction(&redrawn(seed)))?;
                    run.beside(&mut times, Show::Number(3), &format!("time {key}"), &what, &seconds);
                    let tip = format!("{what}\n{}", words::duration(seconds.mean));
                    time_plot.line(&name, Style::Marks).push(Point::new(count as f64, seconds.mean), tip);
                    seconds_of.insert((name.clone(), count), seconds.mean);
                }
            }
            accuracy.start_group();
            times.start_group();
        }
        let ends = [self.sizes[0], self.sizes[self.sizes.len() - 1]];
        for (name, value, color) in self.references(run, &compressed, &mut accuracy)? {
            plot.series.push(Series::level(&name, color, &ends, 0.01 * value, &format!("{name}\n{value:.2} %")));
        }
        let mut findings =
            Findings { tables: vec![accuracy], remarks: self.remarks(run, &found), ..Findings::default() };
        findings.plot("accuracy", plot);
        if self.timed {
            findings.plot("time", time_plot);
            findings.tables.push(times);
            findings.remarks.extend(self.time_remark(run, &seconds_of));
        }
        Ok(findings)
    }

    fn configuration(&self) -> String {
        format!("n={} test={}", self.train.len(), self.test.len())
    }

    /// M cosine features with random offsets, as the paper makes them.
    fn spec(&self, measurements: Option<usize>, n_components: usize) -> Spec {
        let (length_scale, form, projection) = (LengthScale::Same(self.sigma), Form::Offset, Directions::Gaussian);
        match measurements {
            None => FourierSpec { n_components, length_scale, form, projection, ..FourierSpec::default() }.into(),
            Some(compressed_dim) => {
                let orthoprojector = Orthoprojection::Gaussian;
                let base = CompressiveSpec { orthoprojector, form, projection, ..CompressiveSpec::default() };
                CompressiveSpec { n_components, compressed_dim, length_scale, ..base }.into()
            }
        }
    }

    fn accuracy(&self, spec: &Spec) -> Outcome<f64> {
        let svm = Svm::new(spec.build::<f32>(self.train.rows.ncols())?, C)?;
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
        table: &mut Table,
    ) -> Outcome<Vec<(String, f64, usize)>> {
        let mut lines = Vec::new();
        let wanted: Vec<String> = run.setting("machines without random features")?;
        for (machine, color) in
            [("linear", 5), ("kernel", 6)].into_iter().filter(|(name, _)| wanted.iter().any(|w| w == name))
        {
            for &measurements in compressed {
                let (key, what) = match measurements {
                    None => (machine.to_owned(), format!("original, {machine} SVM")),
                    Some(m) => (format!("{machine} m = {m}"), format!("m = {m}, {machine} SVM")),
                };
                // As many measurements as pixels turn an image and lose nothing.
                let n_components = measurements.unwrap_or(self.train.rows.ncols());
                let spec =
                    OrthoProjectionSpec { n_components, seed: run.seed, ..OrthoProjectionSpec::default() }.into();
                let found = run.value(&format!("{key} {}", self.configuration()), &mut || match machine {
                    "kernel" => self.kernel_accuracy(&spec),
                    _ => self.accuracy(&spec),
                })?;
                let found = Statistic::one(found).percent_of(self.test.len());
                run.beside(table, Show::Fixed(2), &format!("accuracy {key}"), &what, &found);
                if measurements.is_none() {
                    lines.push((what, found.mean, color));
                }
            }
            table.start_group();
        }
        Ok(lines)
    }

    fn kernel_accuracy(&self, spec: &Spec) -> Outcome<f64> {
        let map = spec.build::<f32>(self.train.rows.ncols())?;
        let measured = |part: &Part| -> Outcome<Rows> {
            Ok(Part { rows: map.transform(part.rows.view())?, targets: part.targets.clone() }.double())
        };
        let svm = KernelSvm::new(Gaussian::new(self.sigma)?, C)?;
        let mut context = Context::default().with_memory_budget(KERNEL)?;
        let model = svm.fit_stream(&mut measured(&self.train)?.source()?, &mut context)?;
        let predicted = model.predict_classes(measured(&self.test)?.rows.view())?;
        Ok(100.0 * (1.0 - error_rate(&self.test.classes(), &predicted)?))
    }

    /// What compression costs, and whether more measurements always help, here and in the paper's tables.
    fn remarks(&self, run: &Run<'_>, found: &BTreeMap<(String, usize), Statistic>) -> Vec<String> {
        let most = self.sizes[self.sizes.len() - 1];
        let at = |m: usize| found[&(format!("m = {m}"), most)];
        let typical = found[&(TYPICAL.to_owned(), most)].mean;
        let losses: Vec<String> =
            self.measurements.iter().map(|&m| format!("{:.2} with m = {m}", typical - at(m).mean)).collect();
        let paper = |m: usize| run.published(&format!("accuracy m = {m} M={most}")).unwrap_or(f64::NAN);
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

    /// How much faster compression is, here and there.
    fn time_remark(&self, run: &Run<'_>, seconds: &BTreeMap<(String, usize), f64>) -> Option<String> {
        let (most, m) = (self.sizes[self.sizes.len() - 1], 100);
        let ours = seconds.get(&(TYPICAL.to_owned(), most))? / seconds.get(&(format!("m = {m}"), most))?;
        let paper = |name: &str| run.published(&format!("time {name} M={most}"));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_has_a_number_for_every_cell() {
        for experiment in ["compressive-mnist", "compressive-cifar10"] {
            let choice = Choice::new(find(experiment).unwrap(), Size::Paper, None, &[]).unwrap();
            let list = |name: &str| choice.get::<Vec<usize>>(name).unwrap();
            let (measurements, sizes) = (list("measurements"), list("numbers of features"));
            let check = |key: String| {
                assert!(published::find(experiment, &key).is_some_and(|(value, _)| value > 20.0), "{key}");
            };
            for name in [TYPICAL.to_owned()].into_iter().chain(measurements.iter().map(|m| format!("m = {m}"))) {
                sizes.iter().for_each(|size| check(format!("accuracy {name} M={size}")));
                for machine in ["linear", "kernel"] {
                    let of = if name == TYPICAL { String::new() } else { format!(" {name}") };
                    check(format!("accuracy {machine}{of}"));
                }
            }
        }
    }

    #[test]
    fn a_fall_is_judged_by_the_deviation_over_draws() {
        let of = |mean| Statistic { mean, deviation: 0.3, count: 3, sampling: 0.0 };
        let text = fall((200, of(95.0)), (300, of(94.6)), 0.25);
        assert!(text.contains("by 0.40 points (+0.25 in the paper), within"), "{text}");
        assert!(fall((200, of(95.0)), (300, of(94.5)), 0.25).contains("more than"));
    }
}
