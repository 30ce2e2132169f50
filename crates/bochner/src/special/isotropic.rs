/// `Λ_d(x) = E cos(x u₁)` for `u` uniform on the unit sphere of `d` dimensions.
///
/// Also `Γ(d/2)(2/x)^(d/2−1) J_{d/2−1}(x)`: every isotropic kernel is a mixture of `Λ_d(r|x − y|)` over `r` (Schoenberg
/// 1938). Evaluated by Gauss–Gegenbauer quadrature of the expectation, which is stable in every dimension; the
/// shortcut `exp(−x²/2d)` is wrong by up to `4e⁻²/d`.
///
/// ```
/// let three = bochner::special::Isotropic::new(3, 50.0);
/// assert!((three.value(2.0) - 2f64.sin() / 2.0).abs() < 1e-15);
/// ```
#[derive(Debug, Clone)]
pub struct Isotropic {
    /// Positive nodes with their weights, doubled for the mirrored node: the cosine is even.
    nodes: Vec<(f64, f64)>,
}

impl Isotropic {
    /// `Λ` in `dim ≥ 1` dimensions, accurate for `|x| ≤ reach`.
    pub fn new(dim: usize, reach: f64) -> Self {
        if dim <= 1 {
            return Isotropic { nodes: vec![(1.0, 1.0)] };
        }
        // 128 nodes are exact to 2e-15 up to x = 100; cos(xu) needs about x/2 nodes and a margin beyond.
        let count = if reach <= 100.0 { 128 } else { 2 * (0.25 * reach.min(1e6)) as usize + 96 };
        let l = 0.5 * dim as f64 - 1.0;
        let mut off_diagonal: Vec<f64> = (1..count)
            .map(|k| {
                let k = k as f64;
                let square =
                    if k == 1.0 { 0.5 / (1.0 + l) } else { k * (k + 2.0 * l - 1.0) / (4.0 * (k + l) * (k + l - 1.0)) };
                square.sqrt()
            })
            .collect();
        let mut all = tridiagonal_rule(&off_diagonal);
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        off_diagonal.push(1.0);
        // The rule is symmetric: positive nodes stand for both signs.
        let mut nodes: Vec<_> = all[..count / 2].iter().map(|&rough| polish(rough, &off_diagonal)).collect();
        nodes.retain(|n| n.1 > 1e-300);
        let total: f64 = nodes.iter().map(|n| n.1).sum();
        for node in &mut nodes {
            node.1 /= total;
        }
        Isotropic { nodes }
    }

    /// `Λ_d(x)`.
    pub fn value(&self, x: f64) -> f64 {
        let mut sums = [0.0; 8];
        for chunk in self.nodes.chunks(8) {
            for (sum, (node, weight)) in sums.iter_mut().zip(chunk) {
                *sum += weight * libm::cos(x * node);
            }
        }
        sums.iter().sum()
    }
}

/// A node moved to the root of its orthonormal polynomial by Newton steps, with its Christoffel weight: the last two
/// digits that rotations have lost.
fn polish((mut node, rough_weight): (f64, f64), off_diagonal: &[f64]) -> (f64, f64) {
    let mut weight = rough_weight;
    for _ in 0..3 {
        let (mut p, mut before, mut slope, mut slope_before) = (1.0, 0.0, 0.0, 0.0);
        let mut squares = 0.0;
        let mut low = 0.0;
        for &high in off_diagonal {
            squares += p * p;
            let next = (node * p - low * before) / high;
            let next_slope = (p + node * slope - low * slope_before) / high;
            (before, p, slope_before, slope) = (p, next, slope, next_slope);
            low = high;
        }
        if !(squares.is_finite() && slope.is_finite() && slope != 0.0) {
            return (node, rough_weight);
        }
        weight = 1.0 / squares;
        node -= p / slope;
    }
    (node, weight)
}

/// Eigenvalues and squared first eigenvector components of the symmetric tridiagonal matrix with diagonal 0 and the
/// given off-diagonal (Golub and Welsch 1969), by the implicit QL method.
fn tridiagonal_rule(off_diagonal: &[f64]) -> Vec<(f64, f64)> {
    let mut e: Vec<f64> = off_diagonal.iter().copied().chain([0.0]).collect();
    let n = e.len();
    let mut d = vec![0.0f64; n];
    let mut first = vec![0.0; n];
    first[0] = 1.0;
    for l in 0..n {
        for _ in 0..60 {
            let small = |m: &usize| e[*m].abs() <= f64::EPSILON * (d[*m].abs() + d[*m + 1].abs());
            let m = (l..n - 1).find(small).unwrap_or(n - 1);
            if m == l {
                break;
            }
            let mut g = (d[l + 1] - d[l]) / (2.0 * e[l]);
            let mut r = libm::hypot(g, 1.0);
            g = d[m] - d[l] + e[l] / (g + r.copysign(g));
            let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
            let mut deflated = false;
            for i in (l..m).rev() {
                let (f, b) = (s * e[i], c * e[i]);
                r = libm::hypot(f, g);
                e[i + 1] = r;
                if r == 0.0 {
                    d[i + 1] -= p;
                    e[m] = 0.0;
                    deflated = true;
                    break;
                }
                s = f / r;
                c = g / r;
                g = d[i + 1] - p;
                r = (d[i] - g) * s + 2.0 * c * b;
                p = s * r;
                d[i + 1] = g + p;
                g = c * r - b;
                let (low, high) = (first[i], first[i + 1]);
                first[i + 1] = s * low + c * high;
                first[i] = c * low - s * high;
            }
            if !deflated {
                d[l] -= p;
                e[l] = g;
                e[m] = 0.0;
            }
        }
    }
    d.into_iter().zip(first).map(|(node, v)| (node, v * v)).collect()
}
