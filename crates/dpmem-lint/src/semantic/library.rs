//! What the functions and methods of dpnp, dpctl and NumPy return.
//!
//! Nothing here is about a particular program. One long file, because a reader wants the answer for a function in one
//! place: every branch is an entry of one table.

mod names;

use std::rc::Rc;

use names::{BINARY, BOOLEAN, OTHER, OUT, REDUCTIONS, RESHAPING, SEVERAL, SUBMODULES, UNARY};

use super::value::{Array, Category, Dim, Dtype, Number, Place, Queue, Value};

/// `dpnp.x`, `dpctl.tensor.x` or `dpnp.tensor.x` → `x`; `dpnp.linalg.x` → `linalg.x`.
pub(crate) fn strip_library(path: &str) -> Option<&str> {
    let name =
        ["dpnp.tensor.", "dpctl.tensor.", "dpnp."].iter().find_map(|prefix| path.strip_prefix(prefix))?;
    match name.split_once('.') {
        None => Some(name),
        Some((module, function)) => (SUBMODULES.contains(&module) && !function.contains('.')).then_some(name),
    }
}

fn returns_array(name: &str) -> bool {
    [UNARY, BINARY, OUT, REDUCTIONS, RESHAPING, OTHER].iter().any(|table| table.contains(&name))
}

/// True if this dpnp function takes `out=` and makes one array otherwise.
pub(crate) fn accepts_out(name: &str) -> bool {
    UNARY.contains(&name) || BINARY.contains(&name) || OUT.contains(&name)
}

/// True if the result of this function of same-shaped arrays has their shape.
pub(crate) fn is_elementwise(name: &str) -> bool {
    UNARY.contains(&name) || BINARY.contains(&name) || matches!(name, "clip" | "where")
}

/// True if the function reduces an array, to one number without `axis`.
pub(crate) fn is_reduction(name: &str) -> bool {
    REDUCTIONS.contains(&name)
}

/// A call as the tables see it.
pub(crate) struct Call<'c> {
    pub(crate) arguments: &'c [Value],
    pub(crate) keywords: &'c [(&'c str, Value)],
    /// Extents written as the first argument or `shape=`.
    pub(crate) extents: Option<Rc<[Dim]>>,
    /// Unique number of the call's place.
    pub(crate) place: u32,
}

impl Call<'_> {
    fn argument(&self, at: usize, name: &str) -> Option<&Value> {
        self.arguments.get(at).or_else(|| self.keyword(name))
    }

    fn keyword(&self, name: &str) -> Option<&Value> {
        self.keywords.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    fn dtype(&self, position: usize) -> Option<Option<Dtype>> {
        match self.argument(position, "dtype") {
            None | Some(Value::Nothing) => None,
            Some(value) => Some(dtype_of(value)),
        }
    }

    /// Where the call's own keywords put the result.
    fn queue(&self) -> Option<Queue> {
        for name in ["sycl_queue", "device"] {
            match self.keyword(name) {
                None | Some(Value::Nothing) => {}
                Some(Value::Queue(queue)) => return Some(queue.clone()),
                Some(Value::Text(Some(text))) => return Some(Queue::Device(text.clone())),
                Some(_) => return Some(Queue::Unknown),
            }
        }
        None
    }

    fn axis(&self, position: usize) -> bool {
        !matches!(self.argument(position, "axis"), None | Some(Value::Nothing))
            || !matches!(self.keyword("keepdims"), None | Some(Value::Nothing))
    }
}

/// The dtype that a value stands for when passed as `dtype=`.
pub(crate) fn dtype_of(value: &Value) -> Option<Dtype> {
    match value {
        Value::Dtype(dtype) => Some(*dtype),
        Value::Text(Some(text)) => Dtype::named(text),
        Value::Path(path) => Dtype::named(path.rsplit('.').next().unwrap_or(path)),
        _ => None,
    }
}

