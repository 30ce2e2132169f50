use crate::cli::{Cli, Context};
use bochner_table::failure::{Failure, Outcome};
use bochner_table::output;
use clap::CommandFactory;
use clap_mangen::Man;
use std::path::{Path, PathBuf};

/// Print the manual page, or write the pages of all commands to a folder
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bochner man | man -l -
  bochner man --dir ~/.local/share/man/man1")]
pub(crate) struct Args {
    /// Write bochner.1, bochner-demo.1, … here instead of printing
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, context: &Context) -> Outcome {
    let mut program = Cli::command();
    program.build();
    let Some(folder) = &args.dir else {
        return context.print(&page(program)?);
    };
    output::create_folder(folder)?;
    write(folder, "bochner", program)
}

/// Writes the page of a command, and the pages of its commands, which it refers to.
fn write(folder: &Path, name: &str, command: clap::Command) -> Outcome {
    for inner in command.get_subcommands().cloned() {
        write(folder, &format!("{name}-{}", inner.get_name()), inner)?;
    }
    // Page titles are 'static in clap; one leaked name per command in a program that ends right after is nothing.
    let title: &'static str = name.to_owned().leak();
    output::write_whole(&folder.join(format!("{name}.1")), page(command.name(title))?.as_bytes())
}

fn page(command: clap::Command) -> Outcome<String> {
    let after = command.get_after_long_help().or(command.get_after_help()).map(ToString::to_string);
    let (commands, version) = (command.has_subcommands(), command.get_version().is_some());
    let page = Man::new(command);
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    if commands {
        page.render_subcommands_section(&mut text)?;
    }
    text.extend_from_slice(examples(&after.unwrap_or_default()).as_bytes());
    if version {
        page.render_version_section(&mut text)?;
    }
    let text = String::from_utf8(text).map_err(|e| Failure::Failed(format!("the manual page is not text: {e}")))?;
    // Options and file names that are cut at line ends could not be copied.
    Ok(text.replacen(".SH NAME", ".nh\n.SH NAME", 1))
}

/// What stands below the help of a command: examples line by line, since they are commands, and sentences about them.
fn examples(after: &str) -> String {
    let (mut lines, mut notes) = (String::new(), String::new());
    for line in after.lines() {
        if line.starts_with(' ') {
            lines += &format!("{}\n", escaped(line.trim()));
        } else if line.is_empty() {
            notes += if notes.is_empty() { "" } else { ".PP\n" };
        } else if line != "Examples:" {
            notes += &format!("{}\n", escaped(line));
        }
    }
    let mut text = String::new();
    if !lines.is_empty() {
        text += &format!(".SH EXAMPLES\n.nf\n{lines}.fi\n");
    }
    if !notes.is_empty() {
        text += &format!(".SH NOTES\n{notes}");
    }
    text
}

/// A line as it is, for roff: no escapes, no requests, and hyphens, quotes and tildes that can be copied into a shell.
fn escaped(line: &str) -> String {
    let text = line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq").replace('~', "\\(ti");
    if text.starts_with('.') { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_keep_their_lines_and_sentences_are_filled() {
        let text = examples("Examples:\n  a --b c\\d\n  .e 'f'\n\nOne\ntwo.\n\nThree.");
        assert_eq!(
            text,
            ".SH EXAMPLES\n.nf\na \\-\\-b c\\ed\n\\&.e \\(aqf\\(aq\n.fi\n.SH NOTES\nOne\ntwo.\n.PP\nThree.\n"
        );
        assert_eq!(examples(""), "");
    }

    #[test]
    fn every_page_that_a_page_refers_to_is_there() {
        let folder = std::env::temp_dir().join(format!("bochner-man-{}", std::process::id()));
        output::create_folder(&folder).unwrap();
        let mut program = Cli::command();
        program.build();
        write(&folder, "bochner", program).unwrap();
        for file in std::fs::read_dir(&folder).unwrap() {
            let page = std::fs::read_to_string(file.unwrap().path()).unwrap();
            assert!(!page.contains(".SH EXTRA") && page.contains(".nh\n"), "{page}");
            for (end, _) in page.match_indices("(1)") {
                let name = page[..end].rsplit([' ', '\n']).next().unwrap().replace('\\', "");
                assert!(folder.join(format!("{name}.1")).exists(), "{name}");
            }
        }
        let fit = std::fs::read_to_string(folder.join("bochner-fit.1")).unwrap();
        assert!(fit.contains(".SH EXAMPLES\n.nf\nbochner fit") && fit.contains(".SH NOTES\nThe time"), "{fit}");
        assert!(folder.join("bochner-data-fetch.1").exists());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
