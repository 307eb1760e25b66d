//! Chains in a person's words: from a root, link by link, to an array; and which link says most about it.
//!
//! The notation: a path starts at the root (`__main__.kept`, `train.py step(): work` for a running frame,
//! `thread 'loader'…`), and goes on with `.attribute`, `[index]`, `['key']`, `{…}` for an element of a set,
//! `.__traceback__ → step(): work` for a variable of a frame that has failed, ` → gen(): x` for one of a suspended
//! generator, ` → closure x`. Two forms are put around what they are about: `default of __main__.f(cache)` and
//! `functools lru_cache of __main__.load`.

use dpmem_core::findings::HolderKind as Kind;

use super::graph::{Graph, NONE, Reach};
use super::links::{Link, Links};
use super::roots::RootName;
use super::types::Class;

/// Where chains begin that no Python object begins.
pub(super) const OUTSIDE: &str = "C or C++ code";
/// What IPython keeps of the last cell, apart from its output.
const LAST_RESULT: &str = "the last result";
/// Longer paths lose their middle.
const MAX_PATH: usize = 240;
/// Longer chains are not followed; they would say nothing to a person.
const MAX_CHAIN: usize = 64;
/// Names under which a notebook keeps what cells answered.
const NOTEBOOK_NAMES: [&str; 8] = ["Out", "In", "_oh", "_ih", "_", "__", "___", "_dh"];

/// A chain on its way into words.
pub(super) struct Chain {
    pub(super) path: String,
    /// The name that the chain begins with.
    pub(super) root: Option<String>,
    pub(super) kinds: Vec<Kind>,
    /// The first container or cache that it leads through, and its node.
    pub(super) owner: Option<(String, u32)>,
    pub(super) cache: Option<u32>,
    /// Whether the object that the next link leads from is IPython's own.
    of_shell: bool,
}

/// A chain's nodes from its root to the referrer of an array.
pub(super) fn nodes_to(graph: &Graph<'_, '_>, referrer: u32) -> Vec<u32> {
    let mut nodes = vec![referrer];
    loop {
        let last = graph.node(nodes[nodes.len() - 1]);
        if last.parent == NONE || nodes.len() >= MAX_CHAIN || nodes.contains(&last.parent) {
            break;
        }
        // Nothing names a cycle from outside: its chain begins where a person could begin.
        if last.reach == Reach::Cycle && can_begin(last.class) {
            break;
        }
        nodes.push(last.parent);
    }
    nodes.reverse();
    nodes
}

fn can_begin(class: Class) -> bool {
    matches!(class, Class::Plain | Class::Exception | Class::Generator | Class::Function | Class::Notebook)
}

pub(super) struct Teller<'a, 'h, 'py> {
    pub(super) graph: &'a Graph<'h, 'py>,
    pub(super) links: &'a Links<'h, 'py>,
    /// Whether the program is a notebook's.
    pub(super) notebook: bool,
}

/// What the next links are about, where that takes more than one.
#[derive(Clone, Copy, PartialEq)]
enum Within {
    Nothing,
    /// The dict of an object's attributes.
    Names,
    /// The dict of a frame's variables.
    Locals,
    Defaults(u32),
    Closure(u32),
    Cache,
}

