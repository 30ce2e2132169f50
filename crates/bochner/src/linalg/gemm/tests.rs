use super::pack::Dense;
use super::*;
use crate::Error;
use crate::random::{Role, Seed, Stream};

/// Numbers in [-1, 1), different for every label.
fn numbers<R: Real>(label: u64, count: usize) -> Vec<R> {
    let mut draw = Stream::new(Seed::new(31), Role::Noise, label);
    (0..count).map(|_| R::from_f64(2.0 * draw.uniform() - 1.0)).collect()
}

/// The definition in the module's head, word by word.
fn by_definition<R: Real>(a: &[R], b: impl Fn(usize) -> R, step: usize) -> R {
    let chains = a
        .chunks(step)
        .enumerate()
        .map(|(block, a)| a.iter().enumerate().fold(R::ZERO, |sum, (p, &a)| a.mul_add(b(block * step + p), sum)));
    chains.reduce(|sum, chain| sum + chain).unwrap_or(R::ZERO)
}

fn bits<R: Real>(numbers: &[R]) -> Vec<u64> {
    numbers.iter().map(|&x| Real::to_f64(x).to_bits()).collect()
}

fn multiply<R: Real>(
    instructions: Instructions,
    a: &[R],
    n: usize,
    right: &dyn Panels<R, 1>,
    columns: Range<usize>,
) -> Vec<R> {
    let mut out = vec![R::nan(); n * columns.len()];
    let window = TileMut::new(&mut out, n, columns.len());
    product_on(instructions, Tile::new(a, n, right.depth()), right, columns, [window], &mut Workspace::new());
    out
}

/// Rows, depth, columns: one of everything, around the register block, the panel, the depth block and the row block.
const SHAPES: [(usize, usize, usize); 13] = [
    (1, 1, 1),
    (1, 3, 17),
    (2, 16, 16),
    (3, 255, 8),
    (6, 256, 15),
    (7, 257, 9),
    (8, 5, 33),
    (13, 513, 7),
    (64, 31, 64),
    (65, 300, 20),
    (97, 17, 18),
    (200, 9, 300),
    // More than a megabyte of rows: copied into blocks anew for every chunk of columns.
    (100, 2700, 130),
];

#[test]
fn products_follow_the_definition_bit_by_bit_with_and_without_vector_instructions() {
    fn check<R: Real>(n: usize, depth: usize, m: usize) {
        let (a, b) = (numbers::<R>(1, n * depth), numbers::<R>(2, depth * m));
        let expected: Vec<R> = (0..n * m)
            .map(|o| by_definition(&a[o / m * depth..][..depth], |p| b[p * m + o % m], depth_block(depth)))
            .collect();
        let dense = Dense::Plain(Tile::new(&b, depth, m));
        let packed = Packed::new(&dense).unwrap();
        for instructions in [Instructions::detect(), Instructions::Portable] {
            for right in [&dense as &dyn Panels<R, 1>, &packed] {
                let found = multiply(instructions, &a, n, right, 0..m);
                assert_eq!(bits(&found), bits(&expected), "{n} x {depth} x {m} with {instructions:?}");
            }
        }
        let mut transposed = vec![R::ZERO; depth * m];
        (0..depth * m).for_each(|o| transposed[o % m * depth + o / m] = b[o]);
        let (a, b, bt) = (Tile::new(&a, n, depth), Tile::new(&b, depth, m), Tile::new(&transposed, m, depth));
        let (mut nn, mut nt) = (vec![R::nan(); n * m], vec![R::nan(); n * m]);
        matmul_nn(a, b, TileMut::new(&mut nn, n, m)).unwrap();
        matmul_nt(a, bt, TileMut::new(&mut nt, n, m)).unwrap();
        assert_eq!((bits(&nn), bits(&nt)), (bits(&expected), bits(&expected)));
    }
    for (n, depth, m) in SHAPES {
        check::<f32>(n, depth, m);
        check::<f64>(n, depth, m);
    }
}

#[test]
fn products_are_as_exact_as_their_chains_allow() {
    // |fl(aᵀb) - aᵀb| ≤ γ Σ|a||b| with one rounding per term and per chain: Higham 2002, section 3.1.
    for (n, depth, m) in [(5, 784, 33), (9, 3000, 21)] {
        let (a, b) = (numbers::<f32>(3, n * depth), numbers::<f32>(4, depth * m));
        let found = multiply(Instructions::detect(), &a, n, &Dense::Plain(Tile::new(&b, depth, m)), 0..m);
        let roundings = (depth + depth.div_ceil(depth_block(depth))) as f64 * f64::from(f32::EPSILON) / 2.0;
        for o in 0..n * m {
            let terms = (0..depth).map(|p| f64::from(a[o / m * depth + p]) * f64::from(b[p * m + o % m]));
            let (exact, size) = terms.fold((0.0, 0.0), |(sum, size), t| (sum + t, size + t.abs()));
            let error = (f64::from(found[o]) - exact).abs();
            assert!(error <= roundings / (1.0 - roundings) * size, "{error} of {size}");
        }
    }
}

