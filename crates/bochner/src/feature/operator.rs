use super::{Describe, Directions, DynMap, FeatureMap, FourierKernel, FourierSpec};
use crate::error::{Error, Result, check_dim};
use crate::kernel::{AnyKernel, OperatorKernel};
use crate::linalg::gemm::matmul_nt;
use crate::linalg::{Lower, Tile, TileMut};
use crate::memory::{bytes, in_blocks, need};
use crate::preprocess::LengthScale;
use crate::scalar::Real;
use crate::variance::{bounds, operator, operator_bound};
use ndarray::{Array2, Array3, Array4, ArrayView1, ArrayView2, ArrayView3, ArrayViewMut1, s};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Description of operator-valued Fourier features.
///
/// ```
/// use bochner::feature::OperatorSpec;
/// use bochner::kernel::OperatorKernel;
/// let spec = OperatorSpec { n_components: 64, seed: 7, ..OperatorSpec::new(OperatorKernel::curl_free(1.0)?) };
/// let features = spec.build::<f64>(3)?;
/// assert_eq!((features.output_dim(), features.dim()), (3, 64));
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperatorSpec {
    /// The kernel.
    pub kernel: OperatorKernel,
    /// Cosines and sines in all: twice the number of frequencies.
    #[serde(default = "default_components")]
    pub n_components: usize,
    /// How frequencies are drawn.
    #[serde(default)]
    pub projection: Directions,
    /// Where the draws start from.
    #[serde(default)]
    pub seed: u64,
}

fn default_components() -> usize {
    1024
}

impl OperatorSpec {
    /// Features of `kernel` from 512 frequencies.
    pub fn new(kernel: OperatorKernel) -> Self {
        OperatorSpec { kernel, n_components: default_components(), projection: Directions::Auto, seed: 0 }
    }

    /// The scalar features underneath: cosine–sine pairs of the decomposable kernel's scalar kernel, or of the scalar
    /// kernel whose derivatives the others are.
    ///
    /// # Errors
    /// A scalar kernel without Fourier features.
    pub fn fourier(&self) -> Result<FourierSpec> {
        let spec = FourierSpec {
            n_components: self.n_components,
            projection: self.projection,
            seed: self.seed,
            ..FourierSpec::default()
        };
        let same = |scale: f64| LengthScale::Same(scale);
        Ok(match (self.kernel.as_field(), self.kernel.decomposed()) {
            (Some(field), _) => {
                let (length_scale, gaussian) = (field.length_scale().clone(), spec.clone());
                match field.nu() {
                    None => FourierSpec { length_scale, ..gaussian },
                    Some(nu) => FourierSpec { length_scale, kernel: FourierKernel::Matern, nu, ..gaussian },
                }
            }
            (_, Some((AnyKernel::Gaussian(base), _))) => {
                FourierSpec { length_scale: same(base.length_scale()), ..spec }
            }
            (_, Some((AnyKernel::Matern(base), _))) => {
                let (kernel, nu) = (FourierKernel::Matern, base.nu());
                FourierSpec { length_scale: same(base.length_scale()), kernel, nu, ..spec }
            }
            (_, Some((AnyKernel::Laplacian(base), _))) => {
                let (kernel, norm) = (FourierKernel::Laplacian, base.norm());
                FourierSpec { length_scale: same(base.length_scale()), kernel, norm, ..spec }
            }
            _ => {
                let reason = "Fourier features need a Gaussian, Laplacian or Matérn kernel".into();
                return Err(Error::Unsupported { what: "base", reason });
            }
        })
    }

