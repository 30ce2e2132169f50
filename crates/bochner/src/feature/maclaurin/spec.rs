use super::optimized::{PairMeans, optimize};
use super::pairwise::{Law, Question, pair_means};
use super::random::DegreeMeasure;
use super::{Allocation, Input, Length, Maclaurin, Part, Power, RealParts, one_pass};
use crate::error::{Error, Result, check_count, check_dim};
use crate::feature::DrawCost;
use crate::feature::product_sketch::DynSketch;
use crate::feature::spec::{Candidate, scaled_pattern};
use crate::feature::{Describe, DynComplexMap, DynMap, Lift, MAX_DEGREE, Prediction, SketchKind};
use crate::kernel::AnyKernel;
use crate::kernel::{self, DotProductKernel, Kernel, PowerSeries, Scaled};
use crate::parallel::Parallel;
use crate::parameter::{Domain, Value, Word, description, words};
use crate::preprocess::{ColumnStatistics, LengthScale};
use crate::projection::Sampling;
use crate::random::{Role, Seed, Stream};
use crate::scalar::{Real, Scalar};
use crate::special::ln_gamma;
use crate::variance::{Kind, PairStats, Sketch, Weights, map_pairs, random_maclaurin};
use ndarray::{Array2, ArrayView2, Axis};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;

/// Kernels with Maclaurin features; written as a name, or as the list of coefficients `a₀, a₁, …`.
#[derive(Debug, Clone, PartialEq)]
pub enum MaclaurinKernel {
    /// `exp(−|x−y|²/2ℓ²) = e^(−|x|²/2ℓ²) e^(−|y|²/2ℓ²) Σ ⟨x, y⟩ⁿ/(n! ℓ²ⁿ)`.
    Gaussian,
    /// `exp(⟨x, y⟩/ℓ²)`.
    Exponential,
    /// `(γ⟨x, y⟩ + ν)ᵖ`.
    Polynomial,
    /// `Σ aₙ⟨x, y⟩ⁿ`.
    Coefficients(Vec<f64>),
}

const NAMES: &[&str] = &["gaussian", "exponential", "polynomial"];

impl MaclaurinKernel {
    /// What may be written for it.
    pub const DOMAIN: Domain = Domain::Either(&[
        Domain::Word(&[
            Word::new(NAMES[0], "`exp(-|x - y|^2 / (2 length_scale^2))`."),
            Word::new(NAMES[1], "`exp(x.y / length_scale^2)`."),
            Word::new(NAMES[2], "`(gamma x.y + coef0)^degree`."),
        ]),
        Domain::List(&Domain::NON_NEGATIVE),
    ]);
}

impl Serialize for MaclaurinKernel {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self {
            MaclaurinKernel::Gaussian => serializer.serialize_str(NAMES[0]),
            MaclaurinKernel::Exponential => serializer.serialize_str(NAMES[1]),
            MaclaurinKernel::Polynomial => serializer.serialize_str(NAMES[2]),
            MaclaurinKernel::Coefficients(coefficients) => coefficients.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for MaclaurinKernel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let expected = "one of `gaussian`, `exponential`, `polynomial` or a list of coefficients";
        Value::read(deserializer, expected, |value| match value {
            Value::Word(word) => match NAMES.iter().position(|name| name == word)? {
                0 => Some(MaclaurinKernel::Gaussian),
                1 => Some(MaclaurinKernel::Exponential),
                _ => Some(MaclaurinKernel::Polynomial),
            },
            Value::List(list) => {
                list.iter().map(Value::number).collect::<Option<_>>().map(MaclaurinKernel::Coefficients)
            }
            _ => None,
        })
    }
}

words! {
    /// How draws are given to degrees.
    pub enum AllocationRule {
        /// By the least mean squared error over pairs of a sample.
        Optimized = "optimized",
        /// By chance.
        Random = "random",
    }
}

words! {
    /// Where the optimised allocation takes its mean variances from.
    pub enum Statistics {
        /// All pairs of the sample: exact, quadratic in its rows.
        Pairwise = "pairwise",
        /// Moments of the sample from one pass over it: an estimate, linear in its rows. With normal weights, whose products
        /// have heavy tails, the allocation may be several times worse than the best.
        OnePass = "one_pass",
    }
}

/// Most rows of a sample; of more a part is drawn.
const SAMPLE_ROWS: usize = 5000;
/// Rows whose pairs decide between real and complex-to-real weights.
const CHOICE_ROWS: usize = 150;
/// Blocks of columns from which an incomplete one no longer decides between them, and looking would only cost.
const CHOICE_BLOCKS: usize = 8;

/// A power series with non-negative coefficients.
#[derive(Debug, Clone)]
pub(super) struct Series {
    /// Logarithms of the coefficients of a finite series; empty for the exponential one.
    ln_coefficients: Vec<f64>,
    /// Whether it is `Σ uⁿ/n!`.
    pub(super) infinite: bool,
}

