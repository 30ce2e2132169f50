//! Gaussian processes on features beside the exact one: what the experiments of chapters 4 and 5 of the thesis measure.

use super::*;
use bochner::feature::{Cotangents, DynComplexMap, DynMap};
use bochner::kernel::Kernel;
use bochner::linalg::gemm::matmul_nt;
use bochner::linalg::{Tile, TileMut, Workspace};
use bochner::metrics::{class_negative_log_likelihood, gaussian_kl, mean_negative_log_likelihood, normalized_mse};
use bochner::model::exact::{ExactGpClassifier, ExactGpRegressor};
use bochner::model::{GpClassifier, GpClassifierModel, GpRegressor, GpRegressorModel};
use bochner::rows::RowSource;
use bochner::{Complex, Error};
use std::sync::Arc;

/// Rows of the kernel matrices whose errors are measured.
const MATRIX_ROWS: usize = 1000;

/// What the targets are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    Regression,
    /// By the Dirichlet transform.
    Classification,
}

impl Task {
    /// Name of the error of predictions.
    pub(super) fn error(self) -> &'static str {
        match self {
            Task::Regression => "normalised MSE",
            Task::Classification => "test error",
        }
    }

    /// Values of the noise variance, or of `α`, among which validation chooses.
    pub(super) fn regularizers(self) -> Vec<f64> {
        match self {
            Task::Regression => (-15..=15).map(|e| 2f64.powi(e)).collect(),
            Task::Classification => (-5..=0).map(|e| 10f64.powi(e)).collect(),
        }
    }
}

/// How the features of a description are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Real,
    /// As many complex numbers.
    Complex,
    /// Cosines and sines of twice as many real columns as complex numbers.
    Phasors,
}

/// A map under the name tables show.
#[derive(Debug, Clone)]
pub(super) struct Method {
    pub(super) name: &'static str,
    pub(super) spec: Spec,
    pub(super) form: Form,
}

impl Method {
    pub(super) fn real(name: &'static str, spec: impl Into<Spec>) -> Self {
        Method { name, spec: spec.into(), form: Form::Real }
    }

    /// The name that remembers numbers: what was drawn in another way once is called otherwise.
    fn key(&self) -> String {
        match &self.spec {
            Spec::Maclaurin(spec) if spec.sketch == SketchKind::TensorSrht && spec.srht == Sampling::Stacked => {
                format!("{} (stacked)", self.name)
            }
            _ => self.name.to_owned(),
        }
    }

    fn draw(&self, features: usize, seed: u64, sample: ArrayView2<'_, f64>) -> Outcome<Map> {
        let columns = if self.form == Form::Phasors { 2 * features } else { features };
        let spec = self.spec.redrawn(columns, seed).resolve(sample)?;
        let dim = sample.ncols();
        Ok(match self.form {
            Form::Real => Map::Real(spec.build::<f64>(dim)?),
            Form::Complex => Map::Complex(spec.build_complex::<f64>(dim)?),
            Form::Phasors => Map::Complex(Arc::new(Phasors(spec.build::<f64>(dim)?))),
        })
    }
}

/// A map that was drawn.
enum Map {
    Real(DynMap<f64>),
    Complex(DynComplexMap<f64>),
}

impl Map {
    /// `Re⟨φ(x), φ(y)⟩` for all pairs of rows.
    fn estimate(&self, rows: ArrayView2<'_, f64>) -> Outcome<Array2<f64>> {
        let features = match self {
            Map::Real(map) => map.transform(rows)?,
            Map::Complex(map) => {
                let both = map.transform(rows)?;
                let (re, im) = (both.mapv(|v| v.re), both.mapv(|v| v.im));
                ndarray::concatenate(Side(1), &[re.view(), im.view()]).expect("parts of one matrix")
            }
        };
        gram(&features, &features)
    }
}

/// Inner products of all pairs of rows.
pub(super) fn gram(left: &Array2<f64>, right: &Array2<f64>) -> Outcome<Array2<f64>> {
    let (n, k, m) = (left.nrows(), right.nrows(), left.ncols());
    let (left, right) = (left.as_standard_layout(), right.as_standard_layout());
    let tile = |rows, values| Tile::new(values, rows, m);
    let mut product = vec![0.0; n * k];
    let (a, b) = (left.as_slice().expect("standard layout"), right.as_slice().expect("standard layout"));
    matmul_nt(tile(n, a), tile(k, b), TileMut::new(&mut product, n, k))?;
    Ok(Array2::from_shape_vec((n, k), product).expect("n times k numbers"))
}