    /// Draws the features for rows of length `input_dim`.
    ///
    /// # Errors
    /// Parameters out of range, named.
    pub fn build<R: Real>(&self, input_dim: usize) -> Result<OperatorFeatures<R>> {
        let fourier = self.fourier()?;
        let map = fourier.build::<R>(input_dim)?;
        let spread = match (self.kernel.as_field(), self.kernel.decomposed()) {
            (Some(field), _) => {
                let (along, across) = (field.curl_free.sqrt(), field.div_free.sqrt());
                Spread::field(fourier.frequency_vectors(input_dim)?, along, across)
            }
            (_, Some((_, outputs))) => Spread::same(outputs.root()),
            (None, None) => unreachable!("a kernel is a field or decomposable"),
        };
        // What `auto` stands for may change, what a file says must not.
        let spec = OperatorSpec { projection: fourier.directions(input_dim)?, ..self.clone() };
        Ok(OperatorFeatures { spec: Arc::new(spec), map, spread: Arc::new(spread) })
    }

    /// Closed-form matrix variance `E(K̃ - K)²` of every estimated block with independent frequencies: shape (rows of
    /// `x`, rows of `z`, `p`, `p`), see [`operator()`].
    ///
    /// # Errors
    /// Rows of different lengths, NaN or infinities.
    pub fn variance(&self, x: ArrayView2<'_, f64>, z: ArrayView2<'_, f64>) -> Result<Array4<f64>> {
        operator(&self.kernel, self.fourier()?.frequencies()?, x, z)
    }

    /// The uniform bound on the error over a set of rows of this diameter: a figure to report.
    ///
    /// # Errors
    /// A diameter that is not positive, or a scalar kernel whose spectrum has no second moment.
    pub fn bound(&self, input_dim: usize, diameter: f64) -> Result<bounds::OperatorFourier> {
        operator_bound(&self.kernel, input_dim, diameter)
    }
}

/// Random features of a matrix-valued kernel: `Φ(x)` with `Φ(x)ᵀΦ(z)` an estimate of `K(x, z)`.
///
/// With frequencies `ωⱼ` of a scalar kernel and `B(ω)B(ω)ᵀ = A(ω)` the block of frequency `j` is
/// `M^(-1/2) (cos ωⱼᵀx B(ωⱼ)ᵀ, sin ωⱼᵀx B(ωⱼ)ᵀ)`, so `Φ(x)` has `2Mp'` rows and `p` columns:
///
/// | kernel | `A(ω)` | `B(ω)` | `p'` |
/// |---|---|---|---|
/// | decomposable | `A` | a root of `A` | rank of `A` |
/// | curl-free | `ωωᵀ` | `ω` | 1 |
/// | divergence-free | `\|ω\|²I - ωωᵀ` | `\|ω\|I - ωωᵀ/\|ω\|` | `d` |
/// | Helmholtz | `γωωᵀ + (1-γ)(\|ω\|²I - ωωᵀ)` | `√γ ωωᵀ/\|ω\| + √(1-γ)(\|ω\|I - ωωᵀ/\|ω\|)` | `d` |
///
/// `Φ` is never made. A function `Φ(x)ᵀθ` is a linear function `Cᵀφ(x)` of the `2M` scalar features `φ` whose
/// coefficients are tied, `cⱼ = B(ωⱼ)θⱼ` ([`Spread`]): whatever reads rows works on scalar features, and whatever is
/// fitted predicts at the cost of a scalar model with `p` targets.
///
/// # Estimate
/// Unbiased with independent or Haar-orthogonal frequencies; the matrix variance is [`crate::variance::operator()`].
///
/// # References
/// Brault, Heinonen and d'Alché-Buc 2016, sections 3 and 4.
#[derive(Debug, Clone)]
pub struct OperatorFeatures<R: Real> {
    spec: Arc<OperatorSpec>,
    map: DynMap<R>,
    spread: Arc<Spread>,
}

impl<R: Real> OperatorFeatures<R> {
    /// The description they were drawn from.
    pub fn spec(&self) -> &OperatorSpec {
        &self.spec
    }

    /// The scalar features.
    pub fn map(&self) -> &DynMap<R> {
        &self.map
    }

    /// How coefficients of scalar features follow from parameters.
    pub fn spread(&self) -> &Spread {
        &self.spread
    }

