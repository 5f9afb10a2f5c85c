//! Checks the stability of the ABI: within one major version no field moves, and only tables with a `struct_size` grow. The file
//! `abi-1.0.txt` describes version 1.0.

use minitensor_plugin_sdk::plugin::abi;

const FIRST: &str = include_str!("abi-1.0.txt");

/// Returns one line for each size, offset and constant, such as `Op 456`, `Op.doc 24` or `code MT_OK 0`.
fn all() -> Vec<String> {
    let mut lines = vec![format!("magic {:#x}", abi::MAGIC), format!("major {}", abi::MAJOR)];
    for layout in abi::LAYOUTS {
        lines.push(format!("{} {}", layout.name, layout.size));
        lines.extend(layout.fields.iter().map(|(field, offset)| format!("{}.{field} {offset}", layout.name)));
    }
    lines.extend(abi::CODES.iter().map(|(name, number)| format!("code {name} {number}")));
    lines.extend(abi::DTYPES.iter().map(|(dtype, number, name)| format!("dtype {name} {number:#x} {dtype}")));
    lines
}

/// Whether the table has a `struct_size`, so it may grow.
fn grows(table: &str) -> bool {
    let fields = abi::LAYOUTS.iter().find(|layout| layout.name == table).map(|layout| layout.fields);
    fields.is_some_and(|fields| fields.iter().any(|(field, _)| *field == "struct_size"))
}

/// Returns the lines of an earlier version that no longer hold. A field that was reserved may have got a name.
fn broken(earlier: &str, now: &[String]) -> Vec<String> {
    let has_field_at = |table: &str, offset: &str| {
        now.iter().filter_map(|l| l.strip_prefix(table)?.strip_prefix('.')?.split_once(' ')).any(|(_, at)| at == offset)
    };
    let holds = |line: &&str| match line.split_once(' ') {
        Some((field, offset)) if field.ends_with(".reserved") => {
            has_field_at(field.trim_end_matches(".reserved"), offset)
        }
        Some((table, size)) if grows(table) => {
            let current = now.iter().find_map(|l| l.strip_prefix(table)?.strip_prefix(' ')?.parse().ok());
            current.is_some_and(|current: usize| size.parse().is_ok_and(|size: usize| current >= size))
        }
        _ => now.iter().any(|l| l == line),
    };
    earlier.lines().filter(|line| !holds(line)).map(str::to_owned).collect()
}

#[test]
fn nothing_has_moved_since_the_first_version() {
    if std::env::var_os("BLESS").is_some() {
        return std::fs::write("tests/abi-1.0.txt", all().join("\n") + "\n").expect("the file can be written");
    }
    let broken = broken(FIRST, &all());
    assert!(broken.is_empty(), "plugins of ABI 1.0 would break, as this has changed: {broken:#?}");
}

#[test]
fn a_change_is_found() {
    let moved = |from: &str, to: &str| broken(&FIRST.replace(from, to), &all());
    assert_eq!(moved("Op.doc 24", "Op.doc 32"), ["Op.doc 32"]);
    assert_eq!(moved("Op.reserved 300", "Op.reserved 301"), ["Op.reserved 301"]);
    assert_eq!(moved("code MT_PANIC 7", "code MT_PANIC 8"), ["code MT_PANIC 8"]);
    // Only a table with a `struct_size` may grow.
    assert_eq!(moved("\nStr 16\n", "\nStr 8\n"), ["Str 8"]);
    let call = abi::LAYOUTS.iter().find(|layout| layout.name == "Call").expect("there is a call");
    assert!(moved(&format!("\nCall {}\n", call.size), "\nCall 8\n").is_empty());
}
