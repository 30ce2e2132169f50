//! Descriptions of maps: what a model file stores instead of weights, and the one constructor all doors share.

use super::{DynComplexMap, DynMap};
use crate::error::{Error, Result};
use crate::interrupt;
use crate::kernel::{AnyKernel, Kernel};
use crate::linalg::{Tile, TileMut, Workspace};
use crate::memory::need;
use crate::parameter::{Entry, MOST_FEATURES, Purpose, Value};
use crate::projection::Parts;
use crate::scalar::Real;
use crate::words::count;
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};
use std::any::{Any, TypeId};
use std::sync::Arc;

/// A description of a feature map from which it can be drawn again, bit for bit.
///
/// Every kind of map has a plain struct of parameters that implements this trait; [`Spec`] is the sum of them.
pub trait Describe: Clone + Into<Spec> {
    /// Parameters that centred rows may need besides the defaults: even functions, and polynomials without lower degrees,
    /// learn no slope from them.
    #[doc(hidden)]
    const LOWER_DEGREES: &'static [(&'static str, Value)] = &[];

    /// Fills in what depends on data (a median length scale, an allocation); the default has nothing to fill in.
    ///
    /// # Errors
    /// Parameters that do not fit the rows.
    fn resolve(&self, _sample: ArrayView2<'_, f64>) -> Result<Self> {
        Ok(self.clone())
    }

    /// The description with `auto` replaced by what it stands for with rows of length `input_dim`: what files keep. The
    /// default has nothing to replace.
    ///
    /// # Errors
    /// Parameters out of range, named.
    fn settle(&self, _input_dim: usize) -> Result<Self> {
        Ok(self.clone())
    }

    /// Draws the map for rows of length `input_dim`; real output (complex maps as CtR). The map knows this description
    /// ([`FeatureMap::description`](super::FeatureMap::description)).
    ///
    /// # Errors
    /// Parameters out of range, named.
    fn build<R: Real>(&self, input_dim: usize) -> Result<DynMap<R>> {
        let spec: Spec = self.clone().into();
        whole(in_precision::<R, _, _, _>(|| spec.single(input_dim), || spec.double(input_dim)))
    }

    /// Draws the map with complex output.
    ///
    /// # Errors
    /// As [`build`](Self::build), and for maps that have no complex form.
    fn build_complex<R: Real>(&self, input_dim: usize) -> Result<DynComplexMap<R>> {
        let spec: Spec = self.clone().into();
        whole(in_precision::<R, _, _, _>(|| spec.complex_single(input_dim), || spec.complex_double(input_dim)))
    }

    /// The map alone, which knows no description: what an implementer writes.
    #[doc(hidden)]
    fn draw<R: Real>(&self, input_dim: usize) -> Result<DynMap<R>>;

    /// The same with complex output.
    #[doc(hidden)]
    fn draw_complex<R: Real>(&self, _input_dim: usize) -> Result<DynComplexMap<R>> {
        Err(Error::Unsupported { what: "complex output", reason: "this map is real".into() })
    }

    /// A row whose features tell one draw from another: near the origin in units of the length scale, so that it is far
    /// from where features vanish or rounding decides.
    #[doc(hidden)]
    fn probe(&self, input_dim: usize) -> Vec<f64> {
        scaled_pattern(&self.clone().into(), input_dim)
    }

    /// What a draw for rows of length `input_dim` costs, about: it is refused before it begins where that is too much. The
    /// default is that of stored normals.
    #[doc(hidden)]
    fn draw_cost(&self, input_dim: usize) -> DrawCost {
        let spec: Spec = self.clone().into();
        DrawCost::stored(spec.n_components(), input_dim)
    }

    /// The exact kernel the map estimates.
    ///
    /// # Errors
    /// Parameters out of range, named.
    fn kernel(&self) -> Result<Arc<dyn Kernel>>;

    /// Closed-form variance of every estimated entry `k̂(xᵢ, yⱼ)`.
    ///
    /// # Errors
    /// Maps without a closed form say why.
    fn variance(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Array2<f64>>;

    /// The variance that the same number of independent draws would have: [`variance`](Self::variance) itself for
    /// maps of independent draws, a figure to compare with for structured ones that have no closed form.
    ///
    /// # Errors
    /// As [`variance`](Self::variance), where there is no such figure either.
    fn variance_iid(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        self.variance(x, y)
    }

    /// Bias and variance as far as they are known: closed forms, or leading-order figures for structured maps.
    ///
    /// The default takes [`variance`](Self::variance) without bias, and [`variance_iid`](Self::variance_iid) where there
    /// is no closed form.
    ///
    /// # Errors
    /// As [`variance_iid`](Self::variance_iid).
    fn prediction(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Prediction> {
        let (variance, closed_form) = self.known_variance(x, y)?;
        Ok(Prediction { bias: None, variance, closed_form })
    }

    /// The variance, or where it has no closed form that of independent draws; and whether it has.
    #[doc(hidden)]
    fn known_variance(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<(Array2<f64>, bool)> {
        match self.variance(x, y) {
            Err(Error::Unsupported { .. }) => Ok((self.variance_iid(x, y)?, false)),
            variance => Ok((variance?, true)),
        }
    }

    /// The ways in which maps of this kind estimate `kernel` on rows like `rows`, for [`plan`](crate::plan); none by default.
    ///
    /// # Errors
    /// A kernel that is the same for all rows.
    fn candidates(_kernel: &AnyKernel, _rows: ArrayView2<'_, f64>) -> Result<Vec<Candidate>> {
        Ok(Vec::new())
    }
}

/// What it costs to draw a map, about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DrawCost {
    /// Numbers that the map keeps.
    pub numbers: u64,
    /// Multiplications and additions of its draw.
    pub operations: u64,
}

impl DrawCost {
    /// What a file may ask for unless somebody allows more ([`Model::load_within`](crate::model::Model::load_within)): 2 GB in
    /// single precision, and some seconds.
    pub const LIMIT: DrawCost = DrawCost { numbers: 1 << 29, operations: 1 << 34 };

    /// Operations of a random number.
    const NUMBER: u64 = 16;

    /// Operations in the time of a number that is moved to any other place of a long list.
    const SHUFFLED: u64 = 512;

    /// `rows` of `cols` random numbers that are kept.
    pub(crate) fn stored(rows: usize, cols: usize) -> Self {
        let numbers = (rows as u64).saturating_mul((cols as u64).saturating_add(4));
        DrawCost { numbers, operations: numbers.saturating_mul(Self::NUMBER) }
    }

    /// A few numbers for each of so many features or columns, which are shuffled or transformed together.
    pub(crate) fn listed(count: usize) -> Self {
        DrawCost { operations: (count as u64).saturating_mul(Self::SHUFFLED), ..Self::stored(count, 0) }
    }

    /// Rows that are orthogonal in blocks.
    pub(crate) fn orthogonal(rows: usize, cols: usize) -> Self {
        let stored = Self::stored(rows, cols);
        let products = stored.numbers.saturating_mul(rows.min(cols) as u64).saturating_mul(2);
        // Directions are made in double precision before they are packed.
        DrawCost { numbers: stored.numbers.saturating_mul(3), operations: stored.operations.saturating_add(products) }
    }

    /// Both, one after the other.
    pub(crate) fn and(self, other: Self) -> Self {
        DrawCost {
            numbers: self.numbers.saturating_add(other.numbers),
            operations: self.operations.saturating_add(other.operations),
        }
    }

    /// The same so many times.
    pub(crate) fn times(self, count: u64) -> Self {
        DrawCost { numbers: self.numbers.saturating_mul(count), operations: self.operations.saturating_mul(count) }
    }

    /// Whether it is not more than another in anything.
    pub(crate) fn is_within(&self, limit: &Self) -> bool {
        self.numbers <= limit.numbers && self.operations <= limit.operations
    }

    /// Bytes of its numbers in precision `R`.
    pub fn bytes<R: Real>(&self) -> u64 {
        self.numbers.saturating_mul(size_of::<R>() as u64)
    }
}

/// A map, unless its drawing was stopped: somebody may keep it for later.
fn whole<M>(map: Result<M>) -> Result<M> {
    interrupt::check()?;
    map
}

/// A map that estimates a kernel, under the name tables show.
#[derive(Debug, Clone)]
pub struct Candidate<S = Spec> {
    /// Name for people.
    pub name: String,
    /// The map; its budget and seed are to be replaced ([`PlanSample::sized`](crate::plan::PlanSample::sized)).
    pub spec: S,
    /// The constant by which the kernel is the one the map estimates: 1 but for spherical features, whose kernel is 1 at
    /// distance 0.
    pub factor: f64,
}

impl Candidate {
    /// A map of the kernel itself.
    pub fn new(name: impl Into<String>, spec: impl Into<Spec>) -> Self {
        Candidate { name: name.into(), spec: spec.into(), factor: 1.0 }
    }
}

/// What is known of the errors `k̂(xᵢ, yⱼ) - k(xᵢ, yⱼ)` before a map is drawn.
#[derive(Debug, Clone)]
pub struct Prediction {
    /// Their means; `None` for unbiased maps.
    pub bias: Option<Array2<f64>>,
    /// Their variances.
    pub variance: Array2<f64>,
    /// Whether both are closed forms, not leading-order figures.
    pub closed_form: bool,
}

impl Prediction {
    /// `E Σ (k̂ - k)²` over all pairs.
    pub fn squared_error(&self) -> f64 {
        self.variance.sum() + self.bias.as_ref().map_or(0.0, |bias| bias.iter().map(|b| b * b).sum())
    }
}

/// A row of length 1 whose entries all differ.
pub(super) fn unit_pattern(len: usize) -> Vec<f64> {
    let row: Vec<f64> = (0..len).map(|j| libm::cos(1.0 + 2.4 * j as f64)).collect();
    let norm = row.iter().map(|v| v * v).sum::<f64>().sqrt();
    row.into_iter().map(|v| v / norm).collect()
}

/// The same in units of the length scale.
pub(super) fn scaled_pattern(spec: &Spec, len: usize) -> Vec<f64> {
    let mut row = unit_pattern(len);
    match spec.get("length_scale") {
        Some(Value::List(scales)) => {
            row.iter_mut().zip(scales).for_each(|(v, scale)| *v *= scale.number().unwrap_or(1.0));
        }
        Some(scale) => row.iter_mut().for_each(|v| *v *= scale.number().unwrap_or(1.0)),
        None => {}
    }
    row
}

/// A map that knows the description it was drawn from.
#[derive(Debug)]
struct Drawn<M: ?Sized> {
    spec: Spec,
    map: Arc<M>,
}

forward!(Drawn<M>, self => self.map, Some(&self.spec));

/// The four ways to draw any map.
///
/// Drawing a map pulls in all of its kernels. Called through functions that name their precision they are compiled once,
/// in this crate; as generic code they would be compiled again in every program that draws a map (over a minute each).
macro_rules! drawn {
    ($($name:ident: $draw:ident::<$real:ty> -> $map:ty;)*) => {
        impl Spec {
            $(#[inline(never)]
            fn $name(&self, input_dim: usize) -> Result<$map> {
                self.check_draw::<$real>(input_dim)?;
                let map = self.$draw::<$real>(input_dim)?;
                Ok(Arc::new(Drawn { spec: self.settle(input_dim)?, map }))
            })*
        }
    };
}
drawn! {
    single: draw::<f32> -> DynMap<f32>;
    double: draw::<f64> -> DynMap<f64>;
    complex_single: draw_complex::<f32> -> DynComplexMap<f32>;
    complex_double: draw_complex::<f64> -> DynComplexMap<f64>;
}

/// `single` where `R` is `f32`, `double` where it is `f64`.
fn in_precision<R: Real, S: Any, D: Any, T: Any>(
    single: impl FnOnce() -> Result<S>,
    double: impl FnOnce() -> Result<D>,
) -> Result<T> {
    let map: Box<dyn Any> =
        if TypeId::of::<R>() == TypeId::of::<f32>() { Box::new(single()?) } else { Box::new(double()?) };
    Ok(*map.downcast().expect("there are two precisions"))
}

/// Lists the kinds of maps: a variant, a conversion and one arm of every method for each.
macro_rules! specs {
    ($($(#[$doc:meta])* $variant:ident($parameters:ident),)*) => {
        /// Any map of the library, as stored in model files: `map` names the kind, the other fields are its parameters.
        ///
        /// ```
        /// use bochner::feature::{Describe, FeatureMap, Spec};
        /// let text = r#"{"map": "fourier", "n_components": 64, "length_scale": 0.5, "seed": 7}"#;
        /// let spec: Spec = serde_json::from_str(text).unwrap();
        /// let map = spec.build::<f32>(3)?;
        /// assert_eq!((map.input_dim(), map.output_dim()), (3, 64));
        /// # Ok::<(), bochner::Error>(())
        /// ```
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "map", rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum Spec {
            $($(#[$doc])* $variant(super::$parameters),)*
        }

        macro_rules! each {
            ($self:expr, $spec:ident => $value:expr) => {
                match $self {
                    $(Spec::$variant($spec) => $value,)*
                }
            };
        }

        impl Spec {
            /// All kinds of maps, with the names of the kernels they estimate: the first of several is the one to take.
            pub const KINDS: &'static [(Entry, &'static [&'static str])] =
                &[$((super::$parameters::ENTRY, super::$parameters::KERNELS),)*];

            /// Parameters that centred rows may need besides the defaults: even functions, and polynomials without lower degrees,
            /// learn no slope from them.
            pub fn lower_degrees(&self) -> &'static [(&'static str, Value)] {
                match self {
                    $(Spec::$variant(_) => super::$parameters::LOWER_DEGREES,)*
                }
            }

            /// Every map of the library that estimates `kernel` on rows like `rows`: spherical features join the polynomial
            /// sketches where all rows have length 1.
            ///
            /// # Errors
            /// A polynomial of degree 0, which is the same for all rows.
            pub fn candidates(kernel: &AnyKernel, rows: ArrayView2<'_, f64>) -> Result<Vec<Candidate>> {
                let mut all = Vec::new();
                $(all.extend(super::$parameters::candidates(kernel, rows)?);)*
                Ok(all)
            }

            /// The same map with another budget of columns and other draws.
            pub fn redrawn(&self, n_components: usize, seed: u64) -> Spec {
                match self {
                    $(Spec::$variant(spec) => Spec::$variant(super::$parameters { n_components, seed, ..spec.clone() }),)*
                }
            }

            /// What the catalogue says of this kind of map.
            pub fn entry(&self) -> &'static Entry {
                match self {
                    $(Spec::$variant(_) => &const { super::$parameters::ENTRY },)*
                }
            }
        }

        $(impl From<super::$parameters> for Spec {
            fn from(spec: super::$parameters) -> Self {
                Spec::$variant(spec)
            }
        })*
    };
}

maps!(specs);

impl Describe for Spec {
    fn resolve(&self, sample: ArrayView2<'_, f64>) -> Result<Self> {
        // What data decide may take time that grows with the columns.
        self.check_draw::<f32>(sample.ncols())?;
        Ok(each!(self, spec => spec.resolve(sample)?.into()))
    }
    fn settle(&self, input_dim: usize) -> Result<Self> {
        Ok(each!(self, spec => spec.settle(input_dim)?.into()))
    }
    fn draw<R: Real>(&self, input_dim: usize) -> Result<DynMap<R>> {
        each!(self, spec => spec.draw(input_dim))
    }
    fn draw_complex<R: Real>(&self, input_dim: usize) -> Result<DynComplexMap<R>> {
        each!(self, spec => spec.draw_complex(input_dim))
    }
    fn probe(&self, input_dim: usize) -> Vec<f64> {
        each!(self, spec => spec.probe(input_dim))
    }
    fn draw_cost(&self, input_dim: usize) -> DrawCost {
        each!(self, spec => spec.draw_cost(input_dim))
    }
    fn kernel(&self) -> Result<Arc<dyn Kernel>> {
        each!(self, spec => spec.kernel())
    }
    fn variance(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        each!(self, spec => spec.variance(x, y))
    }
    fn variance_iid(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        each!(self, spec => spec.variance_iid(x, y))
    }
    fn prediction(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Prediction> {
        each!(self, spec => spec.prediction(x, y))
    }
    fn candidates(kernel: &AnyKernel, rows: ArrayView2<'_, f64>) -> Result<Vec<Candidate>> {
        Spec::candidates(kernel, rows)
    }
}

impl Spec {
    /// Refuses the first parameter that is outside its domain.
    ///
    /// # Errors
    /// [`Error::Parameter`].
    pub fn check(&self) -> Result<()> {
        each!(self, spec => spec.check_parameters())
    }

    /// Refuses a draw that no memory or nobody's time would be enough for.
    fn check_draw<R: Real>(&self, input_dim: usize) -> Result<()> {
        let columns = self.n_components();
        if columns > MOST_FEATURES {
            self.entry().parameter("n_components")?.check(&columns.into())?;
        }
        let needed = self.draw_cost(input_dim).bytes::<R>();
        let what = format!("the draw of {} with {} columns", self.entry().title, count(columns));
        need(what, needed, |free| {
            let fit = u128::from(free) * columns as u128 / u128::from(needed.max(1));
            format!("{} columns would fit", count(fit as usize))
        })
    }

    /// The budget of columns.
    pub fn n_components(&self) -> usize {
        each!(self, spec => spec.n_components)
    }

    /// The kind of map of this name, with all its defaults.
    ///
    /// # Errors
    /// No such kind, with all there are.
    ///
    /// ```
    /// use bochner::feature::Spec;
    /// let spec = Spec::named("fourier")?.with("kernel", "matern".into())?.with("nu", 2.5.into())?;
    /// assert_eq!(spec.in_words(), "Fourier features (Matern kernel, nu 2.5)");
    /// assert!(Spec::named("wavelet").unwrap_err().to_string().contains("fourier, polynomial, positive"));
    /// # Ok::<(), bochner::Error>(())
    /// ```
    pub fn named(name: &str) -> Result<Spec> {
        let entry = Entry::named(Self::KINDS.iter().map(|(entry, _)| entry), "map", name)?;
        read(serde_json::Map::from_iter([("map".to_owned(), entry.name.into())]))
    }

    /// The map to take for a kernel of this name.
    ///
    /// # Errors
    /// No such kernel, with all there are.
    pub fn for_kernel(name: &str) -> Result<Spec> {
        let name = AnyKernel::entry_named(name)?.name;
        let found = Self::KINDS.iter().find(|(_, kernels)| kernels.contains(&name));
        let (entry, _) = found.ok_or_else(|| Error::Unsupported {
            what: "kernel",
            reason: format!("no map estimates the kernel {name}"),
        })?;
        let spec = Self::named(entry.name)?;
        match entry.parameter("kernel") {
            Ok(kernel) if kernel.domain.words().contains(&name) => spec.with("kernel", Value::Word(name.into())),
            // A mean over subsets of columns is a parameter of the map, not a kernel of its own.
            Ok(_) => {
                let order = AnyKernel::entry_named(name)?.parameter("order")?;
                spec.with("order", order.default())
            }
            Err(_) => Ok(spec),
        }
    }

    /// The same map with another value of a parameter.
    ///
    /// # Errors
    /// No such parameter, or a value outside its domain: told with what there is.
    pub fn with(&self, name: &str, value: Value) -> Result<Spec> {
        if name != "seed" {
            self.entry().parameter(name)?.check(&value)?;
        }
        let mut parts = self.parts();
        parts.insert(name.to_owned(), serde_json::to_value(value).unwrap_or_default());
        read(parts)
    }

    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<Value> {
        self.parts().get(name).map(Value::of)
    }

    fn parts(&self) -> serde_json::Map<String, serde_json::Value> {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::Object(parts)) => parts,
            _ => serde_json::Map::new(),
        }
    }

    /// `Fourier features (Matern kernel, nu 2.5, orthogonal)`: the kind of map, every parameter that its kernel depends on
    /// but for the length scale, and how it is drawn where that is not the default.
    pub fn in_words(&self) -> String {
        let parameters = self.entry().parameters.iter().filter(|p| p.applies(|name| self.get(name)));
        let said = parameters.filter_map(|parameter| {
            let value = self.get(parameter.name)?;
            let name = parameter.name.replace('_', " ");
            match (parameter.purpose, &value) {
                _ if parameter.name == "length_scale" => None,
                (Purpose::Kernel, Value::Word(word)) if parameter.name == "kernel" => {
                    Some(format!("{} kernel", AnyKernel::entry_named(word).map_or(word.as_str(), |entry| entry.title)))
                }
                (_, Value::None | Value::List(_) | Value::Parts(_)) => None,
                (Purpose::Kernel, value) => Some(format!("{name} {}", value.short())),
                (Purpose::Draw, Value::Word(word)) if value != parameter.default() => Some(word.replace('_', " ")),
                _ => None,
            }
        });
        let said: Vec<String> = said.collect();
        let title = self.entry().title;
        if said.is_empty() { title.to_owned() } else { format!("{title} ({})", said.join(", ")) }
    }
}

fn read(parts: serde_json::Map<String, serde_json::Value>) -> Result<Spec> {
    serde_json::from_value(serde_json::Value::Object(parts))
        .map_err(|error| Error::Format { what: "description of a map", detail: error.to_string() })
}