    /// Length of an input row.
    pub fn input_dim(&self) -> usize {
        self.map.input_dim()
    }

    /// Number of outputs `p`.
    pub fn output_dim(&self) -> usize {
        self.spread.outputs()
    }

    /// Number of parameters `2Mp'`.
    pub fn dim(&self) -> usize {
        self.map.output_dim() * self.spread.inner()
    }

    /// `Φ(xᵢ)ᵀθ` for every row: one row per row, one column per output.
    ///
    /// # Errors
    /// Shapes that do not fit, and NaN or infinities in `rows`.
    pub fn apply(&self, rows: ArrayView2<'_, R>, theta: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        check_dim("number of parameters", self.dim(), theta.nrows())?;
        check_dim("number of columns of parameters", 1, theta.ncols())?;
        let coefficients = self.spread.scatter(theta);
        let mut out = Array2::zeros((rows.nrows(), self.output_dim()));
        self.for_each_block(rows, |range, features| {
            out.slice_mut(s![range, ..]).assign(&features.dot(&coefficients));
        })?;
        Ok(out)
    }

    /// `Σᵢ Φ(xᵢ) rᵢ` for rows `rᵢ` of `residuals`: the adjoint of [`apply`](Self::apply), one column of parameters.
    ///
    /// # Errors
    /// Shapes that do not fit, and NaN or infinities in `rows`.
    pub fn apply_adjoint(&self, rows: ArrayView2<'_, R>, residuals: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        check_dim("number of rows of residuals", rows.nrows(), residuals.nrows())?;
        check_dim("number of columns of residuals", self.output_dim(), residuals.ncols())?;
        let mut sums = Array2::zeros((self.map.output_dim(), self.output_dim()));
        self.for_each_block(rows, |range, features| sums += &features.t().dot(&residuals.slice(s![range, ..])))?;
        Ok(self.spread.gather(sums.view()))
    }

    fn for_each_block(
        &self,
        rows: ArrayView2<'_, R>,
        mut visit: impl FnMut(std::ops::Range<usize>, &Array2<f64>),
    ) -> Result<()> {
        const ROWS: usize = 1024;
        for start in (0..rows.nrows()).step_by(ROWS) {
            let range = start..(start + ROWS).min(rows.nrows());
            let features = self.map.transform(rows.slice(s![range.clone(), ..])).map_err(|e| e.rows_from(start))?;
            visit(range, &features.mapv(Real::to_f64));
        }
        Ok(())
    }

    /// `Φ(x)ᵀΦ(z)` for all pairs of rows: what [`OperatorKernel::matrix`] is without estimation.
    ///
    /// # Errors
    /// Rows that do not fit, NaN or infinities.
    pub fn estimate(&self, x: ArrayView2<'_, R>, z: ArrayView2<'_, R>) -> Result<Array4<f64>> {
        let (fx, fz) = (self.map.transform(x)?.mapv(Real::to_f64), self.map.transform(z)?.mapv(Real::to_f64));
        let (n, m, features, p) = (x.nrows(), z.nrows(), self.map.output_dim(), self.output_dim());
        let weights = self.spread.outer_products(features);
        let right = Tile::new(fz.as_slice().expect("fresh features"), m, features);
        let mut out = Array4::zeros((n, m, p, p));
        // Entry (a, b) of all blocks is one product of features, of which one side has the entries of A(ω) as factors.
        for (a, b) in (0..p).flat_map(|a| (a..p).map(move |b| (a, b))) {
            let scaled = &fx * &weights.column(a * p + b);
            let mut product = vec![0.0; n * m];
            let left = Tile::new(scaled.as_slice().expect("fresh features"), n, features);
            matmul_nt(left, right, TileMut::new(&mut product, n, m))?;
            let product = ArrayView2::from_shape((n, m), &product).expect("n times m numbers");
            out.slice_mut(s![.., .., a, b]).assign(&product);
            out.slice_mut(s![.., .., b, a]).assign(&product);
        }
        Ok(out)
    }