/// `exp(iωᵀx)` from the cosines and sines that a real map has in its first and second half.
#[derive(Debug)]
struct Phasors(DynMap<f64>);

impl FeatureMap for Phasors {
    type Real = f64;
    type Output = Complex<f64>;

    fn input_dim(&self) -> usize {
        self.0.input_dim()
    }

    fn output_dim(&self) -> usize {
        self.0.output_dim() / 2
    }

    fn map_tile(&self, rows: Tile<'_, f64>, mut out: TileMut<'_, Complex<f64>>, work: &mut Workspace<f64>) {
        let (n, m) = (rows.rows(), self.output_dim());
        let mut both = work.take(2 * n * m);
        self.0.map_tile(rows, TileMut::new(&mut both, n, 2 * m), work);
        for i in 0..n {
            let (cosines, sines) = both[2 * m * i..][..2 * m].split_at(m);
            for ((to, re), im) in out.row_mut(i).iter_mut().zip(cosines).zip(sines) {
                *to = Complex::new(*re, *im);
            }
        }
        work.give(both);
    }

    fn check_tile(&self, rows: Tile<'_, f64>) -> Result<(), Error> {
        self.0.check_tile(rows)
    }

    fn pull_tile(
        &self,
        rows: Tile<'_, f64>,
        from: Cotangents<'_, f64>,
        out: TileMut<'_, f64>,
        work: &mut Workspace<f64>,
    ) {
        let (n, m) = (rows.rows(), self.output_dim());
        let mut both = work.take(2 * n * m);
        for (i, both) in both.chunks_exact_mut(2 * m).enumerate() {
            both[..m].copy_from_slice(from.re.row(i));
            both[m..].copy_from_slice(from.im.row(i));
        }
        self.0.pull_tile(rows, Cotangents::real(Tile::new(&both, n, 2 * m)), out, work);
        work.give(both);
    }
}

/// One data set, one kernel, several maps.
pub(super) struct Setting<'a> {
    pub(super) data: &'a str,
    /// What the cache calls the kernel and the preparation of rows.
    pub(super) label: String,
    pub(super) task: Task,
    pub(super) prepared: Prepared,
    /// Whether rows are divided by their lengths.
    pub(super) unit: bool,
    /// Methods for a length scale; kernels without one take no notice. The first one is the baseline, with which the
    /// regularisation of all is chosen.
    pub(super) methods: &'a dyn Fn(f64) -> Vec<Method>,
    /// Numbers of features.
    pub(super) features: Vec<usize>,
    /// Training and test rows of the comparison with the exact process.
    pub(super) exact: (usize, usize),
    /// Training and test rows of the predictions.
    pub(super) most: (usize, usize),
    /// Maps drawn for the error of the kernel matrix, for every draw of rows.
    pub(super) matrices: usize,
    /// Whether a process is fitted with a method and so many features; kernel matrices are compared in any case.
    pub(super) judged: &'a dyn Fn(&str, usize) -> bool,
    /// Most features of the baseline and most rows, of which a tenth is held out, to choose the regularisation with.
    pub(super) validation: Option<(usize, usize)>,
    pub(super) draws: usize,
}

/// Relative error of the kernel matrix, KL divergence from the exact process, error of predictions, mean negative log
/// likelihood; only the first where no process was fitted.
#[derive(Debug, Clone)]
pub(super) struct Scores {
    pub(super) method: &'static str,
    pub(super) features: usize,
    pub(super) values: Vec<Statistic>,
}

/// What was found for one data set, whose dimension is padded to a power of two.
pub(super) struct Found {
    pub(super) data: &'static str,
    pub(super) dim: usize,
    pub(super) task: Task,
    pub(super) scores: Vec<Scores>,
}

