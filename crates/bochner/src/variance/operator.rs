use super::{Form, bounds, fourier};
use crate::error::{Error, Result, check_count, check_dim, check_positive};
use crate::kernel::{Any, Kernel, OperatorKernel};
use crate::rows::check_finite;
use crate::scalar::Real;
use ndarray::{Array2, Array4, ArrayView2, s};

/// Eigenvalues of one frequency's matrix variance at distance `r`: along `δ` and across it; equal factors of `A²` for
/// decomposable kernels.
fn field_variance(field: (f64, f64, f64), dim: usize, distance_sq: f64) -> (f64, f64) {
    let (length_scale, curl, div) = field;
    let (d, s) = (dim as f64, 1.0 / length_scale / length_scale);
    // E cos(ω·τ) A(ω)², along τ and across: with A² = c²|ω|²ωωᵀ + v²|ω|²(|ω|²I - ωωᵀ).
    let second = |tau_sq: f64| {
        let r = s * tau_sq;
        let k = libm::exp(-0.5 * r) * s * s;
        let curl_across = k * (d + 2.0 - r);
        let curl_along = curl_across + k * r * (r - d - 4.0);
        let all = k * (d * (d + 2.0) - 2.0 * (d + 2.0) * r + r * r);
        let mix = |part: f64| curl * curl * part + div * div * (all - part);
        (mix(curl_along), mix(curl_across))
    };
    let r = s * distance_sq;
    let k = libm::exp(-0.5 * r) * s;
    let across = k * (curl + div * (d - 1.0 - r));
    let along = across + k * r * (div - curl);
    let (zero, double) = (second(0.0), second(4.0 * distance_sq));
    let value = |zero: f64, double: f64, mean: f64| (0.5 * (zero + double) - mean * mean).max(0.0);
    (value(zero.0, double.0, along), value(zero.1, double.1, across))
}

/// Matrix variance `E(K̃ - K)²` of operator-valued Fourier features with `frequencies` independent frequencies, for all
/// pairs of rows: shape (rows of `x`, rows of `z`, `p`, `p`); its trace is `E‖K̃ - K‖²` in the Frobenius norm.
///
/// With `δ = x - z`, for decomposable kernels `A²((1 + k(2δ))/2 - k(δ)²)/M`, for the others
/// `((M(0) + M(2δ))/2 - K(δ)²)/M` with `M(τ) = E cos(ω·τ) A(ω)²`:
/// curl-free `k₀(τ)(s²(d+2-s|τ|²)I + s³(s|τ|²-d-4)ττᵀ)`, divergence-free
/// `k₀(τ)s²(d(d+2) - 2(d+2)s|τ|² + s²|τ|⁴)I` less that, Helmholtz the sum with squared weights.
///
/// # Errors
/// No frequencies; rows of different lengths, NaN or infinities.
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
    let mut out = Array4::zeros((x.nrows(), z.nrows(), p, p));
    let square = kernel.decomposed().map(|(_, outputs)| outputs.matrix().dot(&outputs.matrix()));
    for (i, x) in x.rows().into_iter().enumerate() {
        for (j, z) in z.rows().into_iter().enumerate() {
            let delta = &x - &z;
            let mut block = out.slice_mut(s![i, j, .., ..]);
            match (kernel.decomposed(), kernel.as_field()) {
                (Some((base, _)), _) => {
                    let zero = vec![0.0; delta.len()];
                    let k = base.evaluate(delta.as_slice().expect("one row"), &zero);
                    let double = base.evaluate((2.0 * &delta).as_slice().expect("one row"), &zero);
                    let factor = fourier(Form::CosSin, k, double) / frequencies as f64;
                    block.assign(&(factor * square.as_ref().expect("decomposable")));
                }
                (_, Some(field)) => {
                    let distance_sq = delta.dot(&delta);
                    let parts = (field.length_scale, field.curl_free, field.div_free);
                    let (along, across) = field_variance(parts, p, distance_sq);
                    let scale = if distance_sq > 0.0 { (along - across) / distance_sq } else { 0.0 };
                    let outer = Array2::from_shape_fn((p, p), |(a, b)| {
                        scale * delta[a] * delta[b] + if a == b { across } else { 0.0 }
                    });
                    block.assign(&(outer / frequencies as f64));
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
    let s = 1.0 / field.length_scale / field.length_scale;
    let parts = (field.length_scale, field.curl_free, field.div_free);
    let largest =
        distances.map(|r| field_variance(parts, input_dim, r * r)).fold(0.0, |m: f64, (a, b)| m.max(a).max(b));
    // Of a divergence-free kernel in one dimension nothing is left.
    let weight = field.curl_free.max(if input_dim > 1 { field.div_free } else { 0.0 });
    let psi = 2.0 * s / (1.0 - libm::pow(4.0, -1.0 / d));
    let most = s * (field.curl_free + field.div_free * (d - 1.0));
    Ok(bound(largest, weight * psi + most, weight * weight * s * s * s * d * (d + 2.0) * (d + 4.0)))
}
