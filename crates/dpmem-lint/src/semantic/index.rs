//! Every statement and expression with its parent, block, scope, and innermost loop.
//!
//! Nodes are numbered in source order; identity is the node's address, which is stable while the tree is borrowed.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::parse::ast::{self, Expr, Stmt};
use crate::parse::visitor::{self, Visitor};
use crate::parse::{Ranged, TextRange};

macro_rules! id {
    ($name:ident, $what:literal) => {
        #[doc = $what]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub(crate) struct $name(pub(crate) u32);
        impl $name {
            pub(crate) fn at(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(ExprId, "Number of an expression.");
id!(StmtId, "Number of a statement.");
id!(LoopId, "Number of a loop.");
id!(FunctionId, "Number of a function scope; 0 is the module.");
id!(ClassId, "Number of a class.");
id!(BlockId, "Number of a block of statements.");

/// The module's own scope.
pub(crate) const MODULE: FunctionId = FunctionId(0);

pub(crate) struct ExprNode<'a> {
    pub(crate) expr: &'a Expr,
    pub(crate) parent: Option<ExprId>,
    pub(crate) stmt: StmtId,
    pub(crate) innermost: Option<LoopId>,
    pub(crate) scope: FunctionId,
}

pub(crate) struct StmtNode<'a> {
    pub(crate) stmt: &'a Stmt,
    pub(crate) parent: Option<StmtId>,
    pub(crate) block: BlockId,
    pub(crate) position: usize,
    pub(crate) innermost: Option<LoopId>,
    pub(crate) scope: FunctionId,
    /// In the body of a `try` with handlers, or of `with pytest.raises(...)` and its kin.
    pub(crate) guarded: bool,
    pub(crate) first_expr: u32,
    pub(crate) end_expr: u32,
    pub(crate) end_stmt: u32,
}

pub(crate) enum LoopKind<'a> {
    For(&'a ast::StmtFor),
    While(&'a ast::StmtWhile),
    Comprehension(&'a Expr, &'a ast::Comprehension),
}

pub(crate) struct LoopNode<'a> {
    pub(crate) kind: LoopKind<'a>,
    pub(crate) parent: Option<LoopId>,
    pub(crate) stmt: StmtId,
}

pub(crate) enum FunctionKind<'a> {
    Module,
    Def(&'a ast::StmtFunctionDef),
    Lambda(&'a ast::ExprLambda),
}

pub(crate) struct FunctionNode<'a> {
    pub(crate) kind: FunctionKind<'a>,
    pub(crate) parent: FunctionId,
    /// The class whose method this is.
    pub(crate) class: Option<ClassId>,
    pub(crate) globals: FxHashSet<&'a str>,
    pub(crate) nonlocals: FxHashSet<&'a str>,
    /// Names bound anywhere in the scope.
    pub(crate) bound: FxHashSet<&'a str>,
    pub(crate) yields: bool,
    /// Another compiler runs the body (`numba`, `numba_dpex`): Python's rules do not hold in it.
    pub(crate) compiled: bool,
    /// Numbers of the expressions in it, those of functions inside included.
    pub(crate) exprs: std::ops::Range<u32>,
}

pub(crate) struct ClassNode<'a> {
    pub(crate) methods: FxHashMap<&'a str, FunctionId>,
}

/// The numbered nodes of one module.
#[derive(Default)]
pub(crate) struct Index<'a> {
    pub(crate) exprs: Vec<ExprNode<'a>>,
    pub(crate) stmts: Vec<StmtNode<'a>>,
    pub(crate) blocks: Vec<&'a [Stmt]>,
    pub(crate) loops: Vec<LoopNode<'a>>,
    pub(crate) functions: Vec<FunctionNode<'a>>,
    pub(crate) classes: Vec<ClassNode<'a>>,
    /// Names that are arguments of `range` somewhere, so integers.
    pub(crate) integers: FxHashSet<&'a str>,
    /// The `import` statements, in source order.
    pub(crate) imports: Vec<StmtId>,
    names: FxHashMap<&'a str, Vec<ExprId>>,
    expr_ids: FxHashMap<usize, ExprId>,
    stmt_ids: FxHashMap<usize, StmtId>,
    function_ids: FxHashMap<usize, FunctionId>,
    class_ids: FxHashMap<usize, ClassId>,
}