impl Teller<'_, '_, '_> {
    /// Tells a chain: its nodes and, after each node, the link to the next one or to the array itself.
    pub(super) fn tell(&self, nodes: &[u32], links: &[Link]) -> Chain {
        let mut chain = self.beginning(nodes[0]);
        let first = self.graph.node(nodes[0]);
        if first.parent != NONE && matches!(first.reach, Reach::Root(_)) {
            // The chain is longer than anybody would read; what it says next is not the root's.
            chain.path += " …";
            chain.root = Some(chain.path.clone());
        }
        let mut within = Within::Nothing;
        for (node, link) in nodes.iter().zip(links) {
            self.note_class(&mut chain, *node);
            within = self.step(&mut chain, *node, link, within);
            if chain.root.is_none() && within == Within::Nothing && *link != Link::Through {
                chain.root = Some(chain.path.clone());
            }
        }
        chain.path = shortened(&chain.path);
        chain
    }

    fn beginning(&self, first: u32) -> Chain {
        let node = self.graph.node(first);
        let kind = || self.graph.types.name(node.object.type_address());
        let (path, kinds) = match node.reach {
            Reach::Root(number) => match &self.links.roots[number as usize].name {
                RootName::Module(name) => (name.clone(), vec![Kind::Global]),
                RootName::Frame { label, thread: None } => (label.clone(), vec![Kind::Local]),
                RootName::Frame { label, thread: Some(thread) } => {
                    (format!("thread '{thread}': {label}"), vec![Kind::Local, Kind::Thread])
                }
                RootName::Thread(name) => (format!("thread '{name}'"), vec![Kind::Thread]),
                RootName::Handled => ("the exception being handled".to_string(), vec![Kind::Exception]),
            },
            Reach::Outside => match self.on_a_stack(node.object.address()) {
                Some(chain) => return chain,
                None => (format!("{OUTSIDE} → {}", kind()), vec![Kind::Other]),
            },
            Reach::Cycle => (format!("unreachable {}", kind()), vec![Kind::Cycle]),
        };
        Chain { path, root: None, kinds, owner: None, cache: None, of_shell: false }
    }

    /// A value without a name that a running frame is working with.
    pub(super) fn on_a_stack(&self, address: usize) -> Option<Chain> {
        let root = self.links.roots.iter().find(|root| root.stack.contains(&address))?;
        let RootName::Frame { label, thread } = &root.name else { return None };
        let (path, kinds) = match thread {
            None => (format!("{label}: a value without a name"), vec![Kind::Local]),
            Some(thread) => (
                format!("thread '{thread}': {label}: a value without a name"),
                vec![Kind::Local, Kind::Thread],
            ),
        };
        Some(Chain { root: Some(path.clone()), path, kinds, owner: None, cache: None, of_shell: false })
    }

    fn note_class(&self, chain: &mut Chain, node: u32) {
        let class = self.graph.node(node).class;
        // The dict of an object's attributes is the object's.
        chain.of_shell = class == Class::Notebook || (chain.of_shell && class == Class::Dict);
        match class {
            Class::Exception | Class::Traceback => chain.kinds.push(Kind::Exception),
            Class::Generator => chain.kinds.push(Kind::Generator),
            Class::Cache => chain.kinds.push(Kind::Cache),
            Class::ThreadLocal => chain.kinds.push(Kind::Thread),
            Class::Notebook => chain.kinds.push(Kind::Notebook),
            _ => {}
        }
    }

    fn step(&self, chain: &mut Chain, node: u32, link: &Link, within: Within) -> Within {
        match link {
            Link::Through => {
                let local = self.graph.node(node).class == Class::ThreadLocal;
                return if local { Within::Names } else { within };
            }
            Link::Names => return Within::Names,
            Link::Attribute(name) => self.attribute(chain, name),
            Link::Key(raw, shown) => match (within, raw) {
                (Within::Names, Some(name)) => self.attribute(chain, name),
                // The table of a `threading.local` lies one dict deeper.
                (Within::Names, None) => return Within::Names,
                (Within::Locals, Some(name)) => chain.path += &format!(": {name}"),
                (Within::Cache, _) => {}
                (Within::Defaults(_), Some(name)) => default(chain, name),
                _ => self.contained(chain, node, &format!("[{shown}]")),
            },
            Link::KeyItself => self.contained(chain, node, " → a key"),
            Link::Index(index) => match within {
                Within::Defaults(function) => default(chain, &self.parameter(function, node, *index)),
                Within::Closure(function) => {
                    let name = self.free_variable(function, *index);
                    chain.path += &format!(" → closure {name}");
                    chain.kinds.push(Kind::Closure);
                }
                _ => self.contained(chain, node, &format!("[{index}]")),
            },
            Link::Element => self.contained(chain, node, "{…}"),
            Link::Variable { function, name } => variable(chain, function, name),
            Link::Locals(function) => {
                variable(chain, function, "");
                return Within::Locals;
            }
            Link::Traceback => chain.path += ".__traceback__",
            Link::Defaults | Link::KeywordDefaults => return Within::Defaults(node),
            Link::Closure => return Within::Closure(node),
            Link::Cached | Link::CacheTable => {
                chain.path = format!("functools lru_cache of {}", chain.path);
                chain.kinds.push(Kind::Cache);
                chain.cache = Some(node);
                chain.owner = Some((chain.path.clone(), node));
                return if *link == Link::CacheTable { Within::Cache } else { Within::Nothing };
            }
            Link::Unnamed(kind) if kind.is_empty() => {}
            Link::Unnamed(kind) => chain.path += &format!(" → {kind}"),
        }
        Within::Nothing
    }

    fn attribute(&self, chain: &mut Chain, name: &str) {
        let of_root = chain.root.is_none();
        if of_root {
            self.global(chain, name);
            return;
        }
        if name == "user_ns_hidden" {
            chain.path = name.to_string();
            chain.kinds.push(Kind::Notebook);
            return;
        }
        if let Some(known) = part_of_shell(name).filter(|_| chain.of_shell) {
            chain.path = known.to_string();
            return;
        }
        if chain.path == LAST_RESULT && name == "result" {
            return;
        }
        chain.path += &format!(".{name}");
        chain.kinds.push(Kind::Attribute);
    }

    /// A name in a namespace that the chain begins in.
    fn global(&self, chain: &mut Chain, name: &str) {
        let of_main = chain.path == "__main__";
        let of_notebook = self.notebook && of_main && is_notebook_name(name);
        match (chain.path.as_str(), name) {
            ("__main__", _) if of_notebook => {
                chain.path = if name == "_oh" { "Out".to_string() } else { name.to_string() };
                chain.kinds.push(Kind::Notebook);
            }
            ("builtins", "_") => {
                chain.path = name.to_string();
                chain.kinds.push(Kind::Notebook);
            }
            _ if chain.kinds.contains(&Kind::Local) => chain.path += &format!(": {name}"),
            _ => {
                if chain.path == "sys" && name.starts_with("last_") {
                    chain.kinds.push(Kind::Exception);
                    chain.kinds.extend(self.notebook.then_some(Kind::Notebook));
                }
                if !chain.kinds.contains(&Kind::Global) {
                    chain.kinds.push(Kind::Attribute);
                }
                chain.path += &format!(".{name}");
            }
        }
    }

    fn contained(&self, chain: &mut Chain, node: u32, suffix: &str) {
        if chain.of_shell && suffix == "['last_execution_result']" {
            chain.path = LAST_RESULT.to_string();
            return;
        }
        if chain.owner.is_none() {
            chain.owner = Some((chain.path.clone(), node));
        }
        chain.path += suffix;
        chain.kinds.push(Kind::Container);
    }

    /// The parameter that the `index`-th default belongs to.
    fn parameter(&self, function: u32, defaults: u32, index: usize) -> String {
        let code = self.links.code_of_function(self.graph.node(function).object);
        let count = self.graph.node(defaults).object.len(Class::Tuple).unwrap_or(0);
        let name = code.and_then(|code| {
            let at = (code.positional + index).checked_sub(count)?;
            code.variables.get(at).cloned()
        });
        name.unwrap_or_else(|| "…".to_string())
    }

    fn free_variable(&self, function: u32, index: usize) -> String {
        let code = self.links.code_of_function(self.graph.node(function).object);
        code.and_then(|code| code.free.get(index).cloned()).unwrap_or_else(|| "…".to_string())
    }
}

