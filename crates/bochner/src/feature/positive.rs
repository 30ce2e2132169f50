use super::scales::divided;
use super::{Describe, DynMap, FeatureMap, Frequencies, Piece};
use crate::error::{Error, Result, check_count, check_positive};
use crate::feature::spec::Candidate;
use crate::feature::{Directions, DrawCost};
use crate::kernel::AnyKernel;
use crate::kernel::{Exponential, Kernel, Scaled};
use crate::linalg::{Factor, Tile, TileMut, Workspace, cos_sin, exp, exp_in_place, maximum};
use crate::parameter::{Domain, description};
use crate::preprocess::LengthScale;
use crate::projection::{Cotangents, DenseGaussian, Orthogonal, Parts, Projection};
use crate::random::Seed;
use crate::scalar::Real;
use crate::variance::{Softmax, softmax_matrix, softmax_orthogonal_matrix};
use ndarray::{Array2, ArrayView2};
use std::sync::Arc;

/// Random features of the exponential kernel `exp(⟨x, y⟩/ℓ²)`.
///
/// With `M` standard normal directions `wⱼ` and rows divided by `ℓ`,
///
/// - positive: `φ(x) = M^(-1/2) exp(-|x|²/2) (exp wⱼᵀx)ⱼ`, `M` features;
/// - hyperbolic: `φ(x) = (2M)^(-1/2) exp(-|x|²/2) (exp wⱼᵀx)ⱼ, then (exp -wⱼᵀx)ⱼ`, `2M` features;
/// - trigonometric: `φ(x) = M^(-1/2) exp(|x|²/2) (cos wⱼᵀx)ⱼ, then (sin wⱼᵀx)ⱼ`, `2M` features.
///
/// # Estimate
/// Unbiased, with independent directions or with Haar-orthogonal blocks. With independent ones the variance is
/// `k² (e^(|x+y|²) - 1)/M`, `(1 - e^(-|x+y|²))/2` times that for hyperbolic features and
/// `e^(|x|²+|y|²) (1 - e^(-|x-y|²))²/2M` for trigonometric ones ([`crate::variance::softmax`]): the first two are accurate
/// where the kernel is small, the third where it is large. Positive features stay positive, so that weighted means made of
/// them stay weighted means.
///
/// # Range
/// Positive and hyperbolic features are finite for every row, since `w·x - |x|²/2 ≤ (w·x/|x|)²/2`; beyond some ten length
/// scales they fall below the smallest number of the type. The growth of trigonometric ones is the kernel's own: rows whose
/// `exp(|x|²/2)` overflows are refused. [`map_tile_scaled`](FeatureMap::map_tile_scaled) leaves the norms' factor out, and
/// the largest exponent with it.
///
/// # Cost
/// That of the projection, and one vectorised exponential per feature.
///
/// # References
/// Choromanski et al. 2021 (positive features), §2; formulas in `docs/mathematics/positive_features.md`.
#[derive(Debug)]
pub struct Positive<P: Projection> {
    frequencies: Frequencies<P>,
    kind: Softmax,
    length_scale: f64,
}

impl<P: Projection> Clone for Positive<P> {
    fn clone(&self) -> Self {
        Positive { frequencies: self.frequencies.clone(), kind: self.kind, length_scale: self.length_scale }
    }
}

impl<R: Real, P: Projection<Real = R, Output = R>> Positive<P> {
    /// Features from the directions of `projection`, each standard normal.
    ///
    /// # Errors
    /// A length scale that is not positive.
    pub fn new(projection: P, kind: Softmax, length_scale: f64) -> Result<Self> {
        check_positive("length_scale", length_scale)?;
        let frequencies = Frequencies::new(projection).with_length_scale(LengthScale::Same(length_scale))?;
        Ok(Positive { frequencies, kind, length_scale })
    }

    /// Number of directions `M`.
    fn directions(&self) -> usize {
        self.frequencies.len()
    }

