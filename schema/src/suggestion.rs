//! Suggestions for misspelled names.

use std::fmt::Display;

/// The length limit, in bytes, of a name that is compared with others, and of a list of names in a message.
const MOST_BYTES: usize = 200;

/// "did you mean `shape`?", or the names to choose from.
pub fn suggestion(name: &str, known: &[&str]) -> String {
    // Such long names are not typing errors, and are slow to compare.
    let is_short = |name: &str| name.len() < MOST_BYTES;
    let near = nearest(name, known.iter().copied().filter(|k| is_short(k))).filter(|_| is_short(name));
    match near {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => "there are no names to choose from".to_owned(),
        None if known.len() == 1 => format!("the only name is {}", shortened(&list(known))),
        None => format!("the names are {}", shortened(&list(known))),
    }
}

/// `a`, `b` and `c`
pub fn list<T: Display>(names: &[T]) -> String {
    let quoted: Vec<_> = names.iter().map(|n| format!("`{n}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

/// A text on one line, truncated after [`MOST_BYTES`] characters.
pub fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MOST_BYTES) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// The name in `known` nearest to a misspelled one.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Another single letter is another name.
    let length = name.chars().count();
    let limit = if length > 1 { (length / 3).max(1) } else { 0 };
    let scored = known.into_iter().map(|k| (distance(name, k), k));
    scored.filter(|(d, _)| *d <= limit).min_by_key(|(d, _)| *d).map(|(_, k)| k)
}

/// Parameters of NumPy and PyTorch, and the names that they may have here.
const SYNONYMS: &[(&str, &[&str])] = &[
    ("a", &["x"]),
    ("a_max", &["hi"]),
    ("a_min", &["lo"]),
    ("ddof", &["correction"]),
    ("dim", &["axis", "axes"]),
    ("dim0", &["axis0"]),
    ("dim1", &["axis1"]),
    ("dims", &["axis", "axes"]),
    ("end_dim", &["end"]),
    ("indices", &["index"]),
    ("input", &["x"]),
    ("keepdim", &["keepdims"]),
    ("max", &["hi"]),
    ("min", &["lo"]),
    ("newshape", &["shape"]),
    ("other", &["y"]),
    ("size", &["shape"]),
    ("start_dim", &["start"]),
    ("unbiased", &["correction"]),
    ("x1", &["x"]),
    ("x2", &["y"]),
];

/// The name in `known` of a parameter that NumPy or PyTorch calls `name`.
pub fn synonym<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let (_, synonyms) = SYNONYMS.iter().find(|(theirs, _)| *theirs == name)?;
    known.into_iter().find(|ours| synonyms.contains(ours))
}

/// The optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let substituted = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let edit = substituted.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                if swapped { edit.min(rows[i - 2][j - 2] + 1) } else { edit }
            };
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested_or_all_are_listed() {
        assert_eq!(suggestion("sise", &["n", "size"]), "did you mean `size`?");
        assert_eq!(suggestion("gard", &["grad"]), "did you mean `grad`?");
        assert_eq!(suggestion("other", &["n", "m"]), "the names are `n` and `m`");
        assert_eq!(suggestion("c", &["h", "w"]), "the names are `h` and `w`");
        assert_eq!(suggestion("other", &[]), "there are no names to choose from");
        let long = "x".repeat(100_000);
        assert!(suggestion(&long, &[&long, "n"]).chars().count() < 220);
    }

    #[test]
    fn the_names_of_numpy_and_pytorch_are_known() {
        assert_eq!(synonym("dim", ["x", "axis"]), Some("axis"));
        assert_eq!(synonym("dim", ["x", "axes"]), Some("axes"));
        assert_eq!(synonym("dim", ["x"]), None);
        assert!(SYNONYMS.is_sorted());
    }
}
