use super::*;
use crate::Complex;
use crate::special::{chi_square_quantile, normal_quantile};

const ALPHA: f64 = 1e-6;

fn numbers<R: Real>(count: usize) -> Vec<R> {
    let mut draw = Stream::new(Seed::new(77), Role::Noise, 0);
    (0..count).map(|_| R::from_f64(2.0 * draw.uniform() - 1.0)).collect()
}

/// All columns, in panels.
fn project<P: Projection>(projection: &P, rows: &[P::Real]) -> Vec<P::Output> {
    let (d, m) = (projection.input_dim(), projection.output_dim());
    let n = rows.len() / d;
    let mut out = vec![P::Output::ZERO; n * m];
    let mut tile = TileMut::new(&mut out, n, m);
    for columns in panels(m, projection.panel()) {
        let window = tile.columns_mut(columns.clone());
        projection.project_tile(Tile::new(rows, n, d), columns, window, &mut Workspace::new());
    }
    out
}

fn bits<T: Scalar>(numbers: &[T]) -> Vec<[u64; 2]> {
    numbers.iter().map(|z| [Real::to_f64(z.re()).to_bits(), Real::to_f64(z.im()).to_bits()]).collect()
}

fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

fn check_bits<P: Projection>(projection: &P) {
    let (d, m) = (projection.input_dim(), projection.output_dim());
    let rows = numbers::<P::Real>(130 * d);
    let whole = bits(&project(projection, &rows));
    for cut in [1, 2, 7, 64, 65] {
        let parts: Vec<_> = rows.chunks(cut * d).flat_map(|rows| bits(&project(projection, rows))).collect();
        assert!(parts == whole, "{projection:?} in tiles of {cut} rows");
    }
    for threads in [1, 2, 5] {
        assert!(bits(&pool(threads).install(|| project(projection, &rows))) == whole, "{threads} threads");
    }
    let (mut re, mut im) = (vec![P::Real::ZERO; 130 * m], vec![P::Real::ZERO; 130 * m]);
    let out = Parts::new(TileMut::new(&mut re, 130, m), TileMut::new(&mut im, 130, m));
    projection.project_tile_split(Tile::new(&rows, 130, d), 0..m, out, &mut Workspace::new());
    let split: Vec<_> = re.iter().zip(&im).map(|(re, im)| P::Output::from_parts(*re, *im)).collect();
    assert!(bits(&split) == whole, "{projection:?} in parts");
}

#[test]
fn bits_do_not_depend_on_tiles_panels_threads_nor_on_whether_parts_are_split() {
    let seed = Seed::new(5);
    for (d, m) in [(3, 17), (300, 530)] {
        check_bits(&DenseGaussian::<f32>::new(seed, d, m).unwrap());
        check_bits(&DenseGaussian::<f64, Complex<f64>>::new(seed, d, m).unwrap());
        check_bits(&Rademacher::<f64>::new(seed, d, m).unwrap());
        check_bits(&Rademacher::<f32, Complex<f32>>::new(seed, d, m).unwrap());
        check_bits(&MatrixFree::<f64>::new(seed, d, m).unwrap());
        check_bits(&MatrixFree::<f32, Complex<f32>>::new(seed, d, m).unwrap());
    }
    check_bits(&Orthogonal::<f32>::new(seed, 19, 30).unwrap());
}

#[test]
fn matrix_free_outputs_are_the_outputs_of_stored_weights_in_either_precision() {
    fn check<R: Real, O: Scalar<Real = R>>() {
        for (d, m) in [(1, 1), (3, 17), (520, 300)] {
            let rows = numbers::<R>(70 * d);
            let stored = project(&DenseGaussian::<R, O>::new(Seed::new(6), d, m).unwrap(), &rows);
            let free = project(&MatrixFree::<R, O>::new(Seed::new(6), d, m).unwrap(), &rows);
            assert!(bits(&stored) == bits(&free), "{} {d} {m}", R::NAME);
        }
    }
    check::<f32, f32>();
    check::<f64, f64>();
    check::<f32, Complex<f32>>();
    check::<f64, Complex<f64>>();
}