    /// `Φ(xᵢ)ᵀ` for every row: axes are rows, outputs, parameters. Models never make it; other solvers and losses may want it.
    ///
    /// # Errors
    /// Rows that do not fit, NaN or infinities, and more numbers than memory holds.
    pub fn transform(&self, rows: ArrayView2<'_, R>) -> Result<Array3<f64>> {
        let (p, q) = (self.output_dim(), self.spread.inner());
        let size = bytes::<f64>(&[rows.nrows(), p, self.dim()]);
        need("operator-valued features", size, |free| in_blocks(free / bytes::<f64>(&[p, self.dim()]).max(1)))?;
        let blocks = self.spread.blocks(self.map.output_dim());
        let mut out = Array3::zeros((rows.nrows(), p, self.dim()));
        self.for_each_block(rows, |range, features| {
            for (row, mut out) in features.rows().into_iter().zip(out.slice_mut(s![range, .., ..]).outer_iter_mut()) {
                for ((a, e), to) in out.indexed_iter_mut() {
                    *to = row[e / q] * blocks[[e, a]];
                }
            }
        })?;
        Ok(out)
    }

    /// Cotangents of [`transform`](Self::transform), taken back to cotangents of the rows.
    ///
    /// # Errors
    /// Shapes that do not fit, NaN or infinities in `rows`.
    pub fn pullback(&self, rows: ArrayView2<'_, R>, cotangents: ArrayView3<'_, f64>) -> Result<Array2<f64>> {
        let (p, q) = (self.output_dim(), self.spread.inner());
        check_dim("number of rows of cotangents", rows.nrows(), cotangents.dim().0)?;
        check_dim("number of outputs of cotangents", p, cotangents.dim().1)?;
        check_dim("number of columns of cotangents", self.dim(), cotangents.dim().2)?;
        let blocks = self.spread.blocks(self.map.output_dim());
        let mut scalar = Array2::from_elem((rows.nrows(), self.map.output_dim()), R::ZERO);
        for (from, mut to) in cotangents.outer_iter().zip(scalar.rows_mut()) {
            for (j, to) in to.iter_mut().enumerate() {
                let sum: f64 = (j * q..(j + 1) * q)
                    .flat_map(|e| (0..p).map(move |a| (a, e)))
                    .map(|(a, e)| from[[a, e]] * blocks[[e, a]])
                    .sum();
                *to = R::from_f64(sum);
            }
        }
        Ok(self.map.pullback(rows, scalar.view())?.mapv(Real::to_f64))
    }

    /// Frequencies, one row each.
    ///
    /// # Errors
    /// None that drawing the features did not have.
    pub fn frequencies(&self) -> Result<Array2<f64>> {
        match &*self.spread {
            Spread(Kind::Field { frequencies, .. }) => Ok(frequencies.clone()),
            Spread(Kind::Same(_)) => self.spec.fourier()?.frequency_vectors(self.input_dim()),
        }
    }
}

/// How coefficients of scalar features follow from parameters: `cⱼ = B(ωⱼ) θⱼ`, with `p'` parameters and `p`
/// coefficients for each of the `2M` features (cosines, then sines of the same frequencies).
#[derive(Debug, Clone)]
pub struct Spread(Kind);

#[derive(Debug, Clone)]
enum Kind {
    /// One `B`, a row per output.
    Same(Array2<f64>),
    /// `B(ω) = βI + γωωᵀ` with `β = across |ω|` and `γ = (along - across)/|ω|`; with `across = 0` just `along ω`.
    Field { frequencies: Array2<f64>, beta: Vec<f64>, gamma: Vec<f64>, along: f64, thin: bool },
}

impl Spread {
    /// The same `B` for every frequency.
    pub fn same(root: Array2<f64>) -> Self {
        Spread(Kind::Same(root))
    }

