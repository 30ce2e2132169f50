//! Kinds of plot files: SVG as it is drawn, or PNG made from it.

use std::borrow::Cow;
use std::io;
use std::path::Path;

/// Kinds of plot files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Kind {
    /// Lines and letters at any size; in a browser, marks say what they are
    #[default]
    Svg,
    /// Pixels, for slides and documents that take no SVG
    #[cfg(feature = "png")]
    Png,
}

impl Kind {
    const ALL: &[Kind] = &[
        Kind::Svg,
        #[cfg(feature = "png")]
        Kind::Png,
    ];

    /// Of the names of such files.
    pub fn ending(self) -> &'static str {
        match self {
            Kind::Svg => "svg",
            #[cfg(feature = "png")]
            Kind::Png => "png",
        }
    }

    /// The kind that the ending of a file's name says.
    pub fn of(path: &Path) -> Option<Self> {
        let is = |kind: &Kind| path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case(kind.ending()));
        Kind::ALL.iter().copied().find(is)
    }

    /// The bytes of a file that shows a drawing.
    ///
    /// # Errors
    /// If there is no room for its pixels.
    pub fn bytes(self, svg: &str) -> io::Result<Cow<'_, [u8]>> {
        match self {
            Kind::Svg => Ok(svg.as_bytes().into()),
            #[cfg(feature = "png")]
            Kind::Png => Ok(super::png::png(svg)?.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "png")]
    #[test]
    fn the_ending_of_a_name_decides() {
        for (name, kind) in [("a.svg", Kind::Svg), ("b.c/a.png", Kind::Png), ("a.svg.PNG", Kind::Png)] {
            assert_eq!(Kind::of(Path::new(name)), Some(kind));
        }
        for name in ["a.jpg", "png", ".png", "a.png/b", "a."] {
            assert_eq!(Kind::of(Path::new(name)), None, "{name}");
        }
    }
}
