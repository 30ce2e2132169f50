//! Fitting a kind of model by its name: what doors ask for, and how the kinds answer.

use super::evidence::Wide;
use super::{Fit, Fitted, Model, ModelEntry, OperatorBasis, Task};
use crate::accumulate::{ClassGram, Gram, Moments};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::feature::{Describe, Description, DynComplexMap, DynMap, FeatureMap};
use crate::kernel::AnyKernel;
use crate::metrics::{class_negative_log_likelihood, error_rate};
use crate::parameter::Value;
use crate::persist::{Stored, malformed};
use crate::random::Seed;
use crate::rows::{Coded, Coding, MOST_CLASSES, RowBlock, RowSource, class_of};
use crate::scalar::{Real, Twin};
use ndarray::Array2;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Deref;
use std::path::Path;

/// What a model is fitted on.
#[derive(Debug, Clone)]
pub enum Basis<R: Real> {
    /// Features, drawn already.
    Map(DynMap<R>),
    /// Complex features; kinds of models that take real ones draw them side by side.
    ComplexMap(DynComplexMap<R>),
    /// A map that is still to be drawn, or a kernel.
    Described(Description),
    /// An operator-valued kernel; its features are among the parameters.
    Operator(OperatorBasis),
    /// Nothing: parameters say all of it.
    Nothing,
}

/// Features, real or complex.
#[derive(Debug)]
pub(crate) enum Drawn<R: Real> {
    Real(DynMap<R>),
    Complex(DynComplexMap<R>),
}

/// What a kind of model is fitted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Features.
    Map,
    /// An exact kernel.
    Kernel,
    /// Features of an operator-valued kernel.
    Operator,
    /// An exact operator-valued kernel.
    OperatorKernel,
    /// Features of its own.
    Nothing,
}

/// A model of a kind of the catalogue, to be fitted: parameters by name, the number of classes and a seed.
///
/// ```
/// use bochner::catalogue::ModelEntry;
/// use bochner::feature::{Describe, FourierSpec};
/// use bochner::model::Basis;
/// use bochner::rows::InMemory;
/// use bochner::Context;
/// use ndarray::Array2;
/// let rows = Array2::from_shape_fn((50, 2), |(i, j)| (i * (j + 2)) as f64 * 0.1);
/// let targets = rows.map(|v| v.sin());
/// let map = FourierSpec { n_components: 32, ..Default::default() }.build::<f64>(2)?;
/// let request = ModelEntry::named("ridge")?.request().with("alpha", 0.1)?;
/// let model = request.fit(&Basis::Map(map), &mut InMemory::new(rows.view(), targets.view())?, &mut Context::default())?;
/// assert_eq!(model.predict(rows.view())?.dim(), (50, 2));
/// assert!(ModelEntry::named("ridge")?.request().with("alpha", -1.0).is_err());
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FitRequest {
    kind: &'static ModelEntry,
    values: BTreeMap<String, Value>,
    penalty: Option<f64>,
    classes: Option<usize>,
    seed: Seed,
}

impl FitRequest {
    pub(super) fn new(kind: &'static ModelEntry) -> Self {
        FitRequest { kind, values: BTreeMap::new(), penalty: None, classes: None, seed: Seed::new(0) }
    }

