//! Gaussian processes of fields and related outputs, against dense algebra, differences and the exact process.

use crate::statistics::normal_quantile;
use bochner::Context;
use bochner::feature::{Directions, FieldQuantity, OperatorSpec};
use bochner::kernel::{FieldKernel, Gaussian, Matern, OperatorKernel, OutputMatrix};
use bochner::model::{ExactOperatorGp, Fit, Fitted, Model, OperatorGp, OperatorGpModel, Predict};
use bochner::random::{Role, Seed, Stream};
use bochner::rows::{InMemory, RowBlock};
use ndarray::{Array1, Array2, Axis, array, s};

fn normals(n: usize, d: usize, index: u64) -> Array2<f64> {
    let mut values = vec![0.0; n * d];
    Stream::new(Seed::new(21), Role::Noise, index).normals_from(0, &mut values);
    Array2::from_shape_vec((n, d), values).unwrap()
}

/// A field of two inputs that has both parts.
fn field(rows: &Array2<f64>) -> Array2<f64> {
    Array2::from_shape_fn(rows.dim(), |(i, a)| {
        let (x, y) = (rows[[i, 0]], rows[[i, 1]]);
        if a == 0 { -y.sin() + 0.5 * x.cos() } else { x.sin() - 0.3 * y }
    })
}

fn kernels() -> Vec<OperatorKernel> {
    let related = OutputMatrix::new(array![[2.0, 0.5], [0.5, 1.0]].view()).unwrap();
    let fields = [
        FieldKernel::new(1.0),
        FieldKernel::new(0.0),
        FieldKernel::new(0.3).with_length_scale([0.8, 1.4]),
        FieldKernel::new(0.6).with_matern(3.5),
    ];
    let mut kernels: Vec<OperatorKernel> = fields.into_iter().map(|field| field.build().unwrap()).collect();
    kernels.push(OperatorKernel::decomposable(Gaussian::new(1.2).unwrap().into(), related).unwrap());
    let same = OutputMatrix::identity(2).unwrap();
    kernels.push(OperatorKernel::decomposable(Matern::new(2.5, 1.0).unwrap().into(), same).unwrap());
    kernels
}

fn process(kernel: OperatorKernel, n_components: usize, noise: f64) -> OperatorGp<f64> {
    let spec = OperatorSpec { n_components, seed: 4, ..OperatorSpec::new(kernel) };
    OperatorGp::new(spec.build(2).unwrap(), noise).unwrap()
}

/// `a⁻¹b` and `ln det a`, by elimination: another road to the same numbers.
fn solve(mut a: Array2<f64>, mut b: Array2<f64>) -> (Array2<f64>, f64) {
    let (n, mut log_determinant) = (a.nrows(), 0.0);
    for k in 0..n {
        log_determinant += a[[k, k]].ln();
        for i in 0..n {
            if i != k {
                let factor = a[[i, k]] / a[[k, k]];
                let (row, side) = (a.row(k).to_owned(), b.row(k).to_owned());
                a.row_mut(i).scaled_add(-factor, &row);
                b.row_mut(i).scaled_add(-factor, &side);
            }
        }
    }
    for i in 0..n {
        let pivot = a[[i, i]];
        b.row_mut(i).mapv_inplace(|v| v / pivot);
    }
    (b, log_determinant)
}

/// Row `(i, a)` of all `Φ(xᵢ)ᵀ`.
fn flat(process: &OperatorGp<f64>, rows: &Array2<f64>) -> Array2<f64> {
    let features = process.features().transform(rows.view()).unwrap();
    let (n, p, columns) = features.dim();
    features.into_shape_with_order((n * p, columns)).unwrap()
}