    /// `|x|²/2ℓ²`, in double precision: it stands in exponents.
    fn half_norm_sq(&self, row: &[R]) -> f64 {
        let scaled = |v: &R| Real::to_f64(*v) / self.length_scale;
        0.5 * row.iter().map(|v| scaled(v) * scaled(v)).sum::<f64>()
    }

    /// `ln` of the factor that does not depend on the row.
    fn ln_scale(&self) -> f64 {
        -0.5 * libm::log(self.output_dim().max(1) as f64)
    }

    /// `rⱼ`, the same for all directions.
    fn factor(factor: Factor<'_, R>) -> R {
        match factor {
            Factor::Same(factor) => factor,
            Factor::Each(_) => unreachable!("directions of the exponential kernel have no radii"),
        }
    }
}

impl<R: Real, P: Projection<Real = R, Output = R>> FeatureMap for Positive<P> {
    type Real = R;
    type Output = R;

    fn input_dim(&self) -> usize {
        self.frequencies.projection().input_dim()
    }

    fn output_dim(&self) -> usize {
        if self.kind == Softmax::Positive { self.directions() } else { 2 * self.directions() }
    }

    fn map_tile(&self, rows: Tile<'_, R>, out: TileMut<'_, R>, work: &mut Workspace<R>) {
        let (mut first, mut second) = out.split_columns_at(self.directions());
        self.frequencies.for_each_row(rows, work, &mut |i, columns, projected, factor| {
            let half = self.half_norm_sq(rows.row(i));
            let to = &mut first.row_mut(i)[columns.clone()];
            if self.kind == Softmax::Trigonometric {
                let scale = R::from_f64(libm::exp(half) / (self.directions() as f64).sqrt());
                return cos_sin(projected, factor, scale, to, &mut second.row_mut(i)[columns]);
            }
            let (factor, shift) = (Self::factor(factor), R::from_f64(half - self.ln_scale()));
            exp(projected, factor, shift, to);
            if self.kind == Softmax::Hyperbolic {
                exp(projected, -factor, shift, &mut second.row_mut(i)[columns]);
            }
        });
    }

    fn map_tile_scaled(
        &self,
        rows: Tile<'_, R>,
        mut out: TileMut<'_, R>,
        exponents: &mut [f64],
        work: &mut Workspace<R>,
    ) {
        let m = self.directions();
        for (i, exponent) in exponents.iter_mut().enumerate() {
            *exponent = self.half_norm_sq(rows.row(i));
        }
        if self.kind == Softmax::Trigonometric {
            let (cos, sin) = out.split_columns_at(m);
            let scale = R::from_f64(1.0 / (m as f64).sqrt());
            return self.frequencies.cos_sin(rows, scale, Parts::new(cos, sin), work);
        }
        let hyperbolic = self.kind == Softmax::Hyperbolic;
        let mut common = R::ONE;
        self.frequencies.for_each_row(rows, work, &mut |i, columns, projected, factor| {
            common = Self::factor(factor);
            let row = out.row_mut(i);
            row[columns.clone()].copy_from_slice(projected);
            if hyperbolic {
                row[m + columns.start..m + columns.end].iter_mut().zip(projected).for_each(|(o, p)| *o = -*p);
            }
        });
        for (i, exponent) in exponents.iter_mut().enumerate() {
            let row = out.row_mut(i);
            // The largest feature is 1: the constant factor joins the exponent, too.
            let most = common * maximum(row);
            exp_in_place(row, common, most);
            *exponent = Real::to_f64(most) - *exponent + self.ln_scale();
        }
    }