impl Series {
    fn finite(coefficients: impl Iterator<Item = f64>) -> Self {
        Series { ln_coefficients: coefficients.map(libm::log).collect(), infinite: false }
    }

    pub(super) fn ln_coefficient(&self, n: usize) -> f64 {
        match self.infinite {
            true => -ln_gamma(n as f64 + 1.0),
            false => self.ln_coefficients.get(n).copied().unwrap_or(f64::NEG_INFINITY),
        }
    }

    fn coefficient(&self, n: usize) -> f64 {
        libm::exp(self.ln_coefficient(n))
    }

    /// Number of coefficients of a finite series.
    pub(super) fn len(&self) -> usize {
        self.ln_coefficients.len()
    }

    /// Highest degree a map can have.
    fn highest(&self, most: u32) -> usize {
        let most = most as usize;
        match self.infinite {
            true => most,
            false => most.min(self.ln_coefficients.iter().rposition(|&ln| ln > f64::NEG_INFINITY).unwrap_or(0)),
        }
    }
}

description! {
    /// Description of Maclaurin features, with the parameters and defaults of the Python class `MaclaurinFeatures`.
    ///
    /// An optimised allocation depends on data: [`resolve`](Describe::resolve) makes it, stores it in
    /// [`resolved`](Self::resolved), and the map is drawn from the description alone ever after.
    ///
    /// ```
    /// use bochner::feature::{Describe, FeatureMap, MaclaurinSpec};
    /// use ndarray::Array2;
    /// let rows = Array2::from_shape_fn((50, 4), |(i, j)| ((i * (j + 2)) as f64).sin());
    /// let spec = MaclaurinSpec { n_components: 301, length_scale: 2.0.into(), ..MaclaurinSpec::default() };
    /// let spec = spec.resolve(rows.view())?;
    /// let allocation = spec.resolved.as_ref().unwrap();
    /// assert_eq!(allocation.columns.iter().sum::<usize>(), 300);
    /// let map = spec.build::<f64>(4)?;
    /// assert_eq!(map.output_dim(), 301);
    /// # Ok::<(), bochner::Error>(())
    /// ```
    pub struct MaclaurinSpec {
        /// Budget of output columns, the constant among them. Random degrees of CtR maps may leave one of them unused, and
        /// kernels of degree 1 leave those that would break a complete block.
        n_components: usize = 1024, Domain::FEATURES, Size;
        /// The kernel to estimate, or the coefficients of a power series in the inner product.
        kernel: MaclaurinKernel = MaclaurinKernel::Gaussian, MaclaurinKernel::DOMAIN, Kernel;
        /// What rows are divided by, one for all columns or one for each; `median` takes the median distance between rows.
        /// Rows of numbers are a matrix by which rows are multiplied.
        length_scale: LengthScale = LengthScale::Same(1.0), Domain::LENGTH_SCALE, Kernel,
            only for kernel = ["gaussian", "exponential"];
        /// Exponent of the polynomial kernel `(gamma x.y + coef0)^degree`, at most 64.
        degree: u32 = 3, Domain::Whole(0, MAX_DEGREE as u64), Kernel, only for kernel = ["polynomial"];
        /// Factor of the inner product in the polynomial kernel.
        gamma: f64 = 1.0, Domain::POSITIVE, Kernel, only for kernel = ["polynomial"];
        /// Constant inside the power of the polynomial kernel.
        coef0: f64 = 1.0, Domain::NON_NEGATIVE, Kernel, only for kernel = ["polynomial"];
        /// How columns are given to degrees: for the least mean squared error over pairs of rows, or by chance.
        allocation: AllocationRule = AllocationRule::Optimized, Domain::Word(AllocationRule::CHOICES), Draw;
        /// Where the optimized allocation takes its statistics from: all pairs of rows, or one pass over them.
        statistics: Statistics = Statistics::Pairwise, Domain::Word(Statistics::CHOICES), Draw,
            only for allocation = ["optimized"];
        /// Random directions of the sketches of each degree, as in polynomial sketches.
        sketch: SketchKind = SketchKind::TensorSrht, Domain::Word(SketchKind::CHOICES), Draw;
        /// Real directions, or complex ones, which usually vary less: `ctr` has the real and the imaginary parts of complex
        /// features as columns, `complex` the complex features themselves (complex output).
        weights: Weights = Weights::Ctr, Domain::Word(Weights::CHOICES), Draw;
        /// How coordinates are sampled for the sketch `tensor_srht`.
        srht: Sampling = Sampling::Upsampled, Domain::Word(Sampling::CHOICES), Draw, only for sketch = ["tensor_srht"];
        /// Largest degree of the optimized allocation, at most 64.
        max_degree: u32 = 10, Domain::Whole(1, MAX_DEGREE as u64), Size, only for allocation = ["optimized"];
        /// Smallest degree at which the optimized allocation may end, where the budget has room for it.
        min_degree: u32 = 2, Domain::Whole(0, MAX_DEGREE as u64), Size, only for allocation = ["optimized"];
        /// Whether the mean of the rows is subtracted, which only the Gaussian kernel allows; for others rows stay.
        #[serde(alias = "centre")]
        center: bool = true, Domain::Flag, Draw, only for kernel = ["gaussian"];
        /// Number `c` of the random degrees' law `(c - 1) c^(-n - 1)`.
        ratio: f64 = 2.0, Domain::Above(1.0, f64::INFINITY), Draw, only for allocation = ["random"];
        /// Whether random degrees of an infinite series leave the constant out, which is then exact. Finite series always do.
        exact_constant: bool = false, Domain::Flag, Draw, only for allocation = ["random"];
        /// Degree at which the series is cut for random degrees: such a map is biased. Without it nothing is cut.
        cut: Option<u32> = None, Domain::Optional(&Domain::COUNT), Draw, only for allocation = ["random"];
    }
    map "maclaurin" for ["gaussian", "exponential", "polynomial"], "Maclaurin features":
        "One sketch for each degree of a power series in the inner product.";
    besides {
        /// What data have decided.
        resolved: Option<Allocation> = None;
    }
}