    /// With a value of a parameter of the catalogue.
    ///
    /// # Errors
    /// No such parameter, or a value that it cannot have.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Result<Self> {
        let value = value.into();
        self.kind.entry.parameter(name)?.check(&value)?;
        self.values.insert(name.to_owned(), value);
        Ok(self)
    }

    /// With the one number that a search finds, in place of the parameters that it stands for
    /// ([`ModelEntry::penalty`]).
    #[must_use]
    pub fn with_penalty(mut self, penalty: f64) -> Self {
        self.penalty = Some(penalty);
        self
    }

    /// For a known number of classes; otherwise a pass over the labels finds the largest.
    #[must_use]
    pub fn with_classes(mut self, classes: impl Into<Option<usize>>) -> Self {
        self.classes = classes.into();
        self
    }

    /// With a seed for draws of the fit.
    #[must_use]
    pub fn with_seed(mut self, seed: Seed) -> Self {
        self.seed = seed;
        self
    }

    /// The kind of model.
    pub fn kind(&self) -> &'static ModelEntry {
        self.kind
    }

    /// The parameters as the kind's own type.
    ///
    /// # Errors
    /// Numbers that are not whole where whole ones are needed.
    pub fn spec<S: DeserializeOwned>(&self) -> Result<S> {
        let read = serde_json::to_value(&self.values).and_then(serde_json::from_value);
        read.map_err(|error: serde_json::Error| {
            // All else was checked: whole numbers with a fraction of 0 are not written as such.
            let found = self.values.iter().find(|(_, value)| matches!(value, Value::Real(v) if v.fract() == 0.0));
            match found.map(|(name, value)| (self.kind.entry.parameter(name), serde_json::to_string(value))) {
                Some((Ok(parameter), Ok(found))) => {
                    Error::Parameter { name: parameter.name, expected: "a non-negative integer".into(), found }
                }
                _ => Error::Format { what: "parameters", detail: error.to_string() },
            }
        })
    }

    pub(crate) fn penalty(&self) -> Option<f64> {
        self.penalty
    }

    pub(crate) fn classes(&self) -> Option<usize> {
        self.classes
    }

    pub(crate) fn seed(&self) -> Seed {
        self.seed
    }

    /// The price of a violated margin: that with which it weighs the coefficients as the penalty does, or the one given.
    pub(crate) fn price(&self, given: f64) -> f64 {
        self.penalty.map_or(given, |penalty| 0.5 / penalty.max(1e-12))
    }

    /// Fits a model to the rows of a source. A parameter `memory_budget` takes the place of the budget of the context.
    ///
    /// # Errors
    /// Those of [`Fit::fit_stream`](super::Fit::fit_stream), and a basis that the kind has no use for.
    pub fn fit<R: Real>(
        &self,
        on: &Basis<R>,
        source: &mut dyn RowSource<R>,
        context: &mut Context<'_>,
    ) -> Result<Model> {
        if let Some(Value::Whole(bytes)) = self.values.get("memory_budget") {
            context.set_memory_budget(*bytes);
        }
        let asked = Asked { request: self, on, inputs: source.input_dim(), targets: source.target_dim() };
        match self.kind.describe {
            Describing::Each(single, double) => {
                R::pick::<DescribeFns>(single, double)(&asked)?.fit_any(source, context)
            }
            Describing::InDouble(describe) => {
                let fit = R::pick::<InDouble>(
                    |describe, asked, source, context| {
                        let on = &asked.on.widened();
                        let Asked { request, inputs, targets, .. } = *asked;
                        describe(&Asked { request, on, inputs, targets })?.fit_any(&mut Widened(source), context)
                    },
                    |describe, asked, source, context| describe(asked)?.fit_any(source, context),
                );
                fit(describe, &asked, source, context)
            }
        }
    }

    /// Sums over no rows of so many inputs and targets, or those that were stored, from which a model of this kind is solved.
    ///
    /// # Errors
    /// A kind that is not solved from sums, sums of another kind, and more than the memory budget allows.
    pub fn sums<R: Real>(
        &self,
        on: &Basis<R>,
        shape: (usize, usize),
        stored: Option<&Stored>,
        context: &Context<'_>,
    ) -> Result<Sums<R>> {
        let Some((single, double)) = self.kind.sums else {
            let reason = format!("{} is not solved from sums", self.kind.entry.title);
            return Err(Error::Unsupported { what: "sums", reason });
        };
        let (inputs, targets) = shape;
        R::pick::<SumsFns>(single, double)(&Asked { request: self, on, inputs, targets }, stored, context)
    }

    /// The loss of every penalty on rows that were held out: [`ModelEntry::loss_in_words`] says which.
    ///
    /// # Errors
    /// As [`fit`](Self::fit).
    pub fn losses<R: Real>(
        &self,
        penalties: &[f64],
        on: &Basis<R>,
        train: &mut dyn RowSource<R>,
        held_out: &mut dyn RowSource<R>,
        context: &mut Context<'_>,
    ) -> Result<Vec<f64>> {
        if let Some((single, double)) = self.kind.losses {
            let asked = Asked { request: self, on, inputs: train.input_dim(), targets: train.target_dim() };
            return R::pick::<LossesFns>(single, double)(&asked, penalties, train, held_out, context);
        }
        let (rows, targets) = in_memory(held_out)?;
        let (rows, targets) = (rows.mapv(Real::to_f64), targets.mapv(Real::to_f64));
        let mut loss = |&penalty: &f64| {
            let model = self.clone().with_penalty(penalty).fit(on, train, context)?;
            if self.kind.task == Task::Regression {
                return Ok((model.predict(rows.view())? - &targets).mapv(|e| e * e).mean().unwrap_or(f64::NAN));
            }
            let labels = targets.iter().enumerate().map(|(i, &label)| class_of(label, MOST_CLASSES, i));
            let labels = labels.collect::<Result<Vec<_>>>()?;
            match self.kind.answers.probabilities {
                true => class_negative_log_likelihood(&labels, model.probabilities(rows.view())?.view()),
                false => error_rate(&labels, &model.predict_classes(rows.view())?),
            }
        };
        penalties.iter().map(&mut loss).collect()
    }
}

