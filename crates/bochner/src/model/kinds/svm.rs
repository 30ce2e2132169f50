use super::{Load, ModelEntry, load};
use crate::error::Result;
use crate::feature::{DynMap, FeatureMap};
use crate::model::{Fitted, Svm, SvmModel};
use crate::parameter::{Domain, description};
use crate::persist::{Drawable, Header, Stored, Tensor};
use crate::scalar::Real;
use crate::solve::Hinge;
use ndarray::{Array2, ArrayView2, Axis, concatenate};

description! {
    /// Parameters of a linear support vector machine on features.
    #[allow(non_snake_case)] // as the ecosystem writes it
    pub struct SvmSpec {
        /// Price of a violated margin: the loss summed over rows is multiplied by it.
        C: f64 = 1.0, Domain::POSITIVE, Fit;
        /// What a violated margin costs.
        loss: Hinge = Hinge::SquaredHinge, Domain::Word(Hinge::CHOICES), Fit;
        /// Duality gap, relative to the objective, at which a problem is solved.
        tol: f64 = 1e-3, Domain::POSITIVE, Fit;
        /// Most passes over the rows.
        max_iter: usize = 1000, Domain::COUNT, Size;
        /// Whether to add a constant column, whose weight is penalised like the others.
        fit_intercept: bool = true, Domain::Flag, Fit;
        /// Value of that column.
        intercept_scaling: f64 = 1.0, Domain::POSITIVE, Fit;
        /// Bytes for features of all rows; beyond it they are made again, block by block, in every pass. None means 4 GiB.
        memory_budget: Option<u64> = None, Domain::Optional(&Domain::COUNT), Size;
    }
    besides {}
}

impl SvmSpec {
    /// A machine on these features; it finds out how many classes there are unless it is told.
    ///
    /// # Errors
    /// Parameters out of range, named.
    pub fn on<R: Real, M: FeatureMap<Real = R, Output = R>>(&self, map: M) -> Result<Svm<M>> {
        self.check_parameters()?;
        Svm::new(map, self.C)?
            .with_loss(self.loss)
            .with_tolerance(self.tol)?
            .with_max_epochs(self.max_iter)?
            .with_intercept(self.fit_intercept.then_some(self.intercept_scaling))
    }
}

const SVM: &str = "svm";

pub(super) const ENTRY: ModelEntry = ModelEntry::new(
    SVM,
    "support vector machine",
    "A linear machine on the features, one class against the rest: a kernel machine at the cost of a linear one.",
    "svm",
    SvmSpec::PARAMETERS,
    load::<SvmModel<DynMap<f32>>, SvmModel<DynMap<f64>>>,
)
.classification();

impl<R: Real, M: FeatureMap<Real = R, Output = R> + 'static> Fitted for SvmModel<M> {
    on_map!(SVM);
    classifies!();

    /// Two classes share one machine: its value is that of the second class, and minus that of the first.
    fn values(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        let mut decided = Array2::from_elem((rows.nrows(), self.reports().len()), R::ZERO);
        self.decide_into(rows.mapv(R::from_f64).view(), decided.view_mut())?;
        let decided = decided.mapv(Real::to_f64);
        Ok(match self.classes() {
            2 => concatenate![Axis(1), -&decided, decided],
            _ => decided,
        })
    }

    fn sentences(&self) -> Vec<String> {
        let converged = self.reports().iter().filter(|r| r.converged).count();
        vec![format!("{converged} of {} machines reached their tolerance", self.reports().len())]
    }

    fn to_stored(&self) -> Result<Stored> {
        let mut header = Header::of_map(SVM, self.map())?;
        header.insert("reports", &self.reports())?;
        header.insert("classes", &self.classes())?;
        let (rows, cols) = self.coefficients().dim();
        Ok(Stored::new(header)
            .with("coefficients", Tensor::of(vec![rows, cols], self.coefficients().iter().copied())?)
            .with("intercept", Tensor::of(vec![cols], self.intercept().iter().copied())?))
    }
}

impl<R: Real, M: Drawable + FeatureMap<Real = R, Output = R> + 'static> Load for SvmModel<M> {
    fn load(stored: &Stored) -> Result<Self> {
        let (classes, reports) = (stored.header.part("classes")?, stored.header.part("reports")?);
        let map = stored.draw()?;
        SvmModel::from_parts(map, stored.matrix("coefficients")?, stored.vector("intercept")?, classes, reports)
    }
}
