//! Support vector machines on features: blocks, threads, odd inputs, files.

use bochner::feature::{CompressiveSpec, Describe, DynMap, FeatureMap, FourierSpec};
use bochner::kernel::{AnyKernel, Gaussian, Polynomial};
use bochner::model::{Fit, KernelSvm, Model, Predict, Svm, SvmModel};
use bochner::persist::{Header, Label, Stored};
use bochner::random::{Role, Seed, Stream};
use bochner::rows::InMemory;
use bochner::scalar::Real;
use bochner::solve::{DualCoordinateDescent, Hinge};
use bochner::{Context, Error, linalg::Tile};
use ndarray::{Array1, Array2, ArrayView2, Axis};

fn data<R: Real>(n: usize, classes: usize) -> (Array2<R>, Array2<R>) {
    let mut values = vec![0.0; n * 6];
    Stream::new(Seed::new(21), Role::Noise, 0).normals_from(0, &mut values);
    let mut centres = vec![0.0; classes * 6];
    Stream::new(Seed::new(22), Role::Noise, 0).normals_from(0, &mut centres);
    let rows =
        Array2::from_shape_fn((n, 6), |(i, j)| R::from_f64(0.7 * values[6 * i + j] + centres[6 * (i % classes) + j]));
    let labels = Array2::from_shape_fn((n, 1), |(i, _)| R::from_f64((i % classes) as f64));
    (rows, labels)
}

fn map<R: Real>() -> DynMap<R> {
    FourierSpec { n_components: 60, length_scale: 3.0.into(), seed: 1, ..Default::default() }.build(6).unwrap()
}

fn fit<R: Real>(svm: &Svm<DynMap<R>>, rows: ArrayView2<'_, R>, labels: ArrayView2<'_, R>) -> SvmModel<DynMap<R>> {
    svm.fit(rows, labels).unwrap()
}

fn accuracy<R: Real>(model: &SvmModel<DynMap<R>>, rows: &Array2<R>, labels: &Array2<R>) -> f64 {
    let found = model.predict(rows.view()).unwrap();
    found.iter().zip(labels).filter(|(a, b)| a == b).count() as f64 / rows.nrows() as f64
}

#[test]
fn the_model_is_the_solver_on_features_and_a_constant_column() {
    let (rows, labels) = data::<f64>(200, 3);
    for scaling in [None, Some(1.0), Some(5.0)] {
        let svm = Svm::new(map::<f64>(), 2.0).unwrap().with_intercept(scaling).unwrap().with_seed(Seed::new(4));
        let model = fit(&svm, rows.view(), labels.view());
        let features = map::<f64>().transform(rows.view()).unwrap();
        let columns = 60 + usize::from(scaling.is_some());
        let wide =
            Array2::from_shape_fn((200, columns), |(i, j)| if j < 60 { features[[i, j]] } else { scaling.unwrap() });
        let numbers: Vec<u32> = labels.iter().map(|&l| l as u32).collect();
        let solver = DualCoordinateDescent { c: 2.0, seed: Seed::new(4), ..Default::default() };
        let tile = Tile::new(wide.as_slice().unwrap(), 200, columns);
        let (weights, reports) = solver.solve(tile, &numbers, &[0, 1, 2], None).unwrap();
        assert_eq!(model.reports(), reports);
        for (p, w) in weights.iter().enumerate() {
            assert_eq!(model.coefficients().column(p).to_vec(), w[..60]);
            assert_eq!(model.intercept()[p], scaling.map_or(0.0, |s| s * w[60]));
        }
    }
}

#[test]
fn features_made_again_block_by_block_reach_the_same_objective() {
    let (rows, labels) = data::<f64>(500, 4);
    for loss in [Hinge::Hinge, Hinge::SquaredHinge] {
        let svm = Svm::new(map::<f64>(), 1.0).unwrap().with_loss(loss).with_tolerance(1e-6).unwrap();
        let svm = svm.with_max_epochs(20_000).unwrap();
        let whole = fit(&svm, rows.view(), labels.view());
        let small = || Context::default().with_memory_budget(64 * 1024).unwrap();
        let blocks = svm.fit_stream(&mut InMemory::new(rows.view(), labels.view()).unwrap(), &mut small()).unwrap();
        for (a, b) in whole.reports().iter().zip(blocks.reports()) {
            assert!(a.converged && b.converged, "{a:?} {b:?}");
            assert!((a.primal - b.primal).abs() <= 2e-6 * a.primal, "{a:?} {b:?}");
        }
        // Blocks of features are counted by the budget, not by the source's blocks, and threads decide nothing.
        for (size, threads) in [(7, 1), (100, 3)] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            for (mut context, expected) in [(small(), &blocks), (Context::default(), &whole)] {
                let mut source = InMemory::new(rows.view(), labels.view()).unwrap().with_block_rows(size).unwrap();
                let again = pool.install(|| svm.fit_stream(&mut source, &mut context).unwrap());
                assert_eq!(again.coefficients(), expected.coefficients());
                assert_eq!(again.reports(), expected.reports());
            }
        }
    }
}