/// A request on something, for rows of so many inputs and targets: what a kind of model is described from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a, R: Real> {
    pub(crate) request: &'a FitRequest,
    pub(crate) on: &'a Basis<R>,
    pub(crate) inputs: usize,
    pub(crate) targets: usize,
}

impl<R: Real> Deref for Asked<'_, R> {
    type Target = FitRequest;

    fn deref(&self) -> &FitRequest {
        self.request
    }
}

impl<R: Real> Asked<'_, R> {
    pub(crate) fn lacks(&self, what: &str) -> Error {
        Error::Unsupported { what: "fit", reason: format!("{} needs {what}", self.kind.entry.title) }
    }

    /// The features, real or complex.
    pub(crate) fn drawn(&self) -> Result<Drawn<R>> {
        match self.on {
            Basis::ComplexMap(map) => Ok(Drawn::Complex(map.clone())),
            _ => self.map().map(Drawn::Real),
        }
    }

    /// The features, real ones.
    pub(crate) fn map(&self) -> Result<DynMap<R>> {
        match self.on {
            Basis::Map(map) => Ok(map.clone()),
            Basis::ComplexMap(map) => map.description().ok_or_else(|| self.lacks("a real map"))?.build(map.input_dim()),
            Basis::Described(description) => description.spec()?.build(self.inputs),
            Basis::Operator(_) | Basis::Nothing => Err(self.lacks("a map")),
        }
    }

    /// The exact kernel.
    pub(crate) fn kernel(&self) -> Result<AnyKernel> {
        match self.on {
            Basis::Described(description) => description.kernel().cloned(),
            _ => Err(self.lacks("a kernel")),
        }
    }
}

/// A description of a model of any kind.
pub(crate) trait FitAny<R: Real> {
    fn fit_any(&self, source: &mut dyn RowSource<R>, context: &mut Context<'_>) -> Result<Model>;
}

impl<F: Fit<Model: Fitted>> FitAny<F::Real> for F {
    fn fit_any(&self, source: &mut dyn RowSource<F::Real>, context: &mut Context<'_>) -> Result<Model> {
        Ok(self.fit_stream(source, context)?.into())
    }
}

/// Rows and targets of a source.
pub(crate) fn in_memory<R: Real>(source: &mut dyn RowSource<R>) -> Result<(Array2<R>, Array2<R>)> {
    let (mut rows, mut targets, mut n) = (Vec::new(), Vec::new(), 0);
    source.for_each_block(&mut |block| {
        n += block.rows.nrows();
        rows.extend(block.rows.iter().copied());
        targets.extend(block.targets.iter().copied());
        Ok(())
    })?;
    let shaped = |values, columns| Array2::from_shape_vec((n, columns), values).expect("n rows");
    Ok((shaped(rows, source.input_dim()), shaped(targets, source.target_dim())))
}

impl<R: Real> Basis<R> {
    /// What a kind that knows double precision only makes of it.
    fn widened(&self) -> Basis<f64> {
        let described = |map: Option<&crate::feature::Spec>| {
            map.map_or(Basis::Nothing, |spec| Basis::Described(Description::Map(spec.clone())))
        };
        match self {
            Basis::Map(map) => described(map.description()),
            Basis::ComplexMap(map) => described(map.description()),
            Basis::Described(description) => Basis::Described(description.clone()),
            Basis::Operator(operator) => Basis::Operator(operator.clone()),
            Basis::Nothing => Basis::Nothing,
        }
    }
}

/// A source in double precision.
struct Widened<'a, R>(&'a mut dyn RowSource<R>);

