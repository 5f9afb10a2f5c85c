//! Methods of options, results, lists and iterators of tensors.

use super::kind::Kind;

/// The kind of the result of a method. `args` are the kinds of its arguments; the kind of a closure is that of its result.
pub fn method(of: &Kind, name: &str, args: &[Kind]) -> Kind {
    let argument = |i: usize| match args.get(i) {
        Some(Kind::Fn(result)) => (**result).clone(),
        Some(kind) => kind.clone(),
        None => Kind::Other,
    };
    let option = |kind: Kind| Kind::Option(Box::new(kind));
    let result = |kind: Kind| Kind::Result(Box::new(kind));
    let list = |kind: Kind| Kind::List(Box::new(kind));
    match (of, name) {
        (Kind::List(_), "iter" | "into_iter" | "iter_mut" | "rev" | "skip" | "take" | "step_by" | "chain")
        | (Kind::List(_), "copied" | "cloned" | "to_vec" | "as_slice" | "filter" | "clone" | "inspect" | "by_ref") => {
            of.clone()
        }
        (Kind::List(_), "first" | "last" | "get" | "next" | "next_back" | "pop" | "nth") => option(of.item()),
        (Kind::List(_), "split_first" | "split_last") => option(Kind::Tuple(vec![of.item(), of.clone()])),
        (Kind::List(_), "enumerate") => list(Kind::Tuple(vec![Kind::Other, of.item()])),
        (Kind::List(_), "zip") => list(Kind::Tuple(vec![of.item(), argument(0).item()])),
        (Kind::List(_), "map") => list(argument(0)),
        (Kind::List(_), "try_fold") => argument(1),
        (Kind::List(item), "collect") => match &**item {
            Kind::Result(item) => result(list((**item).clone())),
            _ => of.clone(),
        },
        (Kind::Option(inner) | Kind::Result(inner), "unwrap" | "expect") => (**inner).clone(),
        (Kind::Option(inner) | Kind::Result(inner), "unwrap_or" | "unwrap_or_else") => (**inner).clone().referred(),
        (Kind::Option(inner), "ok_or" | "ok_or_else") => result((**inner).clone()),
        (Kind::Option(_), "as_ref" | "as_deref" | "copied" | "or" | "or_else" | "filter" | "take") => of.clone(),
        (Kind::Option(_), "cloned") => of.clone(),
        (Kind::Option(_), "map") => option(argument(0)),
        (Kind::Option(_) | Kind::Result(_), "and_then") => argument(0),
        (Kind::Option(_), "map_or" | "map_or_else") => argument(1),
        (Kind::Option(_), "iter" | "into_iter") => list(of.clone().inside()),
        (Kind::Option(inner), "transpose") => match &**inner {
            Kind::Result(inner) => result(option((**inner).clone())),
            _ => Kind::Other,
        },
        (Kind::Result(_), "map") => result(argument(0)),
        (Kind::Result(_), "map_err" | "or_else") => of.clone(),
        (Kind::Result(inner), "ok") => option((**inner).clone()),
        _ => Kind::Other,
    }
}

/// The kinds of the arguments of a closure that a method takes. `before` are the arguments of the method before the closure.
pub fn closure_arguments(of: &Kind, name: &str, before: &[Kind]) -> Vec<Kind> {
    let inner = match of {
        Kind::Option(inner) | Kind::Result(inner) => (**inner).clone(),
        list => list.item(),
    };
    match name {
        "fold" | "try_fold" => vec![before.first().cloned().unwrap_or(Kind::Other), inner],
        "map_err" | "or_else" | "unwrap_or_else" | "ok_or_else" => vec![],
        _ => vec![inner],
    }
}
