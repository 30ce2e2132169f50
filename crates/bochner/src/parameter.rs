//! What every door knows about a parameter, said once: its name, a sentence, its default and what it may be.
//!
//! Maps, kernels and models declare their parameters with the macros of this room, beside the code that uses them;
//! [`catalogue`](crate::catalogue) lists them. The command line, Python, model files, the planner and the manual read them there.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

/// A parameter of a map, a kernel or a model.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Parameter {
    /// As every door writes it.
    pub name: &'static str,
    #[serde(serialize_with = "sentence")]
    about: &'static str,
    /// What it may be.
    pub domain: Domain,
    /// What it is for.
    pub purpose: Purpose,
    /// The one other parameter, and its words, without which this one changes nothing.
    pub only_for: Option<(&'static str, &'static [&'static str])>,
    #[serde(serialize_with = "value")]
    default: fn() -> Value,
}

/// Sentences from doc comments begin with a space.
fn sentence<S: Serializer>(about: &str, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    about.trim_start().serialize(serializer)
}

fn value<S: Serializer>(default: &fn() -> Value, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    default().serialize(serializer)
}

impl Parameter {
    /// A parameter; the macros of this room are the way to write one.
    #[doc(hidden)]
    pub const fn new(
        name: &'static str,
        about: &'static str,
        domain: Domain,
        purpose: Purpose,
        default: fn() -> Value,
    ) -> Self {
        Parameter { name, about, domain, purpose, only_for: None, default }
    }

    /// The same parameter, of use only where `other` is one of `words`.
    #[doc(hidden)]
    pub const fn only_for(mut self, other: &'static str, words: &'static [&'static str]) -> Self {
        self.only_for = Some((other, words));
        self
    }

    /// One or two sentences for people.
    pub fn about(&self) -> &'static str {
        self.about.trim_start()
    }

    /// What it is where nobody says anything.
    pub fn default(&self) -> Value {
        (self.default)()
    }

    /// Whether it has a say beside the others.
    pub fn applies(&self, given: impl Fn(&str) -> Option<Value>) -> bool {
        self.only_for.is_none_or(|(other, words)| {
            given(other).is_some_and(|value| matches!(&value, Value::Word(word) if words.contains(&word.as_str())))
        })
    }

    /// Accepts what the parameter may be.
    ///
    /// # Errors
    /// [`Error::Parameter`] with name, domain and value.
    pub fn check(&self, value: &Value) -> Result<()> {
        if self.domain.contains(value) {
            return Ok(());
        }
        Err(Error::Parameter { name: self.name, expected: self.domain.to_string().into(), found: value.to_string() })
    }
}

/// What a parameter is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// How much there is of something: columns, iterations, memory.
    Size,
    /// Which function is estimated or learned.
    Kernel,
    /// How random numbers become a map.
    Draw,
    /// How a model is fitted.
    Fit,
}

/// A value of a parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Not given.
    None,
    /// A truth value.
    Flag(bool),
    /// A whole number, not negative.
    Whole(u64),
    /// A number.
    Real(f64),
    /// A word.
    Word(String),
    /// Several values.
    List(Vec<Value>),
    /// Parts by name.
    Parts(std::collections::BTreeMap<String, Value>),
}

impl Value {
    /// What a text says: a number, a list or a truth value where it reads like one, else a word.
    ///
    /// ```
    /// use bochner::catalogue::Value;
    /// assert_eq!(Value::parse("0.5"), Value::Real(0.5));
    /// assert_eq!(Value::parse("matern"), Value::Word("matern".into()));
    /// ```
    pub fn parse(text: &str) -> Value {
        serde_json::from_str(text).unwrap_or_else(|_| Value::Word(text.to_owned()))
    }

    /// What `value` is written as in a file.
    #[doc(hidden)]
    pub fn of(value: &impl Serialize) -> Value {
        serde_json::to_value(value).and_then(serde_json::from_value).unwrap_or(Value::None)
    }

