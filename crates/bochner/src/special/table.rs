use std::f64::consts::PI;
use std::sync::OnceLock;

const TERMS: usize = 16;

/// An expensive smooth function, tabulated as Chebyshev pieces of equal length the first time each piece is used.
///
/// What is stored depends on the function alone, so threads may meet here without deciding any bit. A piece that its own
/// check points contradict by more than 1e-13 is not used: the function is then called as before.
pub(crate) struct Table {
    low: f64,
    per_unit: f64,
    pieces: Vec<OnceLock<Option<[f64; TERMS]>>>,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let filled = self.pieces.iter().filter(|p| p.get().is_some()).count();
        write!(f, "Table({filled} of {} pieces)", self.pieces.len())
    }
}

impl Table {
    /// `count` pieces of length `length` from `low` on.
    pub(crate) fn new(low: f64, length: f64, count: usize) -> Self {
        Table { low, per_unit: 1.0 / length, pieces: vec![OnceLock::new(); count] }
    }

    /// `f(u)`; every call passes the same function.
    pub(crate) fn value(&self, u: f64, f: impl Fn(f64) -> f64) -> f64 {
        let position = (u - self.low) * self.per_unit;
        let piece = if position >= 0.0 { self.pieces.get(position as usize) } else { None };
        let Some(piece) = piece else { return f(u) };
        let start = position.floor();
        let at = |x: f64| f(self.low + (start + 0.5 * (x + 1.0)) / self.per_unit);
        match piece.get_or_init(|| fit(&at)) {
            Some(coefficients) => clenshaw(coefficients, 2.0 * (position - start) - 1.0),
            None => f(u),
        }
    }
}

fn fit(f: &impl Fn(f64) -> f64) -> Option<[f64; TERMS]> {
    let n = TERMS as f64;
    let values: [f64; TERMS] = std::array::from_fn(|i| f(libm::cos(PI * (i as f64 + 0.5) / n)));
    let coefficients: [f64; TERMS] = std::array::from_fn(|k| {
        let term = |i: usize| values[i] * libm::cos(PI * k as f64 * (i as f64 + 0.5) / n);
        (0..TERMS).map(term).sum::<f64>() * if k == 0 { 1.0 } else { 2.0 } / n
    });
    let agrees = |&x: &f64| {
        let exact = f(x);
        (clenshaw(&coefficients, x) - exact).abs() <= 1e-13 * exact.abs().max(1.0)
    };
    [-0.999, -0.61, 0.07, 0.53, 0.999].iter().all(agrees).then_some(coefficients)
}

fn clenshaw(coefficients: &[f64; TERMS], x: f64) -> f64 {
    let (mut low, mut high) = (0.0, 0.0);
    for &c in coefficients[1..].iter().rev() {
        (low, high) = (2.0 * x * low - high + c, low);
    }
    x * low - high + coefficients[0]
}