    fn pull_tile(&self, rows: Tile<'_, R>, from: Cotangents<'_, R>, mut out: TileMut<'_, R>, work: &mut Workspace<R>) {
        let m = self.directions();
        let (mut features, mut sums) = (work.take(2 * m), vec![0.0; rows.rows()]);
        self.frequencies.pull_rows(rows, out.reborrow(), work, &mut |i, columns, values, factor| {
            let half = self.half_norm_sq(rows.row(i));
            let (first, second) = features[..2 * columns.len()].split_at_mut(columns.len());
            let incoming = from.re.row(i);
            let to_first = &incoming[columns.clone()];
            let to_second =
                if self.kind == Softmax::Positive { &[] } else { &incoming[m + columns.start..m + columns.end] };
            let factor = Self::factor(factor);
            // Derivatives of both features in the projected value, over the features: ±1, or each other.
            if self.kind == Softmax::Trigonometric {
                let scale = R::from_f64(libm::exp(half) / (m as f64).sqrt());
                cos_sin(values, Factor::Same(factor), scale, first, second);
                for (j, v) in values.iter_mut().enumerate() {
                    *v = factor * (first[j] * to_second[j] - second[j] * to_first[j]);
                }
            } else {
                let shift = R::from_f64(half - self.ln_scale());
                exp(values, factor, shift, first);
                if self.kind == Softmax::Hyperbolic {
                    exp(values, -factor, shift, second);
                } else {
                    second.fill(R::ZERO);
                }
                for (j, v) in values.iter_mut().enumerate() {
                    let minus = if to_second.is_empty() { R::ZERO } else { second[j] * to_second[j] };
                    *v = factor * (first[j] * to_first[j] - minus);
                }
            }
            let product = |a: &[R], b: &[R]| -> f64 { a.iter().zip(b).map(|(a, b)| Real::to_f64(*a * *b)).sum() };
            sums[i] += product(first, to_first) + product(second, to_second);
        });
        // exp(∓|x|²/2ℓ²) in front of all features.
        let sign = if self.kind == Softmax::Trigonometric { 1.0 } else { -1.0 };
        for (i, sum) in sums.into_iter().enumerate() {
            let slope = R::from_f64(sign * sum / (self.length_scale * self.length_scale));
            out.row_mut(i).iter_mut().zip(rows.row(i)).for_each(|(o, x)| *o += slope * *x);
        }
        work.give(features);
    }

    fn check_tile(&self, rows: Tile<'_, R>) -> Result<()> {
        if self.kind != Softmax::Trigonometric {
            return Ok(());
        }
        let most = libm::log(Real::to_f64(R::max_value()));
        for i in 0..rows.rows() {
            let half = self.half_norm_sq(rows.row(i));
            if half >= most {
                let name = R::NAME;
                let reason = format!(
                    "has |x|²/2ℓ² = {half:.4}, beyond which exp overflows in {name} ({most:.4}): the kernel itself does; \
                     use a larger length_scale"
                );
                return Err(Error::Row { row: i, reason });
            }
        }
        Ok(())
    }

    fn pieces(&self) -> Result<Piece<R>> {
        let rate = 0.5 / (self.length_scale * self.length_scale);
        if self.kind == Softmax::Trigonometric {
            let waves = self.frequencies.waves(1.0 / (self.directions() as f64).sqrt()).number("rate", rate);
            return Ok(Piece::chain([waves, Piece::new("side_by_side")]));
        }
        Ok(Piece::new("exponentials")
            .directions("weights", &self.frequencies.vectors())
            .number("rate", rate)
            .number("shift", self.ln_scale())
            .number("both", f64::from(u8::from(self.kind == Softmax::Hyperbolic))))
    }

    fn tile_rows(&self) -> usize {
        self.frequencies.tile_rows()
    }
}

