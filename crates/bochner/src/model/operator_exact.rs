use super::exact::{Gathered, gather, matrix};
use super::kinds::{Load, ModelEntry, compared, load, regresses};
use super::request::{Asked, Basis, Describing, FitAny, Needs};
use super::{Fit, Fitted, Predict};
use crate::context::Context;
use crate::error::{Error, Result, check_dim, check_non_negative};
use crate::feature::Description;
use crate::interrupt::{self, Flag};
use crate::kernel::{OperatorKernel, kernel_matrix};
use crate::linalg::{Lower, TileMut};
use crate::parallel::Parallel;
use crate::parameter::{Domain, description};
use crate::persist::{Header, Stored};
use crate::rows::{RowSource, check_finite};
use crate::solve::{self, ConjugateGradients, Operator, SolveReport};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis};

/// Numbers in the targets up to which the automatic choice factorises the matrix of all pairs: 1.6 GB.
const FACTORISED: usize = 20_000;

/// Ridge regression with a matrix-valued kernel and no features: `(K + αI) c = y`, `f(x) = Σ K(x, xᵢ) cᵢ`.
///
/// The reference that features approximate, for few rows: the matrix of all pairs has as many rows as there are numbers in
/// the targets. It is factorised up to 20,000 of them and multiplied without being stored beyond, by conjugate gradients. A
/// decomposable kernel needs the scalar kernel only: one regression for each eigenvalue of the output matrix.
///
/// # Cost
/// `O(n³p³)` for fields and `O(n³)` for decomposable kernels; `O(n²p)` a step by conjugate gradients.
#[derive(Debug, Clone)]
pub struct ExactOperatorRidge {
    kernel: OperatorKernel,
    penalty: f64,
    iteration: Option<ConjugateGradients>,
}

impl ExactOperatorRidge {
    /// Regression with penalty `α`.
    ///
    /// # Errors
    /// A penalty that is negative or not finite.
    pub fn new(kernel: OperatorKernel, penalty: f64) -> Result<Self> {
        check_non_negative("penalty", penalty)?;
        Ok(ExactOperatorRidge { kernel, penalty, iteration: None })
    }

    /// By conjugate gradients, however few rows there are.
    pub fn with_conjugate_gradients(mut self, options: ConjugateGradients) -> Self {
        self.iteration = Some(options);
        self
    }

    fn solve(&self, rows: Array2<f64>, targets: ArrayView2<'_, f64>) -> Result<ExactOperatorRidgeModel> {
        let (n, p) = (rows.nrows(), targets.ncols());
        let options = self.iteration.or_else(|| {
            let unknowns = if self.kernel.decomposed().is_some() { n } else { n * p };
            (unknowns > FACTORISED).then(ConjugateGradients::default)
        });
        interrupt::expect(Some(options.map_or(n * p, |options| n.saturating_mul(options.passes()))));
        let (dual, report) = match (options, self.kernel.decomposed()) {
            (Some(options), _) => {
                let mut pairs = Pairs { kernel: &self.kernel, rows: &rows, outputs: p };
                let rhs: Vec<f64> = targets.iter().copied().collect();
                let rhs = Array2::from_shape_vec((n * p, 1), rhs).expect("n rows of p");
                let (dual, report) =
                    solve::conjugate_gradients(&mut pairs, &rhs, self.penalty, &options, None, f64::EPSILON)?;
                (dual.into_iter().collect(), report)
            }
            (None, Some((base, outputs))) => {
                let k = kernel_matrix(base, rows.view(), rows.view())?;
                let gram = Lower::from_square(k.as_slice().expect("standard layout"), n)?;
                drop(k);
                let rotated = targets.dot(&outputs.vectors().t());
                let kept: Vec<usize> = (0..p).filter(|&i| outputs.values()[i] > 0.0).collect();
                // (aK + α)⁻¹ y is (K + α/a)⁻¹ y over a.
                let shifts: Vec<f64> = kept.iter().map(|&i| self.penalty / outputs.values()[i]).collect();
                let mut rhs = Array2::zeros((n, kept.len()));
                for (to, &from) in kept.iter().enumerate() {
                    rhs.column_mut(to).assign(&rotated.column(from));
                }
                let (solved, jitter, condition) = solve::shifted(gram, rhs, &shifts)?;
                let mut dual = Array2::zeros((n, p));
                for (from, &to) in kept.iter().enumerate() {
                    dual.column_mut(to).assign(&(&solved.column(from) / outputs.values()[to]));
                }
                let dual = dual.dot(&outputs.vectors());
                (dual.into_iter().collect(), SolveReport::direct("cholesky", jitter, condition))
            }
            (None, None) => {
                let mut matrix = field_triangle(&self.kernel, &rows)?;
                matrix.add_to_diagonal(self.penalty);
                let (factor, jitter, condition) = solve::factorise(matrix)?;
                let mut dual: Vec<f64> = targets.iter().copied().collect();
                factor.solve_in_place(TileMut::new(&mut dual, n * p, 1))?;
                (dual, SolveReport::direct("cholesky", jitter, condition))
            }
        };
        let dual = Array2::from_shape_vec((n, p), dual).expect("n rows of p");
        Ok(ExactOperatorRidgeModel { kernel: self.kernel.clone(), rows, dual, report })
    }
}

