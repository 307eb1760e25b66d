//! One search from beginning to end: hold still, walk, name, let go.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use dpmem_core::findings::HolderKind as Kind;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::arrays::{Arrays, Member};
use super::chains::{Chain, OUTSIDE, Teller, nodes_to};
use super::facts::Request;
use super::graph::{ByAddress, Graph, NONE, Reach};
use super::layout::Layout;
use super::links::{Link, Links, Ways};
use super::object::{Halt, Ref};
use super::roots::Kept;
use super::types::Class;
use super::types::Types;
use super::{CacheFacts, Held, HeldBlock, HolderFacts, State};

/// Holders of a block that are listed.
const MAX_HOLDERS: usize = 64;
/// A block no larger than this is not called larger than the array on it: an empty array needs something, too.
const SMALL_BLOCK: u64 = 64;

pub(super) fn find(request: &Bound<'_, PyAny>) -> PyResult<Held> {
    let facts: Request<'_> = request.extract()?;
    let (mut held, caches) = walk(request, &facts)?;
    ask_caches(&mut held, &caches);
    Ok(held)
}

/// All that has to happen at one moment. What is taken hold of is declared after the halt and so let go before it
/// ends, while nothing else can run: none of it is the last reference to anything.
fn walk<'py>(request: &Bound<'py, PyAny>, facts: &Request<'py>) -> PyResult<(Held, Caches<'py>)> {
    let halt = Halt::new(request.py());
    let frames = facts.current_frames.call0()?;
    let kept = Kept::collect(facts, &frames);
    let universe = facts.universe.call0()?.cast_into::<PyList>()?;
    let layout = Layout::learn(&facts.samples);
    let mut hidden: Vec<Ref<'_>> =
        [universe.as_any(), &frames, request, &facts.modules].into_iter().map(Ref::of).collect();
    hidden.extend(facts.threads.iter().map(Ref::of));
    let roots = kept.roots(&halt, facts, &layout, &mut hidden);
    let mut blocks = facts.blocks.clone();
    blocks.sort_unstable();

    let deadline = Instant::now() + Duration::from_secs_f64(facts.seconds.clamp(0.0, 3600.0));
    let types = Types::new(&halt, &facts.vocabulary);
    let mut graph = Graph::new(&halt, &facts.vocabulary, types, deadline);
    graph.hide(&hidden);
    graph.follow(&roots);
    graph.look_at_unreached(&halt.all(&universe));
    let members = Arrays::new(&halt, &facts.vocabulary, &blocks).members(&mut graph);
    let mut on_block = vec![Vec::new(); blocks.len()];
    members.values().for_each(|member| on_block[member.block].push(*member));
    let links = Links::new(&halt, &facts.vocabulary, &layout, &roots);
    let (notebook, ways) = (is_notebook(facts), HashMap::new());
    let mut search = Search { graph, links, members, on_block, blocks: &blocks, notebook, ways };
    Ok(search.answer(facts))
}

struct Search<'s, 'h, 'py> {
    graph: Graph<'h, 'py>,
    links: Links<'h, 'py>,
    members: ByAddress<Member>,
    /// Members by block.
    on_block: Vec<Vec<Member>>,
    blocks: &'s [(usize, u64)],
    notebook: bool,
    /// How nodes refer to others: of each node, by the other's address.
    ways: HashMap<u32, Ways>,
}

/// A holder of a block: its node, the node of the array that it holds.
type Edge = (u32, u32);
/// Which holder a cache belongs to, and the cache.
type Caches<'py> = Vec<(usize, usize, Bound<'py, PyAny>)>;