impl Found {
    pub(super) fn of(&self, method: &str, features: usize, index: usize) -> Option<Statistic> {
        let score = self.scores.iter().find(|s| s.method == method && s.features == features);
        score.and_then(|s| s.values.get(index)).copied()
    }

    /// Numbers of features with which a metric was measured for all methods.
    pub(super) fn measured(&self, index: usize) -> Vec<usize> {
        let of_all = |&features: &usize| !self.scores.iter().any(|s| s.features == features && s.values.len() <= index);
        let first = self.scores.iter().filter(|s| s.method == self.scores[0].method);
        first.map(|s| s.features).filter(of_all).collect()
    }

    /// The largest of them; 0 where there is none.
    pub(super) fn most(&self, index: usize) -> usize {
        self.measured(index).into_iter().max().unwrap_or(0)
    }
}

/// Key, heading and look of the scores in tables, and their axes in plots.
fn metrics(task: Task) -> [(&'static str, &'static str, Show, Axis); 4] {
    let error = Axis::log(task.error());
    let (predicted, error) = match task {
        Task::Regression => (Show::Fixed(3), error),
        Task::Classification => (Show::Percent(2), error.in_percent()),
    };
    let matrix = Axis::log("relative error of the kernel matrix").in_percent();
    let likelihood = Axis::linear("mean negative log likelihood");
    [
        ("error", "kernel error", Show::Percent(2), matrix),
        ("kl", "KL", Show::Number(4), Axis::log("KL divergence from the exact process")),
        ("test", task.error(), predicted, error),
        ("likelihood", "neg. log likelihood", Show::Fixed(3), likelihood),
    ]
}

/// A table of the first scores, with deviations or without.
pub(super) fn table(
    title: &str,
    (method, count): ((&str, &str), &str),
    (task, most, deviations): (Task, usize, bool),
    scores: &[Scores],
) -> Table {
    let mut table = Table::new(title).words(method.0, method.1).numbers(count, "D");
    let columns = &metrics(task)[..most];
    for (key, heading, show, _) in columns {
        table = table.column(key, heading, *show);
        table = if deviations { table.column(&format!("{key}_deviation"), "±", *show) } else { table };
    }
    for score in scores {
        let mut cells = vec![Cell::text(score.method), Cell::count(score.features)];
        for (index, (_, _, show, _)) in columns.iter().enumerate() {
            let value = score.values.get(index);
            cells.push(value.map(|v| v.mean).cell(*show));
            cells.extend(deviations.then(|| value.and_then(Statistic::spread).cell(*show)));
        }
        table.push(cells);
    }
    table
}

/// File name and plot of one metric of all methods, data sets with numbers of features side by side.
pub(super) fn side_by_side(
    title: &str,
    (task, index): (Task, usize),
    methods: &[Method],
    places: &[(&Found, usize)],
) -> (&'static str, Plot) {
    let (file, _, _, y) = metrics(task)[index].clone();
    let names = places.iter().map(|(found, features)| format!("{} {}d", found.data, features / found.dim)).collect();
    let subtitle = "Mean over draws; bars are standard errors. Lower is better.";
    let mut plot = Plot::new(title, subtitle, Axis::named("data set and number of features", names), y);
    for (m, Method { name, .. }) in methods.iter().enumerate() {
        let line = plot.line(name, Style::Scatter);
        for (place, (found, features)) in places.iter().enumerate() {
            if let Some(value) = found.of(name, *features, index) {
                // Beside each other, as bars would stand.
                let x = place as f64 + 0.72 / methods.len() as f64 * (m as f64 - 0.5 * (methods.len() as f64 - 1.0));
                line.push(value.point(x), format!("{name}, {}, D = {features}\n{:.4}", found.data, value.mean));
            }
        }
    }
    (file, plot)
}

