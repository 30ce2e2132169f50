use super::{Fingerprint, Label, WholeFile};
use crate::error::{Error, Result};
use crate::feature::{Describe, Description, DrawCost, DynComplexMap, DynMap, FeatureMap, OperatorFeatures, Spec};
use crate::scalar::Real;
use ndarray::{Array1, Array2};
use safetensors::tensor::{Metadata, TensorInfo};
use safetensors::{Dtype, SafeTensors};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::path::Path;

/// Version of the header's layout; files of a later version are refused. Version 1 had no fingerprint.
const FORMAT: u32 = 2;
/// The metadata key.
const KEY: &str = "bochner";
/// What stands in for the hash while it is computed.
const BLANK: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// What a file says about its arrays. What doors attach to a model and what its kind needs is written with it
/// ([`Model::attach`](crate::model::Model::attach)).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// What the arrays are: `ridge`, `ridge_classifier`, `gram`, ….
    pub kind: String,
    /// Precision of the model: `f32` or `f64`.
    pub dtype: String,
    /// Length of an input row.
    pub input_dim: usize,
    /// Description of the map or the kernel, from which it is made again.
    pub map: Option<Description>,
    /// What is done to rows before the map.
    #[serde(default)]
    pub(crate) preprocessing: Value,
    /// Names of the classes in the order of their numbers.
    #[serde(default)]
    pub classes: Option<Vec<Label>>,
    /// What else the kind needs, and what doors attach.
    #[serde(default)]
    pub(crate) extra: Value,
    /// The version of the library that wrote the file; files of 0.1.0 do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// By what the draw of the map is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Fingerprint>,
}

impl Header {
    /// What every file says, of `kind` and in precision `dtype`.
    pub fn new(kind: &str, dtype: &str, input_dim: usize) -> Self {
        Header {
            kind: kind.to_owned(),
            dtype: dtype.to_owned(),
            input_dim,
            map: None,
            preprocessing: Value::Null,
            classes: None,
            extra: Value::Object(serde_json::Map::new()),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            fingerprint: None,
        }
    }

    /// The header of a model on a map, with its description and fingerprint.
    pub(crate) fn of_map<M: FeatureMap>(kind: &str, map: &M) -> Result<Self> {
        let description = map.description().map(|spec| Description::Map(spec.clone()));
        Self::described(kind, map, description.ok_or_else(|| undescribed("map", "Describe::build"))?)
    }

    /// The same of a map that is described in another way.
    pub(crate) fn described<M: FeatureMap>(kind: &str, map: &M, description: Description) -> Result<Self> {
        let input_dim = map.input_dim();
        let fingerprint = Some(Fingerprint::of(map, &description.spec()?.probe(input_dim))?);
        Ok(Header { map: Some(description), fingerprint, ..Self::new(kind, M::Real::NAME, input_dim) })
    }

    /// The header of a model with an exact kernel, in double precision.
    pub(crate) fn of_kernel(kind: &str, input_dim: usize, kernel: Option<impl Into<Description>>) -> Result<Self> {
        let kernel = kernel.ok_or_else(|| undescribed("kernel", "AnyKernel"))?;
        Ok(Header { map: Some(kernel.into()), ..Self::new(kind, "f64", input_dim) })
    }

    /// Writes what the kind needs, or what a door attaches.
    pub(crate) fn insert(&mut self, name: &str, value: &impl Serialize) -> Result<()> {
        let value = serde_json::to_value(value).map_err(|e| malformed(format!("`{name}` cannot be written: {e}")))?;
        if !self.extra.is_object() {
            self.extra = Value::Object(serde_json::Map::new());
        }
        self.extra[name] = value;
        Ok(())
    }

    /// What the kind needs.
    pub(crate) fn part<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        T::deserialize(self.extra.get(name).unwrap_or(&Value::Null))
            .map_err(|e| malformed(format!("`{name}` cannot be read: {e}")))
    }

    /// The description.
    pub(crate) fn description(&self) -> Result<&Description> {
        self.map.as_ref().ok_or_else(|| malformed("the description of its map or kernel is missing"))
    }
}

fn undescribed(what: &'static str, from: &str) -> Error {
    let reason = format!(
        "a file holds the description of its {what}, and this one has none; those of the library have one ({from})"
    );
    Error::Unsupported { what, reason }
}

#[derive(Serialize, Deserialize)]
struct Envelope {
    format: u32,
    sha256: String,
    header: Value,
}

/// An array of a file: row-major values and their shape.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    shape: Vec<usize>,
    values: Values,
}

/// Numbers of an array.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Single precision.
    F32(Vec<f32>),
    /// Double precision.
    F64(Vec<f64>),
}

