use crate::{Copy, metric, near, report, value};

/// Trajectories with the rewards of each task's trials.
fn trajectories(tasks: &[&[f64]]) -> String {
    let mut runs = Vec::new();
    for (task, rewards) in tasks.iter().enumerate() {
        for (trial, reward) in rewards.iter().enumerate() {
            runs.push(format!(
                "{{\"task_id\": {task}, \"reward\": {reward}, \"info\": {{\"task\": {{}}}}, \
                 \"traj\": [], \"trial\": {trial}}}"
            ));
        }
    }
    format!("[{}]", runs.join(",\n"))
}

#[test]
fn pass_hat_k_is_that_of_the_paper() {
    let text = trajectories(&[&[1.0, 1.0, 1.0, 1.0], &[1.0, 0.0, 0.9999999, 0.5], &[0.0; 4]]);
    let copy = Copy::new(&[("gpt-4o-airline.json", &text), ("tasks.json", "{\"x\": 1}")]);
    let reports = copy.reports("tau-bench");
    let found = report(&reports, "gpt-4o-airline");
    near(value(found, "tau.pass^1"), (1.0 + 0.5 + 0.0) / 3.0);
    near(value(found, "tau.pass^2"), (1.0 + 1.0 / 6.0 + 0.0) / 3.0);
    near(value(found, "tau.pass^3"), 1.0 / 3.0);
    near(value(found, "tau.pass^4"), 1.0 / 3.0);
    assert_eq!(found.runs, 4);
    near(metric(found, Some("domain=airline"), "tau.pass^2").value, (1.0 + 1.0 / 6.0) / 3.0);
}

#[test]
fn a_crashed_run_is_a_failure_for_the_benchmark_and_not_measured_for_karat() {
    let text = r#"[{"task_id": 0, "reward": 1.0, "trial": 0, "info": {}, "traj": []},
        {"task_id": 0, "reward": 0.0, "trial": 1, "info": {"error": "rate limit"}, "traj": []}]"#;
    let copy = Copy::new(&[("m-retail.json", text)]);
    let reports = copy.reports("tau-bench");
    near(value(&reports[0], "tau.pass^1"), 0.5);
    near(value(&reports[0], "task.success"), 1.0);
}

#[test]
fn tasks_with_fewer_trials_than_others_are_half_a_file() {
    let copy = Copy::new(&[("m-airline.json", &trajectories(&[&[1.0, 0.0], &[1.0]]))]);
    let message = copy.refused("tau-bench");
    assert!(message.contains("fewer than 2 runs of 1 of 2 tasks"), "{message}");
}

#[test]
fn results_of_the_second_version_are_read() {
    let text = r#"{"info": {}, "tasks": [], "simulations": [
        {"task_id": "7", "trial": 0, "reward_info": {"reward": 1.0}, "termination_reason": "user_stop"},
        {"task_id": "8", "trial": 0, "reward_info": null, "termination_reason": "too_many_errors"}]}"#;
    let copy = Copy::new(&[("m_telecom.json", text)]);
    let reports = copy.reports("tau-bench");
    near(value(&reports[0], "tau.pass^1"), 0.5);
    near(value(&reports[0], "run.failed"), 0.5);
}

#[test]
fn a_file_that_is_cut_off_or_of_another_kind_is_refused() {
    let copy = Copy::new(&[("m.json", "[{\"task_id\": 0, \"reward\": 1.0, \"tri")]);
    let message = copy.refused("tau-bench");
    assert!(message.contains("m.json:1") && message.contains("expected trajectories"), "{message}");
    let copy = Copy::new(&[("m.json", "{\"rows\": []}")]);
    assert!(copy.refused("tau-bench").contains("expected trajectories"));
    let copy = Copy::new(&[("m.json", "[{\"task\": 0, \"reward\": 1.0}]")]);
    assert!(copy.refused("tau-bench").contains("task_id"));
}

#[test]
fn versions_with_the_same_numbers_of_tasks_are_kept_apart() {
    let first = trajectories(&[&[1.0], &[0.0]]);
    let second = r#"{"info": {"environment_info": {"domain_name": "airline"}}, "simulations": [
        {"task_id": "0", "trial": 0, "reward_info": {"reward": 1.0}, "termination_reason": "user_stop"}]}"#;
    let copy = Copy::new(&[("a-airline.json", &first), ("b.json", second)]);
    let reports = copy.reports("tau-bench");
    assert_ne!(report(&reports, "a-airline").dataset.digest, report(&reports, "b").dataset.digest);
    assert_eq!(report(&reports, "b").items[0].tags["domain"], "airline");
}