#[test]
fn posteriors_are_those_of_dense_algebra() {
    let (rows, new) = (normals(15, 2, 1), normals(4, 2, 2));
    let targets = field(&rows);
    let weights = Array1::from_shape_fn(15, |i| [1.0, 0.5, 2.0][i % 3]);
    let (signal, noise) = (0.7, 0.05);
    for kernel in kernels() {
        let process = process(kernel.clone(), 16, noise).with_signal_variance(signal).unwrap();
        let process = process.with_normalized_targets(false);
        let mut source = Weighted { rows: &rows, targets: &targets, weights: &weights };
        let model = process.fit_stream(&mut source, &mut Context::default()).unwrap();
        let (f, g) = (flat(&process, &rows), flat(&process, &new));
        let mut k = signal * f.dot(&f.t());
        for i in 0..30 {
            k[[i, i]] += noise / weights[i / 2];
        }
        let y = Array2::from_shape_fn((30, 1), |(i, _)| targets[[i / 2, i % 2]]);
        let cross = signal * f.dot(&g.t());
        let sides = ndarray::concatenate![Axis(1), y, cross];
        let (solved, log_determinant) = solve(k, sides);
        let mean = cross.t().dot(&solved.column(0));
        let covariance = signal * g.dot(&g.t()) - cross.t().dot(&solved.slice(s![.., 1..]));
        let likelihood =
            -0.5 * (y.column(0).dot(&solved.column(0)) + log_determinant + 30.0 * std::f64::consts::TAU.ln());
        assert!((model.log_marginal_likelihood() - likelihood).abs() < 1e-8, "{kernel:?}");
        let (found, variance) = model.quantity_with_variance(new.view(), FieldQuantity::Values).unwrap();
        let all = model.covariance(new.view(), FieldQuantity::Values).unwrap();
        for ((i, a), value) in found.indexed_iter() {
            assert!((value - mean[2 * i + a]).abs() < 1e-8, "{kernel:?}");
            assert!((model.predict(new.view()).unwrap()[[i, a]] - value).abs() < 1e-10);
            assert!((variance[[i, a]] - covariance[[2 * i + a, 2 * i + a]]).abs() < 1e-9, "{kernel:?}");
        }
        for ((i, j, a, b), value) in all.indexed_iter() {
            assert!((value - covariance[[2 * i + a, 2 * j + b]]).abs() < 1e-9, "{kernel:?}");
        }
    }
}

/// Rows with weights.
struct Weighted<'a> {
    rows: &'a Array2<f64>,
    targets: &'a Array2<f64>,
    weights: &'a Array1<f64>,
}

impl bochner::rows::RowSource<f64> for Weighted<'_> {
    fn input_dim(&self) -> usize {
        self.rows.ncols()
    }

    fn target_dim(&self) -> usize {
        self.targets.ncols()
    }

    fn for_each_block(
        &mut self,
        visit: &mut dyn FnMut(RowBlock<'_, f64>) -> bochner::Result<()>,
    ) -> bochner::Result<()> {
        // In two blocks: sums are those of one.
        for range in [0..7, 7..self.rows.nrows()] {
            visit(RowBlock {
                rows: self.rows.slice(s![range.clone(), ..]),
                targets: self.targets.slice(s![range.clone(), ..]),
                weights: Some(self.weights.slice(s![range])),
            })?;
        }
        Ok(())
    }
}

/// Weights of the values at four points around a row that make a quantity by central differences.
fn differences(quantity: FieldQuantity, h: f64) -> Vec<Array2<f64>> {
    let derivative = |a: usize, b: usize| {
        let mut weights = Array2::<f64>::zeros((4, 2));
        weights[[2 * b, a]] = 0.5 / h;
        weights[[2 * b + 1, a]] = -0.5 / h;
        weights
    };
    match quantity {
        FieldQuantity::Divergence => vec![derivative(0, 0) + derivative(1, 1)],
        FieldQuantity::Vorticity => vec![derivative(1, 0) - derivative(0, 1)],
        _ => vec![derivative(0, 0), derivative(0, 1), derivative(1, 0), derivative(1, 1)],
    }
}

fn around(x: &[f64; 2], h: f64) -> Array2<f64> {
    array![[x[0] + h, x[1]], [x[0] - h, x[1]], [x[0], x[1] + h], [x[0], x[1] - h]]
}