impl<'h, 'py> Search<'_, 'h, 'py> {
    fn answer(&mut self, facts: &Request<'py>) -> (Held, Caches<'py>) {
        let edges = self.edges();
        self.name_all(&edges);
        let mut by_block: BTreeMap<usize, Vec<(HolderFacts, Option<u32>)>> = BTreeMap::new();
        for (from, to) in edges {
            let Some(member) = self.member(to) else { continue };
            by_block.entry(member.block).or_default().extend(self.tell(from, to, member));
        }
        let outside = self.held_outside(facts, &mut by_block);
        let mut caches = Vec::new();
        let mut held = Vec::new();
        for (number, (address, bytes)) in self.blocks.iter().enumerate() {
            let mut holders = by_block.remove(&number).unwrap_or_default();
            let pending = facts.pending.contains(address);
            let state = self.state(number, &holders, outside.contains(&number), pending);
            if state == State::InFlight {
                holders.clear();
            } else if outside.contains(&number) {
                holders.push((held_by_c(), None));
            }
            tidy(&mut holders);
            let more_holders = holders.len().saturating_sub(MAX_HOLDERS);
            holders.truncate(MAX_HOLDERS);
            for (place, (_, cache)) in holders.iter().enumerate() {
                caches.extend(
                    cache.map(|node| (number, place, self.graph.node(node).object.bound(self.links.halt))),
                );
            }
            let holders = holders.into_iter().map(|(holder, _)| holder).collect();
            let covered_bytes = self.covered(number, *bytes);
            held.push(HeldBlock { address: *address, state, covered_bytes, holders, more_holders });
        }
        (Held { blocks: held, complete: !self.graph.late, objects: self.graph.nodes.len() }, caches)
    }

    fn member(&self, node: u32) -> Option<Member> {
        self.members.get(&self.graph.node(node).object.address()).copied()
    }

    /// References to members from what is no member of the same block, each once.
    fn edges(&self) -> Vec<Edge> {
        let mut seen = HashSet::new();
        let holds = |edge: &Edge| {
            let Some(member) = self.member(edge.1) else { return false };
            self.member(edge.0).is_none_or(|from| from.block != member.block)
        };
        self.graph.edges.iter().copied().filter(holds).filter(|edge| seen.insert(*edge)).collect()
    }

    /// Finds the links of all chains, each object's at one time.
    fn name_all(&mut self, edges: &[Edge]) {
        let mut wanted: HashMap<u32, Ways> = HashMap::new();
        let mut want = |from: u32, to: usize| {
            wanted.entry(from).or_default().entry(to).or_default();
        };
        for (from, to) in edges {
            want(*from, self.graph.node(*to).object.address());
            for pair in nodes_to(&self.graph, *from).windows(2) {
                want(pair[0], self.graph.node(pair[1]).object.address());
            }
        }
        for (from, ways) in &mut wanted {
            self.links.name(&self.graph, *from, ways);
        }
        self.ways = wanted;
    }

    fn tell(&self, from: u32, to: u32, member: Member) -> Vec<(HolderFacts, Option<u32>)> {
        let nodes = nodes_to(&self.graph, from);
        let mut links: Vec<Link> =
            nodes.windows(2).map(|pair| self.ways_between(pair[0], pair[1])[0].clone()).collect();
        let teller = self.teller();
        let mut holders = Vec::new();
        for last in self.ways_between(from, to) {
            links.push(last.clone());
            let chain = teller.tell(&nodes, &links);
            links.pop();
            holders.push(self.holder(chain, member, self.graph.node(from).reach));
        }
        holders
    }

    fn ways_between(&self, from: u32, to: u32) -> &[Link] {
        let to = self.graph.node(to).object.address();
        let found = self.ways.get(&from).and_then(|ways| ways.get(&to)).map(Vec::as_slice);
        found.filter(|ways| !ways.is_empty()).unwrap_or(&[Link::Through])
    }

    fn teller(&self) -> Teller<'_, 'h, 'py> {
        Teller { graph: &self.graph, links: &self.links, notebook: self.notebook }
    }

    fn holder(&self, chain: Chain, member: Member, reach: Reach) -> (HolderFacts, Option<u32>) {
        let on_stack = chain.kinds.contains(&Kind::Local);
        let notebook = chain.kinds.contains(&Kind::Notebook);
        let mut kinds = chain.kinds;
        let view = self.is_view(member);
        if view {
            kinds.push(Kind::View);
        }
        if member.numpy {
            kinds.push(Kind::HostCopy);
        }
        let length = |node: u32| {
            let node = self.graph.node(node);
            node.object.len(node.class).map(|length| length as u64)
        };
        let facts = HolderFacts {
            kind: kinds.into_iter().min().unwrap_or(Kind::Other),
            root: chain.root.unwrap_or_else(|| chain.path.clone()),
            path: chain.path,
            owner_len: chain.owner.as_ref().and_then(|(_, node)| length(*node)),
            owner_is_queue: chain
                .owner
                .as_ref()
                .is_some_and(|(_, node)| self.graph.node(*node).class == Class::Deque),
            owner: chain.owner.map(|(path, _)| path),
            cache: None,
            numpy: member.numpy,
            view,
            unreachable: reach == Reach::Cycle,
            notebook,
            outside: reach == Reach::Outside && !on_stack,
        };
        (facts, chain.cache)
    }

    fn is_view(&self, member: Member) -> bool {
        let whole = self.blocks[member.block].1;
        member.is_array && member.bytes < whole && (member.bytes > 0 || whole > SMALL_BLOCK)
    }

    /// Blocks with an array that something outside of Python holds; running frames that do so are told as holders.
    fn held_outside(
        &self,
        facts: &Request<'py>,
        holders: &mut BTreeMap<usize, Vec<(HolderFacts, Option<u32>)>>,
    ) -> HashSet<usize> {
        let mut outside = HashSet::new();
        for node in &self.graph.nodes {
            if node.reach != Reach::Outside || node.parent != NONE || facts.asked == node.object.address() {
                continue;
            }
            let Some(member) = self.members.get(&node.object.address()).copied() else { continue };
            match self.teller().on_a_stack(node.object.address()) {
                Some(chain) => {
                    holders.entry(member.block).or_default().push(self.holder(chain, member, node.reach));
                }
                None => {
                    outside.insert(member.block);
                }
            }
        }
        outside
    }

    fn state(
        &self,
        block: usize,
        holders: &[(HolderFacts, Option<u32>)],
        outside: bool,
        pending: bool,
    ) -> State {
        let by_python = holders.iter().any(|(holder, _)| !holder.outside);
        if by_python || (outside && !pending) {
            return State::Referenced;
        }
        if pending {
            return State::InFlight;
        }
        let belongs = !holders.is_empty() || !self.on_block[block].is_empty();
        if belongs { State::Referenced } else { State::Runtime }
    }

    /// Bytes that the arrays on a block cover together: views of the same bytes count once, partial overlaps don't.
    fn covered(&self, block: usize, bytes: u64) -> u64 {
        let arrays = self.on_block[block].iter().filter(|member| member.is_array);
        let distinct: HashSet<(usize, u64)> = arrays.map(|member| (member.address, member.bytes)).collect();
        distinct.iter().map(|(_, bytes)| *bytes).sum::<u64>().min(bytes)
    }
}

