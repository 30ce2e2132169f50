use super::Kernel;
use crate::scalar::Real;

/// A kernel of the rows' directions: `k(x/|x|, y/|y|)`; a zero row stays zero.
///
/// ```
/// use bochner::kernel::{Kernel, Normalized, Spherical};
/// let k = Normalized::new(Spherical::new(3, 2.0)?);
/// assert_eq!(k.evaluate(&[3.0, 0.0], &[0.0, 0.1]), Spherical::new(3, 2.0)?.evaluate(&[1.0, 0.0], &[0.0, 1.0]));
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Normalized<K>(K);

impl<K: Kernel> Normalized<K> {
    /// `kernel` on rows of length 1.
    pub fn new(kernel: K) -> Self {
        Normalized(kernel)
    }

    /// The kernel of the normalised rows.
    pub fn inner(&self) -> &K {
        &self.0
    }
}

impl<K: Kernel> Kernel for Normalized<K> {
    fn evaluate(&self, x: &[f64], y: &[f64]) -> f64 {
        let (mut u, mut v) = (vec![0.0; x.len()], vec![0.0; y.len()]);
        normalize(x, &mut u);
        normalize(y, &mut v);
        self.0.evaluate(&u, &v)
    }

    fn of_products(&self, dot: f64, x_norm_sq: f64, y_norm_sq: f64) -> Option<f64> {
        let norms = x_norm_sq.sqrt() * y_norm_sq.sqrt();
        let cosine = if norms > 0.0 { (dot / norms).clamp(-1.0, 1.0) } else { 0.0 };
        let unit = |norm_sq: f64| if norm_sq > 0.0 { 1.0 } else { 0.0 };
        self.0.of_products(cosine, unit(x_norm_sq), unit(y_norm_sq))
    }
}

/// Writes `row/|row|`; a zero row stays zero.
///
/// Entries are divided by the largest one first, so that squares neither overflow nor vanish.
pub fn normalize<R: Real>(row: &[R], out: &mut [R]) {
    let most = row.iter().fold(R::ZERO, |most, v| if v.abs() > most { v.abs() } else { most });
    if most == R::ZERO {
        return out.fill(R::ZERO);
    }
    out.iter_mut().zip(row).for_each(|(to, from)| *to = *from / most);
    let square: f64 = out.iter().map(|v| Real::to_f64(*v) * Real::to_f64(*v)).sum();
    let inverse = 1.0 / square.sqrt();
    out.iter_mut().for_each(|v| *v = R::from_f64(Real::to_f64(*v) * inverse));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Exponential, Spherical, dot};

    #[test]
    fn only_directions_count() {
        let k = Normalized::new(Spherical::new(3, 2.0).unwrap());
        let (x, y) = ([1.0, -2.0, 0.5], [0.3, 0.1, 0.2]);
        let scaled = |factor: f64| x.map(|v| factor * v);
        for factor in [1e-200, 1e-3, 1.0, 1e3, 1e200] {
            assert!((k.evaluate(&scaled(factor), &y) - k.evaluate(&x, &y)).abs() < 1e-15, "{factor}");
        }
        let products = k.of_products(dot(&x, &y), dot(&x, &x), dot(&y, &y)).unwrap();
        assert!((products - k.evaluate(&x, &y)).abs() < 1e-15);
        let zero = [0.0; 3];
        assert_eq!(k.evaluate(&zero, &y), k.of_products(0.0, 0.0, dot(&y, &y)).unwrap());
        assert_eq!(Normalized::new(Exponential::new(1.0).unwrap()).evaluate(&zero, &zero), 1.0);
    }
}