impl<R: Real> RowSource<f64> for Widened<'_, R> {
    fn input_dim(&self) -> usize {
        self.0.input_dim()
    }

    fn target_dim(&self) -> usize {
        self.0.target_dim()
    }

    fn len_hint(&self) -> Option<usize> {
        self.0.len_hint()
    }

    fn for_each_block(&mut self, visit: &mut dyn FnMut(RowBlock<'_, f64>) -> Result<()>) -> Result<()> {
        self.0.for_each_block(&mut |block| {
            let (rows, targets) = (block.rows.mapv(Real::to_f64), block.targets.mapv(Real::to_f64));
            let weights = block.weights.map(|weights| weights.mapv(Real::to_f64));
            let weights = weights.as_ref().map(|weights| weights.view());
            visit(RowBlock { rows: rows.view(), targets: targets.view(), weights })
        })
    }
}

/// How a kind of model is described, in its own file.
pub(crate) type DescribeFn<R> = fn(&Asked<'_, R>) -> Result<Box<dyn FitAny<R>>>;
/// How its sums begin, or are found again.
pub(crate) type SumsFn<R> = fn(&Asked<'_, R>, Option<&Stored>, &Context<'_>) -> Result<Sums<R>>;
/// How many penalties are compared, where that costs less than as many fits.
pub(crate) type LossesFn<R> =
    fn(&Asked<'_, R>, &[f64], &mut dyn RowSource<R>, &mut dyn RowSource<R>, &mut Context<'_>) -> Result<Vec<f64>>;

/// The precisions that a kind is fitted in.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Describing {
    Each(DescribeFn<f32>, DescribeFn<f64>),
    InDouble(DescribeFn<f64>),
}

/// Functions that are compiled once for each precision, here: whoever fits by name compiles none of them.
macro_rules! twins {
    ($($name:ident: $function:ty;)*) => {$(
        struct $name;
        impl Twin for $name {
            type Of<R: Real> = $function;
        }
    )*};
}
twins! {
    DescribeFns: DescribeFn<R>;
    InDouble: fn(DescribeFn<f64>, &Asked<'_, R>, &mut dyn RowSource<R>, &mut Context<'_>) -> Result<Model>;
    SumsFns: SumsFn<R>;
    LossesFns: LossesFn<R>;
}

/// How a model is made of sums, on their map.
type Solve<M, S> = fn(&Asked<'_, <M as FeatureMap>::Real>, &M, S, &Context<'_>) -> Result<Model>;
type SolveAll<M> = Solve<M, Moments<Wide<M>>>;
type SolveClasses<M> = Solve<M, Vec<Moments<Wide<M>>>>;

/// Sums over the features of a map, and how a model is made of them.
#[derive(Debug, Clone)]
enum Over<M: FeatureMap> {
    All(M, Gram<M::Output>, SolveAll<M>),
    Classes(M, ClassGram<M::Output>, SolveClasses<M>),
}

fn of_another_kind() -> Error {
    Error::Unsupported { what: "sums", reason: "they are of another kind".into() }
}