/// The lower triangle of the matrix of all pairs of rows, of the kernel of a field.
pub(super) fn field_triangle(kernel: &OperatorKernel, rows: &Array2<f64>) -> Result<Lower<f64>> {
    let (n, p) = rows.dim();
    let field = kernel.as_field().expect("a kernel is a field or decomposable").at(p);
    let (mut matrix, mut block) = (Lower::zeros(n * p)?, vec![0.0; p * p]);
    let row = |i: usize| rows.row(i).to_slice().expect("standard layout");
    for i in 0..n {
        interrupt::check()?;
        for j in 0..=i {
            field.fill(row(i), row(j), &mut block);
            for a in 0..p {
                // Of a diagonal block only the lower half is stored.
                let end = if i == j { a + 1 } else { p };
                matrix.row_mut(i * p + a)[j * p..j * p + end].copy_from_slice(&block[a * p..a * p + end]);
            }
        }
    }
    Ok(matrix)
}

impl Fit for ExactOperatorRidge {
    type Real = f64;
    type Model = ExactOperatorRidgeModel;

    fn fit_stream(
        &self,
        source: &mut dyn RowSource<f64>,
        context: &mut Context<'_>,
    ) -> Result<ExactOperatorRidgeModel> {
        check_dim("number of target columns", self.kernel.output_dim(source.input_dim()), source.target_dim())?;
        self.kernel.check_inputs(source.input_dim())?;
        context.fit(source, |source, context| {
            let reason = "the exact reference takes rows of equal weight";
            let Gathered { rows, targets, .. } = gather(source, context, Some(reason))?;
            self.solve(rows, targets.view())
        })
    }
}

/// The matrix of all pairs, multiplied without being stored.
struct Pairs<'a> {
    kernel: &'a OperatorKernel,
    rows: &'a Array2<f64>,
    outputs: usize,
}

impl Operator for Pairs<'_> {
    fn dim(&self) -> usize {
        self.rows.nrows() * self.outputs
    }

    fn apply(&mut self, v: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        check_dim("number of rows of the vectors", self.dim(), v.nrows())?;
        let mut out = Array2::zeros(v.dim());
        for (from, mut to) in v.columns().into_iter().zip(out.columns_mut()) {
            let dual = Array2::from_shape_vec((self.rows.nrows(), self.outputs), from.to_vec()).expect("n rows of p");
            let mut image = Array2::zeros(dual.dim());
            evaluate(self.kernel, self.rows.view(), self.rows, &dual, image.view_mut())?;
            to.iter_mut().zip(&image).for_each(|(to, from)| *to = *from);
            interrupt::advance(self.rows.nrows());
        }
        Ok(out)
    }
}

