//! Every closed form against the enumeration of all draws, written from the definitions of the maps.

use super::*;
use num_complex::Complex;

type C = Complex<f64>;

const CODES: [C; 4] = [C::new(1.0, 0.0), C::new(-1.0, 0.0), C::new(0.0, 1.0), C::new(0.0, -1.0)];
static X: [f64; 4] = [1.0, -0.5, 2.0, 0.7];
static Y: [f64; 4] = [0.5, 1.0, 1.5, -0.3];

/// Rows of length `d`; the first two coordinates alone would be orthogonal.
fn pair(d: usize) -> (&'static [f64], &'static [f64]) {
    (&X[4 - d..], &Y[4 - d..])
}

fn close(found: f64, expected: f64) {
    let scale = expected.abs().max(1.0);
    assert!((found - expected).abs() <= 2e-12 * scale, "{found} instead of {expected}");
}

/// Mean, `E|k̂ − k|²` and `E(k̂ − k)²` from weighted values.
#[derive(Default)]
struct Tally {
    weight: f64,
    mean: C,
    abs_sq: C,
    square: C,
    lost: [C; 3],
}

/// Kahan's sum: millions of outcomes would otherwise cost three digits.
fn add(sum: &mut C, lost: &mut C, term: C) {
    let term = term - *lost;
    let next = *sum + term;
    *lost = (next - *sum) - term;
    *sum = next;
}

impl Tally {
    fn add(&mut self, weight: f64, value: C) {
        self.weight += weight;
        add(&mut self.mean, &mut self.lost[0], weight * value);
        add(&mut self.abs_sq, &mut self.lost[1], C::from(weight * value.norm_sqr()));
        add(&mut self.square, &mut self.lost[2], weight * value * value);
    }

    fn check(&self, kernel: f64, variance: f64, pseudo: f64) {
        let w = self.weight;
        close(self.mean.re / w, kernel);
        close(self.mean.im / w, 0.0);
        close(self.abs_sq.re / w - kernel * kernel, variance);
        close(self.square.re / w - kernel * kernel, pseudo);
        close(self.square.im / w, 0.0);
    }
}

/// Calls `f` with every word of `length` letters below `letters`.
fn for_each_word(letters: usize, length: usize, mut f: impl FnMut(&[usize])) {
    let mut word = vec![0; length];
    loop {
        f(&word);
        let Some(i) = word.iter().position(|&c| c + 1 < letters) else { return };
        word[..i].fill(0);
        word[i] += 1;
    }
}

fn permutations(n: usize) -> Vec<Vec<usize>> {
    let mut all = Vec::new();
    for_each_word(n, n, |word| {
        if (0..n).all(|i| word.contains(&i)) {
            all.push(word.to_vec());
        }
    });
    all
}

fn weighted_sum(codes: &[usize], x: &[f64]) -> C {
    codes.iter().zip(x).map(|(&c, &x)| CODES[c] * x).sum()
}

fn hadamard(codes: &[usize], x: &[f64]) -> Vec<C> {
    (0..x.len())
        .map(|row| {
            let sign = |col: usize| if (row & col).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
            (0..x.len()).map(|col| CODES[codes[col]] * sign(col) * x[col]).sum()
        })
        .collect()
}

fn sketch(kind: Kind, weights: Weights, degree: u32, draws: usize, dim: usize) -> Sketch {
    Sketch::new(kind, weights, degree, draws, dim).unwrap()
}

#[test]
fn products_of_independent_signs_match_the_enumeration_of_all_signs() {
    for (d, p) in [(1, 3), (2, 1), (2, 2), (2, 3), (3, 1), (3, 2)] {
        let (x, y) = pair(d);
        let stats = PairStats::new(x, y);
        let kernel = stats.dot.powi(p as i32);
        for q in [1.0, 0.5, 0.8, 0.3] {
            let mut tally = Tally::default();
            for_each_word(4, d * p, |word| {
                let weight = word.iter().map(|&c| if c < 2 { q / 2.0 } else { (1.0 - q) / 2.0 }).product();
                let value = word.chunks(d).map(|w| weighted_sum(w, x) * weighted_sum(w, y).conj()).product();
                tally.add(weight, value);
            });
            let moments = rademacher(&stats, p as u32, q);
            tally.check(kernel, moments.variance, moments.pseudo_variance);
            for draws in [1, 7] {
                let of = |weights| sketch(Kind::Rademacher, weights, p as u32, draws, d);
                if q == 1.0 {
                    close(of(Weights::Real).variance(&stats), moments.variance / draws as f64);
                    close(of(Weights::Real).pseudo_variance(&stats), moments.variance / draws as f64);
                }
                if q == 0.5 {
                    close(of(Weights::Complex).variance(&stats), moments.variance / draws as f64);
                    close(of(Weights::Complex).pseudo_variance(&stats), moments.pseudo_variance / draws as f64);
                    close(of(Weights::Ctr).variance(&stats), moments.real_part() / draws as f64);
                }
            }
        }
    }
}