#[test]
fn derivatives_have_the_means_and_variances_of_differences_of_the_values() {
    let rows = normals(40, 2, 3);
    let targets = 3.0 * field(&rows) + 1.0;
    // Truncation is h² times third derivatives with frequencies of about 3, rounding of variances 1e-15/h².
    let (x, h) = ([0.3, -0.5], 1e-4);
    for kernel in kernels() {
        let model = process(kernel.clone(), 40, 0.02).fit(rows.view(), targets.view()).unwrap();
        let points = around(&x, h);
        let values = model.quantity(points.view(), FieldQuantity::Values).unwrap();
        let covariance = model.covariance(points.view(), FieldQuantity::Values).unwrap();
        for quantity in [FieldQuantity::Divergence, FieldQuantity::Vorticity, FieldQuantity::Jacobian] {
            let (mean, variance) = model.quantity_with_variance(array![[x[0], x[1]]].view(), quantity).unwrap();
            for (k, weights) in differences(quantity, h).into_iter().enumerate() {
                let expected = (&values * &weights).sum();
                assert!((mean[[0, k]] - expected).abs() < 1e-5 * (1.0 + expected.abs()), "{kernel:?} {quantity:?}");
                let mut expected = 0.0;
                for ((i, a), one) in weights.indexed_iter() {
                    for ((j, b), other) in weights.indexed_iter() {
                        expected += one * other * covariance[[i, j, a, b]];
                    }
                }
                let found = variance[[0, k]];
                assert!(
                    (found - expected).abs() < 1e-4 * (0.1 + expected),
                    "{kernel:?} {quantity:?} {found} {expected}"
                );
            }
            let own = model.covariance(array![[x[0], x[1]]].view(), quantity).unwrap();
            for k in 0..variance.ncols() {
                assert!((own[[0, 0, k, k]] - variance[[0, k]]).abs() < 1e-9 * (1.0 + variance[[0, k]]));
            }
        }
    }
}

#[test]
fn a_field_is_the_gradient_of_its_potential_and_the_turned_gradient_of_its_stream_function() {
    let rows = normals(60, 2, 5);
    let targets = field(&rows);
    let (x, h) = ([0.2, 0.4], 1e-5);
    for (share, potential, stream) in [(0.4, true, true), (1.0, true, false), (0.0, false, true)] {
        let kernel = FieldKernel::new(share).with_length_scale([1.0, 1.3]).build().unwrap();
        let model = process(kernel, 60, 0.01).with_normalized_targets(false).fit(rows.view(), targets.view()).unwrap();
        let points = around(&x, h);
        let slope = |quantity| {
            let values = model.quantity(points.view(), quantity).unwrap();
            [(values[[0, 0]] - values[[1, 0]]) / (2.0 * h), (values[[2, 0]] - values[[3, 0]]) / (2.0 * h)]
        };
        let mut sum = [0.0; 2];
        if potential {
            let [dx, dy] = slope(FieldQuantity::Potential);
            sum = [sum[0] + dx, sum[1] + dy];
        } else {
            assert!(model.quantity(points.view(), FieldQuantity::Potential).is_err());
        }
        if stream {
            let [dx, dy] = slope(FieldQuantity::StreamFunction);
            sum = [sum[0] - dy, sum[1] + dx];
        } else {
            assert!(model.quantity(points.view(), FieldQuantity::StreamFunction).is_err());
        }
        let value = model.predict(array![[x[0], x[1]]].view()).unwrap();
        for a in 0..2 {
            assert!((sum[a] - value[[0, a]]).abs() < 1e-6, "{share}: {sum:?} {value}");
        }
    }
}

