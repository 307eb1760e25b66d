//! DPM306: an operand that nobody meant to be wide widens the result.

use std::collections::BTreeMap;

use super::facts::{Facts, Operand, Promotion};
use super::{Finding, Place, RuleDoc, Severity, Value};
use crate::kind::DeviceId;

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM306",
    name: "dtype-doubling",
    severity: Severity::Warning,
    what: "Fires for an operation of a device array with a NumPy scalar, or with an array of zero dimensions, whose dtype is
of the same kind and wider, so that the array was cast and the result is wider too (comparisons, and calls with `dtype=` or `out=`, are left alone). Operands are looked at when the
library casts one of them for the first time at a line of the main thread. Two arrays of different width are taken as
meant.",
    explanation: None,
};

pub(super) fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let mut places: BTreeMap<&Place, Finding> = BTreeMap::new();
    for promotion in facts.promotions {
        if let Some((narrow, wide)) = widened(promotion) {
            places.entry(&promotion.place).or_insert_with(|| finding(promotion, narrow, wide));
        }
    }
    places.into_values().collect()
}

/// Operations whose result has a dtype of its own.
const COMPARISONS: [&str; 9] = [
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
];

/// The array that was cast and the operand it was cast for, if nobody asked for that.
fn widened(promotion: &Promotion) -> Option<(&Operand, &Operand)> {
    if COMPARISONS.contains(&promotion.operation.as_str()) {
        return None;
    }
    let [one, two] = &promotion.operands;
    [(one, two), (two, one)].into_iter().find(|(narrow, wide)| {
        let (Some(from), Some(to)) = (width(narrow), width(wide)) else { return false };
        narrow.dimensions.is_some_and(|n| n > 0)
            && wide.dimensions == Some(0)
            && from.0 == to.0
            && to.1 > from.1
    })
}

/// Kind and bits of a dtype, such as `float` and 64.
fn width(operand: &Operand) -> Option<(&str, u32)> {
    let dtype = operand.dtype.as_deref()?;
    let at = dtype.find(|c: char| c.is_ascii_digit())?;
    Some((&dtype[..at], dtype[at..].parse().ok()?))
}

fn finding(promotion: &Promotion, narrow: &Operand, wide: &Operand) -> Finding {
    let dtype = |operand: &Operand| operand.dtype.clone().unwrap_or_default();
    let (from, to) = (dtype(narrow), dtype(wide));
    let scalar = wide.type_name.starts_with("numpy.") && wide.type_name != "numpy.ndarray";
    let what = if scalar {
        format!("a NumPy scalar (`{}`)", wide.type_name)
    } else {
        format!("an array of zero dimensions and dtype {to}")
    };
    Finding {
        rule: &DOC,
        place: Some(promotion.place.clone()),
        device: DeviceId::NONE,
        message: format!("`{}` casts a {from} array to {to} because of {what}", promotion.operation),
        advice: format!(
            "use a Python number (`float(...)`), or an operand of dtype {from}; if {to} is meant, say `.astype(dpnp.{to})`"
        ),
        evidence: vec![
            ("array_dtype", Value::Text(from)),
            ("operand_dtype", Value::Text(to)),
            ("operand_type", Value::Text(wide.type_name.clone())),
        ],
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::Snapshot;

    fn operand(type_name: &str, dtype: Option<&str>, dimensions: Option<u32>) -> Operand {
        Operand { type_name: type_name.into(), dtype: dtype.map(Into::into), dimensions }
    }

    fn found(wide: Operand) -> Vec<Finding> {
        let array = operand("dpnp.ndarray", Some("float32"), Some(1));
        let place = Place { file: "a.py".into(), line: 3 };
        let promotions = [Promotion { place, operation: "multiply".into(), operands: [array, wide] }];
        let snapshot = Snapshot::default();
        check(&Facts { promotions: &promotions, ..Facts::of(&snapshot) })
    }

    #[test]
    fn scalars_and_zero_dimensions_that_widen() {
        let findings = found(operand("numpy.float64", Some("float64"), Some(0)));
        assert!(findings[0].message.contains("numpy.float64"), "{}", findings[0].message);
        assert_eq!(found(operand("dpnp.ndarray", Some("float64"), Some(0))).len(), 1);
    }

    #[test]
    fn arrays_python_numbers_and_other_kinds_are_innocent() {
        assert!(found(operand("dpnp.ndarray", Some("float64"), Some(1))).is_empty());
        assert!(found(operand("float", None, None)).is_empty());
        assert!(found(operand("numpy.complex128", Some("complex128"), Some(0))).is_empty());
        assert!(found(operand("numpy.float32", Some("float32"), Some(0))).is_empty());
    }
}