/// `E|w·x conj(w·y)|²` and `E(w·x conj(w·y))²` by the rule of Isserlis, from the four real projections.
fn gaussian_factor(x: &[f64], y: &[f64], q: f64) -> (f64, f64) {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let (xx, yy, xy) = (dot(x, x), dot(y, y), dot(x, y));
    let p = 1.0 - q;
    // With w = √q g + i√p h: |w·x|²|w·y|² and ((w·x) conj(w·y))² expanded in moments of g and h.
    let same = xx * yy + 2.0 * xy * xy;
    let abs = q * q * same + p * p * same + 2.0 * p * q * xx * yy;
    // Re = q gx gy + p hx hy, Im = √(pq)(hx gy − gx hy); E(Re²) − E(Im²).
    let re_sq = q * q * same + p * p * same + 2.0 * p * q * xy * xy;
    let im_sq = p * q * (2.0 * xx * yy - 2.0 * xy * xy);
    close(re_sq + im_sq, abs);
    (abs, re_sq - im_sq)
}

#[test]
fn products_of_normals_match_moments_by_isserlis() {
    let stats = PairStats::new(&X, &Y);
    for q in [1.0, 0.5, 0.8] {
        let (abs, square) = gaussian_factor(&X, &Y, q);
        for p in 0..5 {
            let moments = gaussian(&stats, p, q);
            close(moments.variance, abs.powi(p as i32) - stats.t.powi(p as i32));
            close(moments.pseudo_variance, square.powi(p as i32) - stats.t.powi(p as i32));
        }
    }
}

/// `u ∘ conj(v)` of the transforms of both rows, for the signs of every factor.
fn transformed(word: &[usize], x: &[f64], y: &[f64]) -> Vec<Vec<C>> {
    let product = |w: &[usize]| hadamard(w, x).iter().zip(hadamard(w, y)).map(|(u, v)| u * v.conj()).collect();
    word.chunks(x.len()).map(product).collect()
}

/// Sums over a block of `count` features of `∏ u_i[π_i(l)] conj(v_i[π_i(l)])`, over all signs and permutations of
/// `0..indices` read modulo the dimension.
fn structured_tally(x: &[f64], y: &[f64], p: usize, letters: usize, count: usize, indices: usize) -> Tally {
    let d = x.len();
    let orders = permutations(indices);
    let mut tally = Tally::default();
    for_each_word(letters, d * p, |word| {
        let products = transformed(word, x, y);
        for_each_word(orders.len(), p, |choice| {
            let feature = |l: usize| (0..p).map(|i| products[i][orders[choice[i]][l] % d]).product::<C>();
            tally.add(1.0, (0..count).map(feature).sum::<C>() / count as f64);
        });
    });
    tally
}

#[test]
fn a_block_of_tensor_srht_matches_the_enumeration_of_signs_and_permutations() {
    for (d, p, counts) in [(2, 1, 1..=2), (2, 2, 1..=2), (2, 3, 1..=2), (4, 1, 1..=4), (1, 2, 1..=1)] {
        let (x, y) = pair(d);
        let stats = PairStats::new(x, y);
        for count in counts {
            let kernel = stats.dot.powi(p as i32);
            for kind in [Kind::SrhtStacked, Kind::SrhtUpsampled] {
                let real = sketch(kind, Weights::Real, p as u32, count, d);
                structured_tally(x, y, p, 2, count, d).check(kernel, real.variance(&stats), real.variance(&stats));
                let complex = sketch(kind, Weights::Complex, p as u32, count, d);
                let (v, pv) = (complex.variance(&stats), complex.pseudo_variance(&stats));
                structured_tally(x, y, p, 4, count, d).check(kernel, v, pv);
                close(sketch(kind, Weights::Ctr, p as u32, count, d).variance(&stats), (v + pv) / 2.0);
            }
        }
    }
}

