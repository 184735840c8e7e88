//! Properties of the call metrics on generated calls.

use karat_metrics::calls::alignment::{agreement, alignment, exact};
use karat_metrics::calls::deepeval::ToolCorrectness;
use karat_metrics::calls::expected::{ExpectedCall, Presence, Step};
use karat_metrics::calls::f1::f1;
use karat_metrics::calls::json::{self, Reader};
use karat_metrics::calls::{Arguments, Call, Equality, Expected, Object, Value, python, ragas};
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Values from a small set, so that equal ones, and those equal in one sense only, are frequent.
fn value() -> impl Strategy<Value = Value<'static>> {
    let texts =
        ["", "a", "1", "1.0", "True", "None", "[1]", "{'a': 1}", "it's", "\"", "\u{e9}\n\u{200b}"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-2_i64..3).prop_map(Value::Int),
        select(vec![0.0, -0.0, 1.0, 1.5, 1e16, 1e-5, f64::INFINITY]).prop_map(Value::Float),
        select(vec!["18446744073709551616", "-9223372036854775809"])
            .prop_map(|digits| json::parse(digits).unwrap()),
        select(texts.to_vec()).prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::List),
            object_of(inner).prop_map(Value::Object),
        ]
    })
}

/// Any value at all.
fn wild_value() -> impl Strategy<Value = Value<'static>> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        "-?[1-9][0-9]{19,40}".prop_map(|digits| json::parse(&digits).unwrap().into_owned()),
        any::<f64>().prop_filter("JSON has no NaN", |f| !f.is_nan()).prop_map(Value::Float),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::List),
            prop::collection::vec((any::<String>(), inner), 0..5)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

fn object_of(
    inner: impl Strategy<Value = Value<'static>>,
) -> impl Strategy<Value = Object<'static>> {
    let keys = select(vec!["a", "b", "c"]);
    prop::collection::vec((keys, inner), 0..3).prop_map(|entries| entries.into_iter().collect())
}

fn call() -> impl Strategy<Value = Call<'static>> {
    (select(vec!["f", "g"]), object_of(value())).prop_map(|(name, object)| Call::new(name, object))
}

fn calls(at_most: usize) -> impl Strategy<Value = Vec<Call<'static>>> {
    prop::collection::vec(call(), 0..=at_most)
}

/// Two lists of calls, the second often made from the first.
fn pair(at_most: usize) -> impl Strategy<Value = (Vec<Call<'static>>, Vec<Call<'static>>)> {
    let related = (calls(at_most), prop::collection::vec((any::<Index>(), call()), 0..3)).prop_map(
        |(calls, changes)| {
            let mut others = calls.clone();
            for (position, call) in changes {
                if !others.is_empty() {
                    let position = position.index(others.len());
                    others[position] = call;
                }
            }
            (calls, others)
        },
    );
    prop_oneof![related, (calls(at_most), calls(at_most))]
}