impl Tensor {
    /// Values with a shape.
    ///
    /// # Errors
    /// A shape that does not hold as many values.
    pub fn new(shape: Vec<usize>, values: Values) -> Result<Self> {
        let expected = shape.iter().try_fold(1usize, |a, &b| a.checked_mul(b)).unwrap_or(usize::MAX);
        let found = match &values {
            Values::F32(v) => v.len(),
            Values::F64(v) => v.len(),
        };
        crate::error::check_dim("number of values of an array", expected, found)?;
        Ok(Tensor { shape, values })
    }

    /// Real numbers in their own precision.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of<R: Real>(shape: Vec<usize>, values: impl IntoIterator<Item = R>) -> Result<Self> {
        let values = values.into_iter().map(|v| Real::to_f64(v));
        let values = match R::NAME {
            "f32" => Values::F32(values.map(|v| v as f32).collect()),
            _ => Values::F64(values.collect()),
        };
        Tensor::new(shape, values)
    }

    /// The shape.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The values, row-major.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// The values in precision `R`, which must be the stored one.
    fn reals<R: Real>(&self, name: &str) -> Result<Vec<R>> {
        match (&self.values, R::NAME) {
            (Values::F32(v), "f32") => Ok(v.iter().map(|&v| R::from_f64(v.into())).collect()),
            (Values::F64(v), "f64") => Ok(v.iter().map(|&v| R::from_f64(v)).collect()),
            (_, wanted) => Err(malformed(format!("array `{name}` is not of type {wanted}"))),
        }
    }
}

/// A model file in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// What the arrays are.
    pub header: Header,
    tensors: BTreeMap<String, Tensor>,
    /// What the draw of its map may cost.
    limit: DrawCost,
}

/// A map that a file can be read with.
pub(crate) trait Drawable: FeatureMap + Sized {
    fn drawn(spec: &Spec, input_dim: usize) -> Result<Self>;
}

macro_rules! drawable {
    ($($map:ty => $build:ident),*) => {$(
        impl Drawable for $map {
            fn drawn(spec: &Spec, input_dim: usize) -> Result<Self> {
                spec.$build(input_dim)
            }
        }
    )*};
}
drawable!(
    DynMap<f32> => build, DynMap<f64> => build, DynComplexMap<f32> => build_complex, DynComplexMap<f64> => build_complex
);

pub(crate) fn malformed(detail: impl Into<String>) -> Error {
    Error::Format { what: "model file", detail: detail.into() }
}

impl Stored {
    /// A header without arrays.
    pub fn new(header: Header) -> Self {
        Stored { header, tensors: BTreeMap::new(), limit: DrawCost::LIMIT }
    }

    /// With another limit of what the draw of its map may cost.
    pub(crate) fn within(self, limit: DrawCost) -> Self {
        Stored { limit, ..self }
    }

    /// Refuses arrays with a NaN or an infinity: nobody has learned those.
    pub(crate) fn check_finite(&self) -> Result<()> {
        let is_finite = |tensor: &Tensor| match &tensor.values {
            Values::F32(values) => values.iter().all(|v| v.is_finite()),
            Values::F64(values) => values.iter().all(|v| v.is_finite()),
        };
        match self.tensors.iter().find(|(_, tensor)| !is_finite(tensor)) {
            Some((name, _)) => Err(malformed(format!("array `{name}` has a NaN or an infinity"))),
            None => Ok(()),
        }
    }

    /// Adds an array, or replaces the one of that name.
    pub fn with(mut self, name: &str, tensor: Tensor) -> Self {
        self.tensors.insert(name.to_owned(), tensor);
        self
    }

    /// With another file inside: its arrays with a prefix to their names, and what it says among what this one keeps.
    pub(crate) fn containing(mut self, name: &str, inner: &Stored) -> Result<Self> {
        self.header.insert(name, &inner.header)?;
        let arrays = inner.tensors.iter().map(|(own, tensor)| (format!("{name}.{own}"), tensor.clone()));
        self.tensors.extend(arrays);
        Ok(self)
    }

    /// Takes out what [`containing`](Self::containing) has put in.
    pub(crate) fn take_contained(&mut self, name: &str) -> Result<Option<Stored>> {
        let Some(header) = self.header.extra.as_object_mut().and_then(|extra| extra.remove(name)) else {
            return Ok(None);
        };
        let header = serde_json::from_value(header).map_err(|e| malformed(format!("`{name}` cannot be read: {e}")))?;
        let prefix = format!("{name}.");
        let (inside, outside) =
            std::mem::take(&mut self.tensors).into_iter().partition(|(own, _)| own.starts_with(&prefix));
        let inside: BTreeMap<String, Tensor> = inside;
        self.tensors = outside;
        let tensors = inside.into_iter().map(|(own, tensor)| (own[prefix.len()..].to_owned(), tensor)).collect();
        Ok(Some(Stored { tensors, ..Stored::new(header) }))
    }