/// [`Over`] any map.
trait Accumulate<R: Real>: Any + Debug + Send + Sync {
    fn push(&mut self, block: RowBlock<'_, R>) -> Result<()>;
    fn merge(&mut self, other: &dyn Any) -> Result<()>;
    fn forget(&mut self, other: Box<dyn Any>) -> Result<()>;
    fn scale(&mut self, factor: f64) -> Result<()>;
    fn cancellation(&self) -> f64;
    fn fresh(&self) -> Result<Box<dyn Accumulate<R>>>;
    fn count(&self) -> u64;
    fn bytes(&self) -> u64;
    fn to_bytes(&self) -> Result<Vec<u8>>;
    fn save_with(&self, path: &Path, note: &serde_json::Value) -> Result<()>;
    fn finish(self: Box<Self>, request: &FitRequest, on: &Basis<R>, context: &Context<'_>) -> Result<Model>;
    fn copy(&self) -> Box<dyn Accumulate<R>>;
}

/// The same for both kinds of sums.
macro_rules! both {
    ($over:expr, $gram:ident => $value:expr) => {
        match $over {
            Over::All(_, $gram, _) => $value,
            Over::Classes(_, $gram, _) => $value,
        }
    };
}

impl<M: FeatureMap + Clone + 'static> Accumulate<M::Real> for Over<M> {
    fn push(&mut self, block: RowBlock<'_, M::Real>) -> Result<()> {
        match self {
            Over::All(map, gram, _) => gram.push_rows(map, block),
            Over::Classes(map, gram, _) => gram.push_rows(map, block),
        }
    }

    fn merge(&mut self, other: &dyn Any) -> Result<()> {
        match (self, other.downcast_ref::<Self>()) {
            (Over::All(_, own, _), Some(Over::All(_, other, _))) => own.merge(other),
            (Over::Classes(map, own, _), Some(Over::Classes(_, other, _))) => own.merge(map, other),
            _ => Err(of_another_kind()),
        }
    }

    fn forget(&mut self, other: Box<dyn Any>) -> Result<()> {
        match (self, *other.downcast::<Self>().map_err(|_| of_another_kind())?) {
            (Over::All(_, own, _), Over::All(_, other, _)) => own.forget(other),
            (Over::Classes(map, own, _), Over::Classes(_, other, _)) => own.forget(map, other),
            _ => Err(of_another_kind()),
        }
    }

    fn scale(&mut self, factor: f64) -> Result<()> {
        match self {
            Over::All(_, gram, _) => gram.scale(factor),
            Over::Classes(map, gram, _) => gram.scale(map, factor),
        }
    }

    fn cancellation(&self) -> f64 {
        both!(self, gram => gram.cancellation())
    }

    fn fresh(&self) -> Result<Box<dyn Accumulate<M::Real>>> {
        Ok(Box::new(match self {
            Over::All(map, gram, solve) => Over::All(map.clone(), Gram::new(gram.dim(), gram.outputs())?, *solve),
            Over::Classes(map, gram, solve) => {
                Over::Classes(map.clone(), ClassGram::new(gram.input_dim(), gram.dim(), gram.classes())?, *solve)
            }
        }))
    }

    fn count(&self) -> u64 {
        both!(self, gram => gram.count())
    }

    fn bytes(&self) -> u64 {
        both!(self, gram => gram.own_bytes())
    }

    fn to_bytes(&self) -> Result<Vec<u8>> {
        both!(self, gram => gram.to_bytes())
    }

    fn save_with(&self, path: &Path, note: &serde_json::Value) -> Result<()> {
        both!(self, gram => gram.save_with(path, note))
    }

    fn finish(self: Box<Self>, request: &FitRequest, on: &Basis<M::Real>, context: &Context<'_>) -> Result<Model> {
        let asked = |map: &M, targets| Asked { request, on, inputs: map.input_dim(), targets };
        match *self {
            Over::All(map, gram, solve) => solve(&asked(&map, gram.outputs()), &map, gram.finish(), context),
            Over::Classes(map, gram, solve) => solve(&asked(&map, 1), &map, gram.finish(&map)?, context),
        }
    }

    fn copy(&self) -> Box<dyn Accumulate<M::Real>> {
        Box::new(self.clone())
    }
}

/// Sums over rows, from which models are solved: rows may come in any number of calls, and from several machines.
#[derive(Debug)]
pub struct Sums<R: Real> {
    over: Box<dyn Accumulate<R>>,
    /// How many classes, and the code they have, where targets are their numbers.
    coding: Option<(usize, Coding)>,
}

impl<R: Real> Clone for Sums<R> {
    fn clone(&self) -> Self {
        Sums { over: self.over.copy(), coding: self.coding }
    }
}

impl<R: Real> Sums<R> {
    pub(crate) fn all<M>(map: M, gram: Gram<M::Output>, solve: SolveAll<M>) -> Self
    where
        M: FeatureMap<Real = R> + Clone + 'static,
    {
        Sums { over: Box::new(Over::All(map, gram, solve)), coding: None }
    }

    pub(crate) fn classes<M>(map: M, gram: ClassGram<M::Output>, solve: SolveClasses<M>) -> Self
    where
        M: FeatureMap<Real = R> + Clone + 'static,
    {
        Sums { over: Box::new(Over::Classes(map, gram, solve)), coding: None }
    }

    /// Of codes of classes.
    pub(crate) fn coded(self, coding: Option<(usize, Coding)>) -> Self {
        Sums { coding, ..self }
    }

    /// Adds the rows of a source with their targets, or numbers of classes; `after` is told of every block.
    ///
    /// # Errors
    /// Data that do not fit, those of the source and of `after`. The sums hold part of the rows then.
    pub fn read(
        &mut self,
        source: &mut dyn RowSource<R>,
        context: &mut Context<'_>,
        after: &mut dyn FnMut(&Self) -> Result<()>,
    ) -> Result<()> {
        let coding = self.coding;
        let mut visit = |block: RowBlock<'_, R>| {
            self.over.push(block)?;
            after(self)
        };
        match coding {
            Some((classes, coding)) => context.read(&mut Coded::new(source, classes, coding)?, &mut visit),
            None => context.read(source, &mut visit),
        }
    }

