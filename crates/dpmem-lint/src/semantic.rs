//! What a module means, as far as the rules need it.
//!
//! [`Index`] gives every node its parent, block, scope and innermost loop; [`flow`] computes which kind of value each
//! expression holds; [`Model`] joins both and answers the questions rules ask: is this loop-invariant, is it kept,
//! how often does this run. Nothing here knows a rule.

mod annotation;
mod effects;
mod flow;
mod index;
mod library;
mod model;
mod value;

pub(crate) use index::{ExprId, FunctionId, FunctionKind, LoopId, LoopKind, MODULE, StmtId};
pub(crate) use library::{accepts_out, delegates, is_elementwise, is_reduction, strip_library};
pub(crate) use model::{Fate, Model, keyword, root_name};
pub(crate) use value::{Array, Category, Dim, Dtype, Queue, Value};
