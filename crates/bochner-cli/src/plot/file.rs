//! Files that plots are written to: SVG as it is drawn, or PNG made from it.

use super::png::png;
use crate::failure::{Failure, Outcome};
use crate::output;
use std::borrow::Cow;
use std::path::Path;

/// Kinds of plot files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Lines and letters at any size; in a browser, marks say what they are
    #[default]
    Svg,
    /// Pixels, for slides and documents that take no SVG
    Png,
}

/// `--plots`, for commands that write plots into a folder.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct PlotsArgs {
    /// Kind of the plot files in the folder [default: svg]
    #[arg(long, value_name = "KIND")]
    pub(crate) plots: Option<Kind>,
}

impl PlotsArgs {
    /// Writes a drawing into a folder, under a name without ending.
    pub(crate) fn write(self, folder: &Path, name: &str, svg: &str) -> Outcome {
        let kind = self.plots.unwrap_or_default();
        output::write_whole(&folder.join(format!("{name}.{}", kind.ending())), &kind.bytes(svg)?)
    }
}

impl Kind {
    fn ending(self) -> &'static str {
        match self {
            Kind::Svg => "svg",
            Kind::Png => "png",
        }
    }

    /// The kind that the ending of a file's name says.
    fn of(path: &Path) -> Outcome<Self> {
        let is = |kind: &Kind| path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case(kind.ending()));
        [Kind::Svg, Kind::Png]
            .into_iter()
            .find(is)
            .ok_or_else(|| Failure::Usage(format!("--plot {}: plots are .svg or .png files", path.display())))
    }

    fn bytes(self, svg: &str) -> Outcome<Cow<'_, [u8]>> {
        match self {
            Kind::Svg => Ok(svg.as_bytes().into()),
            Kind::Png => Ok(png(svg)?.into()),
        }
    }
}

/// Refuses, before any work is done, a plot that could not be written after it, or that is of no kind.
pub(crate) fn check(path: &Path) -> Outcome {
    Kind::of(path)?;
    output::check_file(path)
}

/// Writes a drawing as the kind of plot that the file's name says.
pub(crate) fn write(path: &Path, svg: &str) -> Outcome {
    output::write_whole(path, &Kind::of(path)?.bytes(svg)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_of_a_name_decides() {
        for (name, kind) in [("a.svg", Kind::Svg), ("b.c/a.png", Kind::Png), ("a.svg.PNG", Kind::Png)] {
            assert_eq!(Kind::of(Path::new(name)).unwrap(), kind);
        }
        for name in ["a.jpg", "png", ".png", "a.png/b", "a."] {
            let refusal = Kind::of(Path::new(name)).unwrap_err();
            assert_eq!(refusal.exit_code(), 2);
            assert_eq!(refusal.to_string(), format!("--plot {name}: plots are .svg or .png files"));
        }
    }
}
