use super::{Form, bounds, fourier};
use crate::error::{Error, Result, check_count, check_dim, check_positive};
use crate::kernel::{Any, FieldAt, FieldKernel, Kernel, OperatorKernel};
use crate::linalg::{Eigen, Lower};
use crate::preprocess::LengthScale;
use crate::rows::check_finite;
use crate::scalar::Real;
use ndarray::{Array2, Array4, ArrayView2, s};

/// Fourth moments of the spectrum of a field's scalar kernel, seen at a distance: `E cos(ω·δ) |ω|²ωωᵀ` and
/// `E cos(ω·δ) |ω|⁴`.
///
/// Fourth derivatives `16g⁗uuuu + 8g‴(six terms suu) + 4g″(three terms ss)`, contracted.
fn fourth_moments(at: &FieldAt<'_>, delta: &[f64]) -> (Array2<f64>, f64) {
    let s = &at.precisions;
    let u: Vec<f64> = delta.iter().zip(s).map(|(d, s)| d * s).collect();
    let q: f64 = delta.iter().zip(&u).map(|(d, u)| d * u).sum();
    let [_, second, third, fourth] = at.derivatives(q);
    let (length_sq, squares): (f64, f64) = (u.iter().map(|u| u * u).sum(), s.iter().map(|s| s * s).sum());
    let weighted: f64 = u.iter().zip(s).map(|(u, s)| s * u * u).sum();
    let d = delta.len();
    // Odd derivatives by q have the opposite sign.
    let outer = Array2::from_shape_fn((d, d), |(a, b)| {
        let both = u[a] * u[b];
        let across = fourth * both * length_sq - third * both * (at.trace + 2.0 * (s[a] + s[b]));
        let own = second * (at.trace + 2.0 * s[a]) * s[a] - third * s[a] * length_sq;
        across + if a == b { own } else { 0.0 }
    });
    let all = fourth * length_sq * length_sq - third * (2.0 * at.trace * length_sq + 4.0 * weighted)
        + second * (at.trace * at.trace + 2.0 * squares);
    (outer, all)
}

/// `E cos(ω·δ) A(ω)²` with `A² = c²|ω|²ωωᵀ + v²(|ω|⁴I - |ω|²ωωᵀ)`.
fn second_moment(at: &FieldAt<'_>, delta: &[f64]) -> Array2<f64> {
    let (curl, div) = (at.field.curl_free.powi(2), at.field.div_free.powi(2));
    let (mut moment, all) = fourth_moments(at, delta);
    moment *= curl - div;
    moment.diag_mut().iter_mut().for_each(|value| *value += div * all);
    moment
}

/// The matrix variance of one frequency at a distance: `(M(0) + M(2δ))/2 - K(δ)²`.
fn field_variance(at: &FieldAt<'_>, delta: &[f64]) -> Array2<f64> {
    let zero = vec![0.0; delta.len()];
    let double: Vec<f64> = delta.iter().map(|d| 2.0 * d).collect();
    let mut mean = Array2::zeros((delta.len(), delta.len()));
    at.fill(delta, &zero, mean.as_slice_mut().expect("fresh"));
    let mut out = 0.5 * (second_moment(at, &zero) + second_moment(at, &double)) - mean.dot(&mean);
    // Where one frequency says all there is, rounding may leave less than nothing.
    out.diag_mut().mapv_inplace(|v| v.max(0.0));
    out
}

/// Refuses fields whose spectrum has no fourth moment.
fn check_moments(field: &FieldKernel) -> Result<()> {
    match field.nu() {
        Some(nu) if nu <= 2.0 => {
            let reason =
                format!("a Matern kernel needs nu above 2 for it, and has {nu}: the spectrum has no fourth moment");
            Err(Error::Unsupported { what: "variance of the estimate", reason })
        }
        _ => Ok(()),
    }
}

