use super::operator_exact::field_triangle;
use crate::error::{Error, Result, check_dim, check_positive};
use crate::feature::FieldQuantity;
use crate::kernel::{FieldAt, OperatorKernel};
use crate::linalg::{Cholesky, TileMut};
use crate::parallel::Parallel;
use crate::rows::check_finite;
use crate::solve::factorise;
use ndarray::{Array1, Array2, Array4, ArrayView2, Axis};

/// Gaussian-process regression with the exact kernel of a field: the reference that [`OperatorGp`](super::OperatorGp)
/// approximates, for some hundreds of rows.
///
/// The matrix of all pairs has as many rows as there are numbers in the targets. Derivatives of the kernel are closed forms:
/// divergence, vorticity and all derivatives have exact means and variances. Targets are normalised as by `OperatorGp`.
///
/// ```
/// use bochner::feature::FieldQuantity;
/// use bochner::kernel::OperatorKernel;
/// use bochner::model::ExactOperatorGp;
/// use ndarray::Array2;
/// let rows = Array2::from_shape_fn((40, 2), |(i, j)| ((i * (37 + 11 * j)) as f64 * 0.7).sin());
/// let flow = Array2::from_shape_fn((40, 2), |(i, j)| if j == 0 { -rows[[i, 1]] } else { rows[[i, 0]] });
/// let process = ExactOperatorGp::new(OperatorKernel::helmholtz(1.5, 0.5)?, 1.0, 1e-4)?;
/// let model = process.fit(rows.view(), flow.view())?;
/// let (vorticity, _) = model.quantity_with_variance(ndarray::array![[0.1, 0.2]].view(), FieldQuantity::Vorticity)?;
/// assert!((vorticity[[0, 0]] - 2.0).abs() < 0.05);
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ExactOperatorGp {
    kernel: OperatorKernel,
    signal: f64,
    noise: f64,
    normalised: bool,
}

impl ExactOperatorGp {
    /// A process of covariance `signal_variance` times the kernel, seen through noise.
    ///
    /// # Errors
    /// Variances that are not positive, and a kernel that is not that of a field.
    pub fn new(kernel: OperatorKernel, signal_variance: f64, noise_variance: f64) -> Result<Self> {
        check_positive("signal variance", signal_variance)?;
        check_positive("noise variance", noise_variance)?;
        if kernel.as_field().is_none() {
            return Err(Error::parameter(
                "kernel",
                "a curl-free, divergence-free or Helmholtz kernel",
                kernel.in_words(),
            ));
        }
        Ok(ExactOperatorGp { kernel, signal: signal_variance, noise: noise_variance, normalised: true })
    }

    /// With targets about their means and over one common standard deviation, or as they are.
    pub fn with_normalized_targets(mut self, normalised: bool) -> Self {
        self.normalised = normalised;
        self
    }

    /// Fits to rows and targets.
    ///
    /// # Errors
    /// Shapes that do not fit, NaN or infinities, and a matrix that stays indefinite.
    pub fn fit(&self, rows: ArrayView2<'_, f64>, targets: ArrayView2<'_, f64>) -> Result<ExactOperatorGpModel> {
        let (n, d) = rows.dim();
        check_dim("number of rows of targets", n, targets.nrows())?;
        check_dim("number of target columns", d, targets.ncols())?;
        self.kernel.check_inputs(d)?;
        check_finite("rows", rows, 0)?;
        check_finite("targets", targets, 0)?;
        if n == 0 {
            return Err(Error::parameter("rows", "at least one row", "none"));
        }
        let means = match self.normalised {
            true => targets.mean_axis(Axis(0)).expect("at least one row"),
            false => Array1::zeros(d),
        };
        let mut z = &targets - &means;
        let square = z.iter().map(|v| v * v).sum::<f64>();
        let scale = if self.normalised && square > 0.0 { (square / (n * d) as f64).sqrt() } else { 1.0 };
        z.mapv_inplace(|v| v / scale);
        let rows = rows.as_standard_layout().into_owned();
        let mut matrix = field_triangle(&self.kernel, &rows)?;
        matrix.scale(self.signal);
        matrix.add_to_diagonal(self.noise);
        let (factor, _, _) = factorise(matrix)?;
        let z: Vec<f64> = z.iter().copied().collect();
        let mut alpha = z.clone();
        factor.solve_in_place(TileMut::new(&mut alpha, n * d, 1))?;
        let misfit: f64 = z.iter().zip(&alpha).map(|(z, a)| z * a).sum();
        let numbers = (n * d) as f64;
        let volume = factor.log_determinant() + numbers * (std::f64::consts::TAU.ln() + 2.0 * scale.ln());
        let likelihood = -0.5 * (misfit + volume);
        let alpha = alpha.into();
        Ok(ExactOperatorGpModel { process: self.clone(), rows, factor, alpha, means, scale, likelihood })
    }
}

