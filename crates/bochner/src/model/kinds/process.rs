use super::{Answers, Load, ModelEntry, answers, load, load_complex, process_in_words};
use crate::error::{Result, check_dim};
use crate::feature::{DynComplexMap, DynMap, FeatureMap};
use crate::linalg::Cholesky;
use crate::model::evidence::Wide;
use crate::model::{
    ClassifierParts, Fitted, GpClassifierModel, GpParts, GpRegressor, GpRegressorModel, SviClassifierModel, SviParts,
};
use crate::parameter::{Domain, Entry, Value, description, words};
use crate::persist::{
    Drawable, Header, Stored, Tensor, Values, collect, malformed, shape, spread, triangle, triangle_len,
};
use crate::scalar::{Real, Scalar};
use ndarray::{Array2, ArrayView2};

words! {
    /// Which length scales a search for hyperparameters moves.
    pub enum LengthScaleSearch {
        /// All of them by one factor.
        Common = "common",
        /// One for each column.
        PerInput = "per_input",
        /// None.
        Fixed = "fixed",
    }
}

words! {
    /// How posteriors of Gaussian-process classification are found.
    pub enum Inference {
        /// By the Dirichlet transform: regressions, solved in one pass over the rows.
        Dirichlet = "dirichlet",
        /// Variational inference with mini-batches: many passes, and no matrix of features by features.
        Variational = "variational",
    }
}

description! {
    /// Parameters of Gaussian-process regression on features.
    pub struct GpRegressorSpec {
        /// Variance of the noise; where the search for hyperparameters starts, if there is one.
        noise: f64 = 0.1, Domain::POSITIVE, Fit;
        /// Variance of the process; where the search for hyperparameters starts, if there is one.
        signal: f64 = 1.0, Domain::POSITIVE, Fit;
        /// Whether targets are divided by their standard deviation, so that both variances are in units of the variance of
        /// the targets. Their mean is subtracted in any case.
        normalize_y: bool = true, Domain::Flag, Fit;
        /// Whether to choose length scale, signal and noise by maximum marginal likelihood, with exact gradients.
        optimizer: Option<String> = None, Domain::Optional(&Domain::Only("lbfgs")), Fit;
        /// Whether the search scales all length scales by one factor, finds one for each column, or keeps them.
        length_scales: LengthScaleSearch = LengthScaleSearch::Common, Domain::Word(LengthScaleSearch::CHOICES), Fit;
        /// Rows used in the search, drawn at random.
        max_rows: usize = 5000, Domain::COUNT, Size;
        /// Evaluations of the likelihood in the search.
        max_iter: usize = 60, Domain::COUNT, Size;
    }
    besides {}
}

description! {
    /// Parameters of Gaussian-process classification on features.
    pub struct GpClassifierSpec {
        /// Concentration of the labels' Dirichlet law: small values trust labels. Of several values the one with the lowest
        /// negative log likelihood of held-out labels is taken.
        alpha: Value = Value::Real(0.01), Domain::Either(&[Domain::POSITIVE, Domain::List(&Domain::POSITIVE)]), Fit;
        /// Variance of the processes; none takes the variance of the transformed labels, and 30 for variational inference.
        signal: Option<f64> = None, Domain::Optional(&Domain::POSITIVE), Fit;
        /// How posteriors are found. Variational inference has no use for `alpha`, takes real features, and has no sums.
        inference: Inference = Inference::Dirichlet, Domain::Word(Inference::CHOICES), Fit;
        /// Draws from the posteriors for probabilities; variational inference has 512.
        n_draws: usize = 512, Domain::COUNT, Size;
        /// Passes of variational inference over the rows, in their order but shuffled once before the first.
        max_iter: usize = 20, Domain::COUNT, Size;
        /// Size of its steps, which shrink to nothing over the last third.
        learning_rate: f64 = 0.02, Domain::POSITIVE, Fit;
        /// Share of the rows held out to choose between several values of alpha.
        validation_fraction: f64 = 0.1, Domain::Above(0.0, 1.0), Fit;
    }
    besides {}
}

impl GpRegressorSpec {
    /// A process on these features; searching for hyperparameters is for [`tune`](crate::tune).
    ///
    /// # Errors
    /// Parameters out of range, named.
    pub fn on<M: FeatureMap>(&self, map: M) -> Result<GpRegressor<M>> {
        self.check_parameters()?;
        let process = GpRegressor::new(map, self.noise)?.with_signal_variance(self.signal)?;
        Ok(process.with_normalized_targets(self.normalize_y))
    }
}