    /// `B(ω)` with eigenvalue `along |ω|` in the direction of `ω` and `across |ω|` across it; one parameter per feature
    /// where `across` is 0.
    pub fn field(frequencies: Array2<f64>, along: f64, across: f64) -> Self {
        let norms: Vec<f64> = frequencies.rows().into_iter().map(|w| w.dot(&w).sqrt()).collect();
        let beta = norms.iter().map(|n| across * n).collect();
        let gamma = norms.iter().map(|n| if *n > 0.0 { (along - across) / n } else { 0.0 }).collect();
        Spread(Kind::Field { frequencies, beta, gamma, along, thin: across == 0.0 })
    }

    /// `p`.
    pub fn outputs(&self) -> usize {
        match &self.0 {
            Kind::Same(root) => root.nrows(),
            Kind::Field { frequencies, .. } => frequencies.ncols(),
        }
    }

    /// `p'`.
    pub fn inner(&self) -> usize {
        match &self.0 {
            Kind::Same(root) => root.ncols(),
            Kind::Field { thin: true, .. } => 1,
            Kind::Field { frequencies, .. } => frequencies.ncols(),
        }
    }

    /// Coefficients of parameters, for every column of `theta`: columns `kp..(k+1)p` of the result belong to column `k`.
    pub fn scatter(&self, theta: ArrayView2<'_, f64>) -> Array2<f64> {
        let (p, q, k) = (self.outputs(), self.inner(), theta.ncols());
        let features = theta.nrows().checked_div(q).unwrap_or(0);
        let mut out = Array2::zeros((features, p * k));
        for (j, c) in (0..features).flat_map(|j| (0..k).map(move |c| (j, c))) {
            let from = theta.slice(s![j * q..(j + 1) * q, c]);
            let mut to = out.slice_mut(s![j, c * p..(c + 1) * p]);
            match &self.0 {
                Kind::Same(root) => to.assign(&root.dot(&from)),
                Kind::Field { frequencies, along, thin: true, .. } => {
                    to.scaled_add(along * from[0], &frequencies.row(j % frequencies.nrows()));
                }
                Kind::Field { .. } => self.add_turned(j, from, to),
            }
        }
        out
    }

    /// The adjoint of [`scatter`](Self::scatter): `p` columns of `coefficients` become one column of parameters.
    pub fn gather(&self, coefficients: ArrayView2<'_, f64>) -> Array2<f64> {
        let (p, q) = (self.outputs(), self.inner());
        let (features, k) = (coefficients.nrows(), coefficients.ncols() / p.max(1));
        let mut out = Array2::zeros((features * q, k));
        for (j, c) in (0..features).flat_map(|j| (0..k).map(move |c| (j, c))) {
            let from = coefficients.slice(s![j, c * p..(c + 1) * p]);
            let mut to = out.slice_mut(s![j * q..(j + 1) * q, c]);
            match &self.0 {
                Kind::Same(root) => to.assign(&root.t().dot(&from)),
                Kind::Field { frequencies, along, thin: true, .. } => {
                    to[0] = along * frequencies.row(j % frequencies.nrows()).dot(&from);
                }
                Kind::Field { .. } => self.add_turned(j, from, to),
            }
        }
        out
    }

    /// `to += (βI + γωωᵀ) from`, which is its own adjoint.
    fn add_turned(&self, j: usize, from: ArrayView1<'_, f64>, mut to: ArrayViewMut1<'_, f64>) {
        let Kind::Field { frequencies, beta, gamma, .. } = &self.0 else { return };
        let f = j % frequencies.nrows();
        let w = frequencies.row(f);
        to.scaled_add(beta[f], &from);
        to.scaled_add(gamma[f] * w.dot(&from), &w);
    }