#[test]
fn the_process_on_features_tends_to_the_exact_one() {
    let (rows, new) = (1.5 * normals(30, 2, 6), 1.5 * normals(25, 2, 7));
    let targets = field(&rows) + 0.1 * normals(30, 2, 8);
    let kernel = FieldKernel::new(0.3).with_length_scale([1.2, 1.6]).build().unwrap();
    let (signal, noise) = (1.5, 0.05);
    let exact = ExactOperatorGp::new(kernel.clone(), signal, noise).unwrap().fit(rows.view(), targets.view()).unwrap();
    // Mean squares over new rows of the differences from the exact process, over prior deviations; one for few features and
    // one for four times as many.
    let errors = |n_components: usize| -> Vec<[f64; 2]> {
        let mut sums = vec![[0.0; 2]; 3];
        let seeds = 6;
        for seed in 0..seeds {
            let projection = Directions::Gaussian;
            let spec = OperatorSpec { n_components, seed, projection, ..OperatorSpec::new(kernel.clone()) };
            let process = OperatorGp::new(spec.build::<f64>(2).unwrap(), noise).unwrap();
            let model = process.with_signal_variance(signal).unwrap().fit(rows.view(), targets.view()).unwrap();
            let quantities = [FieldQuantity::Values, FieldQuantity::Divergence, FieldQuantity::Vorticity];
            for (sum, quantity) in sums.iter_mut().zip(quantities) {
                let (mean, variance) = model.quantity_with_variance(new.view(), quantity).unwrap();
                let (exact_mean, exact_variance) = exact.quantity_with_variance(new.view(), quantity).unwrap();
                let prior = exact.prior_deviations(quantity).unwrap();
                for ((i, k), value) in mean.indexed_iter() {
                    let count = (mean.len() * seeds as usize) as f64;
                    sum[0] += ((value - exact_mean[[i, k]]) / prior[k]).powi(2) / count;
                    let deviations = variance[[i, k]].sqrt() - exact_variance[[i, k]].sqrt();
                    sum[1] += (deviations / prior[k]).powi(2) / count;
                }
            }
        }
        sums
    };
    let (few, many) = (errors(256), errors(1024));
    for (few, many) in few.iter().zip(&many) {
        for k in 0..2 {
            // Errors fall as one over the root of the number of features: mean squares by four, which nothing that stays would let
            // them. Six draws of each leave a factor of two.
            assert!(many[k] < few[k] / 2.0, "{few:?} {many:?}");
        }
    }
}

#[test]
fn targets_have_one_common_unit_and_the_likeliest_variances_are_a_maximum() {
    let rows = normals(80, 2, 9);
    let targets = field(&rows) + 0.2 * normals(80, 2, 10);
    let kernel = || FieldKernel::new(0.4).with_length_scale(1.3).build().unwrap();
    let model = process(kernel(), 40, 0.1).fit(rows.view(), targets.view()).unwrap();
    let scaled = process(kernel(), 40, 0.1).fit(rows.view(), (7.0 * &targets - 3.0).view()).unwrap();
    let (mean, variance) = model.quantity_with_variance(rows.view(), FieldQuantity::Vorticity).unwrap();
    let (other, wider) = scaled.quantity_with_variance(rows.view(), FieldQuantity::Vorticity).unwrap();
    assert!((&other - 7.0 * &mean).iter().all(|v| v.abs() < 1e-8));
    assert!((&wider - 49.0 * &variance).iter().all(|v| v.abs() < 1e-8));
    assert!((scaled.unit_variance() / model.unit_variance() - 49.0).abs() < 1e-9);
    let unit = targets.var_axis(Axis(0), 0.0).mean().unwrap();
    assert!((model.unit_variance() - unit).abs() < 1e-12);
    let best = process(kernel(), 40, 0.1).with_likeliest_variances(true).fit(rows.view(), targets.view()).unwrap();
    let (signal, noise) = (best.signal_variance(), best.noise_variance());
    let at = |signal: f64, noise: f64| {
        let process = process(kernel(), 40, noise).with_signal_variance(signal).unwrap();
        process.fit(rows.view(), targets.view()).unwrap().log_marginal_likelihood()
    };
    assert!((at(signal, noise) - best.log_marginal_likelihood()).abs() < 1e-7);
    for (a, b) in [(1.2, 1.0), (0.8, 1.0), (1.0, 1.2), (1.0, 0.8)] {
        assert!(at(a * signal, b * noise) < best.log_marginal_likelihood());
    }
}