/// What a map is made of: copies of the constant with their value, and sketches of degrees.
struct Plan {
    constants: usize,
    ln_constant: f64,
    parts: Vec<Term>,
}

/// One sketch of a degree; a degree has one, or two that share its features.
#[derive(Debug, Clone, Copy)]
struct Term {
    degree: u32,
    draws: usize,
    /// Real ones may stand in a map that is complex-to-real.
    weights: Weights,
    /// `ln` of the factor of its features.
    ln_weight: f64,
    /// Whether another sketch has the draws of this degree's seed.
    beside: bool,
}

/// Label of the seed's children for the second sketch of a degree.
const BESIDE: u64 = 1 << 33;

impl MaclaurinSpec {
    fn is_gaussian(&self) -> bool {
        self.kernel == MaclaurinKernel::Gaussian
    }

    fn has_length_scale(&self) -> bool {
        matches!(self.kernel, MaclaurinKernel::Gaussian | MaclaurinKernel::Exponential)
    }

    fn polynomial(&self) -> Result<kernel::Polynomial> {
        if self.degree > MAX_DEGREE {
            return Err(Error::parameter("degree", "at most 64", self.degree));
        }
        kernel::Polynomial::new(self.degree, self.gamma, self.coef0)
    }

    pub(super) fn series(&self) -> Result<Series> {
        Ok(match &self.kernel {
            MaclaurinKernel::Gaussian | MaclaurinKernel::Exponential => {
                Series { ln_coefficients: Vec::new(), infinite: true }
            }
            MaclaurinKernel::Polynomial => {
                let kernel = self.polynomial()?;
                Series::finite((0..=self.degree).map(|n| kernel.coefficient(n)))
            }
            MaclaurinKernel::Coefficients(coefficients) => {
                Series::finite(PowerSeries::new(coefficients.clone())?.coefficients().iter().copied())
            }
        })
    }

    fn check(&self) -> Result<Series> {
        check_count("n_components", self.n_components)?;
        check_count("max_degree", self.max_degree as usize)?;
        if self.max_degree > MAX_DEGREE {
            return Err(Error::parameter("max_degree", "at most 64", self.max_degree));
        }
        self.series()
    }

    fn columns_per_draw(&self) -> usize {
        if self.weights == Weights::Ctr { 2 } else { 1 }
    }

    /// Groups of `group` columns the budget has room for beside a constant of `constants` columns.
    fn columns_beside(&self, constants: usize, group: usize) -> Result<usize> {
        match self.n_components.saturating_sub(constants) / group {
            0 => Err(Error::parameter(
                "n_components",
                if group == 2 {
                    "at least 3 for weights=\"ctr\" beside a constant"
                } else {
                    "at least 2 beside a constant"
                },
                self.n_components,
            )),
            groups => Ok(groups),
        }
    }

    /// Draws of random degrees the budget has room for.
    fn draws_beside(&self, constants: usize) -> Result<usize> {
        self.columns_beside(constants, self.columns_per_draw())
    }

    /// What the degrees are drawn with.
    fn drawn(&self) -> Weights {
        self.resolved.as_ref().map_or(self.weights, |resolved| resolved.weights)
    }

    fn kind(&self) -> Kind {
        self.sketch.law(self.srht)
    }

    pub(super) fn input(&self, dim: usize, centre: Option<Vec<f64>>) -> Result<Input> {
        let length_scales = match &self.length_scale {
            _ if !self.has_length_scale() => vec![1.0],
            scale => {
                scale.check(dim)?;
                match scale {
                    LengthScale::PerInput(scales) => scales.clone(),
                    LengthScale::Same(scale) => vec![*scale],
                    LengthScale::Metric(_) => Vec::new(),
                    LengthScale::Median => unreachable!("checked above"),
                }
            }
        };
        let metric = match &self.length_scale {
            LengthScale::Metric(matrix) if self.has_length_scale() => Some(matrix.clone()),
            _ => None,
        };
        Ok(Input { dim, centre, length_scales, metric, gaussian: self.is_gaussian() })
    }

