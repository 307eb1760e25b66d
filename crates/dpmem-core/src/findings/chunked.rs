//! Whether a line of source works on one chunk after the other: on a slice whose bounds move with the loop, or in a
//! loop over `dpmem.chunks(...)`.
//!
//! A slice of a device array leaves no trace in the runtime, so the text of the program has to tell. It is looked at
//! line by line, without a parser; what is not evident counts as no chunk.

/// Lines above the one in question that are looked at.
const LOOKED_BACK: u32 = 25;

/// Whether line `line`, or one above it in the same loop, takes a slice bounded by the loop's variable, or the loop goes
/// through `chunks`. `text` gives a line of the file.
pub(super) fn moves_with_loop(line: u32, text: &dyn Fn(u32) -> Option<String>) -> bool {
    let Some(own) = text(line) else { return false };
    if has_moving_slice(&own, &loop_variables(&own)) || goes_through_chunks(&own) {
        return true;
    }
    let mut depth = indentation(&own);
    let mut body = vec![own];
    for number in (line.saturating_sub(LOOKED_BACK).max(1)..line).rev() {
        let Some(above) = text(number) else { break };
        if above.trim().is_empty() || above.trim_start().starts_with('#') {
            continue;
        }
        if indentation(&above) >= depth {
            body.push(above);
            continue;
        }
        depth = indentation(&above);
        let variables = loop_variables(&above);
        if !variables.is_empty() {
            return goes_through_chunks(&above) || body.iter().any(|line| has_moving_slice(line, &variables));
        }
        if above.trim_start().starts_with("def ") || above.trim_start().starts_with("class ") {
            break;
        }
        body.push(above);
    }
    false
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The names that `for ... in` binds on a line, in a statement or in comprehensions.
fn loop_variables(line: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find("for ") {
        let starts_word = rest[..at].chars().next_back().is_none_or(|c| !is_name(c));
        rest = &rest[at + 4..];
        if let Some((targets, after)) = rest.split_once(" in ").filter(|_| starts_word) {
            names.extend(words(targets));
            rest = after;
        }
    }
    names
}

/// Whether `for ... in` on a line goes through what a function `chunks` answers.
fn goes_through_chunks(line: &str) -> bool {
    let iterated =
        line.split("for ").skip(1).filter_map(|rest| rest.split_once(" in ")).map(|(_, after)| after);
    iterated
        .flat_map(|text| text.match_indices("chunks(").map(move |(at, _)| &text[..at]))
        .any(|before| before.chars().next_back().is_none_or(|c| !is_name(c)))
}

/// Whether a subscript on the line has bounds on both sides of a colon, one of them with one of the names.
fn has_moving_slice(line: &str, names: &[&str]) -> bool {
    let subscripts = line.split('[').skip(1).filter_map(|part| part.split(']').next());
    let mut slices =
        subscripts.flat_map(|subscript| subscript.split(',')).filter_map(|part| part.split_once(':'));
    slices.any(|(low, high)| [low, high].iter().any(|bound| words(bound).any(|word| names.contains(&word))))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !is_name(c)).filter(|word| !word.is_empty())
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn moves(source: &str) -> bool {
        let lines: Vec<String> = source.lines().map(str::to_string).collect();
        let line = 1 + lines.iter().position(|line| line.contains("float(")).expect("a read") as u32;
        moves_with_loop(line, &|number| lines.get(number as usize - 1).cloned())
    }

    #[test]
    fn slices_that_move_with_the_loop() {
        assert!(moves("for i in range(0, n, 100):\n    total += float(x[i : i + 100].sum())"));
        assert!(moves("largest = [float(x[i:i + 100].max()) for i in range(0, n, 100)]"));
        assert!(moves(
            "for start, stop in bounds:\n    part = x[start:stop]\n\n    # the sum\n    total += float(part.sum())"
        ));
        assert!(moves(
            "for k in range(9):\n    part = x[k * n:(k + 1) * n, :]\n    if part.size:\n        y = float(part.sum())"
        ));
    }

    #[test]
    fn loops_over_chunks() {
        assert!(moves(
            "for index, x in dpmem.chunks(path, 100):\n    y = x * x\n    total += float(y.sum())"
        ));
        assert!(moves("for _, x in enumerate(chunks(path)):\n    total += float(x.sum())"));
        assert!(moves("total = sum(float(x.sum()) for _, x in dpmem.chunks(path))"));
        assert!(!moves(
            "for _, x in dpmem.chunks(path):\n    for step in range(100):\n        v = float(x.sum())"
        ));
        assert!(!moves("for x in mychunks(path):\n    total += float(x.sum())"));
        assert!(!moves("x = chunks(path)\nfor step in range(9):\n    total += float(x.sum())"));
    }

    #[test]
    fn other_loops() {
        assert!(!moves("for step in range(100):\n    loss = float(x.sum())"));
        assert!(!moves("for step in range(100):\n    x[1:-1] = x[:-2]\n    loss = float(x[1:n].sum())"));
        assert!(!moves("for i in range(100):\n    value = float(x[i])"));
        assert!(!moves(
            "for i in range(9):\n    y = x[i:i + 2]\nfor step in range(100):\n    loss = float(x.sum())"
        ));
        assert!(!moves("def f(x):\n    return float(x[a:b].sum())"));
    }
}
