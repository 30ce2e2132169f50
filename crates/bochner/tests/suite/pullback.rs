//! Pullbacks against finite differences, for every map of the catalogue, every choice of words it has, real and complex.

use bochner::Complex;
use bochner::catalogue;
use bochner::feature::{
    Compact, Concat, Constant, Cotangents, Describe, DotSquare, DynMap, Encoding, FeatureMap, FourierSpec, Learned,
    LearnedFourierSpec, OpticalFeatures, OpticalSpec, Recovered, ScaledProjection, Simulator, Spec, TensorSketch, Tile,
    TileMut, Workspace,
};
use bochner::projection::{
    ComplexChain, CountSketch, DenseGaussian, Entries, HadamardChain, MatrixFree, Orthogonal, Orthoprojector,
    Projection, Rademacher, Sampling, Srht,
};
use bochner::random::{Role, Seed, Stream};
use bochner::scalar::Scalar;
use ndarray::{Array2, s};
use serde_json::{Map, Value, json};

fn normals(rows: usize, cols: usize, index: u64) -> Array2<f64> {
    let mut out = Array2::zeros((rows, cols));
    let draw = Stream::new(Seed::new(11), Role::Direction, index);
    draw.normals_from(0, out.as_slice_mut().expect("fresh"));
    out
}

/// `Re Σ conj(u) φ` for every row, and the sum of the moduli that rounding is relative to.
fn values<O: Scalar<Real = f64>>(features: &Array2<O>, u: &Array2<O>) -> Vec<(f64, f64)> {
    let product = |z: &O, u: &O| z.re() * u.re() + z.im() * u.im();
    features
        .rows()
        .into_iter()
        .zip(u.rows())
        .map(|(z, u)| {
            let terms = || z.iter().zip(u).map(|(z, u)| product(z, u));
            (terms().sum(), z.iter().zip(u).map(|(z, u)| (z.re() * u.re()).abs() + (z.im() * u.im()).abs()).sum())
        })
        .collect()
}

/// The slope along random directions, measured with two steps: their difference bounds what differences leave out, and the
/// sums' rounding over the step what they lose. A feature is rounded in up to some hundred operations.
fn check<O: Scalar<Real = f64>, M: FeatureMap<Real = f64, Output = O> + ?Sized>(map: &M, x: &Array2<f64>, what: &str) {
    let (n, m) = (x.nrows(), map.output_dim());
    let (re, im) = (normals(n, m, 1), normals(n, m, 2));
    let u = Array2::from_shape_fn((n, m), |at| O::from_parts(re[at], if O::IS_COMPLEX { im[at] } else { 0.0 }));
    let pulled = map.pullback(x.view(), u.view()).unwrap_or_else(|error| panic!("{what}: {error}"));
    let direction = normals(n, x.ncols(), 3);
    let at = |step: f64| values(&map.transform((x + &(&direction * step)).view()).unwrap(), &u);
    // Heavy-tailed frequencies turn fast: of several steps the one counts whose bound is the smallest.
    let mut best = vec![(0.0, f64::INFINITY); n];
    for h in (2..9).map(|k| 10f64.powi(-k)) {
        let [ahead, behind, far_ahead, far_behind] = [h, -h, 2.0 * h, -2.0 * h].map(at);
        for i in 0..n {
            let (near, far) = ((ahead[i].0 - behind[i].0) / (2.0 * h), (far_ahead[i].0 - far_behind[i].0) / (4.0 * h));
            let rounding = 300.0 * f64::EPSILON * (ahead[i].1 + far_ahead[i].1) / h;
            let bound = (near - far).abs() + rounding;
            if bound < best[i].1 {
                best[i] = (near, bound);
            }
        }
    }
    for (i, (measured, allowed)) in best.into_iter().enumerate() {
        let slope = pulled.row(i).dot(&direction.row(i));
        assert!((slope - measured).abs() <= allowed, "{what}, row {i}: {slope} against {measured} ± {allowed}");
        let size = direction.row(i).dot(&direction.row(i)).sqrt() * pulled.row(i).dot(&pulled.row(i)).sqrt();
        assert!(allowed <= 1e-3 * size || size == 0.0, "{what}, row {i}: known to {allowed} of {size} only");
    }
    // A row has its pullback whatever stands beside it.
    let alone = map.pullback(x.slice(s![n - 1.., ..]), u.slice(s![n - 1.., ..])).unwrap();
    assert_eq!(alone.row(0), pulled.row(n - 1), "{what}: in a tile of its own");
}

