use serde::{Deserialize, Serialize};
use std::fmt;

/// The name of a class, as the data had it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Label {
    /// True or false.
    Flag(bool),
    /// A whole number.
    Whole(i64),
    /// A number.
    Real(f64),
    /// A word.
    Word(String),
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Label::Flag(v) => v.fmt(f),
            Label::Whole(v) => v.fmt(f),
            Label::Real(v) => write!(f, "{v:?}"),
            Label::Word(v) => f.write_str(v),
        }
    }
}

macro_rules! from {
    ($($type:ty => $variant:ident),*) => {$(
        impl From<$type> for Label {
            fn from(value: $type) -> Self {
                Label::$variant(value.into())
            }
        }
    )*};
}
from!(bool => Flag, i64 => Whole, i32 => Whole, f64 => Real, &str => Word, String => Word);
