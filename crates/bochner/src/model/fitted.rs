use super::Calibration;
use super::ridge::largest;
use super::{KINDS, ModelEntry, Sums};
use crate::error::{Result, check_dim};
use crate::feature::{Description, DrawCost};
use crate::persist::{Header, Label, Stored, malformed};
use crate::rows::MOST_CLASSES;
use crate::scalar::Real;
use ndarray::{Array2, Array3, ArrayView2};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::Any;
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

/// A fitted model of a kind that files hold, whatever its precision: rows and answers are doubles.
///
/// Implemented by all fitted models of the library; [`save`](Self::save) writes them to files, [`Model`] is any of them.
pub trait Fitted: Any + Debug + Send + Sync {
    /// The name of its kind in files.
    fn kind(&self) -> &'static str;

    /// What it is made of besides what it has learned; `None` with a map or a kernel of one's own.
    fn description(&self) -> Option<Description>;

    /// `f32` or `f64`.
    fn precision(&self) -> &'static str {
        "f64"
    }

    /// Length of an input row, and numbers per row that [`values`](Self::values) has.
    fn dims(&self) -> (usize, usize);

    /// Number of classes, of a classifier.
    fn class_count(&self) -> Option<usize> {
        None
    }

    /// Targets; for a classifier one value per class, the first of the largest of which wins.
    ///
    /// # Errors
    /// Shapes that do not fit, and NaN or infinities in `rows`.
    fn values(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>>;

    /// Variances of the function behind the targets, and the variance of the noise of each.
    ///
    /// # Errors
    /// As [`values`](Self::values), and for kinds that have none.
    fn variances(&self, _rows: ArrayView2<'_, f64>) -> Result<(Array2<f64>, Vec<f64>)> {
        Err(ModelEntry::named(self.kind())?.without_deviations())
    }

    /// Derivatives of the values by the inputs: axes are rows, values, inputs. For classifiers whose values are probabilities,
    /// those of the means of the latent processes.
    ///
    /// # Errors
    /// As [`values`](Self::values), for maps without derivatives, and for kinds that have no map.
    fn gradients(&self, _rows: ArrayView2<'_, f64>) -> Result<Array3<f64>> {
        let title = ModelEntry::named(self.kind())?.entry.title;
        let reason = format!("{title} has none; models on features have");
        Err(crate::Error::Unsupported { what: "gradients", reason })
    }

    /// Whether [`values`](Self::values) are probabilities.
    fn is_probabilistic(&self) -> bool {
        false
    }

    /// Sentences about what was learned and how.
    fn sentences(&self) -> Vec<String>;

    /// What a file keeps.
    ///
    /// # Errors
    /// A map or a kernel without a description.
    fn to_stored(&self) -> Result<Stored>;

    /// The bytes of a file.
    ///
    /// # Errors
    /// A map or a kernel of one's own, which has no description to make it from again.
    fn to_bytes(&self) -> Result<Vec<u8>> {
        named(self.to_stored()?, self.class_count()).to_bytes()
    }

    /// Writes a file, whole or not at all; [`load`] reads it. Classes have their numbers for names: [`Model::with_classes`]
    /// gives others.
    ///
    /// # Errors
    /// As [`to_bytes`](Self::to_bytes), and what the operating system says.
    fn save(&self, path: impl AsRef<Path>) -> Result<()>
    where
        Self: Sized,
    {
        named(self.to_stored()?, self.class_count()).save(path)
    }
}

/// With numbers for the names of classes.
fn named(mut stored: Stored, classes: Option<usize>) -> Stored {
    stored.header.classes = classes.map(numbers);
    stored
}

fn numbers(classes: usize) -> Vec<Label> {
    (0..classes as i64).map(Label::Whole).collect()
}

/// Any fitted model, whatever its kind and precision.
///
/// ```
/// use bochner::feature::{Describe, FourierSpec};
/// use bochner::model::{Fit, Fitted, Model, Ridge, RidgeModel};
/// use ndarray::Array2;
///
/// let rows = Array2::from_shape_fn((50, 2), |(i, j)| (i * (j + 2)) as f64 * 0.1);
/// let targets = rows.map(|v| v.sin());
/// let map = FourierSpec { n_components: 32, ..Default::default() }.build::<f64>(2)?;
/// let fitted = Ridge::new(map, 0.1)?.fit(rows.view(), targets.view())?;
/// let model = Model::from_bytes(&fitted.to_bytes()?)?;
/// assert_eq!(model.predict(rows.view())?, Model::from(fitted).predict(rows.view())?);
/// assert_eq!(model.description().unwrap().in_words(), "Fourier features (Gaussian kernel, orthogonal)");
/// assert!(model.deviations(rows.view()).unwrap_err().to_string().contains("Gaussian process regression"));
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Model {
    header: Header,
    fitted: Arc<dyn Fitted>,
    /// What it was solved from, where that was kept.
    sums: Option<Arc<Stored>>,
}