/// Matrix variance `E(K̃ - K)²` of operator-valued Fourier features with `frequencies` independent frequencies, for all
/// pairs of rows: shape (rows of `x`, rows of `z`, `p`, `p`); its trace is `E‖K̃ - K‖²` in the Frobenius norm.
///
/// With `δ = x - z`, for decomposable kernels `A²((1 + k(2δ))/2 - k(δ)²)/M`, for the others
/// `((M(0) + M(2δ))/2 - K(δ)²)/M` with `M(τ) = E cos(ω·τ) A(ω)²`. For the Gaussian kernel of one length scale:
/// curl-free `k₀(τ)(s²(d+2-s|τ|²)I + s³(s|τ|²-d-4)ττᵀ)`, divergence-free
/// `k₀(τ)s²(d(d+2) - 2(d+2)s|τ|² + s²|τ|⁴)I` less that, Helmholtz the sum with squared weights. In general fourth derivatives of
/// the scalar kernel, contracted.
///
/// # Errors
/// No frequencies; rows of different lengths, NaN or infinities; Matérn fields with `ν ≤ 2`, whose variance is infinite.
pub fn operator<R: Real>(
    kernel: &OperatorKernel,
    frequencies: usize,
    x: ArrayView2<'_, R>,
    z: ArrayView2<'_, R>,
) -> Result<Array4<f64>> {
    check_count("frequencies", frequencies)?;
    check_dim("number of columns of the second rows", x.ncols(), z.ncols())?;
    check_finite("x", x, 0)?;
    check_finite("z", z, 0)?;
    let (x, z) = (x.mapv(Real::to_f64), z.mapv(Real::to_f64));
    let p = kernel.output_dim(x.ncols());
    if let Some(field) = kernel.as_field() {
        field.length_scale().check(x.ncols())?;
        check_moments(field)?;
    }
    let at = kernel.as_field().map(|field| field.at(x.ncols()));
    let mut out = Array4::zeros((x.nrows(), z.nrows(), p, p));
    let square = kernel.decomposed().map(|(_, outputs)| outputs.matrix().dot(&outputs.matrix()));
    for (i, x) in x.rows().into_iter().enumerate() {
        for (j, z) in z.rows().into_iter().enumerate() {
            let delta = &x - &z;
            let mut block = out.slice_mut(s![i, j, .., ..]);
            match (kernel.decomposed(), &at) {
                (Some((base, _)), _) => {
                    let zero = vec![0.0; delta.len()];
                    let k = base.evaluate(delta.as_slice().expect("one row"), &zero);
                    let double = base.evaluate((2.0 * &delta).as_slice().expect("one row"), &zero);
                    let factor = fourier(Form::CosSin, k, double) / frequencies as f64;
                    block.assign(&(factor * square.as_ref().expect("decomposable")));
                }
                (_, Some(at)) => {
                    let delta = delta.as_slice().expect("one row");
                    block.assign(&(field_variance(at, delta) / frequencies as f64));
                }
                _ => unreachable!("a kernel is a field or decomposable"),
            }
        }
    }
    Ok(out)
}

/// Distances at which the variance is evaluated to find its largest value.
const GRID: usize = 512;