/// A fitted [`ExactOperatorGp`].
#[derive(Debug, Clone)]
pub struct ExactOperatorGpModel {
    process: ExactOperatorGp,
    rows: Array2<f64>,
    factor: Cholesky<f64>,
    alpha: Array1<f64>,
    means: Array1<f64>,
    scale: f64,
    likelihood: f64,
}

/// `∂K_ab/∂δ_c`, for all `c`, `a`, `b`.
fn first_derivatives(at: &FieldAt<'_>, delta: &[f64]) -> Vec<f64> {
    let (d, s) = (delta.len(), &at.precisions);
    let (curl, div) = (at.field.curl_free, at.field.div_free);
    let u: Vec<f64> = delta.iter().zip(s).map(|(d, s)| d * s).collect();
    let q: f64 = delta.iter().zip(&u).map(|(d, u)| d * u).sum();
    let length_sq: f64 = u.iter().map(|u| u * u).sum();
    let [_, b, third, _] = at.derivatives(q);
    let mut out = vec![0.0; d * d * d];
    for (c, i, j) in (0..d).flat_map(|c| (0..d).flat_map(move |i| (0..d).map(move |j| (c, i, j)))) {
        let is = |yes: bool| if yes { 1.0 } else { 0.0 };
        let across = is(i == c) * s[i] * u[j] + is(j == c) * s[j] * u[i];
        let both = third * u[c] * u[i] * u[j] - b * (across + is(i == j) * s[i] * u[c]);
        let trace = third * u[c] * length_sq - b * u[c] * (at.trace + 2.0 * s[c]);
        out[(c * d + i) * d + j] = (curl - div) * both + div * is(i == j) * trace;
    }
    out
}

/// `-∂²K_ab/∂δ_c∂δ_e` at 0: covariances of derivatives at one place.
fn second_derivative(at: &FieldAt<'_>, (a, c): (usize, usize), (b, e): (usize, usize)) -> f64 {
    let s = &at.precisions;
    let (curl, div) = (at.field.curl_free, at.field.div_free);
    let [_, second, _, _] = at.derivatives(0.0);
    let is = |yes: bool| if yes { 1.0 } else { 0.0 };
    // Each of the three pairings has two precisions.
    let both = is(c == e && a == b) * s[c] * s[a] + (is(a == c && b == e) + is(a == e && b == c)) * s[a] * s[b];
    let own = is(a == b && c == e) * s[c] * (at.trace + 2.0 * s[c]);
    second * ((curl - div) * both + div * own)
}

impl ExactOperatorGpModel {
    /// `ln p(y)` of all numbers in the training targets.
    pub fn log_marginal_likelihood(&self) -> f64 {
        self.likelihood
    }

    /// Variance of the noise of every target, in units of the targets.
    pub fn observation_variance(&self) -> f64 {
        self.scale * self.scale * self.process.noise
    }

    /// Standard deviations of the process before it has seen anything, one for each component of a quantity.
    ///
    /// # Errors
    /// Quantities that the kernel does not have.
    pub fn prior_deviations(&self, quantity: FieldQuantity) -> Result<Vec<f64>> {
        let (_, prior) = self.of(quantity)?;
        let size = self.process.signal * self.scale * self.scale;
        Ok(prior.into_iter().map(|v| (size * v).sqrt()).collect())
    }

    /// Derivatives that are added up in each component (none for values), and prior variances.
    fn of(&self, quantity: FieldQuantity) -> Result<(Option<Terms>, Vec<f64>)> {
        let d = self.rows.ncols();
        let field = self.process.kernel.as_field().expect("checked when it was made");
        let at = field.at(d);
        if quantity == FieldQuantity::Values {
            let zero = vec![0.0; d];
            let prior = self.process.kernel.evaluate(&zero, &zero)?;
            return Ok((None, prior.diag().to_vec()));
        }
        if matches!(quantity, FieldQuantity::Potential | FieldQuantity::StreamFunction) {
            let reason = "the exact reference has values and derivatives; the process on features has it".into();
            return Err(Error::Unsupported { what: "potential", reason });
        }
        if field.nu().is_some_and(|nu| nu <= 2.0) {
            let reason = "the functions of this kernel are too rough to have derivatives; a larger nu has them".into();
            return Err(Error::Unsupported { what: "derivatives", reason });
        }
        let terms = quantity.terms(d, d)?;
        let variance = |component: &Vec<(usize, usize, f64)>| -> f64 {
            let pairs = component.iter().flat_map(|x| component.iter().map(move |y| (*x, *y)));
            pairs.map(|((a, c, one), (b, e, other))| one * other * second_derivative(&at, (a, c), (b, e))).sum()
        };
        let prior = terms.iter().map(variance).collect();
        Ok((Some(terms), prior))
    }