    /// Reads something that is written as one of several sorts of values.
    pub(crate) fn read<'de, T, D: serde::Deserializer<'de>>(
        deserializer: D,
        expected: &str,
        as_one: impl FnOnce(&Value) -> Option<T>,
    ) -> std::result::Result<T, D::Error> {
        let value = Value::deserialize(deserializer)?;
        as_one(&value).ok_or_else(|| {
            // As serde says it: doors find the parameter by what was given.
            let found = match &value {
                Value::Word(word) => format!("{word:?}"),
                Value::List(_) => "sequence".to_owned(),
                other => format!("`{other}`"),
            };
            serde::de::Error::custom(format!("invalid value: {found}, expected {expected}"))
        })
    }

    /// Round numbers as they were given, others with four digits.
    pub(crate) fn short(&self) -> String {
        match self.number() {
            Some(number) if number.to_string().len() > 6 => format!("{number:.4}"),
            Some(number) => number.to_string(),
            None => self.to_string(),
        }
    }

    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Whole(v) => Some(*v as f64),
            Value::Real(v) => Some(*v),
            _ => None,
        }
    }
}

macro_rules! from {
    ($($type:ty => $variant:ident($value:ident) $as:expr;)*) => {$(
        impl From<$type> for Value {
            fn from($value: $type) -> Self {
                Value::$variant($as)
            }
        }
    )*};
}
from! {
    bool => Flag(v) v;
    u64 => Whole(v) v;
    usize => Whole(v) v as u64;
    f64 => Real(v) v;
    &str => Word(v) v.to_owned();
    String => Word(v) v;
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::None => f.write_str("none"),
            Value::Flag(v) => v.fmt(f),
            Value::Whole(v) => v.fmt(f),
            Value::Real(v) => v.fmt(f),
            Value::Word(v) => f.write_str(v),
            other => f.write_str(&serde_json::to_string(other).unwrap_or_default()),
        }
    }
}

/// What every door knows about a kind of map, kernel or model.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Entry {
    /// As every door writes it.
    pub name: &'static str,
    /// Names it had in earlier versions, which doors still understand.
    pub aliases: &'static [&'static str],
    /// As people say it, in the middle of a sentence.
    pub title: &'static str,
    /// One sentence for people.
    #[serde(serialize_with = "sentence")]
    pub about: &'static str,
    /// What it can be told.
    pub parameters: &'static [Parameter],
    /// What it is one of.
    #[serde(skip)]
    pub sort: Sort,
}

/// What the catalogue lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// Feature maps, whose titles are plurals.
    Map,
    /// Kernels, whose titles are what stands before the word.
    Kernel,
    /// Models.
    Model,
}

impl Entry {
    /// The parameter of this name.
    ///
    /// # Errors
    /// None, with all there are.
    pub fn parameter(&self, name: &str) -> Result<&'static Parameter> {
        self.parameters.iter().find(|parameter| parameter.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.parameters.iter().map(|parameter| parameter.name).collect();
            let (have, theirs) = match self.sort {
                Sort::Map => (format!("{} have", self.title), "theirs are"),
                Sort::Kernel => (format!("the {} kernel has", self.title), "it has"),
                Sort::Model => (format!("{} has", self.title), "it has"),
            };
            let others =
                if known.is_empty() { ", and no others".into() } else { format!("; {theirs} {}", known.join(", ")) };
            Error::Unsupported { what: "parameter", reason: format!("{have} no parameter {name}{others}") }
        })
    }

    /// An entry of something that has had no other name.
    pub(crate) const fn new(
        sort: Sort,
        name: &'static str,
        title: &'static str,
        about: &'static str,
        parameters: &'static [Parameter],
    ) -> Self {
        Entry { name, aliases: &[], title, about, parameters, sort }
    }

    /// The one of this name.
    ///
    /// # Errors
    /// `what` is none of them, with all there are.
    pub(crate) fn named<'a>(
        mut all: impl Iterator<Item = &'a Entry> + Clone,
        what: &'static str,
        name: &str,
    ) -> Result<&'a Entry> {
        let known = all.clone();
        all.find(|entry| entry.is_called(name)).ok_or_else(|| {
            let known: Vec<&str> = known.map(|entry| entry.name).collect();
            Error::parameter(what, format!("one of {}", known.join(", ")), name)
        })
    }

    /// Whether `name` is its name, or was; hyphens stand for underscores.
    pub fn is_called(&self, name: &str) -> bool {
        let name = name.replace('-', "_");
        self.name == name || self.aliases.contains(&name.as_str())
    }
}