/// What calling the library function at `path` returns.
pub(crate) fn call(path: &str, call: &Call<'_>) -> Value {
    if let Some(name) = strip_library(path) {
        return device_call(name, call);
    }
    if let Some(name) = path.strip_prefix("numpy.") {
        return host_call(name, call);
    }
    match path {
        "dpctl.SyclQueue" => Value::Queue(Queue::Created(call.place)),
        "dpctl.get_device_cached_queue" => Value::Queue(match call.arguments.first() {
            Some(Value::Text(Some(text))) => Queue::Device(text.clone()),
            _ => Queue::Unknown,
        }),
        "dpctl.SyclDevice" => match call.arguments.first() {
            Some(Value::Text(Some(text))) => Value::Queue(Queue::Device(text.clone())),
            _ => Value::Unknown,
        },
        "builtins.float" => Value::Number(Number::python(Category::Float)),
        "builtins.len" | "builtins.int" | "builtins.round" | "builtins.hash" | "builtins.id"
        | "builtins.ord" => Value::Number(Number::integer(None)),
        "builtins.bool" | "builtins.isinstance" | "builtins.hasattr" | "builtins.callable" => {
            Value::Number(Number::python(Category::Bool))
        }
        "builtins.str" | "builtins.repr" | "builtins.format" => Value::Text(None),
        "builtins.list" | "builtins.tuple" | "builtins.set" | "builtins.sorted" | "builtins.reversed"
        | "builtins.iter" => Value::Container(call.arguments.first().map(|value| Rc::new(value.element()))),
        "builtins.dict" | "collections.deque" | "collections.OrderedDict" | "collections.defaultdict" => {
            Value::Container(None)
        }
        "builtins.range" => Value::Container(Some(Rc::new(Value::Number(Number::integer(None))))),
        "builtins.enumerate" => Value::Container(Some(Rc::new(Value::Tuple(
            [
                Value::Number(Number::integer(None)),
                call.arguments.first().map_or(Value::Unknown, Value::element),
            ]
            .into(),
        )))),
        "builtins.zip" => {
            Value::Container(Some(Rc::new(Value::Tuple(call.arguments.iter().map(Value::element).collect()))))
        }
        _ if path.starts_with("math.") || path.starts_with("time.") => {
            Value::Number(Number::python(Category::Float))
        }
        _ => Value::Unknown,
    }
}

fn device_call(name: &str, call: &Call<'_>) -> Value {
    if let Some(name) = name.strip_prefix("random.") {
        return random_call(name, call, Array { queue: Queue::Default, ..Array::device() });
    }
    if let Some(name) = name.strip_prefix("linalg.") {
        return linalg_call(name, call);
    }
    if let Some(name) = name.strip_prefix("fft.") {
        return match name {
            "fftfreq" | "rfftfreq" => Value::Array(Array::device().of_dimensions(1)),
            _ => Value::Array(Array { queue: argument_queue(call), ..Array::device() }),
        };
    }
    if let Some(dtype) = scalar_type(name) {
        return Value::Number(Number::numpy(Some(dtype)));
    }
    match name {
        "asnumpy" | "to_numpy" => {
            let like = call.arguments.first().and_then(Value::as_device);
            return match call.arguments.first() {
                Some(Value::Array(array)) if !array.is_device() => Value::Array(array.clone()),
                _ => Value::Array(Array { on_usm: true, ..to_host(like) }),
            };
        }
        "isscalar" | "iscomplexobj" | "isrealobj" | "isfortran" | "can_cast" | "issubdtype" | "isdtype"
        | "array_equal" | "array_equiv" => return Value::Number(Number::python(Category::Bool)),
        "ndim" | "size" => return Value::Number(Number::integer(None)),
        "allclose" => return Value::Array(Array::device().of_dimensions(0)),
        _ => {}
    }
    if SEVERAL.contains(&name) {
        return Value::Container(Some(Rc::new(Value::Array(Array {
            queue: argument_queue(call),
            ..Array::device()
        }))));
    }
    if !returns_array(name) {
        return Value::Unknown;
    }
    if let Some(Value::Array(out)) = call.keyword("out") {
        return Value::Array(out.clone());
    }
    array_call(name, call, Place::Device)
}