/// `Σⱼ K(xᵢ, zⱼ) cⱼ` for every row `xᵢ`.
fn evaluate(
    kernel: &OperatorKernel,
    x: ArrayView2<'_, f64>,
    z: &Array2<f64>,
    dual: &Array2<f64>,
    mut out: ArrayViewMut2<'_, f64>,
) -> Result<()> {
    // Rows at once, so that the scalar kernel of decomposable ones takes no more than some megabytes.
    const ROWS: usize = 256;
    if let Some((base, outputs)) = kernel.decomposed() {
        let dual = dual.dot(&outputs.matrix());
        for (x, mut out) in x.axis_chunks_iter(Axis(0), ROWS).zip(out.axis_chunks_iter_mut(Axis(0), ROWS)) {
            out.assign(&kernel_matrix(base, x, z.view())?.dot(&dual));
        }
        return Ok(());
    }
    let field = kernel.as_field().expect("a kernel is a field or decomposable").at(x.ncols());
    check_finite("rows", x, 0)?;
    let x = x.as_standard_layout();
    let stop = Flag::current();
    x.rows().into_iter().zip(out.rows_mut()).in_parallel().for_each_init(Vec::new, |sum, (x, mut out)| {
        if stop.raised() {
            return;
        }
        sum.clear();
        sum.resize(out.len(), 0.0);
        for (z, c) in z.rows().into_iter().zip(dual.rows()) {
            let slices = (x.to_slice(), z.to_slice(), c.to_slice());
            let (Some(x), Some(z), Some(c)) = slices else {
                unreachable!("rows and coefficients are in standard layout")
            };
            field.add_product(x, z, c, sum);
        }
        out.iter_mut().zip(&*sum).for_each(|(to, from)| *to = *from);
    });
    Ok(())
}

/// A fitted [`ExactOperatorRidge`].
#[derive(Debug, Clone)]
pub struct ExactOperatorRidgeModel {
    kernel: OperatorKernel,
    rows: Array2<f64>,
    dual: Array2<f64>,
    report: SolveReport,
}

impl ExactOperatorRidgeModel {
    /// A model from its parts.
    ///
    /// # Errors
    /// Shapes that do not fit together, NaN or infinities.
    pub fn from_parts(
        kernel: OperatorKernel,
        rows: Array2<f64>,
        dual: Array2<f64>,
        report: SolveReport,
    ) -> Result<Self> {
        check_dim("number of rows of dual coefficients", rows.nrows(), dual.nrows())?;
        check_dim("number of columns of dual coefficients", kernel.output_dim(rows.ncols()), dual.ncols())?;
        check_finite("rows", rows.view(), 0)?;
        check_finite("dual coefficients", dual.view(), 0)?;
        let (rows, dual) = (rows.as_standard_layout().into_owned(), dual.as_standard_layout().into_owned());
        Ok(ExactOperatorRidgeModel { kernel, rows, dual, report })
    }

    /// The kernel.
    pub fn kernel(&self) -> &OperatorKernel {
        &self.kernel
    }

    /// The rows it was fitted to.
    pub fn rows(&self) -> ArrayView2<'_, f64> {
        self.rows.view()
    }

    /// `cᵢ`, one row per row.
    pub fn dual(&self) -> ArrayView2<'_, f64> {
        self.dual.view()
    }

    /// How the solution was found.
    pub fn report(&self) -> &SolveReport {
        &self.report
    }
}

impl Predict for ExactOperatorRidgeModel {
    type Real = f64;

    fn input_dim(&self) -> usize {
        self.rows.ncols()
    }

    fn output_dim(&self) -> usize {
        self.dual.ncols()
    }

    fn predict_into(&self, rows: ArrayView2<'_, f64>, mut out: ArrayViewMut2<'_, f64>) -> Result<()> {
        check_dim("number of columns of rows", self.rows.ncols(), rows.ncols())?;
        check_dim("number of rows of the output", rows.nrows(), out.nrows())?;
        check_dim("number of columns of the output", self.output_dim(), out.ncols())?;
        evaluate(&self.kernel, rows, &self.rows, &self.dual, out.view_mut())?;
        crate::rows::check_finite("predictions", out.view(), 0)
    }
}

