//! Joules, where the machine counts them.

use std::fs::read_to_string;
use std::path::PathBuf;

/// Energy counters of all processor packages.
#[derive(Debug)]
pub(crate) struct Energy {
    counters: Vec<PathBuf>,
}

impl Energy {
    /// The counters of this machine; none where the system shows none or forbids reading them.
    pub(crate) fn find() -> Option<Self> {
        let folders = std::fs::read_dir("/sys/class/powercap").ok()?;
        let package = |folder: &PathBuf| {
            read_to_string(folder.join("name")).is_ok_and(|name| name.starts_with("package"))
                && read_to_string(folder.join("energy_uj")).is_ok()
        };
        let counters: Vec<PathBuf> = folders.flatten().map(|entry| entry.path()).filter(package).collect();
        (!counters.is_empty()).then_some(Energy { counters })
    }

    /// Joules of `work`, of the whole machine.
    pub(crate) fn of(&self, work: &mut dyn FnMut() -> bochner::Result<()>) -> bochner::Result<f64> {
        let before = self.read();
        work()?;
        let spent = |(i, folder): (usize, &PathBuf)| {
            let now = number(folder, "energy_uj");
            // Counters wrap at a value of their own.
            let wrapped = if now < before[i] { number(folder, "max_energy_range_uj") } else { 0.0 };
            now + wrapped - before[i]
        };
        Ok(self.counters.iter().enumerate().map(spent).sum::<f64>() * 1e-6)
    }

    fn read(&self) -> Vec<f64> {
        self.counters.iter().map(|folder| number(folder, "energy_uj")).collect()
    }
}

fn number(folder: &std::path::Path, file: &str) -> f64 {
    read_to_string(folder.join(file)).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(f64::NAN)
}