/// The uniform bound of operator-valued features over rows of length `input_dim` from a set of this diameter.
///
/// `b` is the largest closed-form variance over distances up to the diameter; `‖A(ω)‖` is `‖A‖` for decomposable kernels
/// (whose `ψ₁`-norm is `‖A‖/ln 2`) and the larger weight times `|ω|²` for the others (`2s/(1 - 4^(-1/d))`).
///
/// # Errors
/// A diameter that is not positive, or a scalar kernel whose spectrum has no second moment.
pub fn operator_bound(kernel: &OperatorKernel, input_dim: usize, diameter: f64) -> Result<bounds::OperatorFourier> {
    check_count("input_dim", input_dim)?;
    check_positive("diameter", diameter)?;
    let (d, outputs) = (input_dim as f64, kernel.output_dim(input_dim));
    let distances = (0..=GRID).map(|i| diameter * i as f64 / GRID as f64);
    let bound = |variance: f64, magnitude: f64, spectral_moment: f64| bounds::OperatorFourier {
        dim: input_dim,
        outputs,
        diameter,
        variance: variance.max(f64::MIN_POSITIVE),
        magnitude,
        spectral_moment,
    };
    if let Some((base, matrix)) = kernel.decomposed() {
        let spectral = Any::spectral(base).map(|spectral| spectral.spectral_moment(input_dim));
        let Some(moment) = spectral.filter(|moment| moment.is_finite()) else {
            let reason = "the spectrum of the scalar kernel has no second moment".into();
            return Err(Error::Unsupported { what: "uniform bound", reason });
        };
        let norm = matrix.norm();
        let at = |r: f64| base.of_distance_sq(r * r).unwrap_or(f64::NAN);
        let largest = distances.map(|r| fourier(Form::CosSin, at(r), at(2.0 * r))).fold(0.0, f64::max);
        let magnitude = norm / std::f64::consts::LN_2 + norm;
        return Ok(bound(norm * norm * largest, magnitude, moment * norm * norm));
    }
    let field = kernel.as_field().expect("a kernel is a field or decomposable");
    field.length_scale().check(input_dim)?;
    let (LengthScale::Same(scale), None) = (field.length_scale(), field.nu()) else {
        let reason = "it is known for fields of a Gaussian kernel of one length scale".into();
        return Err(Error::Unsupported { what: "uniform bound", reason });
    };
    let (s, at) = (1.0 / scale / scale, field.at(input_dim));
    let along = |r: f64| {
        let delta: Vec<f64> = (0..input_dim).map(|i| if i == 0 { r } else { 0.0 }).collect();
        field_variance(&at, &delta)
    };
    // Along the first axis the matrix is diagonal.
    let largest = distances.map(along).fold(0.0, |m: f64, v| v.diag().iter().fold(m, |m, v| m.max(*v)));
    // Of a divergence-free kernel in one dimension nothing is left.
    let weight = field.curl_free.max(if input_dim > 1 { field.div_free } else { 0.0 });
    let psi = 2.0 * s / (1.0 - libm::pow(4.0, -1.0 / d));
    let most = s * (field.curl_free + field.div_free * (d - 1.0));
    Ok(bound(largest, weight * psi + most, weight * weight * s * s * s * d * (d + 2.0) * (d + 4.0)))
}

/// Proposition 12: `‖(K(2δ) + K(0))E[A] - 2K(δ)²‖/2 + ‖V[A]‖` at the row difference `δ`, which `M‖V[K̃]‖` equals for decomposable
/// kernels and does not exceed for curl- and divergence-free ones of the Gaussian kernel. It does not hold for every kernel;
/// [`operator()`] is the variance itself.
///
/// # Errors
/// No frequencies; a kernel without a fourth moment; NaN or infinities.
pub fn proposition_12(kernel: &OperatorKernel, frequencies: usize, delta: &[f64]) -> Result<f64> {
    check_count("frequencies", frequencies)?;
    let (zero, double) = (vec![0.0; delta.len()], delta.iter().map(|d| 2.0 * d).collect::<Vec<_>>());
    let row = |values: &[f64]| Array2::from_shape_vec((1, values.len()), values.to_vec()).expect("one row");
    check_finite("delta", row(delta).view(), 0)?;
    // Blocks of decomposable kernels are those of k times A, whose spread over frequencies is none.
    let (mean, at_delta, at_double) =
        (kernel.evaluate(&zero, &zero)?, kernel.evaluate(delta, &zero)?, kernel.evaluate(&double, &zero)?);
    let spread = match kernel.as_field() {
        None => Array2::zeros(mean.dim()),
        Some(field) => {
            check_moments(field)?;
            second_moment(&field.at(delta.len()), &zero) - mean.dot(&mean)
        }
    };
    // E[A] is K(0).
    let first = (at_double + &mean).dot(&mean) - 2.0 * at_delta.dot(&at_delta);
    Ok((0.5 * norm(&first)? + norm(&spread)?) / frequencies as f64)
}