/// The scores of all methods, numbers of features within methods; and the regularisation of each draw.
pub(super) fn compare(run: &Run<'_>, setting: &Setting<'_>) -> Outcome<(Vec<Scores>, Vec<f64>)> {
    let methods = (setting.methods)(1.0);
    let names: Vec<&'static str> = methods.iter().map(|m| m.name).collect();
    let Setting { data, label, exact, most, features, matrices, .. } = setting;
    let base = format!("{data} {label} exact={exact:?} most={most:?}");
    let mut found = vec![Vec::new(); names.len() * features.len()];
    let mut chosen = Vec::new();
    for draw in 0..setting.draws as u64 {
        // Made when a number is first asked for that is not known yet.
        let mut problem = Lazy { run, setting, seed: Seed::new(run.seed).child(draw).number(), made: None };
        let mut regularizer = f64::NAN;
        if let Some(widest) = features.iter().copied().filter(|&f| (setting.judged)(names[0], f)).max() {
            let (count, rows) = setting.validation.unwrap_or((widest, usize::MAX));
            let (count, of) =
                (count.min(widest), setting.validation.map_or(String::new(), |_| format!(" rows={rows}")));
            let key = format!("{base} regularisation D={count}{of}; draw {draw}");
            regularizer = run.value(&key, &mut || problem.get()?.regularizer(count, rows))?;
            chosen.push(regularizer);
        }
        for (m, name) in names.iter().enumerate() {
            for (k, &count) in features.iter().enumerate() {
                let key = format!(
                    "{base} {} D={count} matrices={matrices} regularisation={regularizer}; draw {draw}",
                    methods[m].key()
                );
                found[m * features.len() + k].push(run.values(&key, &mut || {
                    let problem = problem.get()?;
                    let first = problem.draw(m, count, 0)?;
                    let mut values = problem.kernel_errors(m, count, &first, *matrices)?;
                    if (setting.judged)(name, count) {
                        values.extend(problem.scores(&first, regularizer)?);
                    }
                    Ok(values)
                })?);
            }
        }
    }
    let scores = found.into_iter().enumerate().map(|(i, draws)| {
        let errors: Vec<f64> = draws.iter().flat_map(|values| &values[..*matrices]).copied().collect();
        let others = Statistic::of_each(&draws).into_iter().skip(*matrices);
        let values = [Statistic::of(&errors)].into_iter().chain(others).collect();
        Scores { method: names[i / features.len()], features: features[i % features.len()], values }
    });
    Ok((scores.collect(), chosen))
}

struct Lazy<'a> {
    run: &'a Run<'a>,
    setting: &'a Setting<'a>,
    seed: u64,
    made: Option<Problem>,
}

impl Lazy<'_> {
    fn get(&mut self) -> Outcome<&mut Problem> {
        if self.made.is_none() {
            self.made = Some(Problem::load(self.run, self.setting, self.seed)?);
        }
        Ok(self.made.as_mut().expect("just made"))
    }
}

/// Means and variances, one column each.
pub(super) type Posterior = (Array2<f64>, Array2<f64>);

/// The divergence of one posterior from another.
pub(super) fn divergence(approximate: &Posterior, exact: &Posterior) -> Outcome<f64> {
    Ok(gaussian_kl(approximate.0.view(), approximate.1.view(), exact.0.view(), exact.1.view())?)
}

/// A data set with its splits.
struct Problem {
    task: Task,
    classes: usize,
    methods: Vec<Method>,
    train: Rows,
    test: Rows,
    sub_train: Rows,
    sub_test: Rows,
    /// Signal variance of regressions.
    signal: f64,
    kernel: Arc<dyn Kernel>,
    /// Exact kernel matrix of the first test rows.
    matrix: Array2<f64>,
    /// The exact process, and the regularisation it was made with.
    exact: Option<(f64, Posterior)>,
    seed: u64,
}

impl Problem {
    fn load(run: &Run<'_>, setting: &Setting<'_>, seed: u64) -> Outcome<Problem> {
        let (train, test) = run.data.split(setting.data, seed)?;
        let classes = 1 + train.targets.iter().chain(&test.targets).fold(0.0f32, |a, b| a.max(*b)) as usize;
        let (train, test) = (train.sample(setting.most.0, seed), test.sample(setting.most.1, seed));
        let (train, test) = setting.prepared.both(&train, &test, setting.unit)?;
        let (sub_train, sub_test) = (train.first(setting.exact.0), test.first(setting.exact.1));
        let length_scale = median_distance(sub_train.rows.view(), Seed::new(seed), MATRIX_ROWS)?;
        let methods = (setting.methods)(length_scale);
        let kernel = methods[0].spec.kernel()?;
        let first = sub_test.first(MATRIX_ROWS);
        let matrix = kernel_matrix(&*kernel, first.rows.view(), first.rows.view())?;
        let signal = sub_train.targets.var(0.0);
        let (task, exact) = (setting.task, None);
        Ok(Problem { task, classes, methods, train, test, sub_train, sub_test, signal, kernel, matrix, exact, seed })
    }

