//! Gaussian processes on features beside the exact one: what the experiments of chapters 4 and 5 of the thesis measure.

use super::data::{Part, Prepared, apply};
use super::{Run, Statistic};
use bochner::feature::{Describe, DynComplexMap, DynMap, FeatureMap, Spec};
use bochner::kernel::{Kernel, kernel_matrix};
use bochner::linalg::gemm::matmul_nt;
use bochner::linalg::{Tile, TileMut, Workspace};
use bochner::metrics::{
    class_negative_log_likelihood, error_rate, gaussian_kl, mean_negative_log_likelihood, normalized_mse,
    relative_frobenius_error,
};
use bochner::model::exact::{ExactGpClassifier, ExactGpRegressor};
use bochner::model::{Fit, GpClassifier, GpClassifierModel, GpRegressor, GpRegressorModel};
use bochner::preprocess::median_distance;
use bochner::random::Seed;
use bochner::rows::{InMemory, RowSource};
use bochner::scalar::Scalar;
use bochner::{Complex, Error};
use bochner_table::failure::Outcome;
use bochner_table::score::winner;
use ndarray::{Array1, Array2, ArrayView2, Axis};
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
    pub(super) fn regularisers(self) -> Vec<f64> {
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
}

/// Rows with targets, as the models read them.
#[derive(Debug)]
struct Rows {
    rows: Array2<f64>,
    targets: Array2<f64>,
}

impl Rows {
    fn source(&self) -> Outcome<InMemory<'_, f64>> {
        Ok(InMemory::new(self.rows.view(), self.targets.view())?)
    }

    fn labels(&self) -> Vec<usize> {
        self.targets.iter().map(|&c| c as usize).collect()
    }

    /// The first `count` rows: they are in random order.
    fn first(&self, count: usize) -> Rows {
        let count = count.min(self.rows.nrows());
        let take = |all: &Array2<f64>| all.slice_axis(Axis(0), (0..count).into()).to_owned();
        Rows { rows: take(&self.rows), targets: take(&self.targets) }
    }

    /// A tenth for validation, the others for training.
    fn parted(&self) -> (Rows, Rows) {
        let at = self.rows.nrows() - self.rows.nrows() / 10;
        let cut = |all: &Array2<f64>| {
            let (a, b) = all.view().split_at(Axis(0), at);
            (a.to_owned(), b.to_owned())
        };
        let ((a, b), (s, t)) = (cut(&self.rows), cut(&self.targets));
        (Rows { rows: a, targets: s }, Rows { rows: b, targets: t })
    }
}

/// How many rows there are to be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// Training and test rows of the comparison with the exact process.
    pub(super) exact: (usize, usize),
    /// Training and test rows of the predictions.
    pub(super) most: (usize, usize),
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
    pub(super) sizes: Sizes,
    /// Maps drawn for the error of the kernel matrix, for every draw of rows.
    pub(super) matrices: usize,
    /// Whether a process is fitted with a method and so many features; kernel matrices are compared in any case.
    pub(super) judged: &'a dyn Fn(&str, usize) -> bool,
    pub(super) validation: Validation,
    pub(super) draws: usize,
}

/// With what the regularisation is chosen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Validation {
    /// Most features of the baseline.
    pub(super) features: usize,
    /// Most rows, of which a tenth is held out.
    pub(super) rows: usize,
}

impl Validation {
    /// All features that are judged and all rows.
    pub(super) const ALL: Validation = Validation { features: usize::MAX, rows: usize::MAX };

    fn key(self, widest: usize) -> String {
        match self.rows {
            usize::MAX => format!("regularisation D={}", widest.min(self.features)),
            rows => format!("regularisation D={} rows={rows}", widest.min(self.features)),
        }
    }
}

/// Relative error of the kernel matrix, KL divergence from the exact process, error of predictions, mean negative log
/// likelihood; only the first where no process was fitted.
#[derive(Debug, Clone)]
pub(super) struct Scores {
    pub(super) method: &'static str,
    pub(super) features: usize,
    pub(super) values: Vec<Statistic>,
}