fn address<T>(node: &T) -> usize {
    std::ptr::from_ref(node).addr()
}

impl<'a> Index<'a> {
    pub(crate) fn of(suite: &'a [Stmt]) -> Self {
        let mut builder = Builder {
            index: Self::default(),
            parent_expr: None,
            parent_stmt: None,
            block: BlockId(0),
            position: 0,
            innermost: None,
            scope: MODULE,
            class: None,
            guarded: false,
        };
        builder.index.functions.push(FunctionNode {
            kind: FunctionKind::Module,
            parent: MODULE,
            class: None,
            globals: FxHashSet::default(),
            nonlocals: FxHashSet::default(),
            bound: FxHashSet::default(),
            yields: false,
            compiled: false,
            exprs: 0..0,
        });
        builder.visit_body(suite);
        let mut index = builder.index;
        index.functions[MODULE.at()].exprs = 0..index.exprs.len() as u32;
        // Comprehensions are numbered in the order in which they run.
        let exprs = &index.exprs;
        for occurrences in index.names.values_mut() {
            occurrences.sort_by_key(|id| exprs[id.at()].expr.start());
        }
        index
    }

    /// Every place where the plain name stands, in source order.
    pub(crate) fn occurrences(&self, name: &str) -> &[ExprId] {
        self.names.get(name).map_or(&[], Vec::as_slice)
    }

    /// Places of the plain name in a range of the source.
    pub(crate) fn occurrences_in(&self, name: &str, range: TextRange) -> &[ExprId] {
        let all = self.occurrences(name);
        let first = all.partition_point(|id| self.node(*id).expr.start() < range.start());
        let end = all.partition_point(|id| self.node(*id).expr.start() < range.end());
        &all[first..end.max(first)]
    }

    /// Places of the plain name in a scope and the scopes inside it.
    pub(crate) fn occurrences_of_scope(&self, name: &str, scope: FunctionId) -> &[ExprId] {
        match &self.functions[scope.at()].kind {
            FunctionKind::Module => self.occurrences(name),
            FunctionKind::Def(def) => self.occurrences_in(name, def.range),
            FunctionKind::Lambda(lambda) => self.occurrences_in(name, lambda.range),
        }
    }

    pub(crate) fn expr_id(&self, expr: &Expr) -> Option<ExprId> {
        self.expr_ids.get(&address(expr)).copied()
    }

    pub(crate) fn stmt_id(&self, stmt: &Stmt) -> Option<StmtId> {
        self.stmt_ids.get(&address(stmt)).copied()
    }

    pub(crate) fn function_id(&self, def: &ast::StmtFunctionDef) -> Option<FunctionId> {
        self.function_ids.get(&address(def)).copied()
    }

    pub(crate) fn lambda_id(&self, lambda: &ast::ExprLambda) -> Option<FunctionId> {
        self.function_ids.get(&address(lambda)).copied()
    }

    pub(crate) fn class_id(&self, def: &ast::StmtClassDef) -> Option<ClassId> {
        self.class_ids.get(&address(def)).copied()
    }

    pub(crate) fn node(&self, id: ExprId) -> &ExprNode<'a> {
        &self.exprs[id.at()]
    }

    pub(crate) fn stmt(&self, id: StmtId) -> &StmtNode<'a> {
        &self.stmts[id.at()]
    }

    /// The loops around, innermost first.
    pub(crate) fn loops_around(&self, innermost: Option<LoopId>) -> impl Iterator<Item = LoopId> + '_ {
        std::iter::successors(innermost, |id| self.loops[id.at()].parent)
    }
}

struct Builder<'a> {
    index: Index<'a>,
    parent_expr: Option<ExprId>,
    parent_stmt: Option<StmtId>,
    block: BlockId,
    position: usize,
    innermost: Option<LoopId>,
    scope: FunctionId,
    class: Option<ClassId>,
    guarded: bool,
}