description! {
    /// Description of features of the exponential kernel, with the parameters and defaults of the Python class
    /// `PositiveFeatures`.
    ///
    /// ```
    /// use bochner::feature::{Describe, FeatureMap, PositiveSpec};
    /// let spec = PositiveSpec { n_components: 4096, ..PositiveSpec::default() };
    /// let features = spec.build::<f64>(3)?.transform(ndarray::array![[0.3, 0.1, -0.2], [0.2, 0.5, 0.1]].view())?;
    /// assert!(features.iter().all(|&f| f > 0.0));
    /// let estimate = features.row(0).dot(&features.row(1));
    /// assert!((estimate - 0.09f64.exp()).abs() < 0.1);
    /// # Ok::<(), bochner::Error>(())
    /// ```
    pub struct PositiveSpec {
        /// Budget of output columns; one fewer is used where they come in pairs and the budget is odd.
        n_components: usize = 1024, Domain::FEATURES, Size;
        /// What rows are divided by, one number for all columns or one for each; `median` takes the median distance between
        /// rows. Rows of numbers are a matrix by which rows are multiplied.
        length_scale: LengthScale = LengthScale::Same(1.0), Domain::LENGTH_SCALE, Kernel;
        /// Whether directions are orthogonal in blocks: unbiased as well, and never a larger variance for positive features.
        orthogonal: bool = true, Domain::Flag, Draw;
        /// One exponential per direction; those of both signs, which vary half as much where the kernel is small; or cosines and
        /// sines, accurate where the kernel is large but of both signs.
        kind: Softmax = Softmax::Positive, Domain::Word(Softmax::CHOICES), Draw;
    }
    map "positive" for ["exponential"], "positive features":
        "Exponentials of projections, whose inner products estimate the exponential kernel.";
}

impl PositiveSpec {
    /// Number of directions `M`.
    ///
    /// # Errors
    /// A budget without room for one.
    pub fn directions(&self) -> Result<usize> {
        check_count("n_components", self.n_components)?;
        match self.kind {
            Softmax::Positive => Ok(self.n_components),
            _ if self.n_components < 2 => {
                Err(Error::parameter("n_components", "at least 2 for features in pairs", self.n_components))
            }
            _ => Ok(self.n_components / 2),
        }
    }
}

impl Describe for PositiveSpec {
    fn candidates(kernel: &AnyKernel, _rows: ArrayView2<'_, f64>) -> Result<Vec<Candidate>> {
        let AnyKernel::Exponential(k) = kernel else { return Ok(Vec::new()) };
        let base = PositiveSpec { length_scale: k.length_scale().into(), ..PositiveSpec::default() };
        let named = |kind: Softmax| Candidate::new(kind.name(), PositiveSpec { kind, ..base.clone() });
        Ok([Softmax::Positive, Softmax::Hyperbolic, Softmax::Trigonometric].map(named).into())
    }

    fn draw_cost(&self, input_dim: usize) -> DrawCost {
        let directions = if self.orthogonal { Directions::Orthogonal } else { Directions::Gaussian };
        directions.draw_cost(self.n_components, input_dim)
    }

    fn draw<R: Real>(&self, input_dim: usize) -> Result<DynMap<R>> {
        let (seed, m) = (Seed::new(self.seed), self.directions()?);
        check_count("number of columns of rows", input_dim)?;
        divided(&self.length_scale, input_dim, |scale| {
            Ok(if self.orthogonal {
                Arc::new(Positive::new(Orthogonal::<R>::new(seed, input_dim, m)?, self.kind, scale)?)
            } else {
                Arc::new(Positive::new(DenseGaussian::<R>::new(seed, input_dim, m)?, self.kind, scale)?)
            })
        })
    }

    fn resolve(&self, sample: ArrayView2<'_, f64>) -> Result<Self> {
        let length_scale = self.length_scale.resolve(sample, Seed::new(self.seed))?;
        Ok(PositiveSpec { length_scale, ..self.clone() })
    }

    fn kernel(&self) -> Result<Arc<dyn Kernel>> {
        Scaled::by(&self.length_scale, |scale| Ok(Arc::new(Exponential::new(scale)?)))
    }

    /// Closed forms exist for independent directions and for orthogonal blocks; infinite where it overflows.
    fn variance(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        if self.orthogonal {
            let (x, y) = (self.length_scale.divide(x)?, self.length_scale.divide(y)?);
            softmax_orthogonal_matrix(self.kind, 1.0, self.directions()?, x.view(), y.view())
        } else {
            self.variance_iid(x, y)
        }
    }

    fn variance_iid(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        let (x, y) = (self.length_scale.divide(x)?, self.length_scale.divide(y)?);
        softmax_matrix(self.kind, 1.0, self.directions()?, x.view(), y.view())
    }
}