/// Functions that dpnp and NumPy share and that return one array.
fn array_call(name: &str, call: &Call<'_>, place: Place) -> Value {
    let base = Array { place, ..Array::device() };
    let first = call.arguments.first().and_then(Value::as_array);
    let created = |dtype: Option<Dtype>, shape: Option<Rc<[Dim]>>| {
        let queue =
            if place == Place::Device { call.queue().unwrap_or(Queue::Default) } else { Queue::Unknown };
        Value::Array(Array { dtype, shape, queue, ..base.clone() })
    };
    match name {
        "zeros" | "ones" | "empty" => {
            created(call.dtype(1).unwrap_or(Some(Dtype::F64)), call.extents.clone())
        }
        "full" => {
            let filled = call.argument(1, "fill_value").and_then(value_dtype);
            created(call.dtype(2).unwrap_or(filled), call.extents.clone())
        }
        "zeros_like" | "ones_like" | "empty_like" | "full_like" => {
            let position = if name == "full_like" { 2 } else { 1 };
            let dtype = call.dtype(position).unwrap_or(first.and_then(|array| array.dtype));
            let queue = call.queue().or_else(|| first.map(|array| array.queue.clone()));
            let shape = if call.keyword("shape").is_some() {
                None
            } else {
                first.and_then(|array| array.shape.clone())
            };
            Value::Array(Array { dtype, shape, queue: queue.unwrap_or(Queue::Unknown), ..base })
        }
        "arange" | "linspace" | "logspace" | "geomspace" | "hanning" | "hamming" | "kaiser" | "bartlett"
        | "blackman" => {
            let dtype = call.dtype(usize::MAX).unwrap_or_else(|| range_dtype(name, call));
            let extent = match (name, call.arguments) {
                ("arange", [Value::Number(stop)]) => stop.integer,
                ("arange", [Value::Number(start), Value::Number(stop)]) => {
                    start.integer.zip(stop.integer).and_then(|(start, stop)| stop.checked_sub(start))
                }
                ("linspace" | "logspace" | "geomspace", [_, _, Value::Number(count), ..]) => count.integer,
                ("linspace" | "logspace" | "geomspace", [_, _]) => match call.keyword("num") {
                    Some(count) => count.as_integer(),
                    None => Some(50),
                },
                _ => None,
            };
            let dim = extent.and_then(|extent| u64::try_from(extent).ok()).map_or(Dim::Unknown, Dim::Known);
            created(dtype, Some([dim].into()))
        }
        "eye" | "identity" | "tri" => created(
            call.dtype(usize::MAX).unwrap_or(Some(Dtype::F64)),
            Some([Dim::Unknown, Dim::Unknown].into()),
        ),
        "array" | "asarray" | "asanyarray" | "ascontiguousarray" | "asfortranarray" | "from_numpy"
        | "copy" | "from_dlpack" | "frombuffer" | "fromiter" | "fromfile" | "loadtxt" | "fromstring" => {
            converted(name, call, base)
        }
        "concatenate" | "concat" | "stack" | "hstack" | "vstack" | "dstack" | "column_stack"
        | "row_stack" | "append" => {
            let element = match call.arguments.first() {
                Some(Value::Array(array)) => Some(array.clone()),
                Some(value) => value.element().as_array().cloned(),
                None => None,
            };
            let queue = element.as_ref().map_or(Queue::Unknown, |array| array.queue.clone());
            let count = element.as_ref().and_then(Array::dimensions);
            let array = Array { queue, dtype: element.and_then(|array| array.dtype), ..base };
            Value::Array(match (name, count) {
                ("concatenate" | "concat", Some(count)) => array.of_dimensions(count),
                ("stack", Some(count)) => array.of_dimensions(count + 1),
                _ => array,
            })
        }
        _ if REDUCTIONS.contains(&name) => reduced(name, first, call, base, 1),
        _ if is_elementwise(name) => elementwise(name, call, base),
        "matmul" | "dot" | "inner" | "vdot" | "vecdot" | "tensordot" | "outer" | "kron" => {
            product(name, call.arguments, base)
        }
        "reshape" => reshaped(first, call.arguments.get(1..).unwrap_or_default(), base),
        "ravel" => reshaped(first, &[Value::Number(Number::integer(Some(-1)))], base),
        "cumsum" | "cumprod" | "cumulative_sum" | "argsort" | "tril" | "triu" | "sort" | "flip" | "roll" => {
            let mut array = like(first, base);
            if name == "argsort" {
                array.dtype = Some(Dtype::I64);
            }
            Value::Array(array)
        }
        "astype" => {
            let array = like(first, base);
            Value::Array(Array { dtype: call.argument(1, "dtype").and_then(dtype_of), ..array })
        }
        _ if RESHAPING.contains(&name) => {
            let array = like(first, base);
            Value::Array(Array { shape: None, ..array })
        }
        _ => Value::Array(Array { queue: argument_queue(call), ..base }),
    }
}

fn scalar_type(name: &str) -> Option<Dtype> {
    match name {
        "float16" | "float32" | "float64" | "double" | "single" | "half" | "int8" | "int16" | "int32"
        | "int64" | "uint8" | "uint16" | "uint32" | "uint64" | "complex64" | "complex128" | "bool_"
        | "intc" | "int_" | "longlong" | "csingle" | "cdouble" => Dtype::named(name),
        _ => None,
    }
}