#[test]
fn samples_have_the_mean_and_the_covariance_of_the_posterior() {
    let rows = normals(12, 2, 11);
    let targets = field(&rows);
    let new = normals(2, 2, 12);
    for kernel in kernels() {
        let model = process(kernel.clone(), 16, 0.1).fit(rows.view(), targets.view()).unwrap();
        let mean = model.predict(new.view()).unwrap();
        let covariance = model.covariance(new.view(), FieldQuantity::Values).unwrap();
        let count = 4000;
        let samples = model.sample(new.view(), count, Seed::new(3)).unwrap();
        // 6 kernels, 4 means and 16 covariances each.
        let quantile = normal_quantile(1.0 - 1e-6 / (2.0 * 6.0 * 20.0));
        let centred = |i: usize, a: usize| samples.slice(s![i, a, ..]).mapv(|v| v - mean[[i, a]]);
        for (i, a) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let bound = quantile * (covariance[[i, i, a, a]] / count as f64).sqrt();
            assert!(centred(i, a).mean().unwrap().abs() < bound, "{kernel:?}");
            for (j, b) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                let found = (&centred(i, a) * &centred(j, b)).mean().unwrap();
                let expected = covariance[[i, j, a, b]];
                // Of normal numbers the product has the variance v w + c².
                let spread = covariance[[i, i, a, a]] * covariance[[j, j, b, b]] + expected * expected;
                assert!((found - expected).abs() < quantile * (spread / count as f64).sqrt(), "{kernel:?}");
            }
        }
        let functions = model.sample_functions(2, Seed::new(3)).unwrap();
        assert_eq!(functions[1].predict(new.view()).unwrap(), samples.slice(s![.., .., 1]));
    }
}

#[test]
fn a_process_survives_a_file_and_bad_input_is_refused() {
    let rows = normals(30, 2, 13);
    let targets = field(&rows);
    for kernel in kernels() {
        let model = process(kernel, 16, 0.1).fit(rows.view(), targets.view()).unwrap();
        let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
        assert_eq!(again.predict(rows.view()).unwrap(), model.predict(rows.view()).unwrap());
        let inside = again.downcast_ref::<OperatorGpModel<f64>>().unwrap();
        let quantity = FieldQuantity::Divergence;
        let (a, b) =
            (inside.quantity_with_variance(rows.view(), quantity), model.quantity_with_variance(rows.view(), quantity));
        assert_eq!(a.unwrap(), b.unwrap());
        assert_eq!(again.gradient(rows.view()).unwrap(), model.jacobian(rows.view()).unwrap());
        let observed = again.deviations(rows.view()).unwrap();
        let function = again.function_deviations(rows.view()).unwrap();
        let noise = (&observed * &observed - &function * &function).mean().unwrap();
        assert!((noise - model.observation_variance()).abs() < 1e-12);
    }
    let process = |kernel: OperatorKernel| process(kernel, 16, 0.1);
    let bad = targets.slice(s![.., ..1]);
    assert!(process(OperatorKernel::curl_free(1.0).unwrap()).fit(rows.view(), bad).is_err());
    let rough = FieldKernel::new(0.5).with_matern(1.5).build().unwrap();
    let model = process(rough).fit(rows.view(), targets.view()).unwrap();
    let told = model.quantity(rows.view(), FieldQuantity::Divergence).unwrap_err().to_string();
    assert!(told.contains("too rough"), "{told}");
    let line = OperatorKernel::div_free(1.0).unwrap().check_inputs(1).unwrap_err().to_string();
    assert!(line.contains("single input"), "{line}");
    let three = OperatorKernel::helmholtz(1.0, 0.5).unwrap();
    let spec = OperatorSpec { n_components: 16, ..OperatorSpec::new(three) };
    let cube = normals(20, 3, 14);
    let model = OperatorGp::new(spec.build::<f64>(3).unwrap(), 0.1).unwrap().fit(cube.view(), cube.view()).unwrap();
    assert_eq!(model.quantity(cube.view(), FieldQuantity::Vorticity).unwrap().dim(), (20, 3));
    assert!(model.quantity(cube.view(), FieldQuantity::StreamFunction).is_err());
    assert!(InMemory::new(cube.view(), cube.view()).is_ok());
}