    /// [`resolve`](Describe::resolve) with rows in single precision, without a copy of them.
    ///
    /// # Errors
    /// As [`resolve`](Describe::resolve).
    pub fn resolve_single(&self, sample: ArrayView2<'_, f32>) -> Result<Self> {
        self.resolve_any(sample)
    }

    fn resolve_any<T: Real>(&self, sample: ArrayView2<'_, T>) -> Result<Self> {
        let series = self.check()?;
        check_count("number of columns of rows", sample.ncols())?;
        crate::rows::check_finite("rows", sample, 0)?;
        let chosen;
        let rows = if sample.nrows() > SAMPLE_ROWS {
            let mut picks =
                Stream::new(Seed::new(self.seed), Role::Split, 1).distinct(sample.nrows() as u64, SAMPLE_ROWS);
            picks.sort_unstable();
            let picks: Vec<usize> = picks.into_iter().map(|i| i as usize).collect();
            chosen = sample.select(Axis(0), &picks);
            chosen.view()
        } else {
            sample
        };
        let mut spec = self.clone();
        if self.has_length_scale() {
            spec.length_scale = self.length_scale.resolve(rows, Seed::new(self.seed))?;
        }
        let mut centre = None;
        if self.center && self.is_gaussian() {
            let parts: Vec<ColumnStatistics> = sample
                .axis_chunks_iter(Axis(0), 512)
                .in_parallel()
                .map(|block| {
                    let mut seen = ColumnStatistics::new(block.ncols());
                    seen.push(block).map(|()| seen)
                })
                .into_iter()
                .collect::<Result<_>>()?;
            let mut seen = ColumnStatistics::new(sample.ncols());
            parts.iter().try_for_each(|part| seen.merge(part))?;
            centre = Some(seen.mean().to_vec());
        }
        let input = spec.input(rows.ncols(), centre)?;
        let mut weights = self.weights;
        let (columns, variance, bias) = match self.allocation {
            AllocationRule::Optimized => {
                weights = spec.better_weights(rows, &input, &series)?;
                MaclaurinSpec { weights, ..spec.clone() }.optimize(rows, &input, &series)?
            }
            AllocationRule::Random => (Vec::new(), f64::NAN, f64::NAN),
        };
        let finite = |v: f64| if v.is_nan() { 0.0 } else { v };
        spec.resolved = Some(Allocation {
            input_dim: rows.ncols(),
            centre: input.centre,
            columns,
            weights,
            variance: finite(variance),
            bias: finite(bias),
        });
        Ok(spec)
    }

    pub(super) fn means<T: Real>(&self, rows: ArrayView2<'_, T>, input: &Input, series: &Series) -> Result<PairMeans> {
        let law = Law { kind: self.kind(), weights: self.weights };
        let question = Question { input, series, law, most: series.highest(self.max_degree) };
        match self.statistics {
            Statistics::Pairwise => pair_means(rows, question),
            Statistics::OnePass => one_pass::pair_means(rows, question, Seed::new(self.seed)),
        }
    }

    /// Real weights where complex-to-real ones are asked for and have more error: few columns in few dimensions, where
    /// blocks of real columns are complete before half as many complex draws are.
    ///
    /// Decided by the variances themselves, which know of incomplete blocks and odd columns, over all pairs of a few rows.
    fn better_weights<T: Real>(&self, rows: ArrayView2<'_, T>, input: &Input, series: &Series) -> Result<Weights> {
        let block = rows.ncols().next_power_of_two();
        if self.weights != Weights::Ctr || rows.nrows() < 2 || self.n_components >= CHOICE_BLOCKS * block {
            return Ok(self.weights);
        }
        let n = CHOICE_ROWS.min(rows.nrows());
        let picks = Stream::new(Seed::new(self.seed), Role::Split, 2).distinct(rows.nrows() as u64, n);
        let picks: Vec<usize> = picks.into_iter().map(|i| i as usize).collect();
        let part = rows.select(Axis(0), &picks).mapv(|v| Real::to_f64(v));
        let error = |weights| -> Result<f64> {
            let mut spec = MaclaurinSpec { weights, statistics: Statistics::Pairwise, ..self.clone() };
            let (columns, variance, bias) = spec.optimize(part.view(), input, series)?;
            let (input_dim, centre) = (part.ncols(), input.centre.clone());
            spec.resolved = Some(Allocation { input_dim, centre, columns, weights, variance, bias });
            let variance = spec.variance(part.view(), part.view())?;
            Ok((variance.sum() - variance.diag().sum()) / (n * (n - 1)) as f64 + bias)
        };
        Ok(if error(Weights::Real)? < error(Weights::Ctr)? { Weights::Real } else { Weights::Ctr })
    }