/// The scores of all methods, numbers of features within methods; and the regularisation of each draw.
pub(super) fn compare(run: &Run<'_>, setting: &Setting<'_>) -> Outcome<(Vec<Scores>, Vec<f64>)> {
    let names: Vec<&'static str> = (setting.methods)(1.0).iter().map(|m| m.name).collect();
    let Setting { data, label, sizes, features, .. } = setting;
    let base = format!("{data} {label} exact={:?} most={:?}", sizes.exact, sizes.most);
    let mut found = vec![Vec::new(); names.len() * features.len()];
    let mut chosen = Vec::new();
    for draw in 0..setting.draws as u64 {
        let seed = Seed::new(run.seed).child(draw).number();
        let mut problem = None;
        let mut regulariser = f64::NAN;
        if let Some(widest) = features.iter().copied().filter(|&f| (setting.judged)(names[0], f)).max() {
            let key = format!("{base} {}; draw {draw}", setting.validation.key(widest));
            regulariser = run.values(&key, || {
                let Validation { features, rows } = setting.validation;
                Ok(vec![loaded(&mut problem, run, setting, seed)?.regulariser(widest.min(features), rows)?])
            })?[0];
            chosen.push(regulariser);
        }
        for (m, name) in names.iter().enumerate() {
            for (k, &features) in features.iter().enumerate() {
                let key = format!(
                    "{base} {name} D={features} matrices={} regularisation={regulariser}; draw {draw}",
                    setting.matrices
                );
                let values = run.values(&key, || {
                    let problem = loaded(&mut problem, run, setting, seed)?;
                    let first = problem.draw(m, features, 0)?;
                    let mut values = problem.kernel_errors(m, features, &first, setting.matrices)?;
                    if (setting.judged)(name, features) {
                        values.extend(match first {
                            Map::Real(map) => problem.scores(map, regulariser)?,
                            Map::Complex(map) => problem.scores(map, regulariser)?,
                        });
                    }
                    Ok(values)
                })?;
                found[m * setting.features.len() + k].push(values);
            }
        }
    }
    let scores = found.into_iter().enumerate().map(|(i, draws)| {
        let errors: Vec<f64> = draws.iter().flat_map(|values| &values[..setting.matrices]).copied().collect();
        let each = |v: usize| Statistic::of(&draws.iter().map(|values| values[v]).collect::<Vec<_>>());
        let others = (setting.matrices..draws.first().map_or(0, Vec::len)).map(each);
        let values = [Statistic::of(&errors)].into_iter().chain(others).collect();
        Scores { method: names[i / features.len()], features: features[i % features.len()], values }
    });
    Ok((scores.collect(), chosen))
}

/// The problem, made when a number is first asked for that is not known yet.
fn loaded<'a>(
    place: &'a mut Option<Problem>,
    run: &Run<'_>,
    setting: &Setting<'_>,
    seed: u64,
) -> Outcome<&'a mut Problem> {
    if place.is_none() {
        *place = Some(Problem::load(run, setting, seed)?);
    }
    Ok(place.as_mut().expect("just made"))
}

/// Means and variances of the exact process, and the regularisation they were made with.
type Posterior = (f64, Array2<f64>, Array2<f64>);

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
    exact: Option<Posterior>,
    seed: u64,
}

