//! Every value of vectors/sklearn_classification.json, obtained from scikit-learn, is reproduced.
//!
//! If scikit-learn replaces an undefined value by a number, our rule for doing so is applied; if it
//! gives NaN, ours must be undefined. Every case and every key must be known here: one that is not
//! fails the test, so nothing in the file can go unchecked.

use karat_metrics::Score;
use karat_metrics::classification::*;
use serde_json::Value;

use crate::peers::vectors;

struct Case<'a> {
    json: &'a Value,
    tolerance: f64,
}

/// Runs `check` on every case of a kind, for each of its expected values.
fn for_each(kind: &str, check: impl Fn(&Case, &str, &Value)) {
    let file: Value = vectors("sklearn_classification");
    let tolerance = file["meta"]["tolerance"].as_f64().unwrap();
    let mut seen = 0;
    for json in file["cases"].as_array().unwrap().iter().filter(|case| case["kind"] == kind) {
        let case = Case { json, tolerance };
        for (key, expected) in json["expected"].as_object().unwrap() {
            check(&case, key, expected);
            seen += 1;
        }
    }
    assert!(seen > 0, "no case of kind {kind}");
}

impl Case<'_> {
    fn flags(&self, field: &str) -> Vec<bool> {
        self.json[field].as_array().unwrap().iter().map(|flag| flag.as_u64() == Some(1)).collect()
    }

    fn numbers(&self, field: &str) -> Vec<f64> {
        self.json[field].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
    }

    fn texts(&self, field: &str) -> Vec<String> {
        let list = self.json[field].as_array().unwrap();
        list.iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    }

    fn number(&self, key: &str, ours: Score, expected: &Value) {
        let agrees = match (ours, expected) {
            (Ok(ours), Value::Number(expected)) => {
                let expected = expected.as_f64().unwrap();
                (ours - expected).abs() <= self.tolerance * expected.abs().max(1.0)
            }
            (Ok(ours), Value::String(expected)) => expected == "Infinity" && ours == f64::INFINITY,
            (Err(_), expected) => expected == "NaN",
            _ => false,
        };
        assert!(agrees, "{} {key}: ours {ours:?}, peer {expected}", self.json["id"]);
    }

    fn count(&self, key: &str, ours: u64, expected: &Value) {
        assert_eq!(Some(ours), expected.as_u64(), "{} {key}", self.json["id"]);
    }

    fn list(&self, key: &str, ours: &[f64], expected: &Value) {
        let expected = expected.as_array().unwrap();
        assert_eq!(ours.len(), expected.len(), "{} {key}: {ours:?} {expected:?}", self.json["id"]);
        for (ours, expected) in ours.iter().zip(expected) {
            self.number(key, Ok(*ours), expected);
        }
    }

    fn lists(&self, key: &str, ours: &[(&str, &[f64])], expected: &Value) {
        assert_eq!(expected.as_object().unwrap().len(), ours.len(), "{} {key}", self.json["id"]);
        for (name, list) in ours {
            self.list(&format!("{key} {name}"), list, &expected[name]);
        }
    }

    fn confusion(&self) -> Confusion {
        Confusion::from_verdicts(&self.flags("y_true"), &self.flags("y_pred")).unwrap()
    }

    fn scores(&self) -> Scores {
        Scores::new(&self.flags("y_true"), &self.numbers("y_score")).unwrap()
    }
}

fn zero_division(key: &str) -> ZeroDivision {
    match key.strip_prefix("zero_division=") {
        Some("0") => ZeroDivision::Zero,
        Some("1") => ZeroDivision::One,
        Some("nan") => ZeroDivision::Undefined,
        _ => panic!("unknown key {key}"),
    }
}

fn metric(name: &str) -> fn(&Confusion) -> Score {
    match name {
        "precision" => Confusion::precision,
        "recall" => Confusion::recall,
        "f1" => Confusion::f1,
        "f0.5" => |counts| counts.f_beta(0.5),
        "f2" => |counts| counts.f_beta(2.0),
        "jaccard" => Confusion::jaccard,
        _ => panic!("unknown metric {name}"),
    }
}

#[test]
fn metrics_of_verdicts_equal_those_of_scikit_learn() {
    for_each("binary", |case, key, expected| {
        let counts = case.confusion();
        match key {
            "tp" => case.count(key, counts.true_positives, expected),
            "fp" => case.count(key, counts.false_positives, expected),
            "fn" => case.count(key, counts.false_negatives, expected),
            "tn" => case.count(key, counts.true_negatives, expected),
            "accuracy" => case.number(key, counts.accuracy(), expected),
            "balanced_accuracy" => {
                case.number(key, counts.balanced_accuracy_of_present_classes(), expected);
                if let Ok(ours) = counts.balanced_accuracy() {
                    case.number(key, Ok(ours), expected);
                }
            }
            "mcc" => case.number(key, ZeroDivision::Zero.apply(counts.mcc()), expected),
            "cohen_kappa" => case.number(key, counts.kappa(), expected),
            "fpr" => case.number(key, counts.fpr(), expected),
            "fnr" => case.number(key, counts.fnr(), expected),
            "specificity" => case.number(key, counts.specificity(), expected),
            "npv" => case.number(key, counts.npv(), expected),
            _ => {
                for (name, expected) in expected.as_object().unwrap() {
                    let rule = match (zero_division(key), name.as_str()) {
                        // `jaccard_score` has no `nan`: the vectors contain its default there.
                        (ZeroDivision::Undefined, "jaccard") => ZeroDivision::Zero,
                        (rule, _) => rule,
                    };
                    let ours = rule.apply(metric(name)(&counts));
                    case.number(&format!("{key} {name}"), ours, expected);
                }
            }
        }
    });
}

