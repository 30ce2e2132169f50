//! Options that several commands share: which format, which kind of plot.

use bochner_report::Report;
use bochner_report::plot::{Kind, Plot};
use bochner_report::table::Format;
use bochner_table::failure::{Failure, Outcome};
use bochner_table::output::{self, Named};
use std::path::Path;

/// `--json` and `--csv`, for commands that print a table.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct FormatArgs {
    /// Print the result as JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print the result as CSV
    #[arg(long)]
    csv: bool,
}

impl FormatArgs {
    /// Whether a program, not a person, reads standard output.
    pub(crate) fn for_programs(self) -> bool {
        Format::from(self).for_programs()
    }
}

impl From<FormatArgs> for Format {
    fn from(args: FormatArgs) -> Self {
        match args {
            FormatArgs { json: true, .. } => Format::Json,
            FormatArgs { csv: true, .. } => Format::Csv,
            _ => Format::Text,
        }
    }
}

/// `--plots`, for commands that write plots into a folder.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct PlotsArgs {
    /// Kind of the plot files in the folder [default: svg]
    #[arg(long, value_name = "KIND")]
    pub(crate) plots: Option<Kind>,
}

impl PlotsArgs {
    /// Writes plots into a folder, each under its name.
    pub(crate) fn write(self, folder: &Path, plots: &[(&str, Plot)]) -> Outcome {
        let kind = self.plots.unwrap_or_default();
        output::create_folder(folder)?;
        plots.iter().try_for_each(|(name, plot)| {
            output::write_whole(&folder.join(format!("{name}.{}", kind.ending())), &kind.bytes(&plot.to_svg())?)
        })
    }
}

/// Writes what programs read.
pub(crate) fn write_json(path: &Path, value: &serde_json::Value) -> Outcome {
    output::write_whole(path, format!("{value:#}\n").as_bytes())
}

/// Writes a page, where one was asked for.
pub(crate) fn write_page(path: &Path, page: &Report) -> Outcome {
    output::write_whole(path, page.to_html().as_bytes())
}

/// Refuses, before any work is done, outputs that are one file, or one of the inputs.
pub(crate) fn check_apart(outputs: &[(&str, Option<&Path>)], inputs: &[(&str, Option<&Path>)]) -> Outcome {
    fn named<'a>(files: &[(&'a str, Option<&'a Path>)]) -> Vec<Named<'a>> {
        files.iter().filter_map(|(name, path)| Some((*name, (*path)?))).collect()
    }
    output::check_apart(&named(outputs), &named(inputs))
}

fn kind_of(path: &Path) -> Outcome<Kind> {
    let unknown = || Failure::Usage(format!("--plot {}: plots are .svg or .png files", path.display()));
    Kind::of(path).ok_or_else(unknown)
}

/// Refuses, before any work is done, a plot that could not be written after it, or that is of no kind.
pub(crate) fn check_plot(path: &Path) -> Outcome {
    kind_of(path)?;
    output::check_file(path)
}

/// Writes a drawing as the kind of plot that the file's name says.
pub(crate) fn write_plot(path: &Path, svg: &str) -> Outcome {
    output::write_whole(path, &kind_of(path)?.bytes(svg)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_of_no_kind_is_wrong_usage() {
        let refusal = check_plot(Path::new("a.jpg")).unwrap_err();
        assert_eq!(refusal.exit_code(), 2);
        assert_eq!(refusal.to_string(), "--plot a.jpg: plots are .svg or .png files");
    }
}