impl Problem {
    fn load(run: &Run<'_>, setting: &Setting<'_>, seed: u64) -> Outcome<Problem> {
        let (train, test) = run.data.split(setting.data, seed)?;
        let classes = 1 + train.targets.iter().chain(&test.targets).fold(0.0f32, |a, b| a.max(*b)) as usize;
        let (train, test) = (train.sample(setting.sizes.most.0, seed), test.sample(setting.sizes.most.1, seed));
        let steps = setting.prepared.fit(super::data::double(train.rows.view()).view(), setting.unit)?;
        let rows = |part: &Part| -> Outcome<Rows> {
            Ok(Rows { rows: apply(&steps, part.rows.view())?, targets: part.targets.mapv(f64::from) })
        };
        let (train, test) = (rows(&train)?, rows(&test)?);
        let (sub_train, sub_test) = (train.first(setting.sizes.exact.0), test.first(setting.sizes.exact.1));
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
    fn regulariser(&mut self, features: usize, rows: usize) -> Outcome<f64> {
        let (train, held_out) = self.train.first(rows).parted();
        let values = self.task.regularisers();
        let map = self.methods[0].draw(features, self.seed, self.sub_train.rows.view())?;
        let Map::Real(map) = map else { unreachable!("baselines are real") };
        if self.task == Task::Classification {
            let gp = GpClassifier::new(map, values[0])?.with_classes(self.classes)?;
            let found =
                gp.validate(&values, &mut train.source()?, &mut held_out.source()?, &mut bochner::Context::default())?;
            return Ok(values[found.best]);
        }
        // Sums over rows do not depend on the noise.
        let first = self.regressor(map.clone(), values[0])?;
        let mut gram = first.accumulator(1, &bochner::Context::default())?;
        train.source()?.for_each_block(&mut |block| gram.push_rows(&map, block))?;
        let moments = gram.finish();
        let mut best = (f64::INFINITY, values[0]);
        for noise in values {
            let model = self.regressor(map.clone(), noise)?.fit_moments(moments.clone())?;
            let loss = Fitted::Regression(model).judge(&held_out)?.1;
            if loss < best.0 {
                best = (loss, noise);
            }
        }
        Ok(best.1)
    }

    fn regressor<M: FeatureMap<Real = f64>>(&self, map: M, noise: f64) -> Outcome<GpRegressor<M>> {
        Ok(GpRegressor::new(map, noise)?.with_signal_variance(self.signal)?.with_normalized_targets(false))
    }

    fn fit<M: FeatureMap<Real = f64> + Clone>(&self, map: M, regulariser: f64, train: &Rows) -> Outcome<Fitted<M>> {
        Ok(match self.task {
            Task::Regression => Fitted::Regression(
                self.regressor(map, regulariser)?.fit_stream(&mut train.source()?, &mut bochner::Context::default())?,
            ),
            Task::Classification => {
                let gp = GpClassifier::new(map, regulariser)?.with_classes(self.classes)?;
                Fitted::Classification(gp.fit_stream(&mut train.source()?, &mut bochner::Context::default())?)
            }
        })
    }

    /// Posterior of the exact process at the test rows of the comparison.
    fn exact(&mut self, regulariser: f64) -> Outcome<&Posterior> {
        if self.exact.as_ref().is_none_or(|(made_with, ..)| *made_with != regulariser) {
            let (kernel, rows) = (Arc::clone(&self.kernel), self.sub_test.rows.view());
            let (means, variances) = match self.task {
                Task::Regression => {
                    let gp = ExactGpRegressor::new(kernel, regulariser)?.with_signal_variance(self.signal)?;
                    let gp = gp.with_normalized_targets(false);
                    gp.fit_stream(&mut self.sub_train.source()?, &mut bochner::Context::default())?
                        .predict_with_variance(rows)?
                }
                Task::Classification => {
                    let gp = ExactGpClassifier::new(kernel, regulariser)?.with_classes(self.classes)?;
                    gp.fit_stream(&mut self.sub_train.source()?, &mut bochner::Context::default())?.latents(rows)?
                }
            };
            self.exact = Some((regulariser, means, variances));
        }
        Ok(self.exact.as_ref().expect("just made"))
    }

    /// A map of method `m`; number 0 is the one that is judged.
    fn draw(&self, m: usize, features: usize, number: u64) -> Outcome<Map> {
        let seed = Seed::new(self.seed).child(number).number();
        self.methods[m].draw(features, seed, self.sub_train.rows.view())
    }

    /// Relative errors of the kernel matrix, one per map, the first of which is there already.
    fn kernel_errors(&self, m: usize, features: usize, first: &Map, count: usize) -> Outcome<Vec<f64>> {
        let rows = self.sub_test.rows.slice_axis(Axis(0), (0..self.matrix.nrows()).into());
        let error = |map: &Map| -> Outcome<f64> {
            let estimate = match map {
                Map::Real(map) => estimate(map, rows)?,
                Map::Complex(map) => estimate(map, rows)?,
            };
            Ok(relative_frobenius_error(self.matrix.view(), estimate.view())?)
        };
        let mut errors = vec![error(first)?];
        for number in 1..count as u64 {
            errors.push(error(&self.draw(m, features, number)?)?);
        }
        Ok(errors)
    }

    /// Divergence from the exact process, error of predictions and mean negative log likelihood of a map.
    fn scores<M: FeatureMap<Real = f64> + Clone>(&mut self, map: M, regulariser: f64) -> Outcome<Vec<f64>> {
        let fitted = self.fit(map.clone(), regulariser, &self.sub_train)?;
        let (means, variances) = fitted.posterior(self.sub_test.rows.view())?;
        let (_, exact_means, exact_variances) = self.exact(regulariser)?;
        let divergence = gaussian_kl(means.view(), variances.view(), exact_means.view(), exact_variances.view())?;
        // Where there are no more rows, the same process predicts.
        let fitted = match self.train.rows.nrows() == self.sub_train.rows.nrows() {
            true => fitted,
            false => self.fit(map, regulariser, &self.train)?,
        };
        let (loss, likelihood) = fitted.judge(&self.test)?;
        Ok(vec![divergence, loss, likelihood])
    }
}

/// A process on features.
enum Fitted<M: FeatureMap<Real = f64>> {
    Regression(GpRegressorModel<M>),
    Classification(GpClassifierModel<M>),
}

impl<M: FeatureMap<Real = f64>> Fitted<M> {
    /// Means and variances of latent values.
    fn posterior(&self, rows: ArrayView2<'_, f64>) -> Outcome<(Array2<f64>, Array2<f64>)> {
        Ok(match self {
            Fitted::Regression(model) => model.predict_with_variance(rows)?,
            Fitted::Classification(model) => model.latents(rows)?,
        })
    }

