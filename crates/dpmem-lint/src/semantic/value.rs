//! The kinds of value the flow analysis tells apart. [`Value::Unknown`] is the honest answer for everything else.

use std::rc::Rc;

use super::index::{ClassId, FunctionId};

/// What an expression holds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Unknown,
    /// The constant `None`.
    Nothing,
    /// A module or something in one, by dotted path: `dpnp`, `dpnp.zeros`, `numpy.float32`.
    Path(Rc<str>),
    Array(Array),
    Number(Number),
    Text(Option<Rc<str>>),
    /// A list, set, dict or generator, with the join of what it holds (`None` while empty).
    Container(Option<Rc<Value>>),
    Tuple(Rc<[Value]>),
    Queue(Queue),
    Dtype(Dtype),
    Function(FunctionId),
    Class(ClassId),
    Instance(ClassId),
    /// A method of a value, not called yet.
    Method(Rc<Value>, Rc<str>),
    /// A NumPy random generator.
    HostRandom,
}

/// Where an array's data is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Device,
    Host,
}

/// A dpnp, dpctl or NumPy array.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Array {
    pub(crate) place: Place,
    pub(crate) dtype: Option<Dtype>,
    /// `None` if not even the number of dimensions is known.
    pub(crate) shape: Option<Rc<[Dim]>>,
    pub(crate) queue: Queue,
    /// A NumPy array that sits on a USM-host block.
    pub(crate) on_usm: bool,
}

/// One extent of a shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Dim {
    Known(u64),
    /// As written in the program.
    Named(Rc<str>),
    Unknown,
}

/// A Python number, or a NumPy scalar.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Number {
    pub(crate) category: Option<Category>,
    /// A NumPy scalar, whose dtype takes part in promotion.
    pub(crate) numpy: bool,
    pub(crate) dtype: Option<Dtype>,
    pub(crate) integer: Option<i64>,
}

/// Which queue an array is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Queue {
    Unknown,
    /// The default device's cached queue.
    Default,
    /// A queue of its own, by where it is created.
    Created(u32),
    /// The cached queue of the device with this filter string.
    Device(Rc<str>),
}

impl Queue {
    /// True if arrays of the two cannot meet, whatever the machine.
    pub(crate) fn surely_differs(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Created(one), Self::Created(two)) => one != two,
            (Self::Created(_), Self::Default | Self::Device(_))
            | (Self::Default | Self::Device(_), Self::Created(_)) => true,
            (Self::Device(one), Self::Device(two)) => disjoint(one, two),
            _ => false,
        }
    }
}

/// Filter strings that can name no device in common.
fn disjoint(one: &str, two: &str) -> bool {
    const KINDS: [&str; 3] = ["cpu", "gpu", "accelerator"];
    const BACKENDS: [&str; 4] = ["opencl", "level_zero", "cuda", "hip"];
    let find = |text: &str, names: &[&'static str]| {
        text.split(':').find_map(|part| names.iter().find(|name| **name == part).copied())
    };
    if one.contains(',') || two.contains(',') {
        return false;
    }
    let differ = |names: &[&'static str]| match (find(one, names), find(two, names)) {
        (Some(one), Some(two)) => one != two,
        _ => false,
    };
    let number = |text: &str| text.split(':').find_map(|part| part.parse::<u32>().ok());
    let same_platform = find(one, &BACKENDS).is_some()
        && find(one, &BACKENDS) == find(two, &BACKENDS)
        && find(one, &KINDS).is_some()
        && find(one, &KINDS) == find(two, &KINDS);
    differ(&KINDS)
        || differ(&BACKENDS)
        || (same_platform && number(one).is_some() && number(two).is_some() && number(one) != number(two))
}

/// Element types by category and width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dtype {
    pub(crate) category: Category,
    pub(crate) bytes: u8,
}

/// Categories in promotion order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Category {
    Bool,
    Unsigned,
    Signed,
    Float,
    Complex,
}

impl Dtype {
    pub(crate) const BOOL: Self = Self { category: Category::Bool, bytes: 1 };
    pub(crate) const I64: Self = Self { category: Category::Signed, bytes: 8 };
    pub(crate) const F64: Self = Self { category: Category::Float, bytes: 8 };
    pub(crate) const C128: Self = Self { category: Category::Complex, bytes: 16 };