#[test]
fn stacked_blocks_are_independent() {
    // D = 2, 3, 4, 5 in blocks of two: the variance of a mean of independent block sums, each block enumerated.
    let (x, y) = pair(2);
    let stats = PairStats::new(x, y);
    for p in 1..=3 {
        let kernel = stats.dot.powi(p as i32);
        for letters in [2, 4] {
            let spread = |count: usize| {
                let tally = structured_tally(x, y, p, letters, count, 2);
                let square = count as f64 * count as f64;
                (
                    square * (tally.abs_sq.re / tally.weight - kernel * kernel),
                    square * (tally.square.re / tally.weight - kernel * kernel),
                )
            };
            let (full, single) = (spread(2), spread(1));
            for draws in 2..=5 {
                let (blocks, rest) = ((draws / 2) as f64, (draws % 2) as f64);
                let expected = (
                    (blocks * full.0 + rest * single.0) / (draws * draws) as f64,
                    (blocks * full.1 + rest * single.1) / (draws * draws) as f64,
                );
                let weights = if letters == 2 { Weights::Real } else { Weights::Complex };
                let found = sketch(Kind::SrhtStacked, weights, p as u32, draws, 2).moments(&stats);
                close(found.variance, expected.0);
                close(found.pseudo_variance, expected.1);
            }
        }
    }
}

#[test]
fn orthogonal_rows_can_make_even_degrees_worse_than_independent_signs() {
    let (x, y) = (&X[..2], &Y[..2]);
    let stats = PairStats::new(x, y);
    assert_eq!(stats.dot, 0.0);
    let found = sketch(Kind::SrhtStacked, Weights::Real, 2, 2, 2).variance(&stats);
    structured_tally(x, y, 2, 2, 2, 2).check(0.0, found, found);
    assert!(found > sketch(Kind::Rademacher, Weights::Real, 2, 2, 2).variance(&stats));
}

#[test]
fn upsampled_tensor_srht_matches_the_enumeration_of_shuffled_index_lists() {
    let (x, y) = pair(2);
    let stats = PairStats::new(x, y);
    for (p, draws, indices, letters) in
        [(1, 3, 4, 4), (1, 4, 4, 2), (2, 3, 4, 4), (2, 4, 4, 4), (1, 5, 6, 4), (3, 3, 4, 2), (2, 5, 6, 2)]
    {
        let weights = if letters == 2 { Weights::Real } else { Weights::Complex };
        let found = sketch(Kind::SrhtUpsampled, weights, p as u32, draws, 2).moments(&stats);
        let tally = structured_tally(x, y, p, letters, draws, indices);
        tally.check(stats.dot.powi(p as i32), found.variance, found.pseudo_variance);
    }
}

#[test]
fn tuple_sampling_matches_the_enumeration_of_index_tuples() {
    for (d, p, draws) in [(2, 2, 1), (2, 2, 2), (2, 2, 3), (2, 2, 4), (2, 1, 2), (2, 3, 2), (4, 1, 3)] {
        let (x, y) = pair(d);
        let stats = PairStats::new(x, y);
        let tuples = usize::pow(d, p as u32);
        for (letters, weights) in [(2, Weights::Real), (4, Weights::Complex)] {
            for replacement in [false, true] {
                let mut tally = Tally::default();
                for_each_word(letters, d * p, |word| {
                    let products = transformed(word, x, y);
                    let feature =
                        |t: usize| (0..p).map(|i| products[i][t / usize::pow(d, i as u32) % d]).product::<C>();
                    let features: Vec<C> = (0..tuples).map(feature).collect();
                    for_each_word(tuples, draws, |chosen| {
                        let distinct = (1..draws).all(|i| !chosen[..i].contains(&chosen[i]));
                        if replacement || distinct {
                            tally.add(1.0, chosen.iter().map(|&t| features[t]).sum::<C>() / draws as f64);
                        }
                    });
                });
                let found = sketch(Kind::SrhtTuple { replacement }, weights, p as u32, draws, d).moments(&stats);
                tally.check(stats.dot.powi(p as i32), found.variance, found.pseudo_variance);
            }
        }
    }
}

fn convolve(a: &[C], b: &[C]) -> Vec<C> {
    let n = a.len();
    (0..n).map(|k| (0..n).map(|i| a[i] * b[(k + n - i) % n]).sum()).collect()
}

