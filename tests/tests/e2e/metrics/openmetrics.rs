//! A strict parser of the `OpenMetrics` text format.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};

/// A name, and labels in the order of their names.
pub type Series = (String, BTreeMap<String, String>);

#[derive(Debug, Default)]
struct Family {
    kind: String,
    has_help: bool,
    unit: Option<String>,
    samples: Vec<(Series, String)>,
}

/// Returns every sample of a text with its literal value, or the violated rule.
pub fn read(text: &str) -> Result<BTreeMap<Series, String>> {
    let body = text.strip_suffix("# EOF\n").context("it does not end with an EOF line")?;
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    for line in body.split_terminator('\n') {
        line_of(line, &mut families, &mut current).with_context(|| format!("in the line {line:?}"))?;
    }
    let mut all = BTreeMap::new();
    for (name, family) in families {
        family.check(&name).with_context(|| format!("family {name}"))?;
        for (series, value) in family.samples {
            ensure!(all.insert(series.clone(), value).is_none(), "{series:?} is duplicated");
        }
    }
    Ok(all)
}

fn line_of(line: &str, families: &mut BTreeMap<String, Family>, current: &mut String) -> Result<()> {
    let Some(comment) = line.strip_prefix("# ") else {
        let (series, value) = sample(line)?;
        let family = families.get_mut(current).context("a sample before any family")?;
        family.samples.push((series, value));
        return Ok(());
    };
    let (keyword, rest) = comment.split_once(' ').context("an odd comment")?;
    let (name, said) = rest.split_once(' ').context("nothing is said")?;
    ensure!(is_name(name), "{name} is no name");
    if name != current {
        ensure!(!families.contains_key(name), "the family's lines do not stand together");
        name.clone_into(current);
        families.insert(name.to_owned(), Family::default());
    }
    let family = families.get_mut(name).context("the family is gone")?;
    ensure!(family.samples.is_empty(), "a description behind samples");
    match keyword {
        "HELP" => ensure!(!std::mem::replace(&mut family.has_help, true), "two helps"),
        "TYPE" => {
            ensure!(["counter", "gauge", "histogram", "info"].contains(&said), "the type {said}");
            ensure!(std::mem::replace(&mut family.kind, said.to_owned()).is_empty(), "two types");
        }
        "UNIT" => ensure!(family.unit.replace(said.to_owned()).is_none(), "two units"),
        other => bail!("the keyword {other}"),
    }
    Ok(())
}

fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    chars.next().is_some_and(first) && chars.all(|c| first(c) || c.is_ascii_digit())
}

/// Parses `name{label="value",…} number`.
fn sample(line: &str) -> Result<(Series, String)> {
    let end = line.find(['{', ' ']).context("no value")?;
    let (name, mut rest) = line.split_at(end);
    ensure!(is_name(name), "{name} is no name");
    let mut labels = BTreeMap::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            if !labels.is_empty() {
                rest = rest.strip_prefix(',').context("no comma between labels")?;
            }
            let (label, behind) = rest.split_once("=\"").context("a label without a value")?;
            ensure!(is_name(label), "{label} is no name of a label");
            let (value, behind) = quoted(behind)?;
            ensure!(labels.insert(label.to_owned(), value).is_none(), "{label} is duplicated");
            rest = behind;
        }
        rest = &rest[1..];
    }
    let number = rest.strip_prefix(' ').context("no space before the value")?;
    ensure!(number.parse::<f64>().is_ok_and(f64::is_finite), "the value is no number");
    Ok(((name.to_owned(), labels), number.to_owned()))
}

/// Splits at the closing quote: the unescaped value, and the rest.
fn quoted(text: &str) -> Result<(String, &str)> {
    let (mut value, mut chars) = (String::new(), text.char_indices());
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Ok((value, &text[at + 1..])),
            '\\' => match chars.next().map(|(_, escaped)| escaped) {
                Some('n') => value.push('\n'),
                Some(escaped @ ('"' | '\\')) => value.push(escaped),
                other => bail!("the escape {other:?}"),
            },
            char => value.push(char),
        }
    }
    bail!("a value without an end")
}