    /// Error and mean negative log likelihood of predictions.
    fn judge(&self, test: &Rows) -> Outcome<(f64, f64)> {
        match self {
            Fitted::Regression(model) => {
                let (means, variances) = model.predict_with_variance(test.rows.view())?;
                let spread: Array1<f64> = variances.column(0).mapv(|v| v + model.noise_variance());
                let likelihood = mean_negative_log_likelihood(test.targets.column(0), means.column(0), spread.view())?;
                Ok((normalized_mse(test.targets.view(), means.view())?, likelihood))
            }
            Fitted::Classification(model) => {
                let probabilities = model.probabilities(test.rows.view())?;
                let classes: Vec<usize> = probabilities.rows().into_iter().map(winner).collect();
                let labels = test.labels();
                let likelihood = class_negative_log_likelihood(&labels, probabilities.view())?;
                Ok((error_rate(&labels, &classes)?, likelihood))
            }
        }
    }
}

/// `Re⟨φ(x), φ(y)⟩` for all pairs of rows.
pub(super) fn estimate<M: FeatureMap<Real = f64>>(map: &M, rows: ArrayView2<'_, f64>) -> Outcome<Array2<f64>> {
    let features = map.transform(rows)?;
    let (n, m) = features.dim();
    let parts = if M::Output::IS_COMPLEX { 2 } else { 1 };
    let mut apart = vec![0.0; n * m * parts];
    for (row, to) in features.rows().into_iter().zip(apart.chunks_mut(m * parts)) {
        for (j, value) in row.iter().enumerate() {
            to[j] = value.re();
            if parts == 2 {
                to[m + j] = value.im();
            }
        }
    }
    let mut product = vec![0.0; n * n];
    let tile = Tile::new(&apart, n, m * parts);
    matmul_nt(tile, tile, TileMut::new(&mut product, n, n))?;
    Ok(Array2::from_shape_vec((n, n), product).expect("n times n numbers"))
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
        let Map::Complex(complex) = method.draw(40, 7, rows().view()).unwrap() else { panic!("complex") };
        let Map::Real(real) = Method { form: Form::Real, ..method }.draw(80, 7, rows().view()).unwrap() else {
            panic!("real")
        };
        assert_eq!((complex.output_dim(), real.output_dim()), (40, 80));
        let (a, b) = (estimate(&complex, rows().view()).unwrap(), estimate(&real, rows().view()).unwrap());
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
            prepared: Prepared::Standardised,
            unit: false,
            methods: &methods,
            features: vec![8, 20],
            sizes: Sizes { exact: (72, 8), most: (most, 8) },
            matrices: 2,
            judged,
            validation: Validation::ALL,
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
            let Map::Real(map) = problem.draw(0, 20, 0).unwrap() else { panic!("real") };
            let once = problem.scores(map.clone(), 0.1).unwrap();
            // A second process on the same rows, as where there are more of them.
            let again = problem.fit(map, 0.1, &problem.train).unwrap().judge(&problem.test).unwrap();
            assert_eq!((once[1], once[2]), again);
        });
    }

    #[test]
    fn the_noise_chosen_from_shared_sums_is_that_of_separate_fits() {
        super::super::tests::with_run("noise", |run, folder| {
            toy(folder);
            let mut problem = Problem::load(&run, &setting(&|_, _| true, 72), 5).unwrap();
            let chosen = problem.regulariser(20, 50).unwrap();
            let (train, held_out) = problem.train.first(50).parted();
            assert_eq!((train.rows.nrows(), held_out.rows.nrows()), (45, 5));
            let Map::Real(map) = problem.methods[0].draw(20, 5, problem.sub_train.rows.view()).unwrap() else {
                panic!("real")
            };
            let loss = |noise: f64| problem.fit(map.clone(), noise, &train).unwrap().judge(&held_out).unwrap().1;
            let best = Task::Regression.regularisers().into_iter().map(loss).fold(f64::INFINITY, f64::min);
            assert_eq!(loss(chosen), best);
        });
    }

    #[test]
    fn estimates_are_inner_products_of_features() {
        let map = FourierSpec { n_components: 10, ..FourierSpec::default() }.build::<f64>(3).unwrap();
        let features = map.transform(rows().view()).unwrap();
        let expected = features.dot(&features.t());
        assert!((&estimate(&map, rows().view()).unwrap() - &expected).iter().all(|e| e.abs() < 1e-12));
    }
}
