//! A map from positions in a view of a text to positions in its source.

use std::ops::Range;

/// The number of atoms between two checkpoints.
const CHECKPOINT_ATOMS: usize = 32;

/// A map from positions in a view to positions in the source. Bytes map one to one, except for atoms. An atom takes
/// about three bytes: a text may consist of nothing else.
#[derive(Debug, Clone, Default)]
pub(super) struct Map {
    /// The atoms as three numbers each: the bytes since the atom before it, its bytes in the view and in the source.
    /// Seven bits a byte, the highest bit marks a number that goes on.
    atoms: Vec<u8>,
    /// The state before every atom whose number is a multiple of [`CHECKPOINT_ATOMS`].
    checkpoints: Vec<Cursor>,
    /// The state behind the last atom.
    end: Cursor,
    /// The start of the view in the source.
    base: usize,
    count: usize,
}

/// A part of the view that stands for other bytes of the source, such as a decoded escape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Atom {
    pub(super) view: Range<usize>,
    pub(super) source: Range<usize>,
}

/// A state between two atoms.
#[derive(Debug, Clone, Copy, Default)]
struct Cursor {
    /// The position in `atoms`.
    at: usize,
    /// The end of the last atom in the view and in the source.
    view: usize,
    source: usize,
}

impl Map {
    /// Creates the map of a view without atoms that begins at `base`.
    pub(super) fn new(base: usize) -> Self {
        Self { base, end: Cursor { source: base, ..Cursor::default() }, ..Self::default() }
    }

    /// Returns the start of the view in the source.
    pub(super) fn base(&self) -> usize {
        self.base
    }

    /// Adds an atom behind all others. Its source follows that of the text before it.
    pub(super) fn push(&mut self, atom: &Atom) {
        if self.count.is_multiple_of(CHECKPOINT_ATOMS) {
            self.checkpoints.push(self.end);
        }
        self.count += 1;
        for number in [atom.view.start - self.end.view, atom.view.len(), atom.source.len()] {
            write_number(&mut self.atoms, number);
        }
        self.end = Cursor { at: self.atoms.len(), view: atom.view.end, source: atom.source.end };
    }

    /// Returns the atoms that begin at a position of the view or behind it, and possibly some before it.
    pub(super) fn atoms_from(&self, view: usize) -> impl Iterator<Item = Atom> {
        let mut cursor = self.before(view);
        std::iter::from_fn(move || cursor.next(&self.atoms))
    }

    /// Returns a state before a position of the view.
    fn before(&self, view: usize) -> Cursor {
        let after = self.checkpoints.partition_point(|checkpoint| checkpoint.view <= view);
        let last = after.checked_sub(1).and_then(|before| self.checkpoints.get(before)).copied();
        last.unwrap_or(Cursor { source: self.base, ..Cursor::default() })
    }

    /// Returns the source range of a view range that is not empty.
    pub(super) fn source(&self, view: Range<usize>) -> Range<usize> {
        let start = self.source_of(view.start).start;
        start..self.source_of(view.end.saturating_sub(1)).end.max(start)
    }

    /// Returns the source of one byte of the view.
    fn source_of(&self, view: usize) -> Range<usize> {
        let mut last = self.before(view);
        for atom in self.atoms_from(view).take_while(|atom| atom.view.start <= view) {
            if view < atom.view.end {
                return atom.source;
            }
            (last.view, last.source) = (atom.view.end, atom.source.end);
        }
        let source = last.source + (view - last.view);
        source..source + 1
    }
}

impl Cursor {
    fn next(&mut self, atoms: &[u8]) -> Option<Atom> {
        let gap = self.read_number(atoms)?;
        let (in_view, in_source) = (self.read_number(atoms)?, self.read_number(atoms)?);
        let (view, source) = (self.view + gap, self.source + gap);
        (self.view, self.source) = (view + in_view, source + in_source);
        Some(Atom { view: view..self.view, source: source..self.source })
    }

    fn read_number(&mut self, atoms: &[u8]) -> Option<usize> {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = *atoms.get(self.at)?;
            self.at += 1;
            number |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
            shift += 7;
        }
    }
}

fn write_number(atoms: &mut Vec<u8>, mut number: usize) {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 && low < 0x80 {
            return atoms.push(low);
        }
        atoms.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn map_finds_the_source_of_every_byte(
            base in 0_usize..9,
            atoms in prop::collection::vec((prop_oneof![0_usize..3, 100_usize..400], 0_usize..4, 0_usize..300), 0..150),
        ) {
            let (mut map, mut expected, mut source) = (Map::new(base), Vec::new(), base);
            for (gap, in_view, in_source) in atoms {
                expected.extend((source..source + gap).map(|at| at..at + 1));
                source += gap;
                let (view, end) = (expected.len(), source + in_source);
                map.push(&Atom { view: view..view + in_view, source: source..end });
                expected.extend(std::iter::repeat_n(source..end, in_view));
                source = end;
            }
            expected.extend((source..source + 2).map(|at| at..at + 1));
            for (view, source) in expected.iter().enumerate() {
                prop_assert_eq!(map.source(view..view + 1), source.clone());
            }
            let all = map.source(0..expected.len());
            prop_assert_eq!(all, expected[0].start..expected[expected.len() - 1].end.max(expected[0].start));
        }
    }
}