    fn optimize<T: Real>(
        &self,
        rows: ArrayView2<'_, T>,
        input: &Input,
        series: &Series,
    ) -> Result<(Vec<usize>, f64, f64)> {
        if series.highest(self.max_degree) == 0 {
            return Ok((vec![0], 0.0, 0.0));
        }
        let total = self.columns_beside(usize::from(series.coefficient(0) > 0.0), 1)?;
        let (mut columns, variance, bias) = optimize(&self.means(rows, input, series)?, self.min_degree, total)?;
        // Complete blocks have degree 1 exactly; columns beyond them, which no other degree wants, would spoil that.
        let block = Law { kind: self.kind(), weights: self.weights }.block(rows.ncols());
        if let Some(linear) = columns.get_mut(1).filter(|linear| block > 1 && **linear > block) {
            *linear -= *linear % block;
        }
        Ok((columns, variance, bias))
    }

    /// The resolved parts: refuses a description for other rows, or one that data have yet to decide about.
    fn decided(&self, input_dim: usize) -> Result<Option<&Allocation>> {
        match &self.resolved {
            Some(resolved) => {
                check_dim("number of columns of rows", resolved.input_dim, input_dim)?;
                if let Some(centre) = &resolved.centre {
                    check_dim("number of columns of the centre", input_dim, centre.len())?;
                }
                let drawn = resolved.weights;
                if drawn != self.weights && (self.weights, drawn) != (Weights::Ctr, Weights::Real) {
                    return Err(Error::parameter(
                        "weights of the allocation",
                        "those of the map",
                        format!("{drawn:?}"),
                    ));
                }
                Ok(Some(resolved))
            }
            None if self.allocation == AllocationRule::Optimized => Err(Error::Unsupported {
                what: "allocation \"optimized\"",
                reason: "it depends on data; resolve the description with rows first".into(),
            }),
            None => Ok(None),
        }
    }

    /// The law of random degrees, and whether the constant is exact beside them.
    fn measure(&self, series: &Series) -> Result<(DegreeMeasure, bool)> {
        let last = match self.cut {
            Some(cut) => {
                check_count("cut", cut as usize)?;
                cut.min(MAX_DEGREE) as usize
            }
            None => MAX_DEGREE as usize,
        };
        if !series.infinite && self.cut.is_none() && series.highest(u32::MAX) > last {
            return Err(Error::parameter(
                "degree",
                "at most 64 for random degrees without a cut",
                series.highest(u32::MAX),
            ));
        }
        if series.infinite && self.cut.is_none() {
            let first = u32::from(self.exact_constant);
            let measure = DegreeMeasure::geometric(|n| series.coefficient(n as usize), first, self.ratio)?;
            return Ok((measure, self.exact_constant));
        }
        let coefficients: Vec<f64> = (0..=last).map(|n| series.coefficient(n)).collect();
        Ok((DegreeMeasure::restricted(&coefficients, 1, self.ratio)?, true))
    }

    fn plan(&self, input_dim: usize) -> Result<Plan> {
        let series = self.check()?;
        check_count("number of columns of rows", input_dim)?;
        let resolved = self.decided(input_dim)?;
        let constant = series.ln_coefficient(0);
        let exact = Plan {
            constants: usize::from(constant > f64::NEG_INFINITY),
            ln_constant: 0.5 * constant,
            parts: Vec::new(),
        };
        if series.highest(MAX_DEGREE) == 0 {
            return Ok(exact);
        }
        let part = |n: usize, draws: usize, ln: f64| Term {
            degree: n as u32,
            draws,
            weights: self.drawn(),
            ln_weight: 0.5 * (series.ln_coefficient(n) + ln),
            beside: false,
        };
        match self.allocation {
            AllocationRule::Optimized => {
                let columns = &resolved.expect("decided above").columns;
                if columns.len() > MAX_DEGREE as usize + 1 || columns.first().is_some_and(|&d| d > 0) {
                    return Err(Error::parameter(
                        "columns",
                        "numbers for the degrees 0 to 64, the first of them 0",
                        columns.len(),
                    ));
                }
                let active = columns.iter().enumerate().filter(|(n, d)| **d > 0 && series.coefficient(*n) > 0.0);
                Ok(Plan {
                    parts: active.flat_map(|(n, &columns)| self.terms(part(n, columns, 0.0))).collect(),
                    ..exact
                })
            }
            AllocationRule::Random => {
                let (measure, constant_exact) = self.measure(&series)?;
                let total = self.draws_beside(if constant_exact { exact.constants } else { 0 })?;
                let counts = measure.counts(total, Seed::new(self.seed));
                let drawn = measure.degrees().iter().zip(counts).filter(|(_, count)| *count > 0);
                let mut plan = if constant_exact { exact } else { Plan { constants: 0, ..exact } };
                for (degree, count) in drawn {
                    // √(a count/(μ D)) times a sketch that is divided by √count.
                    let ln = libm::log(count as f64 / (degree.probability * total as f64));
                    let term = part(degree.degree as usize, count, ln);
                    match term.degree {
                        // The constant needs no imaginary parts: their columns share it, so that the budget is used as promised.
                        0 => {
                            plan.constants = count * self.columns_per_draw();
                            plan.ln_constant = term.ln_weight - 0.5 * libm::log(plan.constants as f64);
                        }
                        _ => plan.parts.push(term),
                    }
                }
                Ok(plan)
            }
        }
    }