impl<'a> Builder<'a> {
    fn bind(&mut self, name: &'a str) {
        self.index.functions[self.scope.at()].bound.insert(name);
    }

    fn guarded_body(&mut self, body: &'a [Stmt]) {
        let before = std::mem::replace(&mut self.guarded, true);
        self.visit_body(body);
        self.guarded = before;
    }

    fn loop_body(&mut self, kind: LoopKind<'a>, run: impl FnOnce(&mut Self)) {
        let id = LoopId(self.index.loops.len() as u32);
        let stmt = self.parent_stmt.unwrap_or(StmtId(0));
        self.index.loops.push(LoopNode { kind, parent: self.innermost, stmt });
        let before = self.innermost.replace(id);
        run(self);
        self.innermost = before;
    }

    fn function(&mut self, kind: FunctionKind<'a>, key: usize, run: impl FnOnce(&mut Self)) {
        let id = FunctionId(self.index.functions.len() as u32);
        self.index.function_ids.insert(key, id);
        let compiled = self.index.functions[self.scope.at()].compiled || is_compiled(&kind);
        self.index.functions.push(FunctionNode {
            kind,
            parent: self.scope,
            class: self.class,
            globals: FxHashSet::default(),
            nonlocals: FxHashSet::default(),
            bound: FxHashSet::default(),
            yields: false,
            compiled,
            exprs: 0..0,
        });
        let first = self.index.exprs.len() as u32;
        let before = (
            self.scope,
            self.innermost.take(),
            self.class.take(),
            std::mem::replace(&mut self.guarded, false),
        );
        self.scope = id;
        run(self);
        self.index.functions[id.at()].exprs = first..self.index.exprs.len() as u32;
        (self.scope, self.innermost, self.class, self.guarded) = before;
    }

    fn parameters(&mut self, parameters: &'a ast::Parameters) {
        for parameter in parameters {
            self.bind(parameter.name().as_str());
        }
    }