/// A word that a parameter may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Word {
    /// As every door writes it.
    pub name: &'static str,
    #[serde(serialize_with = "sentence")]
    about: &'static str,
}

impl Word {
    #[doc(hidden)]
    pub const fn new(name: &'static str, about: &'static str) -> Self {
        Word { name, about }
    }

    /// One or two sentences for people.
    pub fn about(&self) -> &'static str {
        self.about.trim_start()
    }
}

/// The most features that a row may have: 4 GB of them in single precision.
pub(crate) const MOST_FEATURES: usize = 1 << 30;

/// What a parameter may be. As JSON it is one word, or an object of one word and its bounds; `null` is no bound.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Domain {
    /// A whole number from `0` to `1`.
    Whole(u64, u64),
    /// A finite number from `0` to `1`.
    Real(f64, f64),
    /// A finite number above `0`, up to `1`.
    Above(f64, f64),
    /// True or false.
    Flag,
    /// One of these words.
    Word(&'static [Word]),
    /// This word.
    Only(&'static str),
    /// A list of what follows.
    List(&'static Domain),
    /// Rows of numbers.
    Matrix,
    /// Parts by name, which their own type judges.
    Parts,
    /// Not given, or what follows.
    Optional(&'static Domain),
    /// One of several.
    Either(&'static [Domain]),
}

impl Domain {
    /// At least 1.
    pub const COUNT: Domain = Domain::Whole(1, u64::MAX);
    /// How many features a row may have.
    pub const FEATURES: Domain = Domain::Whole(1, MOST_FEATURES as u64);
    /// A positive finite number.
    pub const POSITIVE: Domain = Domain::Above(0.0, f64::INFINITY);
    /// A finite number that is not negative.
    pub const NON_NEGATIVE: Domain = Domain::Real(0.0, f64::INFINITY);
    /// Any finite number.
    pub const FINITE: Domain = Domain::Real(f64::NEG_INFINITY, f64::INFINITY);
    /// A number for all columns, one for each, a matrix that rows are multiplied by, or the median distance of two rows.
    pub const LENGTH_SCALE: Domain =
        Domain::Either(&[Domain::POSITIVE, Domain::List(&Domain::POSITIVE), Domain::Matrix, Domain::Only("median")]);
    /// A number, or the median distance of two rows.
    pub const ONE_LENGTH_SCALE: Domain = Domain::Either(&[Domain::POSITIVE, Domain::Only("median")]);

    /// Whether `value` may be.
    pub fn contains(&self, value: &Value) -> bool {
        match (self, value) {
            (Domain::Whole(least, most), Value::Whole(v)) => (least..=most).contains(&v),
            (Domain::Whole(..), Value::Real(v)) if v.fract() == 0.0 && *v >= 0.0 && *v < 9e15 => {
                self.contains(&Value::Whole(*v as u64))
            }
            (Domain::Real(least, most), v) => {
                v.number().is_some_and(|v| v.is_finite() && (*least..=*most).contains(&v))
            }
            (Domain::Above(least, most), v) => v.number().is_some_and(|v| v.is_finite() && v > *least && v <= *most),
            (Domain::Flag, Value::Flag(_)) => true,
            (Domain::Word(choices), Value::Word(word)) => choices.iter().any(|choice| choice.name == word),
            (Domain::Only(name), Value::Word(word)) => name == word,
            (Domain::List(domain), Value::List(values)) => {
                !values.is_empty() && values.iter().all(|v| domain.contains(v))
            }
            (Domain::Matrix, Value::List(rows)) => {
                !rows.is_empty() && rows.iter().all(|row| Domain::List(&Domain::FINITE).contains(row))
            }
            (Domain::Parts, Value::Parts(_)) => true,
            (Domain::Optional(_), Value::None) => true,
            (Domain::Optional(domain), value) => domain.contains(value),
            (Domain::Either(domains), value) => domains.iter().any(|domain| domain.contains(value)),
            _ => false,
        }
    }

    /// The words a parameter may be, where there are some.
    pub fn words(&self) -> Vec<&'static str> {
        match self {
            Domain::Word(choices) => choices.iter().map(|choice| choice.name).collect(),
            Domain::Only(word) => vec![word],
            Domain::Optional(domain) => domain.words(),
            Domain::Either(domains) => domains.iter().flat_map(Domain::words).collect(),
            _ => Vec::new(),
        }
    }
}

/// As the end of "… must be".
impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Domain::Whole(0, u64::MAX) => f.write_str("a whole number"),
            Domain::Whole(least, u64::MAX) => write!(f, "at least {least}"),
            Domain::Whole(0, most) => write!(f, "at most {most}"),
            Domain::Whole(least, most) => write!(f, "a whole number from {least} to {most}"),
            Domain::Above(0.0, f64::INFINITY) => f.write_str("a positive finite number"),
            Domain::Above(least, f64::INFINITY) => write!(f, "a finite number above {least}"),
            Domain::Above(least, most) => write!(f, "above {least} and at most {most}"),
            Domain::Real(f64::NEG_INFINITY, f64::INFINITY) => f.write_str("a finite number"),
            Domain::Real(0.0, f64::INFINITY) => f.write_str("a non-negative finite number"),
            Domain::Real(least, f64::INFINITY) => write!(f, "a finite number of at least {least}"),
            Domain::Real(least, most) => write!(f, "a number from {least} to {most}"),
            Domain::Flag => f.write_str("true or false"),
            Domain::Word(choices) => {
                let names: Vec<&str> = choices.iter().map(|choice| choice.name).collect();
                write!(f, "one of {}", names.join(", "))
            }
            Domain::Only(word) => f.write_str(word),
            Domain::List(Domain::Above(0.0, f64::INFINITY)) => f.write_str("a list of positive finite numbers"),
            Domain::List(Domain::Real(0.0, f64::INFINITY)) => f.write_str("a list of non-negative finite numbers"),
            Domain::List(_) => f.write_str("a list of numbers"),
            Domain::Matrix => f.write_str("rows of numbers"),
            Domain::Parts => f.write_str("named parts"),
            Domain::Optional(domain) => write!(f, "{domain}, or none"),
            Domain::Either(domains) => {
                let words: Vec<String> = domains.iter().map(ToString::to_string).collect();
                match words.split_last() {
                    Some((last, rest)) if !rest.is_empty() => write!(f, "{} or {last}", rest.join(", ")),
                    _ => f.write_str(&words.concat()),
                }
            }
        }
    }
}