impl<F: Fitted> From<F> for Model {
    fn from(fitted: F) -> Self {
        let mut header = Header::new(fitted.kind(), fitted.precision(), fitted.dims().0);
        header.map = fitted.description();
        header.classes = fitted.class_count().map(numbers);
        Model { header, fitted: Arc::new(fitted), sums: None }
    }
}

/// Reads a model of any kind and precision from a file.
///
/// # Errors
/// What the operating system says; files that are damaged, of another program or a later version; and those whose map this
/// version would draw differently, or whose draw would cost more than [`DrawCost::LIMIT`]: [`Model::load_within`] allows more.
pub fn load(path: impl AsRef<Path>) -> Result<Model> {
    Model::load_within(path, DrawCost::LIMIT)
}

/// The place of what a model was solved from.
const SUMS: &str = "sums";
/// The place of what doors do to rows before a model sees them.
const PREPROCESSING: &str = "preprocessing";

/// Refuses answers that are no numbers: coefficients and features may be finite, and their products not.
fn finite(what: &'static str, answers: Array2<f64>) -> Result<Array2<f64>> {
    crate::rows::check_finite(what, answers.view(), 0)?;
    Ok(answers)
}

impl Model {
    /// Reads a model of any kind and precision from a file whose map costs at most `limit` to draw.
    ///
    /// ```no_run
    /// use bochner::{Model, feature::DrawCost};
    /// let limit = DrawCost { numbers: 1 << 34, operations: u64::MAX };
    /// let model = Model::load_within("wide.bochner", limit)?;
    /// # Ok::<(), bochner::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`load`].
    pub fn load_within(path: impl AsRef<Path>, limit: DrawCost) -> Result<Self> {
        Self::from_stored(Stored::load(path)?.within(limit))
    }