    /// `B(ωⱼ)ᵀ` of so many features, one below the other: a row per parameter, a column per output.
    pub(crate) fn blocks(&self, features: usize) -> Array2<f64> {
        let (p, q) = (self.outputs(), self.inner());
        let mut blocks = Array2::zeros((features * q, p));
        for e in 0..q {
            // Parameter e of every feature.
            let unit = Array2::from_shape_fn((features * q, 1), |(j, _)| if j % q == e { 1.0 } else { 0.0 });
            let columns = self.scatter(unit.view());
            blocks.slice_mut(s![e..;q, ..]).assign(&columns);
        }
        blocks
    }

    /// `A(ωⱼ) = B(ωⱼ)B(ωⱼ)ᵀ` of so many features, one row of `p²` entries each.
    pub(crate) fn outer_products(&self, features: usize) -> Array2<f64> {
        let p = self.outputs();
        let (mut products, mut block) = (Array2::zeros((features, p * p)), Array2::zeros((p, p)));
        for (j, mut row) in products.rows_mut().into_iter().enumerate() {
            self.outer(j, &mut block);
            row.iter_mut().zip(&block).for_each(|(to, from)| *to = *from);
        }
        products
    }

    /// `B(ωⱼ)B(ωⱼ)ᵀ`.
    fn outer(&self, j: usize, out: &mut Array2<f64>) {
        match &self.0 {
            Kind::Same(root) => out.assign(&root.dot(&root.t())),
            Kind::Field { frequencies, beta, gamma, along, thin } => {
                let f = j % frequencies.nrows();
                let w = frequencies.row(f);
                let (beta, gamma) = (beta[f], gamma[f]);
                // (βI + γwwᵀ)² = β²I + γ(2β + γ|w|²)wwᵀ.
                let (own, both) = match thin {
                    true => (0.0, along * along),
                    false => (beta * beta, gamma * (2.0 * beta + gamma * w.dot(&w))),
                };
                for ((a, b), to) in out.indexed_iter_mut() {
                    *to = both * w[a] * w[b] + if a == b { own } else { 0.0 };
                }
            }
        }
    }

    /// `Σⱼ gⱼ tr B(ωⱼ)ᵀB(ωⱼ)`: the trace of the normal matrix from the diagonal of the scalar Gram matrix.
    pub(crate) fn trace(&self, diagonal: &[f64]) -> f64 {
        let size = |j: usize| match &self.0 {
            Kind::Same(root) => root.iter().map(|v| v * v).sum::<f64>(),
            Kind::Field { frequencies, beta, along, thin, .. } => {
                let f = j % frequencies.nrows();
                let w = frequencies.row(f);
                let (p, norm_sq) = (w.len() as f64, w.dot(&w));
                if *thin { along * along * norm_sq } else { along * along * norm_sq + (p - 1.0) * beta[f] * beta[f] }
            }
        };
        diagonal.iter().enumerate().map(|(j, g)| g * size(j)).sum()
    }

