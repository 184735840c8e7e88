//! Properties of the ranking measures on generated judgements and results: the order of the input
//! does not matter, values stay in their bounds, a better order never scores less, and the one-pass
//! computation agrees with formulas written out document by document.

use std::collections::BTreeMap;

use karat_metrics::Score;
use karat_metrics::ranking::{
    Averages, JudgedRanking, METRICS, Measure, Rules, ScorePrecision, TieRule,
};
use karat_metrics::registry::Better;
use proptest::prelude::*;
use proptest::sample::Index;

type Judgements = BTreeMap<String, i64>;
type Results = Vec<(String, f64)>;

/// Every measure, with cut-offs below, at and above the length of the lists below.
fn measures() -> Vec<Measure> {
    let mut measures = Vec::new();
    for metric in METRICS {
        if metric.id.ends_with("@k") {
            let with_cut =
                |k: u32| metric.id.replace("@k", &format!("@{k}")).parse::<Measure>().unwrap();
            measures.extend([1, 2, 5, 10, 50].map(with_cut));
        } else {
            measures.push(metric.id.parse().unwrap());
        }
    }
    measures
}

fn id() -> impl Strategy<Value = String> {
    // Few ids, so that judgements and results overlap, and beyond ASCII, so that bytes decide.
    proptest::sample::select(
        &["a", "b", "c", "s:t", "s:t2", "s:t10", "Ω", "é", "z", "zz", "A", "~", "0", "00"][..],
    )
    .prop_map(str::to_owned)
}

fn judgements() -> impl Strategy<Value = Judgements> {
    proptest::collection::btree_map(id(), -2..5_i64, 0..10)
}

/// Scores with many ties, some only in single precision.
fn results() -> impl Strategy<Value = Results> {
    let score = prop_oneof![
        (-2..3_i32).prop_map(f64::from),
        Just(0.1),
        Just(0.100_000_001),
        Just(-0.0),
        -1e300..1e300_f64
    ];
    proptest::collection::btree_map(id(), score, 0..14)
        .prop_map(|map| map.into_iter().collect::<Vec<_>>())
        .prop_shuffle()
}

fn rules() -> impl Strategy<Value = Rules> {
    let ties = prop_oneof![
        Just(TieRule::IdDescending),
        Just(TieRule::IdAscending),
        Just(TieRule::Insertion)
    ];
    let precision = prop_oneof![Just(ScorePrecision::F32), Just(ScorePrecision::F64)];
    (ties, precision, 0..4_u32, any::<bool>()).prop_map(
        |(ties, precision, relevance_level, judged_only)| Rules {
            ties,
            precision,
            relevance_level,
            judged_only,
        },
    )
}

fn ranking(judged: &Judgements, results: &[(String, f64)], rules: &Rules) -> JudgedRanking {
    let judged = judged.iter().map(|(id, grade)| (&**id, *grade));
    JudgedRanking::from_scored(judged, results.iter().map(|(id, score)| (&**id, *score)), rules)
        .unwrap()
}

fn ordered(judged: &Judgements, results: &[String], rules: &Rules) -> JudgedRanking {
    let judged = judged.iter().map(|(id, grade)| (&**id, *grade));
    JudgedRanking::from_ordered(judged, results.iter().map(|id| &**id), rules).unwrap()
}

/// The measures once more, straight from their definitions.
mod naive {
    use super::*;

    /// Sorts results by counting those that come before each.
    pub(super) fn order(results: &[(String, f64)], rules: &Rules) -> Vec<String> {
        let score = |score: f64| match rules.precision {
            ScorePrecision::F32 => f64::from(score as f32),
            ScorePrecision::F64 => score,
        };
        let before = |left: usize, right: usize| {
            let (left_score, right_score) = (score(results[left].1), score(results[right].1));
            if left_score != right_score {
                return left_score > right_score;
            }
            match rules.ties {
                TieRule::IdDescending => results[left].0.as_bytes() > results[right].0.as_bytes(),
                TieRule::IdAscending => results[left].0.as_bytes() < results[right].0.as_bytes(),
                TieRule::Insertion => left < right,
            }
        };
        let mut placed = vec![String::new(); results.len()];
        for (index, (id, _)) in results.iter().enumerate() {
            let place = (0..results.len()).filter(|other| before(*other, index)).count();
            placed[place].clone_from(id);
        }
        placed
    }