const REGRESSOR: &str = "gp_regressor";
const CLASSIFIER: &str = "gp_classifier";
const SVI: &str = "svi_classifier";

pub(super) const REGRESSION: ModelEntry = ModelEntry::new(
    REGRESSOR,
    "Gaussian process regression",
    "A Gaussian process on the features, seen through noise: predictions that know how sure they are.",
    "gp",
    GpRegressorSpec::PARAMETERS,
    load_complex::<
        GpRegressorModel<DynMap<f32>>,
        GpRegressorModel<DynMap<f64>>,
        GpRegressorModel<DynComplexMap<f32>>,
        GpRegressorModel<DynComplexMap<f64>>,
    >,
)
.answering(Answers::DEVIATIONS);

pub(super) const CLASSIFICATION: ModelEntry = ModelEntry::new(
    CLASSIFIER,
    "Gaussian process classification",
    "A Gaussian process for every class, on labels transformed to numbers: probabilities in one pass.",
    "gp",
    GpClassifierSpec::PARAMETERS,
    load_complex::<
        GpClassifierModel<DynMap<f32>>,
        GpClassifierModel<DynMap<f64>>,
        GpClassifierModel<DynComplexMap<f32>>,
        GpClassifierModel<DynComplexMap<f64>>,
    >,
)
.classification()
.answering(Answers::PROBABILITIES);

pub(super) const VARIATIONAL: ModelEntry = ModelEntry {
    entry: Entry {
        name: SVI,
        title: "Gaussian process classification by variational inference",
        about: "A Gaussian process for every class by stochastic variational inference, for very many features.",
        ..CLASSIFICATION.entry
    },
    option: "svi",
    load: load::<SviClassifierModel<DynMap<f32>>, SviClassifierModel<DynMap<f64>>>,
    ..CLASSIFICATION
};

/// Numbers in double precision, complex ones as pairs along a last axis.
fn tensor<W: Scalar<Real = f64>>(dims: &[usize], values: &[W]) -> Result<Tensor> {
    let mut flat = Vec::new();
    spread(values, &mut flat);
    Tensor::new(shape::<W>(dims), Values::F64(flat))
}

fn numbers<W: Scalar<Real = f64>>(stored: &Stored, name: &str, expected: usize) -> Result<Vec<W>> {
    match stored.tensor(name)?.values() {
        Values::F64(flat) => {
            let values: Vec<W> = collect(flat);
            if values.len() != expected {
                return Err(malformed(format!("array `{name}` holds {} numbers, not {expected}", values.len())));
            }
            Ok(values)
        }
        _ => Err(malformed(format!("array `{name}` is not of type f64"))),
    }
}

/// The triangle of a factor, row after row.
fn factor_tensor<W: Scalar<Real = f64>>(factor: &Cholesky<W>) -> Result<Tensor> {
    let order = factor.order();
    let mut values = Vec::with_capacity(order * (order + 1) / 2);
    (0..order).for_each(|i| values.extend_from_slice(factor.factor().row(i)));
    tensor(&[values.len()], &values)
}

fn factor_of<W: Scalar<Real = f64>>(stored: &Stored, name: &str, order: usize, norm_one: f64) -> Result<Cholesky<W>> {
    let entries: Vec<W> = numbers(stored, name, triangle_len(order)?)?;
    Cholesky::from_factor(triangle(order, &entries)?, norm_one)
}

/// Coefficients of a model whose features may be complex.
fn coefficients<W: Scalar<Real = f64>>(stored: &Stored, dim: usize, outputs: usize) -> Result<Array2<W>> {
    let values = numbers(stored, "coefficients", dim.saturating_mul(outputs))?;
    Array2::from_shape_vec((dim, outputs), values).map_err(|e| malformed(e.to_string()))
}

fn coefficients_tensor<W: Scalar<Real = f64>>(coefficients: &Array2<W>) -> Result<Tensor> {
    let values: Vec<W> = coefficients.iter().copied().collect();
    tensor(&[coefficients.nrows(), coefficients.ncols()], &values)
}

