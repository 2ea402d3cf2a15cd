//! JSON paths of findings, without any matched text.

use std::fmt::Write as _;
use std::ops::Range;

use super::bits::Bits;
use super::found::{Node, NodeKind};
use crate::json::{Token, Tokens, string_content};

/// The highest length in bytes of a name in a path.
const MAX_NAME_BYTES: usize = 64;

struct Frame {
    is_object: bool,
    /// The number of members or elements so far.
    count: usize,
    name: Range<usize>,
}

/// Returns the paths of nodes, computed in one walk. Names that begin at one of `hidden` are replaced by their index, as
/// are long names and names with special characters.
pub(super) fn paths_of_nodes(text: &str, root: &str, nodes: &[Node], hidden: &Bits) -> Vec<String> {
    let mut paths = vec![root.to_owned(); nodes.len()];
    let mut wanted: Vec<(usize, usize)> = nodes.iter().enumerate().map(|(place, node)| (node.start, place)).collect();
    wanted.retain(|(_, place)| nodes.get(*place).is_some_and(|node| node.kind != NodeKind::Text));
    wanted.sort_unstable();
    let mut wanted = wanted.into_iter().peekable();
    let mut frames: Vec<Frame> = Vec::new();
    for (token, span) in Tokens::new(text).without_separators() {
        if wanted.peek().is_none() {
            break;
        }
        if let Some(frame) = frames.last_mut() {
            match token {
                Token::Name => {
                    frame.count += 1;
                    frame.name = span.clone();
                }
                Token::Close => {}
                _ if !frame.is_object => frame.count += 1,
                _ => {}
            }
        }
        while let Some((_, place)) = wanted.next_if(|(start, _)| *start <= span.start) {
            paths[place] = write_path(text, root, &frames, token == Token::Name, hidden);
        }
        match token {
            Token::Object | Token::Array => {
                frames.push(Frame { is_object: token == Token::Object, count: 0, name: 0..0 });
            }
            Token::Close => drop(frames.pop()),
            _ => {}
        }
    }
    paths
}

fn write_path(text: &str, root: &str, frames: &[Frame], is_key: bool, hidden: &Bits) -> String {
    let mut path = root.to_owned();
    let frames = if is_key { &frames[..frames.len().saturating_sub(1)] } else { frames };
    for frame in frames {
        // Writing to a string cannot fail.
        let _ = if !frame.is_object {
            write!(path, "[{}]", frame.count.saturating_sub(1))
        } else if is_shown(text, &frame.name, hidden) {
            write!(path, ".{}", &text[string_content(frame.name.clone())])
        } else {
            write!(path, ".(key {})", frame.count)
        };
    }
    if is_key {
        path.push_str(" (key)");
    }
    path
}

fn is_shown(text: &str, name: &Range<usize>, hidden: &Bits) -> bool {
    let content = &text[string_content(name.clone())];
    !content.is_empty()
        && content.len() <= MAX_NAME_BYTES
        && content.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        && !hidden.contains(name.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_replace_hidden_and_long_names_by_index() {
        let text = r#"{"a":[{"b":1},"x"],"two words":{"c":"y"},"secret":[[],{"d":"z"}],"":true}"#;
        let node = |wanted: &str, kind: NodeKind| {
            let start = text.find(wanted).unwrap();
            Node { kind, start, end: start + wanted.len(), object: 0 }
        };
        let nodes = [
            node("\"z\"", NodeKind::String),
            node("1", NodeKind::Number),
            node("\"x\"", NodeKind::String),
            node("\"y\"", NodeKind::String),
            node("\"d\"", NodeKind::Key),
            node("\"a\"", NodeKind::Key),
            node("true", NodeKind::String),
        ];
        let mut hidden = Bits::new(text.len());
        hidden.insert(text.find("\"secret\"").unwrap());
        let expected = [
            "state.(key 3)[1].d",
            "state.a[0].b",
            "state.a[1]",
            "state.(key 2).c",
            "state.(key 3)[1] (key)",
            "state (key)",
            "state.(key 4)",
        ];
        assert_eq!(paths_of_nodes(text, "state", &nodes, &hidden), expected);
        assert_eq!(paths_of_nodes("\"x\"", "state", &[node("{", NodeKind::String)], &Bits::default()), ["state"]);
    }
}