#[test]
fn tensor_sketch_matches_the_enumeration_of_hashes_and_signs() {
    // The second factor sees other vectors: multimodal pooling.
    let other = ([0.8, -1.2, 0.4], [1.5, 0.6, -0.9]);
    for (d, p, draws, multimodal) in [
        (2, 1, 3, false),
        (2, 2, 1, false),
        (2, 2, 2, false),
        (2, 2, 3, true),
        (2, 2, 4, false),
        (3, 2, 2, true),
        (2, 3, 2, false),
        (3, 1, 4, false),
    ] {
        let rows = |i: usize| if multimodal && i == 1 { (&other.0[..d], &other.1[..d]) } else { pair(d) };
        let factors: Vec<PairStats> = (0..p).map(|i| PairStats::new(rows(i).0, rows(i).1)).collect();
        let kernel: f64 = factors.iter().map(|f| f.dot).product();
        for (letters, weights) in [(2, Weights::Real), (4, Weights::Complex)] {
            if letters == 4 && d * p > 4 {
                continue;
            }
            let mut tally = Tally::default();
            for_each_word(draws, d * p, |hashes| {
                for_each_word(letters, d * p, |signs| {
                    let map = |second: bool| {
                        let sketches = (0..p).map(|i| {
                            let mut counts = vec![C::ZERO; draws];
                            let row = if second { rows(i).1 } else { rows(i).0 };
                            for j in 0..d {
                                counts[hashes[i * d + j]] += CODES[signs[i * d + j]] * row[j];
                            }
                            counts
                        });
                        sketches.reduce(|a, b| convolve(&a, &b)).unwrap()
                    };
                    tally.add(1.0, map(false).iter().zip(map(true)).map(|(u, v)| u * v.conj()).sum());
                });
            });
            let variance = tensor_sketch(&factors, weights, draws);
            let pseudo = if letters == 2 { variance } else { tensor_sketch_pseudo(&factors, draws) };
            tally.check(kernel, variance, pseudo);
            if letters == 4 {
                close(tensor_sketch(&factors, Weights::Ctr, draws), (variance + pseudo) / 2.0);
            }
            if !multimodal {
                let found = sketch(Kind::TensorSketch, weights, p as u32, draws, d).moments(&factors[0]);
                close(found.variance, variance);
                close(found.pseudo_variance, pseudo);
            }
        }
    }
}

#[test]
fn values_enumerated_for_the_errata_are_met() {
    let within = |found: f64, printed: f64, unit: f64| assert!((found - printed).abs() <= 0.5001 * unit, "{found}");
    let stats = PairStats::new(&X, &Y);
    let complex = sketch(Kind::SrhtStacked, Weights::Complex, 2, 4, 4);
    within(complex.variance(&stats), 40.793, 1e-3);
    within(complex.pseudo_variance(&stats), 1.033, 1e-3);
    let flat = PairStats::new(&[1.0, -0.5, 2.0, 0.0], &[0.5, 1.0, 1.5, 0.0]);
    within(sketch(Kind::SrhtStacked, Weights::Real, 2, 4, 4).variance(&flat), 23.380, 1e-3);
    within(sketch(Kind::SrhtStacked, Weights::Real, 2, 4, 4).variance(&stats), 28.846, 1e-3);
    within(sketch(Kind::SrhtUpsampled, Weights::Real, 2, 3, 3).variance(&flat), 45.3258, 1e-4);
    // Signs are not always best: x = (1, 1), y = (1, −1), p = 2.
    let stats = PairStats::new(&[1.0, 1.0], &[1.0, -1.0]);
    assert_eq!(rademacher(&stats, 2, 0.5).pseudo_variance, 4.0);
    assert_eq!(gaussian(&stats, 2, 0.5).pseudo_variance, 0.0);
    assert_eq!(rademacher(&stats, 2, 0.5).real_part(), 4.0);
    within(rademacher(&stats, 2, 0.8).real_part(), 1.64, 1e-2);
    assert_eq!(rademacher(&stats, 2, 1.0).real_part(), 0.0);
}

