//! The tables of the macro against the code and the messages that they describe.

use std::path::PathBuf;

use crate::diag::messages;

#[test]
fn the_macro_knows_every_method_of_tensors() {
    use crate::lower::tensor::Returns;
    let src = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../minitensor/src");
    let of = |folder: &str| std::fs::read_dir(src.join(folder)).unwrap().map(|file| file.unwrap().path());
    for file in of("tensor").chain([src.join("autograd/meta.rs"), src.join("guest/tensor.rs")]) {
        for item in syn::parse_file(&std::fs::read_to_string(file).unwrap()).unwrap().items {
            let syn::Item::Impl(item) = item else { continue };
            if item.trait_.is_some() || crate::ast::spelling(&item.self_ty) != "Tensor" {
                continue;
            }
            for part in item.items {
                let syn::ImplItem::Fn(method) = part else { continue };
                let is_method = matches!(method.sig.inputs.first(), Some(syn::FnArg::Receiver(_)));
                if !is_method || !matches!(method.vis, syn::Visibility::Public(_)) {
                    continue;
                }
                let returns = match crate::ast::spelling(&method.sig.output).as_str() {
                    "->Tensor" => Returns::Tensor,
                    "->Result<Tensor>" => Returns::Result,
                    _ => Returns::Other,
                };
                let name = method.sig.ident.to_string();
                assert_eq!(crate::lower::tensor::method(&name), Some(returns), "{name}");
            }
        }
    }
}

#[test]
fn every_message_is_shown_to_a_reader() {
    let ui = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../ui-tests/ui");
    let folders = std::fs::read_dir(ui).unwrap().map(|folder| folder.unwrap().path());
    let cases = folders.flat_map(|folder| std::fs::read_dir(folder).unwrap()).map(|case| case.unwrap().path());
    let shown: String = cases
        .filter(|case| case.extension().is_some_and(|e| e == "stderr"))
        .map(|c| std::fs::read_to_string(c).unwrap())
        .collect();
    for (name, message) in messages::ALL.iter().chain(minitensor_schema::message::OF_MACRO) {
        let parts = || message.text.split("{}");
        let appears = shown.lines().any(|line| line.starts_with("error: ") && parts().all(|part| line.contains(part)));
        assert!(appears, "no case of ui-tests shows {name}: {}", message.text);
    }
    let blank = |line: &&str| line.contains("{}") && (line.starts_with("error: ") || line.contains("help: "));
    assert_eq!(shown.lines().find(blank), None, "a blank was left in a message");
}

/// The methods of the traits in a file of the kernels: the trait, the method, and its return type.
fn methods_of(file: &str) -> Vec<(String, String, String)> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../kernels/src").join(file);
    let file = syn::parse_file(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut methods = vec![];
    for item in file.items {
        let syn::Item::Trait(item) = item else { continue };
        for part in item.items {
            let syn::TraitItem::Fn(method) = part else { continue };
            let returns = crate::ast::spelling(&method.sig.output);
            methods.push((item.ident.to_string(), method.sig.ident.to_string(), returns));
        }
    }
    methods
}

#[test]
fn the_macro_knows_every_method_of_complex_numbers() {
    use crate::body::methods::{COMPLEX_ITEMS, COMPLEX_PARTS};
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../kernels/src/number/cartesian.rs");
    let file = syn::parse_file(&std::fs::read_to_string(path).unwrap()).unwrap();
    let (mut items, mut parts) = (vec![], vec![]);
    for item in file.items {
        let syn::Item::Impl(item) = item else { continue };
        for part in item.items {
            let syn::ImplItem::Fn(function) = part else { continue };
            let (name, output) = (function.sig.ident.to_string(), crate::ast::spelling(&function.sig.output));
            match (function.sig.receiver(), output.as_str()) {
                (Some(_), "->T") => parts.push(name),
                (None, "->Self") if !["constant", "select"].contains(&name.as_str()) => items.push(name),
                _ => {}
            }
        }
    }
    parts.sort();
    items.sort();
    let sorted = |names: &[&str]| {
        let mut names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        names.sort();
        names
    };
    assert_eq!((sorted(COMPLEX_PARTS), sorted(COMPLEX_ITEMS)), (parts, items));
}

#[test]
fn the_macro_knows_every_method_of_elements_and_rows() {
    use crate::body::methods::{BITS, MASKS, METHODS, PAIRS, ROW_METHODS};
    let traits: Vec<&str> = METHODS.iter().map(|(bound, _)| *bound).collect();
    let methods = methods_of("number/scalar.rs");
    // Those that `Bits` is made of are no methods of bodies.
    let is_part = |name: &str| ["of_bits", "bits", "bits_equal", "bits_less"].contains(&name);
    let of_elements = methods.iter().filter(|(of, name, _)| traits.contains(&of.as_str()) && !is_part(name));
    let mut count = 0;
    for (of, name, returns) in of_elements {
        let table = match returns.as_str() {
            "->Self" => METHODS,
            "->Self::Mask" => MASKS,
            "->Bits<Self>" => BITS,
            _ => PAIRS,
        };
        let known = table.iter().any(|(bound, names)| bound == of && names.contains(&name.as_str()));
        assert!(known, "{of}::{name} {returns}");
        count += 1;
    }
    let listed: usize =
        [METHODS, MASKS, BITS, PAIRS].iter().flat_map(|table| table.iter()).map(|(_, names)| names.len()).sum();
    assert_eq!(count, listed);
    for (_, name, _) in methods_of("row/mod.rs").iter().filter(|(of, ..)| of.ends_with("Row")) {
        let other = ["reduce", "of_row", "stands_at", "any", "all", "scan"].contains(&name.as_str());
        assert!(other || ROW_METHODS.iter().any(|(row, _)| row == name), "Row::{name}");
    }
}