#[test]
fn runs_without_a_number_count_in_the_order_of_the_file() {
    let text = r#"[{"task_id": 3, "reward": 1.0}, {"task_id": 3, "reward": null}]"#;
    let reports = Copy::new(&[("m.json", text)]).reports("tau-bench");
    assert_eq!(reports[0].runs, 2);
    near(value(&reports[0], "run.failed"), 0.5);
    assert!(Copy::new(&[("m.json", "[]")]).refused("tau-bench").contains("expected trajectories"));
}

fn second(domain: &str, runs: &str) -> String {
    format!(
        r#"{{"info": {{"environment_info": {{"domain_name": "{domain}"}}}}, "tasks": [], {runs}}}"#
    )
}

fn simulation(id: &str, task: &str, reward: f64) -> String {
    format!(
        r#"{{"id": "{id}", "task_id": "{task}", "trial": 0, "reward_info": {{"reward": {reward:?}}},
            "termination_reason": "user_stop", "messages": []}}"#
    )
}

#[test]
fn a_run_of_the_second_version_is_named_by_its_folder() {
    let runs = format!("\"simulations\": [{}]", simulation("s", "0", 1.0));
    let copy = Copy::new(&[
        ("data/simulations/1_gpt_airline/results.json", &second("airline", &runs)),
        ("data/simulations/2_gpt_retail/results.json", &second("retail", &runs)),
        ("other/gpt.json", &second("airline", &runs)),
        ("third/gpt.json", &second("retail", &runs)),
    ]);
    let reports = copy.reports("tau-bench");
    let names: Vec<&str> = reports.iter().map(|report| report.name.as_str()).collect();
    assert_eq!(names, ["1_gpt_airline", "2_gpt_retail", "gpt", "gpt.tau2-retail"]);
}

#[test]
fn simulations_in_files_of_their_own_are_those_of_the_index() {
    let index = r#""simulation_index": [{"id": "a", "task_id": "0", "trial": 0, "reward": 1.0},
        {"id": "b", "task_id": "1", "trial": 0, "reward": 0.0}]"#;
    let copy = Copy::new(&[
        ("run1/results.json", &second("airline", index)),
        ("run1/simulations/a.json", &simulation("a", "0", 1.0)),
    ]);
    let message = copy.refused("tau-bench");
    assert!(message.contains("expected 2 files in simulations"), "{message}");
    assert!(message.contains("found 1, not b"), "{message}");
    copy.write("run1/simulations/b.json", &simulation("b", "1", 1.0));
    let message = copy.refused("tau-bench");
    assert!(message.contains("b.json: expected the reward 0 of"), "{message}");
    copy.write("run1/simulations/b.json", &simulation("b", "1", 0.0));
    copy.write("run1/simulations/c.json", &simulation("c", "2", 0.0));
    assert!(copy.refused("tau-bench").contains("\"c\", which is missing or duplicate"));
    std::fs::remove_file(copy.source().join("run1/simulations/c.json")).unwrap();
    near(value(report(&copy.reports("tau-bench"), "run1"), "tau.pass^1"), 0.5);

    // The index may be missing, and what τ² discarded is not a result.
    let copy = Copy::new(&[
        ("run1/results.json", &second("airline", "\"timestamp\": null")),
        ("run1/simulations/a.json", &simulation("a", "0", 1.0)),
        (
            "run1/hallucination_discarded/results_user_hallucination.json",
            &second("airline", &format!("\"simulations\": [{}]", simulation("z", "0", 0.0))),
        ),
    ]);
    let reports = copy.reports("tau-bench");
    assert_eq!(reports.len(), 1);
    near(value(report(&reports, "run1"), "tau.pass^1"), 1.0);

    let copy = Copy::new(&[("run1/results.json", &second("airline", index))]);
    assert!(copy.refused("tau-bench").contains("found no such folder next to it"));
    let copy = Copy::new(&[("simulations/a.json", &simulation("a", "0", 1.0))]);
    assert!(copy.refused("tau-bench").contains("found a single simulation"));
}