/// Whoever holds what no Python object accounts for.
fn held_by_c() -> HolderFacts {
    let path = OUTSIDE.to_string();
    HolderFacts {
        kind: Kind::Other,
        root: path.clone(),
        path,
        owner: None,
        owner_len: None,
        owner_is_queue: false,
        cache: None,
        numpy: false,
        view: false,
        unreachable: false,
        notebook: false,
        outside: true,
    }
}

/// The most telling first, each once.
fn tidy(holders: &mut Vec<(HolderFacts, Option<u32>)>) {
    holders.sort_by(|(a, _), (b, _)| {
        (a.kind, a.path.chars().count(), &a.path).cmp(&(b.kind, b.path.chars().count(), &b.path))
    });
    holders.dedup_by(|(a, _), (b, _)| a.kind == b.kind && a.path == b.path);
}

/// Asks caches for their size. This runs code of the standard library, so it comes when the walk is over.
fn ask_caches(held: &mut Held, caches: &Caches<'_>) {
    for (block, holder, cache) in caches {
        let Ok(info) = cache.get_type().getattr("cache_info").and_then(|ask| ask.call1((cache,))) else {
            continue;
        };
        let number =
            |index: usize| info.get_item(index).ok().filter(|value| !value.is_none())?.extract::<u64>().ok();
        held.blocks[*block].holders[*holder].cache = Some(CacheFacts {
            misses: number(1).unwrap_or(0),
            maxsize: number(2),
            currsize: number(3).unwrap_or(0),
        });
    }
}

/// Whether a notebook or an interactive shell runs the program.
fn is_notebook(facts: &Request<'_>) -> bool {
    let Ok(modules) = facts.modules.cast::<PyDict>() else { return false };
    let named = |module: &str, name: &str| {
        let module = modules.get_item(module).ok().flatten();
        let namespace =
            module.and_then(|module| module.cast::<pyo3::types::PyModule>().ok().map(|module| module.dict()));
        namespace.is_some_and(|namespace| namespace.contains(name).unwrap_or(false))
    };
    named("__main__", "get_ipython")
        || named("builtins", "get_ipython")
        || (named("__main__", "In") && named("__main__", "Out"))
        || named("__main__", "_oh")
}