description! {
    /// Parameters of ridge regression with an exact operator-valued kernel.
    pub struct ExactOperatorRidgeSpec {
        /// Added to the diagonal.
        alpha: f64 = 1.0, Domain::NON_NEGATIVE, Fit;
    }
    besides {}
}

const OPERATOR_RIDGE: &str = "exact_operator_ridge";

pub(super) const ENTRY: ModelEntry = ModelEntry::new(
    OPERATOR_RIDGE,
    "exact ridge regression with an operator-valued kernel",
    "What operator-valued features approximate, for some hundreds of rows.",
    "exact-operator",
    ExactOperatorRidgeSpec::PARAMETERS,
    load::<ExactOperatorRidgeModel, ExactOperatorRidgeModel>,
    Describing::InDouble(describe),
)
.on(Needs::OperatorKernel);

fn describe(asked: &Asked<'_, f64>) -> Result<Box<dyn FitAny<f64>>> {
    let Basis::Described(Description::OperatorKernel(kernel)) = asked.on else {
        return Err(asked.lacks("an operator-valued kernel"));
    };
    let spec: ExactOperatorRidgeSpec = asked.spec()?;
    Ok(Box::new(ExactOperatorRidge::new(kernel.clone(), spec.alpha)?))
}

impl Fitted for ExactOperatorRidgeModel {
    fn kind(&self) -> &'static str {
        OPERATOR_RIDGE
    }

    fn description(&self) -> Option<Description> {
        Some(self.kernel().clone().into())
    }

    regresses!(Predict::predict);

    fn sentences(&self) -> Vec<String> {
        compared(self.rows().nrows(), self.report())
    }

    fn to_stored(&self) -> Result<Stored> {
        let mut header = Header::of_kernel(OPERATOR_RIDGE, self.input_dim(), Some(self.kernel().clone()))?;
        header.insert("report", self.report())?;
        Ok(Stored::new(header).with("rows", matrix(self.rows())?).with("coefficients", matrix(self.dual())?))
    }
}

impl Load for ExactOperatorRidgeModel {
    fn load(stored: &Stored) -> Result<Self> {
        let Description::OperatorKernel(kernel) = stored.header.description()?.clone() else {
            let reason = "an operator-valued kernel is needed here".into();
            return Err(Error::Unsupported { what: "kernel", reason });
        };
        let (rows, dual) = (stored.matrix("rows")?, stored.matrix("coefficients")?);
        check_dim("length of a row", stored.header.input_dim, rows.ncols())?;
        ExactOperatorRidgeModel::from_parts(kernel, rows, dual, stored.header.part("report")?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Gaussian, OutputMatrix};

    #[test]
    fn an_exact_operator_model_survives_a_file() {
        let rows = Array2::from_shape_fn((30, 2), |(i, j)| ((i * (j + 2)) as f64 * 0.61).sin());
        let targets = Array2::from_shape_fn((30, 2), |(i, j)| rows[[i, j]] * rows[[i, 0]]);
        let outputs = OutputMatrix::identity(2).unwrap();
        let related = OperatorKernel::decomposable(Gaussian::new(0.7).unwrap().into(), outputs).unwrap();
        for kernel in [OperatorKernel::curl_free(0.5).unwrap(), related] {
            let model = ExactOperatorRidge::new(kernel, 0.1).unwrap().fit(rows.view(), targets.view()).unwrap();
            let stored = Stored::from_bytes(&model.to_bytes().unwrap()).unwrap();
            let again = ExactOperatorRidgeModel::load(&stored).unwrap();
            assert_eq!(model.predict(rows.view()).unwrap(), again.predict(rows.view()).unwrap());
            assert_eq!((model.kernel(), model.report()), (again.kernel(), again.report()));
            let mut damaged = stored.clone();
            damaged.header.input_dim = 3;
            assert!(ExactOperatorRidgeModel::load(&damaged).is_err());
        }
    }
}
