//! The committed figures, and how a measurement stands against them.

use std::fmt;
use std::path::Path;

/// A case may grow by this many percent before the program fails.
const TOLERANCE: u64 = 5;

/// Where the committed figures are.
const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/instructions/figures.txt");

/// One line of the file: a case, its committed figure, and what it is meant to stay under, if anything.
struct Figure {
    name: String,
    committed: u64,
    target: Option<u64>,
    measured: Option<u64>,
}

impl Figure {
    fn parse(line: &str) -> Option<Self> {
        let (name, numbers) = line.split_once(':')?;
        let mut numbers = numbers.split_whitespace().map(|number| number.replace('_', "").parse().ok());
        let committed = numbers.next()??;
        Some(Self { name: name.trim().to_owned(), committed, target: numbers.next().flatten(), measured: None })
    }

    /// Growth in thousandths, negative if it shrank.
    fn change(&self, measured: u64) -> i64 {
        (measured as i64 - self.committed as i64) * 1000 / (self.committed.max(1) as i64)
    }

    fn has_grown(&self) -> bool {
        self.measured.is_some_and(|measured| measured * 100 > self.committed * (100 + TOLERANCE))
    }

    fn has_shrunk(&self) -> bool {
        self.measured.is_some_and(|measured| measured * 100 < self.committed * (100 - TOLERANCE))
    }
}

/// The file of committed figures with what was measured.
pub(crate) struct Figures {
    text: String,
    figures: Vec<Figure>,
}

impl Figures {
    /// Reads the file; it must have a figure for each of `names` and no other.
    pub(crate) fn load(names: impl Iterator<Item = &'static str>) -> Result<Self, String> {
        let text = std::fs::read_to_string(PATH).map_err(|error| format!("{PATH}: {error}"))?;
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let figures = lines
            .map(|line| Figure::parse(line).ok_or_else(|| format!("{PATH}: not `name: committed [target]`: {line}")))
            .collect::<Result<Vec<_>, _>>()?;
        let names: Vec<_> = names.collect();
        if let Some(name) = names.iter().find(|name| !figures.iter().any(|figure| figure.name == **name)) {
            return Err(format!("{PATH}: add a line `{name}: 0`, and run with `-- --commit`"));
        }
        if let Some(figure) = figures.iter().find(|figure| !names.contains(&figure.name.as_str())) {
            return Err(format!("{PATH}: there is no case {}", figure.name));
        }
        Ok(Self { text, figures })
    }

    /// Takes a measurement in.
    pub(crate) fn measured(&mut self, name: &str, count: u64) {
        if let Some(figure) = self.figures.iter_mut().find(|figure| figure.name == name) {
            figure.measured = Some(count);
        }
    }

    /// Says what to do about figures that are off; whether none has grown too much.
    pub(crate) fn judge(&self) -> bool {
        let grown: Vec<_> =
            self.figures.iter().filter(|figure| figure.has_grown()).map(|figure| figure.name.as_str()).collect();
        let shrunk: Vec<_> =
            self.figures.iter().filter(|figure| figure.has_shrunk()).map(|figure| figure.name.as_str()).collect();
        let how = "`cargo bench -p laneway-core --bench instructions -- --commit`";
        if !shrunk.is_empty() {
            println!("more than {TOLERANCE} % better, commit it with {how}: {}", shrunk.join(", "));
        }
        if !grown.is_empty() {
            println!(
                "more than {TOLERANCE} % worse: {}. Find out why with callgrind; if the cost is worth it, commit the new \
                 figure with {how} and say so in the commit",
                grown.join(", ")
            );
        }
        println!("{} passed, {} failed", self.figures.len() - grown.len(), grown.len());
        grown.is_empty()
    }

    /// Writes what was measured into the file; everything else in it stays.
    pub(crate) fn save(&self) {
        let mut text = String::new();
        for line in self.text.lines() {
            let figure = Figure::parse(line).filter(|_| !line.starts_with('#'));
            let known = figure.and_then(|parsed| self.figures.iter().find(|figure| figure.name == parsed.name));
            match known.and_then(|figure| figure.measured.map(|measured| (figure, measured))) {
                Some((figure, measured)) => {
                    let target = figure.target.map(|target| format!("{target:>8}")).unwrap_or_default();
                    let line = format!("{:<44}{measured:>8}{target}", format!("{}:", figure.name));
                    text.push_str(&line);
                }
                None => text.push_str(line),
            }
            text.push('\n');
        }
        std::fs::write(Path::new(PATH), text).expect("the file of figures can be written");
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<44}{:>9}{:>11}{:>9}{:>9}", "instructions", "measured", "committed", "change", "target")?;
        for figure in &self.figures {
            let Some(measured) = figure.measured else { continue };
            let change = figure.change(measured) as f64 / 10.0;
            let target = figure.target.map(|target| target.to_string()).unwrap_or_default();
            let missed = if figure.target.is_some_and(|target| measured > target) { "  missed" } else { "" };
            let grown = if figure.has_grown() { "  GROWN" } else { "" };
            let committed = figure.committed;
            writeln!(f, "{:<44}{measured:>9}{committed:>11}{change:>+8.1}%{target:>9}{missed}{grown}", figure.name)?;
        }
        Ok(())
    }
}