/// All combinations of the words of a map's parameters.
fn combinations(name: &str) -> Vec<Map<String, Value>> {
    let entry = catalogue::maps().find(|entry| entry.name == name).expect("a map");
    let mut all = vec![Map::from_iter([("map".into(), json!(name))])];
    for parameter in entry.parameters {
        let words = parameter.domain.words();
        if words.is_empty() {
            continue;
        }
        all = all
            .into_iter()
            .flat_map(|given| words.iter().map(move |word| (given.clone(), *word)))
            .map(|(mut given, word)| {
                given.insert(parameter.name.into(), json!(word));
                given
            })
            .collect();
    }
    all
}

/// Other numbers than the defaults.
fn numbers(name: &str) -> Vec<Value> {
    match name {
        "fourier" => vec![
            json!({"n_components": 26, "length_scale": [0.7, 1.3, 2.0, 0.9, 1.1]}),
            json!({"n_components": 600, "length_scale": 1.7}),
            json!({"n_components": 40, "length_scale": [0.7, 1.3, 2.0, 0.9, 1.1], "order": 2}),
        ],
        "polynomial" => vec![
            json!({"n_components": 20, "degree": 1, "gamma": 0.7}),
            json!({"n_components": 12, "degree": 2}),
            json!({"n_components": 24, "degree": 3, "gamma": 0.7, "coef0": 0.4}),
            json!({"n_components": 40, "degree": 5, "gamma": 0.3, "coef0": 1.0}),
        ],
        "positive" => vec![json!({"n_components": 24, "length_scale": 1.6})],
        "optical" => {
            [1.0, 1.5, 2.0, 3.0, 4.0].map(|m| json!({"n_components": 20, "exponent": m, "bias": 0.3})).to_vec()
        }
        "spherical" => vec![json!({"n_components": 24, "degree": 3})],
        "compressive" => vec![json!({"n_components": 24, "compressed_dim": 3})],
        "maclaurin" => vec![
            json!({"n_components": 33, "length_scale": 1.4}),
            json!({"n_components": 40, "kernel": "exponential"}),
            json!({"n_components": 31, "kernel": "polynomial", "degree": 3}),
        ],
        "ortho_projection" => vec![json!({"n_components": 3})],
        "learned_fourier" => {
            let (frequencies, amplitudes) = (normals(7, 5, 4), [0.3, 0.5, 0.2, 0.9, 0.4, 0.1, 0.6]);
            let learned = LearnedFourierSpec::from(Learned::new(frequencies.view(), &amplitudes).unwrap());
            vec![json!({"n_components": 20}), serde_json::to_value(learned).unwrap()]
        }
        _ => Vec::new(),
    }
}