    /// The regularisation with the best likelihood of a tenth of some training rows, found with the baseline.
    fn regularizer(&mut self, features: usize, rows: usize) -> Outcome<f64> {
        let some = self.train.first(rows);
        let (train, held_out) = some.cut(some.len() - some.len() / 10);
        let values = self.task.regularizers();
        let map = self.methods[0].draw(features, self.seed, self.sub_train.rows.view())?;
        let Map::Real(map) = map else { unreachable!("baselines are real") };
        if self.task == Task::Classification {
            let gp = GpClassifier::new(map, values[0])?.with_classes(self.classes)?;
            let found = gp.validate(&values, &mut train.source()?, &mut held_out.source()?, &mut Context::default())?;
            return Ok(values[found.best]);
        }
        // Sums over rows do not depend on the noise.
        let mut gram = self.regressor(map.clone(), values[0])?.accumulator(1, &Context::default())?;
        train.source()?.for_each_block(&mut |block| gram.push_rows(&map, block))?;
        let moments = gram.finish();
        let mut best = (f64::INFINITY, values[0]);
        for noise in values {
            let loss = self.regressor(map.clone(), noise)?.fit_moments(moments.clone())?.judge(&held_out)?.1;
            if loss < best.0 {
                best = (loss, noise);
            }
        }
        Ok(best.1)
    }

    fn regressor<M: FeatureMap<Real = f64>>(&self, map: M, noise: f64) -> Outcome<GpRegressor<M>> {
        Ok(GpRegressor::new(map, noise)?.with_signal_variance(self.signal)?.with_normalized_targets(false))
    }

    fn fit(&self, map: &Map, regularizer: f64, train: &Rows) -> Outcome<Box<dyn Process>> {
        match map {
            Map::Real(map) => self.fit_on(map.clone(), regularizer, train),
            Map::Complex(map) => self.fit_on(map.clone(), regularizer, train),
        }
    }

    fn fit_on<M>(&self, map: M, regularizer: f64, train: &Rows) -> Outcome<Box<dyn Process>>
    where
        M: FeatureMap<Real = f64> + Clone + 'static,
    {
        let (mut source, mut context) = (train.source()?, Context::default());
        Ok(match self.task {
            Task::Regression => Box::new(self.regressor(map, regularizer)?.fit_stream(&mut source, &mut context)?),
            Task::Classification => {
                let gp = GpClassifier::new(map, regularizer)?.with_classes(self.classes)?;
                Box::new(gp.fit_stream(&mut source, &mut context)?)
            }
        })
    }

    /// Posterior of the exact process at the test rows of the comparison.
    fn exact(&mut self, regularizer: f64) -> Outcome<&Posterior> {
        if self.exact.as_ref().is_none_or(|(made_with, _)| *made_with != regularizer) {
            let (kernel, rows) = (Arc::clone(&self.kernel), self.sub_test.rows.view());
            let (mut source, mut context) = (self.sub_train.source()?, Context::default());
            let posterior = match self.task {
                Task::Regression => {
                    let gp = ExactGpRegressor::new(kernel, regularizer)?.with_signal_variance(self.signal)?;
                    let gp = gp.with_normalized_targets(false);
                    gp.fit_stream(&mut source, &mut context)?.predict_with_variance(rows)?
                }
                Task::Classification => {
                    let gp = ExactGpClassifier::new(kernel, regularizer)?.with_classes(self.classes)?;
                    gp.fit_stream(&mut source, &mut context)?.latents(rows)?
                }
            };
            self.exact = Some((regularizer, posterior));
        }
        Ok(&self.exact.as_ref().expect("just made").1)
    }

    /// A map of method `m`; number 0 is the one that is judged.
    fn draw(&self, m: usize, features: usize, number: u64) -> Outcome<Map> {
        let seed = Seed::new(self.seed).child(number).number();
        self.methods[m].draw(features, seed, self.sub_train.rows.view())
    }