fn like(array: Option<&Array>, base: Array) -> Array {
    match array {
        Some(array) => Array { place: base.place, on_usm: false, ..array.clone() },
        None => base,
    }
}

fn to_host(array: Option<&Array>) -> Array {
    Array { queue: Queue::Unknown, ..like(array, Array::host()) }
}

fn argument_queue(call: &Call<'_>) -> Queue {
    call.queue().unwrap_or_else(|| {
        call.arguments.iter().find_map(Value::as_device).map_or(Queue::Unknown, |array| array.queue.clone())
    })
}

fn range_dtype(name: &str, call: &Call<'_>) -> Option<Dtype> {
    if name != "arange" {
        return Some(Dtype::F64);
    }
    let mut dtype = None;
    for argument in call.arguments {
        match argument {
            Value::Number(Number { category: Some(Category::Float), numpy: false, .. }) => {
                return Some(Dtype::F64);
            }
            Value::Number(Number { category: Some(Category::Signed), numpy: false, .. }) => {
                dtype = Some(Dtype::I64);
            }
            _ => return None,
        }
    }
    dtype
}

/// The dtype an array made from this value gets by default.
pub(crate) fn value_dtype(value: &Value) -> Option<Dtype> {
    match value {
        Value::Array(array) => array.dtype,
        Value::Number(number) if number.numpy => number.dtype,
        Value::Number(number) => match number.category? {
            Category::Bool => Some(Dtype::BOOL),
            Category::Unsigned | Category::Signed => Some(Dtype::I64),
            Category::Float => Some(Dtype::F64),
            Category::Complex => Some(Dtype::C128),
        },
        Value::Tuple(_) | Value::Container(Some(_)) => value_dtype(&value.element()),
        _ => None,
    }
}

fn converted(name: &str, call: &Call<'_>, base: Array) -> Value {
    let given = call.arguments.first();
    let source = given.and_then(Value::as_array);
    let position = if matches!(name, "array" | "asarray" | "asanyarray") { 1 } else { usize::MAX };
    let dtype = call.dtype(position).unwrap_or_else(|| given.and_then(value_dtype));
    let shape = match given {
        Some(Value::Number(_)) => Some(Rc::from([])),
        Some(Value::Array(array)) => array.shape.clone(),
        Some(Value::Tuple(items)) if items.iter().all(Value::is_number) => {
            Some([Dim::Known(items.len() as u64)].into())
        }
        Some(Value::Container(Some(element))) if element.is_number() => Some([Dim::Unknown].into()),
        _ => None,
    };
    let queue = match (base.place, call.queue(), source) {
        (Place::Host, ..) => Queue::Unknown,
        (_, Some(queue), _) => queue,
        (_, None, Some(array)) if array.is_device() => array.queue.clone(),
        (_, None, Some(_)) => Queue::Default,
        (_, None, None) => match given {
            Some(Value::Number(_) | Value::Tuple(_)) => Queue::Default,
            _ => Queue::Unknown,
        },
    };
    let on_usm = base.place == Place::Host
        && source.is_some_and(|array| array.on_usm)
        && matches!(name, "asarray" | "asanyarray" | "ascontiguousarray");
    Value::Array(Array { dtype, shape, queue, on_usm, ..base })
}

fn reduced(name: &str, array: Option<&Array>, call: &Call<'_>, base: Array, axis_at: usize) -> Value {
    let given = array.and_then(|array| array.dtype);
    let given = given.or_else(|| call.arguments.first().filter(|_| array.is_none()).and_then(value_dtype));
    let dtype = match (name, given) {
        (name, _) if BOOLEAN.contains(&name) => Some(Dtype::BOOL),
        ("argmax" | "argmin" | "count_nonzero", _) => Some(Dtype::I64),
        ("sum" | "prod", Some(dtype)) if dtype.category < Category::Float => None,
        ("mean" | "std" | "var" | "average" | "median", Some(dtype)) if dtype.category < Category::Float => {
            Some(Dtype::F64)
        }
        (_, dtype) => dtype,
    };
    let dtype = call.dtype(usize::MAX).unwrap_or(dtype);
    let queue = array.map_or(Queue::Unknown, |array| array.queue.clone());
    if call.axis(axis_at) {
        let axis = call.argument(axis_at, "axis");
        let single = matches!(axis, Some(Value::Number(_))) && call.keyword("keepdims").is_none();
        let result = Array { dtype, queue, ..base };
        return Value::Array(match array.and_then(Array::dimensions) {
            Some(count) if single && count > 0 => result.of_dimensions(count - 1),
            _ => result,
        });
    }
    // `trace` and `median` of something unknown may be of any rank; the rest is 0-d whatever the argument.
    if name == "trace" && array.and_then(Array::dimensions) != Some(2) {
        return Value::Array(Array { dtype, queue, ..base });
    }
    if base.place == Place::Host {
        return Value::Number(Number::numpy(dtype));
    }
    Value::Array(Array { dtype, queue, ..base }.of_dimensions(0))
}