impl<M: FeatureMap + 'static> Fitted for GpRegressorModel<M> {
    on_map!(REGRESSOR);
    regresses!(answers);

    fn variances(&self, rows: ArrayView2<'_, f64>) -> Result<(Array2<f64>, Vec<f64>)> {
        let (_, variance) = self.predict_with_variance(rows.mapv(M::Real::from_f64).view())?;
        Ok((variance.mapv(Real::to_f64), self.observation_variances()))
    }

    fn sentences(&self) -> Vec<String> {
        process_in_words(self.report(), self.log_marginal_likelihood())
    }

    fn to_stored(&self) -> Result<Stored> {
        let (coefficients, factor, parts) = self.parts();
        let mut header = Header::of_map(REGRESSOR, self.map())?;
        header.insert("complex", &M::Output::IS_COMPLEX)?;
        header.insert("norm_one", &factor.norm_one())?;
        header.insert("process", parts)?;
        Ok(Stored::new(header)
            .with("coefficients", coefficients_tensor(coefficients)?)
            .with("factor", factor_tensor(factor)?))
    }
}

impl<M: Drawable + 'static> Load for GpRegressorModel<M> {
    fn load(stored: &Stored) -> Result<Self> {
        let parts: GpParts = stored.header.part("process")?;
        let map: M = stored.draw()?;
        let (dim, outputs) = (map.output_dim(), parts.scales.len());
        let factor = factor_of(stored, "factor", dim, stored.header.part("norm_one")?)?;
        GpRegressorModel::from_parts(map, coefficients(stored, dim, outputs)?, factor, parts)
    }
}

impl<M: FeatureMap + 'static> Fitted for GpClassifierModel<M> {
    on_map!(CLASSIFIER);
    gives_probabilities!(self, rows => self.probabilities(rows.mapv(M::Real::from_f64).view()));

    fn sentences(&self) -> Vec<String> {
        vec![format!("one process per class on Dirichlet targets with alpha {}", self.alpha())]
    }

    fn to_stored(&self) -> Result<Stored> {
        let (coefficients, factors, parts) = self.parts();
        let norms: Vec<f64> = factors.iter().map(Cholesky::norm_one).collect();
        let mut header = Header::of_map(CLASSIFIER, self.map())?;
        header.insert("complex", &M::Output::IS_COMPLEX)?;
        header.insert("norms_one", &norms)?;
        header.insert("process", parts)?;
        let stored = Stored::new(header).with("coefficients", coefficients_tensor(coefficients)?);
        factors
            .iter()
            .enumerate()
            .try_fold(stored, |stored, (c, factor)| Ok(stored.with(&format!("factor_{c}"), factor_tensor(factor)?)))
    }
}

impl<M: Drawable + 'static> Load for GpClassifierModel<M> {
    fn load(stored: &Stored) -> Result<Self> {
        let parts: ClassifierParts = stored.header.part("process")?;
        let norms: Vec<f64> = stored.header.part("norms_one")?;
        let map: M = stored.draw()?;
        let (dim, outputs) = (map.output_dim(), parts.means.len());
        check_dim("number of norms", outputs, norms.len())?;
        let factors = norms.into_iter().enumerate();
        let factors = factors.map(|(c, norm)| factor_of::<Wide<M>>(stored, &format!("factor_{c}"), dim, norm));
        let factors = factors.collect::<Result<_>>()?;
        GpClassifierModel::from_parts(map, coefficients(stored, dim, outputs)?, factors, parts)
    }
}

impl<R: Real, M: FeatureMap<Real = R, Output = R> + 'static> Fitted for SviClassifierModel<M> {
    on_map!(SVI);
    gives_probabilities!(self, rows => self.probabilities(rows.mapv(M::Real::from_f64).view()));

    fn sentences(&self) -> Vec<String> {
        vec![format!("the logarithm of the evidence is at least {:.1}", self.bound())]
    }

    fn to_stored(&self) -> Result<Stored> {
        let (means, logs, parts) = self.parts();
        let mut header = Header::of_map(SVI, self.map())?;
        header.insert("complex", &false)?;
        header.insert("process", parts)?;
        Ok(Stored::new(header)
            .with("means", coefficients_tensor(means)?)
            .with("log_variances", coefficients_tensor(logs)?))
    }
}

impl<R: Real, M: Drawable + FeatureMap<Real = R, Output = R> + 'static> Load for SviClassifierModel<M> {
    fn load(stored: &Stored) -> Result<Self> {
        let parts: SviParts = stored.header.part("process")?;
        SviClassifierModel::from_parts(stored.draw()?, stored.matrix("means")?, stored.matrix("log_variances")?, parts)
    }
}