    /// The array called `name`.
    ///
    /// # Errors
    /// No such array.
    pub fn tensor(&self, name: &str) -> Result<&Tensor> {
        self.tensors.get(name).ok_or_else(|| malformed(format!("array `{name}` is missing")))
    }

    /// The array called `name` as a matrix.
    ///
    /// # Errors
    /// No such array, another number of dimensions, or another type.
    pub fn matrix<R: Real>(&self, name: &str) -> Result<Array2<R>> {
        let tensor = self.tensor(name)?;
        let &[rows, cols] = tensor.shape() else {
            return Err(malformed(format!("array `{name}` has {} dimensions instead of 2", tensor.shape().len())));
        };
        Array2::from_shape_vec((rows, cols), tensor.reals(name)?).map_err(|e| malformed(e.to_string()))
    }

    /// The array called `name` as a vector.
    ///
    /// # Errors
    /// As [`matrix`](Self::matrix).
    pub fn vector<R: Real>(&self, name: &str) -> Result<Array1<R>> {
        let tensor = self.tensor(name)?;
        if tensor.shape().len() != 1 {
            return Err(malformed(format!("array `{name}` has {} dimensions instead of 1", tensor.shape().len())));
        }
        Ok(tensor.reals(name)?.into())
    }

    /// Adds a note: what a checkpoint has to remember.
    ///
    /// # Errors
    /// A note that cannot be written as JSON.
    pub fn with_note<T: Serialize>(mut self, note: &T) -> Result<Self> {
        self.header.insert("note", note)?;
        Ok(self)
    }

    /// The note.
    ///
    /// # Errors
    /// One that is not of this type.
    pub fn note<T: DeserializeOwned>(&self) -> Result<T> {
        self.header.part("note")
    }

    /// Refuses parameters outside of their domains, features that the coefficients cannot belong to, and a draw that costs
    /// more than it may: numbers in the header decide how much memory and time a draw takes.
    fn check_features(&self, spec: &Spec) -> Result<()> {
        spec.check()?;
        let input_dim = self.header.input_dim;
        crate::error::check_count("length of a row", input_dim)?;
        let cost = spec.draw_cost(input_dim).and(DrawCost::listed(input_dim));
        if !cost.is_within(&self.limit) {
            let DrawCost { numbers, operations } = cost;
            return Err(malformed(format!(
                "its map would take {numbers} numbers and {operations} operations to draw, and {} and {} are allowed; \
                 Model::load_within allows more",
                self.limit.numbers, self.limit.operations
            )));
        }
        let promised = match spec {
            // It makes no more measurements than rows have columns.
            Spec::OrthoProjection(spec) => spec.n_components.min(self.header.input_dim),
            spec => spec.n_components(),
        };
        let found = ["coefficients", "means"].iter().find_map(|name| self.tensor(name).ok()?.shape().first().copied());
        let found = found.unwrap_or(0);
        if promised > found.saturating_mul(2).saturating_add(16) {
            return Err(malformed(format!("its map has {promised} features, and there are coefficients of {found}")));
        }
        Ok(())
    }

    /// Refuses a map of another precision, and one whose draw is not the one the file was written with.
    fn check_draw<M: FeatureMap + ?Sized>(&self, map: &M, spec: &Spec) -> Result<()> {
        let Header { dtype, input_dim, version, .. } = &self.header;
        if dtype != M::Real::NAME {
            return Err(malformed(format!("holds a model of type {dtype}, not {}", M::Real::NAME)));
        }
        let Some(expected) = &self.header.fingerprint else { return Ok(()) };
        if expected.agrees::<M::Real>(&Fingerprint::of(map, &spec.probe(*input_dim))?) {
            return Ok(());
        }
        let writer = version.as_ref().map_or("another version".to_owned(), |version| format!("version {version}"));
        Err(malformed(format!(
            "written by {writer} of bochner, whose draw of this map is not the one of version {}: its coefficients belong to \
             other features; predict with {writer}, or fit again",
            env!("CARGO_PKG_VERSION")
        )))
    }

    /// The map of the file, drawn again.
    pub(crate) fn draw<M: Drawable>(&self) -> Result<M> {
        let Description::Map(spec) = self.header.description()? else {
            return Err(malformed("holds the description of a kernel, not of a map"));
        };
        self.check_features(spec)?;
        let map = M::drawn(spec, self.header.input_dim)?;
        self.check_draw(&map, spec)?;
        Ok(map)
    }

