//! Loops whose variable says that one iteration is a large piece of work.

use rustc_hash::FxHashSet;

use crate::parse::Expr;
use crate::semantic::{LoopId, LoopKind, Model};

const LARGE: &[&str] = &[
    "epoch",
    "chunk",
    "block",
    "batch",
    "minibatch",
    "file",
    "filename",
    "path",
    "part",
    "shard",
    "tile",
    "page",
    "fold",
    "trial",
    "case",
    "repeat",
    "run",
    "seed",
    "round",
    "device",
    "dtype",
    "size",
    "shape",
    "config",
    "queue",
    "name",
];

/// True for `for batch in …`, `for i, chunk in …` and the like.
pub(super) fn names_large_step(model: &Model<'_>, id: LoopId) -> bool {
    let target = match &model.index.loops[id.at()].kind {
        LoopKind::For(node) => &*node.target,
        LoopKind::Comprehension(_, generator) => &generator.target,
        LoopKind::While(_) => return false,
    };
    let mut names = FxHashSet::default();
    target_names(target, &mut names);
    names.iter().any(|name| {
        let name = name.to_ascii_lowercase();
        name.split('_').any(|word| LARGE.contains(&word) || LARGE.contains(&word.trim_end_matches('s')))
    })
}

/// The names that a loop's target binds.
pub(super) fn target_names<'a>(target: &'a Expr, names: &mut FxHashSet<&'a str>) {
    match target {
        Expr::Name(name) => {
            names.insert(name.id.as_str());
        }
        Expr::Tuple(tuple) => tuple.elts.iter().for_each(|element| target_names(element, names)),
        _ => {}
    }
}