fn default(chain: &mut Chain, parameter: &str) {
    chain.path = format!("default of {}({parameter})", chain.path);
    chain.kinds.push(Kind::Default);
}

fn variable(chain: &mut Chain, function: &str, name: &str) {
    match (function.is_empty(), name.is_empty()) {
        // A variable of the running frame that the chain begins with.
        (true, _) => chain.path += &format!(": {name}"),
        (false, true) => chain.path += &format!(" → {function}"),
        (false, false) => chain.path += &format!(" → {function}: {name}"),
    }
}

/// What people call a part of the shell, by the attribute that holds it. (`tb` is the traceback printer's.)
fn part_of_shell(attribute: &str) -> Option<&'static str> {
    match attribute {
        "displayhook" => Some("displayhook"),
        "tb" | "last_syntax_error" | "error_in_exec" | "error_before_exec" => Some("the last traceback"),
        _ => None,
    }
}

fn is_notebook_name(name: &str) -> bool {
    let numbered = name.trim_start_matches(['_', 'i']);
    NOTEBOOK_NAMES.contains(&name)
        || (name.starts_with('_')
            && !numbered.is_empty()
            && numbered.bytes().all(|byte| byte.is_ascii_digit()))
}

fn shortened(path: &str) -> String {
    let count = path.chars().count();
    if count <= MAX_PATH {
        return path.to_string();
    }
    let half = MAX_PATH / 2 - 1;
    let head: String = path.chars().take(half).collect();
    let tail: String = path.chars().skip(count - half).collect();
    format!("{head} … {tail}")
}