    /// Covariances of a quantity at a row with all numbers observed, one row per component.
    fn with_observed(&self, at: &FieldAt<'_>, terms: Option<&Terms>, x: &[f64]) -> Array2<f64> {
        let (n, d) = self.rows.dim();
        let width = terms.map_or(d, Vec::len);
        let mut out = Array2::zeros((width, n * d));
        let mut block = vec![0.0; d * d];
        for (i, z) in self.rows.rows().into_iter().enumerate() {
            let z = z.to_slice().expect("standard layout");
            match terms {
                None => {
                    at.fill(x, z, &mut block);
                    for (a, b) in (0..d).flat_map(|a| (0..d).map(move |b| (a, b))) {
                        out[[a, i * d + b]] = block[a * d + b];
                    }
                }
                Some(terms) => {
                    let delta: Vec<f64> = x.iter().zip(z).map(|(x, z)| x - z).collect();
                    let first = first_derivatives(at, &delta);
                    for (k, component) in terms.iter().enumerate() {
                        for (&(a, c, sign), b) in component.iter().flat_map(|t| (0..d).map(move |b| (t, b))) {
                            out[[k, i * d + b]] += sign * first[(c * d + a) * d + b];
                        }
                    }
                }
            }
        }
        out * self.process.signal
    }

    /// Posterior means and variances of a quantity, without noise, one row per row and one column per component.
    ///
    /// # Errors
    /// Shapes that do not fit, NaN or infinities, and quantities that the kernel does not have.
    pub fn quantity_with_variance(
        &self,
        rows: ArrayView2<'_, f64>,
        quantity: FieldQuantity,
    ) -> Result<(Array2<f64>, Array2<f64>)> {
        check_dim("number of columns of rows", self.rows.ncols(), rows.ncols())?;
        check_finite("rows", rows, 0)?;
        let (terms, prior) = self.of(quantity)?;
        let at = self.process.kernel.as_field().expect("checked when it was made").at(rows.ncols());
        let (mut mean, mut variance) =
            (Array2::zeros((rows.nrows(), prior.len())), Array2::zeros((rows.nrows(), prior.len())));
        let rows = rows.as_standard_layout();
        let out = mean.rows_mut().into_iter().zip(variance.rows_mut()).zip(rows.rows());
        let all: Vec<_> = out.collect();
        all.into_iter().in_parallel().try_for_each(|((mut mean, mut variance), x)| -> Result<()> {
            let cross = self.with_observed(&at, terms.as_ref(), x.to_slice().expect("standard layout"));
            mean.assign(&(cross.dot(&self.alpha) * self.scale));
            let mut image = cross.t().as_standard_layout().into_owned();
            let (numbers, width) = image.dim();
            self.factor.solve_factor_in_place(TileMut::new(
                image.as_slice_mut().expect("standard layout"),
                numbers,
                width,
            ))?;
            for (k, to) in variance.iter_mut().enumerate() {
                let column = image.column(k);
                let left = self.process.signal * prior[k] - column.dot(&column);
                *to = self.scale * self.scale * left.max(0.0);
            }
            Ok(())
        })?;
        if quantity == FieldQuantity::Values {
            mean += &self.means;
        }
        Ok((mean, variance))
    }

    /// Covariances of the outputs between all pairs of rows, as [`OperatorGpModel::covariance`](super::OperatorGpModel::covariance)
    /// has them.
    ///
    /// # Errors
    /// As [`quantity_with_variance`](Self::quantity_with_variance).
    pub fn covariance(&self, rows: ArrayView2<'_, f64>) -> Result<Array4<f64>> {
        check_dim("number of columns of rows", self.rows.ncols(), rows.ncols())?;
        check_finite("rows", rows, 0)?;
        let (n, d) = rows.dim();
        let at = self.process.kernel.as_field().expect("checked when it was made").at(d);
        let rows = rows.as_standard_layout();
        let mut images = Vec::new();
        for x in rows.rows() {
            let cross = self.with_observed(&at, None, x.to_slice().expect("standard layout"));
            let mut image = cross.t().as_standard_layout().into_owned();
            let (numbers, width) = image.dim();
            self.factor.solve_factor_in_place(TileMut::new(
                image.as_slice_mut().expect("standard layout"),
                numbers,
                width,
            ))?;
            images.push(image);
        }
        let prior = self.process.kernel.matrix(rows.view(), rows.view())?;
        Ok(Array4::from_shape_fn((n, n, d, d), |(i, j, a, b)| {
            let explained = images[i].column(a).dot(&images[j].column(b));
            self.scale * self.scale * (self.process.signal * prior[[i, j, a, b]] - explained)
        }))
    }
}