#[test]
fn bits_do_not_depend_on_how_rows_are_cut_nor_on_the_columns_asked_for() {
    let (n, depth, m) = (130, 300, 100);
    let (a, b) = (numbers::<f32>(5, n * depth), numbers::<f32>(6, depth * m));
    let dense = Dense::Plain(Tile::new(&b, depth, m));
    let packed = Packed::new(&dense).unwrap();
    let whole = multiply(Instructions::detect(), &a, n, &packed, 0..m);
    for right in [&dense as &dyn Panels<f32, 1>, &packed] {
        for cut in [1, 2, 7, 64, 65, n] {
            let parts: Vec<f32> = a
                .chunks(cut * depth)
                .flat_map(|a| multiply(Instructions::detect(), a, a.len() / depth, right, 0..m))
                .collect();
            assert_eq!(bits(&parts), bits(&whole), "cut into {cut} rows");
        }
        for columns in [0..16, 16..48, 0..1, 3..5, 15..17, 31..100, 99..100] {
            let part = multiply(Instructions::detect(), &a, n, right, columns.clone());
            let expected: Vec<f32> = (0..n).flat_map(|i| whole[i * m..][columns.clone()].to_vec()).collect();
            assert_eq!(bits(&part), bits(&expected), "columns {columns:?}");
        }
    }
}

/// Two parts: the second is the first, negated.
struct Twins<'a>(Dense<'a, f64>);

impl Panels<f64, 2> for Twins<'_> {
    fn depth(&self) -> usize {
        self.0.depth()
    }
    fn columns(&self) -> usize {
        self.0.columns()
    }
    fn write(&self, panel: usize, depths: Range<usize>, out: &mut [f64]) {
        let (first, second) = out.split_at_mut(out.len() / 2);
        self.0.write(panel, depths, first);
        (0..first.len()).for_each(|i| second[i] = -first[i]);
    }
}

#[test]
fn parts_of_a_column_go_to_their_own_windows() {
    let (n, depth, m) = (11, 400, 150);
    let (a, b) = (numbers::<f64>(7, n * depth), numbers::<f64>(8, depth * m));
    let dense = Dense::Plain(Tile::new(&b, depth, m));
    let single = multiply(Instructions::detect(), &a, n, &dense, 0..m);
    let packed = Packed::new(&Twins(dense)).unwrap();
    for right in [&Twins(dense) as &dyn Panels<f64, 2>, &packed] {
        let (mut first, mut second) = (vec![0.0; n * m], vec![0.0; n * m]);
        let windows = [TileMut::new(&mut first, n, m), TileMut::new(&mut second, n, m)];
        product(Tile::new(&a, n, depth), right, 0..m, windows, &mut Workspace::new());
        assert_eq!(first, single);
        assert!(first.iter().zip(&second).all(|(f, s)| *s == -*f));
    }
    assert_eq!(packed.get(399, 149, 1), -b[399 * m + 149]);
}

#[test]
fn blocks_of_a_left_factor_give_the_bits_of_its_rows_with_and_without_vector_instructions() {
    fn check<R: Real>() {
        let depth = 37;
        for rows in [1, 2, 3, 4, 5, 6, 7, 11, 12] {
            let (a, panel) = (numbers::<R>(17, rows * depth), numbers::<R>(18, depth * R::PANEL));
            let mut blocks = Vec::new();
            for block in ranges(0..rows, kernel::BLOCK_ROWS) {
                (0..depth).for_each(|p| blocks.extend(block.clone().map(|i| a[i * depth + p])));
            }
            let run = |instructions, left| {
                let mut out = numbers::<R>(19, rows * R::PANEL);
                let window = TileMut::new(&mut out, rows, R::PANEL);
                let sweep = Sweep { left, panel: &panel, out: window, skip: 0, onto: Onto::Output, next: &panel };
                R::run_on(instructions, sweep);
                bits(&out)
            };
            let (rows, blocks) = (Left::Rows(Tile::new(&a, rows, depth)), Left::Blocks { data: &blocks, rows });
            let expected = run(Instructions::Portable, rows);
            assert_eq!(run(Instructions::Portable, blocks), expected);
            assert_eq!(run(Instructions::detect(), blocks), expected);
            assert_eq!(run(Instructions::detect(), rows), expected);
        }
    }
    check::<f32>();
    check::<f64>();
}