    /// Adds the rows of other sums over the same features, as if they came after these.
    ///
    /// # Errors
    /// Sums of another kind or size.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        self.over.merge(&*other.over)
    }

    /// Sums over no rows of the same features.
    ///
    /// # Errors
    /// More than memory holds.
    pub fn fresh(&self) -> Result<Self> {
        Ok(Sums { over: self.over.fresh()?, coding: self.coding })
    }

    /// Takes back the rows of other sums over the same features ([`fresh`](Self::fresh)): the model is the one without them, up to
    /// the rounding of the sums before.
    ///
    /// ```
    /// use bochner::catalogue::ModelEntry;
    /// use bochner::feature::{Describe, FourierSpec};
    /// use bochner::model::{Basis, Sums};
    /// use bochner::rows::InMemory;
    /// use bochner::Context;
    /// use ndarray::{Array2, s};
    /// let rows = Array2::from_shape_fn((60, 2), |(i, j)| ((i * (j + 2)) as f64 * 0.7).sin());
    /// let targets = rows.map(|v| v.exp());
    /// let on = Basis::Map(FourierSpec { n_components: 16, ..Default::default() }.build::<f64>(2)?);
    /// let request = ModelEntry::named("ridge")?.request().with("alpha", 0.1)?;
    /// let context = &mut Context::default();
    /// let read = |sums: &mut Sums<f64>, from: usize, to: usize, context: &mut Context<'_>| {
    ///     let (rows, targets) = (rows.slice(s![from..to, ..]), targets.slice(s![from..to, ..]));
    ///     sums.read(&mut InMemory::new(rows, targets)?, context, &mut |_| Ok(()))
    /// };
    /// let mut sums = request.sums(&on, (2, 2), None, context)?;
    /// let (mut gone, mut others) = (sums.fresh()?, sums.fresh()?);
    /// read(&mut sums, 0, 60, context)?;
    /// read(&mut gone, 0, 20, context)?;
    /// read(&mut others, 20, 60, context)?;
    /// sums.forget(gone)?;
    /// let models = [sums, others].map(|sums| sums.finish(&request, &on, &Context::default()).unwrap());
    /// let [forgot, never] = models.map(|model| model.predict(rows.view()).unwrap());
    /// assert!((forgot - never).iter().all(|off| off.abs() < 1e-11));
    /// # Ok::<(), bochner::Error>(())
    /// ```
    ///
    /// # Errors
    /// Sums of another kind or size, and rows that were not added, as far as sums tell; nothing is changed then.
    pub fn forget(&mut self, other: Self) -> Result<()> {
        self.over.forget(other.over)
    }

    /// Multiplies the weights of all rows so far: with a factor below 1, older rows count less than those to come.
    ///
    /// # Errors
    /// A factor that is not positive and finite.
    pub fn scale(&mut self, factor: f64) -> Result<()> {
        self.over.scale(factor)
    }

    /// How many times larger the sums were before rows were forgotten: by so much rounding counts more. 1 without any.
    pub fn cancellation(&self) -> f64 {
        self.over.cancellation()
    }

    /// Number of rows added.
    pub fn count(&self) -> u64 {
        self.over.count()
    }

    /// Bytes of memory that they take.
    pub fn bytes(&self) -> u64 {
        self.over.bytes()
    }

    /// What a file keeps of them; [`FitRequest::sums`] goes on from there with the same bits.
    ///
    /// # Errors
    /// None known.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.over.to_bytes()
    }

    /// Writes a file of them, whole or not at all, with a note beside them.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn save_with(&self, path: impl AsRef<Path>, note: &impl Serialize) -> Result<()> {
        let note = serde_json::to_value(note).map_err(|e| malformed(format!("`note` cannot be written: {e}")))?;
        self.over.save_with(path.as_ref(), &note)
    }

    /// The model of all rows, in the memory of the sums, with the parameters of the request; on what they were begun with.
    ///
    /// # Errors
    /// Nothing to fit, or a matrix that stays indefinite.
    pub fn finish(self, request: &FitRequest, on: &Basis<R>, context: &Context<'_>) -> Result<Model> {
        self.over.finish(request, on, context)
    }
}