    fn comprehension(
        &mut self,
        whole: &'a Expr,
        generators: &'a [ast::Comprehension],
        elements: &[&'a Expr],
    ) {
        let Some((first, rest)) = generators.split_first() else { return };
        self.visit_expr(&first.iter);
        self.nested_generators(whole, first, rest, elements);
    }

    fn nested_generators(
        &mut self,
        whole: &'a Expr,
        first: &'a ast::Comprehension,
        rest: &'a [ast::Comprehension],
        elements: &[&'a Expr],
    ) {
        self.loop_body(LoopKind::Comprehension(whole, first), |this| {
            this.visit_expr(&first.target);
            for test in &first.ifs {
                this.visit_expr(test);
            }
            match rest.split_first() {
                Some((next, rest)) => {
                    this.visit_expr(&next.iter);
                    this.nested_generators(whole, next, rest, elements);
                }
                None => elements.iter().for_each(|element| this.visit_expr(element)),
            }
        });
    }

    fn compound(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::FunctionDef(def) => {
                self.bind(def.name.as_str());
                for decorator in &def.decorator_list {
                    self.visit_expr(&decorator.expression);
                }
                for parameter in &*def.parameters {
                    if let Some(default) = parameter.default() {
                        self.visit_expr(default);
                    }
                    if let Some(annotation) = parameter.annotation() {
                        self.visit_expr(annotation);
                    }
                }
                if let Some(returns) = &def.returns {
                    self.visit_expr(returns);
                }
                let class = self.class;
                let id = FunctionId(self.index.functions.len() as u32);
                if let Some(class) = class {
                    self.index.classes[class.at()].methods.insert(def.name.as_str(), id);
                }
                self.function(FunctionKind::Def(def), address(def), |this| {
                    this.parameters(&def.parameters);
                    this.visit_body(&def.body);
                });
            }
            Stmt::ClassDef(def) => {
                self.bind(def.name.as_str());
                for decorator in &def.decorator_list {
                    self.visit_expr(&decorator.expression);
                }
                if let Some(arguments) = &def.arguments {
                    self.visit_arguments(arguments);
                }
                let id = ClassId(self.index.classes.len() as u32);
                self.index.class_ids.insert(address(def), id);
                self.index.classes.push(ClassNode { methods: FxHashMap::default() });
                let before = self.class.replace(id);
                self.visit_body(&def.body);
                self.class = before;
            }
            Stmt::For(node) => {
                self.visit_expr(&node.iter);
                self.loop_body(LoopKind::For(node), |this| {
                    this.visit_expr(&node.target);
                    this.visit_body(&node.body);
                });
                self.visit_body(&node.orelse);
            }
            Stmt::While(node) => {
                self.loop_body(LoopKind::While(node), |this| {
                    this.visit_expr(&node.test);
                    this.visit_body(&node.body);
                });
                self.visit_body(&node.orelse);
            }
            Stmt::Try(node) => {
                if node.handlers.is_empty() {
                    self.visit_body(&node.body);
                } else {
                    self.guarded_body(&node.body);
                }
                for handler in &node.handlers {
                    let ast::ExceptHandler::ExceptHandler(handler) = handler;
                    if let Some(name) = &handler.name {
                        self.bind(name.as_str());
                    }
                    if let Some(kind) = &handler.type_ {
                        self.visit_expr(kind);
                    }
                    self.visit_body(&handler.body);
                }
                self.visit_body(&node.orelse);
                self.visit_body(&node.finalbody);
            }
            Stmt::With(node) => {
                for item in &node.items {
                    self.visit_expr(&item.context_expr);
                    if let Some(target) = &item.optional_vars {
                        self.visit_expr(target);
                    }
                }
                if node.items.iter().any(|item| expects_error(&item.context_expr)) {
                    self.guarded_body(&node.body);
                } else {
                    self.visit_body(&node.body);
                }
            }
            _ => visitor::walk_stmt(self, stmt),
        }
    }

    fn names(&mut self, stmt: &'a Stmt, id: StmtId) {
        match stmt {
            Stmt::Import(import) => {
                self.index.imports.push(id);
                for alias in &import.names {
                    let name = alias.asname.as_ref().unwrap_or(&alias.name).as_str();
                    self.bind(name.split('.').next().unwrap_or(name));
                }
            }
            Stmt::ImportFrom(import) => {
                for alias in &import.names {
                    self.bind(alias.asname.as_ref().unwrap_or(&alias.name).as_str());
                }
            }
            Stmt::Global(node) => {
                let names = node.names.iter().map(ast::Identifier::as_str);
                self.index.functions[self.scope.at()].globals.extend(names);
            }
            Stmt::Nonlocal(node) => {
                let names = node.names.iter().map(ast::Identifier::as_str);
                self.index.functions[self.scope.at()].nonlocals.extend(names);
            }
            _ => {}
        }
    }
}

/// Decorated by a just-in-time compiler.
fn is_compiled(kind: &FunctionKind<'_>) -> bool {
    let FunctionKind::Def(def) = kind else { return false };
    def.decorator_list.iter().any(|decorator| {
        let target = match &decorator.expression {
            Expr::Call(call) => &*call.func,
            other => other,
        };
        let name = match target {
            Expr::Name(name) => name.id.as_str(),
            Expr::Attribute(attribute) => attribute.attr.as_str(),
            _ => return false,
        };
        matches!(
            name,
            "jit"
                | "njit"
                | "dpjit"
                | "kernel"
                | "device_func"
                | "func"
                | "vectorize"
                | "guvectorize"
                | "stencil"
                | "cfunc"
        )
    })
}

/// `pytest.raises(...)`, `self.assertRaises(...)`, `contextlib.suppress(...)` and the like.
fn expects_error(expr: &Expr) -> bool {
    let Expr::Call(call) = expr else { return false };
    let name = match &*call.func {
        Expr::Attribute(attribute) => attribute.attr.as_str(),
        Expr::Name(name) => name.id.as_str(),
        _ => return false,
    };
    name.contains("raises") || name.contains("Raises") || name == "suppress"
}

impl<'a> Visitor<'a> for Builder<'a> {
    fn visit_body(&mut self, body: &'a [Stmt]) {
        let id = BlockId(self.index.blocks.len() as u32);
        self.index.blocks.push(body);
        let before = (self.block, self.position);
        for (position, stmt) in body.iter().enumerate() {
            self.block = id;
            self.position = position;
            self.visit_stmt(stmt);
        }
        (self.block, self.position) = before;
    }

    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        let id = StmtId(self.index.stmts.len() as u32);
        self.index.stmt_ids.insert(address(stmt), id);
        self.index.stmts.push(StmtNode {
            stmt,
            parent: self.parent_stmt,
            block: self.block,
            position: self.position,
            innermost: self.innermost,
            scope: self.scope,
            guarded: self.guarded,
            first_expr: self.index.exprs.len() as u32,
            end_expr: 0,
            end_stmt: 0,
        });
        self.names(stmt, id);
        let before = (self.parent_stmt.replace(id), self.parent_expr.take());
        self.compound(stmt);
        (self.parent_stmt, self.parent_expr) = before;
        let (end_expr, end_stmt) = (self.index.exprs.len() as u32, self.index.stmts.len() as u32);
        let node = &mut self.index.stmts[id.at()];
        (node.end_expr, node.end_stmt) = (end_expr, end_stmt);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        let id = ExprId(self.index.exprs.len() as u32);
        self.index.expr_ids.insert(address(expr), id);
        self.index.exprs.push(ExprNode {
            expr,
            parent: self.parent_expr,
            stmt: self.parent_stmt.unwrap_or(StmtId(0)),
            innermost: self.innermost,
            scope: self.scope,
        });
        let before = self.parent_expr.replace(id);
        match expr {
            Expr::Lambda(lambda) => {
                if let Some(parameters) = &lambda.parameters {
                    for parameter in &**parameters {
                        if let Some(default) = parameter.default() {
                            self.visit_expr(default);
                        }
                    }
                }
                self.function(FunctionKind::Lambda(lambda), address(lambda), |this| {
                    if let Some(parameters) = &lambda.parameters {
                        this.parameters(parameters);
                    }
                    this.visit_expr(&lambda.body);
                });
            }
            Expr::ListComp(node) => self.comprehension(expr, &node.generators, &[&node.elt]),
            Expr::SetComp(node) => self.comprehension(expr, &node.generators, &[&node.elt]),
            Expr::Generator(node) => self.comprehension(expr, &node.generators, &[&node.elt]),
            Expr::DictComp(node) => match &node.key {
                Some(key) => self.comprehension(expr, &node.generators, &[key, &node.value]),
                None => self.comprehension(expr, &node.generators, &[&node.value]),
            },
            Expr::BoolOp(node) => {
                node.values.iter().for_each(|value| self.visit_expr(value));
            }
            Expr::If(node) => {
                self.visit_expr(&node.test);
                self.visit_expr(&node.body);
                self.visit_expr(&node.orelse);
            }
            Expr::Yield(_) | Expr::YieldFrom(_) => {
                self.index.functions[self.scope.at()].yields = true;
                visitor::walk_expr(self, expr);
            }
            Expr::Name(name) => {
                self.index.names.entry(name.id.as_str()).or_default().push(id);
                if !matches!(name.ctx, ast::ExprContext::Load) {
                    self.bind(name.id.as_str());
                }
            }
            Expr::Call(call) => {
                if let Expr::Name(name) = &*call.func
                    && name.id.as_str() == "range"
                {
                    for argument in &call.arguments.args {
                        if let Expr::Name(name) = argument {
                            self.index.integers.insert(name.id.as_str());
                        }
                    }
                }
                visitor::walk_expr(self, expr);
            }
            _ => visitor::walk_expr(self, expr),
        }
        self.parent_expr = before;
    }

    fn visit_pattern(&mut self, pattern: &'a ast::Pattern) {
        match pattern {
            ast::Pattern::MatchAs(node) => {
                if let Some(name) = &node.name {
                    self.bind(name.as_str());
                }
            }
            ast::Pattern::MatchStar(node) => {
                if let Some(name) = &node.name {
                    self.bind(name.as_str());
                }
            }
            ast::Pattern::MatchMapping(node) => {
                if let Some(name) = &node.rest {
                    self.bind(name.as_str());
                }
            }
            _ => {}
        }
        visitor::walk_pattern(self, pattern);
    }
}