/// Defines an enumeration of words, the first of which is the default: names for all doors, a sentence each.
macro_rules! words {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[doc = $about:literal])+ $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[doc = $about])+ #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// The words, the default first.
            pub const CHOICES: &'static [$crate::parameter::Word] =
                &[$($crate::parameter::Word::new($word, concat!($($about),+)),)+];

            /// As every door writes it.
            pub const fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                [$($name::$variant,)+][0]
            }
        }
    };
}
pub(crate) use words;

/// A list of parameters with their defaults: `name: Type = default, domain, purpose; …`.
macro_rules! parameters {
    ($($(#[doc = $about:literal])+ $field:ident: $type:ty = $default:expr, $domain:expr, $purpose:ident
        $(, only for $other:ident = [$($word:literal),+])?;)*) => {
        &[$($crate::parameter::Parameter::new(
            stringify!($field),
            concat!($($about),+),
            $domain,
            $crate::parameter::Purpose::$purpose,
            || {
                let default: $type = $default;
                $crate::parameter::Value::of(&default)
            },
        )$(.only_for(stringify!($other), &[$($word),+]))?,)*]
    };
}
pub(crate) use parameters;

/// Defines a plain struct of parameters that is stored in files: fields with their sentences, defaults and domains; a list
/// of them; and a check of all. `besides` lists fields that are no parameters.
///
/// `map` makes it the description of a feature map: a seed, an entry in the catalogue with the name, the title and a sentence,
/// and the names of the kernels the map is for.
macro_rules! description {
    (
        $(#[$meta:meta])*
        pub struct $name:ident { $($parameters:tt)* }
        map $word:literal for [$($kernel:literal),*], $title:literal: $about:literal;
        $(besides { $($besides:tt)* })?
    ) => {
        $crate::parameter::description! {
            $(#[$meta])*
            pub struct $name { $($parameters)* }
            besides {
                $($($besides)*)?
                /// Where the draws start from.
                seed: u64 = 0;
            }
        }

        impl $name {
            /// What every door knows of this kind of map.
            pub const ENTRY: $crate::parameter::Entry =
                $crate::parameter::Entry::new($crate::parameter::Sort::Map, $word, $title, $about, Self::PARAMETERS);
            /// Names of the kernels it estimates.
            pub const KERNELS: &'static [&'static str] = &[$($kernel),*];
        }
    };
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[doc = $about:literal])+ $(#[serde($($serde:tt)*)])? $field:ident: $type:ty = $default:expr, $domain:expr, $purpose:ident
                $(, only for $other:ident = [$($word:literal),+])?;)*
        }
        besides {
            $($(#[$extra:meta])+ $field_besides:ident: $type_besides:ty = $default_besides:expr;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $($(#[doc = $about])+ $(#[serde($($serde)*)])? pub $field: $type,)*
            $($(#[$extra])+ pub $field_besides: $type_besides,)*
        }

        impl Default for $name {
            fn default() -> Self {
                $name { $($field: $default,)* $($field_besides: $default_besides,)* }
            }
        }

        impl $name {
            /// What is known of each parameter.
            pub const PARAMETERS: &'static [$crate::parameter::Parameter] = $crate::parameter::parameters! {
                $($(#[doc = $about])+ $field: $type = $default, $domain, $purpose
                    $(, only for $other = [$($word),+])?;)*
            };

            /// Refuses the first parameter that is outside its domain.
            #[allow(dead_code)]
            pub(crate) fn check_parameters(&self) -> $crate::Result<()> {
                let values = [$($crate::parameter::Value::of(&self.$field),)*];
                Self::PARAMETERS.iter().zip(&values).try_for_each(|(parameter, value)| parameter.check(value))
            }
        }
    };
}
pub(crate) use description;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_hold_what_they_say() {
        let (whole, real) = (Value::Whole, Value::Real);
        let cases: &[(Domain, &[Value], &[Value], &str)] = &[
            (Domain::COUNT, &[whole(1), real(3.0)], &[whole(0), real(1.5), real(-1.0)], "at least 1"),
            (Domain::Whole(0, 64), &[whole(0), whole(64)], &[whole(65), Value::None], "at most 64"),
            (Domain::POSITIVE, &[real(0.1), whole(2)], &[whole(0), real(f64::NAN)], "a positive finite number"),
            (Domain::NON_NEGATIVE, &[real(0.0)], &[real(-0.1), real(f64::INFINITY)], "a non-negative finite number"),
            (Domain::Above(0.0, 1.0), &[real(1.0)], &[real(0.0), real(1.1)], "above 0 and at most 1"),
            (
                Domain::LENGTH_SCALE,
                &[real(0.5), Value::Word("median".into()), Value::List(vec![real(1.0), whole(2)])],
                &[real(0.0), Value::Word("mean".into()), Value::List(vec![]), Value::List(vec![real(-1.0)])],
                "a positive finite number, a list of positive finite numbers, rows of numbers or median",
            ),
            (Domain::Optional(&Domain::COUNT), &[Value::None, whole(1)], &[whole(0)], "at least 1, or none"),
        ];
        for (domain, inside, outside, words) in cases {
            assert!(inside.iter().all(|v| domain.contains(v)), "{words}");
            assert!(!outside.iter().any(|v| domain.contains(v)), "{words}");
            assert_eq!(domain.to_string(), *words);
        }
    }

    #[test]
    fn values_survive_their_text() {
        for value in [Value::None, Value::Flag(true), Value::Whole(3), Value::Real(0.1), Value::Word("gaussian".into())]
        {
            assert_eq!(Value::of(&value), value);
        }
        assert_eq!(Value::parse("[1, 0.5]"), Value::List(vec![Value::Whole(1), Value::Real(0.5)]));
    }
}