fn elementwise(name: &str, call: &Call<'_>, base: Array) -> Value {
    let operands = match name {
        "where" => call.arguments.get(1..).unwrap_or_default(),
        _ => call.arguments,
    };
    let count = if UNARY.contains(&name) { 1 } else { operands.len() };
    let operands = &operands[..count.min(operands.len())];
    match operands.iter().cloned().reduce(|one, two| binary(&one, &two)) {
        Some(Value::Array(mut array)) => {
            if BOOLEAN.contains(&name) {
                array.dtype = Some(Dtype::BOOL);
            } else if !matches!(array.dtype.map(|dtype| dtype.category), Some(Category::Float))
                && (UNARY.contains(&name) || matches!(name, "divide" | "true_divide" | "power" | "pow"))
            {
                array.dtype = None;
            }
            if let Some(dtype) = call.dtype(usize::MAX) {
                array.dtype = dtype;
            }
            Value::Array(Array { place: base.place, on_usm: false, ..array })
        }
        Some(Value::Number(_)) if base.place == Place::Host => {
            Value::Number(Number::numpy(operands.first().and_then(value_dtype).map(|_| Dtype::F64)))
        }
        _ => Value::Array(base),
    }
}

/// The result of an arithmetic operator.
pub(crate) fn binary(left: &Value, right: &Value) -> Value {
    match (left, right) {
        (Value::Array(one), Value::Array(two)) if one.place == two.place => Value::Array(Array {
            place: one.place,
            dtype: one.dtype.zip(two.dtype).map(|(one, two)| one.promote(two)),
            shape: broadcast(one.shape.as_deref(), two.shape.as_deref()),
            queue: if one.queue == two.queue { one.queue.clone() } else { Queue::Unknown },
            on_usm: false,
        }),
        (Value::Array(_), Value::Array(_)) => Value::Unknown,
        (Value::Array(array), Value::Number(number)) | (Value::Number(number), Value::Array(array)) => {
            let dtype = if number.numpy {
                array.dtype.zip(number.dtype).map(|(one, two)| one.promote(two))
            } else {
                array.dtype.zip(number.category).map(|(dtype, category)| dtype.with_python(category))
            };
            Value::Array(Array { dtype, on_usm: false, ..array.clone() })
        }
        // An array meets a value nobody knows: an array on the same side, of any shape.
        (Value::Array(array), Value::Unknown) | (Value::Unknown, Value::Array(array)) => {
            Value::Array(Array { place: array.place, queue: array.queue.clone(), ..Array::device() })
        }
        (Value::Number(one), Value::Number(two)) => {
            let category =
                one.category.zip(two.category).map(|(one, two)| one.max(two).max(Category::Signed));
            let numpy = one.numpy || two.numpy;
            let dtype = if numpy { number_dtype(one, two) } else { None };
            Value::Number(Number { category, numpy, dtype, integer: None })
        }
        (Value::Text(_), _) => Value::Text(None),
        (Value::Container(one), Value::Container(two)) => {
            Value::Container(one.clone()).join(Value::Container(two.clone()))
        }
        _ => Value::Unknown,
    }
}

fn number_dtype(one: &Number, two: &Number) -> Option<Dtype> {
    match (one.numpy, two.numpy) {
        (true, true) => one.dtype.zip(two.dtype).map(|(one, two)| one.promote(two)),
        (true, false) => one.dtype.zip(two.category).map(|(dtype, category)| dtype.with_python(category)),
        (false, true) => two.dtype.zip(one.category).map(|(dtype, category)| dtype.with_python(category)),
        (false, false) => None,
    }
}