#[test]
fn metrics_of_scores_equal_those_of_scikit_learn() {
    for_each("scores", |case, key, expected| {
        let scores = case.scores();
        let roc = |curve: RocCurve| {
            let lists = [
                ("fpr", curve.fpr.as_slice()),
                ("tpr", &curve.tpr),
                ("thresholds", &curve.thresholds),
            ];
            case.lists(key, &lists, expected);
        };
        match key {
            "roc_auc" => case.number(key, scores.roc_auc(), expected),
            "average_precision" => {
                let ours = ZeroDivision::Zero.apply(scores.average_precision());
                case.number(key, ours, expected);
            }
            "brier" => case.number(key, scores.brier(), expected),
            "log_loss" => case.number(key, scores.log_loss(), expected),
            "roc_curve_drop_intermediate=false" => roc(scores.roc_curve().unwrap()),
            "roc_curve_drop_intermediate=true" => roc(scores.roc_curve_of_corners().unwrap()),
            "precision_recall_curve" => {
                let curve = scores.precision_recall_curve().unwrap();
                let lists = [
                    ("precision", curve.precision.as_slice()),
                    ("recall", &curve.recall),
                    ("thresholds", &curve.thresholds),
                ];
                case.lists(key, &lists, expected);
            }
            _ => {
                let after = |prefix| key.strip_prefix(prefix).map(|rest| rest.parse().unwrap());
                if let Some(ceiling) = after("partial_auc_max_fpr=") {
                    case.number(key, scores.partial_auc(ceiling), expected);
                } else if let Some(ceiling) = after("recall_at_fpr<=") {
                    case.number(key, scores.recall_at_fpr(ceiling), expected);
                } else {
                    panic!("unknown key {key}");
                }
            }
        }
    });
}

#[test]
fn metrics_of_categories_equal_those_of_scikit_learn() {
    for_each("multiclass", |case, key, expected| {
        let labels = case.texts("labels");
        let table =
            Multiclass::from_labels(&labels, &case.texts("y_true"), &case.texts("y_pred")).unwrap();
        match key {
            "accuracy" => case.number(key, table.accuracy(), expected),
            "mcc" => case.number(key, ZeroDivision::Zero.apply(table.mcc()), expected),
            "confusion_matrix" => {
                let rows: Vec<&[u64]> = table.rows().collect();
                assert_eq!(serde_json::json!(rows), *expected, "{}", case.json["id"]);
            }
            _ => {
                let rule = zero_division(key);
                for (group, expected) in expected.as_object().unwrap() {
                    if group == "per_label" {
                        per_label(case, &labels, &table, rule, expected);
                    } else {
                        averages(case, group, &table, rule, expected);
                    }
                }
            }
        }
    });
}

fn per_label(
    case: &Case,
    labels: &[String],
    table: &Multiclass,
    rule: ZeroDivision,
    expected: &Value,
) {
    assert_eq!(expected.as_object().unwrap().len(), labels.len(), "{}", case.json["id"]);
    for (place, label) in labels.iter().enumerate() {
        let counts = table.class(place).unwrap();
        for (name, expected) in expected[label].as_object().unwrap() {
            let key = format!("{rule:?} {label} {name}");
            if name == "support" {
                case.count(&key, counts.positives(), expected);
            } else {
                case.number(&key, rule.apply(metric(name)(&counts)), expected);
            }
        }
    }
}

fn averages(case: &Case, group: &str, table: &Multiclass, rule: ZeroDivision, expected: &Value) {
    let averaging = match group {
        "macro" => Averaging::Macro,
        "micro" => Averaging::Micro,
        "weighted" => Averaging::Weighted,
        _ => panic!("unknown average {group}"),
    };
    for (name, expected) in expected.as_object().unwrap() {
        let ours = table.average(metric(name), averaging, rule);
        case.number(&format!("{rule:?} {group} {name}"), ours, expected);
    }
}

#[test]
fn no_kind_of_case_goes_unchecked() {
    let file: Value = vectors("sklearn_classification");
    let cases = file["cases"].as_array().unwrap();
    assert_eq!(Some(cases.len() as u64), file["meta"]["cases"].as_u64());
    for case in cases {
        let kind = case["kind"].as_str().unwrap();
        assert!(["binary", "scores", "multiclass"].contains(&kind), "{}", case["id"]);
    }
}
