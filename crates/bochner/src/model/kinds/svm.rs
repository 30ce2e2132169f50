use super::{Answers, Load, ModelEntry, Task, load};
use crate::error::Result;
use crate::feature::{Description, DynMap, FeatureMap};
use crate::model::{Fitted, Predict, SvmModel};
use crate::parameter::{Domain, Entry, description, words};
use crate::persist::{Drawable, Header, Stored, Tensor};
use crate::scalar::Real;
use ndarray::{Array2, ArrayView2, Axis, concatenate};

words! {
    /// What a violated margin costs.
    pub enum HingeName {
        /// The square of the violation.
        SquaredHinge = "squared_hinge",
        /// The violation.
        Hinge = "hinge",
    }
}

description! {
    /// Parameters of a linear support vector machine on features.
    #[allow(non_snake_case)] // as the ecosystem writes it
    pub struct SvmSpec {
        /// Price of a violated margin: the loss summed over rows is multiplied by it.
        C: f64 = 1.0, Domain::POSITIVE, Fit;
        /// What a violated margin costs.
        loss: HingeName = HingeName::SquaredHinge, Domain::Word(HingeName::CHOICES), Fit;
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

const SVM: &str = "svm";

pub(super) const ENTRY: ModelEntry = ModelEntry {
    entry: Entry {
        name: SVM,
        aliases: &[],
        title: "support vector machine",
        about: "A linear machine on the features, one class against the rest: a kernel machine at the cost of a linear one.",
        parameters: SvmSpec::PARAMETERS,
    },
    option: "svm",
    task: Task::Classification,
    answers: Answers::VALUES,
    only_double: false,
    load: load::<SvmModel<DynMap<f32>>, SvmModel<DynMap<f64>>>,
};

impl<R: Real, M: FeatureMap<Real = R, Output = R> + 'static> Fitted for SvmModel<M> {
    fn kind(&self) -> &'static str {
        SVM
    }

    fn description(&self) -> Option<Description> {
        self.map().description().cloned().map(Description::Map)
    }

    fn precision(&self) -> &'static str {
        R::NAME
    }

    fn dims(&self) -> (usize, usize) {
        (self.input_dim(), self.classes())
    }

    fn class_count(&self) -> Option<usize> {
        Some(self.classes())
    }

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