    /// Relative errors of the kernel matrix, one per map, the first of which is there already.
    fn kernel_errors(&self, m: usize, features: usize, first: &Map, count: usize) -> Outcome<Vec<f64>> {
        let rows = self.sub_test.rows.slice_axis(Side(0), (0..self.matrix.nrows()).into());
        let error = |map: &Map| -> Outcome<f64> {
            Ok(relative_frobenius_error(self.matrix.view(), map.estimate(rows)?.view())?)
        };
        let mut errors = vec![error(first)?];
        for number in 1..count as u64 {
            errors.push(error(&self.draw(m, features, number)?)?);
        }
        Ok(errors)
    }

    /// Divergence from the exact process, error of predictions and mean negative log likelihood of a map.
    fn scores(&mut self, map: &Map, regularizer: f64) -> Outcome<Vec<f64>> {
        let mut fitted = self.fit(map, regularizer, &self.sub_train)?;
        let posterior = fitted.posterior(self.sub_test.rows.view())?;
        let divergence = divergence(&posterior, self.exact(regularizer)?)?;
        // Where there are no more rows, the same process predicts.
        if self.train.len() != self.sub_train.len() {
            fitted = self.fit(map, regularizer, &self.train)?;
        }
        let (loss, likelihood) = fitted.judge(&self.test)?;
        Ok(vec![divergence, loss, likelihood])
    }
}

/// A process on features.
trait Process {
    /// Means and variances of latent values.
    fn posterior(&self, rows: ArrayView2<'_, f64>) -> Outcome<Posterior>;

    /// Error and mean negative log likelihood of predictions.
    fn judge(&self, test: &Rows) -> Outcome<(f64, f64)>;
}

impl<M: FeatureMap<Real = f64>> Process for GpRegressorModel<M> {
    fn posterior(&self, rows: ArrayView2<'_, f64>) -> Outcome<Posterior> {
        Ok(self.predict_with_variance(rows)?)
    }

    fn judge(&self, test: &Rows) -> Outcome<(f64, f64)> {
        let (means, variances) = self.predict_with_variance(test.rows.view())?;
        let spread = variances.column(0).mapv(|v| v + self.noise_variance());
        let likelihood = mean_negative_log_likelihood(test.targets.column(0), means.column(0), spread.view())?;
        Ok((normalized_mse(test.targets.view(), means.view())?, likelihood))
    }
}

impl<M: FeatureMap<Real = f64>> Process for GpClassifierModel<M> {
    fn posterior(&self, rows: ArrayView2<'_, f64>) -> Outcome<Posterior> {
        Ok(self.latents(rows)?)
    }

