//! What the [catalogue] lists, as values and help of options: names, sentences, defaults.

use bochner::catalogue::{self, Entry, Value, Word};
use bochner_table::fit;
use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use clap::{Arg, Command};
use serde::de::DeserializeOwned;
use std::ffi::OsStr;

/// A name with its sentence; hyphens may stand for underscores, and earlier names for later ones.
fn value(name: &'static str, about: &'static str, aliases: &[&'static str]) -> PossibleValue {
    let about = about.trim().trim_end_matches('.');
    let names = std::iter::once(&name).chain(aliases);
    let others = names.flat_map(|known| [known, hyphened(known)]).filter(|other| *other != name);
    PossibleValue::new(name).help(about).aliases(others)
}

/// The same with hyphens, as options have it: as long-lived as the names of the catalogue, of which there are few.
pub(crate) fn hyphened(name: &'static str) -> &'static str {
    if name.contains('_') { name.replace('_', "-").leak() } else { name }
}

/// Names that help, manual and completions list; what is none of them the library refuses, with all there are.
#[derive(Debug, Clone)]
pub(crate) struct Names(Vec<PossibleValue>);

impl TypedValueParser for Names {
    type Value = String;

    fn parse_ref(&self, command: &Command, option: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, option, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().cloned()))
    }
}

fn entries<'a>(entries: impl Iterator<Item = &'a Entry>) -> Names {
    Names(entries.map(|entry| value(entry.name, entry.about, entry.aliases)).collect())
}

/// Kinds of maps.
pub(crate) fn maps() -> Names {
    entries(catalogue::maps())
}

/// Kernels, those with matrices as values last.
pub(crate) fn kernels() -> Names {
    entries(catalogue::kernels().chain(catalogue::operator_kernels()))
}

/// Models that `fit` makes.
pub(crate) fn models() -> Names {
    Names(fit::models().map(|kind| value(kind.option, kind.entry.about, &[])).collect())
}

/// One of several words.
pub(crate) fn words<T: DeserializeOwned + Clone + Send + Sync + 'static>(
    choices: &'static [Word],
) -> impl TypedValueParser<Value = T> {
    let words = choices.iter().map(|choice| value(choice.name, choice.about(), &[]));
    PossibleValuesParser::new(words.collect::<Vec<_>>())
        .try_map(|word| serde_json::from_value(serde_json::Value::from(word)))
}

/// `degree=2, gamma=1, coef0=0` of each, but for what has an option of its own.
fn parameters<'a>(entries: impl Iterator<Item = &'a Entry>) -> String {
    let own = ["n_components", "kernel", "length_scale"];
    let lines = entries.filter_map(|entry| {
        let set = entry.parameters.iter().filter(|parameter| !own.contains(&parameter.name));
        let set: Vec<String> = set
            .map(|parameter| match parameter.default() {
                Value::None => parameter.name.to_owned(),
                default => format!("{}={default}", parameter.name),
            })
            .collect();
        (!set.is_empty()).then(|| format!("\n- {}: {}", entry.name, set.join(", ")))
    });
    lines.collect()
}

/// What `--set` may say of a map or an operator-valued kernel.
pub(crate) fn settings_of_maps() -> String {
    let known = parameters(catalogue::maps().chain(catalogue::operator_kernels()));
    format!(
        "Any other parameter of the map, as in --set degree=3 --set sketch=rademacher. With their defaults:\n{known}"
    )
}

/// What `--set` may say of a kernel.
pub(crate) fn settings_of_kernels() -> String {
    let known = parameters(catalogue::kernels().chain(catalogue::operator_kernels()));
    format!(
        "A parameter of the kernel, as in --set degree=3. The matrix of decomposable is that of the correlations of --target \
         where none is given. With their defaults:\n{known}"
    )
}