    /// The features of the operator-valued kernel of the file, drawn again.
    pub(crate) fn draw_operator<R: Real>(&self) -> Result<OperatorFeatures<R>> {
        let described = self.header.description()?.operator()?;
        let spec = described.fourier()?.into();
        self.check_features(&spec)?;
        let features = described.build(self.header.input_dim)?;
        self.check_draw(features.map(), &spec)?;
        Ok(features)
    }

    /// Refuses a file of another kind.
    ///
    /// # Errors
    /// Another kind.
    pub fn expect_kind(&self, kind: &str) -> Result<()> {
        if self.header.kind == kind {
            return Ok(());
        }
        Err(malformed(format!("holds a `{}`, not a `{kind}`", self.header.kind)))
    }

    fn arrays(&self) -> Vec<Array<'_>> {
        self.tensors
            .iter()
            .map(|(name, tensor)| match &tensor.values {
                Values::F32(v) => Array::single(name, tensor.shape.clone(), v),
                Values::F64(v) => Array::double(name, tensor.shape.clone(), move |emit| emit(v)),
            })
            .collect()
    }

    /// The bytes of the file.
    ///
    /// # Errors
    /// Names that the container cannot hold.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        bytes(&self.header, &self.arrays())
    }

    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        save(path.as_ref(), &self.header, &self.arrays())
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`Error::Format`] for everything that is not exactly what was written.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_bytes(&fs::read(path)?)
    }

    /// What a file says it is. Its arrays are neither read nor checked: to tell files from each other, not to use one.
    ///
    /// # Errors
    /// What the operating system says, and files that begin otherwise than those of bochner.
    pub fn peek(path: impl AsRef<Path>) -> Result<Header> {
        /// Longer heads than any file has.
        const LONGEST: u64 = 1 << 26;
        let mut file = fs::File::open(path)?;
        let mut length = [0; 8];
        file.read_exact(&mut length)?;
        let mut head = Vec::new();
        file.take(u64::from_le_bytes(length).min(LONGEST)).read_to_end(&mut head)?;
        let other = |_| malformed("not a container that bochner wrote");
        let head: Value = serde_json::from_slice(&head).map_err(other)?;
        let text = head["__metadata__"][KEY].as_str().unwrap_or_default();
        let envelope: Envelope = serde_json::from_str(text).map_err(other)?;
        serde_json::from_value(envelope.header).map_err(other)
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (length, metadata) =
            SafeTensors::read_metadata(bytes).map_err(|e| malformed(format!("not a safetensors container: {e}")))?;
        let text = metadata
            .metadata()
            .as_ref()
            .and_then(|m| m.get(KEY))
            .ok_or_else(|| malformed("a safetensors container that bochner did not write"))?;
        let envelope: Envelope =
            serde_json::from_str(text).map_err(|e| malformed(format!("the header cannot be read: {e}")))?;
        let found = envelope.format;
        if found == 0 {
            return Err(malformed(format!("format 0, which no version has written; this one reads 1 to {FORMAT}")));
        }
        if found > FORMAT {
            return Err(malformed(format!(
                "format {found}, written by a later version; this one reads up to {FORMAT}"
            )));
        }
        if envelope.sha256 != blanked_hash(bytes, 8 + length, &envelope.sha256)? {
            return Err(malformed("the content does not match its hash: the file is damaged"));
        }
        let header: Header = serde_json::from_value(envelope.header)
            .map_err(|e| malformed(format!("the header cannot be read: {e}")))?;
        let container = SafeTensors::deserialize(bytes).map_err(|e| malformed(e.to_string()))?;
        let mut tensors = BTreeMap::new();
        for (name, view) in container.iter() {
            let values = match view.dtype() {
                Dtype::F32 => Values::F32(view.data().as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect()),
                Dtype::F64 => Values::F64(view.data().as_chunks().0.iter().map(|&b| f64::from_le_bytes(b)).collect()),
                other => return Err(malformed(format!("array `{name}` has type {other:?}"))),
            };
            tensors.insert(name.to_owned(), Tensor::new(view.shape().to_vec(), values)?);
        }
        Ok(Stored { tensors, ..Stored::new(header) })
    }
}