/// Output, input and sign of derivatives, for each component.
type Terms = Vec<Vec<(usize, usize, f64)>>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::FieldKernel;
    use ndarray::array;

    fn data(d: usize) -> (Array2<f64>, Array2<f64>) {
        let rows = Array2::from_shape_fn((12, d), |(i, j)| ((i * (3 + 2 * j)) as f64 * 0.71).sin() * 1.5);
        let targets = Array2::from_shape_fn((12, d), |(i, j)| (rows[[i, 0]] * (j + 1) as f64).cos() + rows[[i, d - 1]]);
        (rows, targets)
    }

    fn kernels(d: usize) -> Vec<OperatorKernel> {
        let scales = crate::preprocess::LengthScale::PerInput([0.8, 1.4, 1.1][..d].to_vec());
        let field = |share: f64| FieldKernel::new(share).with_length_scale(scales.clone());
        [field(0.0), field(1.0), field(0.3), field(0.6).with_matern(4.5)].map(|field| field.build().unwrap()).to_vec()
    }

    #[test]
    fn means_and_variances_of_derivatives_are_those_of_differences_of_the_values() {
        for d in [2, 3] {
            let (rows, targets) = data(d);
            for kernel in kernels(d) {
                let model = ExactOperatorGp::new(kernel.clone(), 0.7, 0.05).unwrap();
                let model = model.fit(rows.view(), targets.view()).unwrap();
                let x = Array2::from_shape_fn((1, d), |(_, j)| [0.3, -0.4, 0.2][j]);
                // Differences of central points: the error is of order h² in values of size 1 with length scales of about 1,
                // the rounding of variances 1e-16/h².
                let h = 1e-3;
                let mut around = Array2::zeros((2 * d, d));
                for (k, mut row) in around.rows_mut().into_iter().enumerate() {
                    row.assign(&x.row(0));
                    row[k / 2] += if k % 2 == 0 { h } else { -h };
                }
                let (values, _) = model.quantity_with_variance(around.view(), FieldQuantity::Values).unwrap();
                let covariance = model.covariance(around.view()).unwrap();
                for quantity in [FieldQuantity::Jacobian, FieldQuantity::Divergence, FieldQuantity::Vorticity] {
                    let (mean, variance) = model.quantity_with_variance(x.view(), quantity).unwrap();
                    for (k, component) in quantity.terms(d, d).unwrap().iter().enumerate() {
                        // Weights of all values around.
                        let mut weights = Array2::<f64>::zeros((2 * d, d));
                        for &(a, c, sign) in component {
                            weights[[2 * c, a]] += sign / (2.0 * h);
                            weights[[2 * c + 1, a]] -= sign / (2.0 * h);
                        }
                        let expected = (&values * &weights).sum();
                        assert!(
                            (mean[[0, k]] - expected).abs() < 1e-5 * (1.0 + expected.abs()),
                            "{kernel:?} {quantity:?}"
                        );
                        let mut expected = 0.0;
                        for ((i, a), one) in weights.indexed_iter() {
                            for ((j, b), other) in weights.indexed_iter() {
                                expected += one * other * covariance[[i, j, a, b]];
                            }
                        }
                        let found = variance[[0, k]];
                        assert!(
                            (found - expected).abs() < 1e-4 * (0.1 + expected),
                            "{kernel:?} {quantity:?}: {found} {expected}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_flow_without_sources_has_no_divergence_and_a_gradient_no_vorticity() {
        let (rows, targets) = data(2);
        let at = array![[0.2, 0.1], [1.0, -1.0]];
        let kernels = [
            (OperatorKernel::div_free(1.0), FieldQuantity::Divergence),
            (OperatorKernel::curl_free(1.0), FieldQuantity::Vorticity),
        ];
        for (kernel, none) in kernels {
            let model =
                ExactOperatorGp::new(kernel.unwrap(), 1.0, 0.1).unwrap().fit(rows.view(), targets.view()).unwrap();
            let (mean, variance) = model.quantity_with_variance(at.view(), none).unwrap();
            assert!(mean.iter().all(|v| v.abs() < 1e-12) && variance.iter().all(|v| *v < 1e-12));
        }
    }
}