type Metric = (&'static str, fn(&[Call<'_>], &[Call<'_>]) -> f64);

/// All metrics without settings, and DeepEval's in its modes.
const METRICS: &[Metric] = &[
    ("calls.exact", |a, b| if exact(a, b) { 1.0 } else { 0.0 }),
    ("calls.alignment", |a, b| alignment(a, b)),
    ("calls.f1", |a, b| f1(a, b)),
    ("ragas.tool_call_accuracy", |a, b| ragas::tool_call_accuracy(a, b).score),
    ("ragas.tool_call_accuracy_unordered", |a, b| ragas::tool_call_accuracy_unordered(a, b).score),
    ("ragas.tool_call_accuracy_levenshtein", |a, b| {
        ragas::tool_call_accuracy_levenshtein(a, b).score
    }),
    ("ragas.tool_call_f1", |a, b| ragas::tool_call_f1(a, b)),
    ("deepeval default", |a, b| deepeval("default|name+input", a, b)),
    ("deepeval ordered", |a, b| deepeval("ordered|name+input+output", a, b)),
    ("deepeval exact", |a, b| deepeval("exact|name+input", a, b)),
];

fn deepeval(setting: &str, called: &[Call<'_>], expected: &[Call<'_>]) -> f64 {
    setting.parse::<ToolCorrectness>().unwrap().measure(called, expected).score
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12
}

/// The calls as they would come from a file.
fn texts(calls: &[Call<'_>]) -> Vec<String> {
    calls.iter().map(|call| call.arguments().to_string()).collect()
}

fn from_texts<'t>(calls: &'t [Call<'_>], texts: &'t [String]) -> Vec<Call<'t>> {
    let call = |(call, text): (&'t Call<'_>, &'t String)| {
        Call::new(&*call.name, Arguments::read(&mut Reader::new(text)).unwrap())
    };
    calls.iter().zip(texts).map(call).collect()
}

fn permuted(calls: &[Call<'static>], by: &[Index]) -> Vec<Call<'static>> {
    let mut rest = calls.to_vec();
    let mut permuted = Vec::new();
    for position in by.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        permuted.push(rest.remove(position.index(rest.len())));
    }
    permuted
}

/// The value with one zero: `-0` is an integer to us, as to Python, and a negative float to serde_json.
fn zeros_alike(mut value: serde_json::Value) -> serde_json::Value {
    match &mut value {
        serde_json::Value::Number(number) if number.as_f64() == Some(0.0) => *number = 0.into(),
        serde_json::Value::Array(values) => {
            values.iter_mut().for_each(|value| *value = zeros_alike(value.take()));
        }
        serde_json::Value::Object(fields) => {
            fields.values_mut().for_each(|value| *value = zeros_alike(value.take()));
        }
        _ => {}
    }
    value
}

proptest! {
    #[test]
    fn every_score_lies_between_0_and_1((called, expected) in pair(6)) {
        for (name, metric) in METRICS {
            let score = metric(&called, &expected);
            prop_assert!((0.0..=1.0).contains(&score), "{name}: {score}");
        }
    }

    #[test]
    fn calls_that_are_the_expected_ones_score_1(calls in calls(6)) {
        for (name, metric) in METRICS {
            // Conventions of the peers: nothing at all scores 0 in RAGAS's F1, and repeated calls
            // are used up together in DeepEval's default mode.
            let excepted = match *name {
                "ragas.tool_call_f1" => calls.is_empty(),
                "deepeval default" => true,
                _ => false,
            };
            prop_assert!(excepted || metric(&calls, &calls) == 1.0, "{name}");
        }
    }

    #[test]
    fn the_order_of_calls_does_not_matter_to_unordered_metrics(
        (called, expected) in pair(6),
        order in prop::collection::vec(any::<Index>(), 1..6),
    ) {
        let shuffled = permuted(&called, &order);
        for name in ["calls.f1", "ragas.tool_call_accuracy_unordered", "ragas.tool_call_f1"] {
            let (_, metric) = METRICS.iter().find(|(known, _)| *known == name).unwrap();
            prop_assert_eq!(metric(&called, &expected), metric(&shuffled, &expected), "{}", name);
        }
    }

    #[test]
    fn our_graded_metrics_are_symmetric((called, expected) in pair(6)) {
        prop_assert!(close(alignment(&called, &expected), alignment(&expected, &called)));
        prop_assert_eq!(f1(&called, &expected), f1(&expected, &called));
    }

    #[test]
    fn the_alignment_is_1_exactly_for_exact_calls((called, expected) in pair(5)) {
        prop_assert_eq!(exact(&called, &expected), alignment(&called, &expected) == 1.0);
        if exact(&called, &expected) {
            prop_assert_eq!(f1(&called, &expected), 1.0);
        }
    }

    #[test]
    fn an_inserted_call_costs_as_much_as_defined(expected in calls(6), at in any::<Index>()) {
        let mut called = expected.clone();
        called.insert(at.index(expected.len() + 1), Call::new("unknown", Object::new()));
        let n = expected.len() as f64;
        prop_assert_eq!(alignment(&called, &expected), n / (n + 1.0));
        prop_assert_eq!(alignment(&expected, &called), n / (n + 1.0));
        prop_assert_eq!(f1(&called, &expected), 2.0 * n / (2.0 * n + 1.0));
        prop_assert!(!exact(&called, &expected));
        prop_assert_eq!(ragas::tool_call_accuracy(&called, &expected).score, 0.0);
    }

    #[test]
    fn the_alignment_is_the_best_possible((called, expected) in pair(6)) {
        // The textbook table over all calls, without the shortcut for equal ends.
        let mut best = vec![vec![0.0_f64; called.len() + 1]; expected.len() + 1];
        for i in 1..=expected.len() {
            for j in 1..=called.len() {
                let paired = best[i - 1][j - 1] + agreement(&called[j - 1], &expected[i - 1]);
                best[i][j] = paired.max(best[i - 1][j]).max(best[i][j - 1]);
            }
        }
        let longer = called.len().max(expected.len()).max(1) as f64;
        let naive = if called.is_empty() && expected.is_empty() {
            1.0
        } else {
            best[expected.len()][called.len()] / longer
        };
        prop_assert!(close(alignment(&called, &expected), naive));
    }

    #[test]
    fn few_and_many_calls_are_counted_the_same_way((called, expected) in pair(40)) {
        // Both metrics switch to hashing for longer lists; this counts pair by pair throughout.
        let mut free: Vec<&Call<'_>> = expected.iter().collect();
        for call in &called {
            if let Some(at) = free.iter().position(|other| Equality::Json.calls(call, other)) {
                free.swap_remove(at);
            }
        }
        let matched = expected.len() - free.len();
        let of = called.len() + expected.len();
        let naive = if of == 0 { 1.0 } else { 2.0 * matched as f64 / of as f64 };
        prop_assert_eq!(f1(&called, &expected), naive);

        fn distinct<'c>(calls: &'c [Call<'static>]) -> Vec<&'c Call<'static>> {
            let mut distinct: Vec<&Call<'_>> = Vec::new();
            for call in calls {
                if !distinct.iter().any(|known| Equality::Python.calls(known, call)) {
                    distinct.push(call);
                }
            }
            distinct
        }
        let (called_set, expected_set) = (distinct(&called), distinct(&expected));
        let in_expected =
            |call: &&&Call<'_>| expected_set.iter().any(|known| Equality::Python.calls(known, call));
        let both = called_set.iter().filter(in_expected).count() as f64;
        let naive = if both == 0.0 {
            0.0
        } else {
            let (p, r) = (both / called_set.len() as f64, both / expected_set.len() as f64);
            format!("{:.4}", 2.0 * p * r / (p + r)).parse().unwrap()
        };
        prop_assert_eq!(ragas::tool_call_f1(&called, &expected), naive);
    }

    #[test]
    fn ragas_compares_the_texts_of_python((called, expected) in pair(5)) {
        let naive = |called: &[&Call<'_>], expected: &[&Call<'_>]| {
            if called.len() != expected.len()
                || called.iter().zip(expected).any(|(a, b)| a.name != b.name)
            {
                return 0.0;
            }
            let score = |(called, expected): (&&Call<'_>, &&Call<'_>)| {
                let expected = expected.arguments();
                let same = |(key, value): &(&str, &Value<'_>)| {
                    let given = called.arguments().get(key);
                    given.is_some_and(|given| python::str(given) == python::str(value))
                };
                match (called.arguments().len(), expected.len()) {
                    (0, 0) => 1.0,
                    (_, 0) => 0.0,
                    (_, all) => expected.iter().filter(same).count() as f64 / all as f64,
                }
            };
            let all = expected.len();
            if all == 0 { 1.0 } else { called.iter().zip(expected).map(score).sum::<f64>() / all as f64 }
        };
        let key = |call: &&Call<'_>| {
            let mut arguments: Vec<(String, String)> = call
                .arguments()
                .iter()
                .map(|(name, value)| (name.to_owned(), python::str(value).into_owned()))
                .collect();
            arguments.sort();
            let arguments = arguments.into_iter().flat_map(|(name, text)| [name, text]);
            std::iter::once(call.name.clone().into_owned()).chain(arguments).collect::<Vec<_>>()
        };
        let (mut a, mut b): (Vec<_>, Vec<_>) = (called.iter().collect(), expected.iter().collect());
        prop_assert_eq!(ragas::tool_call_accuracy(&called, &expected).score, naive(&a, &b));
        a.sort_by_key(key);
        b.sort_by_key(key);
        prop_assert_eq!(ragas::tool_call_accuracy_unordered(&called, &expected).score, naive(&a, &b));
    }

    #[test]
    fn calls_from_text_score_as_calls_from_values(
        (called, expected) in pair(5),
        order in prop::collection::vec(any::<Index>(), 1..5),
        shuffled in any::<bool>(),
    ) {
        let called = if shuffled { permuted(&called, &order) } else { called };
        let (called_texts, expected_texts) = (texts(&called), texts(&expected));
        let read_called = from_texts(&called, &called_texts);
        let read_expected = from_texts(&expected, &expected_texts);
        for (name, metric) in METRICS {
            let made = metric(&called, &expected);
            prop_assert_eq!(metric(&read_called, &read_expected), made, "{}", name);
        }
    }

    #[test]
    fn a_plain_list_scores_the_same_as_an_expectation((called, expected) in pair(5)) {
        let model = Expected::from(&expected[..]);
        prop_assert_eq!(model.exact(&called), exact(&called, &expected));
        prop_assert!(close(model.alignment(&called), alignment(&called, &expected)));
        prop_assert_eq!(model.f1(&called), f1(&called, &expected));
    }

    #[test]
    fn a_group_accepts_any_order(
        (called, expected) in pair(4),
        order in prop::collection::vec(any::<Index>(), 1..4),
    ) {
        let group = |calls: &[Call<'static>]| Expected {
            steps: vec![Step::AnyOrder(calls.iter().map(ExpectedCall::from).collect())],
        };
        let model = group(&expected);
        let shuffled = permuted(&called, &order);
        prop_assert_eq!(model.exact(&called), model.exact(&shuffled));
        prop_assert_eq!(model.alignment(&called), model.alignment(&shuffled));
        prop_assert_eq!(model.alignment(&called), group(&permuted(&expected, &order)).alignment(&called));
        // Without order there is more freedom, and never less.
        prop_assert!(model.alignment(&called) >= alignment(&called, &expected) - 1e-12);
        prop_assert_eq!(model.f1(&called), f1(&called, &expected));
    }

    #[test]
    fn an_optional_call_changes_no_score_whether_made_or_not(
        (called, expected) in pair(4),
        at in any::<Index>(),
    ) {
        let plain = Expected::from(&expected[..]);
        let extra = Call::new("optional", Object::new());
        let optional = ExpectedCall { presence: Presence::Optional, ..ExpectedCall::from(&extra) };
        let mut model = plain.clone();
        // At the end, so that its place among the calls is the end too.
        model.steps.push(Step::Call(optional));
        let mut made = called.clone();
        made.push(extra);
        for calls in [&called, &made] {
            prop_assert_eq!(model.exact(calls), plain.exact(&called));
            prop_assert_eq!(model.alignment(calls), plain.alignment(&called));
            prop_assert_eq!(model.f1(calls), plain.f1(&called));
        }
        // Made a second time it is one call too many.
        made.insert(at.index(made.len()), Call::new("optional", Object::new()));
        prop_assert!(!model.exact(&made));
    }

    #[test]
    fn two_values_have_the_same_text_exactly_if_python_writes_the_same(a in value(), b in value()) {
        prop_assert_eq!(python::same_text(&a, &b), python::str(&a) == python::str(&b));
        prop_assert_eq!(python::compare_text(&a, &b), python::str(&a).cmp(&python::str(&b)));
        let text = Value::from(python::str(&a).into_owned());
        prop_assert!(python::same_text(&a, &text) && python::same_text(&text, &a));
    }

    #[test]
    fn the_three_equalities_are_ordered_by_strictness(a in value(), b in value()) {
        let (json, python) = (Equality::Json.values(&a, &b), Equality::Python.values(&a, &b));
        prop_assert!(!a.identical(&b) || json, "{a} and {b} are identical");
        prop_assert!(!json || python, "{a} and {b} are equal as JSON");
        prop_assert!(a.identical(&a) && Equality::Json.values(&a, &a));
        prop_assert_eq!(json, Equality::Json.values(&b, &a));
        prop_assert_eq!(python, Equality::Python.values(&b, &a));
    }

    #[test]
    fn a_value_survives_being_written_and_read(value in wild_value()) {
        let text = value.to_string();
        let read = json::parse(&text).unwrap();
        prop_assert!(read.identical(&value), "{text}");
        prop_assert!(read.into_owned().identical(&value), "{text}");
    }

    #[test]
    fn our_reader_and_serde_json_accept_the_same_texts(
        value in wild_value(),
        at in any::<Index>(),
        byte in select(b"\"\\{}[]:,0123456789.eE+-tfn u\x01\x7f\n".to_vec()),
        indented in any::<bool>(),
    ) {
        let text = value.to_string();
        let text = match serde_json::from_str::<serde_json::Value>(&text) {
            Ok(value) if indented => serde_json::to_string_pretty(&value).unwrap(),
            _ => text,
        };
        let mut broken = text.clone().into_bytes();
        let at = at.index(broken.len());
        broken[at] = byte;
        for text in [text, String::from_utf8_lossy(&broken).into_owned()] {
            let theirs = serde_json::from_str::<serde_json::Value>(&text);
            match (json::parse(&text), theirs) {
                (Ok(ours), Ok(theirs)) => {
                    // Theirs has no integers above 64 bits; to floats both must be the same.
                    let again: serde_json::Value = serde_json::from_str(&ours.to_string()).unwrap();
                    prop_assert_eq!(zeros_alike(again), zeros_alike(theirs), "{}", text);
                }
                (Err(_), Err(_)) => {}
                // We read numbers beyond the floats as infinite, as Python does.
                (Ok(_), Err(error)) if error.to_string().contains("out of range") => {}
                (ours, theirs) => prop_assert!(false, "{text}: {ours:?}, serde_json {theirs:?}"),
            }
        }
    }
}