pub(crate) fn broadcast(one: Option<&[Dim]>, two: Option<&[Dim]>) -> Option<Rc<[Dim]>> {
    let (one, two) = (one?, two?);
    let (long, short) = if one.len() >= two.len() { (one, two) } else { (two, one) };
    let offset = long.len() - short.len();
    Some(
        long.iter()
            .enumerate()
            .map(|(at, dim)| match at.checked_sub(offset).map(|at| &short[at]) {
                None | Some(Dim::Known(1)) => dim.clone(),
                Some(other) if dim == other => dim.clone(),
                Some(other) if *dim == Dim::Known(1) => other.clone(),
                Some(_) => Dim::Unknown,
            })
            .collect(),
    )
}

fn product(name: &str, arguments: &[Value], base: Array) -> Value {
    let (Some(one), Some(two)) = (arguments.first(), arguments.get(1)) else {
        return Value::Array(base);
    };
    match name {
        "matmul" => matmul(one, two, base),
        "dot" if one.is_number() || two.is_number() => binary(one, two),
        "dot" => matmul(one, two, base),
        "vdot" => Value::Array(base.of_dimensions(0)),
        _ => {
            let queue =
                one.as_device().or(two.as_device()).map_or(Queue::Unknown, |array| array.queue.clone());
            Value::Array(Array { queue, ..base })
        }
    }
}

/// The result of `one @ two`.
pub(crate) fn matmul(one: &Value, two: &Value, base: Array) -> Value {
    let (a, b) = (one.as_array(), two.as_array());
    let queue = a.or(b).map_or(Queue::Unknown, |array| array.queue.clone());
    let dtype = a.and_then(|a| a.dtype).zip(b.and_then(|b| b.dtype)).map(|(one, two)| one.promote(two));
    let shape = match (a.and_then(|a| a.shape.as_deref()), b.and_then(|b| b.shape.as_deref())) {
        (Some([_]), Some([_])) => Some(Rc::from([])),
        (Some([rows, _]), Some([_])) => Some([rows.clone()].into()),
        (Some([_]), Some([_, columns])) => Some([columns.clone()].into()),
        (Some([rows, _]), Some([_, columns])) => Some([rows.clone(), columns.clone()].into()),
        _ => None,
    };
    Value::Array(Array { dtype, shape, queue, ..base })
}

fn reshaped(array: Option<&Array>, extents: &[Value], base: Array) -> Value {
    let extents = match extents {
        [Value::Tuple(extents)] => extents,
        extents => extents,
    };
    let known = array.and_then(Array::elements);
    let one_open = extents.iter().filter(|value| value.as_integer() == Some(-1)).count() == 1;
    let rest: Option<u64> = extents
        .iter()
        .filter(|value| value.as_integer() != Some(-1))
        .map(|value| value.as_integer().and_then(|extent| u64::try_from(extent).ok()))
        .try_fold(1_u64, |product, extent| product.checked_mul(extent?));
    let dims: Option<Vec<Dim>> = extents
        .iter()
        .map(|value| match value {
            Value::Number(Number { integer: Some(-1), .. }) => Some(match (known, rest) {
                (Some(known), Some(rest)) if one_open && rest > 0 => Dim::Known(known / rest),
                _ => Dim::Unknown,
            }),
            Value::Number(number) => Some(
                number.integer.and_then(|extent| u64::try_from(extent).ok()).map_or(Dim::Unknown, Dim::Known),
            ),
            _ => None,
        })
        .collect();
    Value::Array(Array { shape: dims.filter(|dims| !dims.is_empty()).map(Into::into), ..like(array, base) })
}

fn linalg_call(name: &str, call: &Call<'_>) -> Value {
    let base = Array { queue: argument_queue(call), ..Array::device() };
    let first = call.arguments.first().and_then(Value::as_array);
    match name {
        "norm" | "vector_norm" if !call.axis(2) && !call.axis(1) => Value::Array(base.of_dimensions(0)),
        "det" | "cond" | "matrix_rank" if first.and_then(Array::dimensions) == Some(2) => {
            Value::Array(base.of_dimensions(0))
        }
        "eig" | "eigh" | "qr" | "slogdet" | "svd" | "lstsq" => {
            Value::Container(Some(Rc::new(Value::Array(base))))
        }
        "inv" | "cholesky" | "matrix_power" | "pinv" => Value::Array(like(first, base)),
        "solve" => Value::Array(like(call.arguments.get(1).and_then(Value::as_array), base)),
        "matmul" => product(name, call.arguments, base),
        "LinAlgError" => Value::Unknown,
        _ => Value::Array(base),
    }
}