/// Direction `j` at place `j`.
fn directions<P: Projection>(projection: &P) -> Vec<Vec<P::Output>> {
    let (d, m) = (projection.input_dim(), projection.output_dim());
    let mut identity = vec![P::Real::ZERO; d * d];
    (0..d).for_each(|i| identity[i * d + i] = P::Real::ONE);
    let out = project(projection, &identity);
    (0..m).map(|j| (0..d).map(|i| out[i * m + j]).collect()).collect()
}

#[test]
fn weights_are_the_documented_draws_rounded_once() {
    let (seed, d, m) = (Seed::new(8), 40, 21);
    let draws = |index: usize| {
        let mut normals = vec![0.0; d];
        Stream::new(seed, Role::Direction, index as u64).normals_from(0, &mut normals);
        normals
    };
    for (j, w) in directions(&DenseGaussian::<f32>::new(seed, d, m).unwrap()).iter().enumerate() {
        assert!(w.iter().zip(draws(j)).all(|(w, g)| *w == g as f32));
    }
    for (j, w) in directions(&DenseGaussian::<f32, Complex<f32>>::new(seed, d, m).unwrap()).iter().enumerate() {
        let (re, im) = (draws(2 * j), draws(2 * j + 1));
        for i in 0..d {
            assert_eq!(w[i], Complex::new((re[i] * FRAC_1_SQRT_2) as f32, (im[i] * FRAC_1_SQRT_2) as f32));
        }
    }
    let (single, double) = (Orthogonal::<f32>::new(seed, 6, 9).unwrap(), Orthogonal::<f64>::new(seed, 6, 9).unwrap());
    for (single, double) in directions(&single).iter().flatten().zip(directions(&double).iter().flatten()) {
        assert_eq!(*single, *double as f32);
    }
}

#[test]
fn products_of_factors_are_products_of_their_outputs() {
    fn check<P: Projection>(draw: impl Fn(Seed, usize) -> P) {
        for degree in 1..=3 {
            let factors: Vec<P> = (0..degree).map(|i| draw(Seed::new(i), 5 + i as usize)).collect();
            let inputs: Vec<Vec<P::Real>> = factors.iter().map(|f| numbers(9 * f.input_dim())).collect();
            let rows: Vec<_> = inputs.iter().map(|x| Tile::new(x, 9, x.len() / 9)).collect();
            let m = factors[0].output_dim();
            let mut expected = project(&factors[0], &inputs[0]);
            for (factor, rows) in factors[1..].iter().zip(&inputs[1..]) {
                expected.iter_mut().zip(project(factor, rows)).for_each(|(e, f)| *e *= f);
            }
            let mut out = vec![P::Output::ZERO; 9 * m];
            P::product_tile(&factors, &rows, TileMut::new(&mut out, 9, m), &mut Workspace::new());
            assert!(bits(&out) == bits(&expected), "degree {degree}");
            let (mut re, mut im) = (vec![P::Real::ZERO; 9 * m], vec![P::Real::ZERO; 9 * m]);
            let out = Parts::new(TileMut::new(&mut re, 9, m), TileMut::new(&mut im, 9, m));
            P::product_tile_split(&factors, &rows, out, &mut Workspace::new());
            let split: Vec<_> = re.iter().zip(&im).map(|(re, im)| P::Output::from_parts(*re, *im)).collect();
            assert!(bits(&split) == bits(&expected), "degree {degree} in parts");
        }
    }
    check(|seed, d| Rademacher::<f32>::new(seed, d, 1100).unwrap());
    check(|seed, d| DenseGaussian::<f64>::new(seed, d, 17).unwrap());
    check(|seed, d| Rademacher::<f32, Complex<f32>>::new(seed, d, 530).unwrap());
    check(|seed, d| MatrixFree::<f64, Complex<f64>>::new(seed, d, 270).unwrap());
}

/// How often each of `kinds^d` directions appears among `m`, against equal probabilities.
fn check_frequencies(patterns: impl Iterator<Item = usize>, count: usize, m: usize) {
    let mut found = vec![0_u32; count];
    patterns.for_each(|pattern| found[pattern] += 1);
    let expected = m as f64 / count as f64;
    let statistic: f64 = found.iter().map(|&f| (f64::from(f) - expected).powi(2) / expected).sum();
    let limit = chi_square_quantile((count - 1) as f64, 1.0 - ALPHA);
    assert!(statistic < limit, "{found:?}: {statistic} of at most {limit}");
}