#[test]
fn single_precision_reaches_the_objective_of_double_precision() {
    let (rows, labels) = data::<f64>(400, 3);
    let double = fit(&Svm::new(map::<f64>(), 1.0).unwrap().with_tolerance(1e-7).unwrap(), rows.view(), labels.view());
    let (rows, labels) = data::<f32>(400, 3);
    let single = fit(&Svm::new(map::<f32>(), 1.0).unwrap().with_tolerance(1e-4).unwrap(), rows.view(), labels.view());
    for (a, b) in double.reports().iter().zip(single.reports()) {
        assert!(b.converged && (a.primal - b.primal).abs() <= 2e-4 * a.primal, "{a:?} {b:?}");
    }
    assert!(accuracy(&single, &rows, &labels) > 0.9);
}

#[test]
fn odd_inputs_are_handled() {
    let (rows, labels) = data::<f64>(60, 2);
    let svm = Svm::new(map::<f64>(), 1.0).unwrap();
    // One class is predicted always; two classes have one problem.
    let one = fit(&svm, rows.view(), Array2::zeros((60, 1)).view());
    assert_eq!((one.classes(), accuracy(&one, &rows, &Array2::zeros((60, 1)))), (1, 1.0));
    let two = fit(&svm, rows.view(), labels.view());
    assert_eq!((two.classes(), two.coefficients().ncols()), (2, 1));
    // A class number without rows, duplicated rows with both labels, a constant column.
    let gap = fit(&svm, rows.view(), (2.0 * &labels).view());
    assert_eq!(gap.classes(), 3);
    assert!(accuracy(&gap, &rows, &(2.0 * &labels)) > 0.8);
    let mut same = rows.clone();
    same.rows_mut().into_iter().for_each(|mut r| r.fill(0.5));
    assert!(fit(&svm, same.view(), labels.view()).reports()[0].converged);
    // Separable rows with a high price.
    let apart = &rows + &(100.0 * &labels);
    let linear = CompressiveSpec { n_components: 60, length_scale: 300.0.into(), ..Default::default() };
    let separable = Svm::new(linear.build::<f64>(6).unwrap(), 1e4).unwrap().with_max_epochs(20_000).unwrap();
    assert_eq!(accuracy(&fit(&separable, apart.view(), labels.view()), &apart, &labels), 1.0);
}

#[test]
fn mistakes_are_named() {
    let (rows, mut labels) = data::<f64>(20, 2);
    let svm = Svm::new(map::<f64>(), 1.0).unwrap();
    assert!(Svm::new(map::<f64>(), 0.0).is_err());
    assert!(svm.clone().with_tolerance(f64::NAN).is_err() && svm.clone().with_intercept(Some(0.0)).is_err());
    let zeros = Array1::zeros(20);
    let mut source = InMemory::new(rows.view(), labels.view()).unwrap().with_weights(zeros.view()).unwrap();
    assert!(matches!(svm.fit_stream(&mut source, &mut Context::default()), Err(Error::Parameter { .. })));
    let mut bad = rows.clone();
    bad[[13, 2]] = f64::NAN;
    for budget in [u64::MAX, 1] {
        let mut source = InMemory::new(bad.view(), labels.view()).unwrap();
        let mut context = Context::default().with_memory_budget(budget).unwrap();
        let error = svm.fit_stream(&mut source, &mut context).unwrap_err();
        assert!(matches!(error, Error::NonFinite { row: 13, column: 2, .. }), "{error}");
    }
    labels[[3, 0]] = 0.5;
    assert!(svm.fit(rows.view(), labels.view()).is_err());
    assert!(svm.fit(Array2::zeros((0, 6)).view(), Array2::zeros((0, 1)).view()).is_err());
}