    fn judge(&self, test: &Rows) -> Outcome<(f64, f64)> {
        let probabilities = self.probabilities(test.rows.view())?;
        let (labels, predicted) = (test.classes(), probabilities.rows().into_iter().map(winner).collect::<Vec<_>>());
        Ok((error_rate(&labels, &predicted)?, class_negative_log_likelihood(&labels, probabilities.view())?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner::feature::{Directions, FourierSpec, SphericalSpec};

    fn rows() -> Array2<f64> {
        Array2::from_shape_fn((20, 3), |(i, j)| ((3 * i + j) as f64).sin())
    }

    #[test]
    fn phasors_estimate_the_kernel_of_their_cosines_and_sines() {
        let spec = SphericalSpec { degree: 4, a: 4.0, projection: Directions::Gaussian, ..SphericalSpec::default() };
        let method = Method { name: "", spec: spec.into(), form: Form::Phasors };
        let complex = method.draw(40, 7, rows().view()).unwrap();
        let real = Method { form: Form::Real, ..method }.draw(80, 7, rows().view()).unwrap();
        assert!(matches!((&complex, &real), (Map::Complex(c), Map::Real(r)) if 2 * c.output_dim() == r.output_dim()));
        let (a, b) = (complex.estimate(rows().view()).unwrap(), real.estimate(rows().view()).unwrap());
        assert!((&a - &b).iter().all(|e| e.abs() < 1e-12));
    }

    /// Eighty rows of two inputs and a wave.
    fn toy(folder: &std::path::Path) {
        let mut text = String::from("a,b,y\n");
        for i in 0..80 {
            let (a, b) = ((0.7 * f64::from(i)).sin(), (1.3 * f64::from(i)).cos());
            text += &format!("{a},{b},{}\n", (3.0 * a).sin() + b);
        }
        std::fs::create_dir_all(folder.join("toy")).unwrap();
        std::fs::write(folder.join("toy/data.csv.gz"), text).unwrap();
    }

    fn methods(length_scale: f64) -> Vec<Method> {
        let spec = FourierSpec { length_scale: length_scale.into(), ..FourierSpec::default() };
        vec![Method::real("a", spec.clone()), Method::real("b", FourierSpec { projection: Directions::Sorf, ..spec })]
    }

    fn setting<'a>(judged: &'a dyn Fn(&str, usize) -> bool, most: usize) -> Setting<'a> {
        Setting {
            data: "toy",
            label: "Gaussian".into(),
            task: Task::Regression,
            prepared: Prepared::Standardized,
            unit: false,
            methods: &methods,
            features: vec![8, 20],
            exact: (72, 8),
            most: (most, 8),
            matrices: 2,
            judged,
            validation: None,
            draws: 3,
        }
    }

    #[test]
    fn processes_are_fitted_where_they_are_asked_for_and_matrices_compared_everywhere() {
        super::super::tests::with_run("judged", |run, folder| {
            toy(folder);
            let (scores, chosen) = compare(&run, &setting(&|name, features| name == "a" || features == 8, 72)).unwrap();
            let found: Vec<_> = scores.iter().map(|s| (s.method, s.features, s.values.len())).collect();
            assert_eq!(found, [("a", 8, 4), ("a", 20, 4), ("b", 8, 4), ("b", 20, 1)]);
            assert!(scores.iter().all(|s| s.values[0].count == 6 && s.values[0].mean > 0.0));
            assert_eq!(chosen.len(), 3);
            let (scores, chosen) = compare(&run, &setting(&|_, _| false, 72)).unwrap();
            assert!(chosen.is_empty() && scores.iter().all(|s| s.values.len() == 1));
        });
    }

    #[test]
    fn one_process_serves_both_comparisons_where_rows_are_the_same() {
        super::super::tests::with_run("shared", |run, folder| {
            toy(folder);
            let mut problem = Problem::load(&run, &setting(&|_, _| true, 72), 5).unwrap();
            assert_eq!(problem.train.rows, problem.sub_train.rows);
            let map = problem.draw(0, 20, 0).unwrap();
            let once = problem.scores(&map, 0.1).unwrap();
            // A second process on the same rows, as where there are more of them.
            let again = problem.fit(&map, 0.1, &problem.train).unwrap().judge(&problem.test).unwrap();
            assert_eq!((once[1], once[2]), again);
        });
    }

    #[test]
    fn the_noise_chosen_from_shared_sums_is_that_of_separate_fits() {
        super::super::tests::with_run("noise", |run, folder| {
            toy(folder);
            let mut problem = Problem::load(&run, &setting(&|_, _| true, 72), 5).unwrap();
            let chosen = problem.regularizer(20, 50).unwrap();
            let (train, held_out) = problem.train.first(50).cut(45);
            assert_eq!((train.rows.nrows(), held_out.rows.nrows()), (45, 5));
            let map = problem.methods[0].draw(20, 5, problem.sub_train.rows.view()).unwrap();
            let loss = |noise: f64| problem.fit(&map, noise, &train).unwrap().judge(&held_out).unwrap().1;
            let best = Task::Regression.regularizers().into_iter().map(loss).fold(f64::INFINITY, f64::min);
            assert_eq!(loss(chosen), best);
        });
    }

    #[test]
    fn estimates_are_inner_products_of_features() {
        let map = FourierSpec { n_components: 10, ..FourierSpec::default() }.build::<f64>(3).unwrap();
        let features = map.transform(rows().view()).unwrap();
        let expected = features.dot(&features.t());
        assert!((&Map::Real(map).estimate(rows().view()).unwrap() - &expected).iter().all(|e| e.abs() < 1e-12));
    }
}
