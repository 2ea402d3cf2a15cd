//! The list of targets.

use anyhow::Result;
use api_actix::detection::Entry;
use wires::formats::Shape;

use crate::{chat, codecs, filters, journal, planted, readers, requests};

/// A fuzz target: a check of arbitrary bytes.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name on the command line.
    pub name: &'static str,
    /// Returns the violated property; never panics on invalid bytes.
    pub check: fn(&[u8]) -> Result<()>,
}

impl Target {
    /// Returns true if inputs are text, mostly JSON.
    pub fn reads_text(&self) -> bool {
        !self.name.starts_with("journal-")
    }
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target {
        name: "request-system-one",
        check: |input| {
            requests::check(Entry::Contract, None, input)?;
            requests::check(Entry::SystemOne, None, input)
        },
    },
    Target { name: "request-openai", check: |input| requests::check(Entry::AnyShape, Some(Shape::OpenAi), input) },
    Target { name: "request-gemini", check: |input| requests::check(Entry::Gemini, None, input) },
    Target { name: "request-sglang", check: |input| requests::check(Entry::AnyShape, Some(Shape::Sglang), input) },
    Target { name: "request-dispatch", check: requests::check_dispatch },
    Target { name: "request-draft", check: requests::check_draft },
    Target { name: "request-filters", check: filters::check },
    #[cfg(fuzzing)]
    Target { name: "request-multipart", check: crate::packed::check_form },
    #[cfg(fuzzing)]
    Target { name: "request-packed", check: crate::packed::check_packed },
    Target {
        name: "answer-system-one",
        check: |input| {
            readers::check(&codecs::SYSTEM_ONE, input)?;
            readers::check(&codecs::WORKERS_AI, input)?;
            readers::check(&codecs::DATABRICKS, input)
        },
    },
    Target { name: "answer-openai", check: |input| readers::check(&codecs::OPENAI, input) },
    Target { name: "answer-gemini", check: |input| readers::check(&codecs::GEMINI, input) },
    Target { name: "answer-sglang", check: |input| readers::check(&codecs::SGLANG, input) },
    Target { name: "answer-chat", check: chat::check },
    Target { name: "journal-entry", check: journal::check_entry },
    #[cfg(fuzzing)]
    Target { name: "journal-segments", check: crate::segments::check },
];

/// The target with a planted fault; not part of the list.
pub const PLANTED: Target = Target { name: "planted", check: planted::check };

/// Prints the names of all targets, one per line.
///
/// # Errors
/// A closed standard output.
pub fn list() -> std::io::Result<()> {
    use std::io::Write as _;
    let mut output = std::io::stdout().lock();
    TARGETS.iter().try_for_each(|target| writeln!(output, "{}", target.name))
}

/// Returns the target of that name.
pub fn named(name: &str) -> Option<Target> {
    TARGETS.iter().chain([&PLANTED]).find(|target| target.name == name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutation::mutated;
    use crate::random::Random;
    use crate::seeds;

    /// Checks that number of changed seeds, without coverage guidance; returns the first violated property.
    fn check_changed_seeds(target: &Target, count: u64) -> Option<String> {
        let seeds = seeds::of(target).unwrap();
        (0..count).find_map(|number| {
            let mut random = Random::new(number);
            let mut input = random.pick(&seeds).unwrap().clone();
            if target.reads_text() {
                input = mutated(&input, number);
            } else {
                let at = random.below(input.len());
                input[at] ^= 1 << (number % 8);
            }
            (target.check)(&input).err().map(|fault| format!("{fault:#}"))
        })
    }

    #[test]
    fn changed_seeds_find_planted_fault() {
        assert_eq!(check_changed_seeds(&PLANTED, 20_000).as_deref(), Some("the planted fault was found"));
    }

    #[test]
    fn every_target_passes_on_changed_seeds() {
        for target in TARGETS {
            assert_eq!(check_changed_seeds(target, 300), None, "{}", target.name);
        }
    }
}
