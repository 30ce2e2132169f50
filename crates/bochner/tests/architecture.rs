//! The rooms of the house stand in a line: a room uses those before it, never those behind.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Rooms in the order of the data's way. Rooms on one line stand side by side and do not know each other, but for the
/// number types and the kernels compiled for them, which are one thing in two folders.
const ORDER: &[&[&str]] = &[
    &["words"],
    &["error"],
    &["parameter"],
    &["memory"],
    &["interrupt"],
    &["parallel"],
    &["special"],
    &["scalar", "linalg"],
    &["random"],
    &["rows"],
    &["context"],
    &["preprocess"],
    &["kernel", "projection"],
    &["variance", "metrics"],
    &["feature"],
    &["plan"],
    &["attention"],
    &["stats"],
    &["accumulate"],
    &["solve"],
    &["persist"],
    &["model"],
    &["tune"],
    &["catalogue"],
];
/// Crates, and those of this workspace that each may use.
const CRATES: &[(&str, &[&str])] = &[
    ("crates/bochner-backend", &[]),
    ("crates/bochner", &["bochner-backend"]),
    ("crates/bochner-table", &["bochner"]),
    ("crates/bochner-report", &["bochner"]),
    ("crates/bochner-papers", &["bochner", "bochner-table", "bochner-report"]),
    ("crates/bochner-cli", &["bochner", "bochner-table", "bochner-report", "bochner-papers"]),
    ("python", &["bochner", "bochner-table"]),
];
const TOGETHER: [&str; 2] = ["scalar", "linalg"];

fn level(room: &str) -> usize {
    let found = ORDER.iter().position(|rooms| rooms.contains(&room));
    found.unwrap_or_else(|| panic!("{room} is a new room: give it a place in ORDER"))
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") && path.file_stem().is_none_or(|s| s != "tests") {
            found.push(path);
        }
    }
}

/// The file without its test modules, comments and documentation: those may look anywhere.
fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// First names after `crate::`, also of `use crate::{a, b}`.
fn used(code: &str) -> BTreeSet<String> {
    let name = |text: &str| -> String { text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
    let mut names = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        match rest.strip_prefix('{') {
            None => {
                names.insert(name(rest));
            }
            Some(list) => {
                let (mut depth, mut start) = (0, 0);
                for (i, c) in list.char_indices() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => {
                            names.insert(name(list[start..i].trim()));
                            break;
                        }
                        '}' => depth -= 1,
                        ',' if depth == 0 => {
                            names.insert(name(list[start..i].trim()));
                            start = i + 1;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    names
}

#[test]
fn names_are_found_in_every_kind_of_path() {
    let code =
        "use crate::error::Result;\nuse crate::{linalg::{Tile, TileMut}, random::Seed};\nlet x = crate::rows::f(1);";
    assert_eq!(used(code).into_iter().collect::<Vec<_>>(), ["error", "linalg", "random", "rows"]);
}

#[test]
fn every_room_uses_rooms_before_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut mistakes = Vec::new();
    let mut uses = 0;
    for file in files {
        let path = file.strip_prefix(&root).unwrap();
        let first = path.components().next().unwrap().as_os_str().to_string_lossy();
        let room = first.trim_end_matches(".rs").to_owned();
        if room == "lib" {
            continue;
        }
        let here = level(&room);
        // Names that start with a capital letter are what lib.rs exports again, such as `crate::Error`.
        for other in used(&code(&file)).iter().filter(|name| name.starts_with(|c: char| c.is_lowercase())) {
            uses += 1;
            let together = TOGETHER.contains(&room.as_str()) && TOGETHER.contains(&other.as_str());
            if *other != room && !together && level(other) >= here {
                mistakes.push(format!("{} uses {other}", path.display()));
            }
        }
    }
    assert!(uses > 50, "only {uses} paths found: the test no longer reads the sources");
    assert!(mistakes.is_empty(), "{mistakes:#?}");
}

/// Crates of this workspace that a manifest names as dependencies.
fn dependencies(manifest: &str) -> Vec<&str> {
    let mut listed = false;
    let mut found = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            listed = line.trim_end_matches(']').ends_with("dependencies");
        } else if listed && line.starts_with("bochner") {
            found.extend(line.split(['.', ' ', '=']).next());
        }
    }
    found
}

#[test]
fn every_crate_uses_those_that_it_may() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manifest = |folder: &str| std::fs::read_to_string(root.join(folder).join("Cargo.toml")).unwrap();
    assert_eq!(dependencies(&manifest("crates/bochner")), ["bochner-backend"], "the test no longer reads manifests");
    let folders = std::fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().file_name());
    for folder in folders.map(|name| format!("crates/{}", name.to_string_lossy())).chain(["python".to_owned()]) {
        let known = CRATES.iter().find(|(name, _)| *name == folder);
        let (_, allowed) = known.unwrap_or_else(|| panic!("{folder} is a new crate: give it a place in CRATES"));
        for used in dependencies(&manifest(&folder)) {
            assert!(allowed.contains(&used), "{folder} uses {used}");
        }
    }
}