/// Adds the lower triangle of `blockᵀ block` to a row-major square.
fn add_gram<R: Real>(block: Tile<'_, R>, gram: &mut [f64]) {
    let d = block.cols();
    let strips = gram.chunks_mut(TILE_ROWS * d).map(|strip| TileMut::new(strip, strip.len() / d, d)).collect();
    lower_update(block, strips, &mut Workspace::new());
}

#[test]
fn grams_follow_the_definition_bit_by_bit_and_leave_the_upper_triangle_alone() {
    fn check<R: Real>(n: usize, d: usize) {
        let z = numbers::<R>(9, n * d);
        // Chains of 256 rows, sums of at most 2,048 rows in R, sums of those in f64.
        let expected = |i: usize, j: usize| {
            (0..n).step_by(2048).fold(1.0, |sum: f64, start| {
                let left: Vec<R> = (start..n.min(start + 2048)).map(|p| z[p * d + i]).collect();
                sum + Real::to_f64(by_definition(&left, |p| z[(start + p) * d + j], 256))
            })
        };
        let mut gram = vec![1.0; d * d];
        add_gram(Tile::new(&z, n, d), &mut gram);
        for i in 0..d {
            for j in 0..d {
                let expected = if j <= i { expected(i, j) } else { 1.0 };
                assert_eq!(gram[i * d + j].to_bits(), expected.to_bits(), "({i}, {j}) of {n} x {d}");
            }
        }
    }
    for (n, d) in [(1, 1), (3, 17), (255, 7), (257, 100), (2100, 5)] {
        check::<f32>(n, d);
        check::<f64>(n, d);
    }
}

#[test]
fn bits_do_not_depend_on_the_number_of_threads() {
    let (n, d, m) = (500, 230, 140);
    let (a, b) = (numbers::<f32>(13, n * d), numbers::<f32>(14, d * m));
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let (mut product, mut gram) = (vec![0.0; n * m], vec![0.0; d * d]);
            let rows = Tile::new(&a, n, d);
            matmul_nn(rows, Tile::new(&b, d, m), TileMut::new(&mut product, n, m)).unwrap();
            add_gram(rows, &mut gram);
            (bits(&product), bits(&gram))
        })
    };
    let one = run(1);
    assert!(one == run(2) && one == run(5));
}

#[test]
fn integers_come_out_exactly_in_windows_with_strides() {
    let (n, depth, m) = (10, 40, 21);
    let a: Vec<f64> = (0..n * 50).map(|i| ((i * 7919) % 23) as f64 - 11.0).collect();
    let b: Vec<f64> = (0..depth * 30).map(|i| ((i * 104_729) % 17) as f64 - 8.0).collect();
    let mut out = vec![-1.0; n * 25];
    let (a, b) = (Tile::with_stride(&a, n, depth, 50), Tile::with_stride(&b, depth, m, 30));
    matmul_nn(a, b, TileMut::with_stride(&mut out, n, m, 25)).unwrap();
    for i in 0..n {
        for j in 0..25 {
            let expected = if j < m { (0..depth).map(|p| a.row(i)[p] * b.row(p)[j]).sum() } else { -1.0 };
            assert_eq!(out[i * 25 + j], expected);
        }
    }
}

#[test]
fn shapes_that_do_not_fit_are_errors_and_empty_ones_are_fine() {
    let (a, b) = (numbers::<f32>(15, 12), numbers::<f32>(16, 12));
    let mut out = vec![1.0; 16];
    let tile = |data, rows, cols| Tile::<f32>::new(data, rows, cols);
    assert!(matches!(
        matmul_nn(tile(&a, 3, 4), tile(&b, 3, 4), TileMut::new(&mut out, 3, 4)),
        Err(Error::Dimension { expected: 4, found: 3, .. })
    ));
    assert!(matmul_nt(tile(&a, 3, 4), tile(&b, 3, 4), TileMut::new(&mut out, 3, 4)).is_err());
    add_gram(tile(&a, 0, 4), &mut [0.0; 16]);
    matmul_nn(tile(&a, 4, 0), tile(&b, 0, 4), TileMut::new(&mut out, 4, 4)).unwrap();
    assert_eq!(out, [0.0; 16]);
}