impl Family {
    fn check(&self, name: &str) -> Result<()> {
        ensure!(self.has_help && !self.kind.is_empty(), "no help or no type");
        ensure!(
            self.unit.as_ref().is_none_or(|unit| name.ends_with(&format!("_{unit}"))),
            "the unit is not in its name"
        );
        let suffixes: &[&str] = match self.kind.as_str() {
            "counter" => &["_total"],
            "gauge" => &[""],
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => &["_info"],
        };
        for ((sample, labels), value) in &self.samples {
            let suffix = sample.strip_prefix(name).context("a sample of another family")?;
            ensure!(suffixes.contains(&suffix), "{sample} in a {}", self.kind);
            ensure!(labels.contains_key("le") == (suffix == "_bucket"), "{sample} and its bound");
            ensure!(self.kind == "gauge" || !value.starts_with('-'), "{sample} is less than nothing");
        }
        if self.kind == "histogram" { self.check_buckets(name) } else { Ok(()) }
    }

    /// Checks that buckets are cumulative and that the last one contains all observations.
    fn check_buckets(&self, name: &str) -> Result<()> {
        let without_bound = |labels: &BTreeMap<String, String>| {
            let mut labels = labels.clone();
            labels.remove("le");
            labels
        };
        let groups: BTreeSet<_> = self.samples.iter().map(|((_, labels), _)| without_bound(labels)).collect();
        for group in groups {
            let of = |suffix: &str| {
                let wanted = format!("{name}{suffix}");
                let samples = self.samples.iter().filter(move |((name, _), _)| *name == wanted);
                samples.filter(|((_, labels), _)| without_bound(labels) == group).collect::<Vec<_>>()
            };
            let [((_, _), count)] = of("_count")[..] else { bail!("no count, or several, of {group:?}") };
            ensure!(of("_sum").len() == 1, "no sum, or several, of {group:?}");
            let (mut bound, mut inside) = (f64::NEG_INFINITY, 0);
            for ((_, labels), value) in of("_bucket") {
                let le = &labels["le"];
                let le = if le == "+Inf" { f64::INFINITY } else { le.parse()? };
                let value: u64 = value.parse()?;
                ensure!(le > bound && value >= inside, "buckets out of order of {group:?}");
                (bound, inside) = (le, value);
            }
            ensure!(
                bound.is_infinite() && inside.to_string() == *count,
                "the last bucket of {group:?} does not hold everything"
            );
        }
        Ok(())
    }
}

#[test]
fn read_accepts_valid_text_and_rejects_invalid_text() -> Result<()> {
    let right = "# HELP a_seconds A.\n# TYPE a_seconds histogram\n# UNIT a_seconds seconds\n\
        a_seconds_sum{r=\"x\\\"\\n\"} 1.5\na_seconds_count{r=\"x\\\"\\n\"} 2\n\
        a_seconds_bucket{le=\"0.1\",r=\"x\\\"\\n\"} 1\na_seconds_bucket{le=\"+Inf\",r=\"x\\\"\\n\"} 2\n\
        # HELP b B.\n# TYPE b counter\nb_total 3\n# EOF\n";
    ensure!(read(right)?.len() == 5);
    for (from, to) in [
        ("# EOF\n", ""),
        ("b_total 3", "b 3"),
        ("b_total 3", "b_total 3\nb_total 3"),
        ("b_total 3", "b_total -3"),
        ("b_total 3", "b_total three"),
        ("b_total 3", "b_total  3"),
        ("b_total 3", "b_total{a=\"1\",a=\"2\"} 3"),
        ("b_total 3", "b_total{a=\"\\x\"} 3"),
        ("b_total 3", "c_total 3"),
        ("# TYPE b counter\n", ""),
        ("# HELP b B.\n", ""),
        ("seconds_count{r=\"x\\\"\\n\"} 2", "seconds_count{r=\"x\\\"\\n\"} 3"),
        ("{le=\"0.1\",r=\"x\\\"\\n\"} 1", "{le=\"0.1\",r=\"x\\\"\\n\"} 9"),
        ("# UNIT a_seconds seconds", "# UNIT a_seconds bytes"),
    ] {
        let wrong = right.replacen(from, to, 1);
        ensure!(wrong != right && read(&wrong).is_err(), "{wrong}");
    }
    Ok(())
}