    pub(super) fn score(
        judged: &Judgements,
        order: &[String],
        rules: &Rules,
        measure: Measure,
    ) -> Option<f64> {
        let level = i64::from(rules.relevance_level);
        let grade = |id: &String| judged.get(id).copied().filter(|grade| *grade >= 0);
        let list: Vec<Option<i64>> =
            order.iter().map(grade).filter(|grade| grade.is_some() || !rules.judged_only).collect();
        let relevant = |grade: &Option<i64>| grade.is_some_and(|grade| grade >= level);
        let total = judged.values().filter(|grade| **grade >= 0 && **grade >= level).count() as f64;
        let depth = measure.cutoff().map_or(usize::MAX, |k| k.get() as usize);
        let top = &list[..depth.min(list.len())];
        let found = top.iter().filter(|grade| relevant(grade)).count() as f64;
        let or_zero = |value: f64| if value.is_finite() { value } else { 0.0 };
        let first = top.iter().position(&relevant);
        let dcg = |grades: &[i64], gain: &dyn Fn(i64) -> f64| -> f64 {
            grades
                .iter()
                .enumerate()
                .map(|(index, grade)| gain(*grade) / (index as f64 + 2.0).log2())
                .sum()
        };
        let ndcg = |gain: &dyn Fn(i64) -> f64| {
            let gained: Vec<i64> = top.iter().map(|grade| grade.unwrap_or(0)).collect();
            let mut ideal: Vec<i64> = judged.values().map(|grade| (*grade).max(0)).collect();
            ideal.sort_unstable_by(|left, right| right.cmp(left));
            ideal.truncate(depth);
            or_zero(dcg(&gained, gain) / dcg(&ideal, gain))
        };
        let precision = |list: &[Option<i64>], depth: usize| {
            list.iter().take(depth).filter(|grade| relevant(grade)).count() as f64 / depth as f64
        };
        Some(match measure.definition().id {
            "recall@k" | "set_recall" => or_zero(found / total),
            "success@k" => f64::from(u8::from(found > 0.0)),
            "comprehensiveness@k" => f64::from(u8::from(total > 0.0 && found == total)),
            "mrr" | "mrr@k" => first.map_or(0.0, |index| 1.0 / (index as f64 + 1.0)),
            "ndcg@k" | "ndcg" => ndcg(&|grade| grade as f64),
            "ndcg_exp@k" | "ndcg_exp" => ndcg(&|grade| (grade as f64).exp2() - 1.0),
            "map" | "map@k" => {
                let ranks = (0..top.len()).filter(|index| relevant(&top[*index]));
                or_zero(ranks.map(|index| precision(&list, index + 1)).sum::<f64>() / total)
            }
            "hard_negative_rate" => {
                let negatives = judged.values().filter(|grade| **grade == 0 && level > 0).count();
                if negatives == 0 || total == 0.0 {
                    return None;
                }
                let above = list.iter().take_while(|grade| !relevant(grade));
                f64::from(u8::from(above.into_iter().any(|grade| *grade == Some(0))))
            }
            "p@k" => found / depth as f64,
            "set_precision" => or_zero(found / list.len() as f64),
            "f1@k" | "set_f1" => {
                let looked_at =
                    if measure == Measure::known("set_f1") { list.len() } else { depth };
                // 2PR/(P+R) in counts.
                if found == 0.0 { 0.0 } else { 2.0 * found / (looked_at as f64 + total) }
            }
            "hits@k" => found,
            "r_precision" => or_zero(precision(&list, total as usize)),
            "bpref" => {
                let nonrelevant = |grade: &Option<i64>| grade.is_some_and(|grade| grade < level);
                let all =
                    judged.values().filter(|grade| **grade >= 0 && **grade < level).count() as f64;
                let mut sum = 0.0;
                for (index, _) in list.iter().enumerate().filter(|(_, grade)| relevant(grade)) {
                    let above =
                        list[..index].iter().filter(|grade| nonrelevant(grade)).count() as f64;
                    sum += 1.0 - or_zero(above.min(total) / all.min(total));
                }
                or_zero(sum / total)
            }
            "ranx.rbp.80" => {
                let weigh = |(index, grade): (usize, &Option<i64>)| {
                    let grade = grade.filter(|grade| *grade >= level).unwrap_or(0);
                    grade as f64 * 0.8_f64.powi(index as i32)
                };
                0.2 * list.iter().enumerate().map(weigh).sum::<f64>()
            }
            other => panic!("{other} has no plain definition here"),
        })
    }
}

fn close(left: f64, right: f64) -> bool {
    (left - right).abs() <= 1e-12 * right.abs().max(1.0)
}

/// Returns `true` if a change from `before` to `after` makes a measure worse, beyond rounding.
fn is_worse(measure: Measure, before: Score, after: Score) -> bool {
    let (Ok(before), Ok(after)) = (before, after) else { return before.is_ok() != after.is_ok() };
    match measure.definition().better {
        Better::Higher => after < before && !close(after, before),
        Better::Lower => after > before && !close(after, before),
    }
}