/// The largest absolute eigenvalue of a matrix, of which the symmetric part counts.
fn norm(matrix: &Array2<f64>) -> Result<f64> {
    let symmetric = 0.5 * (matrix + &matrix.t());
    let symmetric = symmetric.as_standard_layout();
    let lower = Lower::from_square(symmetric.as_slice().expect("standard layout"), matrix.nrows())?;
    Ok(Eigen::new(lower)?.values().iter().fold(0.0, |most: f64, v| most.max(v.abs())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Gaussian, Matern, OutputMatrix};
    use ndarray::array;

    #[test]
    fn moments_are_fourth_derivatives_of_the_scalar_kernel() {
        // Those of a field along its own axes: Σ_c ∂_a∂_b∂_c² k₀ by differences of the curl-free kernel, which is -∂_a∂_b k₀.
        for nu in [None, Some(2.5), Some(3.0), Some(4.2)] {
            let kernel = FieldKernel { nu, ..FieldKernel::new(1.0).with_length_scale([0.9, 1.4]) }.build().unwrap();
            let at = kernel.as_field().unwrap().at(2);
            let (delta, h) = ([0.7, -0.5], 1e-3);
            let value = |moved: [f64; 2]| kernel.evaluate(&moved, &[0.0; 2]).unwrap();
            let mut laplacian = Array2::<f64>::zeros((2, 2));
            for c in 0..2 {
                let step = |size: f64| {
                    let mut moved = delta;
                    moved[c] += size;
                    value(moved)
                };
                laplacian += &((step(h) + step(-h) - 2.0 * step(0.0)) / (h * h));
            }
            let (outer, all) = fourth_moments(&at, &delta);
            // E cos(ω·δ)|ω|²ωωᵀ = ΔΔ' with two signs less.
            assert!((&outer + &laplacian).iter().all(|v| v.abs() < 2e-4), "{nu:?}: {outer} {laplacian}");
            assert!((outer.diag().sum() - all).abs() < 1e-10 * all.abs().max(1.0), "{nu:?}");
        }
    }

    #[test]
    fn proposition_12_is_the_variance_of_decomposable_kernels_and_bounds_that_of_gaussian_fields() {
        let matrix = OutputMatrix::new(array![[2.0, 0.5], [0.5, 1.0]].view()).unwrap();
        let related = OperatorKernel::decomposable(Gaussian::new(1.3).unwrap().into(), matrix).unwrap();
        for distance in [0.0, 0.3, 1.0, 2.5, 5.0] {
            let delta = [0.6 * distance, 0.8 * distance];
            let row = Array2::from_shape_vec((1, 2), delta.to_vec()).unwrap();
            let variance = |kernel: &OperatorKernel| {
                let all = operator(kernel, 10, row.view(), Array2::zeros((1, 2)).view()).unwrap();
                norm(&all.slice(s![0, 0, .., ..]).to_owned()).unwrap()
            };
            let bound = |kernel: &OperatorKernel| proposition_12(kernel, 10, &delta).unwrap();
            assert!((variance(&related) - bound(&related)).abs() < 1e-13, "{distance}");
            for kernel in [OperatorKernel::curl_free(0.8).unwrap(), OperatorKernel::div_free(1.2).unwrap()] {
                assert!(variance(&kernel) <= bound(&kernel) * (1.0 + 1e-12), "{distance}");
            }
        }
        let rough = FieldKernel::new(0.5).with_matern(2.0).build().unwrap();
        assert!(proposition_12(&rough, 10, &[1.0, 0.0]).is_err());
        let related =
            OperatorKernel::decomposable(Matern::new(0.5, 1.0).unwrap().into(), OutputMatrix::identity(2).unwrap());
        assert!(proposition_12(&related.unwrap(), 10, &[1.0, 0.0]).is_ok());
    }
}