#[test]
fn a_file_keeps_the_model() {
    let (rows, labels) = data::<f32>(90, 3);
    let spec = FourierSpec { n_components: 60, length_scale: 3.0.into(), seed: 1, ..Default::default() };
    let model = fit(&Svm::new(map::<f32>(), 1.0).unwrap(), rows.view(), labels.view());
    let names = ["a", "b", "c"].map(Label::from).to_vec();
    assert_eq!(model.map().description(), Some(&spec.settle(6).unwrap().into()));
    let named = Model::from(model.clone()).with_classes(names.clone()).unwrap();
    let read = Model::from_bytes(&named.to_bytes().unwrap()).unwrap();
    assert_eq!(read.classes(), Some(&names[..]));
    assert_eq!(read.predict_classes(rows.mapv(f64::from).view()).unwrap(), model.predict_classes(rows.view()).unwrap());
    let again: &SvmModel<DynMap<f32>> = read.downcast_ref().unwrap();
    assert_eq!(again.predict(rows.view()).unwrap(), model.predict(rows.view()).unwrap());
    assert_eq!(again.reports(), model.reports());
    assert!(Model::from(model).with_classes(vec![]).is_err());
    let stored = Stored::from_bytes(&read.to_bytes().unwrap()).unwrap();
    let with = |change: &dyn Fn(&mut Header)| {
        let mut stored = stored.clone();
        change(&mut stored.header);
        Model::from_bytes(&stored.to_bytes().unwrap())
    };
    assert!(with(&|header| header.dtype = "f64".into()).is_err());
    assert!(with(&|header| header.input_dim = 7).is_err());
}

/// The problem of tools/golden/svm.py.
fn golden_problem() -> (Array2<f64>, Array2<f64>) {
    let x = Array2::from_shape_fn((120, 4), |(i, j)| (1.0 + 0.7 * i as f64 * (j + 1) as f64).sin());
    let class = |row: ndarray::ArrayView1<'_, f64>| {
        let score = row[0] * row[1] + row[2] / 3.0;
        f64::from(u8::from(score > -0.4) + u8::from(score > 0.4))
    };
    let labels = x.map_axis(Axis(1), class).insert_axis(Axis(1));
    (x, labels)
}

#[test]
fn objectives_are_those_of_liblinear() {
    let (x, labels) = golden_problem();
    let labels: Vec<u32> = labels.iter().map(|&l| l as u32).collect();
    for (loss, intercept, expected) in [
        (Hinge::Hinge, false, [40.235066615, 58.855263125, 33.281066372]),
        (Hinge::Hinge, true, [19.322780327, 56.293175727, 27.385240182]),
        (Hinge::SquaredHinge, false, [51.514267874, 68.328032396, 34.730396974]),
        (Hinge::SquaredHinge, true, [15.508588671, 61.842678544, 24.774833802]),
    ] {
        let columns = 4 + usize::from(intercept);
        let wide = Array2::from_shape_fn((120, columns), |(i, j)| if j < 4 { x[[i, j]] } else { 1.0 });
        let solver = DualCoordinateDescent { loss, c: 0.8, tolerance: 1e-8, max_epochs: 200_000, seed: Seed::new(0) };
        let tile = Tile::new(wide.as_slice().unwrap(), 120, columns);
        let (_, reports) = solver.solve(tile, &labels, &[0, 1, 2], None).unwrap();
        for (report, expected) in reports.iter().zip(expected) {
            assert!(report.converged, "{loss:?} {report:?}");
            assert!((report.primal - expected).abs() <= 2e-8 * expected, "{loss:?}: {} {expected}", report.primal);
        }
    }
}

#[test]
fn kernel_machines_are_those_of_libsvm() {
    let (x, labels) = golden_problem();
    let gaussian = AnyKernel::from(Gaussian::new(0.7).unwrap());
    let linear = AnyKernel::from(Polynomial::new(1, 1.0, 0.0).unwrap());
    for (kernel, expected) in [
        (gaussian, [(21.786935972, -0.31077899), (3.890023131, 0.01679620), (49.165805270, 0.44664133)]),
        (linear, [(33.584072391, -1.32712522), (2.221248055, 0.01818857), (76.965706435, 1.66500012)]),
    ] {
        let svm = KernelSvm::new(kernel, 3.0).unwrap().with_tolerance(1e-9).unwrap();
        let model = svm.fit(x.view(), labels.view()).unwrap();
        for (report, (dual, intercept)) in model.reports().zip(expected) {
            assert!((report.dual - dual).abs() <= 1e-8 * dual, "{report:?}, expected {dual}");
            // Weights are known to the root of twice the duality gap, and rows are at most 2 long.
            let known = 2.0 * (2.0 * (report.primal - report.dual).max(0.0)).sqrt() + 1e-8;
            assert!((report.intercept - intercept).abs() < known, "{report:?}, expected {intercept}");
        }
    }
}