    /// From a name such as `float32`, `f4`, `<f8` or `float`.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let name = name.trim_start_matches(['<', '>', '=', '|']);
        let (category, bytes) = match name {
            "bool" | "bool_" | "?" | "b1" => (Category::Bool, 1),
            "float16" | "f2" | "half" | "e" => (Category::Float, 2),
            "float32" | "f4" | "single" | "f" => (Category::Float, 4),
            "float64" | "f8" | "double" | "d" | "float" => (Category::Float, 8),
            "complex64" | "c8" | "csingle" | "F" => (Category::Complex, 8),
            "complex128" | "c16" | "cdouble" | "D" | "complex" => (Category::Complex, 16),
            "int8" | "i1" | "byte" => (Category::Signed, 1),
            "int16" | "i2" | "short" => (Category::Signed, 2),
            "int32" | "i4" | "intc" => (Category::Signed, 4),
            "int64" | "i8" | "int" | "int_" | "longlong" => (Category::Signed, 8),
            "uint8" | "u1" | "ubyte" => (Category::Unsigned, 1),
            "uint16" | "u2" | "ushort" => (Category::Unsigned, 2),
            "uint32" | "u4" | "uintc" => (Category::Unsigned, 4),
            "uint64" | "u8" | "uint" | "ulonglong" => (Category::Unsigned, 8),
            _ => return None,
        };
        Some(Self { category, bytes })
    }

    /// The dtype of an operation on two arrays.
    pub(crate) fn promote(self, other: Self) -> Self {
        let (low, high) = if (self.category, self.bytes) <= (other.category, other.bytes) {
            (self, other)
        } else {
            (other, self)
        };
        if low.category == high.category {
            return high;
        }
        match (low.category, high.category) {
            (Category::Bool, _) => high,
            (Category::Unsigned, Category::Signed) if low.bytes >= high.bytes => {
                if low.bytes == 8 {
                    Self::F64
                } else {
                    Self { category: Category::Signed, bytes: low.bytes * 2 }
                }
            }
            (Category::Unsigned, Category::Signed) => high,
            (Category::Unsigned | Category::Signed, Category::Float | Category::Complex) => {
                let float = match low.bytes {
                    1 => 2,
                    2 => 4,
                    _ => 8,
                };
                let scale = if high.category == Category::Complex { 2 } else { 1 };
                Self { category: high.category, bytes: high.bytes.max(float * scale) }
            }
            (Category::Float, Category::Complex) => {
                Self { category: Category::Complex, bytes: high.bytes.max((low.bytes * 2).max(8)) }
            }
            _ => high,
        }
    }

    /// The dtype of an array of this dtype combined with a Python number of `category`.
    pub(crate) fn with_python(self, category: Category) -> Self {
        match (self.category, category) {
            (Category::Complex, _) | (_, Category::Bool) => self,
            (Category::Float, Category::Complex) => {
                Self { category: Category::Complex, bytes: (self.bytes * 2).max(8) }
            }
            (Category::Float, _) => self,
            (_, Category::Complex) => Self::C128,
            (_, Category::Float) => Self::F64,
            (Category::Bool, _) => Self::I64,
            _ => self,
        }
    }

    pub(crate) fn name(self) -> String {
        match self.category {
            Category::Bool => "bool".to_owned(),
            Category::Unsigned => format!("uint{}", self.bytes * 8),
            Category::Signed => format!("int{}", self.bytes * 8),
            Category::Float => format!("float{}", u32::from(self.bytes) * 8),
            Category::Complex => format!("complex{}", u32::from(self.bytes) * 8),
        }
    }
}

impl Number {
    pub(crate) const UNKNOWN: Self = Self { category: None, numpy: false, dtype: None, integer: None };

    pub(crate) fn python(category: Category) -> Self {
        Self { category: Some(category), ..Self::UNKNOWN }
    }

    pub(crate) fn integer(value: Option<i64>) -> Self {
        Self { category: Some(Category::Signed), integer: value, ..Self::UNKNOWN }
    }

    pub(crate) fn numpy(dtype: Option<Dtype>) -> Self {
        Self { category: dtype.map(|dtype| dtype.category), numpy: true, dtype, integer: None }
    }
}

impl Array {
    pub(crate) fn device() -> Self {
        Self { place: Place::Device, dtype: None, shape: None, queue: Queue::Unknown, on_usm: false }
    }

    pub(crate) fn host() -> Self {
        Self { place: Place::Host, ..Self::device() }
    }

    pub(crate) fn is_device(&self) -> bool {
        self.place == Place::Device
    }

    /// Number of dimensions, if known.
    pub(crate) fn dimensions(&self) -> Option<usize> {
        self.shape.as_ref().map(|shape| shape.len())
    }

    /// Number of elements, if every extent is known.
    pub(crate) fn elements(&self) -> Option<u64> {
        let shape = self.shape.as_ref()?;
        shape.iter().try_fold(1_u64, |product, dim| match dim {
            Dim::Known(extent) => product.checked_mul(*extent),
            _ => None,
        })
    }

    /// Same number of dimensions, nothing else known about the shape.
    pub(crate) fn of_dimensions(mut self, count: usize) -> Self {
        self.shape = Some(vec![Dim::Unknown; count].into());
        self
    }
}