    /// The normal matrix of the parameters, blocks `gⱼₖ B(ωⱼ)ᵀB(ωₖ)`, from the scalar Gram matrix.
    ///
    /// For curl-free features it is the Gram matrix times `ωⱼᵀωₖ`, entry by entry.
    pub(crate) fn normal(&self, gram: &Lower<f64>) -> Result<Lower<f64>> {
        let q = self.inner();
        let mut out = Lower::zeros(gram.order() * q)?;
        let same = match &self.0 {
            Kind::Same(root) => Some(root.t().dot(root)),
            Kind::Field { .. } => None,
        };
        for j in 0..gram.order() {
            let row = gram.row(j);
            for a in 0..q {
                let to = out.row_mut(j * q + a);
                match (&self.0, &same) {
                    (_, Some(square)) => {
                        for (e, to) in to.iter_mut().enumerate() {
                            *to = row[e / q] * square[[a, e % q]];
                        }
                    }
                    (Kind::Field { frequencies, beta, gamma, along, thin }, _) => {
                        let m = frequencies.nrows();
                        let f = j % m;
                        let w = frequencies.row(f);
                        for (k, to) in to.chunks_mut(q).enumerate() {
                            let g = k % m;
                            let v = frequencies.row(g);
                            let dot = w.dot(&v);
                            if *thin {
                                to[0] = row[k] * along * along * dot;
                                continue;
                            }
                            let both = beta[f] * beta[g];
                            // (βI + γwwᵀ)(β'I + γ'vvᵀ), row a.
                            let (ww, vv) = (gamma[f] * beta[g] * w[a], beta[f] * gamma[g] * v[a]);
                            let wv = gamma[f] * gamma[g] * dot * w[a];
                            for (b, to) in to.iter_mut().enumerate() {
                                let unit = if a == b { both } else { 0.0 };
                                *to = row[k] * (unit + ww * w[b] + (vv + wv) * v[b]);
                            }
                        }
                    }
                    _ => unreachable!("a constant block is made above"),
                }
            }
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Gaussian, OutputMatrix};
    use ndarray::array;

    fn all() -> Vec<OperatorFeatures<f64>> {
        let matrix = OutputMatrix::new(array![[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 0.7]].view()).unwrap();
        let kernels = [
            OperatorKernel::curl_free(1.3).unwrap(),
            OperatorKernel::div_free(1.3).unwrap(),
            OperatorKernel::helmholtz(1.3, 0.3).unwrap(),
            OperatorKernel::decomposable(Gaussian::new(1.3).unwrap().into(), matrix).unwrap(),
        ];
        let build = |kernel| OperatorSpec { n_components: 16, seed: 3, ..OperatorSpec::new(kernel) }.build(2).unwrap();
        kernels.into_iter().map(build).collect()
    }

    fn rows() -> Array2<f64> {
        Array2::from_shape_fn((5, 2), |(i, j)| ((i * 3 + j * 7) as f64 * 0.7).sin())
    }

    #[test]
    fn features_multiply_to_the_estimate_and_parameters_to_the_function() {
        for features in all() {
            let x = rows();
            let (p, dim) = (features.output_dim(), features.dim());
            let phi = features.transform(x.view()).unwrap();
            assert_eq!(phi.dim(), (5, p, dim));
            let estimate = features.estimate(x.view(), x.view()).unwrap();
            for ((i, j, a, b), value) in estimate.indexed_iter() {
                let product = phi.slice(s![i, a, ..]).dot(&phi.slice(s![j, b, ..]));
                assert!((product - value).abs() < 1e-12);
            }
            let theta = Array2::from_shape_fn((dim, 1), |(j, _)| (j as f64 * 1.1).cos());
            let values = features.apply(x.view(), theta.view()).unwrap();
            for ((i, a), value) in values.indexed_iter() {
                assert!((phi.slice(s![i, a, ..]).dot(&theta.column(0)) - value).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn cotangents_are_pulled_back_as_differences_say() {
        for features in all() {
            let x = rows();
            let shape = (5, features.output_dim(), features.dim());
            let cotangents = Array3::from_shape_fn(shape, |(i, a, e)| ((i + 2 * a + 3 * e) as f64).sin());
            let pulled = features.pullback(x.view(), cotangents.view()).unwrap();
            let loss = |x: &Array2<f64>| (features.transform(x.view()).unwrap() * &cotangents).sum();
            // An error of order h² from third derivatives, and one of rounding over h: both below 1e-6 here.
            let h = 1e-5;
            for ((i, j), value) in pulled.indexed_iter() {
                let (mut up, mut down) = (x.clone(), x.clone());
                up[[i, j]] += h;
                down[[i, j]] -= h;
                assert!(((loss(&up) - loss(&down)) / (2.0 * h) - value).abs() < 1e-6);
            }
            let narrow = cotangents.slice(s![.., .., 1..]);
            assert!(features.pullback(x.view(), narrow).is_err());
            assert!(features.transform(array![[f64::NAN, 0.0]].view()).is_err());
        }
    }
}