#[test]
fn pullbacks_of_all_maps_are_the_slopes_of_their_features() {
    let dim = 5;
    let x = normals(9, dim, 0) * 0.5;
    for entry in catalogue::maps() {
        let (mut real, mut complex) = (0, 0);
        let numbers = numbers(entry.name);
        assert!(!numbers.is_empty(), "{}: no numbers to try", entry.name);
        for words in combinations(entry.name) {
            for numbers in &numbers {
                let mut given = words.clone();
                given.extend(numbers.as_object().expect("numbers by name").clone());
                let what = Value::Object(given.clone()).to_string();
                // Words that do not go together are refused when they are read or drawn.
                let Ok(spec) = serde_json::from_value::<Spec>(Value::Object(given)) else { continue };
                let Ok(spec) = spec.resolve(x.view()) else { continue };
                if let Ok(map) = spec.build::<f64>(dim) {
                    check(&map, &x, &what);
                    real += 1;
                }
                if let Ok(map) = spec.build_complex::<f64>(dim) {
                    check(&map, &x, &format!("complex {what}"));
                    complex += 1;
                }
            }
        }
        assert!(real > 0, "{}: nothing was drawn", entry.name);
        println!("{}: {real} real and {complex} complex maps", entry.name);
    }
}

#[test]
fn pullbacks_of_compositions_and_of_maps_without_description() {
    let (x, seed) = (normals(7, 6, 0) * 0.4, Seed::new(3));
    let fourier = FourierSpec { n_components: 20, ..FourierSpec::default() }.build::<f64>(6).unwrap();
    let constant: DynMap<f64> = std::sync::Arc::new(Constant::new(6, 0.7).unwrap());
    check(&Concat::new(vec![(0.5, fourier.clone()), (2.0, constant)]).unwrap(), &x, "concatenation");
    let down = Srht::<f64, f64>::new(seed, 20, 8, Sampling::Upsampled).unwrap();
    check(&Compact::new(fourier, down).unwrap(), &x, "compact");
    let factors = [2, 4].map(|dim| CountSketch::<f64>::new(dim, 9, seed.child(dim as u64)).unwrap());
    check(&TensorSketch::multimodal(factors.into()).unwrap(), &x, "side by side");
    let factors = [2, 4].map(|dim| CountSketch::<Complex<f64>>::new(dim, 9, seed.child(dim as u64)).unwrap());
    check(&TensorSketch::multimodal(factors.into()).unwrap(), &x, "side by side, complex");
    let dense = DenseGaussian::<f64, Complex<f64>>::new(seed, 6, 10).unwrap();
    check(&DotSquare::new(OpticalFeatures::new(dense, 2.0).unwrap()).unwrap(), &x, "dot square");
    let dense = DenseGaussian::<f64, Complex<f64>>::new(seed, 8, 10).unwrap();
    let recovered = Recovered::new(Simulator::new(dense), 2).unwrap();
    check(&ScaledProjection::new(recovered, 0.3).unwrap(), &x, "recovered");
}

/// `⟨Wx, u⟩ = ⟨x, Wᵀu⟩`, up to the rounding of both sums, in whole panels and in parts of them.
fn transposes<O: Scalar<Real = f64>, P: Projection<Real = f64, Output = O>>(projection: &P, what: &str) {
    let (n, d, m) = (11, projection.input_dim(), projection.output_dim());
    let (x, re, im) = (normals(n, d, 5), normals(n, m, 6), normals(n, m, 7));
    let mut out = vec![O::ZERO; n * m];
    let mut work = Workspace::new();
    for columns in bochner::projection::panels(m, projection.panel()) {
        let mut window = TileMut::new(&mut out, n, m);
        projection.project_tile(
            Tile::new(x.as_slice().unwrap(), n, d),
            columns.clone(),
            window.columns_mut(columns),
            &mut work,
        );
    }
    let none: &[f64] = &[];
    let im_tile = if O::IS_COMPLEX { Tile::new(im.as_slice().unwrap(), n, m) } else { Tile::new(none, 0, 0) };
    let cotangents = Cotangents::new(Tile::new(re.as_slice().unwrap(), n, m), im_tile);
    let mut pulled = vec![0.0; n * d];
    for columns in bochner::projection::panels(m, projection.panel()) {
        projection.pull_tile(cotangents.columns(columns.clone()), columns, TileMut::new(&mut pulled, n, d), &mut work);
    }
    for i in 0..n {
        let forwards: f64 = (0..m).map(|j| out[i * m + j].re() * re[[i, j]] + out[i * m + j].im() * im[[i, j]]).sum();
        let backwards: f64 = (0..d).map(|j| x[[i, j]] * pulled[i * d + j]).sum();
        // Each side is a sum of d·m products, the partial sums of which are below the root of their number times the sizes.
        let size: f64 = (d as f64 * m as f64).sqrt() * 10.0;
        let allowed = f64::EPSILON * (d + m) as f64 * size;
        assert!((forwards - backwards).abs() < allowed, "{what}: {forwards} against {backwards}");
    }
}