impl Value {
    pub(crate) fn path(path: &str) -> Self {
        Self::Path(path.into())
    }

    pub(crate) fn as_array(&self) -> Option<&Array> {
        match self {
            Self::Array(array) => Some(array),
            _ => None,
        }
    }

    pub(crate) fn as_device(&self) -> Option<&Array> {
        self.as_array().filter(|array| array.is_device())
    }

    pub(crate) fn as_host(&self) -> Option<&Array> {
        self.as_array().filter(|array| !array.is_device())
    }

    pub(crate) fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Number(number) => number.integer,
            _ => None,
        }
    }

    pub(crate) fn is_number(&self) -> bool {
        matches!(self, Self::Number(_))
    }

    /// What a container of this value yields on iteration.
    pub(crate) fn element(&self) -> Self {
        match self {
            Self::Container(Some(element)) => (**element).clone(),
            Self::Tuple(items) => items.iter().cloned().reduce(Self::join).unwrap_or(Self::Unknown),
            Self::Array(array) => Self::Array(Array {
                shape: array.shape.as_ref().and_then(|shape| shape.get(1..).map(Into::into)),
                ..array.clone()
            }),
            _ => Self::Unknown,
        }
    }

    /// What is known when either may hold.
    pub(crate) fn join(self, other: Self) -> Self {
        if self == other {
            return self;
        }
        match (self, other) {
            (Self::Nothing, known) | (known, Self::Nothing) => known,
            (Self::Array(one), Self::Array(two)) if one.place == two.place => Self::Array(Array {
                place: one.place,
                dtype: one.dtype.filter(|dtype| Some(*dtype) == two.dtype),
                shape: join_shapes(one.shape, two.shape),
                queue: if one.queue == two.queue { one.queue } else { Queue::Unknown },
                on_usm: one.on_usm && two.on_usm,
            }),
            (Self::Number(one), Self::Number(two)) if one.numpy == two.numpy => Self::Number(Number {
                category: one.category.filter(|category| Some(*category) == two.category),
                numpy: one.numpy,
                dtype: one.dtype.filter(|dtype| Some(*dtype) == two.dtype),
                integer: None,
            }),
            (Self::Text(_), Self::Text(_)) => Self::Text(None),
            (Self::Container(one), Self::Container(two)) => Self::Container(match (one, two) {
                (None, known) | (known, None) => known,
                (Some(one), Some(two)) => Some(Rc::new((*one).clone().join((*two).clone()))),
            }),
            (Self::Tuple(one), Self::Tuple(two)) if one.len() == two.len() => {
                Self::Tuple(one.iter().cloned().zip(two.iter().cloned()).map(|(a, b)| a.join(b)).collect())
            }
            (Self::Queue(_), Self::Queue(_)) => Self::Queue(Queue::Unknown),
            _ => Self::Unknown,
        }
    }
}

fn join_shapes(one: Option<Rc<[Dim]>>, two: Option<Rc<[Dim]>>) -> Option<Rc<[Dim]>> {
    let (one, two) = (one?, two?);
    (one.len() == two.len()).then(|| {
        one.iter().zip(two.iter()).map(|(a, b)| if a == b { a.clone() } else { Dim::Unknown }).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promotion_agrees_with_the_library() {
        let of = |name| Dtype::named(name).expect("a dtype");
        for (one, two, result) in [
            ("float32", "float64", "float64"),
            ("float32", "int64", "float64"),
            ("float32", "int16", "float32"),
            ("int32", "float32", "float64"),
            ("int32", "int64", "int64"),
            ("uint32", "int32", "int64"),
            ("float32", "complex64", "complex64"),
            ("float64", "complex64", "complex128"),
            ("bool", "uint8", "uint8"),
        ] {
            assert_eq!(of(one).promote(of(two)), of(result), "{one} {two}");
            assert_eq!(of(two).promote(of(one)), of(result), "{two} {one}");
        }
        assert_eq!(of("int32").with_python(Category::Float), Dtype::F64);
        assert_eq!(of("float32").with_python(Category::Float), of("float32"));
    }

    #[test]
    fn queues_differ_only_when_sure() {
        let device = |text: &str| Queue::Device(text.into());
        assert!(Queue::Created(1).surely_differs(&Queue::Created(2)));
        assert!(Queue::Created(1).surely_differs(&Queue::Default));
        assert!(device("opencl:cpu").surely_differs(&device("gpu")));
        assert!(device("level_zero:gpu:0").surely_differs(&device("level_zero:gpu:1")));
        assert!(!device("gpu").surely_differs(&device("level_zero:gpu:0")));
        assert!(!device("cpu").surely_differs(&Queue::Default));
        assert!(!Queue::Unknown.surely_differs(&Queue::Created(1)));
    }
}