/// SHA-256 of a file whose head (the first `head` bytes) contains `hash` exactly once, with the hash read as zeros.
fn blanked_hash(bytes: &[u8], head: usize, hash: &str) -> Result<String> {
    let damaged = || malformed("the hash in the header cannot be read");
    if hash.len() != BLANK.len() {
        return Err(damaged());
    }
    let (start, body) = bytes.split_at_checked(head).ok_or_else(damaged)?;
    let mut start = start.to_vec();
    let mut places = start.windows(hash.len()).enumerate().filter(|(_, w)| *w == hash.as_bytes()).map(|(i, _)| i);
    let (Some(place), None) = (places.next(), places.next()) else { return Err(damaged()) };
    start[place..place + hash.len()].copy_from_slice(BLANK.as_bytes());
    let mut digest = Sha256::new();
    digest.update(&start);
    digest.update(body);
    Ok(hex(&digest.finalize()))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("strings take all that is written to them");
        text
    })
}

type Emit<'e, T> = &'e mut dyn FnMut(&[T]) -> Result<()>;

/// An array on its way out, delivered piece by piece as often as asked for: a Gram matrix is not copied to be saved.
pub(super) struct Array<'a> {
    name: String,
    dtype: Dtype,
    shape: Vec<usize>,
    pieces: Box<dyn Fn(Emit<'_, u8>) -> Result<()> + 'a>,
}

/// Numbers turned into bytes at once.
const PIECE: usize = 1 << 13;

impl<'a> Array<'a> {
    pub(super) fn single(name: &str, shape: Vec<usize>, values: &'a [f32]) -> Self {
        let pieces = move |emit: Emit<'_, u8>| {
            values.chunks(PIECE).try_for_each(|v| emit(&v.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>()))
        };
        Array { name: name.to_owned(), dtype: Dtype::F32, shape, pieces: Box::new(pieces) }
    }

    /// `each` hands out all values, in order, in slices of any length.
    pub(super) fn double(name: &str, shape: Vec<usize>, each: impl Fn(Emit<'_, f64>) -> Result<()> + 'a) -> Self {
        let pieces = move |emit: Emit<'_, u8>| {
            each(&mut |values| {
                values.chunks(PIECE).try_for_each(|v| emit(&v.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>()))
            })
        };
        Array { name: name.to_owned(), dtype: Dtype::F64, shape, pieces: Box::new(pieces) }
    }

    fn len(&self) -> usize {
        self.shape.iter().product::<usize>() * (self.dtype.bitsize() / 8)
    }
}

/// Length and JSON head of a container, 8-byte aligned, with `hash` in its place.
fn head(header: &Header, arrays: &[Array<'_>], hash: &str) -> Result<Vec<u8>> {
    let failed = |e: &dyn std::fmt::Display| malformed(format!("cannot be written: {e}"));
    let header = serde_json::to_value(header).map_err(|e| failed(&e))?;
    let envelope = Envelope { format: FORMAT, sha256: hash.to_owned(), header };
    let text = serde_json::to_string(&envelope).map_err(|e| failed(&e))?;
    let mut offset = 0;
    let mut infos = Vec::new();
    for array in arrays {
        let end = offset + array.len();
        let info = TensorInfo { dtype: array.dtype, shape: array.shape.clone(), data_offsets: (offset, end) };
        infos.push((array.name.clone(), info));
        offset = end;
    }
    let metadata =
        Metadata::new(Some([(KEY.to_owned(), text)].into_iter().collect()), infos).map_err(|e| failed(&e))?;
    let mut json = serde_json::to_vec(&metadata).map_err(|e| failed(&e))?;
    json.resize(json.len().next_multiple_of(8), b' ');
    let mut bytes = (json.len() as u64).to_le_bytes().to_vec();
    bytes.extend(json);
    Ok(bytes)
}

fn write_to(out: &mut impl Write, header: &Header, arrays: &[Array<'_>]) -> Result<()> {
    let mut digest = Sha256::new();
    digest.update(head(header, arrays, BLANK)?);
    for array in arrays {
        (array.pieces)(&mut |bytes| {
            digest.update(bytes);
            Ok(())
        })?;
    }
    out.write_all(&head(header, arrays, &hex(&digest.finalize()))?)?;
    for array in arrays {
        (array.pieces)(&mut |bytes| Ok(out.write_all(bytes)?))?;
    }
    Ok(())
}

/// The bytes of a file.
pub(super) fn bytes(header: &Header, arrays: &[Array<'_>]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    write_to(&mut bytes, header, arrays)?;
    Ok(bytes)
}

/// Writes a file, whole or not at all.
pub(super) fn save(path: &Path, header: &Header, arrays: &[Array<'_>]) -> Result<()> {
    let mut file = WholeFile::create(path)?;
    write_to(&mut file, header, arrays)?;
    Ok(file.finish()?)
}