    /// The sketches that `columns` columns of a degree are made of; given as one of as many draws.
    ///
    /// In a map that is complex-to-real two columns are a draw, with two exceptions. Degree 1 of Hadamard blocks is real:
    /// a complete block of real columns has it exactly. And the last of an odd number of columns is a real sketch of its
    /// own: all columns count the same in the estimate, so that one of `c` has `1/c` of it.
    fn terms(&self, all: Term) -> Vec<Term> {
        let columns = all.draws;
        let exact = all.degree == 1 && self.sketch == SketchKind::TensorSrht;
        if all.weights != Weights::Ctr {
            return vec![all];
        }
        if exact || columns == 1 {
            return vec![Term { weights: Weights::Real, ..all }];
        }
        let share = |of: usize| all.ln_weight + 0.5 * libm::log(of as f64 / columns as f64);
        let draws = columns / 2;
        let mut terms = vec![Term { draws, ln_weight: share(2 * draws), ..all }];
        if columns % 2 == 1 {
            terms.push(Term { draws: 1, weights: Weights::Real, ln_weight: share(1), beside: true, ..all });
        }
        terms
    }

    /// The sketch of a term, for its variance.
    fn law(&self, dim: usize, term: &Term) -> Result<Sketch> {
        Sketch::new(self.kind(), term.weights, term.degree, term.draws, dim)
    }

    fn power<O: Scalar>(&self, dim: usize, term: &Term) -> Result<Power<O>> {
        Ok(match (self.drawn(), term.weights) {
            (Weights::Ctr, Weights::Real) => Power::Pairs(self.sketch_of(dim, term)?),
            _ => Power::Draws(self.sketch_of(dim, term)?),
        })
    }

    fn sketch_of<O: Scalar>(&self, dim: usize, term: &Term) -> Result<DynSketch<O>> {
        let Term { degree, draws, beside, .. } = *term;
        let seed = Seed::new(self.seed).child(u64::from(degree) + if beside { BESIDE } else { 0 });
        self.sketch.draw(self.srht, seed, degree, draws, Lift::IDENTITY, dim)
    }

    fn assemble<O: Scalar>(&self, input_dim: usize) -> Result<Maclaurin<O>> {
        let plan = self.plan(input_dim)?;
        let centre = self.resolved.as_ref().and_then(|resolved| resolved.centre.clone());
        let part = |term: &Term| {
            Ok(Part { degree: term.degree, ln_weight: term.ln_weight, sketch: self.power(input_dim, term)? })
        };
        let parts = plan.parts.iter().map(part).collect::<Result<Vec<_>>>()?;
        Maclaurin::new(self.input(input_dim, centre)?, plan.constants, plan.ln_constant, parts)
    }

    /// Rows as the sketches see them, before they are made unit rows.
    fn scaled(&self, rows: ArrayView2<'_, f64>) -> Result<(Input, Array2<f64>)> {
        let centre = self.resolved.as_ref().and_then(|resolved| resolved.centre.clone());
        let input = self.input(rows.ncols(), centre)?;
        let mut scaled = Array2::zeros(rows.dim());
        for (mut to, from) in scaled.axis_iter_mut(Axis(0)).zip(rows.axis_iter(Axis(0))) {
            input.scale(from.iter().copied(), to.as_slice_mut().expect("standard layout"));
        }
        Ok((input, scaled))
    }