#[test]
fn isometries_have_no_variance() {
    for d in [1usize, 2, 3, 4, 7, 64, 1000] {
        let x: Vec<f64> = (0..d).map(|i| (i as f64 * 0.37).sin()).collect();
        let y: Vec<f64> = (0..d).map(|i| (i as f64 * 0.73).cos() - 0.3).collect();
        let stats = PairStats::new(&x, &y);
        for weights in [Weights::Real, Weights::Complex, Weights::Ctr] {
            for kind in [Kind::SrhtStacked, Kind::SrhtUpsampled] {
                for blocks in [1, 2, 5] {
                    let full = sketch(kind, weights, 1, blocks * d.next_power_of_two(), d);
                    assert_eq!(full.variance(&stats), 0.0);
                    assert_eq!(full.pseudo_variance(&stats), 0.0);
                }
            }
            let every_tuple =
                sketch(Kind::SrhtTuple { replacement: false }, weights, 2, d.next_power_of_two().pow(2), d);
            assert_eq!(every_tuple.variance(&stats), 0.0);
            for kind in [Kind::Rademacher, Kind::Gaussian, Kind::SrhtStacked, Kind::SrhtUpsampled, Kind::TensorSketch] {
                assert_eq!(sketch(kind, weights, 0, 3, d).variance(&stats), 0.0, "degree 0 is the constant 1");
            }
        }
    }
}

/// Variances of the estimates of all `(γ⟨xᵢ, yⱼ⟩ + ν)ᵖ`.
fn variances(
    sketch: &Sketch,
    x: ndarray::ArrayView2<'_, f64>,
    y: ndarray::ArrayView2<'_, f64>,
    gamma: f64,
    coef0: f64,
) -> crate::Result<ndarray::Array2<f64>> {
    map_pairs(x, y, |stats| sketch.variance(&stats.affine(gamma, coef0)))
}

#[test]
fn one_coordinate_makes_signs_exact_for_single_pairs_and_matrices() {
    let x = ndarray::array![[0.1], [3.7], [-2.3]];
    for kind in [Kind::Rademacher, Kind::SrhtStacked, Kind::SrhtUpsampled, Kind::TensorSketch] {
        for weights in [Weights::Real, Weights::Complex, Weights::Ctr] {
            let sketch = sketch(kind, weights, 3, 5, 1);
            let matrix = variances(&sketch, x.view(), x.view(), 1.0, 0.0).unwrap();
            assert!(matrix.iter().all(|&v| v == 0.0));
            assert_eq!(sketch.variance(&PairStats::new(&[0.1], &[3.7])), 0.0);
        }
    }
}

#[test]
fn complex_to_real_gains_what_the_gain_formulas_say() {
    let choose = |n: u32, k: u32| (0..k).fold(1.0, |c, i| c * f64::from(n - i) / f64::from(i + 1));
    for (x, y) in [(X, Y), ([0.3, 0.0, 1.0, 2.0], [1.0, 0.4, 0.2, 0.1])] {
        let PairStats { n, s, a, t, .. } = PairStats::new(&x, &y);
        let stats = PairStats::new(&x, &y);
        for p in 1..=6 {
            for draws in [1, 3, 10] {
                let gain = |kind| {
                    sketch(kind, Weights::Real, p, 2 * draws, 4).variance(&stats)
                        - sketch(kind, Weights::Ctr, p, draws, 4).variance(&stats)
                };
                let term = |j: u32| {
                    choose(p, j)
                        * (f64::powi(2.0, (p - j) as i32) - 1.0)
                        * (n.powi(j as i32) - s.powi(j as i32))
                        * a.powi((p - j) as i32)
                };
                close(gain(Kind::Rademacher), (0..p).map(term).sum::<f64>() / (2 * draws) as f64);
                let term = |j: u32| {
                    choose(p, j) * (f64::powi(2.0, j as i32) - 1.0) * t.powi(j as i32) * n.powi((p - j) as i32)
                };
                close(gain(Kind::Gaussian), (0..p).map(term).sum::<f64>() / (2 * draws) as f64);
            }
        }
    }
}

#[test]
fn the_bias_coordinate_is_an_ordinary_coordinate() {
    let (gamma, coef0) = (0.7f64, 1.3f64);
    let extend = |x: &[f64]| x.iter().map(|v| gamma.sqrt() * v).chain([coef0.sqrt()]).collect::<Vec<_>>();
    let direct = PairStats::new(&extend(&X), &extend(&Y));
    let affine = PairStats::new(&X, &Y).affine(gamma, coef0);
    for (found, expected) in [
        (affine.dot, direct.dot),
        (affine.x_norm_sq, direct.x_norm_sq),
        (affine.y_norm_sq, direct.y_norm_sq),
        (affine.t, direct.t),
        (affine.n, direct.n),
        (affine.s, direct.s),
        (affine.a, direct.a),
        (affine.b, direct.b),
    ] {
        close(found, expected);
    }
}

