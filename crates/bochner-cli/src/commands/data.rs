use crate::cli::Context;
use crate::output_args::FormatArgs;
use crate::progress::Bar;
use bochner::words;
use bochner_papers::fetch;
use bochner_papers::known::{self, KnownSet, Verdict};
use bochner_report::table::{Cell, Table, Tone};
use bochner_table::failure::{Failure, Outcome};
use bochner_table::output;
use bochner_table::progress::{Progress, Watch};
use std::path::PathBuf;

/// Known data sets: which there are, where they are, whether they are intact
///
/// Data sets are looked for in the folder of --data, then in $BOCHNER_DATA, then in ../shared/data if it is there, each
/// in a folder of its own name. Nothing is ever fetched unless you ask for it with fetch.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bochner data list
  bochner data check                          compares sizes and checksums of all files
  bochner data fetch mnist --data ~/data      downloads over HTTPS, continues after a break")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
    /// Folder of the data sets
    #[arg(long, value_name = "FOLDER", global = true)]
    data: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show known data sets and where they are
    List {
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Compare files with their sizes and checksums
    Check {
        /// Names of data sets [default: all]
        names: Vec<String>,
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Download a data set
    Fetch {
        /// Names of data sets
        #[arg(required = true)]
        names: Vec<String>,
        /// Folder on a server with the data sets, instead of where they are published
        #[arg(long, value_name = "URL")]
        from: Option<String>,
    },
}

pub(crate) fn run(args: &Args, context: &Context) -> Outcome {
    let folder = known::folder(args.data.as_deref());
    match &args.action {
        Action::List { format } => list(folder, context, *format),
        Action::Check { names, format } => check(folder, names, context, *format),
        Action::Fetch { names, from } => {
            let folder = folder.ok_or_else(|| {
                Failure::Usage("where should the data go? Say --data FOLDER, or set BOCHNER_DATA".into())
            })?;
            names.iter().try_for_each(|name| fetch_set(&folder, &known::find(name)?, from.as_deref(), context))
        }
    }
}

fn list(folder: Option<PathBuf>, context: &Context, format: FormatArgs) -> Outcome {
    let title = match &folder {
        Some(folder) => format!("Data sets in {}", folder.display()),
        None => "Data sets (no folder given: --data FOLDER or BOCHNER_DATA says where they are)".into(),
    };
    let mut table = Table::new(title)
        .words("name", "name")
        .words("here", "here")
        .numbers("bytes", "size")
        .words("what", "what it is");
    for set in known::sets() {
        let present =
            |f: &&known::KnownFile| folder.as_ref().is_some_and(|d| d.join(&set.name).join(&f.name).is_file());
        let here = match set.files.iter().filter(present).count() {
            0 => "no",
            n if n == set.files.len() => "yes",
            _ => "in part",
        };
        let bytes: u64 = set.files.iter().map(|f| f.bytes).sum();
        let fetchable = if set.source.is_some() { "; can be fetched" } else { "" };
        table.push(vec![
            Cell::text(set.name.clone()),
            Cell::text(here),
            Cell::bytes(bytes),
            Cell::text(format!("{}{fetchable}", set.what)),
        ]);
    }
    context.table(&table, format)
}

fn check(folder: Option<PathBuf>, names: &[String], context: &Context, format: FormatArgs) -> Outcome {
    let sets = match names {
        [] => known::sets(),
        names => names.iter().map(|name| known::find(name)).collect::<Outcome<_>>()?,
    };
    let folder = folder.ok_or_else(|| Failure::Usage("which folder? Say --data FOLDER, or set BOCHNER_DATA".into()))?;
    let files: usize = sets.iter().map(|s| s.files.len()).sum();
    let progress = context.steps(files as u64);
    let mut table = Table::new("").words("file", "file").words("verdict", "verdict");
    let mut counts = [0; 3];
    for (set, file) in sets.iter().flat_map(|set| set.files.iter().map(move |file| (set, file))) {
        let name = format!("{}/{}", set.name, file.name);
        progress.at(name.clone().into())?;
        let (verdict, words) = match known::check(&folder.join(&set.name).join(&file.name), file)? {
            Verdict::Intact => (0, Cell::text("intact").toned(Tone::Good)),
            Verdict::Damaged(why) => (1, Cell::text(format!("damaged: {why}")).toned(Tone::Bad)),
            Verdict::Missing => (2, Cell::text("not here")),
        };
        counts[verdict] += 1;
        progress.done(1)?;
        table.push(vec![Cell::text(name), words]);
    }
    let [intact, damaged, missing] = counts;
    drop(progress);
    context.table(&table, format)?;
    if damaged > 0 || (!names.is_empty() && missing > 0) {
        return Err(Failure::Failed(format!("{intact} files are intact, {damaged} damaged, {missing} not here")));
    }
    match format.for_programs() {
        true => Ok(()),
        false => context.print(&format!("\n{intact} files are intact, {missing} not here.\n")),
    }
}

fn fetch_set(folder: &std::path::Path, set: &KnownSet, from: Option<&str>, context: &Context) -> Outcome {
    let base = match (from, &set.source) {
        (Some(from), _) => format!("{}/{}/", from.trim_end_matches('/'), set.name),
        (None, Some(source)) => source.clone(),
        (None, None) => {
            return Err(Failure::Failed(format!(
                "{}: no server with an identical copy is known; --from URL names one that has {}/{}",
                set.name, set.name, set.files[0].name
            )));
        }
    };
    let target = folder.join(&set.name);
    let made: Vec<PathBuf> =
        target.ancestors().take_while(|f| !f.as_os_str().is_empty() && !f.exists()).map(PathBuf::from).collect();
    output::create_folder(&target)?;
    let fetched = fetch_files(&target, set, &base, context);
    if fetched.is_err() {
        // Folders in which something has arrived stay: the next attempt continues there.
        made.iter().take_while(|folder| std::fs::remove_dir(folder).is_ok()).for_each(drop);
    }
    fetched
}

fn fetch_files(target: &std::path::Path, set: &KnownSet, base: &str, context: &Context) -> Outcome {
    for file in &set.files {
        let path = target.join(&file.name);
        if known::check(&path, file)? == Verdict::Intact {
            context.print(&format!("{}: already here\n", path.display()))?;
            continue;
        }
        let progress = Bar::bytes(context, file.bytes);
        progress.at(format!("{}/{}", set.name, file.name).into())?;
        fetch::fetch(&format!("{base}{}", file.name), &path, file, |have| progress.to(have))?;
        drop(progress);
        context.print(&format!("{}: {}, checksum right\n", path.display(), words::bytes(file.bytes)))?;
    }
    Ok(())
}