#[test]
fn all_sign_patterns_of_a_short_direction_are_equally_likely() {
    let m = 40_000;
    let real = directions(&Rademacher::<f64>::new(Seed::new(3), 3, m).unwrap());
    let pattern = |w: &Vec<f64>| w.iter().fold(0, |p, w| 2 * p + usize::from(*w < 0.0));
    check_frequencies(real.iter().map(pattern), 8, m);
    let complex = directions(&Rademacher::<f64, Complex<f64>>::new(Seed::new(3), 3, m).unwrap());
    let code = |w: &Complex<f64>| match (w.re, w.im) {
        (1.0, 0.0) => 0,
        (0.0, 1.0) => 1,
        (-1.0, 0.0) => 2,
        (0.0, -1.0) => 3,
        _ => panic!("{w} is not a fourth root of one"),
    };
    check_frequencies(complex.iter().map(|w| w.iter().fold(0, |p, w| 4 * p + code(w))), 64, m);
}

/// `⟨Wx, Wy⟩/m` over seeds: its mean against `⟨x, y⟩`, its variance against `variance/m`.
fn check_moments<P: Projection>(name: &str, variance: f64, x: &[f64], y: &[f64], draw: impl Fn(Seed) -> P) {
    let seeds = 400;
    let exact: f64 = x.iter().zip(y).map(|(x, y)| x * y).sum();
    let (mut sum, mut squares, mut m) = (0.0, 0.0, 1.0);
    for seed in 0..seeds {
        let projection = draw(Seed::new(100 + seed));
        m = projection.output_dim() as f64;
        let rows: Vec<P::Real> = x.iter().chain(y).map(|&v| P::Real::from_f64(v)).collect();
        let out = project(&projection, &rows);
        let (wx, wy) = out.split_at(projection.output_dim());
        let estimate: P::Output = wx.iter().zip(wy).map(|(a, b)| *a * b.conj()).sum();
        let error = Real::to_f64(estimate.re()) / m - exact;
        let imaginary = Real::to_f64(estimate.im()) / m;
        sum += error;
        squares += error * error + imaginary * imaginary;
    }
    let (n, variance) = (seeds as f64, variance / m);
    assert!(
        (sum / n).abs() < normal_quantile(1.0 - ALPHA / 2.0) * (variance / n).sqrt() + 1e-12,
        "{name}: {}",
        sum / n
    );
    // Complex errors have two degrees of freedom for one; the interval for one is the wider.
    let (low, high) = (chi_square_quantile(n, ALPHA / 2.0) / n, chi_square_quantile(n, 1.0 - ALPHA / 2.0) / n);
    assert!((low..high).contains(&(squares / n / variance)), "{name}: {} of {variance}", squares / n);
}

#[test]
fn inner_products_have_the_mean_and_the_variance_of_the_closed_forms() {
    // Formulas for one factor: real normals N + t, complex N; real signs N + 2a - t, complex N + a - t,
    // with N = |x|²|y|², t = (x·y)², a = t - Σ x²y².
    let (x, y) = ([0.3, -1.2, 0.8, 0.5], [1.1, 0.4, 0.9, -0.2]);
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(a, b)| a * b).sum::<f64>();
    let (norms, t) = (dot(&x, &x) * dot(&y, &y), dot(&x, &y).powi(2));
    let a = t - x.iter().zip(&y).map(|(x, y)| (x * y).powi(2)).sum::<f64>();
    check_moments("gaussian", norms + t, &x, &y, |s| DenseGaussian::<f64>::new(s, 4, 64).unwrap());
    check_moments("complex gaussian", norms, &x, &y, |s| DenseGaussian::<f64, Complex<f64>>::new(s, 4, 64).unwrap());
    check_moments("rademacher", norms + 2.0 * a - t, &x, &y, |s| Rademacher::<f64>::new(s, 4, 64).unwrap());
    check_moments("complex rademacher", norms + a - t, &x, &y, |s| {
        Rademacher::<f64, Complex<f64>>::new(s, 4, 64).unwrap()
    });
}