    /// `k(x, y) − E[k̂(x, y)]` of every pair: what the degrees that the map leaves out amount to.
    ///
    /// Zero for random degrees without a cut.
    ///
    /// # Errors
    /// A description that has not been resolved, and rows of other lengths.
    pub fn bias(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        let series = self.check()?;
        check_dim("number of columns of y", x.ncols(), y.ncols())?;
        self.decided(x.ncols())?;
        let kept: Vec<u32> = match self.allocation {
            AllocationRule::Optimized => {
                self.plan(x.ncols())?.parts.iter().filter(|term| !term.beside).map(|term| term.degree).collect()
            }
            AllocationRule::Random if series.infinite && self.cut.is_none() => {
                return Ok(Array2::zeros((x.nrows(), y.nrows())));
            }
            AllocationRule::Random => self.measure(&series)?.0.degrees().iter().map(|d| d.degree).collect(),
        };
        let kernel = self.kernel()?;
        let exact = kernel::kernel_matrix(&*kernel, x, y)?;
        let ((input, x), (_, y)) = (self.scaled(x)?, self.scaled(y)?);
        // Logarithms once per degree and once per row, not for every degree of every pair.
        let of_degree = |n: u32| (n, series.ln_coefficient(n as usize));
        let (constant, kept) = (of_degree(0), kept.into_iter().map(of_degree).collect::<Vec<_>>());
        let mean = map_pairs(x.view(), y.view(), |stats| {
            let (u, v) = (stats.x_norm_sq.sqrt(), stats.y_norm_sq.sqrt());
            let cosine = if u > 0.0 && v > 0.0 { stats.dot / u / v } else { 0.0 };
            let (u, v) = (input.length(u), input.length(v));
            let term =
                |&(n, ln): &(u32, f64)| libm::exp(ln + u.ln_factor(n) + v.ln_factor(n)) * kernel::powu(cosine, n);
            term(&constant) + kept.iter().map(term).sum::<f64>()
        })?;
        Ok(exact - mean)
    }

    /// `f` of every pair of rows: statistics of their directions, and both lengths. Zero rows have the direction 0.
    fn map_unit_pairs(
        &self,
        x: ArrayView2<'_, f64>,
        y: ArrayView2<'_, f64>,
        f: impl Fn(&PairStats, Length, Length) -> f64 + Sync,
    ) -> Result<Array2<f64>> {
        let ((input, x), (_, y)) = (self.scaled(x)?, self.scaled(y)?);
        map_pairs(x.view(), y.view(), |stats| {
            let (u, v) = (stats.x_norm_sq.sqrt(), stats.y_norm_sq.sqrt());
            let unit = if u > 0.0 && v > 0.0 { stats.scaled(1.0 / u, 1.0 / v) } else { stats.scaled(0.0, 0.0) };
            f(&unit, input.length(u), input.length(v))
        })
    }
}

impl Describe for MaclaurinSpec {
    /// Degrees with columns for the least error, found from pairs of rows or from moments, and degrees drawn at random.
    fn candidates(kernel: &AnyKernel, _rows: ArrayView2<'_, f64>) -> Result<Vec<Candidate>> {
        let spec = MaclaurinSpec::default();
        let base = match kernel {
            AnyKernel::Gaussian(k) => MaclaurinSpec { length_scale: k.length_scale().into(), ..spec },
            AnyKernel::Exponential(k) => {
                let length_scale = k.length_scale().into();
                MaclaurinSpec { kernel: MaclaurinKernel::Exponential, length_scale, ..spec }
            }
            AnyKernel::Polynomial(k) => {
                let (degree, gamma, coef0) = (k.degree(), k.gamma(), k.coef0());
                MaclaurinSpec { kernel: MaclaurinKernel::Polynomial, degree, gamma, coef0, ..spec }
            }
            _ => return Ok(Vec::new()),
        };
        let (real, random) = (Weights::Real, AllocationRule::Random);
        Ok(vec![
            Candidate::new("Maclaurin, CtR", base.clone()),
            Candidate::new("Maclaurin, real", MaclaurinSpec { weights: real, ..base.clone() }),
            Candidate::new("Maclaurin, one pass", MaclaurinSpec { statistics: Statistics::OnePass, ..base.clone() }),
            Candidate::new(
                "Maclaurin, random",
                MaclaurinSpec { allocation: random, sketch: SketchKind::Rademacher, weights: real, ..base },
            ),
        ])
    }

    fn resolve(&self, sample: ArrayView2<'_, f64>) -> Result<Self> {
        self.resolve_any(sample)
    }

    /// Around the centre, where there is one: the features vanish far from it.
    fn probe(&self, input_dim: usize) -> Vec<f64> {
        let mut row = scaled_pattern(&self.clone().into(), input_dim);
        let centre = self.resolved.as_ref().and_then(|resolved| resolved.centre.as_ref());
        row.iter_mut().zip(centre.into_iter().flatten()).for_each(|(value, centre)| *value += centre);
        row
    }

    fn draw_cost(&self, input_dim: usize) -> DrawCost {
        let of_degree = |(i, &columns): (usize, &usize)| self.sketch.draw_cost(i as u32 + 1, columns, input_dim);
        match &self.resolved {
            Some(resolved) if !resolved.columns.is_empty() => {
                resolved.columns.iter().enumerate().map(of_degree).fold(DrawCost::default(), DrawCost::and)
            }
            // Most columns have low degrees.
            _ => self.sketch.draw_cost(2, self.n_components, input_dim),
        }
    }