fn random_call(name: &str, call: &Call<'_>, base: Array) -> Value {
    let shape_from = |values: &[Value]| -> Option<Rc<[Dim]>> {
        values
            .iter()
            .map(|value| match value {
                Value::Number(number) => Some(
                    number
                        .integer
                        .and_then(|extent| u64::try_from(extent).ok())
                        .map_or(Dim::Unknown, Dim::Known),
                ),
                _ => None,
            })
            .collect::<Option<Vec<_>>>()
            .map(Into::into)
    };
    match name {
        "seed" | "shuffle" | "bytes" | "get_state" | "set_state" => Value::Unknown,
        "RandomState" => Value::Unknown,
        "default_rng" | "Generator" if base.place == Place::Host => Value::HostRandom,
        "default_rng" | "Generator" => Value::Unknown,
        "rand" | "randn" => {
            let shape = if call.arguments.is_empty() { None } else { shape_from(call.arguments) };
            sampled(call.arguments.is_empty(), Some(Dtype::F64), shape, base)
        }
        _ => {
            let dtype = match name {
                "randint" | "random_integers" | "binomial" | "poisson" | "geometric" | "integers" => None,
                "choice" | "permutation" => None,
                _ => Some(Dtype::F64),
            };
            let dtype = call.dtype(usize::MAX).unwrap_or(dtype);
            let simple = matches!(name, "random" | "random_sample" | "sample" | "ranf" | "standard_normal");
            let size = call.keyword("size").or_else(|| if simple { call.arguments.first() } else { None });
            let size = size.or_else(|| match name {
                "normal" | "uniform" | "randint" | "integers" => call.arguments.get(2),
                "permutation" => call.arguments.first(),
                _ => None,
            });
            match size {
                None | Some(Value::Nothing) if name != "choice" => sampled(true, dtype, None, base),
                Some(Value::Tuple(extents)) => sampled(false, dtype, shape_from(extents), base),
                Some(value @ Value::Number(_)) => {
                    sampled(false, dtype, shape_from(std::slice::from_ref(value)), base)
                }
                _ => sampled(false, dtype, None, base),
            }
        }
    }
}

fn sampled(single: bool, dtype: Option<Dtype>, shape: Option<Rc<[Dim]>>, base: Array) -> Value {
    match (single, base.place) {
        (true, Place::Host) => Value::Number(Number::python(Category::Float)),
        (true, Place::Device) => Value::Array(Array { dtype, ..base }.of_dimensions(0)),
        (false, _) => Value::Array(Array { dtype, shape, ..base }),
    }
}

/// What a method of a NumPy random generator returns.
pub(crate) fn host_random(name: &str, call: &Call<'_>) -> Value {
    random_call(name, call, Array::host())
}

fn host_call(name: &str, call: &Call<'_>) -> Value {
    if let Some(name) = name.strip_prefix("random.") {
        return random_call(name, call, Array::host());
    }
    let delegated = call.arguments.first().and_then(Value::as_device).is_some();
    if name.contains('.') {
        let array =
            matches!(name.split_once('.'), Some(("fft", _)) | Some(("linalg", "inv" | "solve" | "cholesky")));
        return if array && !delegated { Value::Array(Array::host()) } else { Value::Unknown };
    }
    if let Some(dtype) = scalar_type(name) {
        return Value::Number(Number::numpy(Some(dtype)));
    }
    if name == "load" || name == "fromfile" || name == "genfromtxt" || name == "loadtxt" || name == "memmap" {
        return Value::Array(Array::host());
    }
    if delegated {
        return if delegates(name) { array_call(name, call, Place::Device) } else { Value::Unknown };
    }
    match name {
        "ndim" | "size" => return Value::Number(Number::integer(None)),
        "allclose" | "array_equal" | "isscalar" => return Value::Number(Number::python(Category::Bool)),
        _ => {}
    }
    if SEVERAL.contains(&name) {
        return Value::Container(Some(Rc::new(Value::Array(Array::host()))));
    }
    // A function of something unknown may get a dpnp array and hand it on, or a number.
    let takes_arrays = [UNARY, BINARY, REDUCTIONS, RESHAPING].iter().any(|table| table.contains(&name));
    let unknown = |value: &Value| matches!(value, Value::Unknown | Value::Method(..));
    if !returns_array(name) || takes_arrays && call.arguments.first().is_none_or(unknown) {
        return Value::Unknown;
    }
    array_call(name, call, Place::Host)
}