#[test]
fn squared_lengths_of_orthogonal_directions_are_chi_square() {
    let (d, m) = (7, 7 * 400);
    let lengths: Vec<f64> = directions(&Orthogonal::<f64>::new(Seed::new(2), d, m).unwrap())
        .iter()
        .map(|w| w.iter().map(|w| w * w).sum())
        .collect();
    let (n, d) = (m as f64, d as f64);
    let mean = lengths.iter().sum::<f64>() / n;
    let variance = lengths.iter().map(|l| (l - d).powi(2)).sum::<f64>() / n;
    let z = normal_quantile(1.0 - ALPHA / 4.0);
    assert!((mean - d).abs() < z * (2.0 * d / n).sqrt(), "{mean}");
    // Fourth central moment 12 d (d + 4).
    assert!((variance - 2.0 * d).abs() < z * ((12.0 * d * (d + 4.0) - 4.0 * d * d) / n).sqrt(), "{variance}");
}

#[test]
fn orthogonal_directions_have_the_lengths_they_are_given() {
    let projection = Orthogonal::<f64>::with_lengths(Seed::new(2), 5, 12, |j| 1.0 + j as f64).unwrap();
    for (j, w) in directions(&projection).iter().enumerate() {
        let length = w.iter().map(|w| w * w).sum::<f64>().sqrt();
        assert!((length - 1.0 - j as f64).abs() < 1e-12, "{j}: {length}");
    }
}

#[test]
fn orthoprojections_keep_squared_lengths_on_average_with_the_variance_of_the_beta_law() {
    // |Px|² m / (d |x|²) ~ Beta(m/2, (d - m)/2): relative variance 2(d - m)/(m(d + 2)), the bound on the kurtosis of a
    // variable in [0, d/m] is crude, so the fourth moment is computed from the law.
    let (d, m, seeds) = (6, 2, 2000);
    let x = [0.5, -1.0, 0.25, 0.75, 1.5, -0.1];
    let norm: f64 = x.iter().map(|x| x * x).sum();
    let ratios: Vec<f64> = (0..seeds)
        .map(|seed| {
            let projection = Orthoprojector::<f64>::new(Seed::new(seed), d, m, Entries::Gaussian).unwrap();
            let scale = projection.scale();
            project(&projection, &x).iter().map(|p| (scale * p).powi(2)).sum::<f64>() / norm
        })
        .collect();
    let (n, d, m) = (seeds as f64, d as f64, m as f64);
    let variance = 2.0 * (d - m) / (m * (d + 2.0));
    // Raw moments of the beta law, scaled by d/m.
    let raw = |k: i32| (0..k).map(f64::from).fold((d / m).powi(k), |p, r| p * (m / 2.0 + r) / (d / 2.0 + r));
    let fourth = raw(4) - 4.0 * raw(3) + 6.0 * raw(2) - 3.0;
    let z = normal_quantile(1.0 - ALPHA / 4.0);
    let mean = ratios.iter().sum::<f64>() / n;
    let sample = ratios.iter().map(|r| (r - 1.0).powi(2)).sum::<f64>() / n;
    assert!((mean - 1.0).abs() < z * (variance / n).sqrt(), "{mean}");
    assert!((sample - variance).abs() < z * ((fourth - variance * variance) / n).sqrt(), "{sample} of {variance}");
}

#[test]
fn orthogonal_bits_do_not_depend_on_threads() {
    let run = |threads| {
        pool(threads).install(|| {
            let projection = Orthogonal::<f64>::new(Seed::new(1), 70, 200).unwrap();
            bits(&directions(&projection).concat())
        })
    };
    let one = run(1);
    assert!(one == run(2) && one == run(5));
}

#[test]
fn tiny_shapes_work() {
    for (d, m) in [(1, 1), (1, 5), (3, 1)] {
        let row = numbers::<f32>(d);
        assert_eq!(project(&DenseGaussian::<f32>::new(Seed::new(1), d, m).unwrap(), &row).len(), m);
        assert_eq!(project(&MatrixFree::<f32, Complex<f32>>::new(Seed::new(1), d, m).unwrap(), &row).len(), m);
        let signs = project(&Rademacher::<f32>::new(Seed::new(1), d, m).unwrap(), &row);
        let bound = row.iter().map(|x| x.abs()).sum::<f32>() * (1.0 + f32::EPSILON);
        assert!(signs.iter().all(|s| s.abs() <= bound));
        assert_eq!(project(&Orthogonal::<f32>::new(Seed::new(1), d, m).unwrap(), &row).len(), m);
    }
}
