//! The JSON is a contract: names, order and forms of all keys.

use crate::fixtures::{json, report};

/// `testdata/contract.json` holds every key in the order of the contract and every word that a key may have.
#[test]
fn keys_words_and_their_order_are_those_of_the_contract() {
    assert_eq!(report("contract").to_json(), without_layout(&json("contract")));
}

#[test]
fn json_is_one_line() {
    assert!(!report("busy").to_json().contains('\n'));
    assert!(!report("hostile").to_json().contains('\n'));
}

#[test]
fn no_pool_is_null() {
    assert!(report("busy").to_json().contains(r#""pool":null,"findings":["#));
}

#[test]
fn a_float_that_is_no_number_is_null() {
    let mut report = report("empty");
    report.duration_s = f64::NAN;
    assert!(report.to_json().contains(r#""duration_s":null"#));
}

/// JSON without the white space outside strings.
fn without_layout(json: &str) -> String {
    let (mut in_string, mut escaped) = (false, false);
    json.chars()
        .filter(|c| {
            let quote = *c == '"' && !escaped;
            escaped = in_string && *c == '\\' && !escaped;
            in_string ^= quote;
            in_string || !c.is_whitespace()
        })
        .collect()
}