#[test]
fn runs_that_come_twice_are_refused_with_both_files() {
    let numbered = trajectories(&[&[1.0], &[0.0]]);
    let bare = r#"[{"task_id": 3, "reward": 1.0}]"#;
    for text in [&numbered, bare] {
        let copy = Copy::new(&[("a/m-airline.json", text), ("b/m-airline.json", text)]);
        let message = copy.refused("tau-bench");
        let path = |folder: &str| format!("{folder}/m-airline.json").replace('/', "");
        let plain = message.replace(['/', '\\'], "");
        assert!(plain.contains(&path("a")) && plain.contains(&path("b")), "{message}");
    }
    let twice =
        r#"[{"task_id": 3, "reward": 1.0, "trial": 0}, {"task_id": 3, "reward": 1.0, "trial": 0}]"#;
    let message = Copy::new(&[("m.json", twice)]).refused("tau-bench");
    assert!(message.contains("found trial 1 of task \"3\" of m twice"), "{message}");
}

#[test]
fn an_empty_error_is_ignored() {
    let text = r#"[{"task_id": 0, "reward": 1.0, "trial": 0, "info": {"error": ""}},
        {"task_id": 1, "reward": 1.0, "trial": 0, "info": {"error": null}}]"#;
    let reports = Copy::new(&[("m.json", text)]).reports("tau-bench");
    near(value(&reports[0], "task.success"), 1.0);
    near(value(&reports[0], "run.failed"), 0.0);
}

/// Simulations of τ²: tasks with the rewards of their trials; none for an infrastructure error.
fn simulations(tasks: &[&[Option<f64>]]) -> String {
    let mut runs = Vec::new();
    for (task, rewards) in tasks.iter().enumerate() {
        for (trial, reward) in rewards.iter().enumerate() {
            let (info, reason) = match reward {
                Some(reward) => (format!("{{\"reward\": {reward:?}}}"), "user_stop"),
                None => ("null".to_owned(), "infrastructure_error"),
            };
            runs.push(format!(
                "{{\"task_id\": \"{task}\", \"trial\": {trial}, \"reward_info\": {info}, \
                 \"termination_reason\": \"{reason}\"}}"
            ));
        }
    }
    second("airline", &format!("\"simulations\": [{}]", runs.join(",")))
}

#[test]
fn the_second_version_leaves_infrastructure_errors_out_and_caps_k() {
    let (yes, no) = (Some(1.0), Some(0.0));
    let tasks: [&[Option<f64>]; 3] = [&[yes, yes, None], &[yes, no, yes], &[None, None, None]];
    let copy = Copy::new(&[("m.json", &simulations(&tasks))]);
    let reports = copy.reports("tau-bench");
    let found = report(&reports, "m");
    // 2 of 2 and 2 of 3; the third task has no run that counts.
    near(value(found, "tau.pass^1"), (1.0 + 2.0 / 3.0) / 2.0);
    near(value(found, "tau.pass^2"), (1.0 + 1.0 / 3.0) / 2.0);
    let third = metric(found, None, "tau.pass^3");
    assert_eq!(third.value, None);
    assert!(third.undefined.as_ref().unwrap().contains("up to k = 2"), "{third:?}");
    near(value(found, "run.failed"), 4.0 / 9.0);
    let note = found.warnings.iter().find(|note| note.contains("4 of 9 runs")).unwrap();
    assert!(note.contains("tau.pass^1 leaves them out too"), "{note}");
    // A reward beyond 1 is not one of 1.
    let copy = Copy::new(&[("m.json", &simulations(&[&[Some(2.0)], &[yes]]))]);
    near(value(&copy.reports("tau-bench")[0], "tau.pass^1"), 0.5);
}

#[test]
fn simulations_without_any_reward_are_another_format() {
    let copy = Copy::new(&[(
        "gpt-airline.json",
        r#"{"simulations": [{"task_id": 0, "trial": 0, "reward": 1.0}, {"task_id": 1, "trial": 0, "reward": 0.0}]}"#,
    )]);
    let message = copy.refused("tau-bench");
    assert!(message.contains("found 2 simulations, none with `reward_info`"), "{message}");
}