proptest! {
    #[test]
    fn the_fast_computation_agrees_with_the_definitions(
        judged in judgements(), results in results(), rules in rules(),
    ) {
        let fast = ranking(&judged, &results, &rules);
        let order = naive::order(&results, &rules);
        prop_assert_eq!(&fast, &ordered(&judged, &order, &rules));
        for measure in measures() {
            let expected = naive::score(&judged, &order, &rules, measure);
            match (fast.score(measure), expected) {
                (Ok(value), Some(expected)) => {
                    prop_assert!(close(value, expected), "{}: {} but {}", measure, value, expected);
                }
                (fast, naive) => prop_assert!(fast.is_err() && naive.is_none(), "{measure}: {fast:?} but {naive:?}"),
            }
        }
    }

    #[test]
    fn the_order_of_the_input_does_not_matter(
        (judged, shuffled_judged) in judgements().prop_flat_map(|judged| {
            let list: Vec<_> = judged.into_iter().collect();
            (Just(list.clone()), Just(list).prop_shuffle())
        }),
        (results, shuffled_results) in results().prop_flat_map(|list| (Just(list.clone()), Just(list).prop_shuffle())),
        rules in rules().prop_filter("insertion order matters by name", |rules| rules.ties != TieRule::Insertion),
    ) {
        let build = |judged: &[(String, i64)], results: &[(String, f64)]| {
            let judged = judged.iter().map(|(id, grade)| (&**id, *grade));
            JudgedRanking::from_scored(judged, results.iter().map(|(id, score)| (&**id, *score)), &rules).unwrap()
        };
        prop_assert_eq!(build(&judged, &results), build(&shuffled_judged, &shuffled_results));
    }

    #[test]
    fn values_are_shares_and_counts_stay_within_the_cut(
        judged in judgements(), results in results(), rules in rules(),
    ) {
        let ranking = ranking(&judged, &results, &rules);
        for measure in measures() {
            let Ok(value) = ranking.score(measure) else { continue };
            let most = match measure.definition().id {
                "hits@k" => measure.cutoff().map_or(0.0, |k| f64::from(k.get())),
                // Weighed by the grade; the greatest one bounds it.
                "ranx.rbp.80" => judged.values().copied().max().unwrap_or(0).max(0) as f64,
                _ => 1.0,
            };
            prop_assert!((0.0..=most).contains(&value), "{measure}: {value}");
            prop_assert!(value.is_sign_positive(), "{measure}: {value}");
        }
    }

    #[test]
    fn moving_a_relevant_document_up_never_makes_anything_worse(
        judged in judgements(), results in results(), rules in rules(), place in any::<Index>(),
    ) {
        let order = naive::order(&results, &rules);
        let grade = |id: &String| judged.get(id).copied().unwrap_or(0).max(0);
        // Past a document of a lower grade: past a higher one, nDCG must fall.
        let movable: Vec<_> = (1..order.len())
            .filter(|index| grade(&order[*index]) > grade(&order[index - 1]))
            .filter(|index| grade(&order[*index]) >= i64::from(rules.relevance_level))
            .collect();
        prop_assume!(!movable.is_empty());
        let index = movable[place.index(movable.len())];
        let mut better = order.clone();
        better.swap(index, index - 1);
        let (before, after) = (ordered(&judged, &order, &rules), ordered(&judged, &better, &rules));
        for measure in measures() {
            let (before, after) = (before.score(measure), after.score(measure));
            prop_assert!(!is_worse(measure, before, after), "{measure}: {before:?} to {after:?}");
        }
    }

    #[test]
    fn means_do_not_depend_on_the_order_of_queries(
        queries in proptest::collection::vec((judgements(), results()), 1..20)
            .prop_flat_map(|list| (Just(list.clone()), Just(list).prop_shuffle())),
    ) {
        let measures = measures();
        let average = |list: &[(Judgements, Results)]| {
            let mut averages = Averages::new(&measures);
            for (judged, results) in list {
                averages.add_evaluated(&ranking(judged, results, &Rules::default()));
            }
            averages
        };
        let (left, right) = (average(&queries.0), average(&queries.1));
        for (left, right) in left.over_evaluated().iter().zip(right.over_evaluated()) {
            prop_assert_eq!((left.count(), left.undefined()), (right.count(), right.undefined()));
            if let (Ok(left), Ok(right)) = (left.value(), right.value()) {
                prop_assert!(close(left, right), "{left} {right}");
            }
        }
    }
}