#[test]
fn every_projection_has_its_transpose() {
    type C = Complex<f64>;
    let seed = Seed::new(9);
    for (d, m) in [(1, 1), (3, 7), (17, 40), (70, 300), (130, 600), (1500, 3000)] {
        let at = |what: &str| format!("{what}, {d} to {m}");
        transposes(&DenseGaussian::<f64>::new(seed, d, m).unwrap(), &at("dense"));
        transposes(&DenseGaussian::<f64, C>::new(seed, d, m).unwrap(), &at("complex dense"));
        transposes(&HadamardChain::<f64>::new(seed, d, m).unwrap(), &at("chain"));
        transposes(&ComplexChain::<f64>::new(seed, d, m).unwrap(), &at("complex chain"));
        transposes(&CountSketch::<f64>::new(d, m, seed).unwrap(), &at("count sketch"));
        transposes(&CountSketch::<C>::new(d, m, seed).unwrap(), &at("complex count sketch"));
        for sampling in [Sampling::Upsampled, Sampling::Stacked, Sampling::Tuple] {
            transposes(&Srht::<f64, f64>::new(seed, d, m, sampling).unwrap(), &at("srht"));
            transposes(&Srht::<f64, C>::new(seed, d, m, sampling).unwrap(), &at("complex srht"));
        }
        if d < 1000 {
            transposes(&MatrixFree::<f64>::new(seed, d, m).unwrap(), &at("matrix-free"));
            transposes(&MatrixFree::<f64, C>::new(seed, d, m).unwrap(), &at("complex matrix-free"));
            transposes(&Rademacher::<f64>::new(seed, d, m).unwrap(), &at("signs"));
            transposes(&Rademacher::<f64, C>::new(seed, d, m).unwrap(), &at("complex signs"));
            transposes(&Orthogonal::<f64>::new(seed, d, m).unwrap(), &at("orthogonal"));
            transposes(
                &Orthoprojector::<f64>::new(seed, d, d.min(m), Entries::Gaussian).unwrap(),
                &at("orthoprojector"),
            );
        }
    }
}

#[test]
fn maps_that_are_steps_have_no_pullback() {
    let x = normals(3, 4, 0);
    let u = Array2::<f64>::zeros((3, 10));
    for spec in [
        OpticalSpec { binarize: Some(0.0), n_components: 10, ..OpticalSpec::default() },
        OpticalSpec { camera_bits: Some(8), gain: Some(1.0), n_components: 10, ..OpticalSpec::default() },
        OpticalSpec {
            encoding: Some(Encoding::Threshold { threshold: 0.0 }),
            n_components: 10,
            ..OpticalSpec::default()
        },
    ] {
        let map = spec.build::<f64>(4).unwrap();
        let error = map.pullback(x.view(), u.view()).unwrap_err().to_string();
        assert!(error.contains("step"), "{error}");
    }
    let fourier = FourierSpec { n_components: 10, ..FourierSpec::default() }.build::<f64>(4).unwrap();
    assert!(fourier.pullback(x.view(), u.slice(s![.., ..9])).is_err());
    assert!(fourier.pullback(x.slice(s![..2, ..]), u.view()).is_err());
    assert!(fourier.pullback((&x * f64::NAN).view(), u.view()).is_err());
}