#[test]
fn matrices_agree_with_single_pairs_whatever_the_blocks() {
    let (n, m, d) = (131, 1030, 9);
    let x = ndarray::Array2::from_shape_fn((n, d), |(i, j)| ((i * 17 + j * 5) as f64 * 0.61).sin());
    let y = ndarray::Array2::from_shape_fn((m, d), |(i, j)| ((i * 3 + j * 11) as f64 * 0.37).cos());
    for kind in [Kind::Rademacher, Kind::Gaussian, Kind::SrhtUpsampled, Kind::TensorSketch] {
        let sketch = sketch(kind, Weights::Ctr, 3, 50, d + 1);
        let all = variances(&sketch, x.view(), y.view(), 0.5, 1.0).unwrap();
        for (i, j) in [(0, 0), (5, 1029), (130, 1023), (130, 1024), (127, 7), (128, 8)] {
            let stats = PairStats::new(x.row(i).as_slice().unwrap(), y.row(j).as_slice().unwrap()).affine(0.5, 1.0);
            close(all[[i, j]], sketch.variance(&stats));
            let one = x.slice(ndarray::s![i..i + 1, ..]);
            let other = y.slice(ndarray::s![j..j + 1, ..]);
            assert_eq!(variances(&sketch, one, other, 0.5, 1.0).unwrap()[[0, 0]], all[[i, j]], "single rows");
        }
    }
}

#[test]
fn extreme_norms_neither_overflow_nor_turn_negative() {
    for (u, v) in [(1e-3, 1e-3), (1e3, 1e3), (1e-3, 1e3)] {
        for angle in [0.0, 1e-9, 0.3, std::f64::consts::FRAC_PI_2, 3.0, std::f64::consts::PI] {
            let (x, y) = ([u, 0.0, 0.0], [v * angle.cos(), v * angle.sin(), 0.0]);
            let stats = PairStats::new(&x, &y);
            for p in [1, 2, 3, 7, 20] {
                for kind in [
                    Kind::Rademacher,
                    Kind::Gaussian,
                    Kind::SrhtStacked,
                    Kind::SrhtUpsampled,
                    Kind::SrhtTuple { replacement: false },
                    Kind::TensorSketch,
                ] {
                    for weights in [Weights::Real, Weights::Complex, Weights::Ctr] {
                        for draws in [1, 3, 4, 1000] {
                            let value = sketch(kind, weights, p, draws, 3).variance(&stats);
                            assert!(value >= 0.0 && value.is_finite(), "{kind:?} {weights:?} {p} {draws} {value}");
                        }
                    }
                }
            }
        }
    }
    let huge = PairStats::new(&[1e100, 1e90], &[1e100, -1e80]);
    assert_eq!(sketch(Kind::Rademacher, Weights::Real, 3, 2, 2).variance(&huge), f64::INFINITY);
}

#[test]
fn zero_rows_are_estimated_without_error() {
    let stats = PairStats::new(&[0.0; 4], &Y);
    for kind in [Kind::Rademacher, Kind::Gaussian, Kind::SrhtStacked, Kind::SrhtUpsampled, Kind::TensorSketch] {
        assert_eq!(sketch(kind, Weights::Ctr, 3, 7, 4).variance(&stats), 0.0);
    }
}

#[test]
fn a_block_is_what_its_covariances_make_it() {
    // D = d': Var = (V + (d'−1) Cov)/d'.
    let stats = PairStats::new(&X, &Y);
    for weights in [Weights::Real, Weights::Complex, Weights::Ctr] {
        for p in 1..=4 {
            let block = sketch(Kind::SrhtStacked, weights, p, 4, 4);
            let single = sketch(Kind::SrhtStacked, weights, p, 1, 4).variance(&stats);
            close(block.variance(&stats), (single + 3.0 * block.block_covariance(&stats)) / 4.0);
        }
    }
}

#[test]
fn descriptions_out_of_range_are_refused() {
    assert!(Sketch::new(Kind::Rademacher, Weights::Real, 2, 0, 3).is_err());
    assert!(Sketch::new(Kind::Rademacher, Weights::Real, 2, 3, 0).is_err());
    let rows = ndarray::array![[1.0, f64::NAN]];
    let good = ndarray::array![[1.0, 2.0]];
    let sketch = sketch(Kind::Rademacher, Weights::Real, 2, 3, 2);
    assert!(variances(&sketch, rows.view(), good.view(), 1.0, 0.0).is_err());
    assert!(variances(&sketch, good.view(), ndarray::array![[1.0]].view(), 1.0, 0.0).is_err());
}