    /// The model whose [`to_bytes`](Self::to_bytes) these are.
    ///
    /// # Errors
    /// As [`load`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::from_stored(Stored::from_bytes(bytes)?)
    }

    fn from_stored(mut stored: Stored) -> Result<Self> {
        let kind = ModelEntry::named(&stored.header.kind)?;
        stored.check_finite()?;
        let sums = stored.take_contained(SUMS)?.map(Arc::new);
        let fitted = (kind.load)(&stored)?;
        check_dim("length of a row", stored.header.input_dim, fitted.dims().0)?;
        let mut header = stored.header;
        match (&header.classes, fitted.class_count()) {
            (None, Some(classes)) if classes > MOST_CLASSES => {
                return Err(malformed(format!("has {classes} classes, expected at most {MOST_CLASSES}")));
            }
            (None, classes) => header.classes = classes.map(numbers),
            (Some(names), Some(classes)) => check_names(header.kind.as_str(), classes, names)?,
            (Some(_), None) => return Err(malformed("names classes, and is no classifier")),
        }
        Ok(Model { header, fitted, sums })
    }

    /// The same model with names for its classes, in the order of their numbers.
    ///
    /// # Errors
    /// A model that is no classifier, or another number of names than of classes.
    pub fn with_classes(mut self, names: Vec<Label>) -> Result<Self> {
        check_names(&self.header.kind, self.fitted.class_count().unwrap_or(0), &names)?;
        self.header.classes = Some(names);
        Ok(self)
    }

    fn to_stored(&self) -> Result<Stored> {
        let mut stored = self.fitted.to_stored()?;
        stored.header.classes.clone_from(&self.header.classes);
        stored.header.preprocessing.clone_from(&self.header.preprocessing);
        let attached = self.header.extra.as_object().into_iter().flatten();
        // What the kind itself needs is as the model has it now.
        let attached: Vec<_> = attached.filter(|(name, _)| stored.header.extra.get(*name).is_none()).collect();
        attached.into_iter().try_for_each(|(name, value)| stored.header.insert(name, value))?;
        match &self.sums {
            Some(sums) => stored.containing(SUMS, sums),
            None => Ok(stored),
        }
    }

    /// With the sums it was solved from, which its file keeps: rows can then be added, taken back and weighed anew
    /// ([`FitRequest::sums`](super::FitRequest::sums) goes on from [`sums`](Self::sums)). Half a square of the number of features,
    /// in doubles.
    ///
    /// # Errors
    /// None known.
    pub fn with_sums<R: Real>(mut self, sums: &Sums<R>) -> Result<Self> {
        self.sums = Some(Arc::new(Stored::from_bytes(&sums.to_bytes()?)?));
        Ok(self)
    }

    /// The sums it was solved from, where they were kept.
    pub fn sums(&self) -> Option<&Stored> {
        self.sums.as_deref()
    }

    /// The bytes of its file.
    ///
    /// # Errors
    /// A map or a kernel of one's own, which has no description to make it from again.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.to_stored()?.to_bytes()
    }

    /// Writes its file, whole or not at all.
    ///
    /// # Errors
    /// As [`to_bytes`](Self::to_bytes), and what the operating system says.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.to_stored()?.save(path)
    }

    /// What its file says of it; it can be written as JSON.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What every door knows of its kind.
    pub fn kind(&self) -> &'static ModelEntry {
        let found = KINDS.iter().find(|kind| kind.entry.name == self.fitted.kind());
        found.expect("every kind of model is listed")
    }

    /// The map, the features or the kernel; `None` for those of one's own.
    pub fn description(&self) -> Option<&Description> {
        self.header.map.as_ref()
    }

    /// `f32` or `f64`.
    pub fn precision(&self) -> &'static str {
        self.fitted.precision()
    }

    /// Length of an input row.
    pub fn input_dim(&self) -> usize {
        self.header.input_dim
    }

    /// Numbers per row that [`predict`](Self::predict) has: targets or classes.
    pub fn output_dim(&self) -> usize {
        self.fitted.dims().1
    }

    /// Names of the classes in the order of their numbers, of a classifier.
    pub fn classes(&self) -> Option<&[Label]> {
        self.header.classes.as_deref()
    }

    /// Targets; for a classifier one value per class, the first of the largest of which wins.
    ///
    /// # Errors
    /// Shapes that do not fit, NaN or infinities in `rows`, and predictions that overflow.
    pub fn predict(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        finite("predictions", self.fitted.values(rows)?)
    }

    /// The number of the class of every row.
    ///
    /// # Errors
    /// As [`predict`](Self::predict), and for models that are no classifiers.
    pub fn predict_classes(&self, rows: ArrayView2<'_, f64>) -> Result<Vec<usize>> {
        if self.fitted.class_count().is_none() {
            let reason = format!("{} predicts numbers: predict has them", self.kind().entry.title);
            return Err(crate::Error::Unsupported { what: "classes", reason });
        }
        Ok(largest(&self.predict(rows)?))
    }

    /// Standard deviations of observations, noise included, one column per target.
    ///
    /// # Errors
    /// As [`predict`](Self::predict), and for models that have none: which ones have is told.
    pub fn deviations(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        let (mut variances, noise) = self.fitted.variances(rows)?;
        for (mut column, noise) in variances.columns_mut().into_iter().zip(noise) {
            column.mapv_inplace(|v| (v.max(0.0) + noise).sqrt());
        }
        finite("deviations", variances)
    }

    /// Standard deviations of the function behind the targets, without noise.
    ///
    /// # Errors
    /// As [`deviations`](Self::deviations).
    pub fn function_deviations(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        finite("deviations", self.fitted.variances(rows)?.0.mapv(|v| v.max(0.0).sqrt()))
    }

    /// Derivatives of [`predict`](Self::predict) by the inputs: axes are rows, targets or classes, inputs. For classifiers whose
    /// values are probabilities, those of the means of the latent processes.
    ///
    /// ```
    /// use bochner::feature::{Describe, FourierSpec};
    /// use bochner::model::{Fit, Model, Ridge};
    /// use ndarray::Array2;
    /// let rows = Array2::from_shape_fn((80, 2), |(i, j)| ((i * (j + 2)) as f64 * 0.7).sin());
    /// let targets = rows.column(0).insert_axis(ndarray::Axis(1)).mapv(f64::exp);
    /// let map = FourierSpec { n_components: 64, ..Default::default() }.build::<f64>(2)?;
    /// let model = Model::from(Ridge::new(map, 1e-3)?.fit(rows.view(), targets.view())?);
    /// assert_eq!(model.gradient(rows.view())?.dim(), (80, 1, 2));
    /// let importances = model.importances(rows.view())?;
    /// assert!(importances[0] > 50.0 * importances[1]); // the second column has no part in the targets
    /// # Ok::<(), bochner::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`predict`](Self::predict); for models without a map, and for maps that are steps.
    pub fn gradient(&self, rows: ArrayView2<'_, f64>) -> Result<Array3<f64>> {
        let found = self.fitted.gradients(rows)?;
        match found.indexed_iter().find(|(_, value)| !value.is_finite()) {
            Some(((row, _, column), _)) => Err(crate::Error::NonFinite { what: "gradients", row, column }),
            None => Ok(found),
        }
    }

    /// How much predictions change with each input: squared derivatives, summed over targets or classes, in the mean over rows.
    ///
    /// # Errors
    /// As [`gradient`](Self::gradient), and no rows.
    pub fn importances(&self, rows: ArrayView2<'_, f64>) -> Result<Vec<f64>> {
        crate::error::check_count("number of rows", rows.nrows())?;
        let mut sums = vec![0.0; rows.ncols()];
        // In pieces: nobody needs the gradients of all rows.
        for piece in rows.axis_chunks_iter(ndarray::Axis(0), 4096) {
            for gradient in self.gradient(piece)?.rows() {
                sums.iter_mut().zip(gradient).for_each(|(sum, g)| *sum += g * g);
            }
        }
        Ok(sums.into_iter().map(|sum| sum / rows.nrows() as f64).collect())
    }

    /// Probabilities of the classes, one column each; rows add up to 1. Of classifiers without any, those of the
    /// [`Calibration`] that is attached to them.
    ///
    /// # Errors
    /// As [`predict`](Self::predict), and for models that have none: which ones have is told.
    pub fn probabilities(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        if let (false, Some(calibration)) = (self.fitted.is_probabilistic(), self.calibration()?) {
            return finite("probabilities", calibration.probabilities(self.predict(rows)?.view())?);
        }
        if !self.fitted.is_probabilistic() {
            return Err(self.kind().without_probabilities());
        }
        self.predict(rows)
    }

    /// What makes probabilities of the values of its classes, where it was fitted on held-out rows.
    ///
    /// # Errors
    /// A file in which it cannot be read.
    pub fn calibration(&self) -> Result<Option<Calibration>> {
        self.attachment(Calibration::NAME)
    }

    /// Fits what makes probabilities of the values of the classes, on rows that the classifier was not fitted to;
    /// [`probabilities`](Self::probabilities) has them from then on, and files keep it.
    ///
    /// # Errors
    /// As [`predict`](Self::predict); models that are no classifiers or have probabilities; labels beyond the classes.
    pub fn calibrate(&mut self, rows: ArrayView2<'_, f64>, labels: &[usize], shifted: bool) -> Result<()> {
        if self.fitted.class_count().is_none() || self.fitted.is_probabilistic() {
            let reason =
                format!("{} has nothing to be calibrated: only values of classes have", self.kind().entry.title);
            return Err(crate::Error::Unsupported { what: "calibration", reason });
        }
        let calibration = Calibration::fit(self.predict(rows)?.view(), labels, shifted)?;
        self.attach(Calibration::NAME, &calibration)
    }

    /// Sentences about what was learned and how.
    pub fn in_words(&self) -> Vec<String> {
        self.fitted.sentences()
    }

    /// The model as what it is, such as `RidgeModel<DynMap<f64>>`, with all that only its own kind has.
    pub fn downcast_ref<F: Fitted>(&self) -> Option<&F> {
        (&*self.fitted as &dyn Any).downcast_ref()
    }

    /// Keeps something in the file, under a name of its own, that [`attachment`](Self::attachment) gives back; what was there
    /// is replaced. Names that the kind of model needs itself are not for others. `preprocessing` is where all doors look for
    /// what is done to the columns of a table before they are rows.
    ///
    /// # Errors
    /// What cannot be written as JSON.
    pub fn attach<T: Serialize>(&mut self, name: &str, value: &T) -> Result<()> {
        if name == PREPROCESSING {
            self.header.preprocessing = serde_json::to_value(value).map_err(|e| malformed(e.to_string()))?;
            return Ok(());
        }
        self.header.insert(name, value)
    }

    /// What was attached under this name; `None` where nothing was.
    ///
    /// # Errors
    /// Something of another type.
    pub fn attachment<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        let found = if name == PREPROCESSING { Some(&self.header.preprocessing) } else { self.header.extra.get(name) };
        match found {
            None | Some(serde_json::Value::Null) => Ok(None),
            Some(value) => {
                T::deserialize(value).map(Some).map_err(|e| malformed(format!("its {name} cannot be read: {e}")))
            }
        }
    }
}

fn check_names(kind: &str, classes: usize, names: &[Label]) -> Result<()> {
    // Classes without rows at the end are not known to a kernel machine.
    let expected = if kind == super::kernel_svm::KIND { classes.max(names.len()) } else { classes };
    check_dim("number of names of classes", expected, names.len())
}