    fn draw<R: Real>(&self, input_dim: usize) -> Result<DynMap<R>> {
        match self.drawn() {
            Weights::Real => Ok(Arc::new(self.assemble::<R>(input_dim)?)),
            Weights::Ctr => Ok(Arc::new(RealParts { inner: self.assemble::<R::Complex>(input_dim)? })),
            Weights::Complex => Err(Error::Unsupported {
                what: "real output",
                reason: "weights=\"complex\" has complex features; weights=\"ctr\" makes them real".into(),
            }),
        }
    }

    fn draw_complex<R: Real>(&self, input_dim: usize) -> Result<DynComplexMap<R>> {
        if self.weights != Weights::Complex {
            return Err(Error::parameter("weights", "\"complex\" for complex output", format!("{:?}", self.weights)));
        }
        Ok(Arc::new(self.assemble::<R::Complex>(input_dim)?))
    }

    fn kernel(&self) -> Result<Arc<dyn Kernel>> {
        Ok(match &self.kernel {
            MaclaurinKernel::Polynomial => Arc::new(self.polynomial()?),
            MaclaurinKernel::Coefficients(coefficients) => Arc::new(PowerSeries::new(coefficients.clone())?),
            MaclaurinKernel::Gaussian => {
                Scaled::by(&self.length_scale, |scale| Ok(Arc::new(kernel::Gaussian::new(scale)?)))?
            }
            MaclaurinKernel::Exponential => {
                Scaled::by(&self.length_scale, |scale| Ok(Arc::new(kernel::Exponential::new(scale)?)))?
            }
        })
    }

    /// Variance of the estimate over draws of the map: `Σ aₙ² Varₙ` for the allocation of the description; for random
    /// degrees their own variance as well, which has a closed form for independent draws.
    ///
    /// The mean squared error of an estimate adds the square of [`bias`](Self::bias).
    fn variance(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        let series = self.check()?;
        check_dim("number of columns of y", x.ncols(), y.ncols())?;
        self.decided(x.ncols())?;
        if self.allocation == AllocationRule::Random {
            if !matches!(self.sketch, SketchKind::Rademacher | SketchKind::Gaussian) {
                return Err(Error::Unsupported {
                    what: "variance",
                    reason: "with random degrees a closed form is known for sketch \"rademacher\" and \"gaussian\"; \
                             that of independent signs (variance_iid) is the figure to compare with"
                        .into(),
                });
            }
            return self.random_variance(x, y, self.kind(), &series);
        }
        let parts = self.plan(x.ncols())?.parts;
        let sketches = parts.iter().map(|term| self.law(x.ncols(), term)).collect::<Result<Vec<_>>>()?;
        self.map_unit_pairs(x, y, |unit, u, v| {
            let term = |(term, sketch): (&Term, &Sketch)| {
                // A feature's factor is √aₙ, the estimate's aₙ.
                let ln = 2.0 * term.ln_weight + u.ln_factor(term.degree) + v.ln_factor(term.degree);
                sketch.variance(unit) * libm::exp(2.0 * ln)
            };
            parts.iter().zip(&sketches).map(term).sum()
        })
    }

    fn variance_iid(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        let kind = if self.sketch == SketchKind::Gaussian { Kind::Gaussian } else { Kind::Rademacher };
        match self.allocation {
            AllocationRule::Random => self.random_variance(x, y, kind, &self.check()?),
            AllocationRule::Optimized => {
                let sketch = if kind == Kind::Gaussian { SketchKind::Gaussian } else { SketchKind::Rademacher };
                MaclaurinSpec { sketch, ..self.clone() }.variance(x, y)
            }
        }
    }
    /// The variance with the bias of degrees that were left out.
    fn prediction(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Prediction> {
        let (variance, closed_form) = self.known_variance(x, y)?;
        Ok(Prediction { bias: Some(self.bias(x, y)?), variance, closed_form })
    }
}

impl MaclaurinSpec {
    fn random_variance(
        &self,
        x: ArrayView2<'_, f64>,
        y: ArrayView2<'_, f64>,
        kind: Kind,
        series: &Series,
    ) -> Result<Array2<f64>> {
        let (measure, exact) = self.measure(series)?;
        let total = self.draws_beside(usize::from(exact && series.coefficient(0) > 0.0))? as f64;
        let drawn = measure.degrees();
        let coefficients: Vec<f64> = drawn.iter().map(|d| series.ln_coefficient(d.degree as usize)).collect();
        self.map_unit_pairs(x, y, |unit, u, v| {
            // Every degree with the weights of both rows in its coefficient, at unit rows.
            let mut mean = 0.0;
            let degrees: Vec<_> = drawn
                .iter()
                .zip(&coefficients)
                .map(|(&d, ln)| {
                    let coefficient = libm::exp(ln + u.ln_factor(d.degree) + v.ln_factor(d.degree));
                    mean += coefficient * kernel::powu(unit.dot, d.degree);
                    crate::variance::Degree { coefficient, ..d }
                })
                .collect();
            random_maclaurin(kind, self.weights, &degrees, mean, unit).expect("independent draws") / total
        })
    }
}
