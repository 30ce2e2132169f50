//! Options that several commands share: which format, which kind of plot.

use bochner_report::plot::Kind;
use bochner_report::table::Format;
use bochner_table::failure::{Failure, Outcome};
use bochner_table::output;
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
    /// Writes a drawing into a folder, under a name without ending.
    pub(crate) fn write(self, folder: &Path, name: &str, svg: &str) -> Outcome {
        let kind = self.plots.unwrap_or_default();
        output::write_whole(&folder.join(format!("{name}.{}", kind.ending())), &kind.bytes(svg)?)
    }
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