/// NumPy functions that hand a dpnp array to its own method and so return a dpnp array.
pub(crate) fn delegates(name: &str) -> bool {
    matches!(
        name,
        "all"
            | "amax"
            | "amin"
            | "any"
            | "argmax"
            | "argmin"
            | "argsort"
            | "around"
            | "clip"
            | "cumprod"
            | "cumsum"
            | "flip"
            | "imag"
            | "max"
            | "mean"
            | "min"
            | "permute_dims"
            | "prod"
            | "real"
            | "repeat"
            | "reshape"
            | "round"
            | "squeeze"
            | "std"
            | "sum"
            | "transpose"
            | "var"
    )
}

/// What calling a method of an array returns.
pub(crate) fn method(array: &Array, name: &str, call: &Call<'_>) -> Value {
    let base = Array { place: array.place, queue: array.queue.clone(), ..Array::device() };
    let same = Array { on_usm: false, ..array.clone() };
    match name {
        "asnumpy" if array.is_device() => Value::Array(Array { on_usm: true, ..to_host(Some(array)) }),
        "item" => {
            Value::Number(Number { category: array.dtype.map(|dtype| dtype.category), ..Number::UNKNOWN })
        }
        "tolist" => Value::Container(None).join(Value::Unknown),
        "astype" => Value::Array(Array { dtype: call.argument(0, "dtype").and_then(dtype_of), ..same }),
        "copy" | "round" | "conj" | "conjugate" | "clip" => match call.keyword("out") {
            Some(Value::Array(out)) => Value::Array(out.clone()),
            _ => Value::Array(same),
        },
        "cumsum" | "cumprod" | "argsort" => {
            let dtype = if name == "argsort" { Some(Dtype::I64) } else { array.dtype };
            Value::Array(Array { dtype, ..same })
        }
        "to_device" => Value::Array(Array {
            queue: match call.arguments.first() {
                Some(Value::Queue(queue)) => queue.clone(),
                Some(Value::Text(Some(text))) => Queue::Device(text.clone()),
                _ => Queue::Unknown,
            },
            ..same
        }),
        "ravel" | "flatten" => reshaped(
            Some(&same),
            &[Value::Number(Number::integer(Some(-1)))],
            Array { on_usm: array.on_usm, ..base },
        ),
        "reshape" => reshaped(Some(array), call.arguments, base),
        "view" | "squeeze" | "swapaxes" | "transpose" | "diagonal" => {
            let count = array.dimensions();
            let view = Array { dtype: array.dtype, on_usm: array.on_usm, ..base };
            Value::Array(match count {
                Some(count) if matches!(name, "swapaxes" | "transpose") => view.of_dimensions(count),
                _ => view,
            })
        }
        "dot" => match call.arguments.first() {
            Some(other) => matmul(&Value::Array(array.clone()), other, base),
            None => Value::Unknown,
        },
        "nonzero" => Value::Container(Some(Rc::new(Value::Array(base)))),
        "get_array" => Value::Array(same),
        "take" | "repeat" | "compress" | "choose" | "searchsorted" => Value::Array(base),
        _ if REDUCTIONS.contains(&name) => reduced(name, Some(array), call, base, 0),
        _ => Value::Unknown,
    }
}

/// What an attribute of an array holds.
pub(crate) fn attribute(array: &Array, name: &str) -> Value {
    match name {
        "shape" | "strides" => match &array.shape {
            Some(shape) => Value::Tuple(
                shape
                    .iter()
                    .map(|dim| {
                        Value::Number(Number::integer(match dim {
                            Dim::Known(extent) if name == "shape" => i64::try_from(*extent).ok(),
                            _ => None,
                        }))
                    })
                    .collect(),
            ),
            None => Value::Container(Some(Rc::new(Value::Number(Number::integer(None))))),
        },
        "size" | "ndim" | "nbytes" | "itemsize" => Value::Number(Number::integer(None)),
        "dtype" => array.dtype.map_or(Value::Unknown, Value::Dtype),
        "T" | "mT" => {
            let shape = array.shape.as_ref().map(|shape| shape.iter().rev().cloned().collect());
            Value::Array(Array { shape, ..array.clone() })
        }
        "real" | "imag" => Value::Array(Array { dtype: None, ..array.clone() }),
        "sycl_queue" | "device" if array.is_device() => Value::Queue(array.queue.clone()),
        "usm_type" => Value::Text(None),
        "flat" => Value::Unknown,
        _ => Value::Method(Rc::new(Value::Array(array.clone())), name.into()),
    }
}
